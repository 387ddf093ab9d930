"""The targets of one configuration of one job: rendered labels become scrape works, and differences become changes."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from collections.abc import Set as AbstractSet
from typing import TYPE_CHECKING, Any, Protocol

if TYPE_CHECKING:
    from ._batch import Batch
    from ._labels import Labels
    from ._relabel import Relabeling
    from .works import Entry, Works

    Targets = tuple[tuple[int, Labels], ...]
    Rendered = Sequence[tuple[int, Targets]]
    """(key, ((position, labels), …)): a key names a part of an object, a position a target in it."""

PART_BITS = 24
"""A key is the object's slot above these bits, and a part of the object in them."""

_TARGETS_AT_ONCE = 32
"""Constructor calls between two chances to let the loop go on."""

_PARTS_AT_ONCE = 500
"""Of one object, compared between two such chances."""

_EFFORT_AT_ONCE = 20_000
"""Of rules, likewise: a few milliseconds; see `Relabeling.survivors`."""


class Job(Protocol):
    """What a subscriber tells its job."""

    def caught_up(self) -> None:
        """A subscriber of the job has rendered all that its store holds."""

    def failed(self, error: Exception) -> None:
        """Something of the subscriber's went wrong that should not; its targets may be stale."""

    def added(self, work: Any) -> None: ...

    def updated(self, old: Any, new: Any) -> None: ...

    def removed(self, work: Any) -> None: ...


