"""The bytes of one list or of one watch, read into a decoder without ever holding the loop for long."""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, NamedTuple

import orjson

from .api import ApiClient, Body, api_error
from .backoff import Allowance
from .errors import ApiError, DecodeError, NetworkError
from .totals import RoleTotals

if TYPE_CHECKING:
    from ._json import Decoder

logger = logging.getLogger("fastdisco")


class Timings(NamedTuple):
    """Deadlines, delays and slices, in seconds where nothing else is said; tests shorten them."""

    api_server_timeout: float = 1800.0
    """Bounds a list in all; a watch asks for a little less than nine tenths of it."""
    first_backoff: float = 1.0
    longest_backoff: float = 30.0
    healthy_after: float = 10.0
    """A watch that lived this long was healthy even if it brought nothing."""
    read_timeout: float = 30.0
    """A list without a byte for this long is given up."""
    silent_after: float = 180.0
    """A watch without a line for this long is probed: bookmarks come every minute."""
    watch_grace: float = 30.0
    """A watch is cut this long after the server should have ended it."""
    error_500_for: float = 30.0
    """A server that has failed over one version for this long is asked for a list instead."""
    too_large_wait: float = 1.0
    """An API server that is behind its peers needs about this long to catch up."""
    feed_slice: int = 1 << 20
    """Bytes decoded between two turns of the loop: half a millisecond, and two without vector instructions."""
    apply_slice: int = 1000
    """Objects applied between two turns of the loop."""


class URLReader:
    """Feeds one decoder; `on_items` is called after bytes that completed items or good lines, the store may have changed then."""

    def __init__(
        self, kind: str, client: ApiClient, decoder: Decoder, totals: RoleTotals, timings: Timings, on_items: Callable[[], None]
    ) -> None:
        self.pages = 0
        """Complete pages of the list in progress."""
        self.last_contact = 0.0
        """Unix time of the last byte from the server; 0 before the first."""
        self._kind = kind
        self._client = client
        self._decoder = decoder
        self._totals = totals
        self._timings = timings
        self._on_items = on_items
        self._log_lines = Allowance()
        self._unknown_events = 0

    def close(self) -> None:
        """Tells nobody of anything any more, so that nothing keeps its watcher, and by it the store, alive."""
        self._on_items = lambda: None

    async def list(self, path: str, selectors: Mapping[str, str], version: Mapping[str, str], limit: int) -> str:
        """All pages, ready to be applied; returns the version of the list. A failed list is forgotten."""
        self.pages = 0
        self._decoder.begin_list()
        try:
            return await self._pages(path, selectors, version, limit)
        except BaseException:
            self._decoder.abort_list()
            raise

    async def apply(self) -> None:
        """The list becomes the state of the store, object by object."""
        while self._decoder.apply_list(self._timings.apply_slice):
            self._on_items()
            await asyncio.sleep(0)
        self._on_items()

    async def watch(self, body: Body) -> bool:
        """Returns when the server has ended the watch, or with True when its versions went back; an ERROR event is raised as ApiError."""
        silent_after, clock = self._timings.silent_after, asyncio.get_running_loop().time
        last_line = clock()
        self._decoder.begin_watch()
        noted = 0  # lines of this watch so far
        try:
            async for chunk in body:
                lines = await self._feed(chunk)
                noted += lines
                if self._note_lines(lines):
                    last_line = clock()
                    if self._decoder.rewound:
                        return True
                elif clock() - last_line > silent_after:
                    raise NetworkError("silent", "no line within the time in which a bookmark should have come")
        except BaseException:
            self._end_watch(noted)  # what it failed of counts for more than an ERROR event in a last line
            raise
        for status in self._end_watch(noted):
            raise api_error(0, status)
        return False

    async def newest_version(self, path: str, selectors: Mapping[str, str]) -> str:
        """The version that the server has reached, by a list of one object."""
        body = await self._client.get(path, {**selectors, "limit": "1"}, total_timeout=self._timings.api_server_timeout)
        try:
            version = orjson.loads(body)["metadata"]["resourceVersion"]
        except (orjson.JSONDecodeError, KeyError, TypeError) as error:
            raise DecodeError(f"no list: {error}", 0) from error
        return version if isinstance(version, str) else ""

    async def serves_version_of(self, path: str) -> bool:
        """Whether the server knows `/apis/<group>/<version>` of the path."""
        try:
            await self._client.get("/".join(path.split("/")[:4]), total_timeout=self._timings.read_timeout)
        except ApiError as error:
            return error.code != 404
        return True

    async def _pages(self, path: str, selectors: Mapping[str, str], version: Mapping[str, str], limit: int) -> str:
        clock = asyncio.get_running_loop().time
        deadline = clock() + self._timings.api_server_timeout
        page = {"limit": str(limit)} if limit else {}
        query = {**selectors, **version, **page}
        while True:
            async with self._client.stream(
                path, query, read_timeout=self._timings.read_timeout, total_timeout=max(deadline - clock(), 0.001)
            ) as body:
                async for chunk in body:
                    if await self._feed(chunk):
                        self._on_items()
            reached, token = self._decoder.end_page()
            if not token:
                if not reached:
                    raise DecodeError("the list has no resource version", 0)
                return reached
            self.pages += 1
            self._decoder.begin_page()
            # The token stands for the version as well; servers refuse the two together.
            query = {**selectors, **page, "continue": token}

    async def _feed(self, chunk: bytes | memoryview) -> int:
        self.last_contact = time.time()
        self._totals.bytes_received += len(chunk)
        step, items = self._timings.feed_slice, 0
        if len(chunk) <= step:
            items = self._decoder.feed(chunk)
        else:
            view = memoryview(chunk)
            for start in range(0, len(chunk), step):
                items += self._decoder.feed(view[start : start + step])
                await asyncio.sleep(0)
        self._note_errors()
        return items

    def _note_errors(self) -> None:
        """Counts bad objects and lines; the log hears of some."""
        for key, error in self._decoder.take_errors():
            self._totals.decode_errors += 1
            if self._log_lines.take():
                skipped, self._log_lines.skipped = self._log_lines.skipped, 0
                logger.warning(
                    "skipped the %s %s: %s%s", self._kind, key or "of unknown name", error, f" (and {skipped} before)" if skipped else ""
                )

    def _note_lines(self, lines: int) -> bool:
        """Whether there was a line; raises the first ERROR event."""
        for status in self._take_lines(lines):
            raise api_error(0, status)
        return lines > 0

    def _end_watch(self, noted: int) -> Sequence[bytes]:
        """Half a line is nothing; a whole one that no newline follows is a line like those noted before. Gives ERROR events in it."""
        lines = self._decoder.end_watch() - noted
        self._note_errors()
        return self._take_lines(lines)

    def _take_lines(self, lines: int) -> Sequence[bytes]:
        """Tells of good lines; gives the ERROR events among them, which are none."""
        unknown = self._decoder.unknown_events
        self._totals.decode_errors += unknown - self._unknown_events
        self._unknown_events = unknown
        statuses = self._decoder.take_statuses()
        if lines > len(statuses):
            self._on_items()
        return statuses
