"""HTTP/1.1 by hand: parsing requests, and writing pre-rendered bytes as fast as the reader takes them."""

from __future__ import annotations

import asyncio
import socket
import struct
import sys
import traceback
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass, field
from email.utils import formatdate
from typing import Any, cast
from urllib.parse import parse_qsl, unquote, urlsplit

from fastdisco.synthetic.books import Books
from fastdisco.synthetic.faults import Fault
from fastdisco.synthetic.status import PHRASES, StatusError

Buffer = bytes | memoryview
_TLS_HANDSHAKE = b"\x16"  # the first byte of a client that wants TLS
_HIGH_WATER = 2 << 20
_TURN = 8 << 20  # bytes after which other connections get a turn


@dataclass(slots=True)
class Request:
    """One request, its body read."""

    method: str
    target: str
    path: str
    query: dict[str, str]
    headers: dict[str, str]
    body: bytes = b""
    length: int = 0
    record: dict[str, Any] = field(default_factory=dict)


class HangupError(Exception):
    """The client is gone, or the answer ends without its end."""


def parse_head(head: bytes) -> Request:
    """The request line and the headers, names in lower case."""
    first, *lines = head.decode("latin-1").split("\r\n")
    method, target, _ = first.split(" ", 2)
    headers = {}
    for line in lines:
        name, _, value = line.partition(":")
        headers[name.strip().lower()] = value.strip()
    parts = urlsplit(target)
    query = dict(parse_qsl(parts.query, keep_blank_values=True))
    return Request(method, target, unquote(parts.path), query, headers, length=int(headers.get("content-length") or 0))


