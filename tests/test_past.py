"""What the last run knew, served after a restart until the first sync."""

from __future__ import annotations

import asyncio
import gzip
import os
import time
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from bench.peers.program import free_port
from fastdisco.configuration import Configuration
from fastdisco.errors import FastdiscoError
from fastdisco.sidecar.job_files import file_of
from fastdisco.sidecar.jobs import Removed
from fastdisco.sidecar.past import Past
from fastdisco.sidecar.state_file import read

from .live import node, pod
from .rig import eventually
from .service_rig import Exporting, exporting

PODS = [pod("a", "127.0.0.1"), pod("b", "127.0.0.2", ports=(8080, 9090))]
running = partial(exporting, port=free_port())  # after a restart the API server is where it was
QUERIES = ("", "?labels=final", "?labels=used")


async def run_before(state: Path) -> dict[str, Any]:
    """What a run answers that leaves its state."""
    async with running({"pods": PODS}, state=state) as it:
        await it.start(it.job("web"), it.job("other/x"))
        await it.synced()
        await it.service.past.write(it.service.jobs, it.service.exports)
        return {query: (await it.get(f"/sd/web{query}"))[1:] for query in QUERIES}


async def test_the_last_run_s_targets_are_served_until_the_first_sync(tmp_path: Path) -> None:
    """At once, marked as past, with their age and their tag; then the new ones are."""
    state = tmp_path / "state"
    before = await run_before(state)
    os.utime(state, (state.stat().st_mtime - 100,) * 2)
    async with running({"pods": PODS[:1]}, state=state) as it:
        gate = it.live.server.hold("list", "/api/v1/pods")
        await it.start(it.job("web"), it.job("new"))
        for query, (headers, groups) in before.items():
            status, found, past = await it.get(f"/sd/web{query}")
            assert (status, found["X-Fastdisco-State"], found["Content-Type"]) == (200, "past", "application/json")
            assert 100 <= int(found["Age"]) < 200
            packed = await it.get(f"/sd/web{query}", **{"Accept-Encoding": "gzip"})
            assert (packed[1]["Content-Encoding"], packed[2]) == ("gzip", past)
            for encoding, tag in (("", found["ETag"]), ("gzip", packed[1]["ETag"])):
                assert (await it.get(f"/sd/web{query}", **{"Accept-Encoding": encoding, "If-None-Match": tag}))[0] == 304
            if query != "?labels=used":  # as it is kept, that is with all labels
                assert (past, found["ETag"]) == (groups, headers["ETag"])
        gate.set()
        await it.synced()
        status, found, now = await it.get("/sd/web")
        assert (found["X-Fastdisco-State"], len(now)) == ("live", 1)


@pytest.mark.parametrize("seconds", [601, 10**6])
async def test_what_is_too_old_is_not_served(tmp_path: Path, seconds: int) -> None:
    """Stale targets are worse than a client's own: it keeps those at a 503."""
    state = tmp_path / "state"
    await run_before(state)
    os.utime(state, (state.stat().st_mtime - seconds,) * 2)
    async with running({"pods": PODS}, state=state, sync_wait=0.01) as it:
        it.live.server.hold("list", "/api/v1/pods")
        await it.start(it.job("web"))
        assert (await it.get("/sd/web"))[0] == 503


HEADLESS = b'{"version":2,"jobs":["web"]}\n{"job":"web","labels":"discovered"}\n'


NAMELESS = [b'{"version":2,"jobs":%s}\n' % jobs for jobs in (b'[["a"]]', b"[1,null]", b'"abc"', b"{}")]
UNUSABLE = [b"{}\n", HEADLESS, b'{"version":1}\n', *NAMELESS]


@pytest.mark.parametrize("text", [b"", b"x", b"cut", *map(gzip.compress, UNUSABLE)])
async def test_a_state_that_cannot_be_used_is_as_none(tmp_path: Path, caplog: pytest.LogCaptureFixture, text: bytes) -> None:
    """The log tells; the run goes on."""
    state = tmp_path / "state"
    await run_before(state)
    state.write_bytes(state.read_bytes()[:-20] if text == b"cut" else text)
    async with running({"pods": PODS}, state=state, sync_wait=0.01) as it:
        gate = it.live.server.hold("list", "/api/v1/pods")
        await it.start(it.job("web"))
        assert (await it.get("/sd/web"))[0] == 503
        gate.set()
        assert len(await it.addresses("web")) == 3
    assert any(f"cannot use the state in {state}" in one.getMessage() for one in caplog.records)


