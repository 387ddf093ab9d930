"""Sockets that are listened on, and the web applications behind them."""

from __future__ import annotations

import asyncio
import errno
import logging
import os
import resource
import socket
import ssl
from collections.abc import Awaitable, Callable
from dataclasses import replace

from aiohttp import web
from aiohttp.web_request import BaseRequest

from fastdisco.errors import FastdiscoError

from .connection import Connection, Limits
from .connections import Connections

logger = logging.getLogger("fastdisco")

_SHUTDOWN_SECONDS = 0.5  # for answers that are being sent
_AGAIN_SECONDS = 0.1  # after a connection could not be accepted


def listen(address: tuple[str, int], flag: str) -> socket.socket:
    """Before anything else is started: a port in use is the likeliest failure. FastdiscoError names the flag."""
    host, port = address
    try:
        family = socket.getaddrinfo(host or None, port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE)[0][0]
        return socket.create_server(address, family=family)
    except OSError as error:
        reason = os.strerror(error.errno) if error.errno and not isinstance(error, socket.gaierror) else error.strerror or str(error)
        raise FastdiscoError(f"cannot listen on {shown(host, port)}: {reason} (choose another with {flag})") from None


def shown(host: str, port: int) -> str:
    """As in a URL."""
    return f"[{host}]:{port}" if ":" in host else f"{host}:{port}"


def is_loopback(host: str) -> bool:
    """Whether only this machine can reach an address that is listened on."""
    return host == "localhost" or host == "::1" or host.startswith("127.")


def default_limits() -> Limits:
    """No more connections than a quarter of the files that the process may have open: there are two listeners, and half is for watches."""
    files = resource.getrlimit(resource.RLIMIT_NOFILE)[0]
    usual = Limits()
    return usual if files == resource.RLIM_INFINITY else replace(usual, connections=min(usual.connections, files // 4))


class Listener:
    """One socket and its application. `tls` is asked at each new connection, so that what it gives may change."""

    def __init__(
        self,
        app: web.Application,
        listening: socket.socket,
        *,
        tls: Callable[[], ssl.SSLContext | None] | None = None,
        limits: Limits | None = None,
    ) -> None:
        self._runner = web.AppRunner(app, access_log=None, shutdown_timeout=_SHUTDOWN_SECONDS)
        self._listening = listening
        self._tls = tls
        self._connections = Connections(limits or default_limits())
        self._accepting: asyncio.Task[None] | None = None

    async def start(self) -> None:
        """From now on requests are answered."""
        await self._runner.setup()
        server = self._runner.server
        if server is None:
            raise RuntimeError("the application has no server")
        server.request_handler = _noticed(server.request_handler)
        self._listening.setblocking(False)
        self._accepting = asyncio.create_task(self._accept(server))

    async def _accept(self, server: web.Server) -> None:
        loop = asyncio.get_running_loop()
        while True:
            try:
                accepted, _ = await loop.sock_accept(self._listening)
            except OSError as error:
                if error.errno in (errno.EMFILE, errno.ENFILE):
                    self._connections.give_way()
                await asyncio.sleep(_AGAIN_SECONDS)
                continue
            try:
                self._connections.accept(server, accepted, self._tls() if self._tls is not None else None)
            except Exception:
                accepted.close()
                logger.exception("a connection could not be taken")

    async def stop(self) -> None:
        """Takes no more connections; answers that are being sent have half a second."""
        if self._accepting is not None:
            self._accepting.cancel()
            await asyncio.gather(self._accepting, return_exceptions=True)
        self._listening.close()
        await self._connections.abort()
        await self._runner.cleanup()


def _noticed(answer: Callable[[BaseRequest], Awaitable[web.StreamResponse]]) -> Callable[[BaseRequest], Awaitable[web.StreamResponse]]:
    """Tells a connection that it has been asked something."""

    async def noticed(request: BaseRequest) -> web.StreamResponse:
        if isinstance(request.protocol, Connection):
            request.protocol.is_asked()
        return await answer(request)

    return noticed
