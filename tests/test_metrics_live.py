"""Every metric after a scripted run against a live server."""

from __future__ import annotations

import asyncio

import pytest
from prometheus_client import CollectorRegistry, generate_latest

from fastdisco.group_watcher import Pace

from .live import PATHS, Live, Work, endpoints, live, node, pod, web
from .rig import eventually

ORIGINAL = """
group_watchers url_watchers subscribers objects objects_added_total objects_updated_total objects_removed_total
stale_resource_versions_total scrape_works direct_object_loads_total direct_object_load_errors_total direct_object_load_misses_total
""".split()
OURS = """
decode_errors_total list_duration_seconds_bucket list_duration_seconds_count list_duration_seconds_sum watch_restarts_total
requests_total last_contact_timestamp_seconds bytes_received_total objects_rendered_total
""".split()


async def scripted(it: Live) -> None:
    """Two working jobs and a pending one; objects come, change and go; a version expires, a line is bad, a pod is missing."""
    jobs = [it.watch("pods", "pod", Work), it.watch("endpoints", "endpoints", Work)]
    for job in jobs:
        await job.synced()
    it.server.hold("list", PATHS["nodes"])
    it.watch("pending", "pod", node=True)
    await it.watching(3)
    it.put("pods", pod("new", "127.3.9.9"))  # added
    it.put("pods", pod("p000", "127.3.0.0", app="changed"))  # updated
    it.delete("pods", "default/p001")  # removed
    it.put("endpoints", endpoints("web", {"ghost": "127.3.8.8"}))
    await it.converge(*jobs)
    it.server.control.watches(PATHS["pods"], ending="error", error={"code": 410})
    async with asyncio.timeout(5):
        await eventually(lambda: len(it.asked("list", PATHS["pods"])) == 2)
        await eventually(lambda: it.metrics()["direct_object_load_misses_total{pod}"] >= 1)
    await it.watching(3)
    it.server.control.faults([{"path": PATHS["services"], "verb": "watch", "count": 1, "lines": ["what is this?"]}])
    it.server.control.watches(PATHS["services"], ending="end")
    async with asyncio.timeout(5):
        await eventually(lambda: it.metrics()["decode_errors_total{service}"] == 1)
    await it.watching(3)


async def test_every_metric_has_its_value() -> None:
    """Counted by hand from what the script does."""
    async with live(web(5)) as it:
        await scripted(it)
        metrics = it.metrics()
        expected = {
            "group_watchers": 1,
            "url_watchers{pod}": 1,
            "url_watchers{endpoints}": 1,
            "url_watchers{service}": 1,
            "url_watchers{node}": 1,
            "subscribers{pod,working}": 1,
            "subscribers{pod,pending}": 1,
            "subscribers{endpoints,working}": 1,
            "subscribers{endpoints,pending}": 0,
            "objects{pod}": 5,
            "objects{endpoints}": 1,
            "objects{service}": 1,
            "objects{node}": 0,
            "objects_added_total{pod}": 5 + 1,
            "objects_updated_total{pod}": 1 + 5,  # by an event, and known ones in the second list
            "objects_removed_total{pod}": 1,
            "objects_added_total{endpoints}": 1,
            "objects_updated_total{endpoints}": 1,
            "objects_removed_total{endpoints}": 0,
            "stale_resource_versions_total{pod}": 1,
            "stale_resource_versions_total{endpoints}": 0,
            "scrape_works{pod}": 5,
            "scrape_works{endpoints}": 1,
            "scrape_works{service}": 0,
            "direct_object_load_errors_total{pod}": 0,
            "decode_errors_total{service}": 1,
            "decode_errors_total{pod}": 0,
            "list_duration_seconds_count{pod}": 2,
            "list_duration_seconds_bucket{+Inf,pod}": 2,
            "list_duration_seconds_count{service}": 1,
            "watch_restarts_total{gone,pod}": 1,
            "watch_restarts_total{end,service}": 1,
            "watch_restarts_total{reset,pod}": 0,
        }
        assert {name: metrics.get(name) for name in expected} == expected
        missed = len([request for request in it.asked("get") if request["status"] == 404])
        assert metrics["direct_object_load_misses_total{pod}"] == missed == metrics["direct_object_loads_total{pod}"]
        assert metrics["requests_total{200}"] == len([request for request in it.asked() if request["status"] == 200])
        assert metrics["requests_total{404}"] == missed
        sizes = sum(len(entry.body) for entry in it.server.store.tables["pods"].entries.values())
        assert metrics["bytes_received_total{pod}"] > 2 * sizes
        starts = [request["time"] for request in it.asked("list", PATHS["pods"])]
        assert metrics["last_contact_timestamp_seconds{pod}"] >= starts[-1]


