"""What operators see: plain integers that the engine bumps, and one collector per registry and namespace that reads them on scrape."""

from __future__ import annotations

import threading
from bisect import bisect_left
from collections.abc import Iterable, Iterator
from itertools import accumulate
from typing import ClassVar, Protocol
from weakref import WeakKeyDictionary

from prometheus_client import CollectorRegistry
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, HistogramMetricFamily, Metric
from prometheus_client.registry import Collector

RESTART_REASONS = ("end", "timeout", "silent", "reset", "gone", "error", "decode", "exception")
_LIST_BUCKETS = (0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0, 60.0, 120.0)


# By attribute of RoleTotals: the name of the metric, and its help.
_COUNTERS = {
    "added": ("objects_added", "Objects that were new."),
    "updated": ("objects_updated", "Known objects that came again, re-listed ones included."),
    "removed": ("objects_removed", "Objects that went."),
    "rendered": ("objects_rendered", "Times that labels were generated for an object."),
    "stale_resource_versions": ("stale_resource_versions", "Versions that were too old for the server."),
    "direct_loads": ("direct_object_loads", "Missing objects that were asked for one by one."),
    "direct_load_errors": ("direct_object_load_errors", "Direct loads that failed."),
    "direct_load_misses": ("direct_object_load_misses", "Direct loads of what does not exist."),
    "decode_errors": ("decode_errors", "Objects and events that could not be read."),
    "bytes_received": ("bytes_received", "Bytes of lists and watches."),
}
# By name of the metric: the attribute of RoleLive, and the help.
_GAUGES = {
    "url_watchers": ("url_watchers", "Watched API paths."),
    "objects": ("objects", "Objects in the caches."),
    "scrape_works": ("scrape_works", "Live scrape works."),
    "last_contact_timestamp_seconds": ("oldest_contact", "Last word from the server to the watcher that has been out of touch longest."),
}


class RoleTotals:
    """Events of one role since the start, bumped in place by whoever sees them; they never fall."""

    __slots__ = (
        "added", "bytes_received", "decode_errors", "direct_load_errors", "direct_load_misses", "direct_loads",
        "list_buckets", "list_seconds", "removed", "rendered", "restarts", "stale_resource_versions", "updated",
    )  # fmt: skip

    def __init__(self) -> None:
        # The store counts these four itself: a source tells them as `RoleLive`, and what it told last is kept here when it goes.
        self.added = self.updated = self.removed = self.rendered = 0
        self.bytes_received = 0
        self.decode_errors = 0
        self.direct_loads = self.direct_load_errors = self.direct_load_misses = 0
        self.stale_resource_versions = 0
        self.restarts = dict.fromkeys(RESTART_REASONS, 0)
        self.list_buckets = [0] * (len(_LIST_BUCKETS) + 1)
        self.list_seconds = 0.0

    def listed(self, seconds: float) -> None:
        """A list was applied, `seconds` after it was asked for."""
        self.list_buckets[bisect_left(_LIST_BUCKETS, seconds)] += 1
        self.list_seconds += seconds

    def keep(self, live: RoleLive) -> None:
        """Take over what a source has counted."""
        self.added += live.added
        self.updated += live.updated
        self.removed += live.removed
        self.rendered += live.rendered

    def add(self, other: RoleTotals) -> None:
        """Take over the totals of somebody who goes."""
        for name in (*_COUNTERS, "list_seconds"):
            setattr(self, name, getattr(self, name) + getattr(other, name))
        for reason, count in other.restarts.items():
            self.restarts[reason] += count
        self.list_buckets = [mine + theirs for mine, theirs in zip(self.list_buckets, other.list_buckets, strict=True)]


class RoleLive:
    """What is true of one role at the moment of a scrape."""

    __slots__ = (
        "added", "objects", "oldest_contact", "pending", "removed", "rendered", "scrape_works", "updated", "url_watchers", "working",
    )  # fmt: skip

    def __init__(self) -> None:
        self.url_watchers = self.pending = self.working = self.objects = self.scrape_works = 0
        self.added = self.updated = self.removed = self.rendered = 0
        self.oldest_contact: float | None = None

    def contact(self, timestamp: float) -> None:
        """A watcher of the role last heard from its server at this Unix time."""
        if self.oldest_contact is None or timestamp < self.oldest_contact:
            self.oldest_contact = timestamp


class Live:
    """What the sources add up to at the moment of a scrape."""

    __slots__ = ("group_watchers", "roles")

    def __init__(self) -> None:
        self.group_watchers = 0
        self.roles: dict[str, RoleLive] = {}

    def role(self, role: str) -> RoleLive:
        return self.roles.setdefault(role, RoleLive())


class Source(Protocol):
    """Something alive, such as a group or a job, that knows its own numbers."""

    def measure(self, live: Live) -> None:
        """Add your numbers to `live`; called on the thread that scrapes, so take copies of what you iterate over."""


