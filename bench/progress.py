"""Tells how far a run is, and shows its cases: a bar and tables on a terminal with rich, plain lines otherwise."""

from __future__ import annotations

import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Protocol

from .cases import Case
from .report import lines, tables


class Display(Protocol):
    """Where a run is shown."""

    def say(self, doing: str) -> None:
        """What is done now."""

    def show(self, cases: Sequence[Case]) -> None:
        """The cases of a stage that is done."""


class _Plain:
    """Results on standard output, progress on standard error."""

    def say(self, doing: str) -> None:
        print(doing, file=sys.stderr, flush=True)

    def show(self, cases: Sequence[Case]) -> None:
        for case in cases:
            print(*lines(case), sep="\n", flush=True)


@contextmanager
def display(stages: int) -> Iterator[Display]:
    """For a run of so many stages."""
    rich = _Rich(stages) if sys.stdout.isatty() and _has_rich() else None
    if rich is None:
        yield _Plain()
        return
    with rich.bar:
        yield rich


def _has_rich() -> bool:
    try:
        import rich
    except ImportError:
        return False
    return bool(rich)


class _Rich:
    """A bar below the tables of the stages that are done."""

    def __init__(self, stages: int) -> None:
        from rich.progress import BarColumn, MofNCompleteColumn, Progress, SpinnerColumn, TextColumn, TimeElapsedColumn

        self.bar = Progress(
            SpinnerColumn(), BarColumn(), MofNCompleteColumn(), TimeElapsedColumn(), TextColumn("{task.description}"), transient=True
        )
        self._task = self.bar.add_task("", total=stages)

    def say(self, doing: str) -> None:
        self.bar.update(self._task, description=doing)

    def show(self, cases: Sequence[Case]) -> None:
        for one in tables(cases, self.bar.console):
            self.bar.console.print(one)
        self.bar.advance(self._task)
