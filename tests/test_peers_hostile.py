"""Hostile label values go through real scrapers, over files and over http_sd, and come back equal."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from itertools import count
from pathlib import Path
from typing import Any

import pytest
from aiohttp import web
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from bench.peers.program import free_port
from fastdisco._export import SYNTAXES
from fastdisco.sidecar.job_files import SUFFIXES
from tests.peers.programs import until
from tests.peers.prometheus import Prometheus
from tests.peers.scraper import Scraper
from tests.peers.vmagent import Vmagent
from tests.relabel_rig import Pods, pod
from tests.test_export import TEXTS, document, snapshot_of

LABEL = "__meta_kubernetes_pod_label_"
VALUES = st.lists(st.one_of(TEXTS, st.text(max_size=50)), min_size=100, max_size=200)


class Exported:
    """One document of targets in every form, each where a scraper reads it."""

    def __init__(self, folder: Path) -> None:
        self.files = {syntax: folder / f"read-{syntax}" / f"targets.{SUFFIXES[syntax]}" for syntax in SYNTAXES}
        self.port = free_port()
        self._folder = folder
        self._body = b"[]"
        for file in self.files.values():
            file.parent.mkdir(parents=True)
            file.write_text("[]")

    def put(self, values: list[str], of: str) -> None:
        """A target for each value; all of them say which document they are of."""
        rig = Pods()
        rig.put_all([pod(f"p{at}", {"value": value, "of": of}, ports=[at + 1]) for at, value in enumerate(values)])
        snapshot, _ = snapshot_of(rig.labels(), rig.symbols)
        for syntax, file in self.files.items():
            new = self._folder / f"new.{syntax}"
            new.write_bytes(document(snapshot, syntax))
            new.replace(file)
        self._body = document(snapshot, "json")

    @asynccontextmanager
    async def served(self) -> AsyncIterator[None]:
        async def answer(_: web.Request) -> web.Response:
            return web.Response(body=self._body, content_type="application/json")

        app = web.Application()
        app.router.add_get("/sd", answer)
        runner = web.AppRunner(app)
        await runner.setup()
        await web.TCPSite(runner, "127.0.0.1", self.port).start()
        try:
            yield
        finally:
            await runner.cleanup()


@pytest.mark.slow
@pytest.mark.parametrize("client", [pytest.param(one, marks=pytest.mark.peers(one.name)) for one in (Vmagent, Prometheus)])
async def test_hostile_values_come_back_equal(tmp_path: Path, client: type[Scraper]) -> None:
    """From .json, from .yml, and over http_sd; one odd character would lose the whole document. vmagent reads .json as YAML, too."""
    exported = Exported(tmp_path)
    over: dict[str, dict[str, Any]] = {syntax: {"file_sd_configs": [{"files": [str(file)]}]} for syntax, file in exported.files.items()}
    interval = {"refresh_interval": "1s"} if client is Prometheus else {}
    jobs = {**over, "http": {"http_sd_configs": [{"url": f"http://127.0.0.1:{exported.port}/sd", **interval}]}}
    loop, numbers = asyncio.get_running_loop(), count(1)

    async def come_back(scraper: Scraper, values: list[str]) -> None:
        of = str(next(numbers))
        exported.put(values, of)
        expected = sorted((f"127.0.0.1:{at + 1}", value) for at, value in enumerate(values))

        async def read() -> bool:
            found = await scraper.targets()
            return all(
                sorted((one["__address__"], one.get(f"{LABEL}value", "")) for one in found[job] if one.get(f"{LABEL}of") == of) == expected
                for job in jobs
            )

        await until(read, timeout=30, what=f"{client.name} to read {values!r}", every=0.5)

    @settings(max_examples=6, deadline=None, suppress_health_check=list(HealthCheck))
    @given(VALUES)
    def all_come_back(values: list[str]) -> None:
        asyncio.run_coroutine_threadsafe(come_back(scraper, values), loop).result()

    async with exported.served(), client(tmp_path / client.name, jobs) as scraper:
        await asyncio.to_thread(all_come_back)
