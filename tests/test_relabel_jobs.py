"""Jobs with relabeling rules: what their constructors get, which works they share, and what happens when the rules change."""

from __future__ import annotations

import asyncio
import random
import re
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from functools import partial
from typing import Any

import pytest
from prometheus_client import CollectorRegistry

from fastdisco import APIWatcher, ConfigError, KubernetesSDConfig, Labels, NotSynced, RelabelConfig, TargetDefaults
from fastdisco._relabel import Relabeling
from fastdisco.group_watcher import Pace

from . import reference
from .live import Item, Live, Work, endpoints, live, pod, reached, service, texts, web, works_of, writing
from .rig import eventually
from .test_registration import SMALL, Stage, settled_by

APP = "__meta_kubernetes_pod_label_app"
NAME = "__meta_kubernetes_pod_name"
DEFAULTS = {"__scheme__": "http", "__metrics_path__": "/metrics", "__scrape_interval__": "1m0s", "__scrape_timeout__": "10s"}
Rules = Sequence[RelabelConfig] | None


# ---- rules, and what they are to give ----


def keep(label: str, regex: str) -> RelabelConfig:
    return RelabelConfig("keep", (label,), regex=regex)


def drop(label: str, regex: str) -> RelabelConfig:
    return RelabelConfig("drop", (label,), regex=regex)


def replace(label: str, target: str, regex: str = "(.*)", replacement: str = "$1") -> RelabelConfig:
    return RelabelConfig("replace", (label,), target_label=target, regex=regex, replacement=replacement)


def labelmap(regex: str) -> RelabelConfig:
    return RelabelConfig("labelmap", regex=regex)


def constant(target: str, value: str) -> RelabelConfig:
    return RelabelConfig("replace", target_label=target, replacement=value)


def final(job: str, discovered: Mapping[str, str], rules: Rules) -> dict[str, str] | None:
    """The rules of this file, plainly; None: dropped."""
    labels = dict(discovered)
    if rules is None:
        return labels
    labels = DEFAULTS | {"job": job} | labels
    for rule in rules:
        value = ";".join(labels.get(name, "") for name in rule.source_labels)
        match = re.fullmatch(rule.regex or "(.*)", value, re.DOTALL)
        if rule.action in ("keep", "drop"):
            if bool(match) != (rule.action == "keep"):
                return None
        elif rule.action == "labelmap":
            found = ((re.fullmatch(rule.regex or "", name), text) for name, text in list(labels.items()))
            labels |= {which[1]: text for which, text in found if which}
        elif match:
            labels[rule.target_label] = match.expand((rule.replacement or "$1").replace("$", "\\"))
    labels = {name: text for name, text in labels.items() if text and not name.startswith(("__meta_", "__tmp"))}
    if "__address__" not in labels:
        return None
    address = labels["__address__"]
    return {"instance": address if ":" in address else f"{address}:80"} | labels


def wanted(it: Live, job: APIWatcher, *configs: KubernetesSDConfig) -> list[str]:
    """What a job has according to the server's own objects; with rules, each label set once."""
    found = [
        labels
        for config in configs
        for discovered in reference.targets(config.role, it.objects(config.namespaces.names))
        if (labels := final(job.name, discovered, job.relabel_configs)) is not None
    ]
    made = texts(found)
    return made if job.relabel_configs is None else sorted(set(made))


def applications(count: int, of: Sequence[str] = "abcd") -> dict[str, list[Item]]:
    """Pods of applications in turn."""
    return {"pods": [pod(f"p{number:03d}", f"127.3.{number >> 8}.{number & 255}", app=of[number % len(of)]) for number in range(count)]}


def names(works: Iterable[Any]) -> list[str]:
    return sorted((work.labels if isinstance(work, Work) else work).get("pod", "?") for work in works)


def has_duplicates(job: APIWatcher, count: int) -> bool:
    return bool(job.status()["duplicates"] == count)


async def calm(it: Live) -> None:
    """Until every job has been evaluated by its rules."""

    def done() -> bool:
        return all(not (group._pass or group._again or group._renderer.dirty or group._wake.is_set()) for group in groups)

    groups = it.discovery._groups.values()
    async with asyncio.timeout(20):
        await eventually(done)


POD = replace(NAME, "pod")


# ---- what a constructor gets ----


async def test_the_constructor_gets_what_survives_with_its_final_labels() -> None:
    """Once for each, as a scraper needs them; discovered labels stay available through explain."""
    async with live(applications(8)) as it:
        calls: list[Labels] = []
        port = replace("__address__", "__address__", "(.+):.+", "$1:9100")
        rules = [keep(APP, "a"), labelmap("__meta_kubernetes_pod_label_(.+)"), POD, port]
        job = it.discovery.watch("web", it.config("pod"), writing(calls), relabel_configs=rules)
        await job.synced()
        assert texts(calls) == texts(
            DEFAULTS
            | {"__address__": f"127.3.0.{number}:9100", "instance": f"127.3.0.{number}:9100"}
            | {"app": "a", "job": "web", "pod": f"p00{number}"}
            for number in (0, 4)
        )
        assert works_of(job) == texts(calls) == wanted(it, job, it.config("pod"))
        (explanation,) = await job.explain("default", "p004")
        assert texts(target.discovered for target in explanation.targets) == texts(
            labels for labels in reference.targets("pod", it.objects()) if labels[NAME] == "p004"
        )