class Subscriber:
    """What one configuration of a job has made of a group's objects; `working` once its first pass over them is complete."""

    __slots__ = (
        "_held", "_makes", "_unfinished", "job", "needs", "profile", "relabeling", "revision",
        "role", "stale", "stopped", "targets", "working", "works",
    )  # fmt: skip

    def __init__(
        self, job: Job, role: str, profile: int, needs: tuple[str, ...], makes: Works, relabeling: Relabeling | None = None
    ) -> None:
        self.job = job
        self.role = role
        self.profile = profile
        self.needs = needs
        self.relabeling = relabeling
        """None: targets have their discovered labels, all of them."""
        self._makes = makes
        self.working = False
        self.stale = False
        """Some of its targets have yet to be evaluated by the rules that it has now."""
        self.stopped = False
        self.revision = 0
        """Rises when a target's labels may have changed, also discovered ones that no rule has looked at."""
        self.works = 0
        """Works of its targets; of shared ones those that it was the first to show."""
        self.targets: dict[int, tuple[Entry, ...]] = {}
        """By key; a part without targets is not in it."""
        self._held: dict[int, dict[int, Targets]] = {}
        """By slot: what has been rendered of an object that is not rendered to its end, by key."""
        self._unfinished = {False: 0, True: 0}
        """The slot with which the last batch of changes ended before its last part, and the last one of a pass; 0: none."""

    def take(self, batch: Batch, below: int | None, *, walking: bool = False) -> Iterator[None]:
        """Brings what a batch has rendered up to date, of parts before the key `below`; yields as `apply` does.

        Of an object that goes on in the next batch of its kind, changes or a pass, everything waits for its last part.
        """
        keys: AbstractSet[int] = batch.key_set(self.role, below)
        if not keys and not self._held:
            return
        rendered: Rendered
        if self.relabeling is None:
            rendered = batch.targets(self.role, self.profile, below)
        else:
            relabeling = self.relabeling
            rendered, row = relabeling.survivors(batch, self.role, self.profile, below, effort=_EFFORT_AT_ONCE)
            while row is not None:
                yield
                more, row = relabeling.survivors(batch, self.role, self.profile, below, row=row, effort=_EFFORT_AT_ONCE)
                rendered += more
        if self._held or batch.unfinished:
            keys, rendered = self._hold(keys, rendered, batch.unfinished, walking)
        yield from self.apply(keys, rendered)

    def end_pass(self) -> Iterator[None]:
        """Applies also what there is of an object that changes are in the middle of: the pass has promised to show all."""
        held = {key: targets for parts in self._held.values() for key, targets in parts.items()}
        self._held.clear()
        self._unfinished = {False: 0, True: 0}
        yield from self.apply(held.keys(), [part for part in sorted(held.items()) if part[1]])

    def _hold(
        self, keys: AbstractSet[int], rendered: Rendered, unfinished: int, walking: bool
    ) -> tuple[AbstractSet[int], Rendered]:
        """Puts parts of unfinished objects aside, the newest in the place of older ones; gives what can be applied."""
        finished, self._unfinished[walking] = self._unfinished[walking], unfinished
        if unfinished:
            self._held.setdefault(unfinished, {})
        fresh = dict(rendered)
        ready = set()
        for key in keys:
            held = self._held.get(key >> PART_BITS)
            if held is None:
                ready.add(key)
            else:
                held[key] = fresh.pop(key, ())
        whole = [part for part in rendered if part[0] in fresh]
        if finished and finished not in self._unfinished.values():
            held = self._held.pop(finished, {})
            ready |= held.keys()
            whole += [part for part in sorted(held.items()) if part[1]]
        return ready, whole

    def apply(self, keys: AbstractSet[int], rendered: Rendered) -> Iterator[None]:
        """Brings parts of objects up to date: those of `keys` have what `rendered` says, or nothing.

        Yields now and then, between objects or constructor calls, so that long work can be spread over turns of the loop. Each
        object changes at once: nothing is told of it before all its works are made.
        """
        fresh = dict(rendered)
        parts = sorted(fresh.keys() | (self.targets.keys() & keys))
        start, calls = 0, 0
        while start < len(parts):
            end = start + 1
            while end < len(parts) and parts[end] >> PART_BITS == parts[start] >> PART_BITS:
                end += 1
            some, start = parts[start:end], end
            count = sum(len(fresh.get(key, ())) for key in some)
            if count > _TARGETS_AT_ONCE or not (self._add(some, fresh) or self._replace_in_place(some, fresh)):
                yield from self._replace(some, fresh)
            if self.stopped:
                return
            self.revision += 1
            calls += count
            if calls > _TARGETS_AT_ONCE:
                calls = 0
                yield
        if parts:
            yield

    def _add(self, keys: list[int], fresh: dict[int, Targets]) -> bool:
        """An object that had no targets, without a pause. False, and nothing is done, if it had some."""
        if any(key in self.targets for key in keys):
            return False
        made: dict[int, tuple[Entry, ...]] = {}
        shown = []
        for key in keys:
            entries = []
            for position, labels in fresh[key]:
                work, is_shown = self._makes.make_shown(labels, self)
                if self.stopped:
                    return True
                entries.append((position, labels, work))
                if is_shown:
                    shown.append(work)
            made[key] = tuple(entries)
        self.targets.update(made)
        for work in shown:
            self.job.added(work)
        return True

    def _replace_in_place(self, keys: list[int], fresh: dict[int, Targets]) -> bool:
        """An object of one part with as many targets as before, in the same positions: what most events lead to.

        False, and nothing is done, where it is not so, or where some may have shifted; see `_replace`.
        """
        before, now = self.targets.get(keys[0], ()), fresh.get(keys[0], ())
        if len(keys) > 1 or len(before) != len(now):
            return False
        differing = []
        for place, (entry, (position, labels)) in enumerate(zip(before, now, strict=True)):
            if entry[0] != position:
                return False
            if entry[1] != labels:
                differing.append(place)
        if len(differing) > 1 and any(before[one][1] == now[other][1] for one in differing for other in differing if one != other):
            return False
        after = list(before)
        changes = []
        for place in differing:
            old, (position, labels) = before[place], now[place]
            work, is_made = self._makes.make(labels)
            if self.stopped:
                return True
            after[place] = (position, labels, work if is_made else old[2])
            changes.append((old, after[place], is_made))
        self.targets[keys[0]] = tuple(after)
        for old, new, is_made in changes:
            if is_made:
                self._tell(old, new)
            else:
                self._makes.keep(old, new[1])
        return True

    def _replace(self, keys: list[int], fresh: dict[int, Targets]) -> Iterator[None]:
        """One object: a target keeps its work if some target of the object had just its labels before; else it is made anew.

        So a work stays also when the position of its address or container shifts.
        """
        previous: dict[tuple[int, int], Entry] = {}
        for count, key in enumerate(keys, 1):
            for entry in self.targets.get(key, ()):
                previous[key, entry[0]] = entry
            if count % _PARTS_AT_ONCE == 0:
                yield
        made: dict[int, list[Entry | None]] = {}
        missing: list[tuple[int, int, int, Labels]] = []  # key, place in made, position, labels
        for count, key in enumerate(keys, 1):
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
            if count % _PARTS_AT_ONCE == 0:
                yield
        if missing and previous:
            missing = self._shifted(missing, previous, made)
        changes: list[tuple[Entry | None, Entry | None, bool]] = []  # what was, what is, and whether the one replaces the other
        for count, (key, place, position, labels) in enumerate(missing, 1):
            replaced = previous.pop((key, position), None)
            work, is_made = self._makes.make(labels)
            entry = (position, labels, work if is_made or replaced is None else replaced[2])
            made[key][place] = entry
            changes.append((replaced, entry, is_made))
            if count % _TARGETS_AT_ONCE == 0:
                yield
                if self.stopped:
                    return
        changes.extend((entry, None, True) for entry in previous.values())
        if self.stopped:
            return
        for key, entries in made.items():
            if entries:
                self.targets[key] = tuple(entry for entry in entries if entry is not None)
            else:
                self.targets.pop(key, None)
        for replaced, fresh_entry, is_made in changes:
            if is_made:
                self._tell(replaced, fresh_entry)
            elif replaced is not None and fresh_entry is not None:
                self._makes.keep(replaced, fresh_entry[1])
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

    def _tell(self, replaced: Entry | None, entry: Entry | None) -> None:
        """Tells the job of works that come or go with this target."""
        comes = entry is not None and self._makes.show(entry[1], entry[2], self)
        goes = replaced is not None and self._makes.drop(replaced[1], replaced[2], self)
        old, work = replaced[2] if replaced else None, entry[2] if entry else None
        if comes and goes:
            if old is not work:
                self.job.updated(old, work)
        elif comes:
            self.job.added(work)
        elif goes:
            self.job.removed(old)

    def entries(self) -> Iterator[Entry]:
        """All targets; see `Works.distinct` for their works."""
        for entries in self.targets.values():
            yield from entries

    def release(self) -> Iterator[None]:
        """Lets go of all targets, yielding now and then."""
        self.stopped = True
        self._held.clear()
        while self.targets:
            for _ in range(min(_TARGETS_AT_ONCE, len(self.targets))):
                _, entries = self.targets.popitem()
                for _, labels, work in entries:
                    self._makes.drop(labels, work, self)
            yield
