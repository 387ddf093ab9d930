"""The web application, over HTTP, of a discovery of a synthetic cluster."""

from __future__ import annotations

import asyncio
import logging
from collections import Counter
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from typing import Any

import orjson
import pytest
from aiohttp import web
from aiohttp.test_utils import TestClient, TestServer
from prometheus_client.parser import text_string_to_metric_families

from fastdisco import Discovery, KubernetesSDConfig, RelabelConfig
from fastdisco.config import Selector
from fastdisco.sidecar import Service, make_app
from fastdisco.sidecar.targets import active_targets, relabeled_target, target
from fastdisco.synthetic import SyntheticProcess


@pytest.fixture(scope="module")
def cluster() -> Iterator[SyntheticProcess]:
    with SyntheticProcess(pods=200, oddities=0.0) as server:
        yield server


@asynccontextmanager
async def sidecar(cluster: SyntheticProcess, *roles: str) -> AsyncIterator[tuple[Discovery, TestClient[Any, Any]]]:
    """Jobs are called as their roles, and have synced."""
    async with Discovery() as discovery:
        for role in roles:
            await discovery.watch(role, KubernetesSDConfig(role=role, api_server=cluster.url)).synced()
        async with TestClient(TestServer(make_app(Service(discovery)))) as client:
            yield discovery, client


async def data_of(client: TestClient[Any, Any], **query: str) -> dict[str, Any]:
    async with client.get("/api/v1/targets", params=query) as answer:
        assert (answer.status, answer.headers["Content-Type"]) == (200, "application/json")
        body = orjson.loads(await answer.read())
    assert body["status"] == "success"
    data: dict[str, Any] = body["data"]
    return data


def test_a_target_is_as_prometheus_shows_it_before_its_first_scrape() -> None:
    """Discovered labels are those before the first rule; final ones have a job and an instance, and no name with two underscores."""
    assert target("web", {"__address__": "127.0.0.1", "__meta_kubernetes_pod_name": "a"}) == {
        "discoveredLabels": {
            "__address__": "127.0.0.1", "__meta_kubernetes_pod_name": "a", "__metrics_path__": "/metrics", "__scheme__": "http",
            "__scrape_interval__": "1m", "__scrape_timeout__": "10s", "job": "web",
        },
        "labels": {"instance": "127.0.0.1:80", "job": "web"},
        "scrapePool": "web",
        "scrapeUrl": "http://127.0.0.1:80/metrics",
        "globalUrl": "http://127.0.0.1:80/metrics",
        "lastError": "",
        "lastScrape": "0001-01-01T00:00:00Z",
        "lastScrapeDuration": 0,
        "health": "unknown",
        "scrapeInterval": "1m",
        "scrapeTimeout": "10s",
    }  # fmt: skip
    node = target("nodes", {"__address__": "[::1]:10250", "instance": "node-1"})
    assert (node["labels"], node["scrapeUrl"]) == ({"instance": "node-1", "job": "nodes"}, "http://[::1]:10250/metrics")


async def test_targets_of_all_jobs_are_served(cluster: SyntheticProcess) -> None:
    """By job, each once, with every discovered label."""
    async with sidecar(cluster, "pod", "node") as (discovery, client):
        data = await data_of(client)
        assert (data["droppedTargets"], data["droppedTargetCounts"]) == ([], {})
        assert data["activeTargets"] == [
            target(name, labels) for name in ("node", "pod") for labels in discovery.jobs[name].scrape_works()
        ]
        assert len(data["activeTargets"]) > 600


async def test_targets_are_chosen_by_state_and_pool(cluster: SyntheticProcess) -> None:
    """A state is written as one likes; a pool that does not exist gives nothing."""
    async with sidecar(cluster, "pod", "node") as (discovery, client):
        nodes = discovery.jobs["node"].status()["scrape_works"]
        assert len((await data_of(client, scrapePool="node"))["activeTargets"]) == nodes
        assert len((await data_of(client, scrapePool="node", state="Active"))["activeTargets"]) == nodes
        assert len((await data_of(client, scrapePool="node", state="any"))["activeTargets"]) == nodes
        assert len((await data_of(client, scrapePool="node", state=""))["activeTargets"]) == nodes
        for query in ({"state": "dropped"}, {"scrapePool": "none"}):
            assert (await data_of(client, **query))["activeTargets"] == []


