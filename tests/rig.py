"""A watcher with its store, its client and the server that it talks to."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from typing import Any

from fastdisco._core import Store, Symbols
from fastdisco._json import Decoder
from fastdisco.api import ApiClient
from fastdisco.auth import Connection
from fastdisco.metrics import Metrics
from fastdisco.url_watcher import Timings, URLWatcher

from .replay import Answer, Server

PODS = "/api/v1/pods"
QUICK = Timings(
    first_backoff=0.002,
    longest_backoff=0.01,
    healthy_after=60.0,
    read_timeout=5.0,
    silent_after=5.0,
    error_500_for=60.0,
    too_large_wait=0.002,
)


class Rig:
    """A watcher, its store and its server."""

    def __init__(self, server: Server, client: ApiClient, metrics: Metrics, **options: Any) -> None:
        self.server = server
        self.metrics = metrics
        self.store = Store(Symbols())
        self.changes = 0
        self._changed = asyncio.Condition()
        self._tasks: set[asyncio.Task[None]] = set()
        kind = options.pop("kind", "pod")
        self.decoder = Decoder(self.store, kind)
        paths, params = options.pop("paths", (PODS,)), options.pop("params", {})
        made: dict[str, Any] = {"timings": QUICK, "random": lambda: 0.5, "on_change": self._tell, "on_settled": self._tell} | options
        self.watcher = URLWatcher(kind, "", paths, params, client, self.decoder, metrics, **made)

    def _tell(self) -> None:
        self.changes += 1
        task = asyncio.ensure_future(self._notify())
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    async def _notify(self) -> None:
        async with self._changed:
            self._changed.notify_all()

    async def until(self, true: Callable[[], object]) -> None:
        """Until something is true that changes when the watcher calls back."""
        async with asyncio.timeout(10), self._changed:
            await self._changed.wait_for(true)

    def names(self) -> set[str]:
        return {name for name in (f"p{i}" for i in range(30)) if self.store.get("pod", "default", name) is not None}

    def restarts(self, reason: str) -> int:
        return self.metrics.role("pod").restarts[reason]


@asynccontextmanager
async def rig(server: Server, *, start: bool = True, **options: Any) -> AsyncIterator[Rig]:
    metrics = Metrics()
    client = ApiClient(Connection(server.url), metrics=metrics, read_timeout=options.get("timings", QUICK).read_timeout)
    made = Rig(server, client, metrics, **options)
    if start:
        made.watcher.start()
    try:
        async with asyncio.timeout(20):
            yield made
    finally:
        await made.watcher.stop()
        await client.close()


async def eventually(true: Callable[[], object]) -> None:
    """For what no callback tells of."""
    while not true():  # noqa: ASYNC110
        await asyncio.sleep(0.0005)


def script(server: Server, lists: list[Answer], watches: list[Answer], path: str = PODS) -> None:
    server.on("list", path, *lists)
    server.on("watch", path, *watches)
