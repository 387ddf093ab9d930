"""Watches: readers of a table's log, with initial events, bookmarks, and the ways in which a watch ends."""

from __future__ import annotations

import asyncio
import random
from collections.abc import Sequence
from typing import Any

from fastdisco.synthetic.faults import Fault
from fastdisco.synthetic.http import Buffer, Connection
from fastdisco.synthetic.options import Options
from fastdisco.synthetic.resources import Route
from fastdisco.synthetic.selectors import parse_selectors
from fastdisco.synthetic.status import REASONS, StatusError, too_large, too_old
from fastdisco.synthetic.store import Cursor, Entry, Event, Store, Table

_PER_CHUNK = 128
_END = b"}\n"
_INITIAL_END = b',"annotations":{"k8s.io/initial-events-end":"true"}'
_NULLS = {"Pod": b',"spec":{"containers":null},"status":{}', "Node": b',"spec":{},"status":{}'}


class Watch(Cursor):
    """One watch; `run` is the whole of its life."""

    def __init__(self, store: Store, route: Route, options: Options, connection: Connection, *, interval: float, longest: float) -> None:
        self.route = route
        self.path = route.resource.collection(route.namespace, route.version)
        self._store = store
        self._table: Table = store.tables[route.resource.plural]
        self._options = options
        self._connection = connection
        self._matches = parse_selectors(options.labels, options.fields, route.resource)
        self._prefix = f"{route.namespace}/" if route.namespace else ""
        self._interval = interval
        seconds = options.timeout or random.uniform(1800, 3600)
        self._seconds = min(seconds, longest) if longest else seconds
        self._wake = asyncio.Event()
        self._commands: list[Fault] = []
        self._lines = 0
        self._silent = False
        self._type = b'"object":{"kind":"%b","apiVersion":"%b",' % (
            route.kind.encode(),
            route.api_version.encode(),
        )
        self._prefixes = {kind: b'{"type":"%b",' % kind.encode() + self._type for kind in ("ADDED", "MODIFIED", "DELETED")}

    def wake(self) -> None:
        self._wake.set()

    def rewound(self) -> None:
        self._floor = 0

    def command(self, fault: Fault) -> None:
        """Make an open watch end or err as the fault says, before its next event."""
        self._commands.append(fault)
        self._wake.set()

    async def run(self) -> None:
        """Serve until the deadline, a fault, or the client's leaving."""
        await self._connection.start()
        try:
            self._begin()
        except StatusError as refused:
            await self._connection.chunk([_error(refused)])
            await self._connection.finish()
            return
        self._table.cursors.add(self)
        try:
            await self._serve()
        finally:
            self._table.cursors.discard(self)

    def _begin(self) -> None:
        version, initial = self._options.version or 0, self._options.initial
        self._initial: list[Entry] = []
        if initial or (initial is None and version == 0):
            if version > self._store.version:
                raise too_large(version, self._store.version)
            self._initial = self._table.ordered(self.route.namespace)[1]
        elif version and version < self._table.compacted:
            raise too_old(version, self._table.compacted)
        if initial is None and version:
            self.position = self._table.start + self._table.index_after(version)
            self._floor = version
        else:
            self.position = self._table.start + len(self._table.log)
            self._floor = self._store.version

    async def _serve(self) -> None:
        loop = asyncio.get_running_loop()
        deadline = loop.time() + self._seconds
        fault = self._connection.fault
        if fault is not None and fault.lines:
            await self._connection.chunk([(line + "\n").encode() for line in fault.lines])
        if fault is not None and fault.silent:
            self._silent = True
        else:
            await self._send_initial(fault)
        bookmark_at = self._next_bookmark(loop.time(), deadline)
        while True:
            self._wake.clear()
            if self._commands:
                await self._end(self._commands.pop(0))
                return
            if self._silent:
                await self._wake.wait()
                continue
            if fault is not None and fault.after is not None and self._lines >= fault.after:
                if fault.ending == "silence":
                    self._silent = True
                    continue
                await self._end(fault)
                return
            if self.position < self._table.start:
                await self._connection.finish()  # too slow: the real server ends without a word, too
                return
            if self.position < self._table.end:
                await self._send_events(fault)
                continue
            now = loop.time()
            if now >= deadline:
                await self._connection.finish()
                return
            if now >= bookmark_at:
                allowed = self._options.bookmarks and (fault is None or fault.bookmarks) and self._table.held is None
                if allowed and self._store.version >= self._floor:
                    await self._write([self._bookmark(self._store.version)], 1)
                bookmark_at = self._next_bookmark(loop.time(), deadline)
                continue
            timer = loop.call_at(min(deadline, bookmark_at), self._wake.set)
            await self._wake.wait()
            timer.cancel()

    def _next_bookmark(self, now: float, deadline: float) -> float:
        """At the interval, and once shortly before the end: 2 s, or a tenth of a short watch."""
        last = deadline - min(2.0, self._seconds / 10)
        return min(now + self._interval, last) if now < last else deadline + 1

    async def _send_initial(self, fault: Fault | None) -> None:
        entries, self._initial = self._initial, []
        for start in range(0, len(entries), _PER_CHUNK):
            parts: list[Buffer] = []
            matching = [each for each in entries[start : start + _PER_CHUNK] if self._matches is None or self._matches(each)]
            if fault is not None and fault.after is not None:
                matching = matching[: max(0, fault.after - self._lines)]
            for entry in matching:
                parts += self._line("ADDED", entry)
            await self._write(parts, len(matching))
        if self._options.initial and self._options.bookmarks:
            await self._write([self._bookmark(self._floor, _INITIAL_END)], 1)

    async def _send_events(self, fault: Fault | None) -> None:
        first = self.position - self._table.start
        room = _PER_CHUNK if fault is None or fault.after is None else min(_PER_CHUNK, max(1, fault.after - self._lines))
        events = self._table.log[first : min(first + room, self._table.end - self._table.start)]
        self.position += len(events)
        parts: list[Buffer] = []
        lines = 0
        for event in events:
            if self._prefix and not event.entry.key.startswith(self._prefix):
                continue
            if event.version <= self._floor:
                continue  # the watch started in the future
            line = self._seen(event)
            if line:
                parts += line
                lines += 1
        await self._write(parts, lines)

    def _seen(self, event: Event) -> Sequence[Buffer]:
        """The event as this watch sees it through its selectors; nothing if it does not."""
        if self._matches is None:
            return self._line(event.type, event.entry)
        before = event.old is not None and self._matches(event.old)
        after = event.new is not None and self._matches(event.new)
        if after:
            return self._line("MODIFIED" if before else "ADDED", event.entry)
        if not before or event.old is None:
            return ()
        return self._line("DELETED", event.entry if event.new is None else event.old.stamped(event.version))

    def _line(self, kind: str, entry: Entry) -> Sequence[Buffer]:
        return self._prefixes[kind], memoryview(self.route.body(entry.body))[2:], _END

    def _bookmark(self, version: int, mark: bytes = b"") -> bytes:
        nulls = _NULLS.get(self.route.kind, b"")
        form = b'{"type":"BOOKMARK",%b"metadata":{"resourceVersion":"%d","creationTimestamp":null%b}%b}}\n'
        return form % (self._type, version, mark, nulls)

    async def _write(self, parts: Sequence[Buffer], lines: int) -> None:
        if parts:
            self._lines += lines
            await self._connection.chunk(parts)

    async def _end(self, fault: Fault) -> None:
        if fault.lines and fault is not self._connection.fault:
            await self._connection.chunk([(line + "\n").encode() for line in fault.lines])
        if fault.mid_line:
            half: Buffer = self._prefixes["MODIFIED"] + b'"metadata":{"name":"ha'
            position = self.position - self._table.start
            if 0 <= position < len(self._table.log):
                line = b"".join(self._seen(self._table.log[position])) or half
                half = line[: len(line) // 2]
            await self._connection.chunk([half])
        if fault.ending == "error":
            await self._connection.chunk([_error(refusal(fault.error))])
            await self._connection.finish()
        elif fault.ending == "silence":
            await _for_ever()
        else:
            await self._connection.wind_up(fault.ending)


async def _for_ever() -> None:
    await asyncio.get_running_loop().create_future()


def _error(refused: StatusError) -> bytes:
    return b'{"type":"ERROR","object":%b}\n' % refused.body()


def refusal(error: dict[str, Any]) -> StatusError:
    """The Status of an asked-for error: `code`, `reason`, `message`; a 410 unless it says otherwise."""
    code = int(error.get("code", 410))
    message = str(error.get("message", "too old resource version: 1 (2)" if code == 410 else "an error on demand"))
    reason = error.get("reason")
    return StatusError(code, message, reason=REASONS.get(code, "") if reason is None else str(reason), details=error.get("details"))


