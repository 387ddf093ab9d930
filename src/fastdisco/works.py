"""The scrape works of one job: made by its constructor, shared by targets with equal labels where that is wanted."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterable, Iterator
from typing import TYPE_CHECKING, Any, Protocol

if TYPE_CHECKING:
    from ._labels import Labels

    Entry = tuple[int, Labels, Any]
    """A target: its position, its labels, and its work; None: it has none."""

_ALONE = (1, 1)
_ABSENT = object()


class Holder(Protocol):
    """Whoever has targets."""

    works: int


class Works:
    """Makes works, and counts the targets of each: it is there from the first that shows it until the last of them goes.

    While `sharing`, targets with equal labels have one work: so a job with rules never has two works that scrape the same. Else each
    target has its own: where discovered labels are shown, nothing is merged.

    A target is counted twice: when its work is made, and when it shows it. Between the two a work may go that others show, and
    come again.
    """

    __slots__ = ("_counts", "_failed", "_kept", "_owners", "_shared", "constructor", "sharing")

    def __init__(
        self, constructor: Callable[[Labels], Any] | None, failed: Callable[[BaseException], None], *, sharing: bool, holders: int = 1
    ) -> None:
        self.constructor = constructor
        """None: the labels are the work."""
        self.sharing = sharing
        self._failed = failed
        # Without an object of its own for each work: garbage collections visit those.
        self._shared: dict[Labels, Any] = {}
        self._counts: dict[Labels, tuple[int, int]] = {}  # targets that have the work, and that show it; if it is not just one
        self._kept: dict[tuple[Labels, int], list[Labels]] = {}  # (labels, id of a work that was made of others): those others
        self._owners: dict[Labels, Holder] | None = {} if holders > 1 else None

    def make(self, labels: Labels) -> tuple[Any, bool]:
        """The work of a target, and whether there is one to replace what the target had: the constructor may have raised."""
        if self.sharing and (work := self._shared.get(labels, _ABSENT)) is not _ABSENT:
            self._count(labels, 1, 0)
            return work, True
        work, is_made = self._construct(labels)
        if is_made and self.sharing:
            self._shared[labels] = work
            self._counts[labels] = (1, 0)
        return work, is_made

    def make_shown(self, labels: Labels, holder: Holder) -> tuple[Any, bool]:
        """`make` and `show` in one, for a target that replaces none; the work, and whether the target is the first to show it."""
        if self.sharing and labels in self._shared:
            work, _ = self.make(labels)
            return work, self.show(labels, work, holder)
        work, is_made = self._construct(labels)
        if is_made and self.sharing:
            self._shared[labels] = work
            if self._owners is not None:
                self._owners[labels] = holder
        holder.works += work is not None
        return work, work is not None

    def _construct(self, labels: Labels) -> tuple[Any, bool]:
        """What the constructor gives, and whether it gave anything: it may have raised.

        Whatever it raises is its own failure, except a Ctrl-C, which may come at any line of the main thread.
        """
        try:
            return labels if self.constructor is None else self.constructor(labels), True
        except BaseException as error:
            if isinstance(error, KeyboardInterrupt) and threading.current_thread() is threading.main_thread():
                raise
            self._failed(error)
            return None, False

    def keep(self, entry: Entry, labels: Labels) -> None:
        """The target has these labels now, and still the work of `entry`."""
        _, before, work = entry
        if (made_of := self._made_of(before, work, forget=True)) is not None:
            self._kept.setdefault((labels, id(work)), []).append(made_of)

    def show(self, labels: Labels, work: Any, holder: Holder) -> bool:
        """A target shows what `make` gave; whether it is the first to show it."""
        if self._shared.get(labels, _ABSENT) is work:
            if self._count(labels, 0, 1) > 1:
                return False
            if self._owners is not None:
                self._owners[labels] = holder
        holder.works += work is not None
        return work is not None

    def drop(self, labels: Labels, work: Any, holder: Holder) -> bool:
        """A target that showed it goes; whether it was the last."""
        if (made_of := self._made_of(labels, work, forget=True)) is not None:
            if self._count(made_of, -1, -1):
                return False
            if self._owners is not None:
                holder = self._owners.pop(made_of, holder)
        holder.works -= work is not None
        return work is not None

    def distinct(self, entries: Iterable[Entry]) -> Iterator[Any]:
        """The works that these targets show, each once."""
        seen = set()
        for _, labels, work in entries:
            if work is None:
                continue
            if self._counts:
                made_of = self._made_of(labels, work)
                if made_of in self._counts:
                    if made_of in seen:
                        continue
                    seen.add(made_of)
            yield work

    @property
    def duplicates(self) -> int:
        """Targets that show the work of another one."""
        return sum(shown - 1 for labels, (_, shown) in list(self._counts.items()) if shown > 1 and self._shared[labels] is not None)

    def forget(self) -> None:
        """The job has stopped: what was made and never shown goes too."""
        for some in (self._shared, self._counts, self._kept, self._owners or {}):
            some.clear()

    def _made_of(self, labels: Labels, work: Any, *, forget: bool = False) -> Labels | None:
        """The labels that the shared work of a target was made of; None if it is not shared. `forget`: the target has it no longer."""
        if self._kept and (kept := self._kept.get((labels, id(work)))) is not None:
            made_of = kept[-1]
            if forget:
                kept.pop()
                if not kept:
                    del self._kept[labels, id(work)]
            return made_of
        return labels if self._shared.get(labels, _ABSENT) is work else None

    def _count(self, labels: Labels, having: int, showing: int) -> int:
        """How many targets show it now."""
        have, show = self._counts.pop(labels, _ALONE)
        have, show = have + having, show + showing
        if not have:
            del self._shared[labels]
        elif (have, show) != _ALONE:
            self._counts[labels] = (have, show)
        return show
