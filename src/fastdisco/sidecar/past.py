"""What the last run knew: kept in a file, and served after a restart until the first sync replaces it."""

from __future__ import annotations

import asyncio
import logging
import os
import time
import zlib
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

from fastdisco.errors import FastdiscoError, NotSynced

from .exports import Exports
from .query import Query
from .state_file import Known, State, read
from .state_writer import Answer, write_state

if TYPE_CHECKING:
    from fastdisco.api_watcher import APIWatcher

    from .jobs import Jobs

logger = logging.getLogger("fastdisco")

MAX_AGE_SECONDS = 600.0
WRITE_SECONDS = 30.0
"""Between two looks at whether there is something new to write."""

_FIRST_SECONDS = 1.0  # after a start there is soon something to keep
_IN_TOUCH_SECONDS = 150.0  # a server has a word for each watch once a minute or so
_QUERIES = (Query(), Query("final"))


class Past:
    """The targets of the last run, by job. An empty one knows nothing."""

    def __init__(self, file: Path | None = None, max_age: float = MAX_AGE_SECONDS, now: Callable[[], float] = time.time) -> None:
        self.names: tuple[str, ...] = ()
        """Of the jobs that somebody may have targets of: those of the last run, and those that it had removed not long before."""
        self._file = file
        self._max_age = max_age
        self._now = now
        self._found: dict[str, Known] = {}
        self._last: list[Any] = []  # what the file has
        self._failed = ""  # what the log has heard of

    def read(self) -> None:
        """What is too old, or no such file, is as none: it is logged, and the run goes on without.

        FastdiscoError if nothing could ever be kept there.
        """
        if self._file is None:
            return
        if self._file.is_dir() or not os.access(self._file.parent, os.W_OK | os.X_OK):
            reason = "it is a directory" if self._file.is_dir() else f"{self._file.parent} is no directory that can be written to"
            raise FastdiscoError(f"cannot keep the state in {self._file}: {reason}")
        try:
            state = read(self._file, self._now() - self._max_age)
        except FileNotFoundError:
            state = State()
        except (OSError, EOFError, ValueError, zlib.error) as error:
            logger.warning("cannot use the state in %s: %s", self._file, error)
            state = State()
        self.names, self._found = state.names, state.jobs
        if self.names:
            fresh = len(self._found)
            logger.info("the state in %s has %d jobs, %d of them young enough to be served", self._file, len(self.names), fresh)

    def of(self, job: str, fingerprint: str) -> Known | None:
        """What the last run knew of a job; None if that was nothing, of another configuration, or is too old by now."""
        known = self._found.get(job)
        return None if known is None or known.fingerprint != fingerprint or self._is_too_old(known) else known

    def forget(self, job: str) -> None:
        """All is known better since."""
        self._found.pop(job, None)

    async def keep(self, jobs: Jobs, exports: Exports) -> None:
        """Writes the file now and then, for ever."""
        if self._file is None:
            return
        while True:
            await asyncio.sleep(WRITE_SECONDS if self._last else _FIRST_SECONDS)
            try:
                await self.write(jobs, exports)
                self._failed = ""
            except NotSynced:  # a job has ended meanwhile
                continue
            except OSError as error:
                if (reason := error.strerror or str(error)) != self._failed:
                    logger.error("cannot write the state to %s: %s", self._file, reason)
                self._failed = reason

    async def write(self, jobs: Jobs, exports: Exports) -> None:
        """What is known now; of a job that has yet to sync what was known before. OSError; NotSynced if a job ends meanwhile."""
        synced = {job.name: job for job in jobs if job.is_synced}
        if self._file is None or not synced:
            return
        for name in synced:
            self.forget(name)
        waiting = {job.name for job in jobs} - synced.keys()
        self._found = {name: known for name, known in self._found.items() if name in waiting and not self._is_too_old(known)}
        names = sorted({*synced, *waiting, *filter(jobs.is_tombstone, jobs.removed)})
        answers = [await self._answer(job, jobs, exports, query) for job in synced.values() for query in _QUERIES]
        now = self._now()
        true_at = min((contact for contact in (job.true_at for job in synced.values()) if self._is_in_touch(contact)), default=now)
        content = [names, answers, {name: (known.fingerprint, known.true_at) for name, known in self._found.items()}]
        if content != self._last or not self._file.exists():
            await write_state(self._file, names, answers, self._found, jobs, exports)
            self._last = content
        os.utime(self._file, (true_at, true_at))

    async def _answer(self, job: APIWatcher, jobs: Jobs, exports: Exports, query: Query) -> Answer:
        await job.evaluated()  # never some by old rules and some by new ones
        contact = job.true_at
        true_at = None if self._is_in_touch(contact) else contact
        fingerprint = jobs.fingerprint(job.name)
        return Answer(job.name, query.labels, fingerprint, (await exports.current(job, query)).etag, true_at)

    def _is_too_old(self, known: Known) -> bool:
        return self._now() - known.true_at > self._max_age

    def _is_in_touch(self, contact: float) -> bool:
        """Those that are share the time of the file; the time of another job stands still, and theirs must not."""
        return self._now() - contact <= _IN_TOUCH_SECONDS
