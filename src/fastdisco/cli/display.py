"""What a running discovery does, shown: a screen of its own on a terminal, a line now and then elsewhere."""

from __future__ import annotations

import asyncio
import logging
import os
import signal
import sys
import textwrap
import time
from collections import deque
from pathlib import Path
from typing import TYPE_CHECKING

from fastdisco import __version__
from fastdisco.discovery import Discovery

from .output import Output

if TYPE_CHECKING:
    from fastdisco.api_watcher import APIWatcher
    from fastdisco.changes import Change

_REFRESH = 1.0  # seconds on a terminal
_LINES = 5.0  # seconds between lines elsewhere
_PAGE = os.sysconf("SC_PAGE_SIZE")
_ENTER, _LEAVE = "\x1b[?1049h", "\x1b[?1049l"  # the alternate screen: whatever happens to its size, nothing of it stays
_HOME, _END_OF_LINE, _REST = "\x1b[H", "\x1b[K", "\x1b[J"
_MOST_NOTES = 1000
_SIGNS = {"added": "+", "updated": "~", "removed": "-"}


class Display:
    """Writes to standard output; what it shows it counts itself, or finds in the state of the discovery."""

    def __init__(self, discovery: Discovery, url: str) -> None:
        self._discovery = discovery
        self._url = url
        self._output = Output(sys.stdout.fileno())
        self._terminal = sys.stdout.isatty() and os.environ.get("TERM", "dumb") != "dumb"
        self._began = time.monotonic()
        self._synced_after = 0.0
        self._last: dict[str, Change] = {}
        self._head: list[str] = []
        self._resized = asyncio.Event()
        self._rates = _Rates()

    async def start(self, pods: int, api_server: str) -> None:
        """Says what there is to see, and where."""
        self._head = [
            f"fastdisco {__version__}: discovering a synthetic cluster of {pods:,} pods, {api_server}; Ctrl-C stops",
            f"  web page  {self._url}",
            f"  targets   {self._url}api/v1/targets",
            f"  metrics   {self._url}metrics",
            "",
        ]
        await self._output.write("\n".join([*self._head, ""]).encode())

    async def go_on(self) -> None:
        """Once all jobs have synced, until cancelled, or until nobody reads standard output any more."""
        self._synced_after = time.monotonic() - self._began
        self._rates.measure(self._discovery)
        closed = asyncio.create_task(self._output.closed())
        followers = [asyncio.create_task(self._follow(job)) for job in self._discovery.jobs.values()]
        try:
            await (self._draw_on(closed) if self._terminal else self._print_on(closed))
        except BrokenPipeError:
            pass
        finally:
            for task in (closed, *followers):
                task.cancel()

    async def _print_on(self, closed: asyncio.Task[None]) -> None:
        await self._output.write(self._line().encode() + b"\n")
        while not closed.done():
            await asyncio.wait([closed], timeout=_LINES)
            await self._output.write(self._line().encode() + b"\n")

    async def _draw_on(self, closed: asyncio.Task[None]) -> None:
        """The last table stays when the screen is left, and then comes what was logged meanwhile."""
        loop = asyncio.get_running_loop()
        loop.add_signal_handler(signal.SIGWINCH, self._resized.set)
        log = _Notes() if sys.stderr.isatty() else None
        columns, _ = _size()
        table = self._table(columns)
        await self._output.write(_ENTER.encode())
        try:
            while not closed.done():
                await self._output.write(screen(self._head, table, log.last() if log is not None else [], *_size()).encode())
                self._resized.clear()
                resized = loop.create_task(self._resized.wait())
                await asyncio.wait([closed, resized], timeout=_REFRESH, return_when=asyncio.FIRST_COMPLETED)
                resized.cancel()
                columns, _ = _size()
                table = self._table(columns)
        finally:
            loop.remove_signal_handler(signal.SIGWINCH)
            left = _LEAVE + "".join(line[: columns - 1] + "\n" for line in table)
            try:
                await self._output.write(left.encode())
            finally:
                if log is not None:
                    log.give_back()

    async def _follow(self, job: APIWatcher) -> None:
        async for change in job.changes():
            if change.kind != "snapshot":
                self._last[job.name] = change

    def _line(self) -> str:
        events, changes = self._rates.measure(self._discovery)
        targets = self._targets()
        each = ", ".join(f"{name} {count:,}" for name, count in targets.items())
        return (
            f"{time.monotonic() - self._began:.0f} s: {len(targets)} jobs {self._after()}; {sum(targets.values()):,} targets ({each}) of "
            f"{self._objects():,} objects; {events:,.0f} events/s, {sum(changes.values()):,.0f} changes of targets/s; {self._use()}"
        )

    def _table(self, columns: int) -> list[str]:
        events, changes = self._rates.measure(self._discovery)
        targets = self._targets()
        lines = [f"{'job':<15}{'targets':>10}{'changes':>10}{'per s':>8}   last change"]
        for name, job in self._discovery.jobs.items():
            lines.append(f"{name:<15}{targets[name]:>10,}{job.version - 1:>10,}{changes[name]:>8,.0f}   {self._last_of(name)}")
        ago = f"{time.monotonic() - self._began:.0f} s ago"
        total = f"{sum(targets.values()):,} targets of {self._objects():,} objects, {self._after()}, {ago}"
        return [*lines, "", *wrapped(total, f"{events:,.0f} events/s; {self._use()}", columns - 1)]

    def _targets(self) -> dict[str, int]:
        return {name: job.status()["scrape_works"] for name, job in self._discovery.jobs.items()}

    def _objects(self) -> int:
        return sum(one["objects"] for group in self._discovery.status()["groups"] for one in group["watchers"])

    def _after(self) -> str:
        return f"synced within {self._synced_after:.2f} s"

    def _use(self) -> str:
        return f"{_resident() / 1e6:,.0f} MB, {self._rates.cpu:.0%} of a CPU"

    def _last_of(self, name: str) -> str:
        change = self._last.get(name)
        if change is None:
            return ""
        labels = change.work
        where = labels.get("__meta_kubernetes_namespace", "")
        what = labels.get(f"__meta_kubernetes_{name}_name", "")
        return f"{_SIGNS[change.kind]} {labels.get('__address__', '')} {where}{'/' if where else ''}{what}"


