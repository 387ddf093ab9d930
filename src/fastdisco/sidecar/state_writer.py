"""Writes the state: what the jobs have now, as it is taken from the engine, and what is known from before of others."""

from __future__ import annotations

import asyncio
import gzip
import sys
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from fastdisco.errors import NotSynced

from .files import whole_file
from .query import Query
from .state_file import Known, append, begin

if TYPE_CHECKING:
    from .exports import Exports
    from .jobs import Jobs


@dataclass(frozen=True, slots=True)
class Answer:
    """What the file is to have of a job and a query."""

    job: str
    labels: str
    fingerprint: str
    etag: str
    true_at: float | None
    """None: the time of the file, which need not be written again for that."""


async def write_state(
    to: Path, names: Sequence[str], answers: Sequence[Answer], earlier: Mapping[str, Known], jobs: Jobs, exports: Exports
) -> None:
    """Packing and the disk are left to other threads. OSError; NotSynced if a job is no longer the one that an answer is of."""
    writing = whole_file(to)
    file = await asyncio.to_thread(writing.__enter__)
    try:
        with gzip.GzipFile(fileobj=file, mode="wb", compresslevel=1, mtime=0) as packed:
            begin(packed, names)
            for answer in answers:
                await _append_live(packed, answer, jobs, exports)
            for name, known in earlier.items():
                await _append_known(packed, name, known)
    except BaseException:
        await asyncio.to_thread(writing.__exit__, *sys.exc_info())
        raise
    await asyncio.to_thread(writing.__exit__, None, None, None)  # waits for the disk


async def _append_live(to: gzip.GzipFile, answer: Answer, jobs: Jobs, exports: Exports) -> None:
    job = jobs.get(answer.job)
    if job is None or jobs.fingerprint(answer.job) != answer.fingerprint:
        raise NotSynced(f"job {answer.job} is another one by now")
    await job.evaluated()
    export = await exports.export(job, Query(answer.labels))
    about: dict[str, Any] = asdict(answer) | {"etag": export.etag, "targets": job.targets}
    pieces = (export.snapshot.render(number, "json") for number in range(export.snapshot.slices))
    await asyncio.to_thread(append, to, about, export.snapshot.length("json"), pieces)


async def _append_known(to: gzip.GzipFile, name: str, known: Known) -> None:
    for labels, body in known.bodies.items():
        about = asdict(Answer(name, labels, known.fingerprint, body.etag, known.true_at)) | {"targets": known.targets}
        await asyncio.to_thread(append, to, about, body.size, body.pieces)
