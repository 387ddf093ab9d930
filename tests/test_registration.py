"""Races of registration, each forced: what happens while a pass over all objects is under way loses, doubles and spoils no target."""

from __future__ import annotations

import asyncio
import random
from collections import Counter
from collections.abc import Awaitable, Callable
from functools import partial
from typing import Any

import pytest

from fastdisco import APIWatcher, Labels, NotSynced
from fastdisco._subscriber import PART_BITS
from fastdisco.config import ROLES
from fastdisco.group_watcher import Pace

from .live import PATHS, Item, Live, Work, endpoints, endpointslice, ingress, live, namespace, node, pod, service, web, works_of, writing
from .rig import eventually

SMALL = Pace(slice_seconds=0, batch_targets=1)
COUNT = 40
Step = Callable[[], Awaitable[None]]


class Stage:
    """Stands where the group lets the loop go on: a step of the test is taken there, and the group waits until it is done."""

    is_over = True

    def __init__(self) -> None:
        self.group: Any = None
        self.steps: list[tuple[int, Step]] = []
        self.taken = 0

    def __call__(self, _: float) -> Stage:
        return self

    def at(self, cursor: int, step: Step) -> None:
        """As soon as a pass has left so many slots behind."""
        self.steps.append((cursor, step))

    async def breathe(self) -> None:
        while self.steps and self.group is not None and self.group._pass and self.group._cursor >= self.steps[0][0]:
            _, step = self.steps.pop(0)
            await step()
            self.taken += 1
        await asyncio.sleep(0)


@pytest.fixture
def stage(monkeypatch: pytest.MonkeyPatch) -> Stage:
    made = Stage()
    monkeypatch.setattr("fastdisco.group_watcher._Turn", made)
    return made


def many() -> dict[str, list[Item]]:
    """So many pods, each with a service, endpoints and a slice of its own."""
    objects = web(COUNT)
    for number in range(COUNT):
        name, address = f"s{number:03d}", {f"p{number:03d}": f"127.3.0.{number}"}
        objects["services"].append(service(name, app=name))
        objects["endpoints"].append(endpoints(name, address))
        objects["endpointslices"].append(endpointslice(name, name, address))
    return objects


async def warmed(it: Live, role: str, stage: Stage) -> APIWatcher:
    """A working job of the role, so that the group's store is full when the pass of the next one begins."""
    job = it.watch("first", role, Work, node=True, namespace=True)
    await job.synced()
    stage.group = it.group
    return job


async def settled_by(it: Live, change: Callable[[], None]) -> None:
    """Makes a change of the cluster and waits until the store has all of it, by a mark on each watch."""
    change()
    marks = {"pods": pod("zz-mark", ""), "nodes": node("zz-mark", ""), "namespaces": namespace("zz-mark")}
    marks |= {"endpoints": endpoints("zz-mark", {}), "endpointslices": endpointslice("zz-mark", "zz-mark", {})}
    marks |= {"services": service("zz-mark", ports=()), "ingresses": ingress("zz-mark", hosts=())}
    for plural, item in marks.items():
        it.put(plural, item)
    versions = {plural: table.log[-1].version for plural, table in it.server.store.tables.items() if table.log}
    watchers = [watcher for watchers in it.group._watchers.values() for watcher in watchers]

    def all_know() -> bool:
        return all(int(watcher.resource_version or 0) >= versions[watcher.path.rpartition("/")[2]] for watcher in watchers)

    async with asyncio.timeout(10):
        await eventually(all_know)


BEHIND, AHEAD = "001", "038"


