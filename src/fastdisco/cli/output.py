"""Standard output, written by a thread of its own: who reads slowly, or not at all, holds nothing else up."""

from __future__ import annotations

import asyncio
import os
import select
import threading
from queue import SimpleQueue

_LOOK = 0.5  # seconds between two looks at whether anybody reads
_GOODBYE = 0.2  # seconds for what is being written at the end


class Output:
    """Writes to a descriptor inside a running loop; BrokenPipeError when nobody reads any more, OSError for what else goes wrong."""

    def __init__(self, descriptor: int) -> None:
        self._descriptor = descriptor
        self._waiting: SimpleQueue[tuple[bytes, asyncio.Future[None]]] = SimpleQueue()
        self._loop = asyncio.get_running_loop()
        # A daemon, since the end of the program must not wait for a reader.
        threading.Thread(target=self._write_all, name="fastdisco output", daemon=True).start()

    async def write(self, data: bytes) -> None:
        """Returns when all of it is written."""
        written = self._loop.create_future()
        self._waiting.put((data, written))
        try:
            await asyncio.shield(written)
        except asyncio.CancelledError:
            # What has begun is better ended than cut in the middle.
            await asyncio.wait([written], timeout=_GOODBYE)
            raise

    async def closed(self) -> None:
        """Returns when nobody reads any more; a file never gets there."""
        looked = select.poll()
        looked.register(self._descriptor, 0)
        while not looked.poll(0):  # noqa: ASYNC110  no event loop tells of the reading end of a pipe
            await asyncio.sleep(_LOOK)

    def _write_all(self) -> None:
        while True:
            data, written = self._waiting.get()
            error: OSError | None = None
            try:
                left = memoryview(data)
                while left:
                    left = left[os.write(self._descriptor, left) :]
            except OSError as caught:
                error = caught if isinstance(caught, BrokenPipeError) else OSError(f"cannot write to standard output: {caught.strerror}")
            try:
                self._loop.call_soon_threadsafe(_settle, written, error)
            except RuntimeError:  # the loop has ended meanwhile
                return


def _settle(written: asyncio.Future[None], error: OSError | None) -> None:
    if written.done():
        return
    if error is None:
        written.set_result(None)
    else:
        written.set_exception(error)
        written.exception()  # who waited may be gone
