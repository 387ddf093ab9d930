"""`fastdisco run` as a process of its own."""

from __future__ import annotations

import json
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Self

import aiohttp

from bench.peers.program import free_port
from tests.peers.programs import Program

ROOT = Path(__file__).parents[2]


class Sidecar:
    """With one job per entry of `jobs`, a kubernetes_sd_config each, and the same rules for all."""

    def __init__(self, folder: Path, jobs: Mapping[str, Mapping[str, Any]], *flags: str, rules: Sequence[Mapping[str, Any]] = ()) -> None:
        self.folder = folder
        self.url = f"http://127.0.0.1:{free_port()}"
        self.files = folder / "files"
        folder.mkdir(parents=True, exist_ok=True)
        self.write(jobs, rules)
        listen = f"--web.listen-address={self.url.removeprefix('http://')}"
        command = (sys.executable, "-m", "fastdisco", "run", f"--config={folder / 'jobs.yml'}", listen)
        self.program = Program(*command, f"--file-sd.directory={self.files}", *flags, log=folder / "fastdisco.log")
        self.http: aiohttp.ClientSession | None = None

    def write(self, jobs: Mapping[str, Mapping[str, Any]], rules: Sequence[Mapping[str, Any]] = ()) -> None:
        """The configuration; one that runs reads it when it reloads."""
        scrape = [{"job_name": name, "kubernetes_sd_configs": [config], "relabel_configs": list(rules)} for name, config in jobs.items()]
        new = self.folder / "jobs.new"
        new.write_text(json.dumps({"scrape_configs": scrape}))
        new.replace(self.folder / "jobs.yml")

    async def __aenter__(self) -> Self:
        self.http = aiohttp.ClientSession()
        try:
            await self.program.start(self._answers, timeout=60)
        except BaseException:
            await self.__aexit__()
            raise
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.program.stop()
        if self.http is not None:
            await self.http.close()

    async def _answers(self) -> bool:
        assert self.http is not None
        try:
            async with self.http.get(f"{self.url}/-/healthy") as answer:
                return answer.status == 200
        except aiohttp.ClientError:
            return False
