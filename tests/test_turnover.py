"""Memory follows the live cluster, not its history: all pods go and others come, again and again."""

from __future__ import annotations

import asyncio
import gc
import json
import subprocess
import sys
from pathlib import Path

import pytest

from fastdisco import APIWatcher, Discovery, KubernetesSDConfig
from fastdisco._subscriber import PART_BITS
from fastdisco.group_watcher import GroupWatcher, Pace
from fastdisco.synthetic import Sizes, SyntheticProcess

from .live import Live, Work, live
from .rig import eventually

TURNOVERS = 20
ROLES = ("pod", "endpoints", "endpointslice")


async def caught_up(group: GroupWatcher, version: int, job: APIWatcher, works: int) -> None:
    """Until every watcher has been told, by an event or a bookmark, of that version, all is rendered, and the works are made."""
    watchers = [watcher for watchers in group._watchers.values() for watcher in watchers]
    await eventually(lambda: all(int(watcher.resource_version or 0) >= version for watcher in watchers) and not group._renderer.dirty)
    await eventually(lambda: len(job.scrape_works()) == works)


def slots(group: GroupWatcher) -> int:
    """Places for names that the store has ever needed at one time."""
    return int(group._renderer.walk(0, set(), 1 << 40)[1] >> PART_BITS)


async def turned_over(it: Live, job: APIWatcher, pods: int) -> None:
    done = await it.server.control.turnover()
    async with asyncio.timeout(60):
        await caught_up(it.group, done["resourceVersion"], job, 3 * pods)


@pytest.mark.parametrize("pods", [500, pytest.param(10_000, marks=pytest.mark.slow)])
async def test_strings_and_names_of_pods_that_are_gone_are_reclaimed(pods: int) -> None:
    """After twenty turnovers no more are held than after two: strings, places in the store, works."""
    async with live(Sizes(pods=pods, oddities=0.0), bookmark_interval=0.05, seconds=570) as it:
        jobs = [it.watch(role, role, Work, node=True) for role in ROLES]
        for job in jobs:
            await job.synced()
        symbols = it.discovery._symbols
        held: list[tuple[int, int]] = []
        for _ in range(TURNOVERS):
            await turned_over(it, jobs[0], pods)
            assert len(symbols) <= 1.2 * (len(symbols) - symbols.set_aside) + 5000
            held.append((len(symbols) - symbols.set_aside, slots(it.group)))
        strings, places = zip(*held[1:], strict=True)
        assert max(strings) <= 1.05 * strings[0]
        assert max(places) <= 1.2 * places[0]
        assert it.metrics()["objects{pod}"] == pods
        assert it.metrics()["scrape_works{pod}"] == 3 * pods
        if pods < 1000:  # the reference needs its time
            await it.converge(*jobs)


async def test_a_store_that_is_given_up_gives_its_strings_back() -> None:
    """Of two groups one goes, though its stopped job is kept: only the strings of the other are still owned."""
    async with live(Sizes(pods=500, oddities=0.0), pace=Pace(linger_seconds=0.001)) as it:
        keeper = it.watch("keeper", "node")
        await keeper.synced()
        symbols = it.discovery._symbols
        before = len(symbols) - symbols.set_aside
        job = it.watch("job", "pod", list_limit=100)
        await job.synced()
        assert len(symbols) - symbols.set_aside > before + 500
        await job.stop()
        async with asyncio.timeout(5):
            await eventually(lambda: len(it.discovery._groups) == 1 and not it.discovery._stopping)
        gc.collect()
        names = 200  # of labels, remembered with their shapes
        assert len(symbols) - symbols.set_aside < before + names


@pytest.mark.slow
def test_resident_memory_after_twenty_turnovers_is_that_after_the_second() -> None:
    """10,000 pods, in a process of its own; within a fifth."""
    run = subprocess.run(
        [sys.executable, "-m", "tests.test_turnover", "10000"],
        cwd=Path(__file__).parent.parent,
        stdout=subprocess.PIPE,
        check=True,
        timeout=580,
    )
    resident = json.loads(run.stdout)
    assert len(resident) == TURNOVERS
    assert resident[-1] <= 1.2 * resident[1], resident


async def _measure(pods: int) -> list[int]:
    """Resident pages after each turnover."""
    resident = []
    async with SyntheticProcess(pods=pods, oddities=0.0, bookmark_interval=0.2) as server, Discovery() as discovery:
        config = {"api_server": server.url, "attach_metadata": {"node": True}}
        jobs = [discovery.watch(role, KubernetesSDConfig.from_dict({"role": role, **config}), Work) for role in ROLES]
        for job in jobs:
            await job.synced()
        (group,) = discovery._groups.values()
        for _ in range(TURNOVERS):
            done = await server.acontrol("turnover", follow=True)
            await caught_up(group, done["resourceVersion"], jobs[0], 3 * pods)
            resident.append(resident_pages())
    return resident


def resident_pages() -> int:
    return int(Path("/proc/self/statm").read_text(encoding="ascii").split()[1])


if __name__ == "__main__":
    sys.stdout.write(json.dumps(asyncio.run(_measure(int(sys.argv[1])))))