async def test_without_a_constructor_targets_are_label_sets() -> None:
    """The same objects through snapshots, changes and scrape_works."""
    async with live(applications(8)) as it:
        rules: Any = (rule for rule in (keep(APP, "a|b"), POD))  # any iterable is taken, once
        job = it.discovery.watch("web", it.config("pod"), relabel_configs=rules)
        await job.synced()
        reader = job.changes()
        snapshot = await anext(reader)
        assert all(isinstance(work, Labels) for work in snapshot.works)
        assert works_of(job) == wanted(it, job, it.config("pod"))
        it.put("pods", pod("p000", "127.3.0.0", app="c"))
        change = await anext(reader)
        assert (change.kind, change.work in snapshot.works, change.work in job.scrape_works()) == ("removed", True, False)


async def test_no_rules_are_rules_too() -> None:
    """Defaults are added, __meta_ and __tmp labels go, instance is set; None leaves discovered labels as they are."""
    plain = pod("plain", "127.3.0.1", ports=(), note="x")
    plain["spec"]["containers"] = [{"name": "c", "image": "app"}]
    async with live({"pods": [plain]}) as it:
        bare = it.discovery.watch("bare", it.config("pod"))
        empty = it.discovery.watch("empty", it.config("pod"), relabel_configs=())
        defaults = TargetDefaults("https", "/probe", 15, "5s", {"module": ("http", "ignored"), "none": ()})
        set_up = it.discovery.watch("set up", it.config("pod"), relabel_configs=[constant("__tmp_x", "y")], target_defaults=defaults)
        for job in (bare, empty, set_up):
            await job.synced()
        common = {"__address__": "127.3.0.1"}
        assert dict(*bare.scrape_works()) == reference.targets("pod", it.objects())[0]
        assert dict(*empty.scrape_works()) == common | DEFAULTS | {"instance": "127.3.0.1:80", "job": "empty"}
        assert dict(*set_up.scrape_works()) == common | {"instance": "127.3.0.1:443", "job": "set up"} | {
            "__metrics_path__": "/probe",
            "__param_module": "http",
            "__scheme__": "https",
            "__scrape_interval__": "15s",
            "__scrape_timeout__": "5s",
        }


async def test_what_rules_leave_without_an_address_is_no_target() -> None:
    """It is counted as such, as is what is dropped by each rule."""
    async with live(applications(8)) as it:
        rules = [drop(APP, "a"), keep(APP, "b|c|d"), drop(APP, "d"), replace(APP, "__address__", "c", "")]
        job = it.discovery.watch("web", it.config("pod"), relabel_configs=[*rules, POD])
        await job.synced()
        assert names(job.scrape_works()) == ["p001", "p005"]
        status = job.status()
        assert (status["dropped_by_rule"], status["dropped_without_address"]) == ([2, 0, 2, 0, 0], 2)
        assert (status["dropped"], status["scrape_works"]) == (6, 2)
        it.put("pods", pod("p000", "127.3.0.0", app="d"))
        await eventually(lambda: job.status()["dropped_by_rule"][2] == 3)
        job.reconfigure(relabel_configs=[keep(APP, "c")])
        await calm(it)
        assert job.status()["dropped_by_rule"] == [6]
        job.reconfigure(relabel_configs=None)
        assert (job.status()["dropped"], job.status()["dropped_by_rule"]) == (0, [])


# ---- shared works ----

ONE = [constant("__address__", "127.0.0.1:1")]


async def test_targets_with_equal_final_labels_share_one_work() -> None:
    """It is made once, told once, counted with its duplicates, and stays until the last of them goes."""
    async with live(applications(4)) as it:
        calls: list[Labels] = []
        job = it.discovery.watch("web", it.config("pod"), writing(calls), relabel_configs=ONE)
        await job.synced()
        (work,) = job.scrape_works()
        assert (len(calls), job.status()["duplicates"], job.status()["scrape_works"], it.metrics()["scrape_works{pod}"]) == (1, 3, 1, 1)
        reader = job.changes()
        await anext(reader)
        for number, duplicates in ((1, 2), (0, 1), (3, 0)):
            it.delete("pods", f"default/p00{number}")
            await eventually(partial(has_duplicates, job, duplicates))
            assert job.scrape_works() == (work,)
        it.put("pods", pod("p009", "127.3.0.9", app="z"))
        await eventually(lambda: job.status()["duplicates"] == 1)
        it.delete("pods", "default/p002", "default/p009")
        change = await anext(reader)
        assert (change.kind, change.work, job.scrape_works(), len(calls)) == ("removed", work, (), 1)


