"""What operators see: one collector per registry and namespace, which reads the numbers of its discoveries on scrape."""

from __future__ import annotations

import threading
from collections.abc import Iterable, Iterator
from itertools import accumulate
from typing import TYPE_CHECKING, ClassVar, Protocol
from weakref import WeakKeyDictionary

from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, HistogramMetricFamily, Metric
from prometheus_client.registry import Collector

from .totals import LIST_BUCKETS, Live, RoleTotals

if TYPE_CHECKING:
    from prometheus_client import CollectorRegistry

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


class Part(Protocol):
    """The numbers of one discovery."""

    def measure(self) -> tuple[Live, dict[str, RoleTotals], dict[str, int]]:
        """What is live, the totals of roles, and of requests by status code; called on the thread that scrapes."""


class Exposition(Collector):
    """The one collector of a registry and namespace; it outlives the discoveries that it sums up, so that counters never fall."""

    _known: ClassVar[WeakKeyDictionary[CollectorRegistry, dict[str, Exposition]]] = WeakKeyDictionary()

    def __init__(self, namespace: str) -> None:
        self._lock = threading.RLock()
        self._prefix = f"{namespace}_discovery_kubernetes_"
        self._parts: list[Part] = []
        self._gone: dict[str, RoleTotals] = {}
        self._gone_requests: dict[str, int] = {}

    @classmethod
    def of(cls, registry: CollectorRegistry, namespace: str) -> Exposition:
        """The one of this registry and namespace, registered when it is first asked for."""
        of_registry = cls._known.setdefault(registry, {})
        if namespace not in of_registry:
            exposition = cls(namespace)
            registry.register(exposition)
            of_registry[namespace] = exposition
        return of_registry[namespace]

    def join(self, part: Part) -> None:
        """From now on it is measured at each scrape."""
        with self._lock:
            self._parts.append(part)

    def leave(self, part: Part) -> None:
        """Nothing is live in it any more; what it has counted stays."""
        with self._lock:
            if part in self._parts:
                self._parts.remove(part)
                _, roles, requests = part.measure()
                self._add(self._gone, self._gone_requests, roles, requests)

    def describe(self) -> Iterable[Metric]:
        return self._families(Live(), {}, {})

    def collect(self) -> Iterable[Metric]:
        with self._lock:
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
            bounds = (*map(str, LIST_BUCKETS), "+Inf")
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