def changes_of(it: Live, number: str) -> dict[str, Callable[[], None]]:
    """What may happen to one of the pods and to what names it."""
    name, ip = f"p{number}", f"127.3.0.{int(number)}"

    def again() -> None:
        it.delete("pods", f"default/{name}")
        it.put("pods", pod(name, ip, app="again"))

    def renamed() -> None:
        it.delete("pods", f"default/{name}")
        it.put("pods", pod(f"{name}-new", ip))

    def moved() -> None:
        it.put("endpoints", endpoints(f"s{number}", {"p020": "127.3.0.20"}))
        it.put("endpointslices", endpointslice(f"s{number}", f"s{number}", {"p020": "127.3.0.20"}))

    return {
        "changed": lambda: it.put("pods", pod(name, ip, app="changed")),
        "deleted": lambda: it.delete("pods", f"default/{name}"),
        "added": lambda: it.put("pods", pod(f"{name}-new", "127.3.9.9")),
        "deleted and added": again,
        "in its slot another": renamed,
        "service changed": lambda: it.put("services", service(f"s{number}", app="changed")),
        "named by others": moved,
        "unnamed": lambda: it.delete("endpoints", f"default/s{number}", "default/web"),
    }


EVENTS = ("changed", "deleted", "added", "deleted and added", "in its slot another", "service changed", "named by others")


