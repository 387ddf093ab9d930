"""Rendered labels become scrape works: which stay, which are made, and what is told of it."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fastdisco._parts import Rendered
from fastdisco._subscriber import PART_BITS, Subscriber
from fastdisco._works import Works

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

    def __init__(self, constructor: Callable[[Any], Any] | None = Work, *, sharing: bool = False) -> None:
        self.told: list[tuple[Any, ...]] = []
        self.errors: list[BaseException] = []
        self.works = Works(constructor, self.errors.append, sharing=sharing)

    def caught_up(self) -> None: ...

    def failed(self, error: Exception) -> None:
        raise error

    def added(self, work: Any) -> None:
        self.told.append(("added", work.labels))

    def updated(self, old: Any, new: Any) -> None:
        self.told.append(("updated", old.labels, new.labels))

    def removed(self, work: Any) -> None:
        self.told.append(("removed", work.labels))


def subscriber(job: Job) -> Subscriber:
    return Subscriber(job, "pod", 0, ("pod",), job.works)


def bring(one: Subscriber, targets: Targets, keys: Iterable[int] | None = None) -> None:
    """Parts become what `targets` says; `keys`: parts that were rendered, where that is more than have targets."""
    rendered: Any = [(key, tuple(entries)) for key, entries in targets.items() if entries]
    for _ in one.apply(Rendered(targets if keys is None else keys, rendered)):
        pass


def works(*some: Subscriber) -> list[Any]:
    """What the job of these shows."""
    job: Any = some[0].job
    return list(job.works.shown())


def held(*some: Subscriber) -> dict[str, Any]:
    return {work.labels: work for work in works(*some)}


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
    assert set(one.keys()) == {SLOT, SLOT + (1 << PART_BITS)}


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
    assert works(one)[0] is labels


def test_an_object_changes_at_once() -> None:
    """However long its works take to make: until the last one is there, nothing is told and the old works stay."""
    job = Job()
    one = subscriber(job)
    rendered: Any = [(SLOT, tuple((position, f"t{position}") for position in range(100)))]
    work = iter(one.apply(Rendered((), rendered)))
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


def test_a_job_that_stops_between_the_works_of_one_object_asks_for_no_more() -> None:
    """An object may have very many targets: after the next pause nothing is made."""
    job = Job(make := Recorder())
    one = subscriber(job)
    rendered: Any = [(SLOT, tuple((position, f"t{position}") for position in range(100)))]
    work = iter(one.apply(Rendered((), rendered)))
    next(work)
    one.stopped = True
    made = len(make.labels)
    assert list(work) == []
    assert (len(make.labels), job.told, works(one)) == (made, [], [])


# ---- targets that share their works ----


def sharing(constructor: Callable[[Any], Any] | None = Work, subscribers: int = 1) -> tuple[Job, list[Subscriber]]:
    job = Job(constructor, sharing=True)
    return job, [subscriber(job) for _ in range(subscribers)]


def test_equal_labels_share_one_work_that_stays_until_the_last_goes() -> None:
    """Of one object and of several; made once, told once, and removed once."""
    job, (one,) = sharing(make := Recorder())
    other = SLOT + (1 << PART_BITS)
    bring(one, {SLOT: [(0, "a"), (1, "a")], other: [(0, "a"), (1, "b")]})
    assert (make.labels, job.told) == (["a", "b"], [("added", "a"), ("added", "b")])
    assert (len(works(one)), one.works, job.works.duplicates) == (2, 2, 2)
    job.told.clear()
    bring(one, {SLOT: [(0, "a")]})
    bring(one, {}, [SLOT])
    assert (job.told, one.works, job.works.duplicates) == ([], 2, 0)
    bring(one, {other: [(1, "b")]})
    assert (job.told, set(held(one)), one.works) == ([("removed", "a")], {"b"}, 1)


def test_without_sharing_equal_labels_have_works_of_their_own() -> None:
    """Where discovered labels are shown nothing is merged."""
    job = Job()
    one = subscriber(job)
    bring(one, {SLOT: [(0, "a"), (1, "a")]})
    assert (len(works(one)), one.works, job.works.duplicates) == (2, 2, 0)
    assert len({id(work) for work in works(one)}) == 2


def test_the_only_target_of_a_work_is_updated_and_one_of_several_is_not() -> None:
    """From a shared work to one of its own: added; to the work of others: removed; from one to one: updated."""
    job, (one,) = sharing()
    bring(one, {SLOT: [(0, "a"), (1, "a")]})
    for labels, told in (
        (["b", "a"], [("added", "b")]),
        (["c", "a"], [("updated", "b", "c")]),
        (["a", "a"], [("removed", "c")]),
        (["d", "d"], [("added", "d"), ("removed", "a")]),
    ):
        job.told.clear()
        bring(one, {SLOT: list(enumerate(labels))})
        assert sorted(job.told) == sorted(told)
        assert one.works == len(works(one)) == len(set(labels))


def test_works_are_shared_across_configurations_of_a_job() -> None:
    """The work counts where it was shown first, so that no count falls below 0, and goes with the last target wherever that is."""
    job, (one, two) = sharing(subscribers=2)
    bring(one, {SLOT: [(0, "a")]})
    bring(two, {SLOT: [(0, "a"), (1, "b")]})
    assert (one.works, two.works, len(works(one, two))) == (1, 1, 2)
    job.told.clear()
    bring(one, {}, [SLOT])
    assert (one.works, two.works, job.told, len(works(one, two))) == (1, 1, [], 2)
    bring(two, {SLOT: [(1, "b")]})
    assert (one.works, two.works, job.told) == (0, 1, [("removed", "a")])
    bring(one, {SLOT: [(0, "b")]})
    for last in (two, one):
        for _ in last.release():
            pass
    assert (one.works, two.works, job.works.duplicates) == (0, 0, 0)


def test_a_work_is_told_before_it_is_shown() -> None:
    """What one configuration has made and not yet told, another one of the job may need: whoever shows it first tells it."""
    job, (one, two) = sharing(make := Recorder(), subscribers=2)
    rendered: Any = [(SLOT, tuple((position, f"t{position}") for position in range(100)))]
    slow = iter(one.apply(Rendered((), rendered)))
    next(slow)
    assert "t0" in make.labels
    bring(two, {SLOT: [(0, "t0")]})
    assert job.told == [("added", "t0")]
    bring(two, {}, [SLOT])
    assert job.told[-1] == ("removed", "t0")
    list(slow)
    assert job.told.count(("added", "t0")) == 2
    assert make.labels.count("t0") == 1
    assert len(works(one, two)) == one.works + two.works == 100


def test_none_is_shared_too() -> None:
    """A constructor that wants no target is not asked for the same labels again while they are there."""
    job, (one,) = sharing(lambda labels: asked.append(labels))
    asked: list[str] = []
    bring(one, {SLOT: [(0, "a"), (1, "a")], SLOT + 1: [(0, "a")]})
    assert (asked, job.told, works(one), one.works, job.works.duplicates) == (["a"], [], [], 0, 0)
    bring(one, {}, [SLOT, SLOT + 1])
    bring(one, {SLOT: [(0, "a")]})
    assert (asked, one.works) == (["a", "a"], 0)


def test_a_constructor_that_raises_leaves_a_shared_work_to_all_that_have_it() -> None:
    """The work that a target keeps is gone only when also those are gone whose labels it was made of."""
    bad = {"x"}

    def make(labels: str) -> Work:
        if labels in bad:
            raise ValueError(labels)
        return Work(labels)

    job, (one,) = sharing(make)
    bring(one, {SLOT: [(0, "a"), (1, "a"), (2, "c")]})
    kept = held(one)["a"]
    job.told.clear()
    bring(one, {SLOT: [(0, "x"), (1, "a"), (2, "c")]})
    assert (job.told, one.works, held(one)["a"] is kept, len(job.errors)) == ([], 2, True, 1)
    bring(one, {SLOT: [(0, "x"), (1, "c"), (2, "c")]})  # those of its labels are gone, it has the work still
    assert (job.told, one.works, set(held(one))) == ([], 2, {"a", "c"})
    bring(one, {SLOT: [(0, "x"), (1, "x"), (2, "c")]})  # the other one keeps what it had, too
    assert (job.told, one.works, set(held(one))) == ([], 2, {"a", "c"})
    bring(one, {SLOT: [(0, "y"), (1, "x"), (2, "c")]})
    assert (job.told, one.works) == ([("updated", "a", "y")], 2)
    bad.clear()
    bring(one, {SLOT: [(0, "y"), (1, "y"), (2, "z")]})
    assert sorted(held(one)) == ["y", "z"]
    assert (one.works, job.works.duplicates) == (2, 1)
    bring(one, {}, [SLOT])
    assert (one.works, works(one)) == (0, [])


def test_a_target_without_a_work_is_made_one_as_soon_as_another_one_succeeds() -> None:
    """A failure is not remembered for equal labels: each target asks for itself."""
    answers: list[Any] = [ValueError("no"), None]

    def make(labels: str) -> Work:
        if answers:
            raise answers.pop(0) or ValueError("again")
        return Work(labels)

    job, (one,) = sharing(make)
    bring(one, {SLOT: [(0, "a"), (1, "a"), (2, "a")]})
    assert (len(job.errors), one.works, job.told) == (2, 1, [("added", "a")])
    bring(one, {}, [SLOT])
    assert (one.works, job.told[-1]) == (0, ("removed", "a"))


@pytest.mark.parametrize("shared", [True, False])
def test_one_object_as_the_work_of_different_labels(shared: bool) -> None:
    """A constructor may give the same object again: each label set counts, and a change from it to itself is not told."""
    same = Work("same")
    job = Job(lambda _: same, sharing=shared)
    one = subscriber(job)
    bring(one, {SLOT: [(0, "a"), (1, "b")]})
    assert (len(works(one)), one.works) == (2, 2)
    job.told.clear()
    bring(one, {SLOT: [(0, "c"), (1, "b")]})
    assert (job.told, len(works(one)), one.works) == ([], 2, 2)
    bring(one, {SLOT: [(1, "b")]})
    assert (job.told, one.works) == ([("removed", "same")], 1)


def test_a_job_that_begins_and_ends_to_share() -> None:
    """Works made before keep to their targets; nothing is counted twice."""
    job = Job()
    one = subscriber(job)
    bring(one, {SLOT: [(0, "a"), (1, "a"), (2, "b")]})
    job.works.sharing = True
    bring(one, {SLOT: [(0, "a"), (1, "c"), (2, "c")]})
    assert (len(works(one)), one.works, job.works.duplicates) == (2, 2, 1)
    job.works.sharing = False
    bring(one, {SLOT: [(0, "d"), (1, "c"), (2, "d")]})
    assert (len(works(one)), one.works, job.works.duplicates) == (3, 3, 0)
    bring(one, {}, [SLOT])
    assert (one.works, works(one)) == (0, [])


def test_release_lets_go_of_everything_in_steps() -> None:
    """A job with very many targets must not hold the loop when it stops."""
    job = Job()
    one = subscriber(job)
    bring(one, {slot << PART_BITS: [(0, f"t{slot}")] for slot in range(100)})
    sizes = [one.targets for _ in one.release()]
    assert sizes[0] > sizes[1] > 0
    assert (one.targets, one.works, one.stopped) == (0, 0, True)


@given(st.lists(st.dictionaries(st.integers(0, 40), st.lists(st.sampled_from("abcdef"), max_size=2), max_size=30), max_size=12))
def test_objects_that_come_and_go_are_those_that_are_there(batches: list[dict[int, list[str]]]) -> None:
    """Many objects, of which each batch brings some, changes some, and takes the targets of some away; the rest stays as it is."""
    job = Job()
    one = subscriber(job)
    there: dict[int, list[tuple[int, str]]] = {}
    for batch in batches:
        targets = {slot << PART_BITS: list(enumerate(names)) for slot, names in batch.items()}
        bring(one, targets, targets)
        there = {key: found for key, found in (there | targets).items() if found}
        assert sorted(one.keys()) == sorted(there)
        assert one.targets == sum(map(len, there.values()))
        entries: list[Any] = one.entries()
        assert sorted(entry[:2] for entry in entries) == sorted(entry for found in there.values() for entry in found)
        labels: list[Any] = one.labels()
        assert sorted(labels) == sorted(work.labels for work in works(one))


def test_what_is_rendered_twice_is_what_it_was_the_last_time() -> None:
    """Parts come in any order, and of one that comes again only the later rendering counts."""
    job = Job()
    one = subscriber(job)
    parts: Any = [(SLOT + 1, ((0, "old"),)), (SLOT, ((0, "a"),)), (SLOT + 1, ((0, "b"), (1, "c"))), (SLOT + 2, ((0, "x"),)), (SLOT + 2, ())]
    for _ in one.apply(Rendered([SLOT + 1], parts)):
        pass
    assert sorted(held(one)) == ["a", "b", "c"]


def test_targets_of_one_position_all_go_with_their_object() -> None:
    """Positions repeat where a container has more ports than they have room for: no work may be left behind."""
    job = Job()
    one = subscriber(job)
    bring(one, {SLOT: [(0, "a"), (0, "b"), (0, "c"), (1, "d")]})
    bring(one, {SLOT: [(0, "b"), (0, "e"), (1, "d")]})
    assert sorted(held(one)) == ["b", "d", "e"]
    bring(one, {}, [SLOT])
    assert (works(one), one.works, one.targets) == ([], 0, 0)


def test_an_object_of_several_parts_changes_in_place() -> None:
    """As an object of one part does: what stays keeps its work, what differs is told as updated."""
    job = Job(make := Recorder())
    one = subscriber(job)
    bring(one, {SLOT + part: [(0, f"{part}a"), (1, f"{part}b")] for part in range(3)})
    before = held(one)
    job.told.clear()
    make.labels.clear()
    bring(one, {SLOT + part: [(0, f"{part}a"), (1, "new" if part == 1 else f"{part}b")] for part in range(3)})
    assert (make.labels, job.told) == (["new"], [("updated", "1b", "new")])
    assert held(one) == {name: work for name, work in before.items() if name != "1b"} | {"new": held(one)["new"]}


def test_a_job_that_wants_to_know_nothing_yet_is_told_nothing() -> None:
    """Its works are made and counted all the same."""
    job = Job()
    one = subscriber(job)
    one.quiet = True
    bring(one, {SLOT: [(0, "a"), (1, "b")]})
    bring(one, {SLOT: [(0, "a"), (1, "c")]})
    assert (job.told, sorted(held(one)), one.works) == ([], ["a", "c"], 2)
    one.quiet = False
    bring(one, {}, [SLOT])
    assert sorted(job.told) == [("removed", "a"), ("removed", "c")]


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
        made: Any = Recorder()
        job.works.constructor = made
        bring(one, {SLOT + at: list(enumerate(names)) for at, names in enumerate(parts) if names}, keys)
        for kind, *labels in job.told:
            if kind != "added":
                told.remove(labels[0])
            if kind != "removed":
                told.append(labels[-1])
        wanted = sorted(name for names in parts for name in names)
        assert sorted(work.labels for work in works(one)) == sorted(told) == wanted
        assert one.works == len(wanted)
        fresh = list(wanted)
        for name in previous:
            if name in fresh:
                fresh.remove(name)
        assert sorted(made.labels) == fresh
        previous = wanted


class Books(Job):
    """Keeps the works that it is told of."""

    def __init__(self, *arguments: Any, **options: Any) -> None:
        super().__init__(*arguments, **options)
        self.there: list[Any] = []

    def added(self, work: Any) -> None:
        self.there.append(work)

    def removed(self, work: Any) -> None:
        self.there.remove(work)

    def updated(self, old: Any, new: Any) -> None:
        self.removed(old)
        self.added(new)


steps = st.lists(
    st.tuples(st.integers(0, 1), st.integers(0, 2), st.lists(st.sampled_from("abcdxyn"), max_size=3)), min_size=1, max_size=12
)


@given(steps)
def test_shared_works_add_up_whatever_constructors_do(states: list[tuple[int, int, list[str]]]) -> None:
    """Two configurations, failures and refusals: the works told, the works shown and the counts agree, and all is gone at the end."""
    failing = {"x", "y"}

    def make(labels: str) -> Work | None:
        if labels in failing:
            raise ValueError(labels)
        return None if labels == "n" else Work(labels)

    job = Books(make, sharing=True)
    pair = [subscriber(job) for _ in range(2)]
    there = job.there
    for number, (which, slot, names) in enumerate(states):
        failing ^= {"x"} if number % 3 == 2 else set()
        bring(pair[which], {slot << PART_BITS: list(enumerate(names))}, [slot << PART_BITS])
        shown = works(*pair)
        assert sorted(map(id, shown)) == sorted(map(id, there))
        assert len(set(map(id, shown))) == len(shown) == sum(one.works for one in pair)
        assert all(one.works >= 0 for one in pair)
        entries = [entry for one in pair for entry in one.entries() if entry[2] is not None]
        assert job.works.duplicates == len(entries) - len(shown)
    for one in pair:
        for _ in one.release():
            pass
    assert ([one.works for one in pair], works(*pair)) == ([0, 0], [])
    assert len(job.works) == 0
