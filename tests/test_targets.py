"""Targets: as real programs found them, as the plain statement has them, and the same step by step as all at once."""

import random
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import orjson
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from fastdisco._batch import Batch
from fastdisco._core import Store, Symbols
from fastdisco._labels import Labels
from fastdisco._render import Renderer
from tests import strategies
from tests.decoding import read_list
from tests.heart import (
    ATTACHED,
    KINDS,
    NAMESPACE,
    NODE,
    PROMETHEUS,
    ROLES,
    Heart,
    LabelSets,
    Object,
    Objects,
    cut,
    expected,
    key_of,
    label_sets,
    list_body,
    new_address,
    new_endpoints,
    new_namespace,
    new_node,
    new_owned,
    new_pod,
    new_service,
    new_slice,
    targets_of,
)

GOLDEN = Path(__file__).parent / "data" / "golden"
OBJECTS = {plural: items for plural, items in orjson.loads((GOLDEN / "objects.json").read_bytes()).items() if plural in KINDS}
VMAGENT = orjson.loads((GOLDEN / "targets-victoriametrics.json").read_bytes())
PROMETHEUS_FOUND = orjson.loads((GOLDEN / "targets-prometheus.json").read_bytes())
PROFILE = {"": 0, **ATTACHED}
PROFILES = (0, NODE, NAMESPACE, sum(ATTACHED.values()))
EVERYTHING = [(role, dialect | profile) for role in ROLES for dialect in (0, PROMETHEUS) for profile in PROFILES]
CHOOSE = st.randoms(use_true_random=False)


def as_shown(targets: LabelSets) -> LabelSets:
    """vmagent shows a target that is there more than twice, twice."""
    return LabelSets({labels: min(count, 2) for labels, count in targets.items()})


def check(heart: Heart, objects: Objects) -> None:
    """What a subscriber has is what follows from the objects, and what rendering from scratch gives."""
    heart.settle()
    for role, profile in heart.parts:
        have = heart.targets(role, profile)
        assert have == expected(role, objects, profile)
        assert have == heart.walked(role, profile)


# As vmagent found them.


@pytest.mark.parametrize("variant", VMAGENT)
def test_lists_lead_to_the_targets_that_vmagent_found(variant: str) -> None:
    """Label by label."""
    role, _, attached = variant.partition("+")
    assert as_shown(targets_of(role, OBJECTS, PROFILE[attached], "list")) == as_shown(label_sets(VMAGENT[variant]))


@pytest.mark.parametrize("seed", range(5))
@pytest.mark.parametrize("variant", VMAGENT)
def test_watches_in_any_order_lead_to_the_targets_that_vmagent_found(variant: str, seed: int) -> None:
    """Rendered now and then while they come."""
    role, _, attached = variant.partition("+")
    assert as_shown(targets_of(role, OBJECTS, PROFILE[attached], "watch", seed)) == as_shown(label_sets(VMAGENT[variant]))


# As Prometheus found them.


@pytest.mark.parametrize("variant", PROMETHEUS_FOUND)
def test_lists_lead_to_the_targets_that_prometheus_found(variant: str) -> None:
    """Label by label; Prometheus shows equal targets once."""
    role, _, attached = variant.partition("+")
    found = targets_of(role, OBJECTS, PROMETHEUS | PROFILE[attached], "list")
    assert set(found) == set(label_sets(PROMETHEUS_FOUND[variant]))


@pytest.mark.parametrize("seed", range(5))
@pytest.mark.parametrize("variant", PROMETHEUS_FOUND)
def test_watches_in_any_order_lead_to_the_targets_that_prometheus_found(variant: str, seed: int) -> None:
    """Rendered now and then while they come."""
    role, _, attached = variant.partition("+")
    found = targets_of(role, OBJECTS, PROMETHEUS | PROFILE[attached], "watch", seed)
    assert set(found) == set(label_sets(PROMETHEUS_FOUND[variant]))


# As the plain statement has them.


@settings(deadline=None, max_examples=200)
@given(strategies.clusters(4))
def test_targets_are_those_of_the_plain_statement(objects: Objects) -> None:
    """Of generated clusters, for every role and all that may be attached."""
    heart = Heart(*EVERYTHING)
    heart.load(objects)
    check(heart, objects)