async def test_works_are_shared_across_configurations() -> None:
    """Pods and the endpoints that name them are the same to a scraper: one work, that of the pods, until both are gone."""
    async with live(web(3), pace=Pace(linger_seconds=0)) as it:
        configs = [it.config("pod"), it.config("endpoints"), it.config("pod", namespaces=["default"])]
        job = it.discovery.watch("web", configs, Work, relabel_configs=())
        await job.synced()
        assert works_of(job) == wanted(it, job, *configs)
        metrics = it.metrics()
        assert metrics["scrape_works{pod}"] + metrics["scrape_works{endpoints}"] == len(job.scrape_works()) == 3
        assert job.status()["duplicates"] == 6
        before = set(job.scrape_works())
        reader = job.changes()
        await anext(reader)
        it.delete("endpoints", "default/web")
        await eventually(lambda: job.status()["duplicates"] == 3)
        it.delete("pods", "default/p000")
        change = await anext(reader)
        assert (change.kind, change.work.labels["instance"]) == ("removed", "127.3.0.0:8080")
        assert set(job.scrape_works()) == before - {change.work}
        it.put("endpoints", endpoints("web", {"p001": "127.3.0.1", "p002": "127.3.0.2"}))
        await eventually(partial(has_duplicates, job, 4))
        it.delete("pods", "default/p001", "default/p002")
        await eventually(partial(has_duplicates, job, 0))
        assert sorted(value for name, value in it.metrics().items() if name.startswith("scrape_works")) == [0, 0, 2]
        it.delete("endpoints", "default/web")
        await reached(job, lambda works: not works)
        assert {value for name, value in it.metrics().items() if name.startswith("scrape_works")} == {0}


async def test_nothing_is_merged_where_discovered_labels_are_shown() -> None:
    """Without rules equal targets are as many as there are; with rules one, and back again."""
    async with live(applications(3)) as it:
        configs = [it.config("pod"), it.config("pod")]
        job = it.discovery.watch("web", configs, Work)
        await job.synced()
        assert (len(job.scrape_works()), job.status()["duplicates"]) == (6, 0)
        for rules, works, duplicates in (((), 3, 3), (None, 6, 0), (ONE, 1, 5)):
            job.reconfigure(relabel_configs=rules)
            await calm(it)
            assert works_of(job) == wanted(it, job, *configs)
            status = job.status()
            assert (len(job.scrape_works()), status["scrape_works"], status["duplicates"]) == (works, works, duplicates)
            assert it.metrics()["scrape_works{pod}"] == works


async def test_the_gauge_of_shared_works_falls_to_nothing() -> None:
    """With a job that stops, whatever it shares and however many registries are read."""
    registry = CollectorRegistry()
    async with live(applications(6), registry=registry) as it:
        jobs = [it.discovery.watch(name, [it.config("pod")] * 2, relabel_configs=[replace(APP, "__address__")]) for name in "xy"]
        for job in jobs:
            await job.synced()
        assert it.metrics()["scrape_works{pod}"] == sum(len(job.scrape_works()) for job in jobs) == 8
        await jobs[0].stop()
        assert it.metrics()["scrape_works{pod}"] == len(jobs[1].scrape_works()) == 4
        await jobs[1].stop()
        assert it.metrics()["scrape_works{pod}"] == 0


async def test_a_stopped_job_holds_no_work() -> None:
    """Whoever keeps the job keeps neither works nor labels; also not those of an object whose works were being made."""
    async with live({"pods": [pod("a", "127.3.0.1"), pod("b", "127.3.0.2", ports=range(1, 200))]}, pace=Pace(slice_seconds=0)) as it:
        made: list[Labels] = []
        stopping: list[asyncio.Task[None]] = []

        def make(labels: Labels) -> Work:
            made.append(labels)
            if len(made) == 10:
                stopping.append(asyncio.ensure_future(it.discovery.jobs["web"].stop()))
            return Work(labels)

        job = it.discovery.watch("web", [it.config("pod")] * 2, make, relabel_configs=())
        with pytest.raises(NotSynced):
            await job.synced()
        await stopping[0]
        makes = job._makes
        assert 10 <= len(made) < 200
        assert len(makes) == 0


# ---- a target changes ----


async def test_a_change_of_the_final_labels_of_the_only_target_is_an_update() -> None:
    """Of one that shares its work it is an addition; the other keeps what it has."""
    async with live(applications(3, "aab")) as it:
        job = it.discovery.watch("web", it.config("pod"), Work, relabel_configs=[replace(APP, "__address__")])
        await job.synced()
        before = {work.labels["__address__"]: work for work in job.scrape_works()}
        reader = job.changes()
        await anext(reader)
        it.put("pods", pod("p002", "127.3.0.2", app="c"))
        change = await anext(reader)
        assert (change.kind, change.old, change.work.labels["__address__"]) == ("updated", before["b"], "c")
        it.put("pods", pod("p000", "127.3.0.0", app="d"))
        change = await anext(reader)
        assert (change.kind, change.work.labels["__address__"]) == ("added", "d")
        assert before["a"] in job.scrape_works()


