"""The store: what a change makes dirty, what it leaves alone, and what rendering misses; in whatever order things arrive."""

import itertools
import random
from collections.abc import Callable, Iterator

import pytest

from fastdisco._core import Store, Symbols
from tests.heart import (
    KINDS,
    NAMESPACE,
    NODE,
    ROLES,
    Heart,
    LabelSets,
    Object,
    expected,
    key_of,
    new_address,
    new_endpoints,
    new_ingress,
    new_namespace,
    new_node,
    new_owned,
    new_pod,
    new_service,
    new_slice,
)

EVERYTHING = [(role, NODE | NAMESPACE) for role in ROLES]
CLUSTER = {
    "nodes": [new_node("n1"), new_node("n2")],
    "namespaces": [new_namespace("web"), new_namespace("db")],
    "pods": [new_pod("a", node="n1"), new_pod("b", node="n2"), new_pod("c", "db", node="n1"), new_pod("lonely", "db", node="n2")],
    "services": [new_service("s"), new_service("t", "db"), new_service("alone")],
    "endpoints": [
        new_endpoints("s", new_address("a"), new_address("b"), new_address(ip="192.0.2.99")),
        new_endpoints("t", new_address("c", "db"), new_address("a"), namespace="db"),
        new_endpoints("bare", new_address(ip="192.0.2.98")),
    ],
    "endpointslices": [new_slice("s-1", "s", new_address("a")), new_slice("s-2", "s", new_address("b"), new_address("c", "db"))],
    "ingresses": [new_ingress("i"), new_ingress("j", "db")],
    "replicasets": [new_owned("r", "Deployment")],
    "jobs": [new_owned("r", "CronJob")],
}
NAMES = {
    "node": ("node_name",),
    "pod": ("namespace", "pod_name"),
    "service": ("namespace", "service_name"),
    "endpoints": ("namespace", "endpoints_name", "endpoint_address_target_name"),
    "endpointslice": ("namespace", "endpointslice_name", "endpointslice_address_target_name"),
    "ingress": ("namespace", "ingress_name"),
}


def settled(*wanted: tuple[str, int]) -> Heart:
    heart = Heart(*(wanted or EVERYTHING))
    heart.load(CLUSTER)
    heart.settle()
    return heart


def rendered_by(heart: Heart, *changes: Callable[[], None]) -> set[str]:
    """What is rendered again after some changes: `role:namespace/name`, and for entries of endpoints the pod that they name."""
    for change in changes:
        change()
    found = set()
    while heart.renderer.dirty:
        batch = heart.renderer.render()
        heart.take(batch)
        for role, profile in heart.parts:
            for _, part in batch.targets(role, profile):
                for _, labels in part:
                    found.add(f"{role}:" + "/".join(labels.get("__meta_kubernetes_" + name, "-") for name in NAMES[role]))
        batch.close()
    return found


def upsert(heart: Heart, plural: str, item: Object) -> Callable[[], None]:
    return lambda: heart.upsert(plural, item)


def delete(heart: Heart, plural: str, item: Object) -> Callable[[], None]:
    return lambda: heart.delete(plural, item)


A_SHOWN = {"pod:web/a", "endpoints:web/s/a", "endpoints:web/t/a", "endpointslice:web/s-1/a"}
B_SHOWN = {"pod:web/b", "endpoints:web/s/b", "endpointslice:web/s-2/b"}
C_SHOWN = {"pod:db/c", "endpoints:db/t/c", "endpointslice:db/s-2/c"}
S_SHOWN = {
    "service:web/s", "endpoints:web/s/a", "endpoints:web/s/b", "endpoints:web/s/-",
    "endpointslice:web/s-1/a", "endpointslice:web/s-2/b", "endpointslice:db/s-2/c",
}  # fmt: skip
T_SHOWN = {"service:db/t", "endpoints:db/t/c", "endpoints:web/t/a"}


