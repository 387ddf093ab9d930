"""Chunked bodies past aiohttp's parser: the socket writes into a buffer of ours, of which the decoder reads."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext
from functools import partial
from typing import Any

import aiohttp
from aiohttp.client_proto import ResponseHandler
from aiohttp.http_exceptions import HttpProcessingError

from ._dechunker import Dechunker

_RELIED_ON = ("set_response_params", "feed_data", "data_received", "set_exception", "pause_reading", "start_timeout", "_drop_timeout")
_HEAD_END = b"\r\n\r\n"


class Connector(aiohttp.TCPConnector):
    """Its connections have a `ChunkReader` wherever an answer is chunked."""

    def __init__(self, **options: Any) -> None:
        super().__init__(**options)
        # aiohttp has no public way to name a protocol; where it has other names than these, all bodies are read as it reads them.
        if hasattr(self, "_factory") and all(hasattr(ResponseHandler, name) for name in _RELIED_ON):
            self._factory: Callable[[], ResponseHandler] = partial(Handler, loop=self._loop)  # type: ignore[assignment]


class Handler(ResponseHandler):
    """aiohttp's protocol, but for bodies: its parser gets the head of an answer, and of a chunked body what `ChunkReader` leaves."""

    def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
        super().__init__(loop)
        self.chunks: ChunkReader | None = None
        """Has the connection while it is there."""
        self.lost = False
        self._in_head = False
        self._last = b""  # bytes of a head, in which its end may have begun
        self._begun: tuple[Any, aiohttp.StreamReader] | None = None  # what the parser made of the head
        self._total: AbstractContextManager[Any] = nullcontext()  # the timeout of the whole
        self._room = 0

    def set_response_params(self, *, timer: Any = None, read_bufsize: int = 1 << 16, **options: Any) -> None:
        """Called before each request."""
        self._in_head, self._last = True, b""
        self._total, self._room = timer or nullcontext(), read_bufsize
        super().set_response_params(timer=timer, read_bufsize=read_bufsize, **options)

    def data_received(self, data: bytes) -> None:
        if not self._in_head:
            super().data_received(data)
            return
        seen = self._last + data
        end = seen.find(_HEAD_END)
        if end < 0:
            self._last = seen[1 - len(_HEAD_END) :]
            super().data_received(data)
            self._begun = None  # by bare newlines, if at all
            return
        end += len(_HEAD_END) - len(self._last)
        self._last, self._begun = b"", None
        super().data_received(data[:end])
        begun, self._begun = self._begun, None
        if begun is not None and self._is_chunked(*begun) and self.transport is not None:
            self.chunks = ChunkReader(self, self.transport, self._total, Dechunker(self._room, data[end:]))
        elif end < len(data):
            self.data_received(data[end:])

    def feed_data(self, data: Any, *size: int) -> None:
        """The parser has an answer's head."""
        self._in_head = data[0].code < 200  # another follows
        self._begun = data
        super().feed_data(data, *size)

    def pause_reading(self) -> None:
        """All that a lost connection brought is in memory already, and the parser must see its end."""
        if not self.lost:
            super().pause_reading()

    def set_exception(self, error: Any, *cause: Any) -> None:
        """Such as a peer that has been silent for too long, or what is no HTTP."""
        super().set_exception(error, *cause)
        if isinstance(error, HttpProcessingError) and self._payload is not None and not self._payload.is_eof():
            # aiohttp tells only who waits for a head, and lets who waits for a body wait on
            self._payload.set_exception(aiohttp.ClientPayloadError(str(error)))
        if self.chunks is not None:
            self.chunks.hand_back()

    @staticmethod
    def _is_chunked(message: Any, payload: aiohttp.StreamReader) -> bool:
        """A successful answer in chunks, of which the parser has seen nothing: a head of bare newlines ends before we see it."""
        plain = 200 <= message.code < 300 and message.chunked and not message.compression
        return plain and not payload.is_eof() and not payload.total_bytes


class ChunkReader(asyncio.BufferedProtocol):
    """Has a connection as long as plain chunks come; the end, and whatever else there is, goes to aiohttp's parser.

    While the buffer is full and nobody takes, reading stops; silence is counted only while somebody waits.
    """

    def __init__(self, handler: Handler, transport: asyncio.Transport, total: AbstractContextManager[Any], dechunker: Dechunker) -> None:
        self._handler: Handler | None = handler
        self._transport = transport
        self._total = total
        self._dechunker = dechunker
        self._paused = False
        self._waiter: asyncio.Future[None] | None = None
        handler._drop_timeout()
        transport.set_protocol(self)

    async def read(self) -> memoryview | None:
        """Bytes of the body, valid until the next call; None: what follows, if anything, is aiohttp's. TimeoutError by the total."""
        while self._handler is not None:
            if (taken := self._dechunker.take()) is not None:
                return taken
            if self._dechunker.stuck:
                self.hand_back()
                break
            if self._paused:
                self._paused = False
                self._transport.resume_reading()
            self._handler.start_timeout()
            self._waiter = asyncio.get_running_loop().create_future()
            try:
                with self._total:
                    await self._waiter
            finally:
                self._waiter = None
        return None

    def hand_back(self) -> None:
        """aiohttp goes on where this stands."""
        if (handler := self._handler) is not None:
            rest = self._dechunker.rest()
            self.close()
            if rest:
                handler.data_received(rest)

    def close(self) -> None:
        """Nobody wants the rest."""
        if self._handler is not None:
            self._transport.set_protocol(self._handler)
            if self._paused:
                self._transport.resume_reading()
            self._let_go()

    def get_buffer(self, _: int) -> memoryview:
        return self._dechunker.room()

    def buffer_updated(self, nbytes: int) -> None:
        assert self._handler is not None
        self._handler._drop_timeout()
        if not self._dechunker.received(nbytes):
            self._paused = True
            self._transport.pause_reading()
        self._wake()

    def eof_received(self) -> None:
        if self._handler is not None:
            self._handler.eof_received()

    def connection_lost(self, exc: BaseException | None) -> None:
        if (handler := self._handler) is not None:
            handler.lost = True
            rest = self._dechunker.rest()
            self._let_go()
            if rest:
                handler.data_received(rest)
            handler.connection_lost(exc)

    def pause_writing(self) -> None:
        if self._handler is not None:
            self._handler.pause_writing()

    def resume_writing(self) -> None:
        if self._handler is not None:
            self._handler.resume_writing()

    def _let_go(self) -> None:
        """uvloop keeps the methods of a protocol that it had, and so this object, as long as the connection: it must be a small one."""
        if self._handler is not None:
            self._handler.chunks = None
            self._handler = None
            del self._transport, self._total, self._dechunker
            self._wake()

    def _wake(self) -> None:
        if self._waiter is not None and not self._waiter.done():
            self._waiter.set_result(None)
