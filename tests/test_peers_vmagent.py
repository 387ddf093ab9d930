"""fastdisco beside vmagent, both discovering from one synthetic API server."""

import random
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

import pytest

from fastdisco import APIWatcher, Discovery, KubernetesSDConfig
from fastdisco.synthetic import SyntheticProcess
from tests.peers.objects import MAKERS, Object, Objects, cluster
from tests.peers.programs import until
from tests.peers.vmagent import Vmagent

COUNT = 500
ATTACHED = {"node": True, "namespace": True}
CONFIGS: dict[str, dict[str, Any]] = {
    **{role: {"role": role} for role in ("node", "pod", "service", "endpoints", "endpointslice", "ingress")},
    **{f"{role}+all": {"role": role, "attach_metadata": ATTACHED} for role in ("pod", "service", "endpoints", "endpointslice", "ingress")},
}

LabelSets = set[tuple[tuple[str, str], ...]]


def label_sets(targets: Iterable[Mapping[str, str]]) -> LabelSets:
    return {tuple(sorted(labels.items())) for labels in targets}


def difference(ours: LabelSets, theirs: LabelSets) -> str:
    """What a failing comparison shows: how many label sets of each side the other lacks, and one of them."""
    sides = (("fastdisco", ours - theirs), ("vmagent", theirs - ours))
    return "; ".join(f"{len(more)} only in {name}, such as {dict(min(more))}" for name, more in sides if more)


async def same(watchers: Mapping[str, APIWatcher], vmagent: Vmagent) -> None:
    """Waits until both agree on every job, and fails with what differs; vmagent follows joined objects after five seconds and more."""
    left = ""

    async def agree() -> bool:
        nonlocal left
        theirs = await vmagent.targets()
        differences = {name: difference(label_sets(watcher.scrape_works()), label_sets(theirs[name])) for name, watcher in watchers.items()}
        left = "\n".join(f"{name}: {found}" for name, found in differences.items() if found)
        return not left

    try:
        await until(agree, timeout=120, what="equal targets", every=1.0)
    except TimeoutError:
        pytest.fail(left, pytrace=False)


def change(objects: Objects, seed: int) -> list[dict[str, Any]]:
    """Writes that replace, delete and create objects of each kind, in an order that has nothing to do with what refers to what."""
    choose = random.Random(seed)
    writes: list[dict[str, Any]] = []
    for plural, make in MAKERS.items():
        changed = choose.sample(objects[plural], 160)
        writes += [{"delete": plural, "key": key(item)} for item in changed[:40]]
        writes += [{"put": plural, "object": with_name_of(item, make(choose, choose.randrange(COUNT)))} for item in changed[40:]]
        writes += [{"put": plural, "object": make(choose, COUNT + number)} for number in range(20)]
    choose.shuffle(writes)
    return writes


def with_name_of(item: Object, made: Object) -> Object:
    identity = {name: item["metadata"][name] for name in ("name", "namespace") if name in item["metadata"]}
    return {**made, "metadata": {**made["metadata"], **identity}}


def key(item: Object) -> str:
    return "/".join(filter(None, (item["metadata"].get("namespace"), item["metadata"]["name"])))


@pytest.mark.slow
@pytest.mark.peers("vmagent")
async def test_discovered_labels_are_those_of_vmagent_before_and_after_a_change(tmp_path: Path) -> None:
    """500 objects of each kind, every role, with and without attachments; then a third of them changed, deleted or new."""
    objects = cluster(1, COUNT)
    async with SyntheticProcess(objects=objects) as server, Discovery() as discovery:
        jobs = {name: {**config, "api_server": server.url} for name, config in CONFIGS.items()}
        watchers = {name: discovery.watch(name, KubernetesSDConfig.from_dict(config), dict) for name, config in jobs.items()}
        async with Vmagent(tmp_path, jobs) as vmagent:
            for watcher in watchers.values():
                await watcher.synced(timeout=60)
            await same(watchers, vmagent)
            assert all(watcher.scrape_works() for watcher in watchers.values())
            await server.acontrol("apply", change(objects, 2))
            await same(watchers, vmagent)
