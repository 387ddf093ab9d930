"""What the last run knew: kept in a file, and served after a restart until the first sync replaces it."""

from __future__ import annotations

import asyncio
import gzip
import logging
import os
import sys
import time
import zlib
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

import orjson

from fastdisco.errors import NotSynced

from .exports import Body, Exports
from .files import whole_file
from .query import Query

if TYPE_CHECKING:
    from .jobs import Jobs
    from .snapshots import Export

logger = logging.getLogger("fastdisco")

MAX_AGE_SECONDS = 600.0
WRITE_SECONDS = 30.0
"""Between two looks at whether there is something new to write."""

_FIRST_SECONDS = 1.0  # after a start there is soon something to keep
_VERSION = 1
_QUERIES = (Query(), Query("final"))


class Past:
    """The targets of the last run, by job and query. An empty one knows nothing."""

    def __init__(self, file: Path | None = None, max_age: float = MAX_AGE_SECONDS, now: Callable[[], float] = time.time) -> None:
        self._file = file
        self._max_age = max_age
        self._now = now
        self._written_at = 0.0
        self._found: dict[tuple[str, str], Body] = {}
        self._last: dict[tuple[str, str], str] = {}  # ETags of what the file has

    def read(self) -> None:
        """What is too old, or no such file, is as none: it is logged, and the run goes on without."""
        if self._file is None:
            return
        try:
            self._written_at = self._file.stat().st_mtime
            if self.age > self._max_age:
                logger.info("the state in %s is %.0f s old: too old to be served", self._file, self.age)
                return
            self._found = _read(self._file)
            logger.info("serving %d jobs as %s has them, until they sync", len({job for job, _ in self._found}), self._file)
        except FileNotFoundError:
            pass
        except (OSError, EOFError, ValueError, zlib.error) as error:
            logger.warning("cannot use the state in %s: %s", self._file, error)

    @property
    def age(self) -> float:
        """Seconds since it was true."""
        return max(0.0, self._now() - self._written_at)

    def body(self, job: str, query: Query) -> Body | None:
        """What the last run would have answered; None if that is not known, or too old by now."""
        if query.dropped or self.age > self._max_age:
            return None
        return self._found.get((job, "final" if query.labels == "final" else "discovered"))

    async def keep(self, jobs: Jobs, exports: Exports) -> None:
        """Writes the file now and then, for ever; what is known of jobs that have yet to sync stays in it."""
        if self._file is None:
            return
        while True:
            await asyncio.sleep(WRITE_SECONDS if self._last else _FIRST_SECONDS)
            try:
                await self.write(jobs, exports)
            except NotSynced:  # a job has ended meanwhile
                continue
            except OSError as error:
                logger.error("cannot write the state to %s: %s", self._file, error.strerror or error)

    async def write(self, jobs: Jobs, exports: Exports) -> None:
        """What is known now; nothing while a job that the last run knew has yet to sync. OSError; NotSynced if a job ends meanwhile."""
        known = {name for name, _ in self._found}
        synced = [job for job in jobs if job.is_synced]
        if self._file is None or not synced or any(job.name in known and not job.is_synced for job in jobs):
            return
        self._found = {}  # all is known better now
        true_at = min([self._now(), *(job.last_contact or 0.0 for job in synced)])
        tags = {(job.name, query.labels): (await exports.current(job, query)).etag for job in synced for query in _QUERIES}
        if tags != self._last or not self._file.exists():
            writing = whole_file(self._file)
            file = await asyncio.to_thread(writing.__enter__)
            try:
                with gzip.GzipFile(fileobj=file, mode="wb", compresslevel=1, mtime=0) as packed:
                    for job in synced:
                        for query in _QUERIES:
                            await asyncio.to_thread(_append, packed, job.name, query, await exports.export(job, query))
            except BaseException:
                await asyncio.to_thread(writing.__exit__, *sys.exc_info())
                raise
            await asyncio.to_thread(writing.__exit__, None, None, None)  # waits for the disk
            self._last = tags
        os.utime(self._file, (true_at, true_at))


def _append(to: gzip.GzipFile, job: str, query: Query, export: Export) -> None:
    header = {"version": _VERSION, "job": job, "labels": query.labels, "etag": export.etag, "length": export.snapshot.length("json")}
    to.write(orjson.dumps(header) + b"\n")
    for number in range(export.snapshot.slices):
        to.write(export.snapshot.render(number, "json"))


def _read(file: Path) -> dict[tuple[str, str], Body]:
    """OSError, or ValueError if the file is not one of ours, or not whole."""
    found = {}
    with gzip.open(file) as packed:
        while line := packed.readline():
            try:
                header = orjson.loads(line)
                if header["version"] != _VERSION:
                    raise ValueError(f"version {header['version']}")
                text = packed.read(header["length"])
                if len(text) != header["length"]:
                    raise ValueError("it ends early")
                found[header["job"], header["labels"]] = Body(header["etag"], (text,), len(text))
            except (KeyError, TypeError) as error:
                raise ValueError(f"no such header: {error}") from None
    return found
