"""How long the event loop is held between two turns."""

from __future__ import annotations

import asyncio
import gc
import time
from typing import Any, Self

_EVERY = 0.001  # seconds


class LoopHolds:
    """While entered: the longest CPU time of the loop's thread between two turns, the garbage collector's own time left out.

    It looks once a millisecond, so that an idle loop may sleep: what it tells may be a millisecond too much, never too little.
    """

    def __init__(self) -> None:
        self.longest = 0.0
        """Seconds."""
        self.longest_collection = 0.0
        """Seconds that one garbage collection took."""
        self._collected = 0.0
        self._collection_began = 0.0
        self._last = (0.0, 0.0)
        self._handle: asyncio.TimerHandle | None = None

    def __enter__(self) -> Self:
        gc.callbacks.append(self._collection)
        self._last = (time.thread_time(), self._collected)
        self._handle = asyncio.get_running_loop().call_later(_EVERY, self._turn)
        return self

    def __exit__(self, *_: object) -> None:
        gc.callbacks.remove(self._collection)
        if self._handle is not None:
            self._handle.cancel()

    def _turn(self) -> None:
        now, collected = time.thread_time(), self._collected
        before, collected_before = self._last
        self.longest = max(self.longest, now - before - (collected - collected_before))
        self._last = (now, collected)
        self._handle = asyncio.get_running_loop().call_later(_EVERY, self._turn)

    def _collection(self, phase: str, _: dict[str, Any]) -> None:
        if phase == "start":
            self._collection_began = time.thread_time()
        else:
            took = time.thread_time() - self._collection_began
            self._collected += took
            self.longest_collection = max(self.longest_collection, took)
