"""What jobs share: watchers, one rendering of each object for all, joins, and how pending subscribers become working ones."""

from __future__ import annotations

import asyncio
import random
from functools import partial
from itertools import permutations
from typing import Any

import pytest

from fastdisco import APIWatcher, Labels
from fastdisco.config import ROLES
from fastdisco.group_watcher import Pace
from fastdisco.synthetic import Sizes

from .live import (
    PATHS,
    Item,
    Live,
    Work,
    addresses,
    endpoints,
    endpointslice,
    live,
    namespace,
    node,
    pod,
    reached,
    service,
    web,
    works_of,
    writing,
)
from .rig import eventually

ATTACHED: dict[str, Any] = {"node": True, "namespace": True}


async def all_roles(it: Live, **config: Any) -> list[APIWatcher]:
    jobs = [it.watch(role, role, Work, **config) for role in ROLES]
    for job in jobs:
        await job.synced()
    return jobs


# ---- start orders ----


async def test_every_order_of_lists_leads_to_the_same_targets() -> None:
    """Whatever is listed first, last or late: nothing is told before all is there, and then it is what the reference says."""
    plurals = ("pods", "services", "nodes", "namespaces", "endpoints")
    for order in permutations(plurals):
        async with live(web(4)) as it:
            gates = {plural: it.server.hold("list", PATHS[plural]) for plural in plurals}
            jobs = [it.watch(role, role, **ATTACHED) for role in ("endpoints", "endpointslice")]
            async with asyncio.timeout(5):
                await eventually(lambda: it.server.held == len(plurals))
                for plural in order:
                    assert not jobs[0].is_synced
                    gates[plural].set()
                    await eventually(partial(it.group.listed, plural if plural == "endpoints" else plural.removesuffix("s")))
            for job in jobs:
                await job.synced()
                assert len(job.scrape_works()) == 4
            it.check(*jobs)


async def test_every_order_of_jobs_leads_to_the_same_targets() -> None:
    """A role that starts while others run finds what they have, and they lose nothing."""
    for order in permutations(ROLES, 3):
        async with live(web(3)) as it:
            jobs = []
            for role in order:
                jobs.append(it.watch(role, role, **ATTACHED))
                await jobs[-1].synced()
            it.check(*jobs)


@pytest.mark.parametrize("seed", range(12))
async def test_objects_that_arrive_by_watch_in_any_order_lead_to_the_same_targets(seed: int) -> None:
    """A cluster that is empty at first, and then filled object by object in random order."""
    async with live() as it:
        jobs = await all_roles(it, **ATTACHED)
        arrivals = [(plural, item) for plural, items in web(5).items() for item in items]
        random.Random(seed).shuffle(arrivals)
        for plural, item in arrivals:
            it.put(plural, item)
            if plural == "endpoints":
                await it.handled("endpoints", "default", "web")
        await it.converge(*jobs)
        assert [len(job.scrape_works()) for job in jobs] == [2, 5, 1, 5, 5, 1]


async def test_a_made_cluster_gives_what_the_reference_says() -> None:
    """All roles at once, with everything attached, of a cluster with oddities."""
    async with live(Sizes(pods=300, oddities=0.2)) as it:
        jobs = await all_roles(it, **ATTACHED)
        it.check(*jobs)
        assert all(job.scrape_works() for job in jobs)


async def test_several_namespaces_have_all_their_targets() -> None:
    """Three namespaces, the same names in each, three ports a pod: nine targets, whatever is listed first."""
    names = ("a", "b", "c")
    objects = {"pods": [pod("p", f"127.3.0.{index}", namespace=name, ports=(1, 2, 3)) for index, name in enumerate((*names, "d"))]}
    for order in permutations(names):
        async with live(objects) as it:
            gates = {name: it.server.hold("list", f"/api/v1/namespaces/{name}/") for name in names}
            job = it.watch("job", "pod", namespaces=names)
            for name in order:
                assert not job.is_synced
                gates[name].set()
            await job.synced()
            it.check(job)
            assert len(job.scrape_works()) == 9


# ---- pending and working ----


