"""What a running discovery does, shown: a table refreshed in place on a terminal, a line now and then elsewhere."""

from __future__ import annotations

import asyncio
import logging
import os
import shutil
import sys
import time
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
        self._height = 0  # lines of the table that stands on the terminal
        self._rates = _Rates()

    async def start(self, pods: int, api_server: str) -> None:
        """Says what there is to see, and where."""
        lines = [
            f"fastdisco {__version__}: discovering a synthetic cluster of {pods:,} pods, {api_server}; Ctrl-C stops",
            f"  web page  {self._url}",
            f"  targets   {self._url}api/v1/targets",
            f"  metrics   {self._url}metrics",
        ]
        await self._output.write("\n".join([*lines, "", ""]).encode())

    async def go_on(self) -> None:
        """Once all jobs have synced, until cancelled, or until nobody reads standard output any more."""
        self._synced_after = time.monotonic() - self._began
        self._rates.measure(self._discovery)
        closed = asyncio.create_task(self._output.closed())
        followers = [asyncio.create_task(self._follow(job)) for job in self._discovery.jobs.values()]
        log = _Notes() if self._terminal and sys.stderr.isatty() else None
        try:
            await self._show(log)
            while not closed.done():
                await asyncio.wait([closed], timeout=_REFRESH if self._terminal else _LINES)
                await self._show(log)
        except BrokenPipeError:
            pass
        finally:
            for task in (closed, *followers):
                task.cancel()
            if log is not None:
                log.give_back()

    async def _follow(self, job: APIWatcher) -> None:
        async for change in job.changes():
            if change.kind != "snapshot":
                self._last[job.name] = change

    async def _show(self, log: _Notes | None) -> None:
        events, changes = self._rates.measure(self._discovery)
        jobs = self._discovery.jobs
        targets = {name: job.status()["scrape_works"] for name, job in jobs.items()}
        objects = sum(one["objects"] for group in self._discovery.status()["groups"] for one in group["watchers"])
        size = f"{_resident() / 1e6:,.0f} MB, {self._rates.cpu:.0%} of a CPU"
        after = f"synced within {self._synced_after:.2f} s"
        if not self._terminal:
            each = ", ".join(f"{name} {count:,}" for name, count in targets.items())
            line = (
                f"{time.monotonic() - self._began:.0f} s: {len(jobs)} jobs {after}; {sum(targets.values()):,} targets ({each}) "
                f"of {objects:,} objects; {events:,.0f} events/s, {sum(changes.values()):,.0f} changes of targets/s; {size}"
            )
            await self._output.write(line.encode() + b"\n")
            return
        lines = [f"{'job':<15}{'targets':>10}{'changes':>10}{'per s':>8}   last change"]
        for name, job in jobs.items():
            lines.append(f"{name:<15}{targets[name]:>10,}{job.version - 1:>10,}{changes[name]:>8,.0f}   {self._last_of(name)}")
        total = f"{sum(targets.values()):,} targets of {objects:,} objects, {after}, {time.monotonic() - self._began:.0f} s ago"
        lines += ["", f"{total}; {events:,.0f} events/s; {size}"]
        await self._draw(log.take() if log is not None else [], lines)

    async def _draw(self, notes: list[str], lines: list[str]) -> None:
        """In the place of what was drawn last; notes stay above it."""
        width = shutil.get_terminal_size().columns - 1  # a full line would wrap, and count as two
        back = f"\x1b[{self._height}F\x1b[0J" if self._height else ""
        self._height = len(lines)
        text = back + "".join(note + "\n" for note in notes) + "".join(line[:width] + "\n" for line in lines)
        await self._output.write(text.encode())

    def _last_of(self, name: str) -> str:
        change = self._last.get(name)
        if change is None:
            return ""
        labels = change.work
        where = labels.get("__meta_kubernetes_namespace", "")
        what = labels.get(f"__meta_kubernetes_{name}_name", "")
        return f"{_SIGNS[change.kind]} {labels.get('__address__', '')} {where}{'/' if where else ''}{what}"


class _Notes(logging.Handler):
    """Takes the place of the log's handlers while a table is drawn on the same terminal."""

    def __init__(self) -> None:
        super().__init__()
        self._root = logging.getLogger()
        self._before = list(self._root.handlers)
        self._waiting: list[str] = []
        self._root.handlers[:] = [self]
        if self._before:
            self.setFormatter(self._before[0].formatter)

    def emit(self, record: logging.LogRecord) -> None:
        self._waiting.extend(self.format(record).splitlines())

    def take(self) -> list[str]:
        """What was logged since the last time."""
        waiting, self._waiting = self._waiting, []
        return waiting

    def give_back(self) -> None:
        """From now on the log is written as before."""
        self._root.handlers[:] = self._before
        for line in self.take():
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
