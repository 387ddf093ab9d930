"""What the jobs export: taken from the engine only when something has changed, once for all who ask, and kept in bytes up to a limit."""

from __future__ import annotations

import asyncio
from collections import OrderedDict
from collections.abc import AsyncIterator, Callable, Coroutine
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, TypeVar
from weakref import WeakValueDictionary, ref
from zlib import crc32

from .snapshots import Export, revision, take

if TYPE_CHECKING:
    from fastdisco.api_watcher import APIWatcher
    from fastdisco.discovery import Discovery

    from .query import Query, Syntax

T = TypeVar("T")

DEFAULT_LIMIT = 64 * 1024 * 1024
"""Bytes of rendered bodies that are kept, in all."""

_GZIP_HEADER = b"\x1f\x8b\x08\x00\x00\x00\x00\x00\x00\xff"
_LAST_BLOCK = b"\x03\x00"


@dataclass(frozen=True, slots=True)
class Body:
    """A document in pieces, to be sent one after the other; `size` in bytes."""

    etag: str
    pieces: tuple[bytes, ...]
    size: int


@dataclass(frozen=True, slots=True)
class Current:
    """What a query gives now. Where the targets had to be taken for that they are here, so that `body` need not take them again."""

    etag: str
    export: Export | None = None


class Exports:
    """Answers queries for the jobs of one discovery."""

    def __init__(self, discovery: Discovery, limit: int = DEFAULT_LIMIT) -> None:
        self._discovery = discovery
        self._limit = limit
        self._known: dict[tuple[Any, Query], tuple[object, str]] = {}  # by query: what it was made of, and its ETag
        self._alive: WeakValueDictionary[tuple[Any, Query], Export] = WeakValueDictionary()  # those that somebody reads
        self._tasks: dict[object, asyncio.Task[Any]] = {}
        self._bodies: OrderedDict[tuple[Any, ...], Body] = OrderedDict()
        self.kept = 0
        """Bytes of bodies that are kept."""
        self.taken = 0
        """Times that targets were taken from the engine."""
        self.rendered = 0
        """Bodies that were rendered, or begun to be streamed."""

    async def current(self, job: APIWatcher, query: Query) -> Current:
        """The targets as they are now. NotSynced."""
        known = self._known.get(_key(job, query))
        if known is not None and known[0] == revision(job, query):
            return Current(known[1])
        export = await self.export(job, query)
        return Current(export.etag, export)

    async def export(self, job: APIWatcher, query: Query) -> Export:
        """The targets as they are now, or at the moment that others who wait have asked for. NotSynced."""
        key = _key(job, query)
        alive = self._alive.get(key)
        if alive is not None and alive.revision == revision(job, query):
            return alive
        return await self._once(("take", key), lambda: self._take(key, job, query))

    async def _take(self, key: tuple[Any, Query], job: APIWatcher, query: Query) -> Export:
        self.taken += 1
        export = await take(self._discovery.symbols, job, query)
        self._known[key] = (export.revision, export.etag)
        self._alive[key] = export
        return export

    async def body(self, job: APIWatcher, query: Query, current: Current, syntax: Syntax, *, gzip: bool) -> Body | Export:
        """The body of what is `current`, or newer; where it is above the limit the export, to be streamed. NotSynced."""
        key = (_key(job, query), current.etag, syntax, gzip)
        body = self._bodies.get(key)
        if body is not None:
            self._bodies.move_to_end(key)
            return body
        return await self._once(("render", key), lambda: self._render(key, current.export, job, query))

    async def _render(self, key: tuple[Any, ...], export: Export | None, job: APIWatcher, query: Query) -> Body | Export:
        export, (_, _, syntax, gzip) = export or await self.export(job, query), key
        self.rendered += 1
        if export.snapshot.length(syntax) > self._limit:
            return export
        pieces = tuple([piece async for piece in streamed(export, syntax, gzip=gzip)])
        body = Body(export.etag, pieces, sum(map(len, pieces)))
        self._keep((key[0], export.etag, *key[2:]), body)
        return body

    def _keep(self, key: tuple[Any, ...], body: Body) -> None:
        for other in [one for one in self._bodies if one[0] == key[0] and one[1] != key[1]]:
            self.kept -= self._bodies.pop(other).size  # an ETag of before will not be asked for again
        self._bodies[key] = body
        self.kept += body.size
        while self.kept > self._limit:
            self.kept -= self._bodies.popitem(last=False)[1].size

    def forget(self, job: APIWatcher) -> None:
        """The job has ended."""
        for key in [key for key in self._known if key[0] == job.name or key[1].dropped]:
            del self._known[key]
        for body in [one for one in self._bodies if one[0][0] == job.name or one[0][1].dropped]:
            self.kept -= self._bodies.pop(body).size

    async def _once(self, key: object, work: Callable[[], Coroutine[Any, Any, T]]) -> T:
        """Those who ask for the same at the same time wait for the same; that one of them leaves is nothing to the others."""
        task = self._tasks.get(key)
        if task is None:
            task = self._tasks[key] = asyncio.create_task(work())
            task.add_done_callback(lambda _: self._tasks.pop(key, None))
        result: T = await asyncio.shield(task)
        return result


async def streamed(export: Export, syntax: Syntax, *, gzip: bool) -> AsyncIterator[bytes]:
    """The document of an export, slice by slice."""
    if not gzip:
        for number in range(export.snapshot.slices):
            yield await export.slice(number, syntax)
        return
    yield _GZIP_HEADER
    check = 0
    for number in range(export.snapshot.slices):
        # each deflated slice stands for itself, so that all who read share it; only the check sum is of the whole
        check = crc32(await export.slice(number, syntax), check)
        yield await export.slice(number, syntax, deflated=True)
    length = export.snapshot.length(syntax)
    yield _LAST_BLOCK + check.to_bytes(4, "little") + (length & 0xFFFFFFFF).to_bytes(4, "little")


def _key(job: APIWatcher, query: Query) -> tuple[Any, Query]:
    """Queries with the same key have the same answer: all targets of jobs with the same configurations are the same."""
    return sources(job) if query.dropped and query.labels == "discovered" else job.name, query


def sources(job: APIWatcher) -> object:
    """Equal for jobs that have the same targets before their rules."""
    return tuple((ref(group), one.role, one.profile) for group, one in job.subscribers)