async def test_a_state_that_does_not_exist_is_refused(cluster: SyntheticProcess) -> None:
    """In the form of Prometheus' API, with the states that do."""
    async with sidecar(cluster) as (_, client), client.get("/api/v1/targets", params={"state": "up"}) as answer:
        assert (answer.status, answer.headers["Content-Type"].partition(";")[0]) == (400, "application/json")
        assert orjson.loads(await answer.read()) == {
            "status": "error", "errorType": "bad_data",
            "error": "invalid parameter \"state\": must be one of active, dropped, any, not 'up'",
        }  # fmt: skip


def test_a_target_with_rules_is_shown_by_its_final_labels() -> None:
    """What is scraped, and what is stored; discovered labels are not there."""
    shown = relabeled_target(
        "web",
        {
            "__address__": "127.0.0.1", "__metrics_path__": "probe", "__param_module": "a b", "__scheme__": "https", "instance": "x",
            "__scrape_interval__": "15s", "__scrape_timeout__": "5s", "job": "other",
        },
    )  # fmt: skip
    assert shown["scrapeUrl"] == shown["globalUrl"] == "https://127.0.0.1:443/probe?module=a+b"
    assert (shown["scrapeInterval"], shown["scrapeTimeout"], shown["scrapePool"]) == ("15s", "5s", "web")
    assert (shown["labels"], shown["discoveredLabels"]) == ({"instance": "x", "job": "other"}, {})


async def test_jobs_with_rules_show_what_they_keep_and_count_what_they_drop(cluster: SyntheticProcess) -> None:
    """Dropped targets are counted as they are now, once each, also where a target has changed several times."""
    async with sidecar(cluster, "pod") as (discovery, client):
        config = KubernetesSDConfig("pod", api_server=cluster.url)
        keep = RelabelConfig("keep", ("__meta_kubernetes_pod_container_port_name",), regex="metrics")
        one = RelabelConfig("replace", target_label="__address__", replacement="127.0.0.1:1")
        jobs = {"metrics": [keep], "one": [one], "all": []}
        for name, rules in jobs.items():
            await discovery.watch(name, config, relabel_configs=rules).synced()
        data = await data_of(client)
        targets = len(discovery.jobs["pod"].scrape_works())
        kept = {name: len(discovery.jobs[name].scrape_works()) for name in jobs}
        assert data["droppedTargetCounts"] == {"all": 0, "metrics": targets - kept["metrics"], "one": 0}
        assert (kept["one"], kept["all"], kept["metrics"] > 100) == (1, targets, True)
        shown = Counter(target["scrapePool"] for target in data["activeTargets"])
        assert shown == kept | {"pod": targets}
        discovery.jobs["metrics"].reconfigure(relabel_configs=[keep, one])
        for _ in range(3):
            data = await data_of(client, scrapePool="metrics")
        assert data["droppedTargetCounts"] == {"metrics": targets - kept["metrics"]}


async def test_the_loop_goes_on_while_targets_are_served(cluster: SyntheticProcess) -> None:
    """They are made a hundred at a time, with a turn of the loop after each hundred, however fast they are read."""
    async with sidecar(cluster, "pod") as (discovery, _):
        turns = 0

        async def count() -> None:
            nonlocal turns
            while True:
                turns += 1
                await asyncio.sleep(0)

        counting = asyncio.create_task(count())
        sizes = [len(orjson.loads(b"[" + some + b"]")) async for some in active_targets(discovery)]
        counting.cancel()
        assert sizes == [100] * 6
        assert turns >= len(sizes)


async def test_a_target_list_is_sent_in_chunks(cluster: SyntheticProcess) -> None:
    """It is never whole in memory; HEAD asks for nothing of it; a reader that leaves early does no harm."""
    async with sidecar(cluster, "pod") as (_, client):
        async with client.get("/api/v1/targets") as answer:
            assert answer.headers["Transfer-Encoding"] == "chunked"
            await answer.content.readany()
        async with client.head("/api/v1/targets") as answer:
            assert (answer.status, await answer.read()) == (200, b"")
        assert len((await data_of(client))["activeTargets"]) == 600