def screen(head: list[str], table: list[str], notes: list[str], columns: int, rows: int) -> str:
    """All that a terminal of this size shows: the table first of all, then the head above it, and as many of the last notes as fit."""
    lines = [*head, *table] if len(head) + len(table) <= rows else table
    room = rows - len(lines) - 1
    if notes and room > 0:
        lines = [*lines, "", *notes[-room:]]
    # No line is full and none ends the last row: either would move what is above.
    return _HOME + "\n".join(line[: columns - 1] + _END_OF_LINE for line in lines[:rows]) + _REST


def wrapped(first: str, second: str, width: int) -> list[str]:
    """Both on one line if they fit, else each on its own, or on as many as it needs."""
    both = f"{first}; {second}"
    if len(both) <= width:
        return [both]
    return [line for text in (first, second) for line in textwrap.wrap(text, max(width, 1))]


def _size() -> tuple[int, int]:
    """Columns and rows of the terminal as it is now; some do not know."""
    size = os.get_terminal_size(sys.stdout.fileno())
    return size.columns or 80, size.lines or 24


class _Notes(logging.Handler):
    """Takes the place of the log's handlers while a table is drawn on the same terminal."""

    def __init__(self) -> None:
        super().__init__()
        self._root = logging.getLogger()
        self._before = list(self._root.handlers)
        self._noted: deque[str] = deque(maxlen=_MOST_NOTES)
        self._root.handlers[:] = [self]
        if self._before:
            self.setFormatter(self._before[0].formatter)
            self.filters = self._before[0].filters

    def emit(self, record: logging.LogRecord) -> None:
        self._noted.extend(self.format(record).splitlines())

    def last(self) -> list[str]:
        """What has been logged, newest last."""
        return list(self._noted)

    def give_back(self) -> None:
        """From now on the log is written as before."""
        self._root.handlers[:] = self._before
        for line in self._noted:
            sys.stderr.write(line + "\n")


class _Rates:
    """Numbers per second, since the last time that they were measured."""

    def __init__(self) -> None:
        self.cpu = 0.0
        self._when = time.monotonic()
        self._used = time.process_time()
        self._events = 0
        self._versions: dict[str, int] = {}

    def measure(self, discovery: Discovery) -> tuple[float, dict[str, float]]:
        """Events of objects, and changes of targets by job."""
        now, used = time.monotonic(), time.process_time()
        seconds = max(now - self._when, 1e-3)
        self.cpu = (used - self._used) / seconds
        live = discovery.metrics.measure()[0]
        events = sum(one.added + one.updated + one.removed for one in live.roles.values())
        versions = {name: job.version for name, job in discovery.jobs.items()}
        rates = {name: (version - self._versions.get(name, version)) / seconds for name, version in versions.items()}
        per_second = (events - self._events) / seconds
        self._when, self._used, self._events, self._versions = now, used, events, versions
        return per_second, rates


def _resident() -> int:
    """Bytes of memory in use."""
    return int(Path("/proc/self/statm").read_text().split()[1]) * _PAGE
