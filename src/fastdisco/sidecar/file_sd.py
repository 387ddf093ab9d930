"""A file per job, as Prometheus' and vmagent's file_sd_configs read them."""

from __future__ import annotations

import asyncio
import errno
import hashlib
import logging
import re
import shutil
import time
from collections import Counter
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING

from fastdisco.errors import FastdiscoError, NotSynced

from .files import remove_abandoned, whole_file
from .query import Query, Syntax

if TYPE_CHECKING:
    from fastdisco.api_watcher import APIWatcher

    from .exports import Exports
    from .jobs import Jobs
    from .snapshots import Export

logger = logging.getLogger("fastdisco")

WRITE_SECONDS = 5.0
"""At most one write of a file in so long: Prometheus reads it again at each."""
SUFFIXES: dict[Syntax, str] = {"json": "json", "yaml": "yml"}

_LOOK_SECONDS = 0.5
_PARTIAL_DIRECTORY = ".partial"  # beside the jobs' directories, so that a scraper that watches one of them hears of the finished file only
_QUERY = Query()


def file_of(directory: Path, job: str, syntax: Syntax) -> Path:
    """A directory of its own for each job, since Prometheus reads all files of a directory again when one of them changes.

    Of the job's name the safe characters, and a hash that tells apart names of the same safe ones.
    """
    safe = re.sub(r"[^A-Za-z0-9_-]+", "-", job).strip("-")[:64]
    name = f"{safe}-{hashlib.sha256(job.encode()).hexdigest()[:8]}".lstrip("-")
    return directory / name / f"{name}.{SUFFIXES[syntax]}"


class FileSD:
    """Keeps the files up to date. Nothing is written before a job's first sync, and nothing is removed at the end of the program."""

    def __init__(
        self,
        directory: Path,
        jobs: Jobs,
        exports: Exports,
        *,
        syntax: Syntax = "json",
        mode: int = 0o644,
        write_seconds: float = WRITE_SECONDS,
        now: Callable[[], float] = time.monotonic,
    ) -> None:
        self.failures: Counter[str] = Counter()
        """Writes that failed, by job."""
        self.without_address: dict[str, int] = {}
        self._directory = directory
        self._jobs = jobs
        self._exports = exports
        self._syntax = syntax
        self._mode = mode
        self._write_seconds = write_seconds
        self._now = now
        self._written: dict[str, tuple[str, float]] = {}  # ETag of what the file holds, and when it was tried last
        self._emptied: set[str] = set()
        self._reported: dict[str, str] = {}

    def prepare(self) -> None:
        """FastdiscoError if the directory cannot be used."""
        try:
            partial = self._directory / _PARTIAL_DIRECTORY
            partial.mkdir(parents=True, exist_ok=True)
            remove_abandoned(partial)
        except OSError as error:
            raise FastdiscoError(f"cannot use the directory {self._directory}: {error.strerror}") from None

    async def go_on(self) -> None:
        """For ever: writes what has changed."""
        while True:
            await self.write_changed()
            await asyncio.sleep(_LOOK_SECONDS)

    async def write_changed(self) -> None:
        """The files of those jobs that have changed and whose time has come; a failure is logged, counted, and tried again."""
        for job in self._jobs:
            if job.is_evaluated and self._is_due(job.name):
                with suppress(NotSynced):  # it has ended meanwhile
                    await self._bring_up_to_date(job)
        for name in [name for name in self._jobs.removed if self._jobs.is_tombstone(name) and name not in self._emptied]:
            await self._empty(name)
        for name in [name for name in self._emptied if not self._jobs.is_tombstone(name)]:
            self._emptied.discard(name)
            if self._jobs.get(name) is None:
                await asyncio.to_thread(shutil.rmtree, self._file(name).parent, ignore_errors=True)

    def _file(self, name: str) -> Path:
        return file_of(self._directory, name, self._syntax)

    def _is_due(self, name: str) -> bool:
        return name not in self._written or self._now() - self._written[name][1] >= self._write_seconds

    async def _bring_up_to_date(self, job: APIWatcher) -> None:
        current = await self._exports.current(job, _QUERY)
        before = self._written.get(job.name, ("", 0.0))[0]
        if current.etag != before:
            export = current.export or await self._exports.export(job, _QUERY)
            self._written[job.name] = (export.etag if await self._tried(job.name, export) else before, self._now())
            self.without_address[job.name] = export.snapshot.without_address

    async def _empty(self, name: str) -> None:
        """Who reads it must hear that there are no targets any more before it goes."""
        self._written.pop(name, None)
        self.without_address.pop(name, None)
        if not self._file(name).exists() or await self._tried(name, None):
            self._emptied.add(name)

    async def _tried(self, name: str, export: Export | None) -> bool:
        try:
            await asyncio.to_thread(self._write, self._file(name), export)
        except OSError as error:
            self.failures[name] += 1
            reason = "its directory is on another file system" if error.errno == errno.EXDEV else error.strerror or str(error)
            if self._reported.get(name) != reason:
                logger.error("cannot write the file of job %s: %s; the old one stays", name, reason)
            self._reported[name] = reason
            return False
        self._reported.pop(name, None)
        return True

    def _is_there(self, path: Path, export: Export) -> bool:
        """Whether the file is just what would be written."""
        try:
            found = path.stat()
            if (found.st_size, found.st_mode & 0o777) != (export.snapshot.length(self._syntax), self._mode):
                return False
            with path.open("rb") as file:
                slices = (export.snapshot.render(number, self._syntax) for number in range(export.snapshot.slices))
                return all(file.read(len(text)) == text for text in slices)
        except FileNotFoundError:
            return False

    def _write(self, path: Path, export: Export | None) -> None:
        path.parent.mkdir(exist_ok=True)
        if export is not None and self._is_there(path, export):
            return  # since the last run
        with whole_file(path, mode=self._mode, beside=self._directory / _PARTIAL_DIRECTORY) as file:
            if export is None:
                file.write(b"[]\n")
                return
            for number in range(export.snapshot.slices):
                file.write(export.snapshot.render(number, self._syntax))
