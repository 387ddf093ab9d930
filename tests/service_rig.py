"""A service in front of a synthetic API server that runs in the same loop, asked over HTTP."""

from __future__ import annotations

import gzip
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager
from typing import Any

import orjson
from aiohttp.test_utils import TestClient, TestServer

from fastdisco.configuration import Configuration
from fastdisco.relabel_config import load_rules
from fastdisco.scrape_config import ScrapeConfig
from fastdisco.sidecar import Service, ServiceOptions, make_app

from .live import Item, Live, live

Answer = tuple[int, Mapping[str, str], Any]


class Exporting:
    """The service of one test."""

    def __init__(self, live: Live, service: Service, client: TestClient[Any, Any]) -> None:
        self.live = live
        self.service = service
        self.client = client

    def job(
        self,
        name: str,
        role: str = "pod",
        rules: Sequence[Mapping[str, Any]] = (),
        *,
        dialect: str = "victoriametrics",
        disable_sharding: bool = True,
        **config: Any,
    ) -> ScrapeConfig:
        """A job as a file would have it."""
        made = self.live.config(role, **config)
        loaded = load_rules([dict(rule) for rule in rules])
        return ScrapeConfig(name, (made,), loaded, dialect=dialect, disable_sharding=disable_sharding)

    async def start(self, *jobs: ScrapeConfig) -> None:
        await self.service.start(Configuration(jobs))

    async def synced(self) -> None:
        for job in self.service.jobs:
            await job.synced()

    async def get(self, path: str, **headers: str) -> Answer:
        """Status, headers, and the document, unpacked."""
        async with self.client.get(path, headers={"Accept-Encoding": "", **headers}, auto_decompress=False) as answer:
            body = await answer.read()
        if answer.headers.get("Content-Encoding") == "gzip" and body:
            body = gzip.decompress(body)
        is_json = answer.content_type == "application/json" and body
        return answer.status, answer.headers, orjson.loads(body) if is_json else body.decode()

    async def addresses(self, job: str, **headers: str) -> list[str]:
        """Of the targets that a job exports."""
        status, _, groups = await self.get(f"/sd/{job}", **headers)
        assert status == 200
        return [address for group in groups for address in group["targets"]]


@asynccontextmanager
async def exporting(
    objects: Mapping[str, Sequence[Item]] | None = None, *, seconds: float = 60, port: int = 0, **options: Any
) -> AsyncIterator[Exporting]:
    async with live(objects, seconds=seconds, port=port) as made:
        service = Service(made.discovery, ServiceOptions(**options))
        try:
            async with TestClient(TestServer(make_app(service))) as client:
                yield Exporting(made, service, client)
        finally:
            await service.stop()
