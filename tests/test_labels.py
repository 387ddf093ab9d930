"""Labels: a read-only mapping in every respect."""

import copy
import pickle
import random
from collections.abc import Mapping
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from fastdisco._core import Symbols
from fastdisco._labels import Labels, Shapes
from tests.heart import Heart, new_pod

NAME = "__meta_kubernetes_pod_label_app"


def labels_of(pod: dict[str, Any], symbols: Symbols | None = None) -> Labels:
    heart = Heart(("pod", 0), symbols=symbols)
    heart.upsert("pods", pod)
    heart.settle()
    [[(_, labels)]] = heart.parts["pod", 0].values()
    return labels


@pytest.fixture
def labels() -> Labels:
    return labels_of(new_pod(labels={"app": "a", "é": "日😀", "empty": ""}))


def test_it_is_a_mapping_of_strings(labels: Labels) -> None:
    """By name, by iteration and by views, which all agree."""
    assert isinstance(labels, Mapping)
    assert labels[NAME] == labels.get(NAME) == labels.get(NAME, "x") == "a"
    assert labels["__meta_kubernetes_pod_label__"] == "日😀"
    assert labels["__meta_kubernetes_pod_label_empty"] == ""
    assert list(labels) == list(labels.keys()) == list(dict(labels)) == [*dict(labels)]
    assert list(labels.items()) == list(zip(labels.keys(), labels.values(), strict=True)) == list(dict(labels).items())
    assert len(labels) == len(dict(labels)) == len(labels.keys()) == len(labels.items()) == 21
    assert NAME in labels
    assert NAME in labels.keys()  # noqa: SIM118  the view itself
    assert (NAME, "a") in labels.items()
    assert "日😀" in labels.values()
    assert {**labels} == dict(labels.items())
    assert labels
    assert all(type(text) is str for pair in labels.items() for text in pair)


def test_names_come_sorted_by_their_bytes(labels: Labels) -> None:
    """Each once."""
    assert list(labels) == sorted(labels, key=str.encode)
    assert len({*labels}) == len(labels)


@pytest.mark.parametrize("name", ["", "app", NAME + "x", NAME[:-1], "never seen", "\ud800", "日", "a", "\0", None, 5, b"app", ("a",)])
def test_what_is_not_there(labels: Labels, name: Any) -> None:
    """Names that are not labels, though they may be strings elsewhere; and whatever is no string."""
    assert name not in labels
    assert labels.get(name) is None
    assert labels.get(name, "other") == labels.get(name, default="other") == "other"
    with pytest.raises(KeyError) as caught:
        labels[name]
    assert caught.value.args == (name,)


def test_unhashable_names_are_just_not_there(labels: Labels) -> None:
    """No hash of Python's is asked for."""
    names: Any = [[], {}, {1}]
    assert not any(name in labels for name in names)


def test_the_same_string_is_the_same_object(labels: Labels) -> None:
    """It is made once, however often it is read."""
    assert labels[NAME] is labels[NAME]
    assert next(iter(labels)) is next(iter(labels))


def test_it_cannot_be_changed(labels: Labels) -> None:
    """No item, no attribute, no subclass, and no way to make one."""
    changeable: Any = labels
    with pytest.raises(TypeError):
        changeable[NAME] = "b"
    with pytest.raises(TypeError):
        del changeable[NAME]
    for attribute in ("x", "shape", "ids", "get", "__class__"):
        with pytest.raises((AttributeError, TypeError)):
            setattr(changeable, attribute, 1)
    for make in (Labels, lambda: Labels.__new__(Labels), lambda: Labels({}), lambda: type("Other", (Labels,), {})()):  # type: ignore[call-arg]
        with pytest.raises(TypeError):
            make()
    with pytest.raises(TypeError):
        Shapes(None)  # type: ignore[arg-type]


def test_it_equals_every_mapping_of_the_same_strings(labels: Labels) -> None:
    """Dicts, in whatever order, and labels of the same or of another discovery; and nothing else."""
    pod = new_pod(labels={"app": "a", "é": "日😀", "empty": ""})
    symbols = Symbols()
    same = [dict(labels), dict(reversed([*labels.items()])), labels, labels_of(pod), labels_of(pod, symbols), labels_of(pod, symbols)]
    for other in same:
        assert labels == other
        assert other == labels
        assert not labels != other  # noqa: SIM202  the operator itself
    different = [{}, dict(labels) | {"x": ""}, dict(labels) | {NAME: "b"}, dict([*labels.items()][1:]), [*labels], None, 5, "labels"]
    for thing in [*different, labels_of(new_pod()), labels_of(new_pod(labels={"app": "b", "é": "日😀", "empty": ""}))]:
        assert labels != thing
        assert thing != labels
    assert same[4] == same[5]


def test_equal_labels_have_equal_hashes(labels: Labels) -> None:
    """Also of another discovery, whose strings have other numbers."""
    pod = new_pod(labels={"app": "a", "é": "日😀", "empty": ""})
    symbols = Symbols()
    labels_of(new_pod("other", uid="moves all numbers", labels={"x": "y"}), symbols)
    others = [labels_of(pod), labels_of(pod, symbols)]
    assert {hash(labels)} == {hash(other) for other in others}
    assert {labels, *others} == {labels}
    assert len({labels, labels_of(new_pod("b")), labels_of(new_pod("c"))}) == 3


def test_it_pickles_and_copies_as_a_dict(labels: Labels) -> None:
    """By every protocol."""
    for protocol in range(pickle.HIGHEST_PROTOCOL + 1):
        found = pickle.loads(pickle.dumps(labels, protocol))
        assert type(found) is dict
        assert found == labels
    assert copy.copy(labels) == copy.deepcopy(labels) == dict(labels)


def test_its_text_shows_what_is_in_it(labels: Labels) -> None:
    """As a dict's does."""
    assert repr(labels) == f"Labels({dict(labels)!r})"


def test_it_matches_as_a_mapping(labels: Labels) -> None:
    """In a match statement."""
    match labels:
        case {"__meta_kubernetes_pod_label_app": value, **rest}:
            assert value == "a"
            assert len(rest) == len(labels) - 1
        case _:
            pytest.fail("no mapping")


def test_very_many_labels_in_any_order_are_sorted() -> None:
    """With keys that become equal, of which the greatest counts."""
    keys = [f"k{number}{end}" for number in range(2000) for end in ("-", ".", "/")]
    random.Random(1).shuffle(keys)
    labels = labels_of(new_pod(labels={key: key for key in keys}))
    prefix = "__meta_kubernetes_pod_label_"
    assert {name: value for name, value in labels.items() if name.startswith(prefix)} == {
        f"{prefix}k{number}_": f"k{number}/" for number in range(2000)
    }
    assert list(labels) == sorted(labels, key=str.encode)


@settings(deadline=None, max_examples=200)
@given(st.dictionaries(st.text("abcé日😀-_./\0", min_size=1, max_size=4), st.text(max_size=5), max_size=8))
def test_labels_are_what_a_dict_would_be(pairs: dict[str, str]) -> None:
    """Any keys and values, through the names that are made of the keys; the greatest of keys that become equal counts."""
    labels = labels_of(new_pod(labels=pairs))
    prefix = "__meta_kubernetes_pod_label_"
    made = {prefix + "".join(c if c.isascii() and c.isalnum() else "_" for c in key): pairs[key] for key in sorted(pairs, key=str.encode)}
    assert {name: value for name, value in labels.items() if name.startswith(prefix)} == made
    assert all(labels[name] == value for name, value in made.items())
    assert dict(labels) == {name: labels[name] for name in labels}
