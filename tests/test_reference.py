"""The plain statement of the label rules against what real programs discovered, and the compiled heart against the plain statement."""

import random
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path

import orjson
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from fastdisco._core import Store, Symbols
from fastdisco._json import Decoder
from fastdisco._render import Renderer
from tests import reference, strategies

GOLDEN = Path(__file__).parent / "data" / "golden"
OBJECTS = orjson.loads((GOLDEN / "objects.json").read_bytes())
VMAGENT = orjson.loads((GOLDEN / "targets-victoriametrics.json").read_bytes())
PROMETHEUS_FOUND = orjson.loads((GOLDEN / "targets-prometheus.json").read_bytes())
KINDS = {plural: kind.lower() for plural, kind in strategies.KINDS.items()}
ATTACHED = ("node", "namespace", "deployment", "job", "cronjob")  # bits of a profile, from the lowest on
PROMETHEUS = 32
PROFILES = (0, 1, 2, 31, PROMETHEUS, PROMETHEUS | 1, PROMETHEUS | 2, PROMETHEUS | 31)

LabelSets = Counter[tuple[tuple[str, str], ...]]


def label_sets(targets: Iterable[Mapping[str, str]]) -> LabelSets:
    return Counter(tuple(sorted(labels.items())) for labels in targets)


def capped(targets: Iterable[Mapping[str, str]]) -> LabelSets:
    """The multiset as vmagent shows it: a target that is there more than twice is shown twice."""
    return Counter({labels: min(count, 2) for labels, count in label_sets(targets).items()})


def chunks(body: bytes, choose: random.Random) -> Iterator[bytes]:
    """The same bytes, cut anywhere."""
    at = 0
    while at < len(body):
        size = choose.choice([1, 7, 64, 1000])
        yield body[at : at + size]
        at += size


class Heart:
    """Decoders for all kinds of objects, and the targets as they stand after the last render."""

    def __init__(self) -> None:
        self.store = Store(Symbols())
        self.renderer = Renderer(self.store)
        self.renderer.know_nodes()
        self.decoders = {plural: Decoder(self.store, kind) for plural, kind in KINDS.items()}
        self.parts: dict[tuple[str, int], dict[int, list[Mapping[str, str]]]] = {}
        for role in reference.ROLES:
            for profile in PROFILES:
                self.renderer.subscribe(role, profile)
                self.parts[role, profile] = {}

    def list(self, plural: str, items: list[strategies.Object], choose: random.Random) -> None:
        decoder = self.decoders[plural]
        decoder.begin_list()
        for chunk in chunks(strategies.list_bytes(plural, items), choose):
            decoder.feed(chunk)
        decoder.end_page()
        while decoder.apply_list(1):
            pass
        assert not decoder.take_errors()

    def watch(self, plural: str, change: str, item: strategies.Object, choose: random.Random) -> None:
        decoder = self.decoders[plural]
        decoder.begin_watch()
        for chunk in chunks(strategies.event_line(plural, change, item), choose):
            decoder.feed(chunk)
        decoder.end_watch()
        assert not decoder.take_errors()

    def targets(self, role: str, profile: int) -> LabelSets:
        while self.renderer.dirty:
            batch = self.renderer.render(1)
            for (name, number), parts in self.parts.items():
                for key in batch.keys(name):
                    parts.pop(key, None)
                parts.update({key: [labels for _, labels in found] for key, found in batch.targets(name, number)})
            batch.close()
        return label_sets(labels for found in self.parts[role, profile].values() for labels in found)

    def check(self, objects: reference.Objects) -> None:
        for role, profile in self.parts:
            attach = [name for number, name in enumerate(ATTACHED) if profile >> number & 1]
            dialect = "prometheus" if profile & PROMETHEUS else "victoriametrics"
            assert self.targets(role, profile) == label_sets(reference.targets(role, objects, attach, dialect))


@pytest.mark.parametrize("variant", VMAGENT)
def test_the_reference_finds_what_vmagent_found(variant: str) -> None:
    """Label by label, for every role and every attachment."""
    role, _, attached = variant.partition("+")
    assert capped(reference.targets(role, OBJECTS, [attached])) == capped(VMAGENT[variant])


@pytest.mark.parametrize("variant", PROMETHEUS_FOUND)
def test_the_reference_finds_what_prometheus_found(variant: str) -> None:
    """Label by label, for every role and every attachment; Prometheus shows equal targets once."""
    role, _, attached = variant.partition("+")
    found = reference.targets(role, OBJECTS, [attached], "prometheus")
    assert set(label_sets(found)) == set(label_sets(PROMETHEUS_FOUND[variant]))


@settings(deadline=None, max_examples=100)
@given(strategies.clusters(), st.randoms(use_true_random=False))
def test_the_heart_makes_of_lists_what_the_reference_makes(objects: strategies.Objects, choose: random.Random) -> None:
    """Generated clusters, listed in any order of kinds and cut anywhere."""
    heart = Heart()
    for plural in choose.sample(sorted(objects), len(objects)):
        heart.list(plural, objects[plural], choose)
    heart.check(objects)


@settings(deadline=None, max_examples=100)
@given(strategies.clusters(), strategies.clusters(), st.randoms(use_true_random=False))
def test_the_heart_follows_events_as_the_reference_does(
    before: strategies.Objects, after: strategies.Objects, choose: random.Random
) -> None:
    """One cluster becomes another by events in any order; nothing of the first is left."""
    heart = Heart()
    for plural in before:
        heart.list(plural, before[plural], choose)
    heart.check(before)
    events = [(plural, "MODIFIED", item) for plural in after for item in after[plural]]
    for plural in before:
        staying = {strategies.object_key(item) for item in after[plural]}
        events += [(plural, "DELETED", item) for item in before[plural] if strategies.object_key(item) not in staying]
    for event in choose.sample(events, len(events)):
        heart.watch(*event, choose)
        if choose.random() < 0.2:
            heart.targets("pod", 0)  # some changes are rendered together, some alone
    heart.check(after)


@settings(deadline=None, max_examples=50)
@given(strategies.clusters(), strategies.clusters(), st.randoms(use_true_random=False))
def test_a_second_list_leaves_nothing_of_the_first(before: strategies.Objects, after: strategies.Objects, choose: random.Random) -> None:
    """Relists replace one cluster by another, kind by kind."""
    heart = Heart()
    for objects in (before, after):
        for plural in choose.sample(sorted(objects), len(objects)):
            heart.list(plural, objects[plural], choose)
        heart.check(objects)
