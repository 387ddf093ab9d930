"""Connections of clients, with limits for how long each may keep the server waiting: none of them can keep the others out."""

from __future__ import annotations

import asyncio
import logging
import socket
import ssl
from dataclasses import dataclass
from typing import Any

from aiohttp import web
from aiohttp.http_exceptions import HttpProcessingError
from aiohttp.web_protocol import RequestHandler
from aiohttp.web_request import BaseRequest

from .rate_limit import RateLimit

logger = logging.getLogger("fastdisco")

_LINE_BYTES = 16 * 1024  # of a request line, or of a header
_TOLD_SECONDS = 60.0  # between two lines on requests that cannot be read


@dataclass(frozen=True, slots=True)
class Limits:
    """Of one listener; seconds."""

    connections: int = 1000
    """Those that have yet to finish their handshake are among them."""
    handshake: float = 10.0
    """Of TLS."""
    head: float = 10.0
    """From the beginning of a connection, or the first byte of a further request, to the end of that request's head."""
    idle: float = 120.0
    """Between two requests."""
    unread: float = 60.0
    """For a client to read what is sent to it, a quarter of a megabyte or so."""


class Connections:
    """All that are open. When there is no more room, the one that has waited longest for a request, or for its handshake, gives way."""

    def __init__(self, limits: Limits) -> None:
        self.limits = limits
        self._open: set[Connection] = set()
        self._waiting: dict[Connection, None] = {}  # the longest first
        self._unreadable = 0
        self._telling = RateLimit(1, _TOLD_SECONDS)

    def accept(self, server: web.Server, accepted: socket.socket, tls: ssl.SSLContext | None) -> None:
        """Begins a connection; where all are busy with a request it is closed instead."""
        if len(self._open) >= self.limits.connections and not self.give_way():
            accepted.close()
            return
        connection = Connection(server, self)
        self._open.add(connection)
        self.waits(connection)
        connection.begin(accepted, tls)

    def give_way(self) -> bool:
        """Ends the connection that has waited longest, if one waits."""
        if not self._waiting:
            return False
        connection = next(iter(self._waiting))
        self.ended(connection)
        connection.abort()
        return True

    def waits(self, connection: Connection) -> None:
        self._waiting[connection] = None

    def is_busy(self, connection: Connection) -> None:
        self._waiting.pop(connection, None)

    def ended(self, connection: Connection) -> None:
        self._open.discard(connection)
        self._waiting.pop(connection, None)

    def unreadable(self, remote: object) -> None:
        """Says so now and then, and nothing of what was sent: there may be a password in it."""
        self._unreadable += 1
        if self._telling.take():
            logger.info("%d requests could not be read so far, the last one from %s", self._unreadable, remote)

    async def abort(self) -> None:
        """Those that have not begun: of the others their server takes care."""
        handshakes = [connection.abort() for connection in tuple(self._open) if connection.transport is None]
        await asyncio.gather(*filter(None, handshakes), return_exceptions=True)


class Connection(RequestHandler):
    """One client, from the moment at which it is accepted."""

    def __init__(self, server: web.Server, others: Connections) -> None:
        limits = others.limits
        super().__init__(
            server, loop=asyncio.get_running_loop(), access_log=None,  # type: ignore[arg-type]  # as `AppRunner` takes it
            keepalive_timeout=limits.idle, max_line_size=_LINE_BYTES, max_field_size=_LINE_BYTES,
        )  # fmt: skip
        self._others = others
        self._limits = limits
        self._is_busy = False
        self._handshake: asyncio.Task[None] | None = None
        self._head: asyncio.TimerHandle | None = None
        self._unread: asyncio.TimerHandle | None = None

    def begin(self, accepted: socket.socket, tls: ssl.SSLContext | None) -> None:
        self._handshake = asyncio.create_task(self._connect(accepted, tls))

    async def _connect(self, accepted: socket.socket, tls: ssl.SSLContext | None) -> None:
        seconds = self._limits.handshake if tls is not None else None
        try:
            await asyncio.get_running_loop().connect_accepted_socket(
                lambda: self, accepted, ssl=tls, ssl_handshake_timeout=seconds, ssl_shutdown_timeout=seconds
            )
        except (OSError, asyncio.CancelledError):  # the client's fault, or somebody else needs the room
            accepted.close()
            self._others.ended(self)

    def abort(self) -> asyncio.Task[None] | None:
        """At once, whatever is still to be sent. Gives what goes on, if anything does."""
        if self.transport is not None:
            self.transport.abort()
        elif self._handshake is not None:
            self._handshake.cancel()
        return self._handshake

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        super().connection_made(transport)
        self._await_head()

    def connection_lost(self, exc: BaseException | None) -> None:
        self._others.ended(self)
        for timer in (self._head, self._unread):
            if timer is not None:
                timer.cancel()
        super().connection_lost(exc)

    def data_received(self, data: bytes) -> None:
        if data and self._head is None and not self._is_busy:
            self._await_head()
        super().data_received(data)

    def _await_head(self) -> None:
        self._head = asyncio.get_running_loop().call_later(self._limits.head, self.abort)

    def is_asked(self) -> None:
        """The head of a request is there, and whoever answers it takes as long as it takes."""
        if self._head is not None:
            self._head.cancel()
            self._head = None
        self._is_busy = True
        self._others.is_busy(self)

    async def finish_response(
        self, request: BaseRequest, resp: web.StreamResponse, start_time: float | None
    ) -> tuple[web.StreamResponse, bool]:
        try:
            return await super().finish_response(request, resp, start_time)
        finally:
            self._is_busy = False
            if self.transport is not None:
                self._others.waits(self)

    def pause_writing(self) -> None:
        super().pause_writing()
        self._unread = asyncio.get_running_loop().call_later(self._limits.unread, self.abort)

    def resume_writing(self) -> None:
        super().resume_writing()
        if self._unread is not None:
            self._unread.cancel()

    def log_exception(self, *args: Any, **kw: Any) -> None:
        if isinstance(kw.get("exc_info"), HttpProcessingError | web.RequestPayloadError):
            self._others.unreadable((self.peername or ("a client that has gone",))[0])
        else:
            super().log_exception(*args, **kw)