# Step by step as all at once.


class Changing:
    """A heart, and the objects that it should have; changed at random, rendered in small pieces."""

    def __init__(self, choose: random.Random, new: Callable[[random.Random, str], Object], *wanted: tuple[str, int]) -> None:
        self.choose = choose
        self.new = new
        self.heart = Heart(*wanted)
        self.objects: dict[str, dict[tuple[str, str], Object]] = {plural: {} for plural in KINDS}
        self.versions = 0

    def truth(self) -> Objects:
        return {plural: [*items.values()] for plural, items in self.objects.items()}

    def step(self) -> None:
        choice = self.choose.random()
        plural = self.choose.choice([*KINDS])
        here = self.objects[plural]
        if choice < 0.55:
            item = self.new(self.choose, plural)
            self.heart.upsert(plural, item)
            here[key_of(item)] = item
        elif choice < 0.75:
            if here:
                self.heart.delete(plural, here.pop(self.choose.choice([*here])))
        elif choice < 0.8:
            self.relist(plural)
        elif choice < 0.95:
            self.heart.render(self.choose.choice((1, 1, 2, 5, 1000)))
        else:
            while self.heart.store.symbols.sweep(self.choose.choice((10, 1000))):
                pass

    def relist(self, plural: str) -> None:
        """Some of what is there, changed or not, and new ones; applied in slices, with rendering between them."""
        here = self.objects[plural]
        staying = {key: item for key, item in here.items() if self.choose.random() < 0.6}
        for _ in range(self.choose.randrange(4)):
            item = self.new(self.choose, plural)
            staying[key_of(item)] = item
        decoder = self.heart.decoders[KINDS[plural]]
        decoder.begin_list()
        items = self.choose.sample([*staying.values()], len(staying))
        for chunk in cut(list_body(items), 200):
            decoder.feed(chunk)
            if self.choose.random() < 0.1:
                self.heart.render(1)
        if self.choose.random() < 0.2:
            decoder.abort_list()
            if not decoder.listed:
                here |= staying  # they went into the store as they came
            return
        decoder.end_page()
        while decoder.apply_list(1):
            if self.choose.random() < 0.3:
                self.heart.render(2)
        self.objects[plural] = staying


@settings(deadline=None, max_examples=60)
@given(st.data(), CHOOSE)
def test_any_sequence_of_changes_leads_where_the_objects_lead(data: st.DataObject, choose: random.Random) -> None:
    """Generated objects that come, change, go and are listed again, for every role and all that may be attached."""
    pool = {plural: data.draw(st.lists(made, min_size=1, max_size=5)) for plural, made in strategies.OBJECTS.items()}
    changing = Changing(choose, lambda choose, plural: choose.choice(pool[plural]), *EVERYTHING)
    for _ in range(60):
        changing.step()
    check(changing.heart, changing.truth())