async def test_a_state_is_written_when_it_has_changed_and_its_time_follows_the_server(tmp_path: Path) -> None:
    """A file of the same content is not written again; its time is that of the last contact, so that an age is never too small."""
    state = tmp_path / "state"
    async with running({"pods": PODS}, state=state) as it:
        await it.start(it.job("web"))
        await it.synced()
        past = it.service.past

        async def written() -> int:
            await past.write(it.service.jobs, it.service.exports)
            return state.stat().st_ino

        first = await written()
        assert state.stat().st_mode & 0o777 == 0o600
        assert await written() == first
        assert it.service.discovery.jobs["web"].last_contact is not None
        assert abs(state.stat().st_mtime - it.service.discovery.jobs["web"].last_contact) < 0.01
        it.live.put("pods", pod("c", "127.0.0.3"))
        async with asyncio.timeout(10):
            await eventually(lambda: len(it.service.discovery.jobs["web"].scrape_works()) == 4)
        assert await written() != first


async def write(it: Exporting) -> None:
    await it.service.past.write(it.service.jobs, it.service.exports)


async def test_nothing_is_forgotten_while_a_job_has_yet_to_sync(tmp_path: Path) -> None:
    """What others know now is kept all the same; a second restart amid an outage has what the first one had, and its age."""
    state = tmp_path / "state"
    await run_before(state)
    os.utime(state, (state.stat().st_mtime - 300,) * 2)
    async with running({"pods": PODS, "nodes": [node("n1")]}, state=state) as it:
        it.live.server.hold("list", "/api/v1/pods")
        await it.start(it.job("web"), it.job("nodes", "node"))
        await it.service.discovery.jobs["nodes"].synced()
        await write(it)
    async with running({"pods": PODS, "nodes": [node("n1")]}, state=state) as it:
        it.live.server.hold("list", "/api/v1/pods")
        it.live.server.hold("list", "/api/v1/nodes")
        await it.start(it.job("web"), it.job("nodes", "node"))
        for job, count, oldest in (("web", 3, 300), ("nodes", 1, 0)):
            status, headers, groups = await it.get(f"/sd/{job}")
            assert (status, headers["X-Fastdisco-State"], len(groups)) == (200, "past", count)
            assert oldest <= int(headers["Age"]) < oldest + 100


async def test_a_job_that_is_refused_later_harms_no_other(tmp_path: Path) -> None:
    """It goes on with what it has, which grows old; the state of the others is as young as they are."""
    state = tmp_path / "state"
    async with running({"pods": PODS, "nodes": [node("n1")]}, state=state, max_staleness=3600.0) as it:
        await it.start(it.job("web"), it.job("nodes", "node"))
        await it.synced()
        nodes = it.service.discovery.jobs["nodes"]
        it.live.server.control.faults(path="/api/v1/nodes", status=403)
        await nodes.resync()
        async with asyncio.timeout(10):
            await eventually(lambda: nodes.refused_paths)
        status, headers, groups = await it.get("/sd/nodes")
        assert (status, len(groups), headers["X-Fastdisco-Incomplete"]) == (200, 1, "/api/v1/nodes")
        assert int(headers["Age"]) < 100
        ((group, _),) = nodes.subscribers
        group._watchers["node"][0]._reader.last_contact -= 400.0
        assert (await it.get("/sd/nodes"))[1]["X-Fastdisco-State"] == "stale"
        assert (await it.get("/sd/web"))[1]["X-Fastdisco-State"] == "live"
        await write(it)
        moment = nodes.last_contact
    known = read(state, 0.0).jobs
    assert (sorted(known), known["nodes"].true_at) == (["nodes", "web"], moment)
    assert known["web"].true_at > time.time() - 100


@pytest.mark.parametrize(
    ("rules", "config"),
    [([{"target_label": "x", "replacement": "y"}], {}), ((), {"namespaces": ["default"]}), ((), {"node": True})],
)
async def test_what_another_configuration_gave_is_not_served(tmp_path: Path, rules: Any, config: dict[str, Any]) -> None:
    """Another role, place or rule gives other targets; after a reload, too."""
    state = tmp_path / "state"
    await run_before(state)
    async with running({"pods": PODS}, state=state, sync_wait=0.01) as it:
        it.live.server.hold("list", "/api/v1/pods")
        it.live.server.hold("list", "/api/v1/namespaces/default/pods")
        await it.start(it.job("web", rules=rules, **config))
        assert (await it.get("/sd/web"))[0] == 503
        await it.service.jobs.apply(Configuration((it.job("web"),)))
        assert (await it.get("/sd/web"))[1].get("X-Fastdisco-State") == "past"
        await it.service.jobs.apply(Configuration((it.job("web", rules=rules, **config),)))
        assert (await it.get("/sd/web"))[0] == 503