@pytest.mark.parametrize(
    ("plural", "item", "shown"),
    [
        ("pods", new_pod("a", labels={"x": "y"}), A_SHOWN),
        ("pods", new_pod("b", labels={"x": "y"}), B_SHOWN),
        ("pods", new_pod("c", "db", node="n1", labels={"x": "y"}), C_SHOWN),
        ("pods", new_pod("lonely", "db", labels={"x": "y"}), {"pod:db/lonely"}),
        ("pods", new_pod("new", labels={"x": "y"}), {"pod:web/new"}),
        ("services", new_service("s", x="y"), S_SHOWN),
        ("services", new_service("t", "db", x="y"), T_SHOWN),
        ("services", new_service("alone", x="y"), {"service:web/alone"}),
        ("services", new_service("bare", x="y"), {"service:web/bare", "endpoints:web/bare/-"}),
        ("nodes", new_node("n1", x="y"), {"node:n1"} | A_SHOWN | C_SHOWN),
        ("nodes", new_node("n2", x="y"), {"node:n2", "pod:db/lonely"} | B_SHOWN),
        ("nodes", new_node("n3", x="y"), {"node:n3"}),
        ("namespaces", new_namespace("web", x="y"), A_SHOWN | B_SHOWN | S_SHOWN | {"service:web/alone", "ingress:web/i"}),
        ("namespaces", new_namespace("db", x="y"), C_SHOWN | T_SHOWN | {"pod:db/lonely", "ingress:db/j"}),
        ("namespaces", new_namespace("empty", x="y"), set()),
        ("ingresses", new_ingress("i", host="new.example.com"), {"ingress:web/i"}),
        ("endpoints", new_endpoints("s", new_address("b")), {"endpoints:web/s/b"}),
        ("endpointslices", new_slice("s-1", "t", new_address("c", "db")), {"endpointslice:db/s-1/c"}),
    ],
)
def test_a_change_renders_what_shows_it_and_nothing_else(plural: str, item: Object, shown: set[str]) -> None:
    """Endpoints that name a pod only in those entries, also across namespaces; what is joined by its service or node; and no more."""
    heart = settled()
    assert rendered_by(heart, upsert(heart, plural, item)) == shown
    after = {**CLUSTER, plural: [*(one for one in CLUSTER[plural] if key_of(one) != key_of(item)), item]}
    check(heart, after)
    # the same once more is no change, and the other way round it is the same change
    assert rendered_by(heart, upsert(heart, plural, item)) == set()
    assert heart.renderer.dirty == 0
    for before in CLUSTER[plural]:
        if key_of(before) == key_of(item):
            rendered_by(heart, upsert(heart, plural, before))
            check(heart, CLUSTER)


def check(heart: Heart, objects: dict[str, list[Object]]) -> None:
    for role, profile in heart.parts:
        assert heart.targets(role, profile) == expected(role, objects, profile), role


@pytest.mark.parametrize(
    ("plural", "item", "still_shown"),
    [
        ("pods", new_pod("a"), {"endpoints:web/s/a", "endpoints:db/t/a", "endpointslice:web/s-1/a"}),
        ("services", new_service("s"), S_SHOWN - {"service:web/s"}),
        ("nodes", new_node("n2"), {"pod:db/lonely"} | B_SHOWN),
        ("namespaces", new_namespace("db"), C_SHOWN | T_SHOWN | {"pod:db/lonely", "ingress:db/j"}),
        ("endpoints", CLUSTER["endpoints"][0], set()),
        ("ingresses", new_ingress("i"), set()),
    ],
)
def test_what_shows_an_object_that_is_gone_is_rendered_again(plural: str, item: Object, still_shown: set[str]) -> None:
    """Without it; and its own targets are gone."""
    heart = settled()
    assert rendered_by(heart, delete(heart, plural, item)) == still_shown
    check(heart, {**CLUSTER, plural: [one for one in CLUSTER[plural] if key_of(one) != key_of(item)]})


def test_a_change_of_fields_that_labels_do_not_use_renders_nothing() -> None:
    """Of any kind, whatever they are, and their version."""
    heart = settled()
    before = heart.rendered()
    for plural, items in CLUSTER.items():
        for item in items:
            metadata = item["metadata"] | {"resourceVersion": "99", "managedFields": [{"x": 1}], "generation": 7}
            spec = item.get("spec", {}) | {"unread": ["x"]}
            heart.upsert(plural, item | {"metadata": metadata, "spec": spec, "more": {"a": None}})
    assert heart.renderer.dirty == 0
    assert heart.rendered() == before
    assert [heart.store.counters(kind)[1] for kind in KINDS.values()] == [0] * len(KINDS)