def new_object(choose: random.Random, plural: str) -> Object:
    """Of few names, so that everything refers to everything: pods shared by endpoints and slices of both namespaces, several times."""
    namespace, name, other = choose.choice(("web", "db")), choose.choice("abc"), choose.choice("xyz")

    def address() -> Object:
        kind = choose.choice(("Pod", "Pod", "Pod", "Pod", "Node", ""))
        where = choose.choice(("web", "web", "db", "", None))
        target = {"kind": kind, "name": choose.choice(("a", "b", "c", "")), "namespace": where}
        on = {"nodeName": choose.choice("abc")} if choose.random() < 0.5 else {}
        return {"ip": f"192.0.2.{choose.randrange(9)}"} | ({"targetRef": target} if choose.random() < 0.9 else {}) | on

    def addresses(most: int) -> list[Object]:
        return [address() for _ in range(choose.randrange(most + 1))]

    ports = choose.sample((80, 81, 82), choose.randrange(1, 3))
    if plural == "pods":
        node, ip, policy = choose.choice("ab"), choose.choice(("192.0.2.1", "")), choose.choice(("Always", "Never"))
        pod = new_pod(name, namespace, node=node, ip=ip, ports=ports, labels={"x": other})
        owner = {"kind": choose.choice(("ReplicaSet", "ReplicaSet", "Job", "x")), "name": choose.choice("abc"), "controller": True}
        pod["metadata"]["ownerReferences"] = [owner]
        pod["spec"]["initContainers"] = [{"name": "i", "ports": [{"containerPort": 83}], "restartPolicy": policy}]
        return pod
    if plural == "endpoints":
        subsets = [{"addresses": addresses(4), "notReadyAddresses": addresses(2), "ports": [{"port": p} for p in ports]} for _ in range(2)]
        return {"metadata": {"name": name, "namespace": namespace, "labels": {"x": other}}, "subsets": subsets}
    if plural == "endpointslices":
        return new_slice(f"{name}-{other}", choose.choice("abc"), *addresses(5), namespace=namespace, ports=ports)
    if plural == "services":
        service = new_service(name, namespace, x=other)
        family = choose.choice(("IPv4", "IPv6"))
        service["spec"] |= {"ipFamilyPolicy": choose.choice(("SingleStack", "RequireDualStack")), "ipFamilies": [family]}
        return service
    if plural == "nodes":
        return new_node(name, x=other)
    if plural == "namespaces":
        return new_namespace(namespace, x=other)
    if plural in ("replicasets", "jobs"):
        return new_owned(name, choose.choice(("Deployment", "CronJob", "x")), other, namespace)
    return {"metadata": {"name": name, "namespace": namespace}, "spec": {"rules": [{"host": other}] * choose.randrange(3)}}


@pytest.mark.parametrize("seed", range(12))
def test_long_sequences_of_changes_lead_where_the_objects_lead(seed: int) -> None:
    """Thousands of changes of objects that all refer to each other; checked again and again on the way."""
    choose = random.Random(seed)
    changing = Changing(choose, new_object, *EVERYTHING)
    for number in range(1200):
        changing.step()
        if number % 150 == 149:
            check(changing.heart, changing.truth())
    for plural in KINDS:
        changing.heart.list(KINDS[plural], [])
    changing.heart.settle()
    assert not any(changing.heart.parts.values())


@pytest.mark.parametrize("seed", range(12))
def test_a_pass_over_the_store_and_changes_meanwhile_make_one_picture(seed: int) -> None:
    """A subscriber that comes later walks the store in slices; of changes it takes what is behind its cursor."""
    choose = random.Random(seed)
    changing = Changing(choose, new_object, *EVERYTHING)
    heart = changing.heart
    for _ in range(300):
        changing.step()
    late = [(role, choose.choice((0, PROMETHEUS)) | choose.choice(PROFILES)) for role in ROLES]
    parts: dict[tuple[str, int], dict[int, Any]] = {wanted: {} for wanted in late}
    for role, profile in late:
        heart.renderer.subscribe(role, profile)

    def take(batch: Batch, below: int | None) -> None:
        for role, profile in late:
            for key in batch.keys(role, below):
                parts[role, profile].pop(key, None)
            parts[role, profile] |= dict(batch.targets(role, profile, below))

    cursor, ended = 0, False
    while not ended:
        batch, cursor, ended = heart.renderer.walk(cursor, late, choose.choice((1, 3, 10)))
        take(batch, None)
        batch.close()
        # no lists here, whose rendering would go past this subscriber
        for _ in range(choose.randrange(4)):
            plural = choose.choice([*KINDS])
            here = changing.objects[plural]
            if choose.random() < 0.6 or not here:
                item = new_object(choose, plural)
                heart.upsert(plural, item)
                here[key_of(item)] = item
            else:
                heart.delete(plural, here.pop(choose.choice([*here])))
        if choose.random() < 0.5:
            batch = heart.renderer.render(choose.choice((1, 5)))
            heart.take(batch)
            take(batch, cursor)
            batch.close()
    while heart.renderer.dirty:
        batch = heart.renderer.render(2)
        heart.take(batch)
        take(batch, None)
        batch.close()
    check(heart, changing.truth())
    for (role, profile), found in parts.items():
        assert found == heart.parts[role, profile]


# Keys, positions, batches.


