"""`/sd`: each job's targets, as Prometheus, vmagent and others poll them."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator, Mapping
from contextlib import suppress
from typing import TYPE_CHECKING
from urllib.parse import quote

import orjson
from aiohttp import web

from fastdisco.errors import NotSynced

from .exports import Body, Exports, sources, streamed
from .query import BadQueryError, Query

if TYPE_CHECKING:
    from fastdisco.api_watcher import APIWatcher

    from .jobs import Jobs
    from .polls import Polls
    from .snapshots import Export
    from .state_file import Known

STALE_SECONDS = 300.0
"""Without a word from the API server for so long what is known may be old."""
SYNC_WAIT_SECONDS = 4.0
"""Both peers wait for longer, but a request that is held delays the other jobs of a vmagent."""

_RETRY_SECONDS = 5
_SEND_SECONDS = 60.0  # for a quarter of a megabyte: who reads slower than that has gone
_HEADERS = {"Content-Type": "application/json", "Cache-Control": "no-cache", "Vary": "Accept-Encoding"}
_NO_TARGETS = b"[]\n"


class HttpSD:
    """The handlers. Before the first sync a request is held; only after `sync_wait` seconds it is refused, for who is refused waits for a
    whole interval. What fails never gives an empty list."""

    def __init__(
        self,
        jobs: Jobs,
        exports: Exports,
        polls: Polls,
        *,
        sync_wait: float = SYNC_WAIT_SECONDS,
        max_staleness: float = 0.0,
        base_url: str = "",
    ) -> None:
        self._jobs = jobs
        self._exports = exports
        self._polls = polls
        self._sync_wait = sync_wait
        self._max_staleness = max_staleness
        self._base_url = base_url

    async def index(self, request: web.Request) -> web.StreamResponse:
        """All jobs and where their targets are; with `?job=NAME` the targets of one."""
        if "job" in request.query:
            return await self._answer(request, request.query["job"])
        for parameter in request.query:
            return web.Response(status=400, text=f"{parameter}: means nothing without job\n")
        base = self._base_url or str(request.url.origin()) + request.path.removesuffix("/sd")
        first: dict[object, str] = {}
        found = []
        for job in self._jobs:
            url = f"{base}/sd{_place(job.name)}"
            everything = first.setdefault(sources(job), f"{url}{'&' if '?' in url else '?'}dropped=include")
            found.append({
                "job": job.name,
                "state": self._state(job),
                "synced": job.is_synced,
                "targets": job.targets if (past := self._past(job)) is None else past.targets,
                "url": url,
                "url_with_dropped": everything,
            })  # fmt: skip
        return web.Response(body=orjson.dumps({"jobs": found}, option=orjson.OPT_INDENT_2) + b"\n", content_type="application/json")

    async def targets(self, request: web.Request) -> web.StreamResponse:
        """The targets of the job that the path names."""
        return await self._answer(request, request.match_info["job"])

    async def _answer(self, request: web.Request, name: str) -> web.StreamResponse:
        response = await self._found(request, name)
        known = self._jobs.get(name) is not None or self._jobs.is_tombstone(name)
        self._polls.answered(name if known else "", response.status, request.headers)
        return response

    async def _found(self, request: web.Request, name: str) -> web.StreamResponse:
        try:
            query = Query.of(request.query)
        except BadQueryError as error:
            return web.Response(status=400, text=f"{error}\n")
        until = asyncio.get_running_loop().time() + self._patience(request)
        while (job := self._jobs.get(name)) is not None:
            if not query.dropped and (past := self._past(job)) is not None:
                return await self._earlier(request, name, past, "final" if query.labels == "final" else "discovered")
            try:
                async with asyncio.timeout_at(until):
                    await job.evaluated()
                return await self._current(request, job, query)
            except TimeoutError:
                return _refusal(503, f"job {name} has not synced yet: {'; '.join(job.troubles)}")
            except NotSynced:  # it has ended meanwhile; perhaps another one has taken its place
                continue
        if self._jobs.is_tombstone(name):
            return web.Response(body=_NO_TARGETS, headers={**_HEADERS, "X-Fastdisco-State": "live"})
        return web.Response(status=404, text=f"there is no job {name}\n")

    def _patience(self, request: web.Request) -> float:
        """Seconds to hold a request: half the client's interval at most, and its timeout is no shorter than that."""
        with suppress(ValueError):
            interval = float(request.headers.get("X-Prometheus-Refresh-Interval-Seconds", ""))
            if interval > 0:
                return min(self._sync_wait, interval / 2)
        return self._sync_wait

    def _past(self, job: APIWatcher) -> Known | None:
        """What may be served of the last run."""
        past = self._jobs.past(job)
        return None if past is None or (self._max_staleness and _age(past.true_at) > self._max_staleness) else past

    def _state(self, job: APIWatcher) -> str:
        """As in the header; a job without targets waits for them."""
        if not job.is_synced:
            return "waiting" if self._past(job) is None else "past"
        return "stale" if _age(job.true_at) > STALE_SECONDS else "live"

    async def _earlier(self, request: web.Request, name: str, past: Known, labels: str) -> web.StreamResponse:
        headers, gzip = {"X-Fastdisco-State": "past", "Age": str(int(_age(past.true_at)))}, _takes_gzip(request)
        tag = _tag(past.bodies[labels].etag, gzip=gzip)
        if _matches(request, tag):
            return web.Response(status=304, headers={**_HEADERS, **headers, "ETag": tag})
        body = await past.packed(labels) if gzip else past.bodies[labels]
        return await self._send(request, name, body, headers, gzip=gzip)

    async def _current(self, request: web.Request, job: APIWatcher, query: Query) -> web.StreamResponse:
        age = _age(job.true_at)
        if self._max_staleness and age > self._max_staleness:
            return _refusal(503, f"job {job.name} has had no word from the API server for {age:.0f} s")
        headers = {"X-Fastdisco-State": self._state(job), "Age": str(int(age))}
        if refused := job.refused_paths:
            headers["X-Fastdisco-Incomplete"] = ", ".join(refused)
        gzip = _takes_gzip(request)
        current = await self._exports.current(job, query)
        tag = _tag(current.etag, gzip=gzip)
        if _matches(request, tag):
            return web.Response(status=304, headers={**_HEADERS, **headers, "ETag": tag})
        body = await self._exports.body(job, query, current, "json", gzip=gzip)
        return await self._send(request, job.name, body, headers, gzip=gzip)

    async def _send(
        self, request: web.Request, name: str, body: Body | Export, headers: Mapping[str, str], *, gzip: bool
    ) -> web.StreamResponse:
        response = web.StreamResponse(headers={**_HEADERS, **headers, "ETag": _tag(body.etag, gzip=gzip)})
        if gzip:
            response.headers["Content-Encoding"] = "gzip"
        if isinstance(body, Body):
            response.content_length = body.size
        elif not gzip:
            response.content_length = body.snapshot.length("json")
        await response.prepare(request)
        if request.method == "HEAD":
            return response
        with suppress(ConnectionError):  # the client may leave at any time
            async for piece in _pieces(body, gzip=gzip):
                try:
                    async with asyncio.timeout(_SEND_SECONDS):
                        await response.write(piece)
                except TimeoutError:
                    if request.transport is not None:
                        request.transport.abort()
                    break
                self._polls.sent(name, len(piece))
                await asyncio.sleep(0)  # writing to a fast reader never waits
            else:
                await response.write_eof()
        return response


