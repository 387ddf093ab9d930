"""Works and the targets that have them: made once, counted, and gone with the last."""

from __future__ import annotations

from asyncio import CancelledError
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest

from fastdisco import _works
from fastdisco._works import Works


class Holder(_works.Holder):
    """Somebody with targets."""

    def __init__(self, works: Works) -> None:
        self.numbers: list[int] = []
        self._works = works
        works.join(self)

    def show(self, labels: Any) -> tuple[bool, Any]:
        """A new target: whether its work is told, and the work."""
        number = self._works.make(labels)
        self.numbers.append(number)
        return self._works.show(number, self), self._works.work(number)

    def drop(self, index: int = 0) -> bool:
        return self._works.drop(self.numbers.pop(index))


def make(constructor: Any = lambda labels: [labels], *, sharing: bool = True) -> tuple[Any, list[BaseException]]:
    errors: list[BaseException] = []
    return Works(constructor, errors.append, sharing=sharing), errors


def test_the_first_target_brings_a_work_and_the_last_takes_it() -> None:
    """In between it is counted, made by one call, and the same for all."""
    works, _ = make()
    holder = Holder(works)
    (first, work), (second, same) = holder.show("a"), holder.show("a")
    assert (first, second, work is same, holder.works, works.duplicates) == (True, False, True, 1, 1)
    assert works.shown() == [work]
    assert (holder.drop(), holder.works, works.duplicates) == (False, 1, 0)
    assert (holder.drop(), holder.works) == (True, 0)
    assert holder.show("a")[1] is not work


def test_what_was_made_counts_only_when_it_is_shown() -> None:
    """A work that waits to be shown keeps the constructor from being called, and is nobody's yet."""
    works, _ = make()
    holder = Holder(works)
    number = works.make("a")
    work = works.work(number)
    assert works.make("a") == number
    assert (holder.works, works.duplicates, works.shown()) == (0, 0, [])
    assert works.show(number, holder)
    assert works.drop(number)  # the other one has not shown it
    assert works.show(number, holder)
    assert works.drop(number)
    assert (holder.works, len(works)) == (0, 0)
    assert works.work(works.make("a")) is not work


class Outcome(BaseException):
    """As a test framework's, or a timeout of gevent's."""


@pytest.mark.parametrize("error", [RuntimeError("no"), CancelledError(), Outcome(), SystemExit(1), GeneratorExit()], ids=repr)
def test_a_failure_is_told_and_leaves_nothing(error: BaseException) -> None:
    """Whatever is raised; the next target of these labels asks again."""

    def construct(labels: Any) -> Any:
        if not errors:
            raise error
        return [labels]

    works, errors = make(construct)
    assert (works.make("a"), len(works)) == (0, 0)
    assert errors == [error]
    assert works.work(works.make("a")) == ["a"]


def interrupted(_: Any) -> Any:
    raise KeyboardInterrupt


def test_an_interruption_of_the_main_thread_is_not_caught() -> None:
    """It may be a Ctrl-C that came while a constructor ran."""
    works, errors = make(interrupted)
    with pytest.raises(KeyboardInterrupt):
        works.make("a")
    assert errors == []


def test_an_interruption_of_another_thread_is_a_failure() -> None:
    """No Ctrl-C gets there: it is the constructor's own."""
    works, errors = make(interrupted)
    with ThreadPoolExecutor(1) as threads:
        assert threads.submit(works.make, "a").result() == 0
    assert [type(error) for error in errors] == [KeyboardInterrupt]


def test_a_work_is_what_its_labels_give_as_long_as_somebody_has_it() -> None:
    """Also one that is shown by targets which have other labels by now; afterwards they give a new one."""
    works, _ = make()
    holder = Holder(works)
    _, work = holder.show("a")
    assert holder.show("a") == (False, work)
    assert holder.drop() is False
    assert works.work(number := works.make("a")) is work
    assert holder.drop() is True
    assert works.show(number, holder)
    assert works.drop(number)
    assert holder.show("a")[1] is not work


def test_a_number_that_is_free_is_used_again() -> None:
    """Works come and go for ever: what is remembered of them is bounded by how many there are at once."""
    works, _ = make()
    holder = Holder(works)
    for turn in range(100):
        for one in range(3):
            holder.show(f"{turn} {one}")
        assert sorted(work[0] for work in works.shown()) == [f"{turn} {one}" for one in range(3)]
        assert max(holder.numbers) <= 3
        for _ in range(3):
            holder.drop()


class Peculiar:
    """Labels of one hash, some of them equal."""

    def __init__(self, name: str) -> None:
        self.name = name

    def __hash__(self) -> int:
        return 7

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Peculiar) and other.name == self.name


def test_works_are_told_apart_by_their_labels_not_by_hashes() -> None:
    """Labels of one hash share a work only where they are equal."""
    works, _ = make()
    numbers = [works.make(Peculiar(name)) for name in "abab"]
    assert numbers[:2] == numbers[2:]
    assert numbers[0] != numbers[1]


def test_labels_are_the_work_where_there_is_no_constructor() -> None:
    """Shared or not, the object that was rendered."""
    for sharing in (True, False):
        works, _ = make(None, sharing=sharing)
        first, second = "".join(["a", "b"]), "".join(["a", "b"])
        assert works.work(works.make(first)) is first
        assert works.work(works.make(second)) is (first if sharing else second)


def test_without_sharing_everything_is_made_and_counts() -> None:
    """Equal labels or not."""
    works, _ = make(sharing=False)
    holder = Holder(works)
    assert [holder.show("a")[0] for _ in range(3)] == [True] * 3
    assert (holder.works, len(works.shown()), works.duplicates) == (3, 3, 0)
    assert [holder.drop() for _ in range(3)] == [True] * 3


def test_forgetting_leaves_nothing() -> None:
    """Also not what was made and never shown."""
    works, _ = make()
    works.make("a")
    works.forget()
    assert len(works) == 0
    assert works.work(works.make("a")) == ["a"]
    assert works.duplicates == 0
