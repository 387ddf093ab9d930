"""Real scrapers that discover through fastdisco find what they discover by themselves."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any
from urllib.parse import quote

import aiohttp
import pytest

from fastdisco.sidecar.job_files import file_of
from fastdisco.synthetic import SyntheticProcess
from tests.peers.comparing import change
from tests.peers.objects import cluster, unambiguous
from tests.peers.programs import until
from tests.peers.prometheus import Prometheus
from tests.peers.scraper import RULES as HARMLESS
from tests.peers.scraper import Scraper, kubernetes
from tests.peers.sidecar import Sidecar
from tests.peers.vmagent import Vmagent

ATTACHED = {"node": True, "namespace": True}
CONFIGS: dict[str, dict[str, Any]] = {
    **{role: {"role": role} for role in ("node", "pod", "service", "endpoints", "endpointslice", "ingress")},
    **{f"{role}/all of it": {"role": role, "attach_metadata": ATTACHED} for role in ("pod", "endpoints")},
}
# What drops some targets of every role, and reads labels that differ from target to target.
RULES = [{"source_labels": ["__address__"], "regex": r".*([0-6](:\d+)?|\.com)", "action": "keep"}]

LabelSets = Counter[tuple[tuple[str, str], ...]]


def label_sets(targets: Iterable[Mapping[str, str]]) -> LabelSets:
    """Without empty labels, which a client does not keep."""
    return Counter(tuple(sorted((name, value) for name, value in labels.items() if value)) for labels in targets)


def difference(one: Mapping[str, LabelSets], other: Mapping[str, LabelSets]) -> str:
    """How many targets of each job either side lacks, and one of them."""
    lines = []
    for job in one:
        for what, more in (("not through fastdisco", one[job] - other[job]), ("only through fastdisco", other[job] - one[job])):
            if more:
                lines.append(f"{job}: {more.total()} {what}, such as {dict(min(more))}")
    return "\n".join(lines)


def without_ambiguity(writes: list[dict[str, Any]]) -> list[dict[str, Any]]:
    unambiguous({"": [write["object"] for write in writes if "object" in write]})
    return writes


async def same(alone: Scraper, *through: Scraper) -> None:
    """Until those that discover through fastdisco have just the targets of the one that discovers by itself."""
    left = ""

    async def agree() -> bool:
        nonlocal left
        expected = {job: label_sets(targets) for job, targets in (await alone.targets()).items()}
        found = [{job: label_sets(targets) for job, targets in (await one.targets()).items()} for one in through]
        left = "\n".join(filter(None, (difference(expected, one) for one in found))) or ("" if all(expected.values()) else "a job is empty")
        return not left

    try:
        await until(agree, timeout=120, what="equal targets", every=1.0)
    except TimeoutError:
        pytest.fail(left[:5000], pytrace=False)


def over_http(sidecar: Sidecar, client: type[Scraper]) -> dict[str, dict[str, Any]]:
    interval = {"refresh_interval": "3s"} if client is Prometheus else {}
    return {name: {"http_sd_configs": [{"url": f"{sidecar.url}/sd/{quote(name, safe='')}", **interval}]} for name in CONFIGS}


def over_files(sidecar: Sidecar, syntax: Any) -> dict[str, dict[str, Any]]:
    return {name: {"file_sd_configs": [{"files": [str(file_of(sidecar.files, name, syntax))]}]} for name in CONFIGS}


async def clients(sidecar: Sidecar) -> set[str]:
    """The kinds that have polled."""
    async with aiohttp.ClientSession() as session, session.get(f"{sidecar.url}/metrics") as answer:
        return set(re.findall(r'_sidecar_http_sd_last_success_timestamp_seconds\{client="(\w+)"', await answer.text()))


@pytest.mark.slow
@pytest.mark.parametrize(
    ("client", "syntax"),
    [
        pytest.param(Vmagent, "yaml", marks=pytest.mark.peers("vmagent")),
        pytest.param(Prometheus, "json", marks=pytest.mark.peers("prometheus")),
    ],
)
async def test_a_scraper_finds_through_fastdisco_what_it_finds_by_itself(tmp_path: Path, client: type[Scraper], syntax: str) -> None:
    """Every role, over http_sd and over files, its own rules in both places; then most objects change."""
    dialect = {Vmagent: "victoriametrics", Prometheus: "prometheus"}[client]
    rules = {name: [*RULES, *HARMLESS] for name in CONFIGS}
    async with SyntheticProcess(objects=unambiguous(cluster(1, 200))) as server:
        jobs = {name: {**config, "api_server": server.url} for name, config in CONFIGS.items()}
        flags = (f"--file-sd.format={syntax}", f"--dialect={dialect}")
        async with Sidecar(tmp_path / "fastdisco", jobs, *flags, rules=RULES) as sidecar:
            alone = client(tmp_path / "alone", kubernetes(jobs), rules)
            http = client(tmp_path / "http", over_http(sidecar, client), rules)
            files = client(tmp_path / "file", over_files(sidecar, syntax), rules)
            async with alone, http, files:
                await same(alone, http, files)
                assert await clients(sidecar) == {client.name}
                await server.acontrol("apply", without_ambiguity(change(cluster(1, 200), 2)))
                await same(alone, http, files)


@pytest.mark.slow
@pytest.mark.peers("prometheus")
async def test_prometheus_started_together_with_fastdisco_has_targets_within_ten_seconds(tmp_path: Path) -> None:
    """Its first poll is held until the first sync; were it refused, it would wait for a whole interval, here of an hour."""
    async with SyntheticProcess(pods=2000, oddities=0.0) as server:
        sidecar = Sidecar(tmp_path / "fastdisco", {"pods": {"role": "pod", "api_server": server.url}})
        over = {"pods": {"http_sd_configs": [{"url": f"{sidecar.url}/sd/pods", "refresh_interval": "1h"}]}}
        async with sidecar, Prometheus(tmp_path / "prometheus", over) as prometheus:

            async def found() -> bool:
                return len((await prometheus.targets())["pods"]) == 6000

            await until(found, timeout=10, what="all targets in Prometheus")
