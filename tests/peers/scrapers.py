"""Prometheus and vmagent on loopback, with a configuration as given; they connect to none of the targets that they find."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Self

import aiohttp

from tests.peers.programs import Program, free_port, need

Labels = dict[str, str]

# The first two keep apart what would be one target when the meta labels are gone; the last one sends every request to a closed port.
RULES: list[dict[str, Any]] = [
    {"source_labels": ["__address__"], "target_label": "m_address"},
    {"action": "labelmap", "regex": "__meta_(.+)", "replacement": "m_$1"},
    {"target_label": "__address__", "replacement": "127.0.0.1:1"},
]


class Scraper:
    """One program, `prometheus` or `vmagent`, with one job per entry of `jobs`: its service discovery, such as
    `{"http_sd_configs": […]}`. `rules` come before those that make its targets harmless."""

    def __init__(self, name: str, folder: Path, jobs: Mapping[str, Mapping[str, Any]], rules: Sequence[Mapping[str, Any]] = ()) -> None:
        self.name = name
        self.folder = folder
        self.jobs = jobs
        self.rules = [*rules, *RULES]
        self.url = f"http://127.0.0.1:{free_port()}"
        listen = self.url.removeprefix("http://")
        flags = {
            "prometheus": (
                f"--config.file={folder / 'scrape.yml'}", f"--web.listen-address={listen}", f"--storage.tsdb.path={folder / 'data'}",
            ),
            "vmagent": (
                f"-promscrape.config={folder / 'scrape.yml'}", f"-httpListenAddr={listen}", f"-remoteWrite.tmpDataPath={folder / 'data'}",
                "-remoteWrite.url=http://127.0.0.1:1/", "-promscrape.maxDroppedTargets=1000000",
                "-promscrape.kubernetesSDCheckInterval=1s", "-promscrape.httpSDCheckInterval=2s", "-promscrape.fileSDCheckInterval=1s",
            ),
        }  # fmt: skip
        self.program = Program(need(name), *flags[name], log=folder / f"{name}.log")
        self.http: aiohttp.ClientSession | None = None

    async def __aenter__(self) -> Self:
        self.folder.mkdir(parents=True, exist_ok=True)
        # JSON is YAML. A day between scrapes: nothing is to be scraped.
        scrape = [
            {"job_name": name, "scrape_interval": "1d", "relabel_configs": self.rules, **discovery} for name, discovery in self.jobs.items()
        ]
        (self.folder / "scrape.yml").write_text(json.dumps({"scrape_configs": scrape}))
        self.http = aiohttp.ClientSession()
        try:
            await self.program.start(self._ready, timeout=60)
        except BaseException:
            await self.__aexit__()
            raise
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.program.kill()
        if self.http is not None:
            await self.http.close()

    async def targets(self) -> dict[str, list[Labels]]:
        """Per job, the labels of its active targets that a discovery has made: not empty, and not the client's own."""
        assert self.http is not None
        async with self.http.get(f"{self.url}/api/v1/targets?state=active", raise_for_status=True) as answer:
            data = json.loads(await answer.read())["data"]
        found: dict[str, list[Labels]] = {name: [] for name in self.jobs}
        for target in data["activeTargets"]:
            labels = target["discoveredLabels"]
            pool = target["scrapePool"]
            found[pool].append({name: value for name, value in labels.items() if value and _discovered(name)})
        return found

    async def _ready(self) -> bool:
        assert self.http is not None
        try:
            async with self.http.get(f"{self.url}/-/ready") as answer:
                return answer.status == 200
        except aiohttp.ClientError:
            return False


def _discovered(name: str) -> bool:
    """Where an http_sd or file_sd client says what it has read, that is its own label."""
    return name in {"__address__", "instance"} or (name.startswith("__meta_") and name not in {"__meta_url", "__meta_filepath"})
