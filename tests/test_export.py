"""Snapshots of targets and the documents that they are written as, read by other parsers than our own."""

from __future__ import annotations

import random
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

import orjson
import pytest
import yaml
from hypothesis import given, settings
from hypothesis import strategies as st

from fastdisco._core import Symbols
from fastdisco._export import SYNTAXES, Snapshot
from fastdisco._labels import Labels
from fastdisco.sidecar.query import Syntax

from .relabel_rig import Pods, pod

# What YAML, JSON or vmagent would read otherwise than it is meant.
ODD = [
    "", "\x00", "\n", "\r\n", "\t", "\x1f", "\x7f", "\x80", "\x85", "\x9f", "\xa0", "\u2028", "\u2029", "\ufeff", "\ufffe", "\uffff",
    "\ufffd", "\ud7ff", "\ue000", "😀", "\U0001fffe", "\U0010ffff", '"', "\\", "\\u0041", "/", "</script>", "%{HOME}", "%%{A}", "%", "{",
    "${A}", "$1", "null", "~", "yes", "1", "- a", "a: b", " a", "a ", "#", "*a", "&a", "!!int 1", "'", "é", "日本",
]  # fmt: skip
TEXTS = st.one_of(st.sampled_from(ODD), st.text(max_size=20), st.lists(st.sampled_from(ODD), max_size=4).map("".join))
DISCOVERED = "__meta_kubernetes_pod_"


def snapshot_of(labels: Iterable[Labels], symbols: Symbols, *, distinct: bool = False, **options: Any) -> tuple[Snapshot, bytes]:
    snapshot = Snapshot(symbols, **options)
    for one in labels:
        snapshot.add_labels(one)
    snapshot.seal()
    return snapshot, snapshot.arrange(distinct)


def taken(pods: Sequence[Mapping[str, Any]], **options: Any) -> tuple[Snapshot, bytes]:
    """Of the targets of these pods."""
    rig = Pods()
    rig.put_all([dict(one) for one in pods])
    return snapshot_of(rig.labels(), rig.symbols, **options)


def document(snapshot: Snapshot, syntax: Syntax) -> bytes:
    text = b"".join(snapshot.render(number, syntax) for number in range(snapshot.slices))
    assert len(text) == snapshot.length(syntax)
    return text


def read(text: bytes, syntax: Syntax) -> Any:
    return orjson.loads(text) if syntax == "json" else yaml.safe_load(text.decode())


def groups(labels: Iterable[Mapping[str, str]]) -> list[dict[str, Any]]:
    """What the formats of http_sd and file_sd say of these label sets."""
    return [
        {"targets": [one["__address__"]], "labels": {name: value for name, value in one.items() if value and name != "__address__"}}
        for one in labels
    ]


@given(st.lists(st.tuples(TEXTS, TEXTS), max_size=5))
def test_every_value_is_read_back_by_parsers_of_json_and_of_yaml(values: list[tuple[str, str]]) -> None:
    """JSON as JSON and, as vmagent reads it, as YAML; YAML as YAML. One group a target, and no empty labels."""
    rig = Pods()
    rig.put_all([pod(f"p{number}", {"a": one, "b": other}, ports=[80]) for number, (one, other) in enumerate(values)])
    snapshot, _ = snapshot_of(rig.labels(), rig.symbols)
    expected = groups(rig.discovered())
    assert len(expected) == len(values)
    for syntax, parser in (("json", "json"), ("json", "yaml"), ("yaml", "yaml")):
        found = read(document(snapshot, syntax), parser)  # type: ignore[arg-type]
        assert sorted(found, key=repr) == sorted(expected, key=repr)


