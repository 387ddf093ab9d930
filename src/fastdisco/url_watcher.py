"""One path of the API server kept true: list, then watch, then resume; the only place that catches network errors."""

from __future__ import annotations

import asyncio
import logging
import random as _random
import time
from collections.abc import Callable, Mapping
from contextlib import suppress
from typing import TYPE_CHECKING, Any

from .api import ApiClient
from .errors import ApiError, DecodeError, NetworkError
from .metrics import Metrics
from .recovery import Failure, Recovery, State, is_lower, restart_reason
from .totals import Live
from .url_reader import Timings, URLReader

if TYPE_CHECKING:
    from ._json import Decoder

__all__ = ["State", "Timings", "URLWatcher"]

logger = logging.getLogger("fastdisco")


class URLWatcher:
    """Keeps one decoder's part of the store as the server has it, and never turns failure into emptiness.

    `paths` are the same resource, newest API version first. `on_change` is called after bytes that may have changed the store, `on_settled`
    whenever `settled`, `listed` or `refused` changes; neither may block or raise.
    """

    def __init__(
        self,
        kind: str,
        namespace: str,
        paths: tuple[str, ...],
        params: Mapping[str, str],
        client: ApiClient,
        decoder: Decoder,
        metrics: Metrics,
        *,
        timings: Timings | None = None,
        list_limit: int = 0,
        relist_interval: float = 0.0,
        on_change: Callable[[], None] = lambda: None,
        on_settled: Callable[[], None] = lambda: None,
        random: Callable[[], float] = _random.random,
    ) -> None:
        self.kind = kind
        self.namespace = namespace
        self.path = paths[0]
        self.state = State.LISTING
        self.listed = False
        """One list has been complete."""
        self.refused: ApiError | None = None
        """Why the server refuses for good; it is asked again at the longest delay."""
        self.last_error = ""
        self.next_retry: float | None = None
        """Unix time, while backing off or refused."""
        self._paths = paths
        self._selectors = dict(params)
        self._client = client
        self._decoder = decoder
        self._totals = metrics.role(kind)
        self._timings = timings or Timings()
        self._list_limit = list_limit
        self._relist_interval = relist_interval
        self._on_change = on_change
        self._on_settled = on_settled
        self._random = random
        self._reader = URLReader(kind, client, decoder, self._totals, self._timings, self._heard)
        self._recovery = Recovery(self._timings, self._now, random)
        self._began = time.time()
        self._task: asyncio.Task[None] | None = None
        self._relist_timer: asyncio.TimerHandle | None = None
        self._resync = False
        self._wake = asyncio.Event()  # ends a delay early
        self._cut: asyncio.Timeout | None = None  # ends the watch for `resync`
        self._opened = 0.0  # loop time at which the server accepted the watch
        self._healthy = False  # the watch has proved itself
        self._reported = ""  # the trouble that the log has heard of

    @property
    def settled(self) -> bool:
        """All that can be known for now is known: it has listed, or was refused for good."""
        return self.listed or self.refused is not None

    @property
    def resource_version(self) -> str:
        """The version to resume at; empty before the first list."""
        return self._decoder.resource_version

    @property
    def last_contact(self) -> float:
        """Unix time of the last byte from the server; 0 before the first."""
        return self._reader.last_contact

    def start(self) -> None:
        """Begin; from now on until `stop` the watcher looks after itself."""
        self._task = asyncio.get_running_loop().create_task(self._run(), name=f"fastdisco {self.path}")

    async def stop(self) -> None:
        """Returns when the connection is cut and no callback will come any more; what the store holds stays."""
        if self._task is not None:
            self._task.cancel()
            await asyncio.wait([self._task])
            self._task = None  # its traceback holds the watcher
        self._reader.close()
        self.state = State.STOPPED

    def resync(self) -> None:
        """List again now, whatever the watch says; a delay ends."""
        self._resync = True
        self._wake.set()
        if self._cut is not None and not self._cut.expired():
            self._cut.reschedule(self._now())

    def status(self) -> dict[str, Any]:
        """For people and for JSON."""
        return {
            "kind": self.kind, "namespace": self.namespace, "path": self.path, "state": self.state.value, "settled": self.settled,
            "listed": self.listed, "refused": str(self.refused) if self.refused else None, "resource_version": self.resource_version,
            "last_contact": self.last_contact or None, "last_error": self.last_error, "next_retry": self.next_retry,
        }  # fmt: skip

    def measure(self, live: Live) -> None:
        """Its part in the metrics of the group that owns it."""
        numbers = live.role(self.kind)
        numbers.url_watchers += 1
        numbers.contact(self.last_contact or self._began)

    async def _run(self) -> None:
        logger.info("started watching %s", self.path)
        try:
            while True:
                try:
                    self.state = await self._step()
                except (ApiError, NetworkError, DecodeError) as error:
                    self.state = self._recover(error)
                except Exception as error:  # a mistake of ours must not end discovery
                    logger.exception("watching %s failed; it starts over", self.path)
                    self.last_error = f"{type(error).__name__}: {error}"
                    self._totals.restarts["exception"] += 1
                    self._decoder.abort_list()
                    self.state = self._recovery.back_off(State.LISTING)
        finally:
            self.state, self.next_retry = State.STOPPED, None
            if self._relist_timer is not None:
                self._relist_timer.cancel()
            logger.info("stopped watching %s", self.path)

    async def _step(self) -> State:
        """One thing after the other; what it returns is to be done next."""
        if self._resync:
            self._resync = False
            self.state = State.LISTING
        match self.state:
            case State.WATCHING:
                return await self._watch()
            case State.PROBING:
                return await self._probe()
            case State.BACKING_OFF | State.REFUSED:
                return await self._wait()
            case _:
                return await self._list()

    async def _list(self) -> State:
        self.state = State.LISTING
        began = self._now()
        async with self._client.lists:
            version = await self._list_newest_api()
        self.state = State.APPLYING
        await self._reader.apply()
        self._decoder.resource_version = version
        self._recovery.listed()
        self._totals.listed(self._now() - began)
        added, updated, removed = self._decoder.list_counts
        logger.info("reloaded %d objects from %s: added %d, updated %d, removed %d", added + updated, self.path, added, updated, removed)
        self.last_error = ""
        self._settle(listed=True, refused=None)
        if self._relist_timer is not None:
            self._relist_timer.cancel()
        if self._relist_interval:
            delay = self._relist_interval * (1.0 - 0.1 * self._random())
            self._relist_timer = asyncio.get_running_loop().call_later(delay, self.resync)
        return State.WATCHING

    async def _list_newest_api(self) -> str:
        """An older API version is used only if the server says that it has no newer one; each list asks again."""
        if self._recovery.newest:
            version = {}
        else:
            at_least = self.resource_version if self.listed else "0"  # 0: whatever the server has in its cache
            version = {"resourceVersion": at_least, "resourceVersionMatch": "NotOlderThan"}
        for path in self._paths:
            self.path = path
            try:
                return await self._reader.list(path, self._selectors, version, 0 if self._recovery.whole else self._list_limit)
            except ApiError as error:
                if error.code != 404 or path == self._paths[-1] or await self._reader.serves_version_of(path):
                    raise
        raise AssertionError("no path")

    async def _watch(self) -> State:
        """From the newest version seen; the server ends a watch after a time that differs from watch to watch."""
        seconds = max(1, int(0.9 * self._timings.api_server_timeout * (1.0 - 0.1 * self._random())))
        params = {"watch": "1", "allowWatchBookmarks": "1", "timeoutSeconds": str(seconds), "resourceVersion": self.resource_version}
        self._healthy, self._opened = False, 0.0
        try:
            async with asyncio.timeout(None) as self._cut, self._client.stream(
                self.path,
                self._selectors | params,
                read_timeout=self._timings.silent_after,
                total_timeout=seconds + self._timings.watch_grace,
            ) as body:
                self._opened = self._now()
                self._settle(listed=self.listed, refused=None)
                rewound = await self._reader.watch(body)
        except TimeoutError:
            return State.LISTING
        finally:
            self._cut = None
        if rewound:
            self._totals.restarts["gone"] += 1
            return self._list_anew()
        self._totals.restarts["end"] += 1
        return State.WATCHING if self._was_healthy() else self._recovery.back_off(State.WATCHING)

    async def _probe(self) -> State:
        """A server that was restored from a backup accepts a version of before, and then is silent until it gets there again."""
        if is_lower(await self._reader.newest_version(self.path, self._selectors), self.resource_version):
            return self._list_anew()
        return State.WATCHING

    def _list_anew(self) -> State:
        logger.warning("the versions of %s went back, to before %s; listing all again", self.path, self.resource_version)
        self._recovery.newest = True
        return State.LISTING

    async def _wait(self) -> State:
        self._wake.clear()
        self.next_retry = time.time() + self._recovery.delay
        with suppress(TimeoutError):
            async with asyncio.timeout(self._recovery.delay):
                await self._wake.wait()
        self.next_retry = None
        return self._recovery.then

    def _recover(self, error: Failure) -> State:
        """What to do next after a step that failed."""
        doing = self.state
        cut_off = isinstance(error, NetworkError) and error.kind != "silent"
        self._report(error, quiet=doing is State.WATCHING and self._was_healthy() and cut_off)
        self._totals.restarts[restart_reason(error)] += 1
        if isinstance(error, ApiError) and error.expired:
            self._totals.stale_resource_versions += 1
        match doing:
            case State.WATCHING:
                following = self._recovery.after_watch(error)
            case State.PROBING:
                following = self._recovery.after_probe(error)
            case _:
                following = self._recovery.after_list(error, page=self._reader.pages, versioned=self.listed and not self._recovery.newest)
        if following is State.REFUSED and isinstance(error, ApiError):
            self._settle(listed=self.listed, refused=error)
        return following

    def _heard(self) -> None:
        """The reader completed items or good lines."""
        if self.state is State.WATCHING and not self._healthy:
            self._prove_healthy()
        self._on_change()

    def _was_healthy(self) -> bool:
        """Of the watch that just ended: it brought a line, or lived long enough."""
        if not self._healthy and self._opened and self._now() - self._opened >= self._timings.healthy_after:
            self._prove_healthy()
        return self._healthy

    def _prove_healthy(self) -> None:
        if self._reported:
            logger.info("watching %s again", self.path)
        self._healthy = True
        self._recovery.healthy()
        self.last_error = self._reported = ""

    def _settle(self, listed: bool, refused: ApiError | None) -> None:
        if (self.listed, self.refused) != (listed, refused):
            self.listed, self.refused = listed, refused
            self._on_settled()

    def _report(self, error: Failure, quiet: bool = False) -> None:
        """The log hears of trouble once, not at each attempt; a watch that is cut now and then is no trouble."""
        self.last_error = str(error)
        trouble = str(error) if isinstance(error, ApiError) else getattr(error, "kind", "decode")
        if quiet or trouble == self._reported:
            logger.debug("%s: %s", self.path, error)
            return
        self._reported = trouble
        level = logging.INFO if isinstance(error, ApiError) and error.expired else logging.WARNING
        logger.log(level, "cannot %s %s: %s", "watch" if self.state is State.WATCHING else "list", self.path, error)

    @staticmethod
    def _now() -> float:
        return asyncio.get_running_loop().time()