async def test_unchanged_final_labels_keep_their_work_when_discovered_labels_change() -> None:
    """Nothing is made, nothing is told, and the version stays."""
    async with live(applications(4)) as it:
        calls: list[Labels] = []
        job = it.discovery.watch("web", it.config("pod"), writing(calls), relabel_configs=[keep(APP, "a|b"), POD])
        await job.synced()
        before, version = job.scrape_works(), job.version
        calls.clear()
        rendered = it.rendered("pod")
        for number, app in enumerate("ab"):
            it.put("pods", pod(f"p00{number}", f"127.3.0.{number}", app=app, other=str(number), ready=False))
        it.put("pods", pod("p003", "127.3.0.3", app="d", other="x"))
        await eventually(lambda: it.rendered("pod") == rendered + 3)
        await calm(it)
        assert (calls, job.version, job.scrape_works() is before) == ([], version, True)


async def test_a_constructor_that_raises_or_refuses_where_works_are_shared() -> None:
    """A failing one leaves each target the work that it had, one that gives None leaves none; both are asked again for new labels."""
    async with live(applications(6, "aabbcc")) as it:
        asked: Counter[str] = Counter()
        bad = {"b"}

        def make(labels: Labels) -> Work | None:
            asked[labels["__address__"]] += 1
            if labels["__address__"] in bad:
                raise ValueError("no")
            return None if labels["__address__"] == "c" else Work(labels)

        job = it.discovery.watch("web", it.config("pod"), make, relabel_configs=[replace(APP, "__address__")])
        await job.synced()
        (work,) = job.scrape_works()
        assert asked == {"a": 1, "b": 2, "c": 1}
        assert (job.status()["constructor_failures"], job.status()["duplicates"]) == (2, 1)
        reader = job.changes()
        await anext(reader)
        it.put("pods", pod("p000", "127.3.0.0", app="b"), pod("p001", "127.3.0.1", app="b"), pod("p002", "127.3.0.2", app="d"))
        change = await anext(reader)
        assert (change.kind, change.work.labels["__address__"]) == ("added", "d")
        assert set(job.scrape_works()) == {work, change.work}
        bad.clear()
        it.put("pods", pod("p000", "127.3.0.0", app="e"))
        assert (await anext(reader)).kind == "added"
        it.put("pods", pod("p001", "127.3.0.1", app="b", touched="x"))  # the same final labels: nobody asks
        it.put("pods", pod("p001", "127.3.0.1", app="f"))
        change = await anext(reader)
        assert (change.kind, change.old, change.work.labels["__address__"]) == ("updated", work, "f")
        assert asked["b"] == 4
        assert it.metrics()["scrape_works{pod}"] == len(job.scrape_works()) == 3


# ---- new rules ----

SETS: dict[str, Rules] = {
    "a, b": [keep(APP, "a|b"), POD],
    "b, c": [keep(APP, "b|c"), POD],
    "none": [keep(APP, "x")],
    "all": [POD],
    "empty": [],
    "shared": [keep(APP, "a|b"), *ONE],
    "discovered": None,
}


async def test_new_rules_are_evaluated_from_the_cache() -> None:
    """From each to each: no request is sent, works of unchanged labels stay, the reader is told just the differences."""
    async with live(applications(12), pace=Pace(batch_targets=5)) as it:
        calls: list[Labels] = []
        job = it.discovery.watch("web", it.config("pod"), writing(calls), relabel_configs=SETS["all"])
        await job.synced()
        await it.watching(1)
        asked = len(it.asked())
        reader = job.changes()
        there = set((await anext(reader)).works)
        for before in SETS:
            for after in SETS:
                for name in (before, after):
                    old = {work.labels: work for work in job.scrape_works()}
                    calls.clear()
                    job.reconfigure(relabel_configs=SETS[name])
                    await calm(it)
                    new = {work.labels: work for work in job.scrape_works()}
                    assert works_of(job) == wanted(it, job, it.config("pod"))
                    assert {labels for labels in old if labels in new} == {labels for labels in old if old[labels] is new.get(labels)}
                    assert texts(calls) == texts(labels for labels in new if labels not in old)
                    told: Counter[str] = Counter()
                    while there != set(new.values()):
                        change = await anext(reader)
                        told[change.kind] += 1
                        there.discard(change.old if change.kind == "updated" else change.work)
                        there |= {change.work} if change.kind != "removed" else set()
                    assert told["added"] + told["updated"] == len(new.keys() - old.keys())
                    assert told["removed"] + told["updated"] == len(old.keys() - new.keys())
                    assert not reader._waiting
        assert len(it.asked()) == asked


async def test_targets_that_survive_both_rules_are_updated() -> None:
    """With their old works, one by one."""
    async with live(applications(4)) as it:
        job = it.discovery.watch("web", it.config("pod"), Work, relabel_configs=[keep(APP, "a|b"), POD])
        await job.synced()
        before = set(job.scrape_works())
        reader = job.changes()
        await anext(reader)
        job.reconfigure(relabel_configs=[keep(APP, "a|b"), POD, constant("team", "red")])
        changes = [await anext(reader), await anext(reader)]
        assert {change.kind for change in changes} == {"updated"}
        assert {change.old for change in changes} == before
        assert {change.work for change in changes} == set(job.scrape_works())
        assert [change.version for change in changes] == [job.version - 1, job.version]


