"""What a job tells its readers: a snapshot, then every change in order; a snapshot again for whoever was away."""

from __future__ import annotations

import asyncio
import gc

import pytest

from fastdisco import Change
from fastdisco.changes import Reader

from .live import PATHS, Work, live, pod, web
from .rig import eventually


class Job:
    """A job that only counts its works."""

    def __init__(self) -> None:
        self.version = 0
        self.works: list[int] = []
        self.synced = True
        self.left: list[Reader] = []

    def snapshot(self) -> Change | None:
        return Change("snapshot", self.version, works=tuple(self.works)) if self.synced else None

    def reader(self, most_waiting: int = 100) -> Reader:
        return Reader(self.snapshot, self.left.append, most_waiting)

    def add(self, *readers: Reader) -> None:
        self.version += 1
        self.works.append(self.version)
        for reader in readers:
            reader.put(Change("added", self.version, self.version))


def kinds(changes: list[Change]) -> list[tuple[str, int]]:
    return [(change.kind, change.version) for change in changes]


async def take(reader: Reader, count: int) -> list[Change]:
    async with asyncio.timeout(5):
        return [await anext(reader) for _ in range(count)]


async def test_a_snapshot_comes_first_then_each_change_in_order() -> None:
    """What happened before the first reading is in the snapshot, and is not told again."""
    job = Job()
    reader = job.reader()
    job.add(reader)
    (first,) = await take(reader, 1)
    assert (first.kind, first.works) == ("snapshot", (1,))
    job.add(reader)
    job.add(reader)
    assert kinds(await take(reader, 2)) == [("added", 2), ("added", 3)]


async def test_a_reader_waits_for_the_first_sync() -> None:
    """There is nothing to read before; half of the targets would be taken for all of them."""
    job = Job()
    job.synced = False
    reader = job.reader()
    reading = asyncio.ensure_future(take(reader, 1))
    job.add(reader)
    await asyncio.sleep(0)
    assert not reading.done()
    job.synced = True
    reader.fall_behind()
    assert kinds(await reading) == [("snapshot", 1)]


async def test_a_reader_that_was_away_too_long_gets_a_snapshot_in_place_of_what_it_missed() -> None:
    """Never more than so many changes wait; after the snapshot they come one by one again."""
    job = Job()
    reader = job.reader(most_waiting=3)
    await take(reader, 1)
    for _ in range(3):
        job.add(reader)
    assert len(reader._waiting) == 3
    job.add(reader)
    assert len(reader._waiting) == 0
    job.add(reader)
    (only,) = await take(reader, 1)
    assert (only.kind, only.version, only.works) == ("snapshot", 5, (1, 2, 3, 4, 5))
    job.add(reader)
    assert kinds(await take(reader, 1)) == [("added", 6)]


async def test_a_reader_that_was_away_for_a_moment_misses_nothing() -> None:
    """Changes wait for it."""
    job = Job()
    reader = job.reader(most_waiting=3)
    await take(reader, 1)
    for _ in range(3):
        job.add(reader)
    assert kinds(await take(reader, 3)) == [("added", 1), ("added", 2), ("added", 3)]


async def test_what_waits_can_be_read_after_the_end() -> None:
    """Then the iteration ends, and stays so."""
    job = Job()
    reader = job.reader()
    await take(reader, 1)
    job.add(reader)
    reader.end()
    assert [change.kind async for change in reader] == ["added"]
    assert [change async for change in reader] == []


async def test_a_reader_that_waits_is_woken_by_the_end() -> None:
    """It ends without an error."""
    job = Job()
    reader = job.reader()
    await take(reader, 1)

    async def rest() -> list[Change]:
        return [change async for change in reader]

    reading = asyncio.ensure_future(rest())
    await asyncio.sleep(0)
    reader.end()
    assert await reading == []


async def test_closing_leaves_the_job() -> None:
    """Nothing waits for a reader that has left."""
    job = Job()
    reader = job.reader()
    await take(reader, 1)
    job.add(reader)
    await reader.aclose()
    assert job.left == [reader]
    assert [change async for change in reader] == []


