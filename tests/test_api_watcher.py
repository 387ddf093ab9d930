"""One job: when it is synced, what it tells of refusals, what it holds, how it stops."""

from __future__ import annotations

import asyncio
import logging
from typing import Any

import pytest

from fastdisco import ConfigError, Discovery, KubernetesSDConfig, Labels, NotSynced
from fastdisco.synthetic import Cluster

from .live import PATHS, GatedServer, Live, Work, addresses, live, node, pod, reached, web, writing
from .rig import eventually

FORBIDDEN = {"status": 403, "message": "forbidden by a test"}


async def refused(it: Live, *paths: str) -> None:
    it.server.control.faults([{**FORBIDDEN, "path": path} for path in paths])


async def test_nothing_is_there_before_the_first_sync() -> None:
    """An empty list would say that there are no targets."""
    async with live(web(3)) as it:
        gate = it.server.hold("list", PATHS["pods"])
        job = it.watch("job", "pod")
        with pytest.raises(NotSynced, match="job has not synced yet"):
            job.scrape_works()
        with pytest.raises(TimeoutError):
            await job.synced(timeout=0.01)
        assert not job.is_synced
        assert job.status()["synced"] is False
        gate.set()
        assert await job.synced(timeout=5) == ()
        assert len(job.scrape_works()) == 3
        assert await job.synced(timeout=0.01) == ()


async def test_a_cluster_without_targets_syncs() -> None:
    """No target is a fact like any other, once the server has said so."""
    async with live() as it:
        job = it.watch("job", "endpoints")
        await job.synced()
        assert job.scrape_works() == ()


async def test_works_are_the_same_tuple_until_something_changes() -> None:
    """Who asks often pays nothing, and who keeps a tuple keeps that state."""
    async with live(web(3)) as it:
        job = it.watch("job", "pod", Work)
        await job.synced()
        before = job.scrape_works()
        assert job.scrape_works() is before
        it.put("pods", pod("new", "127.3.9.9"))
        await it.converge(job)
        assert len(before) == 3
        assert len(job.scrape_works()) == 4


@pytest.mark.parametrize(("plural", "attach"), [("nodes", {"node": True}), ("namespaces", {"namespace": True})])
async def test_refused_attachments_hold_no_target_back(plural: str, attach: dict[str, Any]) -> None:
    """They are told by `synced`, targets go without their labels, and get them when they are allowed."""
    async with live(web(3)) as it:
        await refused(it, PATHS[plural])
        job = it.watch("job", "pod", Work, **attach)
        (told,) = await job.synced()
        assert told.startswith(PATHS[plural])
        assert "forbidden by a test" in told
        assert job.status()["refused"] == [told]
        singular = plural.removesuffix("s")
        assert not any(f"{singular}_label_" in name for work in job.scrape_works() for name in work.labels)
        it.server.control.faults(clear=True)
        await it.converge(job)
        assert any(f"{singular}_label_" in name for work in job.scrape_works() for name in work.labels)
        assert job.refused == ()


@pytest.mark.parametrize("plural", ["pods", "services"])
async def test_refused_joins_hold_no_target_back(plural: str) -> None:
    """Endpoints are targets without pods and services, too."""
    async with live(web(3)) as it:
        await refused(it, PATHS[plural])
        job = it.watch("job", "endpoints")
        assert len(await job.synced()) == 1
        assert len(job.scrape_works()) == 3
        it.server.control.faults(clear=True)
        await it.converge(job)


async def test_a_role_refused_in_one_of_two_namespaces_syncs_with_the_other() -> None:
    """What is allowed is found, what is not is told; once it is allowed its targets are added."""
    objects = {"pods": [pod("p", "127.3.0.1", namespace="a"), pod("p", "127.3.0.2", namespace="b")]}
    async with live(objects) as it:
        await refused(it, "/api/v1/namespaces/b/")
        job = it.watch("job", "pod", Work, namespaces=["a", "b"])
        (told,) = await job.synced()
        assert told.startswith("/api/v1/namespaces/b/pods")
        assert addresses(job) == ["127.3.0.1:8080"]
        it.server.control.faults(clear=True)
        await it.converge(job)
        assert addresses(job) == ["127.3.0.1:8080", "127.3.0.2:8080"]


async def test_a_role_refused_everywhere_does_not_sync_until_it_is_allowed() -> None:
    """No permission is not the same as no pods."""
    async with live(web(3)) as it:
        await refused(it, "/api/v1/namespaces/")
        job = it.watch("job", "pod", Work, namespaces=["default", "other"])
        async with asyncio.timeout(5):
            await eventually(lambda: len(it.asked("list", "/api/v1/namespaces/other")) >= 3)
        assert len(job.refused) == 2
        with pytest.raises(TimeoutError):
            await job.synced(timeout=0.02)
        with pytest.raises(NotSynced):
            job.scrape_works()
        it.server.control.faults(clear=True)
        await job.synced()
        await it.converge(job)
        assert len(job.scrape_works()) == 3


async def test_one_configuration_that_is_refused_does_not_hold_the_others_back() -> None:
    """A job of two roles syncs with the one that it may list."""
    async with live(web(3)) as it:
        await refused(it, PATHS["ingresses"])
        job = it.discovery.watch("job", [it.config("pod"), it.config("ingress")], Work)
        (told,) = await job.synced()
        assert told.startswith(PATHS["ingresses"])
        assert len(job.scrape_works()) == 3
        it.server.control.faults(clear=True)
        await reached(job, lambda works: len(works) == 4)


