"""The numbers of one discovery: totals of each role, and sources that are measured on scrape."""

from __future__ import annotations

import threading
from typing import TYPE_CHECKING, Protocol

from .totals import Live, RoleTotals

if TYPE_CHECKING:
    from prometheus_client import CollectorRegistry

    from .exposition import Exposition


class Source(Protocol):
    """Something alive, such as a group or a job, that knows its own numbers."""

    def measure(self, live: Live) -> None:
        """Add your numbers to `live`; called on the thread that scrapes, so take copies of what you iterate over."""


class Metrics:
    """The numbers of one discovery; several with the same registry and namespace add up in one exposition."""

    def __init__(self, namespace: str = "fastdisco", registry: CollectorRegistry | None = None) -> None:
        self.namespace = namespace
        self.requests: dict[str, int] = {}
        self._roles: dict[str, RoleTotals] = {}
        self._sources: list[Source] = []
        self._lock = threading.RLock()  # of the sources, which a scrape reads on its own thread
        self._registry = registry
        self._exposition = None if registry is None else self._exposed(registry)

    @property
    def registry(self) -> CollectorRegistry:
        """The one that was given; else one of its own, made when it is first asked for: most programs that give none ask for none."""
        with self._lock:
            if self._registry is None:
                from prometheus_client import CollectorRegistry

                self._registry = CollectorRegistry()
                self._exposition = self._exposed(self._registry)
            return self._registry

    def _exposed(self, registry: CollectorRegistry) -> Exposition:
        from .exposition import Exposition

        exposition = Exposition.of(registry, self.namespace)
        exposition.join(self)
        return exposition

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
        with self._lock:
            self._sources.append(source)

    def remove_source(self, source: Source) -> None:
        """Its gauges go, its counters stay; it is measured a last time."""
        with self._lock:
            if source in self._sources:
                self._sources.remove(source)
                self._keep(source)

    def close(self) -> None:
        """The discovery has stopped: all gauges fall, all counters stay as they are."""
        with self._lock:
            while self._sources:
                self._keep(self._sources.pop())
        if self._exposition is not None:
            self._exposition.leave(self)

    def measure(self) -> tuple[Live, dict[str, RoleTotals], dict[str, int]]:
        """What its sources add up to, and the totals of roles and of requests by status code; for whoever scrapes."""
        with self._lock:
            live = Live()
            for source in self._sources:
                source.measure(live)
            return live, dict(self._roles), dict(self.requests)

    def _keep(self, source: Source) -> None:
        last = Live()
        source.measure(last)
        for role, numbers in last.roles.items():
            self.role(role).keep(numbers)