async def test_a_rule_that_makes_no_sense_changes_nothing() -> None:
    """It is named with its key; so it is when a job starts, which then is none."""
    async with live(applications(4)) as it:
        job = it.discovery.watch("web", it.config("pod"), Work, relabel_configs=SETS["a, b"])
        await job.synced()
        before, version = job.scrape_works(), job.version
        cases: list[tuple[Any, str]] = [
            ([POD, keep(APP, "(")], r"^relabel_configs\[1\]\.regex: "),
            ([RelabelConfig("hashmod", (APP,), target_label="x")], r"^relabel_configs\[0\]\.modulus: missing"),
            ([POD, {"action": "keep"}], r"^relabel_configs\[1\]: must be a RelabelConfig, not dict"),
        ]
        for rules, message in cases:
            with pytest.raises(ConfigError, match=message):
                job.reconfigure(relabel_configs=rules, constructor=None)
            with pytest.raises(ConfigError, match=message):
                it.discovery.watch("other", it.config("pod", namespaces=["x"]), relabel_configs=rules)
        await calm(it)
        assert list(it.discovery.jobs) == ["web"]
        assert len(it.discovery._groups) == 1
        assert (job.scrape_works() is before, job.version, job.relabel_configs) == (True, version, tuple(SETS["a, b"] or ()))
        it.put("pods", pod("p001", "127.3.0.9", app="a"))
        await reached(job, lambda works: works == wanted(it, job, it.config("pod")))
        assert all(isinstance(work, Work) for work in job.scrape_works())


async def test_what_is_not_given_stays() -> None:
    """A new constructor is for new label sets; new rules leave the constructor; both at once; rules from a generator."""
    async with live(applications(4)) as it:
        job = it.discovery.watch("web", it.config("pod"), Work, relabel_configs=SETS["a, b"])
        await job.synced()
        before = job.scrape_works()
        job.reconfigure(constructor=lambda labels: ("new", labels))
        await calm(it)
        assert job.scrape_works() is before
        job.reconfigure(relabel_configs=(rule for rule in SETS["b, c"] or ()))
        await calm(it)
        assert sorted(type(work).__name__ for work in job.scrape_works()) == ["Work", "tuple"]
        job.reconfigure(constructor=None, relabel_configs=SETS["all"])
        await calm(it)
        assert sorted(type(work).__name__ for work in job.scrape_works()) == ["Labels", "Labels", "Work", "tuple"]


async def test_new_rules_before_the_first_sync_are_those_of_the_first_sync() -> None:
    """Where the server has not answered yet, the old rules are never used."""
    async with live(applications(4)) as it:
        gate = it.server.hold("list", "/api/v1/pods")
        calls: list[Labels] = []
        job = it.discovery.watch("web", it.config("pod"), writing(calls), relabel_configs=SETS["a, b"])
        await eventually(lambda: it.server.held)
        job.reconfigure(relabel_configs=SETS["b, c"])
        gate.set()
        await job.synced()
        assert works_of(job) == texts(calls) == wanted(it, job, it.config("pod"))


# ---- new rules while something happens; each turn of the group is a step of the test ----


@pytest.fixture
def stage(monkeypatch: pytest.MonkeyPatch) -> Stage:
    made = Stage()
    monkeypatch.setattr("fastdisco.group_watcher._Turn", made)
    return made


async def began(it: Live, stage: Stage, rules: Rules = (), **options: Any) -> APIWatcher:
    """A job that has synced, whose next passes are those of the stage."""
    job = it.discovery.watch("web", it.config("pod"), Work, relabel_configs=rules, **options)
    await job.synced()
    stage.group = it.group
    return job


async def test_new_rules_in_the_first_pass_hold_for_all_of_it(stage: Stage) -> None:
    """What the pass has left behind was evaluated by the old ones: the sync waits until it is done again."""
    async with live(applications(40), pace=SMALL) as it:
        await began(it, stage)
        job = it.discovery.watch("late", it.config("pod"), Work, relabel_configs=SETS["a, b"])

        async def change() -> None:
            assert not job.is_synced
            job.reconfigure(relabel_configs=SETS["b, c"])

        stage.at(20, change)
        await job.synced()
        assert stage.taken == 1
        assert works_of(job) == wanted(it, job, it.config("pod"))


async def test_a_sync_waits_for_what_new_rules_have_yet_to_reach(stage: Stage) -> None:
    """Also where another configuration of the job is the last to be registered."""
    async with live(applications(40), pace=SMALL) as it:
        gate = it.server.hold("list", "/api/v1/namespaces/default/services")
        configs = [it.config("pod"), it.config("service", namespaces=["default"])]
        job = it.discovery.watch("web", configs, Work, relabel_configs=SETS["a, b"])
        (stage.group, pods), (_, services) = job._subscribers
        await eventually(lambda: pods.working)

        async def register() -> None:
            gate.set()
            await eventually(lambda: services.working)
            assert not job.is_synced

        stage.at(20, register)
        job.reconfigure(relabel_configs=SETS["b, c"])
        await job.synced()
        assert stage.taken == 1
        assert works_of(job) == wanted(it, job, *configs)