async def test_a_job_of_several_configurations_has_the_targets_of_all() -> None:
    """Of two roles and of two API servers; it is synced when all are, and changes of each are told."""
    async with live(web(3)) as it, GatedServer(Cluster.of({"pods": [pod("far", "127.9.0.1")]})) as other:
        gate = other.hold("list", PATHS["pods"])
        job = it.discovery.watch("job", [it.config("pod"), it.config("node"), Live(other, it.discovery).config("pod")], Work)
        async with asyncio.timeout(5):
            await eventually(lambda: other.held == 1)
        assert not job.is_synced
        gate.set()
        await job.synced()
        assert addresses(job)[-1] == "127.9.0.1:8080"
        assert len(job.scrape_works()) == 3 + 2 + 1
        other.control.apply([{"put": "pods", "object": pod("far", "127.9.0.2")}])
        it.put("nodes", node("n9", "127.1.9.9"))
        await reached(job, lambda works: len(works) == 7 and any("127.9.0.2" in text for text in works))


async def test_equal_configurations_in_a_job_give_equal_targets_twice() -> None:
    """Discovered labels are not merged: the user asked twice."""
    async with live(web(3)) as it:
        job = it.discovery.watch("job", [it.config("pod"), it.config("pod")], Work)
        await job.synced()
        assert len(job.scrape_works()) == 6
        assert len(it.asked("list")) == 1


async def test_a_stopped_job_has_nothing_and_tells_nothing() -> None:
    """Whoever waits for it or reads it learns of it; stopping twice is no mistake."""
    async with live(web(3)) as it:
        calls: list[Labels] = []
        job = it.watch("job", "pod", writing(calls))
        await job.synced()
        reader = job.changes()
        await anext(reader)
        await job.stop()
        await job.stop()
        calls.clear()
        with pytest.raises(NotSynced, match="was stopped"):
            job.scrape_works()
        with pytest.raises(NotSynced, match="was stopped"):
            await job.synced()
        version = job.version
        it.put("pods", pod("new", "127.3.9.9"))
        await it.handled("pod", "default", "new")
        other = it.watch("other", "pod")
        await other.synced()
        it.check(other)
        assert (calls, job.version, [change async for change in reader]) == ([], version, [])
        assert "job" not in it.discovery.jobs


async def test_stopping_wakes_whoever_waits_for_the_sync() -> None:
    """It will not come any more."""
    async with live(web(3)) as it:
        it.server.hold("list", PATHS["pods"])
        job = it.watch("job", "pod")
        waiting = [asyncio.ensure_future(job.synced()) for _ in range(3)]
        await asyncio.sleep(0)
        await job.stop()
        for each in waiting:
            with pytest.raises(NotSynced):
                await each


async def test_resync_lists_what_the_job_needs_again() -> None:
    """Each of its kinds once, and nothing changes if nothing changed."""
    async with live(web(3)) as it:
        job = it.watch("job", "endpoints", Work)
        nodes = it.watch("nodes", "node")
        await job.synced()
        await nodes.synced()
        await it.watching(4)
        before, version = job.scrape_works(), job.version
        it.server.books.clear()
        await job.resync()
        async with asyncio.timeout(5):
            await eventually(lambda: len(it.asked("watch")) == 3)
        assert {request["path"] for request in it.asked("list")} == {PATHS[plural] for plural in ("endpoints", "pods", "services")}
        assert len(it.asked("list")) == 3
        assert (job.scrape_works(), job.version) == (before, version)


async def test_reconfigure_gives_new_works_to_what_changes_from_then_on() -> None:
    """Works whose labels stay are kept; no request is sent."""
    async with live(web(3)) as it:
        job = it.watch("job", "pod", Work)
        await job.synced()
        await it.watching(1)
        before, requests = set(job.scrape_works()), len(it.asked())

        class Other(Work):
            pass

        job.reconfigure(constructor=Other)
        job.reconfigure()
        it.put("pods", pod("p000", "127.3.0.0", app="changed"))
        await it.converge(job)
        fresh = set(job.scrape_works()) - before
        assert [type(work) for work in fresh] == [Other]
        assert len(it.asked()) == requests


async def test_the_log_tells_the_life_of_a_job_and_nothing_at_the_rate_of_events(caplog: pytest.LogCaptureFixture) -> None:
    """Started, synced, stopped; reloaded objects; not one line for a hundred changes."""
    caplog.set_level(logging.INFO, "fastdisco")
    async with live(web(3)) as it:
        job = it.watch("job", "pod", Work)
        await job.synced()
        await it.watching(1)
        lines = len(caplog.records)
        for number in range(100):
            it.put("pods", pod(f"new{number}", f"127.4.0.{number}"))
        await it.converge(job)
        assert len(caplog.records) == lines
        await job.stop()
    said = [record.getMessage() for record in caplog.records]
    assert "started job job" in said
    assert "synced job job: 3 targets" in said
    assert "stopped job job" in said
    assert any(line.startswith(f"reloaded 3 objects from {PATHS['pods']}") for line in said)
    assert {record.name for record in caplog.records} <= {"fastdisco", "asyncio"}


async def test_a_sync_that_does_not_come_is_explained() -> None:
    """The error names what is waited for and why, so that an embedder's log tells it."""
    async with Discovery() as discovery:
        job = discovery.watch("nowhere", KubernetesSDConfig("pod", api_server="http://127.0.0.1:1"))
        with pytest.raises(TimeoutError, match=r"has not synced within 0\.2 s: /api/v1/pods \(backing off\): cannot connect to "):
            await job.synced(0.2)


async def test_a_mapping_is_no_configuration() -> None:
    """The likeliest first mistake is told what to do instead."""
    async with Discovery() as discovery:
        with pytest.raises(ConfigError, match=r"KubernetesSDConfig\.from_dict makes one of a mapping"):
            discovery.watch("pods", {"role": "pod"})  # type: ignore[arg-type]