class Metrics:
    """The numbers of one discovery; several with the same registry and namespace add up in one exposition."""

    def __init__(self, namespace: str = "fastdisco", registry: CollectorRegistry | None = None) -> None:
        self.namespace = namespace
        self.registry = registry if registry is not None else CollectorRegistry()
        self.requests: dict[str, int] = {}
        self._roles: dict[str, RoleTotals] = {}
        self._sources: list[Source] = []
        self._exposition = _Exposition.of(self.registry, namespace)
        self._exposition.join(self)

    def role(self, role: str) -> RoleTotals:
        """The totals of a role; keep them, and bump what happens."""
        totals = self._roles.get(role)
        if totals is None:
            totals = self._roles.setdefault(role, RoleTotals())
        return totals

    def count_request(self, code: str) -> None:
        """A request was answered with this status code, or not at all: `error`."""
        self.requests[code] = self.requests.get(code, 0) + 1

    def add_source(self, source: Source) -> None:
        """From now on `source` is measured at each scrape."""
        with self._exposition.lock:
            self._sources.append(source)

    def remove_source(self, source: Source) -> None:
        """Its gauges go, its counters stay; it is measured a last time."""
        with self._exposition.lock:
            if source in self._sources:
                self._sources.remove(source)
                self._keep(source)

    def close(self) -> None:
        """The discovery has stopped: all gauges fall, all counters stay as they are."""
        with self._exposition.lock:
            while self._sources:
                self._keep(self._sources.pop())
            self._exposition.leave(self)

    def measure(self) -> tuple[Live, dict[str, RoleTotals], dict[str, int]]:
        live = Live()
        for source in self._sources:
            source.measure(live)
        return live, dict(self._roles), dict(self.requests)

    def _keep(self, source: Source) -> None:
        last = Live()
        source.measure(last)
        for role, numbers in last.roles.items():
            self.role(role).keep(numbers)


class _Exposition(Collector):
    """The one collector of a registry and namespace; it outlives the discoveries that it sums up, so that counters never fall."""

    _known: ClassVar[WeakKeyDictionary[CollectorRegistry, dict[str, _Exposition]]] = WeakKeyDictionary()

    def __init__(self, namespace: str) -> None:
        self.lock = threading.RLock()
        self._prefix = f"{namespace}_discovery_kubernetes_"
        self._parts: list[Metrics] = []
        self._gone: dict[str, RoleTotals] = {}
        self._gone_requests: dict[str, int] = {}

    @classmethod
    def of(cls, registry: CollectorRegistry, namespace: str) -> _Exposition:
        """The one of this registry and namespace, registered when it is first asked for."""
        of_registry = cls._known.setdefault(registry, {})
        if namespace not in of_registry:
            exposition = cls(namespace)
            registry.register(exposition)
            of_registry[namespace] = exposition
        return of_registry[namespace]

    def join(self, part: Metrics) -> None:
        with self.lock:
            self._parts.append(part)

    def leave(self, part: Metrics) -> None:
        if part in self._parts:
            self._parts.remove(part)
            _, roles, requests = part.measure()
            self._add(self._gone, self._gone_requests, roles, requests)

    def describe(self) -> Iterable[Metric]:
        return self._families(Live(), {}, {})

    def collect(self) -> Iterable[Metric]:
        with self.lock:
            live, totals, requests = Live(), dict[str, RoleTotals](), dict[str, int]()
            self._add(totals, requests, self._gone, self._gone_requests)
            for part in self._parts:
                part_live, part_totals, part_requests = part.measure()
                _add_live(live, part_live)
                self._add(totals, requests, part_totals, part_requests)
        for role, numbers in live.roles.items():
            totals.setdefault(role, RoleTotals()).keep(numbers)
        for role in totals:
            live.role(role)  # a gauge falls to 0 rather than vanish
        return self._families(live, totals, requests)

    @staticmethod
    def _add(totals: dict[str, RoleTotals], requests: dict[str, int], more: dict[str, RoleTotals], more_requests: dict[str, int]) -> None:
        for role, one in more.items():
            totals.setdefault(role, RoleTotals()).add(one)
        for code, count in more_requests.items():
            requests[code] = requests.get(code, 0) + count

    def _families(self, live: Live, totals: dict[str, RoleTotals], requests: dict[str, int]) -> Iterator[Metric]:
        yield GaugeMetricFamily(self._prefix + "group_watchers", "Groups of jobs that share their watchers.", value=live.group_watchers)
        for name, (attribute, text) in _GAUGES.items():
            gauge = GaugeMetricFamily(self._prefix + name, text, labels=["role"])
            for role, numbers in sorted(live.roles.items()):
                value = getattr(numbers, attribute)
                if value is not None:
                    gauge.add_metric([role], value)
            yield gauge
        subscribers = GaugeMetricFamily(self._prefix + "subscribers", "Jobs by what they wait for.", labels=["role", "status"])
        for role, numbers in sorted(live.roles.items()):
            subscribers.add_metric([role, "pending"], numbers.pending)
            subscribers.add_metric([role, "working"], numbers.working)
        yield subscribers
        for attribute, (name, text) in _COUNTERS.items():
            counter = CounterMetricFamily(self._prefix + name, text, labels=["role"])
            for role, one in sorted(totals.items()):
                counter.add_metric([role], getattr(one, attribute))
            yield counter
        durations = HistogramMetricFamily(self._prefix + "list_duration_seconds", "From asking for a list until applied.", labels=["role"])
        restarts = CounterMetricFamily(self._prefix + "watch_restarts", "Watches begun anew, by why.", labels=["role", "reason"])
        for role, one in sorted(totals.items()):
            bounds = (*map(str, _LIST_BUCKETS), "+Inf")
            durations.add_metric([role], list(zip(bounds, accumulate(one.list_buckets), strict=True)), one.list_seconds)
            for reason, count in list(one.restarts.items()):
                restarts.add_metric([role, reason], count)
        yield durations
        yield restarts
        answers = CounterMetricFamily(self._prefix + "requests", "Requests to API servers, by status code or `error`.", labels=["code"])
        for code, count in sorted(requests.items()):
            answers.add_metric([code], count)
        yield answers


def _add_live(live: Live, more: Live) -> None:
    live.group_watchers += more.group_watchers
    for role, numbers in more.roles.items():
        mine = live.role(role)
        for name in ("url_watchers", "pending", "working", "objects", "scrape_works", "added", "updated", "removed", "rendered"):
            setattr(mine, name, getattr(mine, name) + getattr(numbers, name))
        if numbers.oldest_contact is not None:
            mine.contact(numbers.oldest_contact)