@pytest.mark.parametrize("namespace", ["fastdisco", "vm_promscrape"])
async def test_the_names_are_those_of_the_original(namespace: str) -> None:
    """With `vm_promscrape` for a namespace its dashboards go on working; no series is named otherwise, none is a creation time."""
    async with live(web(5), metrics_namespace=namespace) as it:
        await scripted(it)
        exposed = generate_latest(it.discovery.metrics.registry).decode()
        names = {line.split("{")[0].split(" ")[0] for line in exposed.splitlines() if not line.startswith("#")}
        assert names == {f"{namespace}_discovery_kubernetes_{name}" for name in (*ORIGINAL, *OURS)}
        for name in ("url_watchers", "objects_added_total", "scrape_works", "direct_object_loads_total"):
            assert f'\n{namespace}_discovery_kubernetes_{name}{{role="pod"}} ' in exposed
        assert f'{namespace}_discovery_kubernetes_subscribers{{role="pod",status="pending"}} 1.0' in exposed


async def test_gauges_fall_and_counters_stay_when_jobs_and_groups_stop() -> None:
    """Step by step: the job, its group, the discovery."""
    async with live(web(5), pace=Pace(linger_seconds=0.001)) as it:
        keeper = it.watch("keeper", "node")
        job = it.watch("job", "pod", namespaces=["default"])
        await keeper.synced()
        await job.synced()
        assert it.metrics()["scrape_works{pod}"] == 5
        assert it.metrics()["group_watchers"] == 2
        counters = {name: value for name, value in it.metrics().items() if "_total" in name}
        await job.stop()
        assert it.metrics()["scrape_works{pod}"] == it.metrics()["subscribers{pod,working}"] == 0
        async with asyncio.timeout(5):
            await eventually(lambda: it.metrics()["group_watchers"] == 1)
        metrics = it.metrics()
        assert metrics["url_watchers{pod}"] == metrics["objects{pod}"] == 0
        assert "last_contact_timestamp_seconds{pod}" not in metrics
        assert metrics["objects{node}"] == 2
        await it.discovery.close()
        metrics = it.metrics()
        assert not [name for name, value in metrics.items() if value and ("_total" not in name and "list_duration" not in name)]
        assert {name for name, value in counters.items() if metrics[name] < value} == set()


async def test_two_discoveries_on_one_registry_add_up() -> None:
    """Also when one of them goes: gauges lose its part, counters keep it."""
    registry = CollectorRegistry()
    async with live(web(5), registry=registry) as it:
        async with live({"pods": [pod("far", "127.9.0.1")]}, registry=registry) as other:
            jobs = [it.watch("job", "pod"), other.watch("job", "pod")]
            for job in jobs:
                await job.synced()
            metrics = it.metrics()
            assert metrics == other.metrics()
            assert metrics["scrape_works{pod}"] == metrics["objects_added_total{pod}"] == 6
            assert metrics["group_watchers"] == metrics["subscribers{pod,working}"] == 2
        metrics = it.metrics()
        assert metrics["objects_added_total{pod}"] == 6
        assert metrics["scrape_works{pod}"] == metrics["objects{pod}"] == 5
        assert metrics["group_watchers"] == 1
        exposition = it.discovery.metrics._exposition
        assert exposition is not None
        assert exposition._parts == [it.discovery.metrics]


async def test_works_are_counted_through_changes() -> None:
    """Of targets without a work none."""
    async with live(web(5)) as it:
        job = it.watch("job", "pod", lambda labels: None if labels["__address__"] == "127.3.0.0:8080" else Work(labels))
        await job.synced()
        assert it.metrics()["scrape_works{pod}"] == 4
        it.put("pods", pod("new", "127.3.9.9", ports=(1, 2, 3)))
        it.delete("pods", "default/p002", "default/p000")
        await it.converge(job)
        assert it.metrics()["scrape_works{pod}"] == 6
        it.put("nodes", node("n9"))
        assert it.discovery.status()["jobs"]["job"]["scrape_works"] == 6