async def test_labels_are_generated_once_for_all_pending_jobs() -> None:
    """Fifty jobs that wait for the same list are registered in one pass, and see their targets in the same moment."""
    async with live(web(40)) as it:
        gate = it.server.hold("list", PATHS["pods"])
        made: list[Labels] = []
        jobs = [it.watch(f"job{number}", "pod", writing(made)) for number in range(50)]
        async with asyncio.timeout(5):
            await eventually(lambda: it.server.held == 1)
        assert it.metrics()["subscribers{pod,pending}"] == 50
        gate.set()
        await jobs[0].synced()
        assert all(job.is_synced for job in jobs)
        it.check(*jobs)
        assert it.rendered("pod") == 40
        assert len(made) == 50 * 40
        assert len({id(labels) for labels in made}) == 40
        assert it.metrics()["subscribers{pod,working}"] == 50
        assert len(it.asked("list", PATHS["pods"])) == 1


async def test_labels_are_generated_once_a_profile() -> None:
    """Of jobs that attach nodes, namespaces, both or nothing there are four ways to see a pod, and no more."""
    async with live(web(40)) as it:
        profiles: list[dict[str, Any]] = [{"node": node, "namespace": namespace} for node in (False, True) for namespace in (False, True)]
        jobs = [it.watch(f"job{number}", "pod", **profiles[number % 4]) for number in range(16)]
        for job in jobs:
            await job.synced()
        it.check(*jobs)
        assert it.rendered("pod") == 4 * 40


async def test_a_job_that_comes_later_is_registered_without_a_request() -> None:
    """Its own pass renders once more, and calls no other job's constructor."""
    async with live(web(40)) as it:
        first = it.watch("first", "pod", Work)
        await first.synced()
        await it.watching(1)
        before, requests = first.scrape_works(), len(it.asked())
        second = it.watch("second", "pod", Work)
        await second.synced()
        it.check(first, second)
        assert first.scrape_works() is before
        assert it.rendered("pod") == 2 * 40
        assert len(it.asked()) == requests


async def test_a_job_waits_only_for_what_its_role_needs() -> None:
    """The list of services hangs: jobs of pods and nodes go on, endpoints wait."""
    async with live(web(3)) as it:
        gate = it.server.hold("list", PATHS["services"])
        waiting = it.watch("endpoints", "endpoints")
        quick = [it.watch(role, role) for role in ("pod", "node")]
        for job in quick:
            await job.synced()
        assert not waiting.is_synced
        gate.set()
        await waiting.synced()
        it.check(waiting, *quick)


async def test_watchers_start_on_demand() -> None:
    """Nodes and namespaces are asked for by the first job that shows them, and only then; each path once."""
    async with live(web(3)) as it:
        plain = it.watch("plain", "pod")
        await plain.synced()
        assert {request["path"] for request in it.asked("list")} == {PATHS["pods"]}
        wide = it.watch("wide", "pod", **ATTACHED)
        wider = it.watch("wider", "endpoints", **ATTACHED)
        await wide.synced()
        await wider.synced()
        it.check(plain, wide, wider)
        listed = [request["path"] for request in it.asked("list")]
        assert sorted(listed) == sorted(PATHS[plural] for plural in ("pods", "nodes", "namespaces", "endpoints", "services"))
        assert it.metrics()["url_watchers{node}"] == 1


# ---- one change, and what it costs ----


async def counted(it: Live, jobs: list[APIWatcher]) -> dict[str, int]:
    """Renderings since the last call, of the kinds that had any."""
    await it.converge(*jobs)
    now = {role: it.rendered(role) for role in ROLES}
    before: dict[str, int] = getattr(it, "_counted", {})
    it._counted = now  # type: ignore[attr-defined]
    return {role: count - before.get(role, 0) for role, count in now.items() if count != before.get(role, 0)}


def large() -> dict[str, list[Item]]:
    """A service of 100 pods in one Endpoints object and one slice, and another of 10 that nothing concerns."""
    objects = web(100)
    others = {f"o{number}": f"127.4.0.{number}" for number in range(10)}
    objects["pods"] += [pod(name, ip, node="n9", namespace="other") for name, ip in others.items()]
    objects["nodes"].append(node("n9"))
    objects["namespaces"].append(namespace("other"))
    objects["services"].append(service("other", namespace="other"))
    objects["endpoints"].append(endpoints("other", others, namespace="other"))
    objects["endpointslices"].append(endpointslice("other-1", "other", others, namespace="other"))
    return objects


