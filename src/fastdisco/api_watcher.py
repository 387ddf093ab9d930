"""One scrape job: its configurations, its constructor and its scrape works."""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Callable, Iterable, Sequence
from typing import TYPE_CHECKING, Any
from weakref import ref

from ._subscriber import Subscriber
from ._works import Works
from .changes import Change, Reader
from .errors import NotSynced

if TYPE_CHECKING:
    from ._labels import Labels
    from ._relabel import Relabeling
    from .explanation import Explanation
    from .group_watcher import GroupWatcher
    from .relabel_config import RelabelConfig

    Compile = Callable[[Sequence[RelabelConfig] | None], Relabeling | None]

logger = logging.getLogger("fastdisco")

_GIVEN = object()  # tells a constructor that is not given from None


class APIWatcher:
    """A job's live scrape works. Made by `Discovery.watch`; all of it is for the loop's thread."""

    def __init__(
        self,
        name: str,
        constructor: Callable[[Labels], Any] | None,
        places: Iterable[tuple[GroupWatcher, str, int, tuple[str, ...]]],
        relabel_configs: Sequence[RelabelConfig] | None,
        compile_rules: Compile,
        on_stop: Callable[[APIWatcher], None],
    ) -> None:
        self.name = name
        self.relabel_configs = None if relabel_configs is None else tuple(relabel_configs)
        """None: targets keep their discovered labels, all of them."""
        self.version = 0
        """Rises with each visible change."""
        self.last_change = 0.0
        """Unix time of the last visible change; 0 before the first sync."""
        self._on_stop = on_stop
        self._synced = asyncio.Event()
        self._caught_up = asyncio.Event()  # set each time that a subscriber has caught up, and in the end
        self._stopped = False
        self._readers: set[ref[Reader]] = set()  # a loop that is left by `break` closes none: it must not be told for ever
        self._compile_rules = compile_rules
        self._relabeling = compile_rules(self.relabel_configs)
        self._makes = Works(constructor, self._constructor_failed, sharing=self._relabeling is not None)
        self._works: tuple[Any, ...] | None = None
        self._failures = 0
        self._last_error = ""
        self._subscribers: list[tuple[GroupWatcher, Subscriber]] = []
        self._ended: list[Subscriber] = []  # since the end, until `stop` has let go of what they hold
        for group, role, profile, needs in places:
            subscriber = Subscriber(self, role, profile, needs, self._makes, self._relabeling)
            subscriber.quiet = True  # until all is there, and a snapshot tells it
            self._subscribers.append((group, subscriber))
            group.subscribe(subscriber)
        logger.info("started job %s", name)

    async def synced(self, timeout: float | None = None) -> tuple[str, ...]:
        """Waits until the targets are all there; gives what the server refused, as `path: reason`.

        What is refused holds nothing back, unless it is the job's own role everywhere. TimeoutError after `timeout` seconds, which
        tells what is waited for and why; NotSynced if the job stops before.
        """
        try:
            async with asyncio.timeout(timeout):
                await self._synced.wait()
        except TimeoutError:
            raise TimeoutError(f"job {self.name} has not synced within {timeout:g} s: {'; '.join(self.troubles)}") from None
        if self._stopped:
            raise NotSynced(f"job {self.name} was stopped")
        return self.refused

    @property
    def troubles(self) -> tuple[str, ...]:
        """What has not been listed, as `path (state): reason`."""
        return tuple(dict.fromkeys(text for group, one in self._subscribers for text in group.troubles(one.needs)))

    @property
    def refused(self) -> tuple[str, ...]:
        """What the server refuses, as `path: reason`."""
        return tuple(dict.fromkeys(text for group, one in self._subscribers for text in group.refused(one.needs)))

    @property
    def is_synced(self) -> bool:
        """Whether `synced` has nothing to wait for."""
        return self._synced.is_set() and not self._stopped

    @property
    def is_settled(self) -> bool:
        """Whether it has synced, or will not: every path has an answer, and of its own roles all were refused for good."""
        if self.is_synced:
            return True
        return all(group.settled(one.needs) and not group.listed(one.role) for group, one in self._subscribers)

    @property
    def is_evaluated(self) -> bool:
        """Whether `evaluated` has nothing to wait for."""
        return self.is_synced and not any(one.stale for _, one in self._subscribers)

    async def evaluated(self) -> None:
        """Waits until it has synced and all its targets are those of the rules that it has now. NotSynced if it stops before."""
        while not self._stopped and not self.is_evaluated:
            self._caught_up.clear()
            await self._caught_up.wait()
        if self._stopped:
            raise NotSynced(f"job {self.name} was stopped")

    @property
    def subscribers(self) -> tuple[tuple[GroupWatcher, Subscriber], ...]:
        """What each of its configurations has made of the objects of a group."""
        return tuple(self._subscribers)

    @property
    def last_contact(self) -> float | None:
        """Unix time of the last word to the watcher that has been out of touch longest; None if all were refused from the
        start."""
        contacts = [group.last_contact(one.needs) for group, one in self._subscribers]
        return min((contact for contact in contacts if contact is not None), default=None)

    @property
    def true_at(self) -> float:
        """Unix time at which its targets were last known to be so."""
        return self.last_contact or self.last_change

    @property
    def targets(self) -> int:
        """How many there are after the rules."""
        return sum(one.works for _, one in self._subscribers)

    @property
    def refused_paths(self) -> tuple[str, ...]:
        """What the server refuses to show."""
        return tuple(dict.fromkeys(path for group, one in self._subscribers for path in group.refused_for_good(one.needs)))

    def scrape_works(self) -> tuple[Any, ...]:
        """All works now; NotSynced before the first sync and after `stop`."""
        if not self.is_synced:
            raise NotSynced(f"job {self.name} {'was stopped' if self._stopped else 'has not synced yet'}")
        if self._works is None:
            self._works = tuple(self._makes.shown())
        return self._works

    def changes(self) -> Reader:
        """A new reader: a snapshot once the job has synced, then each change; it ends when the job stops."""
        reader = Reader(self._snapshot, self._forget_reader)
        if self._stopped:
            reader.end()
        else:
            self._readers.add(ref(reader, self._readers.discard))
        return reader

    def reconfigure(
        self,
        *,
        constructor: Callable[[Labels], Any] | object | None = _GIVEN,
        relabel_configs: Sequence[RelabelConfig] | object | None = _GIVEN,
    ) -> None:
        """What is not given stays. Targets are evaluated again from the cache, without a request; those whose labels stay keep
        their works, so a new constructor is for new label sets only. ConfigError, and no change, if a rule makes no sense.
        """
        if relabel_configs is not _GIVEN:
            rules: tuple[RelabelConfig, ...] | None = None
            if relabel_configs is not None:
                rules = tuple(relabel_configs)  # type: ignore[arg-type]
            self._relabeling = self._compile_rules(rules)
            self.relabel_configs = rules
            self._makes.sharing = rules is not None
        if constructor is not _GIVEN:
            self._makes.constructor = constructor  # type: ignore[assignment]
        if relabel_configs is not _GIVEN:
            for group, subscriber in self._subscribers:
                subscriber.relabeling = self._relabeling
                group.evaluate_again(subscriber)

    async def explain(self, namespace: str, name: str) -> tuple[Explanation, ...]:
        """What became of an object, for each of the job's configurations: its targets and what each rule did to them, or why there
        are none. The namespace of a node is empty.
        """
        from .absence import why_no_target
        from .explanation import Explanation, explain_target

        found = []
        for group, subscriber in self._subscribers:
            labels = group.discovered(subscriber, namespace, name)
            known = True
            if labels is None:
                reason, known = await group.why_unknown(subscriber.role, namespace, name)
            else:
                thing = group.store.get(subscriber.role, namespace, name) or {}
                reason = "" if labels else why_no_target(subscriber.role, thing, subscriber.profile)
            targets = tuple(explain_target(one, subscriber.relabeling) for one in labels or ())
            found.append(Explanation(subscriber.role, namespace, name, known, reason, targets))
        return tuple(found)

    async def count_dropped(self, discovered: dict[tuple[GroupWatcher, str, int], int]) -> int:
        """How many targets are dropped now, as far as that is one moment. `discovered` is filled on the way, for other jobs to use."""
        dropped = 0
        for group, subscriber in self._subscribers if self._relabeling is not None else ():
            source = (group, subscriber.role, subscriber.profile)
            if source not in discovered:
                discovered[source] = await group.count_discovered(subscriber.role, subscriber.profile)
            dropped += max(0, discovered[source] - subscriber.targets)
        return dropped

    async def resync(self) -> None:
        """Has everything that the job needs listed again."""
        for group, subscriber in self._subscribers:
            group.resync(subscriber.needs)

    async def stop(self) -> None:
        """Ends the job and its readers; shared watches go on for others, and for a while for nobody."""
        self.end()
        ended, self._ended = self._ended, []
        for subscriber in ended:
            for _ in subscriber.release():
                await asyncio.sleep(0)
        self._makes.forget()

    def end(self) -> None:
        """The part of `stop` that needs no time: from here on another job may have the name. What it holds is let go by `stop`."""
        if self._stopped:
            return
        self._stopped = True
        for group, subscriber in self._subscribers:
            group.unsubscribe(subscriber)
        self._synced.set()  # whoever waits learns that it will not be
        self._caught_up.set()
        for reader in self._reading():
            reader.end()
        self._readers.clear()
        self._works = None
        self._on_stop(self)
        logger.info("stopped job %s", self.name)
        self._ended = [subscriber for _, subscriber in self._subscribers]
        self._subscribers = []  # whoever keeps the job must not keep the objects of its groups

    def status(self) -> dict[str, Any]:
        """For people and for JSON."""
        by_rule, without_label, without_address, refused = ((), 0, 0, 0) if self._relabeling is None else self._relabeling.drops
        return {
            "synced": self.is_synced,
            "version": self.version,
            "scrape_works": self.targets,
            "constructor_failures": self._failures,
            "last_error": self._last_error,
            "duplicates": self._makes.duplicates,
            # times since the rules are what they are: a target that changes and is dropped again counts again
            "dropped": sum(by_rule) + without_label + without_address + refused,
            "dropped_by_rule": list(by_rule),
            "dropped_without_label": without_label,
            "dropped_without_address": without_address,
            "dropped_as_refused": refused,
            "refused": list(self.refused),
        }

    # ---- what its subscribers tell ----

    def added(self, work: Any) -> None:
        self._tell("added", work, None)

    def removed(self, work: Any) -> None:
        self._tell("removed", work, None)

    def updated(self, old: Any, new: Any) -> None:
        self._tell("updated", new, old)

    def failed(self, error: Exception) -> None:
        if not self._last_error:
            logger.error("job %s failed over some objects; its targets may be stale; told once", self.name, exc_info=error)
        self._last_error = f"{type(error).__name__}: {error}"

    def _constructor_failed(self, error: BaseException) -> None:
        self._failures += 1
        if self._failures == 1:
            logger.error("the constructor of job %s failed; later failures are only counted", self.name, exc_info=error)

    def caught_up(self) -> None:
        """A subscriber has rendered all that its store holds; the job is synced once all have, and some own role has listed."""
        working = all(one.working and not one.stale for _, one in self._subscribers)
        self._caught_up.set()
        if not self._synced.is_set() and working and any(group.listed(one.role) for group, one in self._subscribers):
            self.version += 1
            self.last_change = time.time()
            self._synced.set()
            for _, one in self._subscribers:
                one.quiet = False
            for reader in self._reading():
                reader.fall_behind()
            logger.info("synced job %s: %d targets", self.name, self.targets)

    def _tell(self, kind: Any, work: Any, old: Any) -> None:
        self._works = None
        if self._synced.is_set() and not self._stopped:
            self.version += 1
            self.last_change = time.time()
            if self._readers:  # most jobs are asked for their works, and read by nobody
                change = Change(kind, self.version, work, old)
                for reader in self._reading():
                    reader.put(change)

    def _snapshot(self) -> Change | None:
        return Change("snapshot", self.version, works=self.scrape_works()) if self.is_synced else None

    def _reading(self) -> list[Reader]:
        return [reader for one in tuple(self._readers) if (reader := one()) is not None]

    def _forget_reader(self, reader: Reader) -> None:
        self._readers.discard(ref(reader))
