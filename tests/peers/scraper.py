"""A real program on loopback that discovers targets and connects to none of those that it finds."""

import json
from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Self

import aiohttp

from bench.peers.program import free_port
from tests.peers.programs import Program, need

Labels = dict[str, str]
Rule = Mapping[str, Any]

# The first two keep apart what would be one target when the meta labels are gone; the last one sends every request to a closed port.
RULES: list[Rule] = [
    {"source_labels": ["__address__"], "target_label": "m_address"},
    {"action": "labelmap", "regex": "__meta_(.+)", "replacement": "m_$1"},
    {"target_label": "__address__", "replacement": "127.0.0.1:1"},
]


def kubernetes(configs: Mapping[str, Mapping[str, Any]]) -> dict[str, dict[str, Any]]:
    """Discovery by jobs from an API server, by a `kubernetes_sd_config` each."""
    return {name: {"kubernetes_sd_configs": [config]} for name, config in configs.items()}


class Scraper(ABC):
    """One program with one scrape job per entry of `jobs`: how it discovers, such as `{"http_sd_configs": […]}`.

    The last rule of each job must send its targets to a closed port, as RULES do, for the program connects to what it finds.
    """

    name = ""

    def __init__(self, folder: Path, jobs: Mapping[str, Mapping[str, Any]], rules: Mapping[str, Sequence[Rule]] = {}) -> None:
        self.folder = folder
        self.jobs = jobs
        self.rules = {name: list(rules.get(name, RULES)) for name in jobs}
        assert all(of_job[-1] == RULES[-1] for of_job in self.rules.values())
        self.config = folder / "scrape.yml"
        self.url = f"http://127.0.0.1:{free_port()}"
        self.program = Program(need(self.name), *self.flags(self.url.removeprefix("http://")), log=folder / f"{self.name}.log")
        self.http: aiohttp.ClientSession | None = None

    @abstractmethod
    def flags(self, address: str) -> list[str]:
        """How it is started; `address` is where it is to listen."""

    async def __aenter__(self) -> Self:
        self.folder.mkdir(parents=True, exist_ok=True)
        # JSON is YAML. A day between scrapes: nothing is to be scraped.
        scrape = [
            {"job_name": name, "scrape_interval": "1d", **discovery, "relabel_configs": self.rules[name]}
            for name, discovery in self.jobs.items()
        ]
        self.config.write_text(json.dumps({"scrape_configs": scrape}))
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
        """Per job, the labels of its active targets before relabeling: those that discovery made, without the job's own.

        Of equal ones only one is active. The others are among the dropped, where vmagent also shows what went minutes ago.
        """
        found: dict[str, list[Labels]] = {name: [] for name in self.jobs}
        for target in (await self.shown())["activeTargets"]:
            labels = target["discoveredLabels"]
            found[target["scrapePool"]].append({name: value for name, value in labels.items() if discovered(name)})
        return found

    async def shown(self) -> Any:
        """What its page of targets shows."""
        assert self.http is not None
        async with self.http.get(f"{self.url}/api/v1/targets", raise_for_status=True) as answer:
            return json.loads(await answer.read())["data"]

    async def _ready(self) -> bool:
        assert self.http is not None
        try:
            async with self.http.get(f"{self.url}/-/ready") as answer:
                return answer.status == 200
        except aiohttp.ClientError:
            return False


def discovered(name: str) -> bool:
    """Whether a label comes from discovery rather than from the job, or from where a document of targets was read."""
    return name in {"__address__", "instance"} or (name.startswith("__meta_") and name not in {"__meta_url", "__meta_filepath"})