async def _pieces(body: Body | Export, *, gzip: bool) -> AsyncIterator[bytes]:
    if isinstance(body, Body):
        for piece in body.pieces:
            yield piece
        return
    async for piece in streamed(body, "json", gzip=gzip):
        yield piece


def _place(job: str) -> str:
    """Of a job below `/sd`. Clients resolve dots in a path before they ask."""
    name = quote(job, safe="")
    return f"?job={name}" if job in (".", "..") else f"/{name}"


def _refusal(status: int, reason: str) -> web.Response:
    return web.Response(status=status, text=f"{reason}\n", headers={"Retry-After": str(_RETRY_SECONDS)})


def _takes_gzip(request: web.Request) -> bool:
    """Whether a client wants it: q=0 is a refusal."""
    for part in request.headers.get("Accept-Encoding", "").lower().split(","):
        coding, _, parameter = (text.strip() for text in part.partition(";"))
        if coding == "gzip":
            return parameter.replace(" ", "") not in ("q=0", "q=0.0", "q=0.00", "q=0.000")
    return False


def _tag(etag: str, *, gzip: bool) -> str:
    return f'"{etag}-gzip"' if gzip else f'"{etag}"'


def _matches(request: web.Request, tag: str) -> bool:
    given = [part.strip().removeprefix("W/") for part in request.headers.get("If-None-Match", "").split(",")]
    return tag in given or "*" in given


def _age(moment: float) -> float:
    """Seconds since a Unix time."""
    return max(0.0, time.time() - moment)
