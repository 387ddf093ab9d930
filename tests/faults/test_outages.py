"""An API server that is away, ill or restored from a backup: targets stay as they were until it says otherwise, and then follow."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from tests.live import PATHS, Live, Work, live, pod, reached, web
from tests.rig import QUICK, eventually

ROLES = ("pod", "endpoints", "endpointslice", "service")


async def tried(it: Live, times: int = 3) -> None:
    """Until each path has been asked for so many times more."""
    counts = {path: len(it.asked(path=path)) for path in (PATHS["pods"], PATHS["endpoints"], PATHS["services"])}
    async with asyncio.timeout(10):
        await eventually(lambda: all(len(it.asked(path=path)) >= count + times for path, count in counts.items()))


@pytest.mark.parametrize(
    "fault",
    [
        {"status": 500},
        {"status": 503, "body": "text", "message": "upstream connect error"},
        {"status": 429, "retry_after": "0.001"},
        {"status": 401},
        {"status": 403},
        {"status": 404},
        {"verb": "watch", "after": 0, "ending": "reset"},
        {"verb": "watch", "after": 0, "ending": "error", "error": {"code": 500, "message": "etcd is away"}},
        {"verb": "list", "truncate": 200, "ending": "end"},
        {"verb": "list", "truncate": 0, "ending": "end"},
    ],
    ids=lambda fault: "-".join(str(value) for value in fault.values())[:30],
)
async def test_targets_stay_through_an_outage_and_follow_after_it(fault: dict[str, Any]) -> None:
    """Whatever the server says or does not say meanwhile; afterwards exactly the one target goes that went."""
    async with live(web(20)) as it:
        jobs = [it.watch(role, role, Work) for role in ROLES]
        for job in jobs:
            await job.synced()
        await it.watching(4)
        before = {job.name: (job.scrape_works(), job.version) for job in jobs}
        it.server.control.faults([fault])
        it.server.control.watches(ending="error", error={"code": 410})  # so that lists are needed, too
        await tried(it)
        assert {job.name: (job.scrape_works(), job.version) for job in jobs} == before
        it.delete("pods", "default/p003")
        it.server.control.faults(clear=True)
        await it.converge(*jobs)
        pods = it.discovery.jobs["pod"]
        assert set(before["pod"][0]) - set(pods.scrape_works()) == {
            work for work in before["pod"][0] if work.labels["__meta_kubernetes_pod_name"] == "p003"
        }
        assert len(pods.scrape_works()) == 19


async def test_targets_stay_while_nobody_listens() -> None:
    """The server is gone altogether, and comes back at the same address with other pods and lower versions."""
    async with live(web(20), timings=QUICK._replace(silent_after=0.1)) as it:
        it.server.store.version += 1000
        it.put("pods", pod("newest", "127.3.9.9"))
        jobs = [it.watch(role, role, Work) for role in ROLES]
        for job in jobs:
            await job.synced()
        await it.watching(4)
        before = jobs[0].scrape_works()
        port = int(it.server.url.rpartition(":")[2])
        await it.server.close()
        async with asyncio.timeout(10):
            await eventually(lambda: it.metrics().get("requests_total{error}", 0) > 8)
        assert jobs[0].scrape_works() is before
        it.server.control.rewind(100, end_watches=False)
        it.put("pods", pod("p000", "127.3.7.7"))
        it.delete("pods", "default/p001", "default/newest")
        await it.server.start(port)
        await it.converge(*jobs)
        assert len(jobs[0].scrape_works()) == 19


async def test_a_silent_server_is_noticed() -> None:
    """Connections stay open and nothing comes: what changed meanwhile is known after the probe."""
    async with live(web(5), timings=QUICK._replace(silent_after=0.05, read_timeout=0.2)) as it:
        it.server.control.faults([{"verb": "watch", "silent": True, "count": 1}])
        job = it.watch("job", "pod", Work)
        await job.synced()
        it.put("pods", pod("late", "127.3.9.9"))
        await it.converge(job)
        assert it.metrics()["watch_restarts_total{silent,pod}"] >= 1


async def test_targets_never_vanish_in_a_rolling_replacement() -> None:
    """All pods are replaced while streams are cut: at each change there are targets, at the end exactly the right ones."""
    async with live(web(100)) as it:
        jobs = [it.watch(role, role, Work) for role in ("pod", "endpoints")]
        for job in jobs:
            await job.synced()
        fewest = 100
        for number in range(100):
            it.put("pods", pod(f"new{number}", f"127.4.0.{number}"))
            it.delete("pods", f"default/p{number:03d}")
            if number % 30 == 10:
                it.server.control.watches(ending="reset", mid_line=True)
            if number % 10 == 9:
                wanted = it.expected(jobs[0])
                for change in await reached(jobs[0], lambda works, wanted=wanted: works == wanted):  # type: ignore[misc]
                    if change.kind == "snapshot":
                        fewest = min(fewest, len(change.works))
        await it.converge(*jobs)
        assert fewest >= 90