@given(st.lists(TEXTS, min_size=1, max_size=5))
def test_nothing_odd_is_left_in_a_document(values: list[str]) -> None:
    """Neither what YAML forbids or takes for a line's end, nor surrogates, nor an escaped slash, nor what vmagent would expand."""
    snapshot, _ = taken([pod(f"p{number}", {"a": value}) for number, value in enumerate(values)])
    for syntax in SYNTAXES:
        text = document(snapshot, syntax).decode()
        assert not re.search("[\x00-\x09\x0b-\x1f\x7f-\x9f\u2028\u2029\ufeff\ufffe\uffff]", text)
        assert not re.search(r"%\{|\\/|\\u[dD][89a-fA-F]", text)


def test_a_document_has_this_form() -> None:
    """To the byte; `targets` and `labels` are all that Prometheus lets in."""
    snapshot, _ = taken([pod("a", {"x": "%{y} 😀\u2028"}, ports=[80])], wanted=lambda name: name == f"{DISCOVERED}label_x")
    value = f'"{DISCOVERED}label_x":"\\u0025{{y}} 😀\\u2028"'
    assert document(snapshot, "json").decode() == '[{"targets":["127.0.0.1:80"],"labels":{' + value + "}}]\n"
    assert document(snapshot, "yaml").decode() == f'- targets: ["127.0.0.1:80"]\n  labels:\n    {value.replace(":", ": ", 1)}\n'
    bare, _ = taken([pod("a")], wanted=lambda _: False)
    assert document(bare, "json") == b'[{"targets":["127.0.0.1"],"labels":{}}]\n'
    assert document(bare, "yaml") == b'- targets: ["127.0.0.1"]\n  labels: {}\n'
    empty, _ = taken([])
    assert [document(empty, syntax) for syntax in SYNTAXES] == [b"[]\n", b"[]\n"]


@settings(max_examples=30)
@given(st.integers(0, 1000))
def test_order_and_digests_follow_from_the_targets_alone(seed: int) -> None:
    """By address, whatever came first and whatever else the table of strings has seen: replicas answer the same bytes."""
    choose = random.Random(seed)
    pods = [pod(f"p{number}", {"n": str(number % 7)}, ports=[80, 81], ip=f"127.0.0.{number % 5}") for number in range(30)]
    first, digests = taken(pods)
    rig = Pods()
    rig.put_all([pod(f"other{number}", {"z": str(number)}) for number in range(choose.randrange(50))])
    rig.put_all(choose.sample(pods, len(pods)))
    second, others = snapshot_of(choose.sample(rig.labels(), 60), rig.symbols)
    assert digests == others
    assert document(first, "json") == document(second, "json")
    addresses = [group["targets"][0] for group in read(document(first, "json"), "json")]
    assert addresses == sorted(addresses)
    changed, other_digests = taken([*pods[:-1], pod("p29", {"n": "8"}, ports=[80, 81], ip="127.0.0.4")])
    assert len({other_digests[at : at + 16] for at in range(0, 960, 16)} - {digests[at : at + 16] for at in range(0, 960, 16)}) == 2
    assert len(changed) == 60


def test_equal_targets_become_one_only_where_that_is_asked_for() -> None:
    """Of discovered labels each target is shown; of final ones each once."""
    pods = [pod(name, ports=[80]) for name in ("a", "b", "c")] + [pod("d", ports=[81])]

    def wanted(name: str) -> bool:
        return name == f"{DISCOVERED}node_name"

    every, _ = taken(pods, wanted=wanted)
    once, _ = taken(pods, wanted=wanted, distinct=True)
    assert [group["targets"][0] for group in read(document(every, "json"), "json")] == ["127.0.0.1:80"] * 3 + ["127.0.0.1:81"]
    assert [group["targets"][0] for group in read(document(once, "json"), "json")] == ["127.0.0.1:80", "127.0.0.1:81"]
    assert (len(every), len(once)) == (4, 2)