@pytest.mark.parametrize(
    ("plural", "item", "cost"),
    [
        ("pods", pod("p007", "127.3.0.7", app="changed"), {"pod": 1, "endpoints": 1, "endpointslice": 1}),
        ("pods", pod("p007", "127.3.0.7", ready=False), {"pod": 1, "endpoints": 1, "endpointslice": 1}),
        ("pods", pod("alone", "127.3.9.9"), {"pod": 1}),
        ("services", service("web", app="changed"), {"service": 1, "endpoints": 1, "endpointslice": 1}),
        ("nodes", node("n1", "127.1.0.2", zone="changed"), {"node": 1, "pod": 50, "endpoints": 50, "endpointslice": 50}),
        ("namespaces", namespace("default", team="x"), {"pod": 100, "service": 1, "endpoints": 1, "endpointslice": 1, "ingress": 1}),
        ("endpoints", endpoints("web", {"p000": "127.3.0.0"}), {"endpoints": 1}),
        ("endpointslices", endpointslice("web-1", "web", {}), {"endpointslice": 1}),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
async def test_a_change_renders_just_what_shows_the_object(plural: str, item: Item, cost: dict[str, int]) -> None:
    """Of an Endpoints object with 100 addresses only the entries that name the pod; of nothing else anything."""
    async with live(large()) as it:
        jobs = await all_roles(it, **ATTACHED)
        await counted(it, jobs)
        it.put(plural, item)
        assert await counted(it, jobs) == cost


@pytest.mark.parametrize(
    ("plural", "key", "cost"),
    [
        ("pods", "default/p007", {"endpoints": 1, "endpointslice": 1}),
        ("services", "default/web", {"endpoints": 1, "endpointslice": 1}),
        ("nodes", "n1", {"pod": 50, "endpoints": 50, "endpointslice": 50}),
        ("namespaces", "default", {"pod": 100, "service": 1, "endpoints": 1, "endpointslice": 1, "ingress": 1}),
        ("endpoints", "default/web", {}),
    ],
)
async def test_a_deletion_renders_just_what_showed_the_object(plural: str, key: str, cost: dict[str, int]) -> None:
    """What is gone is rendered no more; who showed it shows it no longer."""
    async with live(large()) as it:
        jobs = await all_roles(it, **ATTACHED)
        await counted(it, jobs)
        it.delete(plural, key)
        assert await counted(it, jobs) == cost


async def test_what_nobody_attaches_costs_nothing() -> None:
    """A node changes, watched for its own sake: no pod is rendered again."""
    async with live(large()) as it:
        jobs = await all_roles(it)
        await counted(it, jobs)
        it.put("nodes", node("n1", "127.1.0.2", zone="changed"))
        assert await counted(it, jobs) == {"node": 1}


async def test_a_job_that_has_left_costs_nothing() -> None:
    """Nobody sees its profile any more, whether it left while it worked or while it waited to be registered."""
    async with live(large()) as it:
        jobs = await all_roles(it)
        for node in (True, False):
            gone = it.watch("gone", "pod", node=True, namespace=node)
            if node:
                await gone.synced()
            await gone.stop()
        await counted(it, jobs)
        it.put("pods", pod("alone", "127.3.9.9"))
        assert await counted(it, jobs) == {"pod": 1}


async def test_an_event_that_changes_nothing_of_use_costs_nothing() -> None:
    """Neither a rendering nor a constructor call nor a change."""
    async with live(web(3)) as it:
        calls: list[Labels] = []
        job = it.watch("job", "endpoints", writing(calls))
        pods = it.watch("pods", "pod", writing(calls))
        await job.synced()
        await pods.synced()
        calls.clear()
        version, rendered = job.version, it.rendered("endpoints")
        for number in range(5):
            touched = pod("p001", "127.3.0.1", app="web")
            touched["metadata"]["managedFields"] = [{"manager": str(number)}]
            touched["status"]["startTime"] = f"2020-01-01T00:00:0{number}Z"
            touched["spec"]["nodeName"] = "n1"
            it.put("pods", touched)
        it.put("pods", pod("mark", "127.3.9.9"))
        await it.converge(pods, job)
        assert [labels["__meta_kubernetes_pod_name"] for labels in calls] == ["mark"]
        assert (job.version, it.rendered("endpoints")) == (version, rendered)


async def test_one_pod_changed_many_times_is_rendered_as_often_as_it_is_seen() -> None:
    """Changes that arrive together cost one rendering; the last state is what stays."""
    async with live(web(3)) as it:
        job = it.watch("job", "pod", Work)
        await job.synced()
        before = it.rendered("pod")
        it.put("pods", *(pod("p000", "127.3.0.0", node="n0", step=str(step)) for step in range(500)))
        await it.converge(job)
        assert it.rendered("pod") - before < 50


# ---- scrape works through changes ----


def identities(job: APIWatcher) -> dict[str, int]:
    return {work.labels["__address__"]: id(work) for work in job.scrape_works()}


@pytest.mark.parametrize("role", ["endpoints", "endpointslice"])
async def test_works_of_unchanged_targets_stay_the_same_objects(role: str) -> None:
    """An address leaves the front, another comes: all others keep their works, and their constructor is not called."""
    async with live(web(20)) as it:
        calls: list[Labels] = []
        job = it.watch("job", role, writing(calls))
        await job.synced()
        before = identities(job)
        calls.clear()
        pods = {"new": "127.3.9.9"} | {f"p{number:03d}": f"127.3.0.{number}" for number in range(3, 20)}
        it.put("pods", pod("new", "127.3.9.9"))
        await it.handled("pod", "default", "new")
        it.put("endpoints", endpoints("web", pods))
        it.put("endpointslices", endpointslice("web-1", "web", pods))
        await it.converge(job)
        after = identities(job)
        assert {address: work for address, work in after.items() if address in before} == {
            address: work for address, work in before.items() if address in after
        }
        assert [labels["__address__"] for labels in calls] == ["127.3.9.9:8080"]


@pytest.mark.parametrize("rules", [None, ()])
@pytest.mark.parametrize("change", ["inserted", "removed", "reversed"])
@pytest.mark.parametrize("batch_targets", [1000, 70])
async def test_works_of_a_large_object_follow_its_addresses(change: str, rules: tuple[()] | None, batch_targets: int) -> None:
    """Also where it takes many batches: all is told when its last part is there, and no target goes and comes back."""
    pods = {f"p{number:04d}": f"127.3.{number // 250}.{number % 250 + 1}" for number in range(1200)}
    fewer = dict(list(pods.items())[1:])
    before, after, kinds = {
        "inserted": (fewer, pods, ["added"]),
        "removed": (pods, fewer, ["removed"]),
        "reversed": (pods, dict(reversed(pods.items())), []),
    }[change]
    objects = {
        "pods": [pod(name, ip) for name, ip in pods.items()],
        "services": [service("web")],
        "endpointslices": [endpointslice("web-1", "web", before)],
        "namespaces": [namespace("default")],
    }
    async with live(objects, pace=Pace(batch_targets=batch_targets)) as it:
        calls: list[Labels] = []
        config = it.config("endpointslice")
        job = it.discovery.watch("job", config, writing(calls), relabel_configs=rules)
        await job.synced()
        works = identities(job)
        calls.clear()
        changes = job.changes()
        await anext(changes)
        it.put("endpointslices", endpointslice("web-1", "web", after))
        it.put("endpointslices", endpointslice("web-2", "web", {"last": "127.3.9.9"}))
        told = [await anext(changes)]
        while told[-1].work.labels["__address__"] != "127.3.9.9:8080":
            told.append(await anext(changes))
        assert [one.kind for one in told] == [*kinds, "added"]
        assert len(calls) == kinds.count("added") + 1
        now = identities(job)
        assert {address: work for address, work in now.items() if address in works} == {
            address: work for address, work in works.items() if address in now
        }


async def test_works_of_a_pod_follow_its_containers() -> None:
    """A sidecar is put in front: the old container keeps its work."""
    async with live({"pods": [pod("p", "127.3.0.1", ports=(80, 81))]}) as it:
        job = it.watch("job", "pod", Work)
        await job.synced()
        before = identities(job)
        it.put("pods", pod("p", "127.3.0.1", ports=(79, 80, 81)))
        await it.converge(job)
        after = identities(job)
        assert after.items() > before.items()


async def test_a_changed_target_is_updated_and_not_removed() -> None:
    """The change tells the old and the new work; the pod's other target does not show up."""
    one = pod("p", "127.3.0.1", ports=(80, 81))
    async with live({"pods": [one]}) as it:
        job = it.watch("job", "pod", Work)
        await job.synced()
        old = {work.labels["__address__"]: work for work in job.scrape_works()}
        changed = pod("p", "127.3.0.1", ports=(80, 81))
        changed["spec"]["containers"][1]["image"] = "app:2"
        it.put("pods", changed)
        wanted = it.expected(job)
        seen = await reached(job, lambda works: works == wanted)
        assert [change.kind for change in seen][-1] in ("updated", "snapshot")
        new = {work.labels["__address__"]: work for work in job.scrape_works()}
        assert new["127.3.0.1:80"] is old["127.3.0.1:80"]
        assert new["127.3.0.1:81"] is not old["127.3.0.1:81"]


@pytest.mark.parametrize(
    ("plural", "item", "left"),
    [
        ("endpoints", {"metadata": {"name": "web", "namespace": "default"}}, {"endpoints": 0}),
        ("pods", {**pod("p000", ""), "status": {"phase": "Failed"}}, {"pod": 2}),
        ("pods", {**pod("p000", "127.3.0.0"), "status": {"phase": "Succeeded", "podIP": "127.3.0.0"}}, {"pod": 2}),
    ],
    ids=["scaled to zero", "evicted", "finished"],
)
async def test_targets_go_with_the_event_that_empties_their_object(plural: str, item: Item, left: dict[str, int]) -> None:
    """An object that is still there, but has nothing to scrape any more."""
    async with live(web(3)) as it:
        jobs = await all_roles(it)
        it.put(plural, item)
        await it.converge(*jobs)
        for role, count in left.items():
            assert len(it.discovery.jobs[role].scrape_works()) == count
        for plural, items in web(3).items():
            it.put(plural, *items)
        await it.converge(*jobs)
        assert [len(job.scrape_works()) for job in jobs] == [2, 3, 1, 3, 3, 1]


async def test_an_address_used_again_is_the_new_pods() -> None:
    """A finished pod keeps its address in the API; the pod that has it now is the only target."""
    done = pod("job-1", "127.3.0.9")
    done["status"]["phase"] = "Succeeded"
    async with live({"pods": [done]}) as it:
        job = it.watch("job", "pod")
        await job.synced()
        assert job.scrape_works() == ()
        it.put("pods", pod("web-1", "127.3.0.9"))
        await it.converge(job)
        assert [work["__meta_kubernetes_pod_name"] for work in job.scrape_works()] == ["web-1"]


async def test_a_pod_that_is_never_scheduled_disturbs_nobody() -> None:
    """Without a node and an address it is no target, however often it is touched, and nothing restarts."""
    async with live(web(10)) as it:
        job = it.watch("job", "pod", **ATTACHED)
        await job.synced()
        await it.watching(3)
        before, requests = works_of(job), len(it.asked())
        rendered = it.rendered("pod")
        for step in range(20):
            waiting = pod("waiting", "", node="", step=str(step))
            waiting["status"] = {"phase": "Pending"}
            it.put("pods", waiting)
        it.put("pods", pod("mark", "127.3.9.9"))
        await it.converge(job)
        it.delete("pods", "default/mark")
        await it.converge(job)
        assert works_of(job) == before
        assert it.rendered("pod") - rendered <= 20 + 1
        assert len(it.asked()) == requests


# ---- deletions found by a list ----


async def test_what_went_while_nobody_watched_goes_with_the_next_list() -> None:
    """349 of 350 pods and a node go, one pod comes back under its name: one list, and all that depended on them follows."""
    objects = web(350)
    async with live(objects) as it:
        jobs = [it.watch(role, role, Work, **ATTACHED) for role in ("pod", "endpoints", "endpointslice")]
        for job in jobs:
            await job.synced()
        keeper = {id(work): work for work in jobs[0].scrape_works() if work.labels["__meta_kubernetes_pod_name"] == "p349"}
        it.server.control.faults([{"verb": "watch", "status": 503}])
        it.server.control.watches(ending="close")
        it.delete("pods", *(f"default/p{number:03d}" for number in range(349)))
        it.delete("nodes", "n0")
        it.put("pods", pod("p000", "127.9.9.9", node="n1"))
        it.server.control.compact()
        it.server.control.faults(clear=True)
        await it.converge(*jobs)
        assert len(jobs[0].scrape_works()) == 2
        assert {id(work) for work in jobs[0].scrape_works()} > set(keeper)
        assert it.metrics()["objects_removed_total{pod}"] == 348


async def test_a_failed_list_changes_nothing() -> None:
    """Truncated, with null for items, or no list at all: known targets stay; a good list then brings what is new."""
    async with live(web(30)) as it:
        job = it.watch("job", "pod", Work)
        await job.synced()
        before = job.scrape_works()
        for ending in ("end", "close", "reset"):
            it.server.control.faults([{"path": PATHS["pods"], "verb": "list", "truncate": 3000, "ending": ending}])
            it.server.books.clear()
            await job.resync()
            async with asyncio.timeout(5):
                await eventually(lambda: len(it.asked("list", PATHS["pods"])) >= 3)
            assert job.scrape_works() is before
        it.server.control.faults(clear=True)
        it.put("pods", pod("new", "127.3.9.9"))
        await it.converge(job)
        assert set(job.scrape_works()) > set(before)


async def test_nothing_half_listed_is_published() -> None:
    """The first lists break off in the middle: the job is not synced by them, and what they brought counts only if it is confirmed."""
    async with live(web(30)) as it:
        it.server.control.faults([{"path": PATHS["pods"], "verb": "list", "truncate": 5000, "ending": "close"}])
        job = it.watch("job", "pod", Work)
        async with asyncio.timeout(5):
            await eventually(lambda: len(it.asked("list", PATHS["pods"])) >= 3)
            await eventually(lambda: it.group.store.objects("pod") > 0)
        assert not job.is_synced
        it.delete("pods", "default/p000")
        it.server.control.faults(clear=True)
        await job.synced()
        it.check(job)
        assert len(job.scrape_works()) == 29


async def test_a_constructor_that_blocks_for_long_is_made_up_for() -> None:
    """A hundred changes happen meanwhile, and then all is quiet: the last state is what stays."""
    async with live(web(3)) as it:
        blocked: list[str] = []

        def make(labels: Labels) -> Work:
            if labels.get("__meta_kubernetes_pod_label_step") == "go":
                blocked.extend(str(step) for step in range(100))
                it.put("pods", *(pod("p000", "127.3.0.0", node="n0", step=step) for step in blocked))
            return Work(labels)

        job = it.watch("job", "pod", make)
        await job.synced()
        it.put("pods", pod("p000", "127.3.0.0", step="go"))
        await reached(job, lambda works: any('_step":"99"' in text for text in works))
        it.check(job)
        assert len(blocked) == 100


# ---- the end of a group ----


async def test_a_group_stops_by_itself_when_nobody_uses_it() -> None:
    """Its watchers end, their sockets close, its gauges fall, its counters stay."""
    async with live(web(3), pace=Pace(linger_seconds=0.001)) as it:
        job = it.watch("job", "pod")
        await job.synced()
        added = it.metrics()["objects_added_total{pod}"]
        assert it.metrics()["group_watchers"] == 1
        await job.stop()
        async with asyncio.timeout(5):
            await eventually(lambda: not it.discovery._groups and it.server.books.open_sockets == 0)
            await eventually(lambda: it.metrics()["group_watchers"] == 0)
        metrics = it.metrics()
        assert metrics["url_watchers{pod}"] == metrics["objects{pod}"] == metrics["scrape_works{pod}"] == 0
        assert metrics["objects_added_total{pod}"] == added == 3


async def test_what_jobs_share_outlives_a_reload() -> None:
    """All jobs stop and start again at once: no request, no list, and the same targets."""
    async with live(web(3), pace=Pace(linger_seconds=60)) as it:
        for _ in range(5):
            jobs = await all_roles(it)
            it.check(*jobs)
            for job in jobs:
                await job.stop()
            await it.watching(len(ROLES))
        assert it.discovery._groups
        assert len(it.asked()) == 2 * len(ROLES)


async def test_a_group_that_is_used_again_does_not_stop() -> None:
    """The job that comes while a group lingers keeps it for good."""
    async with live(web(3), pace=Pace(linger_seconds=0.02)) as it:
        job = it.watch("job", "pod")
        await job.synced()
        group = it.group
        await job.stop()
        assert group._idle_timer is not None
        job = it.watch("job", "pod")
        await job.synced()
        assert group._idle_timer is None
        assert it.group is group
        assert addresses(job) == ["127.3.0.0:8080", "127.3.0.1:8080", "127.3.0.2:8080"]


async def test_status_tells_each_watcher() -> None:
    """Kind, path, state, objects, version, contact; a refusal with its reason."""
    async with live(web(3)) as it:
        it.server.control.faults([{"path": "/api/v1/nodes", "status": 403, "message": "nodes is forbidden"}])
        job = it.watch("job", "pod", node=True)
        await job.synced()
        await it.watching(1)
        watchers = {entry["kind"]: entry for entry in it.discovery.status()["groups"][0]["watchers"]}
        assert watchers["pod"]["path"] == PATHS["pods"]
        assert (watchers["pod"]["objects"], watchers["pod"]["listed"], watchers["pod"]["refused"]) == (3, True, None)
        assert watchers["pod"]["resource_version"] == str(it.server.store.version)
        assert (watchers["node"]["listed"], watchers["node"]["state"]) == (False, "refused")
        assert "nodes is forbidden" in watchers["node"]["refused"]
        assert it.discovery.status()["jobs"]["job"]["scrape_works"] == 3
