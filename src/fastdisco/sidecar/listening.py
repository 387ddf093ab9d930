"""Sockets that are listened on, and the web applications behind them, with limits for what clients may send and keep open."""

from __future__ import annotations

import asyncio
import os
import socket
import ssl

from aiohttp import web
from aiohttp.web_protocol import RequestHandler

from fastdisco.errors import FastdiscoError

MOST_CONNECTIONS = 1000
_LINE_BYTES = 16 * 1024  # of a request line, or of a header
_SHUTDOWN_SECONDS = 0.5  # for answers that are being sent


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


class Listener:
    """One socket and its application; connections above the limit are closed at once."""

    def __init__(
        self, app: web.Application, listening: socket.socket, *, tls: ssl.SSLContext | None = None, most: int = MOST_CONNECTIONS
    ) -> None:
        self._runner = web.AppRunner(
            app, access_log=None, shutdown_timeout=_SHUTDOWN_SECONDS, max_line_size=_LINE_BYTES, max_field_size=_LINE_BYTES
        )
        self._listening = listening
        self._tls = tls
        self._most = most
        self._server: asyncio.Server | None = None

    async def start(self) -> None:
        """From now on requests are answered."""
        await self._runner.setup()
        loop = asyncio.get_running_loop()
        self._server = await loop.create_server(self._protocol, sock=self._listening, ssl=self._tls, backlog=128)

    def _protocol(self) -> asyncio.Protocol:
        server = self._runner.server
        if server is None or len(server.connections) >= self._most:
            return _Refusal()
        protocol: RequestHandler = server()
        return protocol

    async def stop(self) -> None:
        """Takes no more connections; answers that are being sent have half a second."""
        if self._server is not None:
            self._server.close()
        await self._runner.cleanup()


class _Refusal(asyncio.Protocol):
    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        transport.close()
