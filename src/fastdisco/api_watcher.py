"""One scrape job: its configurations, its constructor and its scrape works."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING, Any
from weakref import WeakSet

from .changes import Change, Reader
from .errors import NotSynced
from .subscriber import Subscriber

if TYPE_CHECKING:
    from ._labels import Labels
    from .group_watcher import GroupWatcher

logger = logging.getLogger("fastdisco")

_GIVEN = object()  # tells a constructor that is not given from None


class APIWatcher:
    """A job's live scrape works. Made by `Discovery.watch`; all of it is for the loop's thread."""

    def __init__(
        self,
        name: str,
        constructor: Callable[[Labels], Any] | None,
        places: Iterable[tuple[GroupWatcher, str, int, tuple[str, ...]]],
        on_stop: Callable[[APIWatcher], None],
    ) -> None:
        self.name = name
        self.constructor = constructor
        self.version = 0
        """Rises with each visible change."""
        self._on_stop = on_stop
        self._synced = asyncio.Event()
        self._stopped = False
        self._readers: WeakSet[Reader] = WeakSet()  # a loop that is left by `break` closes none: it must not be told for ever
        self._works: tuple[Any, ...] | None = None
        self._failures = 0
        self._subscribers: list[tuple[GroupWatcher, Subscriber]] = []
        for group, role, profile, needs in places:
            subscriber = Subscriber(self, role, profile, needs)
            self._subscribers.append((group, subscriber))
            group.subscribe(subscriber)
        logger.info("started job %s", name)

    async def synced(self, timeout: float | None = None) -> tuple[str, ...]:
        """Waits until the targets are all there; gives what the server refused, as `path: reason`.

        What is refused holds nothing back, unless it is the job's own role everywhere. TimeoutError after `timeout` seconds,
        NotSynced if the job stops before.
        """
        async with asyncio.timeout(timeout):
            await self._synced.wait()
        if self._stopped:
            raise NotSynced(f"job {self.name} was stopped")
        return self.refused

    @property
    def refused(self) -> tuple[str, ...]:
        """What the server refuses, as `path: reason`."""
        return tuple(dict.fromkeys(text for group, one in self._subscribers for text in group.refused(one.needs)))

    @property
    def is_synced(self) -> bool:
        """Whether `synced` has nothing to wait for."""
        return self._synced.is_set() and not self._stopped

    def scrape_works(self) -> tuple[Any, ...]:
        """All works now; NotSynced before the first sync and after `stop`."""
        if not self.is_synced:
            raise NotSynced(f"job {self.name} {'was stopped' if self._stopped else 'has not synced yet'}")
        if self._works is None:
            self._works = tuple(work for _, one in self._subscribers for work in one.all_works())
        return self._works

    def changes(self) -> Reader:
        """A new reader: a snapshot once the job has synced, then each change; it ends when the job stops."""
        reader = Reader(self._snapshot, self._forget_reader)
        if self._stopped:
            reader.end()
        else:
            self._readers.add(reader)
        return reader

    def reconfigure(self, *, constructor: Callable[[Labels], Any] | object | None = _GIVEN) -> None:
        """From now on `constructor` makes new works; targets whose labels stay keep theirs. No request is sent."""
        if constructor is not _GIVEN:
            self.constructor = constructor  # type: ignore[assignment]

    async def resync(self) -> None:
        """Has everything that the job needs listed again."""
        for group, subscriber in self._subscribers:
            group.resync(subscriber.needs)

    async def stop(self) -> None:
        """Ends the job and its readers; shared watches go on for others, and for a while for nobody."""
        if self._stopped:
            return
        self._stopped = True
        for group, subscriber in self._subscribers:
            group.unsubscribe(subscriber)
        self._synced.set()  # whoever waits learns that it will not be
        for reader in self._readers:
            reader.end()
        self._readers.clear()
        self._works = None
        self._on_stop(self)
        logger.info("stopped job %s", self.name)
        subscribers, self._subscribers = self._subscribers, []  # whoever keeps the job must not keep the objects of its groups
        for _, subscriber in subscribers:
            for _ in subscriber.release():
                await asyncio.sleep(0)

    def status(self) -> dict[str, Any]:
        """For people and for JSON."""
        return {
            "synced": self.is_synced,
            "version": self.version,
            "scrape_works": sum(one.works for _, one in self._subscribers),
            "constructor_failures": self._failures,
            "refused": list(self.refused),
        }

    # ---- what its subscribers tell ----

    def added(self, work: Any) -> None:
        self._tell("added", work, None)

    def removed(self, work: Any) -> None:
        self._tell("removed", work, None)

    def updated(self, old: Any, new: Any) -> None:
        self._tell("updated", new, old)

    def constructor_failed(self, error: BaseException) -> None:
        self._failures += 1
        if self._failures == 1:
            logger.error("the constructor of job %s failed; later failures are only counted", self.name, exc_info=error)

    def caught_up(self) -> None:
        """A subscriber has rendered all that its store holds; the job is synced once all have, and some own role has listed."""
        working = all(one.working for _, one in self._subscribers)
        if not self._synced.is_set() and working and any(group.listed(one.role) for group, one in self._subscribers):
            self.version += 1
            self._works = None
            self._synced.set()
            for reader in self._readers:
                reader.fall_behind()
            logger.info("synced job %s: %d targets", self.name, sum(one.works for _, one in self._subscribers))

    def _tell(self, kind: Any, work: Any, old: Any) -> None:
        self._works = None
        if self._synced.is_set() and not self._stopped:
            self.version += 1
            change = Change(kind, self.version, work, old)
            for reader in self._readers:
                reader.put(change)

    def _snapshot(self) -> Change | None:
        return Change("snapshot", self.version, works=self.scrape_works()) if self.is_synced else None

    def _forget_reader(self, reader: Reader) -> None:
        self._readers.discard(reader)