@pytest.mark.parametrize("cursor", [0, 1, 15, 39])
async def test_changes_of_the_cluster_in_a_re_evaluation_are_not_lost(cursor: int, stage: Stage) -> None:
    """Behind the cursor and ahead of it: pods change, come and go."""
    async with live(applications(40), pace=SMALL) as it:
        job = await began(it, stage, SETS["a, b"])

        def change() -> None:
            for number in (2, 37):
                it.put("pods", pod(f"p{number:03d}", f"127.3.1.{number}", app="b"))
                it.delete("pods", f"default/p{number + 1:03d}")
                it.put("pods", pod(f"new{number}", f"127.3.2.{number}", app="c"))

        stage.at(cursor, lambda: settled_by(it, change))
        job.reconfigure(relabel_configs=SETS["b, c"])
        await eventually(lambda: stage.taken)
        await calm(it)
        assert works_of(job) == wanted(it, job, it.config("pod"))


async def test_several_new_rules_in_a_row_end_with_the_last(stage: Stage) -> None:
    """At the same time, and each in the middle of the pass of the one before; readers end where the works are."""
    async with live(applications(40), pace=SMALL) as it:
        job = await began(it, stage, SETS["a, b"])
        beside = it.discovery.watch("beside", it.config("pod"), Work, relabel_configs=SETS["b, c"])
        await beside.synced()
        version = beside.version
        reader = job.changes()
        there = set((await anext(reader)).works)
        order = list(SETS)

        def to(name: str) -> Any:
            async def step() -> None:
                job.reconfigure(relabel_configs=SETS[name])

            return step

        for number, name in enumerate(order):
            stage.at(10 + 4 * number, to(name))
        stage.at(20, to("b, c"))
        for name in ("all", "none", "shared"):
            job.reconfigure(relabel_configs=SETS[name])
        await eventually(lambda: stage.taken == len(order) + 1)
        await calm(it)
        assert works_of(job) == wanted(it, job, it.config("pod"))
        while there != set(job.scrape_works()):
            change = await anext(reader)
            there.discard(change.old if change.kind == "updated" else change.work)
            there |= {change.work} if change.kind != "removed" else set()
        assert not reader._waiting
        assert beside.version == version


async def test_a_job_that_stops_in_its_re_evaluation(stage: Stage) -> None:
    """Nothing more is made or told; the next jobs are not disturbed, and the gauges fall."""
    async with live(applications(40), pace=SMALL) as it:
        job = await began(it, stage, SETS["none"])
        calls: list[Labels] = []
        reader = job.changes()
        await anext(reader)

        async def stop() -> None:
            await job.stop()
            calls.clear()

        stage.at(20, stop)
        job.reconfigure(relabel_configs=SETS["all"], constructor=writing(calls))
        await eventually(lambda: stage.taken)
        later = it.discovery.watch("later", it.config("pod"), Work, relabel_configs=SETS["b, c"])
        await later.synced()
        assert works_of(later) == wanted(it, later, it.config("pod"))
        assert calls == []
        with pytest.raises(NotSynced):
            job.scrape_works()
        assert {change.kind async for change in reader} == {"added"}
        assert it.metrics()["scrape_works{pod}"] == len(later.scrape_works())
        assert it.metrics()["subscribers{pod,working}"] == 1
        job.reconfigure(relabel_configs=SETS["a, b"])  # of no effect any more


async def test_a_job_that_stops_before_its_re_evaluation_costs_nothing() -> None:
    """There is no pass for a job that is gone."""
    async with live(applications(40)) as it:
        other = it.discovery.watch("other", it.config("pod"), relabel_configs=())
        job = it.discovery.watch("web", it.config("pod"), relabel_configs=SETS["a, b"])
        await job.synced()
        rendered = it.rendered("pod")
        job.reconfigure(relabel_configs=SETS["b, c"])
        await job.stop()
        it.put("pods", pod("p000", "127.3.9.9", app="x"))
        await reached(other, lambda works: any("127.3.9.9" in one for one in works))
        await calm(it)
        assert it.rendered("pod") == rendered + 1


async def test_a_relist_in_a_re_evaluation(stage: Stage) -> None:
    """The history is gone, and with it some of the pods."""
    async with live(applications(40), pace=SMALL) as it:
        job = await began(it, stage, SETS["a, b"])

        async def relist() -> None:
            lists = len(it.asked("list"))
            it.server.control.faults([{"verb": "watch", "status": 410, "count": 2}])
            it.server.control.watches(ending="error", error={"code": 410})
            it.delete("pods", *(f"default/p{number:03d}" for number in range(0, 40, 3)))
            it.put("pods", *(pod(f"p{number:03d}", f"127.3.1.{number}", app="c") for number in range(1, 40, 6)))
            await eventually(lambda: len(it.asked("list")) > lists)
            await settled_by(it, lambda: None)

        stage.at(20, relist)
        job.reconfigure(relabel_configs=SETS["b, c"])
        await eventually(lambda: stage.taken)
        await reached(job, lambda works: works == wanted(it, job, it.config("pod")))


