"""The file that keeps what a run knew: a line with the names of its jobs, then for each answer a line about it, and its text; gzipped."""

from __future__ import annotations

import asyncio
import gzip
import zlib
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import orjson

from .exports import Body

_VERSION = 2
_PIECE = 256 * 1024


@dataclass(slots=True)
class Known:
    """What a run knew of a job."""

    fingerprint: str
    """Of the job's configuration: of another one its targets would be others."""
    true_at: float
    """Unix time at which it was known to be so."""
    targets: int
    """After the rules, as a job counts them."""
    bodies: dict[str, Body]
    """By the labels that a query asks for: `discovered` or `final`."""
    _packed: dict[str, asyncio.Future[Body]] = field(default_factory=dict)

    async def packed(self, labels: str) -> Body:
        """The body gzipped, once for all who ask, on another thread."""
        if labels not in self._packed:
            self._packed[labels] = asyncio.ensure_future(asyncio.to_thread(_gzipped, self.bodies[labels]))
        return await asyncio.shield(self._packed[labels])


@dataclass(slots=True)
class State:
    """All that the file has."""

    names: tuple[str, ...] = ()
    """Of the jobs that somebody may have targets of."""
    jobs: dict[str, Known] = field(default_factory=dict)


def begin(to: gzip.GzipFile, names: Iterable[str]) -> None:
    """The first line."""
    to.write(orjson.dumps({"version": _VERSION, "jobs": list(names)}) + b"\n")


def append(to: gzip.GzipFile, about: Mapping[str, Any], length: int, pieces: Iterable[bytes]) -> None:
    """One answer. `about`: its `job`, `labels`, `fingerprint`, `targets`, `etag`; `true_at`, None if that is the time of the file."""
    to.write(orjson.dumps({**about, "length": length}) + b"\n")
    for piece in pieces:
        to.write(piece)


def read(file: Path, oldest: float) -> State:
    """Answers that were true at the Unix time `oldest` or later, and all names. OSError, or ValueError if the file is not one of ours, or
    not whole."""
    written_at = file.stat().st_mtime
    with gzip.open(file) as packed:
        try:
            first = orjson.loads(packed.readline())
            if first["version"] != _VERSION:
                raise ValueError(f"version {first['version']}")
            if not isinstance(first["jobs"], list) or not all(isinstance(name, str) for name in first["jobs"]):
                raise ValueError("its jobs are no list of names")
            state = State(tuple(first["jobs"]))
            while written_at >= oldest and (line := packed.readline()):
                about = orjson.loads(line)
                true_at = written_at if about["true_at"] is None else float(about["true_at"])
                body = Body(about["etag"], tuple(_pieces(packed, about["length"])), about["length"])
                if true_at >= oldest:
                    known = Known(about["fingerprint"], true_at, about["targets"], {})
                    state.jobs.setdefault(about["job"], known).bodies[about["labels"]] = body
        except (KeyError, TypeError) as error:
            raise ValueError(f"no such header: {error}") from None
    return state


def _pieces(packed: gzip.GzipFile, length: int) -> Iterator[bytes]:
    while length > 0:
        piece = packed.read(min(length, _PIECE))
        if not piece:
            raise ValueError("it ends early")
        length -= len(piece)
        yield piece


def _gzipped(body: Body) -> Body:
    compressor = zlib.compressobj(level=4, wbits=16 + zlib.MAX_WBITS)
    pieces = [compressor.compress(piece) for piece in body.pieces]
    found = tuple(piece for piece in (*pieces, compressor.flush()) if piece)
    return Body(body.etag, found, sum(map(len, found)))
