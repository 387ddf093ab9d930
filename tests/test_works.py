"""Works and the targets that have them: made once, counted, and gone with the last."""

from __future__ import annotations

from asyncio import CancelledError
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest

from fastdisco import _works
from fastdisco._works import NO_WORK, Works


class Holder(_works.Holder):
    """Somebody with targets."""

    def __init__(self) -> None:
        self.entries: list[tuple[int, Any, Any]] = []

    def show(self, works: Any, labels: Any) -> tuple[bool, Any]:
        """A new target: whether its work is told, and the work."""
        work = works.make(labels)
        self.entries.append((len(self.entries), labels, work))
        return works.show(labels, work, self), work

    def drop(self, works: Any, index: int = 0) -> bool:
        _, labels, work = self.entries.pop(index)
        gone: bool = works.drop(labels, work, self)
        return gone


def make(constructor: Any = lambda labels: [labels], *, sharing: bool = True) -> tuple[Any, list[BaseException]]:
    errors: list[BaseException] = []
    return Works(constructor, errors.append, sharing=sharing), errors


def test_the_first_target_brings_a_work_and_the_last_takes_it() -> None:
    """In between it is counted, made by one call, and the same for all."""
    works, _ = make()
    holder = Holder()
    (first, work), (second, same) = holder.show(works, "a"), holder.show(works, "a")
    assert (first, second, work is same, holder.works, works.duplicates) == (True, False, True, 1, 1)
    assert list(works.distinct(holder.entries)) == [work]
    assert (holder.drop(works), holder.works, works.duplicates) == (False, 1, 0)
    assert (holder.drop(works), holder.works) == (True, 0)
    assert holder.show(works, "a")[1] is not work


def test_what_was_made_counts_only_when_it_is_shown() -> None:
    """A work that waits to be shown keeps the constructor from being called, and is nobody's yet."""
    works, _ = make()
    holder = Holder()
    work = works.make("a")
    again = works.make("a")
    assert work is again
    assert (holder.works, works.duplicates, list(works.distinct([]))) == (0, 0, [])
    assert works.show("a", work, holder)
    assert works.drop("a", work, holder)  # the other one has not shown it
    assert works.show("a", work, holder)
    assert works.drop("a", work, holder)
    assert holder.works == 0
    assert works.make("a") is not work


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
    assert works.make("a") is NO_WORK
    assert errors == [error]
    assert works.make("a") == ["a"]


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
        assert threads.submit(works.make, "a").result() is NO_WORK
    assert [type(error) for error in errors] == [KeyboardInterrupt]


def test_a_kept_work_follows_its_target_through_several_failures() -> None:
    """It counts for the labels that it was made of, under whatever labels its target is."""
    works, _ = make()
    holder = Holder()
    _, work = holder.show(works, "a")
    holder.show(works, "a")
    for labels in ("b", "c"):
        position, before, _ = holder.entries[0]
        works.keep(before, work, labels)
        holder.entries[0] = (position, labels, work)
        assert list(works.distinct(holder.entries)) == [work]
        assert works.duplicates == 1
    assert holder.drop(works, 1) is False
    assert works.make("a") is work  # as long as somebody has it, it is what these labels give
    assert holder.drop(works) is True
    assert works.show("a", work, holder)


def test_labels_are_the_work_where_there_is_no_constructor() -> None:
    """Shared or not, the object that was rendered."""
    for sharing in (True, False):
        works, _ = make(None, sharing=sharing)
        first, second = "".join(["a", "b"]), "".join(["a", "b"])
        assert works.make(first) is first
        assert works.make(second) is (first if sharing else second)


def test_without_sharing_everything_is_made_and_counts() -> None:
    """Equal labels or not."""
    works, _ = make(sharing=False)
    holder = Holder()
    assert [holder.show(works, "a")[0] for _ in range(3)] == [True] * 3
    assert (holder.works, len(list(works.distinct(holder.entries))), works.duplicates) == (3, 3, 0)
    assert [holder.drop(works) for _ in range(3)] == [True] * 3


def test_forgetting_leaves_nothing() -> None:
    """Also not what was made and never shown."""
    works, _ = make()
    works.make("a")
    works.forget()
    assert works.make("a") == ["a"]
    assert works.duplicates == 0