@pytest.mark.parametrize(
    ("wanted", "plural", "item", "shown"),
    [
        ([("pod", 0)], "nodes", new_node("n1", x="y"), set()),
        ([("pod", NAMESPACE)], "nodes", new_node("n1", x="y"), set()),
        ([("pod", NODE)], "nodes", new_node("n1", x="y"), {"pod:web/a", "pod:db/c"}),
        ([("pod", NODE)], "namespaces", new_namespace("web", x="y"), set()),
        ([("pod", NAMESPACE)], "namespaces", new_namespace("web", x="y"), {"pod:web/a", "pod:web/b"}),
        ([("pod", 0)], "services", new_service("s", x="y"), set()),
        ([("pod", 0), ("service", 0)], "services", new_service("s", x="y"), {"service:web/s"}),
        ([("endpoints", 0)], "pods", new_pod("a", labels={"x": "y"}), {"endpoints:web/s/a", "endpoints:web/t/a"}),
        ([("endpoints", NODE)], "nodes", new_node("n2", x="y"), {"endpoints:web/s/b"}),
        ([("node", 0)], "pods", new_pod("a", labels={"x": "y"}), set()),
    ],
)
def test_only_what_is_wanted_is_rendered(wanted: list[tuple[str, int]], plural: str, item: Object, shown: set[str]) -> None:
    """By roles, and by what is attached."""
    heart = settled(*wanted)
    assert rendered_by(heart, upsert(heart, plural, item)) == shown


def test_nothing_is_rendered_for_subscribers_that_have_gone() -> None:
    """And each counts: the last one matters."""
    heart = settled(("pod", 0), ("pod", 0))
    heart.renderer.unsubscribe("pod", 0)
    assert rendered_by(heart, upsert(heart, "pods", new_pod("a", labels={"x": "y"}))) == {"pod:web/a"}
    heart.renderer.unsubscribe("pod", 0)
    before = heart.rendered()
    assert rendered_by(heart, upsert(heart, "pods", new_pod("a", labels={"x": "z"}))) == set()
    assert heart.rendered() == before


def test_many_changes_of_one_object_render_it_once() -> None:
    """And what shows it; also where several objects of an entry changed."""
    heart = settled(("pod", 0), ("endpoints", NODE))
    before = heart.rendered()
    rendered_by(heart, *(upsert(heart, "pods", new_pod("a", labels={"x": str(i)})) for i in range(50)))
    assert {role: count - before[role] for role, count in heart.rendered().items() if count > before[role]} == {"pod": 1, "endpoints": 2}
    before = heart.rendered()
    nodes = [upsert(heart, "nodes", new_node("n1", x=x)) for x in "12"]
    rendered_by(heart, nodes[0], upsert(heart, "pods", new_pod("a")), nodes[1])
    assert heart.rendered()["endpoints"] - before["endpoints"] == 3  # the entries of pod a twice, that of pod c once


def test_a_whole_object_covers_its_entries() -> None:
    """Endpoints that change as a service of theirs and a pod change are rendered once."""
    heart = settled(("endpoints", 0))
    before = heart.rendered()["endpoints"]
    changes = [
        upsert(heart, "pods", new_pod("a", labels={"x": "1"})),
        upsert(heart, "services", new_service("s", x="1")),
        upsert(heart, "pods", new_pod("b", labels={"x": "1"})),
    ]
    assert rendered_by(heart, *changes) == {"endpoints:web/s/a", "endpoints:web/s/b", "endpoints:web/s/-", "endpoints:web/t/a"}
    assert heart.rendered()["endpoints"] - before == 2


SMALL: list[tuple[str, Object]] = [
    ("nodes", new_node("n1", x="y")),
    ("namespaces", new_namespace("web", x="y")),
    ("pods", new_pod("a", ports=(80, 81))),
    ("services", new_service("s", x="y")),
    ("endpoints", new_endpoints("s", new_address("a"))),
    ("endpointslices", new_slice("s-1", "s", new_address("a"))),
]


