"""What the server holds: one table per resource, one version counter, and each table's log of events."""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Callable, Iterable, Mapping
from typing import Any

from fastdisco.synthetic.resources import RESOURCES, Resource

_MARK = b'"resourceVersion":"'


class Entry:
    """One state of one object: `body` is its list item with a leading comma, as it goes over the wire."""

    __slots__ = ("body", "key", "labels", "name", "namespace", "node", "phase", "version")

    def __init__(
        self, namespace: str, name: str, body: bytes, version: int, labels: Mapping[str, str], node: str = "", phase: str = ""
    ) -> None:
        self.namespace = namespace
        self.name = name
        self.key = f"{namespace}/{name}" if namespace else name
        self.body = body
        self.version = version
        self.labels = labels
        self.node = node
        self.phase = phase

    def field(self, name: str) -> str:
        """The value that a field selector compares."""
        if name == "metadata.name":
            return self.name
        if name == "metadata.namespace":
            return self.namespace
        return self.node if name == "spec.nodeName" else self.phase

    def stamped(self, version: int) -> Entry:
        """The same state at another version."""
        start = self.body.index(_MARK) + len(_MARK)
        end = self.body.index(b'"', start)
        body = b"%b%d%b" % (self.body[:start], version, self.body[end:])
        return Entry(self.namespace, self.name, body, version, self.labels, self.node, self.phase)


class Event:
    """One change: ADDED has no `old`; DELETED has no `new`, and its `entry` is the old state at the version of the deletion."""

    __slots__ = ("entry", "new", "old", "type", "version")

    def __init__(self, kind: str, entry: Entry, old: Entry | None) -> None:
        self.type = kind
        self.entry = entry
        self.version = entry.version
        self.old = old
        self.new = None if kind == "DELETED" else entry


class Cursor:
    """A reader of a table's log; `position` counts events since the table was made."""

    position: int = 0

    def wake(self) -> None:
        """Called after each event, from within `commit`."""

    def rewound(self) -> None:
        """Called when the version counter was set back."""


