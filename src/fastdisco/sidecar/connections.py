"""All connections of a listener: none of them can keep the others out."""

from __future__ import annotations

import asyncio
import logging
import socket
import ssl

from aiohttp import web

from .connection import Connection, Limits
from .rate_limit import RateLimit

logger = logging.getLogger("fastdisco")

_TOLD_SECONDS = 60.0  # between two lines on requests that cannot be read


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
