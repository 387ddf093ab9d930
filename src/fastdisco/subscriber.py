"""The targets of one configuration of one job: rendered labels become scrape works, and differences become changes."""

from __future__ import annotations

from asyncio import CancelledError
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import TYPE_CHECKING, Any, Protocol

if TYPE_CHECKING:
    from ._labels import Labels

    Rendered = Sequence[tuple[int, tuple[tuple[int, Labels], ...]]]
    """(key, ((position, labels), …)): a key names a part of an object, a position a target in it."""
    Entry = tuple[int, Labels, Any]

PART_BITS = 24
"""A key is the object's slot above these bits, and a part of the object in them."""

_TARGETS_AT_ONCE = 32
"""Constructor calls between two chances to let the loop go on."""


class Job(Protocol):
    """What a subscriber tells its job."""

    @property
    def constructor(self) -> Callable[[Labels], Any] | None:
        """Makes a scrape work of labels; None: the labels are the work."""

    def constructor_failed(self, error: BaseException) -> None: ...

    def caught_up(self) -> None:
        """A subscriber of the job has rendered all that its store holds."""

    def added(self, work: Any) -> None: ...

    def updated(self, old: Any, new: Any) -> None: ...

    def removed(self, work: Any) -> None: ...


class Subscriber:
    """What one configuration of a job has made of a group's objects; `working` once its first pass over them is complete."""

    __slots__ = ("job", "needs", "profile", "role", "stopped", "targets", "working", "works")

    def __init__(self, job: Job, role: str, profile: int, needs: tuple[str, ...]) -> None:
        self.job = job
        self.role = role
        self.profile = profile
        self.needs = needs
        self.working = False
        self.stopped = False
        self.works = 0
        self.targets: dict[int, tuple[Entry, ...]] = {}
        """By key; a part without targets is not in it."""

    def apply(self, keys: Iterable[int], rendered: Rendered) -> Iterator[None]:
        """Brings parts of objects up to date: those of `keys` have what `rendered` says, or nothing.

        Yields now and then, between objects or constructor calls, so that long work can be spread over turns of the loop. Each
        object changes at once: nothing is told of it before all its works are made.
        """
        fresh = dict(rendered)
        objects: dict[int, list[int]] = {}
        for key in keys:
            if key in fresh or key in self.targets:
                objects.setdefault(key >> PART_BITS, []).append(key)
        for parts in objects.values():
            if self.stopped:
                return
            yield from self._replace(parts, fresh)

    def _replace(self, keys: list[int], fresh: dict[int, tuple[tuple[int, Labels], ...]]) -> Iterator[None]:
        """One object: a target keeps its work if some target of the object had just its labels before; else it is made anew.

        So a work stays also when the position of its address or container shifts.
        """
        previous: dict[tuple[int, int], Entry] = {}
        for key in keys:
            for entry in self.targets.get(key, ()):
                previous[key, entry[0]] = entry
        made: dict[int, list[Entry | None]] = {}
        missing: list[tuple[int, int, int, Labels]] = []  # key, place in made, position, labels
        for key in keys:
            entries: list[Entry | None] = []
            for position, labels in fresh.get(key, ()):
                same = previous.get((key, position))
                if same is not None and same[1] == labels:
                    del previous[key, position]
                    entries.append(same)
                else:
                    missing.append((key, len(entries), position, labels))
                    entries.append(None)
            made[key] = entries
        if missing and previous:
            missing = self._shifted(missing, previous, made)
        changes: list[tuple[Any, Any]] = []  # (old, new); None: no work
        for count, (key, place, position, labels) in enumerate(missing, 1):
            replaced = previous.pop((key, position), None)
            old = replaced[2] if replaced else None
            new = self._construct(labels, old)
            made[key][place] = (position, labels, new)
            changes.append((old, new))
            if count % _TARGETS_AT_ONCE == 0:
                yield
        changes.extend((entry[2], None) for entry in previous.values())
        if self.stopped:
            return
        for key, entries in made.items():
            if entries:
                self.targets[key] = tuple(entry for entry in entries if entry is not None)
            else:
                self.targets.pop(key, None)
        for old, new in changes:
            self._tell(old, new)
        yield

    @staticmethod
    def _shifted(
        missing: list[tuple[int, int, int, Labels]], previous: dict[tuple[int, int], Entry], made: dict[int, list[Entry | None]]
    ) -> list[tuple[int, int, int, Labels]]:
        """Gives targets whose labels some other position had the work from there; the targets that are left."""
        positions: dict[Labels, list[tuple[int, int]]] = {}
        for where, entry in previous.items():
            positions.setdefault(entry[1], []).append(where)
        left = []
        for key, place, position, labels in missing:
            same = positions.get(labels)
            if same:
                made[key][place] = (position, labels, previous.pop(same.pop())[2])
            else:
                left.append((key, place, position, labels))
        return left

    def _construct(self, labels: Labels, previous: Any) -> Any:
        """The work of a target; of a constructor that raises, the previous one."""
        constructor = self.job.constructor
        if constructor is None:
            return labels
        try:
            return constructor(labels)
        except (Exception, CancelledError) as error:  # noqa: BLE001  the latter may come out of a future of the constructor's own
            self.job.constructor_failed(error)
            return previous

    def _tell(self, old: Any, new: Any) -> None:
        if old is new:
            return
        if old is None:
            self.works += 1
            self.job.added(new)
        elif new is None:
            self.works -= 1
            self.job.removed(old)
        else:
            self.job.updated(old, new)

    def all_works(self) -> Iterator[Any]:
        """Works of all targets; a target for which the constructor gave None has none."""
        for entries in self.targets.values():
            for entry in entries:
                if entry[2] is not None:
                    yield entry[2]

    def release(self) -> Iterator[None]:
        """Lets go of all targets, yielding now and then."""
        self.stopped = True
        while self.targets:
            for _ in range(min(_TARGETS_AT_ONCE, len(self.targets))):
                self.targets.popitem()
            yield
        self.works = 0
