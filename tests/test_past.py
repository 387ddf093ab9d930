"""What the last run knew, served after a restart until the first sync."""

from __future__ import annotations

import asyncio
import gzip
import os
from pathlib import Path
from typing import Any

import pytest

from fastdisco.configuration import Configuration
from fastdisco.sidecar.past import Past
from fastdisco.sidecar.query import Query

from .live import pod
from .rig import eventually
from .service_rig import exporting

PODS = [pod("a", "127.0.0.1"), pod("b", "127.0.0.2", ports=(8080, 9090))]
QUERIES = ("", "?labels=final", "?labels=used")


async def run_before(state: Path) -> dict[str, Any]:
    """What a run answers that leaves its state."""
    async with exporting({"pods": PODS}, state=state) as it:
        await it.start(it.job("web"), it.job("other/x"))
        await it.synced()
        await it.service.past.write(it.service.jobs, it.service.exports)
        return {query: (await it.get(f"/sd/web{query}"))[1:] for query in QUERIES}


async def test_the_last_run_s_targets_are_served_until_the_first_sync(tmp_path: Path) -> None:
    """At once, marked as past, with their age and their tag; then the new ones are."""
    state = tmp_path / "state"
    before = await run_before(state)
    os.utime(state, (state.stat().st_mtime - 100,) * 2)
    async with exporting({"pods": PODS[:1]}, state=state) as it:
        gate = it.live.server.hold("list", "/api/v1/pods")
        await it.start(it.job("web"), it.job("new"))
        for query, (headers, groups) in before.items():
            status, found, past = await it.get(f"/sd/web{query}")
            assert (status, found["X-Fastdisco-State"], found["Content-Type"]) == (200, "past", "application/json")
            assert 100 <= int(found["Age"]) < 200
            assert (await it.get(f"/sd/web{query}", **{"Accept-Encoding": "gzip"}))[2] == past
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
    async with exporting({"pods": PODS}, state=state, sync_wait=0.01) as it:
        it.live.server.hold("list", "/api/v1/pods")
        await it.start(it.job("web"))
        assert (await it.get("/sd/web"))[0] == 503


HEADLESS = b'{"version":1,"job":"web","labels":"discovered"}\n'


@pytest.mark.parametrize("text", [b"", b"x", gzip.compress(b"{}\n"), gzip.compress(HEADLESS), b"cut"])
async def test_a_state_that_cannot_be_used_is_as_none(tmp_path: Path, caplog: pytest.LogCaptureFixture, text: bytes) -> None:
    """The log tells; the run goes on."""
    state = tmp_path / "state"
    await run_before(state)
    state.write_bytes(state.read_bytes()[:-20] if text == b"cut" else text)
    async with exporting({"pods": PODS}, state=state, sync_wait=0.01) as it:
        gate = it.live.server.hold("list", "/api/v1/pods")
        await it.start(it.job("web"))
        assert (await it.get("/sd/web"))[0] == 503
        gate.set()
        assert len(await it.addresses("web")) == 3
    assert any(f"cannot use the state in {state}" in one.getMessage() for one in caplog.records) is (text != b"")


async def test_a_state_is_written_when_it_has_changed_and_its_time_follows_the_server(tmp_path: Path) -> None:
    """A file of the same content is not written again; its time is that of the last contact, so that an age is never too small."""
    state = tmp_path / "state"
    async with exporting({"pods": PODS}, state=state) as it:
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


async def test_nothing_is_forgotten_while_a_job_has_yet_to_sync(tmp_path: Path) -> None:
    """A second restart amid an outage has what the first one had."""
    state = tmp_path / "state"
    await run_before(state)
    before = state.read_bytes()
    async with exporting({"pods": PODS, "nodes": []}, state=state) as it:
        it.live.server.hold("list", "/api/v1/pods")
        await it.start(it.job("web"), it.job("nodes", "node"))
        await it.service.discovery.jobs["nodes"].synced()
        await it.service.past.write(it.service.jobs, it.service.exports)
        assert state.read_bytes() == before
        await it.service.jobs.apply(Configuration((it.job("nodes", "node"),)))
        await it.service.past.write(it.service.jobs, it.service.exports)
        assert state.read_bytes() != before


async def test_what_becomes_too_old_is_served_no_longer(tmp_path: Path) -> None:
    """An API server may be away for long after a restart."""
    state = tmp_path / "state"
    await run_before(state)
    now = state.stat().st_mtime
    past = Past(state, 600.0, lambda: now)
    past.read()
    assert past.body("web", Query()) is not None
    now += 599.0
    assert past.body("web", Query()) is not None
    now += 2.0
    assert past.body("web", Query()) is None