def test_keys_and_positions_tell_all_targets_apart() -> None:
    """No two parts have one key, no two targets of a part one position; and both stay while what they name stays."""
    heart = Heart(*EVERYTHING)
    heart.load(OBJECTS)
    heart.settle()
    for profile in {profile for _, profile in EVERYTHING}:
        keys = [key for role in ROLES for key in heart.parts[role, profile]]
        assert len(keys) == len(set(keys))
    for found in heart.parts.values():
        for part in found.values():
            positions = [position for position, _ in part]
            assert positions
            assert len(positions) == len(set(positions))
    before = {wanted: dict(found) for wanted, found in heart.parts.items()}
    for plural, items in OBJECTS.items():
        for item in items:
            labels = {**(item["metadata"].get("labels") or {}), "new": "1"}
            heart.upsert(plural, {**item, "metadata": {**item["metadata"], "labels": labels}})
    heart.settle()
    for wanted, found in heart.parts.items():
        assert {key: [position for position, _ in part] for key, part in found.items()} == {
            key: [position for position, _ in part] for key, part in before[wanted].items()
        }
        assert all(found[key] != before[wanted][key] for key in found)


def test_a_target_keeps_its_position_when_others_come_and_go() -> None:
    """Of a pod, by container and port; of endpoints, by the address that first names the pod."""
    heart = Heart(("pod", 0), ("endpoints", 0))
    heart.upsert("pods", new_pod("a", ports=(80, 81)))
    heart.upsert("endpoints", new_endpoints("s", new_address("a"), new_address("b")))
    heart.settle()
    [[one, two]] = heart.parts["pod", 0].values()
    before = set(heart.parts["endpoints", 0])
    heart.upsert("pods", new_pod("a", ports=(80, 82)))
    heart.upsert("endpoints", new_endpoints("s", new_address("a"), new_address("c"), new_address("d")))
    heart.settle()
    [[same, other]] = heart.parts["pod", 0].values()
    assert same == one
    assert (other[0], other[1]["__address__"]) == (two[0], "192.0.2.7:82")
    assert before < set(heart.parts["endpoints", 0])
    assert len(before) == 2


def test_parts_that_endpoints_no_longer_have_are_told() -> None:
    """When they shrink, at whatever time the shrinking is rendered."""
    choose = random.Random(2)
    heart = Heart(("endpoints", 0), ("endpointslice", 0))
    for _ in range(200):
        count = choose.randrange(8)
        addresses = [new_address(choose.choice("abcd"), ip=f"192.0.2.{number}") for number in range(count)]
        heart.upsert("endpoints", new_endpoints("s", *addresses))
        heart.upsert("endpointslices", new_slice("s", "s", *addresses))
        if choose.random() < 0.5:
            heart.settle()
            named = {address["targetRef"]["name"] for address in addresses}
            assert len(heart.parts["endpoints", 0]) == len(heart.parts["endpointslice", 0]) == len(named)
            assert sum(heart.targets("endpoints").values()) == count


def slots(batch: Batch, role: str) -> Iterator[int]:
    yield from (key >> 24 for key in batch.keys(role))


def test_parts_that_are_gone_are_told_once() -> None:
    """The next time, endpoints tell only of what they have now."""
    heart = Heart(("endpoints", 0))
    heart.upsert("endpoints", new_endpoints("s", *(new_address(name) for name in "abcd")))
    heart.settle()
    for value, told in (("1", 4), ("2", 1), ("3", 1)):
        heart.upsert("endpoints", new_endpoints("s", new_address("a"), x=value))
        batch = heart.renderer.render()
        assert len(batch.keys("endpoints")) == told
        heart.take(batch)
        batch.close()
    assert len(heart.parts["endpoints", 0]) == 1


def test_a_budget_bounds_what_is_rendered_at_once() -> None:
    """Up to the targets of the last object; and some progress is always made."""
    heart = Heart(("pod", 0))
    heart.list("pod", [new_pod(f"p{number}", ports=(80, 81, 82)) for number in range(50)])
    sizes = []
    while heart.renderer.dirty:
        batch = heart.renderer.render(10)
        sizes.append(len(batch))
        heart.take(batch)
        batch.close()
    assert sum(sizes) == 150
    assert max(sizes) <= 12
    assert sum(heart.targets("pod").values()) == 150
    cursor, ended, seen = 0, False, []
    while not ended:
        before = cursor
        batch, cursor, ended = heart.renderer.walk(cursor, [("pod", 0)], 1)
        seen += list(slots(batch, "pod"))
        assert all(before <= key < cursor for key in batch.keys("pod"))
        assert ended or cursor > before
        batch.close()
    assert len(seen) == len(set(seen)) == 50