# ---- of a live job ----


async def test_changes_of_a_job_are_told_to_each_reader_alike() -> None:
    """Snapshot, added, updated with both works, removed; versions rise by one and end at the job's own."""
    async with live(web(2)) as it:
        job = it.watch("job", "pod", Work)
        early, other = job.changes(), job.changes()
        await job.synced()
        snapshot, again = await take(early, 1) + await take(other, 1)
        assert snapshot.kind == "snapshot"
        assert snapshot == again
        assert snapshot.works == job.scrape_works()
        assert snapshot.version == job.version
        it.put("pods", pod("new", "127.3.9.9"))
        (added,) = await take(early, 1)
        it.put("pods", pod("new", "127.3.9.9", a="b"))
        (updated,) = await take(early, 1)
        it.delete("pods", "default/new")
        (removed,) = await take(early, 1)
        assert kinds([added, updated, removed]) == [
            ("added", snapshot.version + 1),
            ("updated", snapshot.version + 2),
            ("removed", snapshot.version + 3),
        ]
        assert job.version == removed.version
        assert added.work is updated.old
        assert updated.work is removed.work
        assert added.old is None
        assert await take(other, 3) == [added, updated, removed]
        await job.stop()
        assert [change async for change in early] == []


async def test_a_reader_that_waits_for_the_sync_is_woken_by_it() -> None:
    """Whoever began to read before there was anything to tell."""
    async with live(web(2)) as it:
        gate = it.server.hold("list", PATHS["pods"])
        job = it.watch("job", "pod", Work)
        reading = asyncio.ensure_future(take(job.changes(), 1))
        async with asyncio.timeout(5):
            await eventually(lambda: it.server.held == 1)
        assert not reading.done()
        gate.set()
        (snapshot,) = await reading
        assert (snapshot.kind, len(snapshot.works)) == ("snapshot", 2)


async def test_a_reader_that_comes_late_starts_with_what_there_is() -> None:
    """No change before it is told again."""
    async with live(web(2)) as it:
        job = it.watch("job", "pod", Work)
        await job.synced()
        it.put("pods", pod("new", "127.3.9.9"))
        await it.converge(job)
        (first,) = await take(job.changes(), 1)
        assert (first.kind, len(first.works), first.version) == ("snapshot", 3, job.version)


async def test_a_reader_that_breaks_off_is_forgotten() -> None:
    """A loop that is left by `break` closes nothing: no change may be kept for it."""
    async with live(web(2)) as it:
        job = it.watch("job", "pod", Work)
        await job.synced()
        async for _ in job.changes():
            break
        gc.collect()
        assert len(job._readers) == 0


async def test_reading_a_stopped_job_ends_at_once() -> None:
    """There is nothing to tell any more."""
    async with live(web(2)) as it:
        job = it.watch("job", "pod", Work)
        await job.synced()
        await job.stop()
        assert [change async for change in job.changes()] == []


@pytest.mark.parametrize("burst", [50, 11_000])
async def test_a_reader_that_sleeps_through_a_burst_holds_nobody_up(burst: int) -> None:
    """The job goes on and the reader ends with the same works, by changes or by a snapshot."""
    async with live(web(1)) as it:
        job = it.watch("job", "pod", Work)
        await job.synced()
        reader = job.changes()
        mine = {id(work): work for work in (await take(reader, 1))[0].works}
        it.put("pods", *(pod(f"b{number}", f"127.4.{number >> 8}.{number & 255}") for number in range(burst)))
        async with asyncio.timeout(20):
            await eventually(lambda: len(job.scrape_works()) == burst + 1)
        while mine.keys() != {id(work) for work in job.scrape_works()}:
            (change,) = await take(reader, 1)
            if change.kind == "snapshot":
                mine = {id(work): work for work in change.works}
            else:
                mine[id(change.work)] = change.work
        assert len(mine) == burst + 1