async def test_what_becomes_too_old_is_served_no_longer(tmp_path: Path) -> None:
    """An API server may be away for long after a restart."""
    state = tmp_path / "state"
    await run_before(state)
    now = state.stat().st_mtime
    past = Past(state, 600.0, lambda: now)
    past.read()
    fingerprint = read(state, 0.0).jobs["web"].fingerprint
    assert past.of("web", fingerprint) is not None
    now += 599.0
    assert past.of("web", fingerprint) is not None
    now += 2.0
    assert past.of("web", fingerprint) is None


async def test_what_is_past_grows_stale_as_all_does(tmp_path: Path) -> None:
    """Beyond what the user takes for new enough there is nothing until the sync; the index and the metrics say what is served."""
    state = tmp_path / "state"
    await run_before(state)
    moment = state.stat().st_mtime - 100
    os.utime(state, (moment, moment))
    for limit, status, shown, count in ((99.0, 503, "waiting", 0), (1000.0, 200, "past", 3)):
        async with running({"pods": PODS}, state=state, sync_wait=0.01, max_staleness=limit) as it:
            it.live.server.hold("list", "/api/v1/pods")
            await it.start(it.job("web"))
            assert (await it.get("/sd/web"))[0] == status
            (entry,) = (await it.get("/sd"))[2]["jobs"]
            assert (entry["state"], entry["synced"], entry["targets"]) == (shown, False, count)
            metrics = (await it.get("/metrics"))[2]
            assert 'fastdisco_sidecar_past{job="web"} 1.0' in metrics
            assert 'fastdisco_sidecar_targets{job="web"} 3.0' in metrics


async def test_what_was_served_before_the_sync_is_not_served_after_it(tmp_path: Path) -> None:
    """A job that went and comes back has no past: what it knew when it went was newer."""
    state = tmp_path / "state"
    await run_before(state)
    async with running({"pods": PODS[:1]}, state=state, sync_wait=0.01) as it:
        gate = it.live.server.hold("list", "/api/v1/pods")
        await it.start(it.job("web"))
        fingerprint = it.service.jobs.fingerprint("web")
        assert it.service.past.of("web", fingerprint) is not None
        gate.set()
        await it.synced()
        await it.service.jobs.apply(Configuration(()))
        assert it.service.past.of("web", fingerprint) is None


async def test_a_removed_job_is_not_forgotten_by_a_restart(tmp_path: Path) -> None:
    """Whether it was removed before the restart or with it; clients and files learn that it has no targets, and then it is gone."""
    state, directory = tmp_path / "state", tmp_path / "files"
    async with running({"pods": PODS}, state=state, file_sd_directory=directory) as it:
        await it.start(it.job("before"), it.job("with"), it.job("stays"))
        await it.synced()
        assert it.service.file_sd is not None
        await it.service.file_sd.write_changed()
        await it.service.jobs.apply(Configuration((it.job("with"), it.job("stays"))))
        await write(it)
    async with running({"pods": PODS}, state=state, file_sd_directory=directory) as it:
        await it.start(it.job("stays"))
        await it.synced()
        assert it.service.file_sd is not None
        await it.service.file_sd.write_changed()
        for name in ("before", "with"):
            assert (await it.get(f"/sd/{name}"))[::2] == (200, [])
            assert file_of(directory, name, "json").read_bytes() == b"[]\n"
        assert len(await it.addresses("stays")) == 3
        it.service.jobs.removed = {name: Removed(name, 0.0) for name in it.service.jobs.removed}  # as when their time is over
        await it.service.file_sd.write_changed()
        assert [(await it.get(f"/sd/{name}"))[0] for name in ("before", "with")] == [404, 404]
        assert not file_of(directory, "before", "json").parent.exists()
        await write(it)
    assert read(state, 0.0).names == ("stays",)


def test_a_state_that_could_never_be_kept_is_told_at_the_start(tmp_path: Path) -> None:
    """Rather than at the first write, when nobody looks any more."""
    for file, reason in ((tmp_path / "none" / "state", "none is no directory that can be written to"), (tmp_path, "it is a directory")):
        with pytest.raises(FastdiscoError, match=f"cannot keep the state in {file}: .*{reason}"):
            Past(file).read()