class Table:
    """The objects of one resource, in the order of their keys, and what happened to them lately."""

    def __init__(self, resource: Resource, history: int, backlog: int) -> None:
        self.resource = resource
        self.history = history
        self.backlog = backlog
        self.entries: dict[str, Entry] = {}
        self.log: list[Event] = []
        self.start = 0  # the position of log[0]
        self.compacted = 0  # a watch from an older version is too old
        self.held: int | None = None  # the position from which on events are kept from watches
        self.cursors: set[Cursor] = set()
        self.cache: dict[Any, Any] = {}  # what is derived from the present state; emptied by each change

    def ordered(self, namespace: str = "") -> tuple[list[str], list[Entry]]:
        """All keys and entries, sorted by key; those of one namespace if it is given."""
        found = self.cache.get(namespace)
        if found is None:
            if namespace:
                keys, entries = self.ordered()
                first, last = _namespace_range(keys, namespace)
                found = keys[first:last], entries[first:last]
            else:
                keys = sorted(self.entries)
                found = keys, [self.entries[key] for key in keys]
            self.cache[namespace] = found
        return found

    def at(self, version: int, namespace: str = "") -> tuple[list[str], list[Entry]]:
        """The same as it was at an older version, by undoing the events since; the version must not be compacted."""
        if not self.log or self.log[-1].version <= version:
            return self.ordered(namespace)
        found = self.cache.get((version, namespace))
        if found is None:
            entries = dict(self.entries)
            for event in reversed(self.log[self.index_after(version) :]):
                if event.old is None:
                    entries.pop(event.entry.key, None)
                else:
                    entries[event.entry.key] = event.old
            keys = sorted(entries)
            first, last = _namespace_range(keys, namespace) if namespace else (0, len(keys))
            keys = keys[first:last]
            found = self.cache[version, namespace] = keys, [entries[key] for key in keys]
        return found

    @property
    def end(self) -> int:
        """The position after the last event that watches may see."""
        return self.start + len(self.log) if self.held is None else self.held

    def hold(self) -> None:
        """Keep what happens from now on from watches, until `release`; lists show it."""
        if self.held is None:
            self.held = self.start + len(self.log)

    def release(self) -> None:
        """Let watches see what was held."""
        self.held = None
        for cursor in self.cursors:
            cursor.wake()

    def index_after(self, version: int) -> int:
        """The index in `log` of the first event newer than a version."""
        return bisect_right(self.log, version, key=lambda event: event.version)

    def commit(self, event: Event) -> None:
        """Apply an event, log it, and wake the readers."""
        if event.new is None:
            del self.entries[event.entry.key]
        else:
            self.entries[event.entry.key] = event.new
        self.cache.clear()
        self.log.append(event)
        if len(self.log) > self.history + (self.history // 10 if self.history > 1000 else 0):
            self._trim()
        for cursor in self.cursors:
            cursor.wake()

    def _trim(self) -> None:
        cut = len(self.log) - self.history
        if self.cursors and len(self.log) <= self.history + self.backlog:
            cut = min(cut, min(cursor.position for cursor in self.cursors) - self.start)
        self.forget(cut)

    def forget(self, count: int) -> None:
        """Drop the oldest events; who has not read them yet, or asks for them, is too late."""
        if count > 0:
            self.compacted = self.log[count - 1].version
            del self.log[:count]
            self.start += count


def _namespace_range(keys: list[str], namespace: str) -> tuple[int, int]:
    return bisect_left(keys, namespace + "/"), bisect_left(keys, namespace + "0")  # "0" follows "/"


class Store:
    """All tables under one version counter; `history` events of each table are kept, `backlog` more for slow readers."""

    def __init__(self, *, history: int = 20_000, backlog: int = 500_000) -> None:
        self.version = 1
        self.tables: dict[str, Table] = {plural: Table(resource, history, backlog) for plural, resource in RESOURCES.items()}

    def load(self, plural: str, entries: Iterable[Entry]) -> None:
        """Take objects without events, before the server starts; their versions must be at most `version`."""
        table = self.tables[plural]
        table.entries.update((entry.key, entry) for entry in entries)
        table.cache.clear()
        table.compacted = self.version

    def loaded(self) -> None:
        """Set the oldest version from which a watch may start, after the last `load`."""
        for table in self.tables.values():
            table.compacted = self.version

    def put(self, plural: str, make: Callable[[int], Entry]) -> Event:
        """Create or replace one object; `make` renders it at the version that it is given."""
        return self.put_ready(plural, make(self.version + 1))

    def put_ready(self, plural: str, entry: Entry) -> Event:
        """Create or replace one object that was rendered for the next version."""
        table = self.tables[plural]
        old = table.entries.get(entry.key)
        event = Event("ADDED" if old is None else "MODIFIED", entry, old)
        self.version = entry.version
        table.commit(event)
        return event

    def delete(self, plural: str, key: str) -> Event | None:
        """Delete one object; `None` if there is none."""
        table = self.tables[plural]
        old = table.entries.get(key)
        if old is None:
            return None
        self.version += 1
        event = Event("DELETED", old.stamped(self.version), old)
        table.commit(event)
        return event

    def compact(self) -> None:
        """Forget the whole history: every older version is too old now."""
        for table in self.tables.values():
            unread = min((cursor.position for cursor in table.cursors), default=table.start + len(table.log))
            table.forget(min(unread - table.start, len(table.log)))
            table.compacted = self.version

    def rewind(self, version: int) -> None:
        """Set the counter back, as after a restored backup; objects stay, those with newer versions are stamped anew."""
        self.version = version
        for table in self.tables.values():
            for key, entry in table.entries.items():
                if entry.version > version:
                    table.entries[key] = entry.stamped(version)
            table.start += len(table.log)
            table.held = None
            table.log.clear()
            table.cache.clear()
            table.compacted = 0
            for cursor in table.cursors:
                cursor.rewound()