async def test_a_constructor_that_reconfigures_its_own_job(stage: Stage) -> None:
    """In the middle of a pass over the old rules: the new ones win."""
    async with live(applications(40), pace=SMALL) as it:
        await began(it, stage)
        made: list[Labels] = []

        def make(labels: Labels) -> Work:
            made.append(labels)
            if len(made) == 5:
                job.reconfigure(relabel_configs=None)
            if len(made) == 10:
                job.reconfigure(relabel_configs=SETS["shared"])
            return Work(labels)

        job = it.discovery.watch("own", it.config("pod"), make, relabel_configs=SETS["all"])
        await job.synced()
        await calm(it)
        assert works_of(job) == wanted(it, job, it.config("pod"))
        assert it.metrics()["scrape_works{pod}"] == 40 + 1


# ---- many jobs ----


async def test_a_hundred_jobs_cost_one_rendering_of_each_object_and_what_they_keep() -> None:
    """2,000 pods of 100 applications, each kept by one job; one more job does the work of one."""
    apps = [f"app{number}" for number in range(100)]
    async with live(applications(2000, apps)) as it:
        calls: Counter[str] = Counter()

        def make(labels: Labels) -> Labels:
            calls[labels["job"]] += 1
            return labels

        jobs = [it.discovery.watch(app, it.config("pod"), make, relabel_configs=[keep(APP, app), POD]) for app in apps]
        for job in jobs:
            await job.synced()
        assert it.rendered("pod") == 2000
        assert calls == dict.fromkeys(apps, 20)
        assert [len(job.scrape_works()) for job in jobs] == [20] * 100
        assert it.metrics()["scrape_works{pod}"] == 2000
        # the filter of each has seen each application once
        assert {job.status()["dropped"] for job in jobs} == {1980}
        assert {(job._relabeling.seen, job._relabeling.evaluated) for job in jobs if job._relabeling} == {(2000, 100 + 20)}
        for job in jobs[::33]:
            assert works_of(job) == wanted(it, job, it.config("pod"))
        before = [job.scrape_works() for job in jobs]
        requests = len(it.asked("list"))
        one_more = it.discovery.watch("one more", it.config("pod"), make, relabel_configs=[keep(APP, "app7"), POD])
        await one_more.synced()
        assert it.rendered("pod") == 4000
        assert (calls["one more"], sum(calls.values()), len(it.asked("list"))) == (20, 2020, requests)
        assert all(job.scrape_works() is works for job, works in zip(jobs, before, strict=True))
        it.put("pods", pod("p000", "127.3.9.9", app="app7"))
        await reached(one_more, lambda works: len(works) == 21)
        await calm(it)
        assert it.rendered("pod") == 4001
        assert {app: count for app, count in calls.items() if count != 20} == {"app7": 21, "one more": 21}
        assert (len(jobs[0].scrape_works()), len(jobs[7].scrape_works())) == (19, 21)


# ---- everything together ----

RULES: list[Rules] = [
    *SETS.values(),
    [drop(APP, "a"), replace(APP, "__address__", "b", "b:1"), labelmap("__meta_kubernetes_pod_label_(.+)")],
    [keep("__meta_kubernetes_namespace", "default"), replace("__address__", "__address__", "(.+):.+", "$1:1")],
    [replace(APP, "__address__"), replace(NAME, "__tmp_x"), drop("__tmp_x", ".*7")],
    [keep("__meta_kubernetes_service_name", ".+"), replace("__meta_kubernetes_service_label_app", "app")],
]


class Schedule:
    """Random steps, and a reader of each job from its start."""

    def __init__(self, it: Live, seed: int) -> None:
        self.it = it
        self.rng = random.Random(seed)
        self.jobs: dict[str, tuple[APIWatcher, list[KubernetesSDConfig], Any, list[Any]]] = {}
        self.tasks: list[asyncio.Future[Any]] = []
        self.failing = True
        self.names = 0

    def act(self) -> None:
        self.rng.choice((self.change, self.change, self.change, self.start, self.stop, self.reconfigure, self.reconfigure, self.cut))()

    def change(self) -> None:
        for _ in range(self.rng.choice((1, 1, 10))):
            number = self.rng.randrange(30)
            name, ip = f"p{number:03d}", f"127.3.0.{number}"
            match self.rng.randrange(5):
                case 0:
                    self.it.delete("pods", f"default/{name}")
                case 1:
                    members = {f"p{other:03d}": f"127.3.0.{other}" for other in self.rng.sample(range(30), 4)}
                    self.it.put("endpoints", endpoints(self.rng.choice("st"), members))
                case 2:
                    self.it.put("services", service(self.rng.choice("st"), app=self.rng.choice("abc")))
                case _:
                    self.it.put("pods", pod(name, ip, app=self.rng.choice("abcd"), ports=(8080, 8081)[: self.rng.randint(1, 2)]))

    def make(self, labels: Labels) -> Work | None:
        """Now and then it fails."""
        if self.failing and self.rng.random() < 0.05:
            raise RuntimeError("no")
        return Work(labels)

    def start(self) -> None:
        self.names += 1
        roles = self.rng.choice(("pod", "pod", "endpoints", "pod endpoints", "pod pod"))
        configs = [self.it.config(role) for role in roles.split()]
        constructor = self.rng.choice((None, Work, self.make))
        job = self.it.discovery.watch(f"job{self.names}", configs, constructor, relabel_configs=self.rng.choice(RULES))
        self.jobs[job.name] = (job, configs, job.changes(), [])

    def stop(self) -> None:
        if len(self.jobs) > 3:
            self.tasks.append(asyncio.ensure_future(self.jobs.pop(self.rng.choice(list(self.jobs)))[0].stop()))

    def reconfigure(self) -> None:
        if self.jobs:
            job, *_ = self.jobs[self.rng.choice(list(self.jobs))]
            job.reconfigure(relabel_configs=self.rng.choice(RULES))

    def cut(self) -> None:
        gone = self.rng.random() < 0.3
        self.it.server.control.watches(**({"ending": "error", "error": {"code": 410}} if gone else {"ending": "reset"}))

    async def read(self, job: APIWatcher, reader: Any, there: list[Any]) -> None:
        """What the changes say is there, until it is what the job has."""
        async with asyncio.timeout(10):
            while sorted(map(id, there)) != sorted(map(id, job.scrape_works())):
                change = await anext(reader)
                if change.kind == "snapshot":
                    there[:] = change.works
                    continue
                if change.kind != "added":
                    there.remove(change.old if change.kind == "updated" else change.work)
                if change.kind != "removed":
                    there.append(change.work)