def test_a_large_document_comes_in_slices_of_bounded_size() -> None:
    """Each about a quarter of a megabyte; together they are the document."""
    snapshot, _ = taken([pod(f"p{number}", {"a": "x" * 500}, ports=[number + 1]) for number in range(3000)])
    sizes = [len(snapshot.render(number, "json")) for number in range(snapshot.slices)]
    assert len(sizes) > 5
    assert max(sizes) < 300_000
    assert len(read(document(snapshot, "json"), "json")) == len(read(document(snapshot, "yaml"), "yaml")) == 3000


def test_targets_without_an_address_are_left_out_and_counted() -> None:
    """An http_sd client could do nothing with them."""
    rig = Pods()
    rig.put_all([pod("a"), pod("b")])
    relabeling = rig.relabeling([], {"__address__": "x"})
    assert len(rig.survivors(relabeling)) == 2
    snapshot, _ = snapshot_of(rig.labels(), rig.symbols, split=lambda labels: {**labels, "__address__": ""})
    assert (len(snapshot), snapshot.without_address) == (2, 0)  # nothing in these addresses is to be split
    rig.put_all([pod("a", ip="127.0.0.1/x")])
    snapshot, _ = snapshot_of(rig.labels(), rig.symbols, split=lambda labels: {**labels, "__address__": ""})
    assert (len(snapshot), snapshot.without_address) == (0, 1)


def test_rules_choose_targets_and_leave_their_labels() -> None:
    """Those of a batch that survive, with the labels that they were discovered with; nothing is counted as dropped."""
    rig = Pods()
    rig.put_all([pod(name, {"app": name}, ports=[80]) for name in ("a", "b", "c")])
    relabeling = rig.relabeling([
        {"source_labels": [f"{DISCOVERED}label_app"], "regex": "a|c", "action": "keep"},
        {"target_label": "__address__", "replacement": "elsewhere:1"},
    ])  # fmt: skip
    snapshot = Snapshot(rig.symbols)
    batch, _, _ = rig.renderer.walk(0, [("pod", 0)], 1 << 30)
    snapshot.add_batch(batch, "pod", 0, relabeling)
    batch.close()
    snapshot.seal()
    snapshot.arrange()
    expected = groups(labels for labels in rig.discovered() if labels[f"{DISCOVERED}label_app"] != "b")
    assert read(document(snapshot, "json"), "json") == expected
    assert not any(relabeling.drops[0])


def test_a_sealed_snapshot_keeps_nothing_of_the_engine() -> None:
    """Its strings may be swept away, and it is written all the same; before, they are kept for it."""
    rig = Pods()
    rig.put_all([pod(f"p{number}", {"a": f"value-{number}"}) for number in range(200)])
    labels = rig.labels()
    snapshot = Snapshot(rig.symbols)
    for one in labels:
        snapshot.add_labels(one)
    expected = groups(rig.discovered())
    del labels, one
    rig.put_all([])
    rig.sweep()
    kept = len(rig.symbols)
    snapshot.seal()
    rig.sweep()
    assert len(rig.symbols) < kept
    snapshot.arrange()
    assert sorted(read(document(snapshot, "json"), "json"), key=repr) == sorted(expected, key=repr)


def test_a_snapshot_is_used_in_its_order() -> None:
    """Filled, sealed, arranged; what comes too early or too late is refused, and so is what is of another discovery."""
    rig, other = Pods(), Pods()
    rig.put_all([pod("a")])
    (labels,) = rig.labels()
    snapshot = Snapshot(rig.symbols)
    refused: list[tuple[Callable[[], object], type[Exception]]] = [
        (lambda: Snapshot(other.symbols).add_labels(labels), ValueError),
        (snapshot.arrange, ValueError),
        (lambda: snapshot.render(0, "json"), IndexError),
    ]
    for call, error in refused:
        with pytest.raises(error):
            call()
    snapshot.add_labels(labels)
    snapshot.seal()
    with pytest.raises(ValueError, match="sealed"):
        snapshot.add_labels(labels)
    snapshot.arrange()
    for number in (-1, 1):
        with pytest.raises(IndexError):
            snapshot.render(number, "json")