@pytest.mark.parametrize("size", [1000, 1_000_000])
async def test_a_client_that_leaves_amid_the_targets_is_not_an_error(
    caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch, size: int
) -> None:
    """Nothing is logged, whether it leaves between two writes or while one waits for it."""
    left = asyncio.Event()

    async def endless(*_: object) -> AsyncIterator[bytes]:
        try:
            while True:
                yield b" " * size
                await asyncio.sleep(0.001)
        finally:
            left.set()

    monkeypatch.setattr("fastdisco.sidecar.app.active_targets", endless)
    async with Discovery() as discovery:
        runner = web.AppRunner(make_app(Service(discovery)))  # as `fastdisco run` has it; a TestServer cancels the handler instead
        await runner.setup()
        await web.TCPSite(runner, "127.0.0.1", 0).start()
        reader, writer = await asyncio.open_connection(*runner.addresses[0], limit=1000)
        writer.write(b"GET /api/v1/targets HTTP/1.1\r\nHost: sidecar\r\n\r\n")
        assert (await reader.readline()).startswith(b"HTTP/1.1 200")
        await asyncio.sleep(0.05)
        writer.transport.abort()
        try:
            async with asyncio.timeout(5):
                await left.wait()
        finally:
            await runner.cleanup()
    assert [record.getMessage() for record in caplog.records if record.levelno >= logging.WARNING] == []


async def test_metrics_are_those_of_the_discovery(cluster: SyntheticProcess) -> None:
    """As plain text, and as OpenMetrics for who asks for it."""
    async with sidecar(cluster, "pod") as (_, client):
        async with client.get("/metrics") as answer:
            assert answer.headers["Content-Type"].startswith("text/plain; version=0.0.4")
            families = {family.name: family for family in text_string_to_metric_families(await answer.text())}
        works = families["fastdisco_discovery_kubernetes_scrape_works"].samples
        assert [(sample.labels, sample.value) for sample in works] == [({"role": "pod"}, 600.0)]
        async with client.get("/metrics", headers={"Accept": "application/openmetrics-text; version=1.0.0"}) as answer:
            assert answer.headers["Content-Type"].startswith("application/openmetrics-text")
            assert (await answer.text()).endswith("# EOF\n")


async def test_it_is_ready_once_every_job_has_synced(cluster: SyntheticProcess) -> None:
    """It is healthy before; which jobs are waited for is told, and they have no targets yet."""
    async with sidecar(cluster, "pod") as (discovery, client):
        async with client.get("/-/ready") as answer:
            assert (answer.status, await answer.text()) == (200, "fastdisco is ready.\n")
        cluster.control("faults", path="/api/v1/nodes", hang=True)
        try:
            discovery.watch("node", KubernetesSDConfig(role="node", api_server=cluster.url))
            async with client.get("/-/ready") as answer:
                assert (answer.status, await answer.text()) == (503, "fastdisco is not ready: not synced yet: node.\n")
            assert (await data_of(client, scrapePool="node"))["activeTargets"] == []
        finally:
            cluster.request("DELETE", "/control/faults")
        async with client.get("/-/healthy") as answer:
            assert (answer.status, await answer.text()) == (200, "fastdisco is healthy.\n")


async def test_the_page_tells_what_is_served(cluster: SyntheticProcess) -> None:
    """With the jobs and their numbers of targets; a job's name may hold anything."""
    async with sidecar(cluster) as (discovery, client):
        await discovery.watch("<a & b>", KubernetesSDConfig(role="pod", api_server=cluster.url)).synced()
        async with client.get("/") as answer:
            assert answer.headers["Content-Type"] == "text/html; charset=utf-8"
            page = await answer.text()
        assert "&lt;a &amp; b&gt;</a></td><td>yes</td><td>600</td>" in page
        assert "<a & b>" not in page
        link = page.partition('href="api/v1/targets?')[2].partition('"')[0]
        async with client.get(f"/api/v1/targets?{link}") as answer:
            assert len(orjson.loads(await answer.read())["data"]["activeTargets"]) == 600
        for path in ("api/v1/targets", "metrics", "-/healthy", "-/ready"):
            assert f'href="{path}"' in page


async def test_the_page_tells_what_is_wrong(cluster: SyntheticProcess) -> None:
    """What is refused, or failed last; jobs in the order in which they were started, with thousands separated."""
    async with sidecar(cluster, "pod", "node") as (discovery, client):
        page = await (await client.get("/")).text()
        assert page.index(">pod</a>") < page.index(">node</a>")
        assert "Troubles" not in page
        cluster.control("faults", path="/api/v1/services", status=403, message="<forbidden>")
        try:
            job = discovery.watch("services", KubernetesSDConfig("service", cluster.url, selectors=(Selector("service", "a=b"),)))
            async with asyncio.timeout(10):
                while not job.refused:  # noqa: ASYNC110  a refusal of the job's own role has no event
                    await asyncio.sleep(0.01)
            page = await (await client.get("/")).text()
        finally:
            cluster.request("DELETE", "/control/faults")
        assert "<li>/api/v1/services is refused: status code 403: &lt;forbidden&gt;</li>" in page