class Connection(asyncio.Protocol):
    """One client; its requests are answered one after the other."""

    def __init__(self, serve: Callable[[Connection, Request], Awaitable[None]], books: Books, register: set[Connection]) -> None:
        self._serve = serve
        self._books = books
        self._register = register
        self._data = bytearray()
        self._request: Request | None = None
        self._task: asyncio.Task[None] | None = None
        self._resumed: asyncio.Future[None] | None = None
        self._paused = False
        self._sent = 0
        self._by_server = False
        self.number = 0
        self.transport: asyncio.Transport
        self.started = False  # the head of the present answer is out
        self.fault: Fault | None = None
        self.on_head: Callable[[int], object] | None = None  # is told the status code

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self.transport = cast("asyncio.Transport", transport)  # uvloop's is none by inheritance
        self.transport.set_write_buffer_limits(high=_HIGH_WATER)
        self._register.add(self)
        self.number = self._books.opened()

    def connection_lost(self, exc: Exception | None) -> None:  # noqa: ARG002
        self._register.discard(self)
        self._books.closed(self.number, "server" if self._by_server else "client")
        if self._resumed is not None and not self._resumed.done():
            self._resumed.set_exception(HangupError())
        if self._task is not None:
            self._task.cancel()

    def pause_writing(self) -> None:
        self._paused = True

    def resume_writing(self) -> None:
        self._paused = False
        if self._resumed is not None and not self._resumed.done():
            self._resumed.set_result(None)

    def data_received(self, data: bytes) -> None:
        if not self._data and data.startswith(_TLS_HANDSHAKE):
            self.close()  # it waits for an answer that no HTTP server gives
            return
        self._data += data
        if self._task is None:
            self._next()

    def _next(self) -> None:
        if self._request is None:
            head, mark, rest = self._data.partition(b"\r\n\r\n")
            if not mark:
                return
            try:
                self._request = parse_head(bytes(head))
            except ValueError:
                self.close()
                return
            self._data = rest
            if self._request.headers.get("expect", "").lower() == "100-continue":
                self.transport.write(b"HTTP/1.1 100 Continue\r\n\r\n")
        if len(self._data) < self._request.length:
            return
        request, self._request = self._request, None
        request.body = bytes(self._data[: request.length])
        del self._data[: request.length]
        self._task = asyncio.get_running_loop().create_task(self._answer(request))

    async def _answer(self, request: Request) -> None:
        self.started, self.fault, self.on_head = False, None, None
        try:
            await self._serve(self, request)
        except StatusError as refused:
            await self.refuse(refused)
        except (HangupError, ConnectionError):
            self.close()
        except Exception:  # noqa: BLE001 - a mistake of ours must reach the client and the log, not end the server
            traceback.print_exc(file=sys.stderr)
            if self.started:
                self.close()
            else:
                await self.refuse(StatusError(500, "the synthetic server failed"))
        finally:
            self._task = None
            if not self.transport.is_closing():
                if request.headers.get("connection", "").lower() == "close":
                    self.close()
                else:
                    self._next()

    def head(self, code: int, headers: Sequence[tuple[str, str]], content_type: str = "application/json") -> bytes:
        """The status line and the headers."""
        self.started = True
        if self.on_head is not None:
            self.on_head(code)
        lines = [
            f"HTTP/1.1 {code} {PHRASES.get(code, 'Unknown')}",
            "Cache-Control: no-cache, private",
            f"Content-Type: {content_type}",
            *(f"{name}: {value}" for name, value in headers),
            f"Date: {formatdate(usegmt=True)}",
            "\r\n",
        ]
        return "\r\n".join(lines).encode("latin-1")

    async def send(
        self, code: int, body: bytes, headers: Sequence[tuple[str, str]] = (), content_type: str = "application/json"
    ) -> None:
        """A whole answer with its length."""
        await self.write([self.head(code, (*headers, ("Content-Length", str(len(body)))), content_type), body])

    async def refuse(self, refused: StatusError) -> None:
        """A Status, on one line."""
        await self.send(refused.code, refused.body() + b"\n", refused.headers)

    async def start(self) -> None:
        """The head of a chunked answer."""
        await self.write([self.head(200, (("Transfer-Encoding", "chunked"),))])

    async def write(self, buffers: Sequence[Buffer]) -> None:
        """Bytes as they are; returns when the reader has taken enough of them."""
        self.transport.writelines(buffers)
        if self._paused:
            self._resumed = asyncio.get_running_loop().create_future()
            await self._resumed
            self._sent = 0

    async def frames(self, frames: Sequence[Sequence[Buffer]]) -> None:
        """Chunks that are framed already."""
        for frame in frames:
            await self.write(frame)
            self._sent += sum(map(len, frame))
            if self._sent > _TURN:
                self._sent = 0
                await asyncio.sleep(0)

    async def chunk(self, buffers: Sequence[Buffer]) -> None:
        """One chunk of these buffers; smaller ones, each in a write of its own, if a fault says so."""
        fault = self.fault
        if fault is None or not (fault.write_size or fault.write_delay):
            await self.write([b"%x\r\n" % sum(map(len, buffers)), *buffers, b"\r\n"])
            return
        data = b"".join(buffers)
        size = fault.write_size or len(data)
        for start in range(0, len(data), size):
            piece = data[start : start + size]
            await self.write([b"%x\r\n%b\r\n" % (len(piece), piece)])
            await asyncio.sleep(fault.write_delay)

    async def finish(self) -> None:
        """The last chunk."""
        await self.write([b"0\r\n\r\n"])

    async def wind_up(self, ending: str) -> None:
        """End a started answer as a fault says: `end`, `close`, `reset`."""
        if ending == "end":
            await self.finish()
        elif ending == "reset":
            await asyncio.sleep(0.01)  # what was written before must be on its way
            self.reset()
        else:
            self.close()

    def close(self) -> None:
        """Close after what was written, without an end of the answer."""
        self._by_server = True
        self.transport.close()

    def abandon(self) -> asyncio.Task[None] | None:
        """Drop the connection as it stands; returns what must still be awaited."""
        self._by_server = True
        self.transport.abort()
        if self._task is not None:
            self._task.cancel()
        return self._task

    def reset(self) -> None:
        """Close with RST; what the reader has not read may be lost."""
        self._by_server = True
        peer: Any = self.transport.get_extra_info("socket")
        peer.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        self.transport.abort()
