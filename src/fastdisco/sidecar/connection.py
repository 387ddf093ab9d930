"""One connection of a client, and for how long it may keep the server waiting."""

from __future__ import annotations

import asyncio
import socket
import ssl
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from aiohttp import web
from aiohttp.http_exceptions import HttpProcessingError
from aiohttp.web_protocol import RequestHandler
from aiohttp.web_request import BaseRequest

if TYPE_CHECKING:
    from .connections import Connections

_LINE_BYTES = 16 * 1024  # of a request line, or of a header


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
