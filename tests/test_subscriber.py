"""Rendered labels become scrape works: which stay, which are made, and what is told of it."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fastdisco.subscriber import PART_BITS, Subscriber

Targets = dict[int, list[tuple[int, str]]]  # by key; texts stand for labels here
SLOT = 7 << PART_BITS


class Work:
    def __init__(self, labels: str) -> None:
        self.labels = labels


class Recorder:
    """A constructor that writes down its calls."""

    def __init__(self) -> None:
        self.labels: list[str] = []

    def __call__(self, labels: str) -> Work:
        self.labels.append(labels)
        return Work(labels)


class Job:
    """Writes down what it is told."""

    def __init__(self, constructor: Callable[[Any], Any] | None = Work) -> None:
        self.constructor = constructor
        self.told: list[tuple[Any, ...]] = []
        self.errors: list[BaseException] = []

    def constructor_failed(self, error: BaseException) -> None:
        self.errors.append(error)

    def caught_up(self) -> None: ...

    def added(self, work: Any) -> None:
        self.told.append(("added", work.labels))

    def updated(self, old: Any, new: Any) -> None:
        self.told.append(("updated", old.labels, new.labels))

    def removed(self, work: Any) -> None:
        self.told.append(("removed", work.labels))


def subscriber(job: Job) -> Subscriber:
    return Subscriber(job, "pod", 0, ("pod",))


def bring(one: Subscriber, targets: Targets, keys: Iterable[int] | None = None) -> None:
    """Parts become what `targets` says; `keys`: parts that were rendered, where that is more than have targets."""
    rendered: Any = [(key, tuple(entries)) for key, entries in targets.items() if entries]
    for _ in one.apply(list(targets) if keys is None else keys, rendered):
        pass


def held(one: Subscriber) -> dict[str, Any]:
    return {work.labels: work for work in one.all_works()}


def test_only_what_changed_is_made_told_and_replaced() -> None:
    """Of three targets one stays as it is, one is updated, one goes; the constructor is called for the changed one alone."""
    job = Job(make := Recorder())
    one = subscriber(job)
    bring(one, {SLOT: [(0, "a"), (1, "b"), (2, "c")]})
    before = held(one)
    job.told.clear()
    make.labels.clear()
    bring(one, {SLOT: [(0, "a"), (1, "B")]})
    assert make.labels == ["B"]
    assert sorted(job.told) == [("removed", "c"), ("updated", "b", "B")]
    assert held(one)["a"] is before["a"]
    assert one.works == 2


def test_equal_labels_keep_their_work_when_positions_shift() -> None:
    """A target that leaves the front moves the others up: they keep their works, and only the first is told as removed."""
    job = Job()
    one = subscriber(job)
    bring(one, {SLOT + part: [(part, name)] for part, name in enumerate("abcd")})
    before = held(one)
    job.told.clear()
    bring(one, {SLOT + part: [(part, name)] for part, name in enumerate("bcd")}, range(SLOT, SLOT + 4))
    assert job.told == [("removed", "a")]
    assert held(one) == {name: before[name] for name in "bcd"}


def test_a_new_target_in_front_is_all_that_is_told() -> None:
    """The others move down and keep their works."""
    job = Job()
    one = subscriber(job)
    bring(one, {SLOT: [(0, "a"), (1, "b")]})
    before = held(one)
    job.told.clear()
    bring(one, {SLOT: [(0, "z"), (1, "a"), (2, "b")]})
    assert job.told == [("added", "z")]
    assert held(one).items() >= before.items()


def test_a_part_without_targets_loses_them_and_others_are_left_alone() -> None:
    """Only the parts that were rendered are touched, and an empty part takes no room."""
    job = Job()
    one = subscriber(job)
    bring(one, {SLOT: [(0, "a")], SLOT + 1: [(1, "b")], SLOT + (1 << PART_BITS): [(0, "c")]})
    bring(one, {}, [SLOT + 1])
    assert set(held(one)) == {"a", "c"}
    assert set(one.targets) == {SLOT, SLOT + (1 << PART_BITS)}


def test_none_is_no_target_and_is_asked_again_only_when_labels_change() -> None:
    """From None to a work is added, from a work to None is removed, from None to None nothing."""
    asked: list[str] = []

    def make(labels: str) -> Work | None:
        asked.append(labels)
        return Work(labels) if labels == "c" else None

    job = Job(make)
    one = subscriber(job)
    for labels, told in [("a", []), ("a", []), ("b", []), ("c", [("added", "c")]), ("d", [("removed", "c")])]:
        job.told.clear()
        bring(one, {SLOT: [(0, labels)]})
        assert job.told == told
    assert asked == ["a", "b", "c", "d"]
    assert one.works == 0
    assert held(one) == {}


@pytest.mark.parametrize("error", [ValueError("no"), asyncio.CancelledError()])
def test_a_constructor_that_raises_leaves_the_previous_work_or_none(error: BaseException) -> None:
    """Nothing is told, the failure is counted, and other targets go on; whatever is raised that does not end the program."""
    bad = {"b", "x"}

    def make(labels: str) -> Work:
        if labels in bad:
            raise error
        return Work(labels)

    job = Job(make)
    one = subscriber(job)
    bring(one, {SLOT: [(0, "a"), (1, "x")], SLOT + 1: [(0, "c")]})
    assert (job.errors, set(held(one))) == ([error], {"a", "c"})
    before = held(one)["a"]
    bring(one, {SLOT: [(0, "b"), (1, "x")]}, [SLOT])
    assert (job.errors, one.works) == ([error, error], 2)
    assert held(one)["a"] is before
    bring(one, {SLOT: [(0, "d"), (1, "x")]}, [SLOT])
    assert job.told[-1] == ("updated", "a", "d")


def test_without_a_constructor_the_labels_are_the_work() -> None:
    """What is rendered is handed on as it is."""

    class Text(str):
        labels = property(str)

    job = Job(None)
    one = subscriber(job)
    labels: Any = Text("a")
    bring(one, {SLOT: [(0, labels)]})
    assert next(one.all_works()) is labels


def test_an_object_changes_at_once() -> None:
    """However long its works take to make: until the last one is there, nothing is told and the old works stay."""
    job = Job()
    one = subscriber(job)
    rendered: Any = [(SLOT, tuple((position, f"t{position}") for position in range(100)))]
    work = one.apply([SLOT], rendered)
    pauses = 0
    while not job.told:
        assert held(one) == {}
        next(work)
        pauses += 1
    assert pauses >= 3
    assert len(job.told) == len(held(one)) == 100


def test_a_constructor_that_stops_its_own_job_ends_the_work() -> None:
    """No further target is made for it, and nothing is told."""
    made: list[str] = []

    def make(labels: str) -> Work:
        made.append(labels)
        one.stopped = True
        return Work(labels)

    job = Job(make)
    one = subscriber(job)
    bring(one, {(slot << PART_BITS): [(0, f"t{slot}")] for slot in range(10)})
    assert (made, job.told, held(one)) == (["t0"], [], {})


def test_release_lets_go_of_everything_in_steps() -> None:
    """A job with very many targets must not hold the loop when it stops."""
    job = Job()
    one = subscriber(job)
    bring(one, {slot << PART_BITS: [(0, f"t{slot}")] for slot in range(100)})
    sizes = [len(one.targets) for _ in one.release()]
    assert sizes[0] > sizes[1] > 0
    assert (one.targets, one.works, one.stopped) == ({}, 0, True)


renderings = st.lists(st.lists(st.lists(st.sampled_from("abcdef"), max_size=4), max_size=4), max_size=6)


@given(renderings)
def test_what_is_told_adds_up_to_what_is_held(states: list[list[list[str]]]) -> None:
    """Through any sequence of renderings: the works are those of the last one, told one by one, and kept where labels were there before."""
    job = Job()
    one = subscriber(job)
    told: list[str] = []
    previous: list[str] = []
    keys = range(SLOT, SLOT + 4)
    for parts in states:
        job.told.clear()
        made = Recorder()
        job.constructor = made
        bring(one, {SLOT + at: list(enumerate(names)) for at, names in enumerate(parts) if names}, keys)
        for kind, *labels in job.told:
            if kind != "added":
                told.remove(labels[0])
            if kind != "removed":
                told.append(labels[-1])
        wanted = sorted(name for names in parts for name in names)
        assert sorted(work.labels for work in one.all_works()) == sorted(told) == wanted
        assert one.works == len(wanted)
        fresh = list(wanted)
        for name in previous:
            if name in fresh:
                fresh.remove(name)
        assert sorted(made.labels) == fresh
        previous = wanted