def test_every_order_of_arrival_leads_to_the_same_targets() -> None:
    """All orders in which six objects that refer to each other can come; rendered at each step, or now and then."""
    objects = {plural: [item] for plural, item in SMALL}
    truth = {role: expected(role, objects, NODE | NAMESPACE) for role in ROLES}
    choose = random.Random(1)
    for order in itertools.permutations(SMALL):
        heart = Heart(*EVERYTHING)
        for plural, item in order:
            heart.upsert(plural, item)
            if choose.random() < 0.5:
                heart.settle()
        heart.settle()
        assert {role: heart.targets(role, NODE | NAMESPACE) for role in ROLES} == truth


def test_every_order_of_departure_leads_to_nothing() -> None:
    """And each step to what is left."""
    heart = Heart(*EVERYTHING)
    truth: dict[tuple[str, frozenset[str]], LabelSets] = {}
    for order in itertools.permutations(SMALL):
        left = {plural: [item] for plural, item in SMALL}
        for plural, item in SMALL:
            heart.upsert(plural, item)
        for plural, item in order:
            heart.delete(plural, item)
            del left[plural]
            heart.settle()
            for role in ROLES:
                key = (role, frozenset(left))
                if key not in truth:
                    truth[key] = expected(role, left, NODE | NAMESPACE)
                assert heart.targets(role, NODE | NAMESPACE) == truth[key]
    assert not any(heart.parts.values())


def test_names_that_nothing_needs_any_more_are_given_up() -> None:
    """Objects, and references to what has never been seen: after all is gone, their places are used again."""
    heart = Heart(("pod", NODE), ("endpoints", 0))
    places = []
    for turn in range(5):
        for number in range(20):
            addresses = new_address(f"p{turn}-{number}"), new_address(f"q{turn}-{number}")
            heart.upsert("endpoints", new_endpoints(f"e{turn}-{number}", *addresses))
            heart.upsert("pods", new_pod(f"p{turn}-{number}", node=f"n{turn}-{number}"))
        heart.settle()
        for number in range(20):
            heart.delete("endpoints", new_endpoints(f"e{turn}-{number}"))
            heart.delete("pods", new_pod(f"p{turn}-{number}"))
        heart.settle()
        places.append(heart.renderer.walk(0, [])[1])
        while heart.store.symbols.sweep():
            pass
    assert not any(heart.parts.values())
    assert set(places) == {places[0]}
    assert heart.store.take_missing() == []


def test_references_without_an_object_are_reported_by_rendering() -> None:
    """Once for each time that they are found so; only what is asked for by what is attached; and not when they have come meanwhile."""
    heart = Heart(("endpoints", 0))
    heart.upsert("endpoints", new_endpoints("s", new_address("a"), new_address("b", "db"), new_address("a")))
    heart.upsert("pods", new_pod("x", node="nowhere"))
    assert heart.store.take_missing() == []
    heart.settle()
    assert sorted(heart.store.take_missing()) == [("pod", "db", "b"), ("pod", "web", "a"), ("service", "web", "s")]
    assert heart.store.take_missing() == []
    heart.upsert("pods", new_pod("a"))
    heart.settle()
    assert heart.store.take_missing() == [("service", "web", "s")]
    heart.upsert("endpoints", new_endpoints("s", new_address("b", "db"), new_address("c")))
    heart.settle()
    heart.upsert("services", new_service("s"))
    heart.upsert("pods", new_pod("c"))
    assert heart.store.take_missing() == [("pod", "db", "b")]
    nodes = Heart(("pod", NODE), ("pod", NAMESPACE))
    nodes.upsert("pods", new_pod("x", node="nowhere"))
    nodes.settle()
    assert sorted(nodes.store.take_missing()) == [("namespace", "", "web"), ("node", "", "nowhere")]