@pytest.mark.parametrize("seed", range(16))
async def test_whatever_happens_ends_in_what_the_rules_say(seed: int, stage: Stage) -> None:
    """Changes of the cluster, of rules and of jobs, cuts and failing constructors at random moments of passes and between them."""
    async with live(applications(30), pace=Pace(slice_seconds=0, batch_targets=3)) as it:
        schedule = Schedule(it, seed)
        for _ in range(3):
            schedule.start()
        stage.group = it.group
        for _ in range(60):
            schedule.act()
            for _ in range(schedule.rng.choice((0, 1, 3, 30))):
                await asyncio.sleep(0)
        schedule.failing = False
        for number in range(30):  # what failed is made now: its labels change
            it.put("pods", pod(f"p{number:03d}", f"127.4.0.{number}", app="abcd"[number % 4]))
        members = {f"p{number:03d}": f"127.4.0.{number}" for number in range(10)}
        it.put("endpoints", endpoints("s", members), endpoints("t", members, ports=(9090,)))
        await asyncio.gather(*schedule.tasks)
        for job, configs, *_ in schedule.jobs.values():
            await job.synced()
            if job._makes.constructor == schedule.make:
                job.reconfigure(relabel_configs=[constant("x", "y")])
                await calm(it)
            await reached(job, lambda works, job=job, configs=configs: works == wanted(it, job, *configs))  # type: ignore[misc]
        await calm(it)
        for job, configs, reader, there in schedule.jobs.values():
            assert works_of(job) == wanted(it, job, *configs)
            await schedule.read(job, reader, there)
            assert not reader._waiting
            assert job.status()["scrape_works"] == len(job.scrape_works())
        metrics = it.metrics()
        works = sum(len(job.scrape_works()) for job, *_ in schedule.jobs.values())
        assert metrics["scrape_works{pod}"] + metrics.get("scrape_works{endpoints}", 0) == works


async def test_a_job_whose_rules_fail_holds_no_other_up() -> None:
    """Not those registered with it, nor those after it; it tells of the failure in its status."""
    async with live(applications(6)) as it:
        jobs = [it.discovery.watch(name, it.config("pod"), relabel_configs=[POD]) for name in ("first", "broken", "last")]
        broken = jobs[1]._subscribers[0][1]
        relabeling = broken.relabeling

        def fail(_: object) -> Any:
            raise ZeroDivisionError("of a test")

        assert relabeling is not None
        failing = relabeling.rules[0]._replace(kind="set", function=fail)
        broken.relabeling = Relabeling(it.group._symbols, [failing], {}, lambda *_: "")
        for job in jobs:
            await job.synced()
        assert [len(job.scrape_works()) for job in jobs] == [6, 0, 6]
        assert [job.status()["last_error"] for job in jobs] == ["", "ZeroDivisionError: of a test", ""]
        broken.relabeling = relabeling
        late = it.discovery.watch("late", it.config("pod"), relabel_configs=[POD])
        await late.synced()
        assert len(late.scrape_works()) == 6


async def test_what_is_no_job_is_refused() -> None:
    """With the reason, before anything has begun."""
    async with live(applications(1)) as it:
        cases: list[tuple[Any, dict[str, Any], str]] = [
            (5, {}, "name of a job must be a string"),
            ("a", {"target_defaults": {"scheme": "https"}, "relabel_configs": ()}, "must be TargetDefaults, not dict"),
            ("a", {"target_defaults": TargetDefaults("https")}, "mean nothing without relabel_configs"),
            ("a", {"relabel_configs": POD}, "must be a sequence of RelabelConfig, not RelabelConfig"),
            ("a", {"relabel_configs": "keep"}, "must be a sequence of RelabelConfig, not str"),
        ]
        for name, options, message in cases:
            with pytest.raises(ConfigError, match=message):
                it.discovery.watch(name, it.config("pod"), **options)
        assert not it.discovery.jobs
