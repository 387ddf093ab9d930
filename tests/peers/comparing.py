"""fastdisco beside a real program: equal targets, and changes of what both discover."""

import random
from collections.abc import Awaitable, Callable, Iterable, Mapping
from typing import Any

import pytest

from fastdisco import APIWatcher
from tests.peers.objects import MAKERS, Object, Objects
from tests.peers.programs import until
from tests.peers.scraper import Scraper

Write = dict[str, Any]
LabelSets = set[tuple[tuple[str, str], ...]]


def label_sets(targets: Iterable[Mapping[str, str]]) -> LabelSets:
    return {tuple(sorted(labels.items())) for labels in targets}


def difference(ours: LabelSets, theirs: LabelSets, name: str) -> str:
    """What a failing comparison shows: how many label sets of each side the other lacks, and one of them."""
    sides = (("fastdisco", ours - theirs), (name, theirs - ours))
    return "; ".join(f"{len(more)} only in {name}, such as {dict(min(more))}" for name, more in sides if more)


async def same(watchers: Mapping[str, APIWatcher], peer: Scraper, nudge: Callable[[], Awaitable[object]] | None = None) -> None:
    """Waits until both agree on every job, and fails with what differs; peers follow joined objects after five seconds and more.

    Prometheus never looks again at some of them until what shows them changes: `nudge` makes it do so, when they disagree for long.
    """
    left, asked = "", 0

    async def agree() -> bool:
        nonlocal left, asked
        asked += 1
        if nudge is not None and asked % 12 == 0:
            await nudge()
        theirs = await peer.targets()
        differences = {
            name: difference(label_sets(watcher.scrape_works()), label_sets(theirs[name]), peer.name) for name, watcher in watchers.items()
        }
        left = "\n".join(f"{name}: {found}" for name, found in differences.items() if found)
        return not left

    try:
        await until(agree, timeout=120, what="equal targets", every=1.0)
    except TimeoutError:
        pytest.fail(left[:4000], pytrace=False)


def changed(objects: Objects, writes: Iterable[Write]) -> Objects:
    """The objects after these writes."""
    made = {plural: {key(item): item for item in items} for plural, items in objects.items()}
    for write in writes:
        if "delete" in write:
            made[write["delete"]].pop(write["key"])
        else:
            made[write["put"]][key(write["object"])] = write["object"]
    return {plural: [*items.values()] for plural, items in made.items()}


def unseen(objects: Objects, generation: int) -> list[Write]:
    """Writes after which nothing that is read has changed."""
    kinds = ("pods", "services", "endpoints", "endpointslices", "ingresses")
    items = [(plural, {**item, "metadata": {**item["metadata"], "generation": generation}}) for plural in kinds for item in objects[plural]]
    return [{"put": plural, "object": item} for plural, item in items]


def change(objects: Objects, seed: int) -> list[Write]:
    """Writes that replace, delete and create objects of each kind, in an order that has nothing to do with what refers to what."""
    choose = random.Random(seed)
    writes: list[Write] = []
    for plural, make in MAKERS.items():
        count = len(objects[plural])
        changed = choose.sample(objects[plural], count // 3)
        gone = len(changed) // 4
        writes += [{"delete": plural, "key": key(item)} for item in changed[:gone]]
        writes += [{"put": plural, "object": with_name_of(item, make(choose, choose.randrange(count)))} for item in changed[gone:]]
        writes += [{"put": plural, "object": make(choose, count + number)} for number in range(20)]
    choose.shuffle(writes)
    return writes


def with_name_of(item: Object, made: Object) -> Object:
    identity = {name: item["metadata"][name] for name in ("name", "namespace") if name in item["metadata"]}
    return {**made, "metadata": {**made["metadata"], **identity}}


def key(item: Object) -> str:
    return "/".join(filter(None, (item["metadata"].get("namespace"), item["metadata"]["name"])))