def test_a_budget_bounds_what_is_rendered_of_one_object() -> None:
    """Endpoints with many addresses take several batches, each part in one of them; they count as one object, and are dirty to the end."""
    heart = Heart(("endpoints", 0))
    heart.upsert("endpoints", new_endpoints("s", *(new_address(ip=f"192.0.2.{number}") for number in range(250)), ports=(1, 2, 3)))
    sizes, keys = [], []
    while heart.renderer.dirty:
        assert heart.renderer.taken < heart.renderer.queued
        batch = heart.renderer.render(60)
        sizes.append(len(batch))
        keys += batch.keys("endpoints")
        heart.take(batch)
        batch.close()
    assert heart.renderer.taken == heart.renderer.queued
    assert sum(sizes) == 750
    assert max(sizes) < 60 + 3 * 32
    assert len(keys) == len(set(keys)) == 250
    assert heart.rendered()["endpoints"] == 1
    assert heart.targets("endpoints") == heart.walked("endpoints") == heart.walked("endpoints", budget=10)


def test_an_object_below_the_budget_is_in_one_batch() -> None:
    """So its targets change together, whatever else the batch holds."""
    heart = Heart(("endpoints", 0))
    for number in range(10):
        heart.upsert("endpoints", new_endpoints(f"s{number}", *(new_address(ip=f"192.0.2.{n}") for n in range(90))))
    seen = []
    while heart.renderer.dirty:
        batch = heart.renderer.render(100)
        seen += [*dict.fromkeys(slots(batch, "endpoints"))]
        batch.close()
    assert len(seen) == len(set(seen)) == 10


@pytest.mark.parametrize("seed", range(20))
def test_an_object_that_changes_while_it_is_rendered_ends_as_it_is(seed: int) -> None:
    """Whether it grows, shrinks, goes or comes again, and whether it was put down by a batch of changes or by a walk."""
    choose = random.Random(seed)
    heart = Heart(("endpoints", 0))
    objects: dict[str, list[Any]] = {"endpoints": [], "pods": []}

    def change() -> None:
        what = choose.random()
        if what < 0.4:
            size = choose.choice((0, 1, 31, 32, 33, 100, 200))
            names = choose.sample(range(200), size)
            one = new_endpoints("big", *(new_address(f"p{n}", ip=f"192.0.2.{n}") for n in names), ports=(1, 2), x=str(choose.random()))
            objects["endpoints"] = [one]
            heart.upsert("endpoints", one)
        elif what < 0.5 and objects["endpoints"]:
            heart.delete("endpoints", objects["endpoints"].pop())
        else:
            pod = new_pod(f"p{choose.randrange(200)}", x=str(choose.random()))
            objects["pods"] = [one for one in objects["pods"] if key_of(one) != key_of(pod)] + [pod]
            heart.upsert("pods", pod)

    late: dict[int, Any] = {}
    for _ in range(3):
        change()
    cursor, ended = 0, False
    while not ended:
        batch, cursor, ended = heart.renderer.walk(cursor, [("endpoints", 0)], choose.choice((1, 50)))
        for key in batch.keys("endpoints"):
            late.pop(key, None)
        late |= dict(batch.targets("endpoints", 0))
        batch.close()
        for _ in range(choose.randrange(3)):
            change()
            for _ in range(choose.randrange(3)):
                batch = heart.renderer.render(choose.choice((1, 40, 1000)))
                heart.take(batch)
                below = None if ended else cursor
                for key in batch.keys("endpoints", below):
                    late.pop(key, None)
                late |= dict(batch.targets("endpoints", 0, below))
                batch.close()
    while heart.renderer.dirty:
        batch = heart.renderer.render(choose.choice((1, 40)))
        heart.take(batch)
        for key in batch.keys("endpoints"):
            late.pop(key, None)
        late |= dict(batch.targets("endpoints", 0))
        batch.close()
    assert heart.targets("endpoints") == expected("endpoints", objects, 0)
    assert late == heart.parts["endpoints", 0]


