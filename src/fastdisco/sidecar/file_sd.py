"""A file per job, as Prometheus' and vmagent's file_sd_configs read them."""

from __future__ import annotations

import asyncio
import errno
import logging
import time
from collections import Counter
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING

from fastdisco.errors import FastdiscoError, NotSynced

from .job_files import JobFiles
from .query import Query, Syntax

if TYPE_CHECKING:
    from fastdisco.api_watcher import APIWatcher

    from .exports import Exports
    from .jobs import Jobs
    from .snapshots import Export

logger = logging.getLogger("fastdisco")

WRITE_SECONDS = 5.0
"""At most one write of a file in so long: Prometheus reads it again at each."""

_LOOK_SECONDS = 0.5
_QUERY = Query()


@dataclass(frozen=True, slots=True)
class _Written:
    """What is known of a job's file; times by the clock of `FileSD`."""

    etag: str = ""
    """Of what it holds; empty if that is not known."""
    tried_at: float = 0.0
    looked_at: float = 0.0
    identity: tuple[int, ...] = ()
    """Of the file as it was left: another one has been put there by somebody else."""
    lost: bool = False
    """Somebody else has removed or changed it."""


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
        self.reported: dict[str, str] = {}
        """Why the last write failed, by job; those whose files are right have no entry."""
        self.restored: Counter[str] = Counter()
        """Files that were written again since somebody had removed or changed them, by job."""
        self.without_address: dict[str, int] = {}
        self._directory = directory
        self._jobs = jobs
        self._exports = exports
        self._files = JobFiles(directory, syntax, mode)
        self._write_seconds = write_seconds
        self._now = now
        self._written: dict[str, _Written] = {}
        self._emptied: set[str] = set()
        self._with_directory: set[str] = set()

    def prepare(self) -> None:
        """FastdiscoError if the directory cannot be used."""
        try:
            self._files.prepare()
        except OSError as error:
            raise FastdiscoError(f"cannot use the directory {self._directory}: {error.strerror}") from None

    async def go_on(self) -> None:
        """For ever: writes what has changed."""
        while True:
            await self.write_changed()
            await asyncio.sleep(_LOOK_SECONDS)

    async def write_changed(self) -> None:
        """The files of those jobs that have changed, or are not there any more, and whose time has come; a failure is logged, counted, and
        tried again."""
        await self.make_directories()
        await self._look_after()
        for job in self._jobs:
            if job.is_evaluated and self._is_due(job.name):
                with suppress(NotSynced):  # it has ended meanwhile
                    await self._bring_up_to_date(job)
        for name in [name for name in self._jobs.removed if self._jobs.is_tombstone(name) and name not in self._emptied]:
            await self._empty(name)
        for name in [name for name in self._emptied if not self._jobs.is_tombstone(name)]:
            self._emptied.discard(name)
            if self._jobs.get(name) is None:
                await asyncio.to_thread(self._files.remove, name)

    async def make_directories(self) -> None:
        """Those of new jobs, before they have a file: Prometheus watches directories, and only those that are there when it starts."""
        new = [job.name for job in self._jobs if job.name not in self._with_directory]
        for name in new:
            with suppress(OSError):  # writing the file will tell
                await asyncio.to_thread(self._files.make_directory, name)
        self._with_directory = {job.name for job in self._jobs}

    def _is_due(self, name: str) -> bool:
        return name not in self._written or self._now() - self._written[name].tried_at >= self._write_seconds

    async def _look_after(self) -> None:
        """What somebody else has removed or changed is to be written again."""
        now = self._now()
        seen = {name: one for name, one in self._written.items() if one.etag and now - one.looked_at >= self._write_seconds}
        lost = await asyncio.to_thread(lambda: {name for name, one in seen.items() if self._files.identity(name) != one.identity})
        for name, one in seen.items():
            self._written[name] = replace(one, looked_at=now) if name not in lost else replace(one, etag="", lost=True)

    async def _bring_up_to_date(self, job: APIWatcher) -> None:
        current = await self._exports.current(job, _QUERY)
        before = self._written.get(job.name, _Written())
        if current.etag != before.etag:
            export = current.export or await self._exports.export(job, _QUERY)
            done = await self._tried(job.name, export)
            now = self._now()
            if done:
                identity = await asyncio.to_thread(self._files.identity, job.name)
                self._written[job.name] = _Written(export.etag, now, now, identity)
            else:
                self._written[job.name] = replace(before, tried_at=now)
            self.without_address[job.name] = export.snapshot.without_address

    async def _empty(self, name: str) -> None:
        """Who reads it must hear that there are no targets any more before it goes."""
        self._written.pop(name, None)
        self.without_address.pop(name, None)
        if not self._files.of(name).exists() or await self._tried(name, None):
            self._emptied.add(name)

    async def _tried(self, name: str, export: Export | None) -> bool:
        try:
            written = await asyncio.to_thread(self._files.write, name, export)
        except OSError as error:
            self.failures[name] += 1
            reason = "its directory is on another file system" if error.errno == errno.EXDEV else error.strerror or str(error)
            if self.reported.get(name) != reason:
                logger.error("cannot write the file of job %s: %s; the old one stays", name, reason)
            self.reported[name] = reason
            return False
        self.reported.pop(name, None)
        if written and self._written.get(name, _Written()).lost:
            self.restored[name] += 1
            logger.warning("the file of job %s was not as it had been written; it has been written again", name)
        return True