def test_an_object_that_its_watch_deleted_is_not_reported() -> None:
    """There is nothing to ask for: deleting a thousand pods must not cost a thousand requests. It comes back as any other."""
    heart = Heart(("endpoints", 0))
    heart.upsert("services", new_service("s"))
    heart.upsert("pods", new_pod("a"))
    heart.upsert("endpoints", new_endpoints("s", new_address("a"), new_address("b")))
    heart.settle()
    assert heart.store.take_missing() == [("pod", "web", "b")]
    heart.delete("pods", new_pod("a"))
    heart.settle()
    assert heart.store.take_missing() == []
    heart.upsert("pods", new_pod("a"))
    heart.settle()
    assert heart.store.get("pod", "web", "a") is not None


def test_a_reference_that_is_gone_is_not_reported_for_another_name() -> None:
    """Though that has its place now."""
    heart = Heart(("endpoints", 0))
    heart.upsert("services", new_service("s"))
    heart.upsert("endpoints", new_endpoints("s", new_address("a")))
    heart.settle()
    heart.upsert("endpoints", new_endpoints("s"))
    heart.upsert("endpoints", new_endpoints("s", new_address("b")))
    assert heart.store.take_missing() == []
    heart.settle()
    heart.upsert("endpoints", new_endpoints("s"))
    heart.upsert("endpoints", new_endpoints("s", new_address("c")))
    heart.settle()
    assert heart.store.take_missing() == [("pod", "web", "c")]


def test_a_pod_without_a_namespace_is_found_by_an_empty_one() -> None:
    """In references as in objects, empty and absent namespaces are the same, and changes are followed."""
    heart = Heart(("endpoints", 0))
    pod = new_pod("a", "")
    address = {"ip": "192.0.2.1", "targetRef": {"kind": "Pod", "name": "a"}}
    objects = {"endpoints": [new_endpoints("s", new_address("a", ""), address)]}
    heart.load(objects)
    for labels in ({"x": "1"}, {"x": "2"}):
        pod["metadata"]["labels"] = labels
        heart.upsert("pods", pod)
        heart.settle()
        assert heart.targets("endpoints") == expected("endpoints", {**objects, "pods": [pod]}, 0)


def rounds(seed: int) -> Iterator[tuple[str, Object, bool]]:
    choose = random.Random(seed)
    for _ in range(300):
        plural = choose.choice([*CLUSTER])
        yield plural, choose.choice(CLUSTER[plural]), choose.random() < 0.4


@pytest.mark.parametrize("seed", range(5))
def test_counters_and_objects_are_those_of_a_dict(seed: int) -> None:
    """Objects of each kind now, and how many were added, changed and removed in all."""
    heart = Heart(("pod", 0))
    here: dict[tuple[str, str, str], Object] = {}
    added, updated, removed = (dict.fromkeys(KINDS, 0) for _ in range(3))
    for number, (plural, item, goes) in enumerate(rounds(seed)):
        key = (plural, *key_of(item))
        owner = {"kind": "Deployment", "name": str(number % 3), "controller": True}
        changed = {**item, "metadata": item["metadata"] | {"annotations": {"n": str(number % 3)}, "ownerReferences": [owner]}}
        if goes:
            heart.delete(plural, item)
            removed[plural] += here.pop(key, None) is not None
        else:
            heart.upsert(plural, changed)
            added[plural] += key not in here
            updated[plural] += key in here and here[key] != changed
            here[key] = changed
    for plural, kind in KINDS.items():
        assert heart.store.objects(kind) == sum(one == plural for one, _, _ in here)
        assert heart.store.counters(kind)[:3] == (added[plural], updated[plural], removed[plural])
        for item in CLUSTER[plural]:
            assert (heart.store.get(kind, *key_of(item)) is not None) == ((plural, *key_of(item)) in here)


def test_kinds_do_not_mix() -> None:
    """The same name in another kind or namespace is another object; unknown kinds are a mistake."""
    store = Store(Symbols())
    heart = Heart()
    heart.upsert("pods", new_pod("a"))
    assert heart.store.get("pod", "web", "a") is not None
    assert [heart.store.get(kind, "web", "a") for kind in KINDS.values() if kind != "pod"] == [None] * (len(KINDS) - 1)
    assert [heart.store.get("pod", namespace, "a") for namespace in ("", "db", "a")] == [None] * 3
    for ask in (store.objects, store.counters, lambda kind: store.get(kind, "", "a")):
        with pytest.raises(ValueError, match="'pods'"):
            ask("pods")