@pytest.mark.parametrize("role", ["pod", "endpoints", "endpointslice", "service"])
@pytest.mark.parametrize("where", [BEHIND, AHEAD])
@pytest.mark.parametrize("event", EVENTS)
async def test_an_event_during_a_pass_reaches_the_new_job_and_the_old(role: str, where: str, event: str, stage: Stage) -> None:
    """Behind the cursor and ahead of it: at the moment of the sync all is as the server has it."""
    async with live(many(), pace=SMALL) as it:
        first = await warmed(it, role, stage)
        slots = it.group._renderer.walk(0, set(), 1_000_000)[1]
        stage.at(slots // 2, lambda: settled_by(it, changes_of(it, where)[event]))
        second = it.watch("second", role, Work, node=True, namespace=True)
        await second.synced()
        assert stage.taken == 1
        it.check(second, first)


@pytest.mark.parametrize(("where", "calls"), [(BEHIND, 2), (AHEAD, 1)])
async def test_a_target_that_the_pass_has_yet_to_reach_is_made_once(where: str, calls: int, stage: Stage) -> None:
    """A change ahead of the cursor is left to the pass; one behind it replaces the work that was made."""
    async with live(many(), pace=SMALL) as it:
        await warmed(it, "pod", stage)
        made: Counter[str] = Counter()

        def make(labels: Labels) -> Work:
            made[labels["__meta_kubernetes_pod_name"]] += 1
            return Work(labels)

        slots = it.group._renderer.walk(0, set(), 1_000_000)[1]
        stage.at(slots // 2, lambda: settled_by(it, changes_of(it, where)["changed"]))
        second = it.watch("second", "pod", make, node=True, namespace=True)
        await second.synced()
        assert made.pop(f"p{where}") == calls
        assert set(made.values()) == {1}
        it.check(second)


async def test_an_event_at_every_step_of_a_pass(stage: Stage) -> None:
    """One change after each piece of the pass, in turn added, changed and deleted, here and there."""
    async with live(many(), pace=SMALL) as it:
        first = await warmed(it, "endpoints", stage)
        slots = it.group._renderer.walk(0, set(), 1_000_000)[1]
        rng = random.Random(1)
        for cursor in range(0, slots, 5 << PART_BITS):
            number = f"{rng.randrange(COUNT):03d}"
            stage.at(cursor, partial(settled_by, it, changes_of(it, number)[rng.choice(EVENTS)]))
        second = it.watch("second", "endpoints", Work, node=True, namespace=True)
        await second.synced()
        assert stage.taken > 20
        it.check(second, first)


async def test_a_job_stopped_in_a_pass_leaves_it(stage: Stage) -> None:
    """The others of the pass get all their targets; the stopped one has none, is told nothing, and is not synced."""
    async with live(many(), pace=SMALL) as it:
        await warmed(it, "pod", stage)
        made: list[Labels] = []
        leaver = it.watch("leaver", "pod", writing(made))
        stayer = it.watch("stayer", "pod", Work)
        waiting = asyncio.ensure_future(leaver.synced())

        async def stop() -> None:
            await leaver.stop()
            made.clear()

        stage.at(10, stop)
        await stayer.synced()
        with pytest.raises(NotSynced):
            await waiting
        it.check(stayer)
        assert (stage.taken, made) == (1, [])
        assert it.metrics()["subscribers{pod,pending}"] == 0


async def test_the_only_job_of_a_pass_stops_and_the_next_pass_begins_anew(stage: Stage) -> None:
    """A pass without jobs is no pass: who comes then starts at the first object."""
    async with live(many(), pace=SMALL) as it:
        await warmed(it, "pod", stage)
        rendered = it.rendered("pod")
        leaver = it.watch("leaver", "pod", Work)
        later: asyncio.Future[APIWatcher] = asyncio.get_running_loop().create_future()

        async def stop() -> None:
            await leaver.stop()
            later.set_result(it.watch("later", "pod", Work))

        stage.at(30, stop)
        job = await later
        await job.synced()
        it.check(job)
        assert it.rendered("pod") - rendered < 2 * COUNT


async def test_jobs_added_in_a_pass_wait_for_the_next_one(stage: Stage) -> None:
    """The pass under way is not theirs; they are registered together afterwards, by one rendering of each object."""
    async with live(many(), pace=SMALL) as it:
        await warmed(it, "pod", stage)
        rendered = it.rendered("pod")
        second = it.watch("second", "pod", Work, node=True, namespace=True)
        late: list[APIWatcher] = []

        async def add() -> None:
            late.extend(it.watch(f"late{number}", "pod", Work, node=True, namespace=True) for number in range(5))

        stage.at(30, add)
        await second.synced()
        assert not any(job.is_synced for job in late)
        await late[0].synced()
        assert all(job.is_synced for job in late)
        it.check(second, *late)
        assert it.rendered("pod") - rendered == 2 * COUNT


@pytest.mark.parametrize("role", ["pod", "endpoints", "endpointslice"])
async def test_a_relist_in_a_pass_changes_all_at_once(role: str, stage: Stage) -> None:
    """The history is gone in the middle of a pass, and with it every other pod: what the new list says counts, on both sides."""
    async with live(many(), pace=SMALL) as it:
        first = await warmed(it, role, stage)
        slots = it.group._renderer.walk(0, set(), 1_000_000)[1]

        async def relist() -> None:
            lists = len(it.asked("list"))
            it.server.control.faults([{"verb": "watch", "status": 410, "count": 4}])
            it.server.control.watches(ending="error", error={"code": 410})
            it.delete("pods", *(f"default/p{number:03d}" for number in range(0, COUNT, 2)))
            it.put("pods", *(pod(f"p{number:03d}", f"127.3.1.{number}", app="new") for number in range(1, COUNT, 4)))
            await eventually(lambda: len(it.asked("list")) > lists)
            await settled_by(it, lambda: None)

        stage.at(slots // 2, relist)
        second = it.watch("second", role, Work, node=True, namespace=True)
        await second.synced()
        assert stage.taken == 1
        await it.converge(second, first)
        assert it.metrics()["stale_resource_versions_total{pod}"] >= 1


@pytest.mark.parametrize("role", ["pod", "endpoints"])
async def test_a_watch_that_is_cut_in_a_pass_resumes(role: str, stage: Stage) -> None:
    """Half a line, a reset, a clean end: events go on where they were, without a list."""
    async with live(many(), pace=SMALL) as it:
        first = await warmed(it, role, stage)
        lists = len(it.asked("list"))

        def cut(ending: str, number: str) -> Step:
            async def step() -> None:
                it.server.control.watches(ending=ending, mid_line=ending != "end")
                await settled_by(it, changes_of(it, number)["changed"])

            return step

        for cursor, ending in enumerate(("end", "close", "reset")):
            stage.at((10 + 10 * cursor) << PART_BITS, cut(ending, f"{cursor:03d}"))
        second = it.watch("second", role, Work, node=True, namespace=True)
        await second.synced()
        assert stage.taken == 3
        it.check(second, first)
        assert len(it.asked("list")) == lists


# ---- what constructors do ----


async def test_a_constructor_that_stops_its_own_job(stage: Stage) -> None:
    """In the middle of the pass: it is called no more, and the job beside it gets everything."""
    async with live(many(), pace=SMALL) as it:
        await warmed(it, "pod", stage)
        made: list[Labels] = []
        stopping: list[asyncio.Task[None]] = []

        def make(labels: Labels) -> Work:
            made.append(labels)
            if len(made) == 10:
                stopping.append(asyncio.ensure_future(it.discovery.jobs["own"].stop()))
            return Work(labels)

        own = it.watch("own", "pod", make)
        beside = it.watch("beside", "pod", Work)
        with pytest.raises(NotSynced):
            await own.synced()
        await stopping[0]
        count = len(made)
        await beside.synced()
        it.check(beside)
        assert len(made) == count < COUNT


async def test_a_constructor_that_stops_the_other_jobs_and_starts_new_ones(stage: Stage) -> None:
    """Jobs before and after it in the pass, and one that works already, go; new ones of all roles come, all from one call."""
    async with live(many(), pace=SMALL) as it:
        first = await warmed(it, "pod", stage)
        tasks: list[asyncio.Task[None]] = []
        started: list[APIWatcher] = []

        def make(labels: Labels) -> Work:
            if not tasks:
                tasks.extend(asyncio.ensure_future(job.stop()) for job in (first, before, after))
                started.extend(it.watch(f"new {role}", role, Work, node=True) for role in ROLES)
            return Work(labels)

        before = it.watch("before", "pod", Work)
        middle = it.watch("middle", "pod", make)
        after = it.watch("after", "pod", Work)
        await middle.synced()
        for job in started:
            await job.synced()
        await asyncio.gather(*tasks)
        it.check(middle, *started)
        assert set(it.discovery.jobs) == {"middle", *(f"new {role}" for role in ROLES)}


async def test_a_constructor_that_changes_the_cluster_while_it_is_called(stage: Stage) -> None:
    """Each call changes the pod that it is about, once: every work is made again, and the last labels win."""
    async with live(many(), pace=SMALL) as it:
        await warmed(it, "pod", stage)
        touched: set[str] = set()

        def make(labels: Labels) -> Work:
            name = labels["__meta_kubernetes_pod_name"]
            if name not in touched:
                touched.add(name)
                it.put("pods", pod(name, labels["__meta_kubernetes_pod_ip"], app="touched"))
            return Work(labels)

        second = it.watch("second", "pod", make)
        await second.synced()
        await it.converge(second)
        assert len(touched) == COUNT
        assert sum('"touched"' in text for text in works_of(second)) == COUNT


async def test_a_constructor_that_raises_loses_only_its_own_targets(stage: Stage, caplog: pytest.LogCaptureFixture) -> None:
    """The failures are counted, and logged once; when the labels change it is asked again."""
    async with live(many(), pace=SMALL) as it:
        await warmed(it, "pod", stage)

        def make(labels: Labels) -> Work:
            if int(labels["__meta_kubernetes_pod_name"][1:]) % 2 and labels.get("__meta_kubernetes_pod_label_app") != "good":
                raise RuntimeError("no")
            return Work(labels)

        second = it.watch("second", "pod", make)
        beside = it.watch("beside", "pod", Work)
        await second.synced()
        it.check(beside)
        assert len(second.scrape_works()) == COUNT // 2
        assert second.status()["constructor_failures"] == COUNT // 2
        assert [record.name for record in caplog.records if "constructor" in record.message] == ["fastdisco"]
        reader = second.changes()
        await anext(reader)
        it.put("pods", pod("p001", "127.3.0.1", app="good"))
        change = await anext(reader)
        assert (change.kind, change.work.labels["__meta_kubernetes_pod_name"]) == ("added", "p001")


async def test_a_constructor_that_gives_none_makes_no_target(stage: Stage) -> None:
    """Neither works nor changes know of it."""
    async with live(many(), pace=SMALL) as it:
        await warmed(it, "pod", stage)
        job = it.watch("second", "pod", lambda labels: Work(labels) if labels["__meta_kubernetes_pod_name"] < "p010" else None)
        await job.synced()
        assert len(job.scrape_works()) == 10
        assert it.metrics()["scrape_works{pod}"] == COUNT + 10


# ---- everything together ----


class Chaos:
    """Random steps of cluster, server and jobs."""

    def __init__(self, it: Live, seed: int) -> None:
        self.it = it
        self.rng = random.Random(seed)
        self.jobs: dict[str, APIWatcher] = {}
        self.tasks: list[asyncio.Future[Any]] = []
        self.names = 0
        self.over = False
        self.actions = (
            *(self.change, self.change, self.change, self.flood, self.start),
            *(self.stop, self.cut, self.gone, self.resync, self.refuse),
        )

    def act(self) -> None:
        self.rng.choice(self.actions)()

    def change(self) -> None:
        rng = self.rng
        number = f"{rng.randrange(COUNT):03d}"
        changes_of(self.it, number)[rng.choice((*EVENTS, "unnamed"))]()
        if rng.random() < 0.3:
            self.it.put("nodes", node(f"n{rng.randrange(2)}", zone=str(rng.random())))
        if rng.random() < 0.2:
            self.it.put("namespaces", namespace("default", team=str(rng.random())))

    def flood(self) -> None:
        for _ in range(20):
            self.change()

    def start(self) -> None:
        self.names += 1
        role = self.rng.choice(ROLES)
        constructor = self.make if self.rng.random() < 0.3 else Work
        self.jobs[f"job{self.names}"] = self.it.watch(
            f"job{self.names}", role, constructor, node=self.rng.random() < 0.5, namespace=self.rng.random() < 0.5
        )

    def make(self, labels: Labels) -> Work:
        """A constructor that does something itself now and then."""
        if not self.over and self.rng.random() < 0.02:
            self.rng.choice((self.change, self.start, self.stop))()
        return Work(labels)

    def stop(self) -> None:
        if len(self.jobs) > 3:
            name = self.rng.choice(list(self.jobs))
            self.tasks.append(asyncio.ensure_future(self.jobs.pop(name).stop()))

    def cut(self) -> None:
        self.it.server.control.watches(ending=self.rng.choice(("end", "close", "reset")), mid_line=self.rng.random() < 0.5)

    def gone(self) -> None:
        self.it.server.control.watches(ending="error", error={"code": 410})
        self.it.server.control.compact()

    def resync(self) -> None:
        for job in list(self.jobs.values()):
            self.tasks.append(asyncio.ensure_future(job.resync()))

    def refuse(self) -> None:
        """Some of the next requests fail, each in its way."""
        faults: tuple[dict[str, Any], ...] = (
            {"status": 503},
            {"status": 410},
            {"status": 403},
            {"truncate": 2000, "ending": "close"},
            {"after": 3, "ending": "reset"},
        )
        self.it.server.control.faults([{**self.rng.choice(faults), "count": 2, "path": self.rng.choice(list(PATHS.values()))}])


@pytest.mark.parametrize("seed", range(20))
async def test_whatever_happens_in_whatever_order_ends_in_the_truth(seed: int, stage: Stage) -> None:
    """Changes, floods, cuts, relists, refusals, jobs that come and go, at random moments of passes and between them."""
    async with live(many(), pace=SMALL) as it:
        chaos = Chaos(it, seed)
        for _ in range(3):
            chaos.start()
        stage.group = it.group

        async def strike() -> None:
            if chaos.rng.random() < 0.3:
                chaos.act()

        for cursor in range(0, 2000, 7):
            stage.at((cursor % 200) << PART_BITS, strike)
        for _ in range(150):
            chaos.act()
            for _ in range(chaos.rng.randrange(30)):
                await asyncio.sleep(0)
        chaos.over = True
        stage.steps.clear()
        it.server.control.faults(clear=True)
        for job in list(chaos.jobs.values()):
            await job.resync()
        for job in list(chaos.jobs.values()):
            await job.synced()
        await settled_by(it, lambda: None)
        await it.converge(*chaos.jobs.values())
        await asyncio.gather(*chaos.tasks)
        assert len(it.group._subscribers) == len(chaos.jobs)
        assert stage.taken > 0