def test_of_a_batch_all_get_the_same_labels() -> None:
    """They are made once for whoever asks, also where only a part is asked for; closed, it gives nothing more."""
    heart = Heart(("pod", 0))
    heart.list("pod", [new_pod("a"), new_pod("b")])
    batch = heart.renderer.render()
    [(first_key, [(_, first)]), (second_key, [(_, second)])] = batch.targets("pod", 0)
    assert batch.targets("pod", 0)[0][1][0][1] is first
    between = first_key + 1
    assert [key for key, _ in batch.targets("pod", 0, between)] == [first_key] == batch.keys("pod", between)
    assert batch.targets("pod", 0, between)[0][1][0][1] is first
    assert batch.keys("pod") == [first_key, second_key]
    assert not batch.keys("node")
    assert batch.targets("node", 0) == batch.targets("pod", 1) == []
    assert len(batch) == 2
    batch.close()
    batch.close()
    assert (len(batch), batch.keys("pod"), batch.targets("pod", 0)) == (0, [], [])
    assert isinstance(second, Labels)
    assert second["__meta_kubernetes_pod_name"] == "b"


def test_keys_are_not_given_to_other_objects_while_a_batch_names_them() -> None:
    """An object goes, and the last reference to it, and another one comes, before the batch that tells of the first is closed."""
    heart = Heart(("pod", 0))
    heart.upsert("endpoints", new_endpoints("s", new_address("old")))
    heart.upsert("pods", new_pod("old"))
    heart.settle()
    heart.delete("pods", new_pod("old"))
    batch = heart.renderer.render()
    [gone] = batch.keys("pod")
    heart.delete("endpoints", new_endpoints("s"))
    heart.upsert("pods", new_pod("new"))
    following = heart.renderer.render()
    [(key, _)] = following.targets("pod", 0)
    assert key != gone
    following.close()
    batch.close()
    heart.upsert("pods", new_pod("third"))
    assert heart.renderer.render().keys("pod") == [gone]


def test_the_targets_of_one_object_can_be_asked_for() -> None:
    """As they are now, whatever is subscribed to or dirty; None for what is not here."""
    heart = Heart()
    heart.load(OBJECTS)
    for plural, items in OBJECTS.items():
        if KINDS[plural] not in ROLES:
            continue
        for profile in {profile for _, profile in EVERYTHING}:
            found = LabelSets()
            for item in items:
                parts = heart.renderer.discovered(KINDS[plural], *key_of(item), profile)
                assert parts is not None
                found += label_sets(labels for _, part in parts for _, labels in part)
            assert found == expected(KINDS[plural], OBJECTS, profile)
    assert heart.renderer.discovered("pod", "nowhere", "nothing", 0) is None
    assert heart.renderer.discovered("namespace", *key_of(OBJECTS["namespaces"][0]), 0) == []


def test_mistakes_are_told() -> None:
    """Unknown roles and profiles, and what is no store."""
    renderer = Renderer(Store(Symbols()))
    for role, profile in (("pods", 0), ("", 0), ("pod", 64), ("pod", -1)):
        with pytest.raises(ValueError, match="no "):
            renderer.subscribe(role, profile)
    with pytest.raises(ValueError, match="'x'"):
        renderer.walk(0, [("x", 0)])
    with pytest.raises(TypeError):
        Renderer(None)  # type: ignore[arg-type]
    with pytest.raises(TypeError):
        Batch(None)  # type: ignore[arg-type]


def test_renderers_of_one_discovery_share_their_strings() -> None:
    """Equal targets of two stores over the same symbols are equal by number, and read as the same objects."""
    symbols = Symbols()
    hearts = [Heart(("node", 0), symbols=symbols) for _ in range(2)]
    for heart in hearts:
        read_list(heart.decoders["node"], list_body([new_node("n", x="y")]))
        heart.settle()
    [[(_, one)]], [[(_, other)]] = (heart.parts["node", 0].values() for heart in hearts)
    assert one == other
    assert hash(one) == hash(other)
    assert all(text is same for text, same in zip(one.values(), other.values(), strict=True))
