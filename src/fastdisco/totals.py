"""Plain integers that the engine bumps, and what is true at one moment: all that metrics are made of."""

from __future__ import annotations

from bisect import bisect_left

RESTART_REASONS = ("end", "timeout", "silent", "reset", "gone", "error", "decode", "exception")
LIST_BUCKETS = (0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0, 60.0, 120.0)
"""Upper bounds of the durations of lists, in seconds."""

_SUMS = (
    "added", "bytes_received", "decode_errors", "direct_load_errors", "direct_load_misses", "direct_loads", "list_seconds", "removed",
    "rendered", "stale_resource_versions", "updated",
)  # fmt: skip


class RoleTotals:
    """Events of one role since the start, bumped in place by whoever sees them; they never fall."""

    __slots__ = (*_SUMS, "list_buckets", "restarts")

    def __init__(self) -> None:
        # The store counts these four itself: a source tells them as `RoleLive`, and what it told last is kept here when it goes.
        self.added = self.updated = self.removed = self.rendered = 0
        self.bytes_received = 0
        self.decode_errors = 0
        self.direct_loads = self.direct_load_errors = self.direct_load_misses = 0
        self.stale_resource_versions = 0
        self.restarts = dict.fromkeys(RESTART_REASONS, 0)
        self.list_buckets = [0] * (len(LIST_BUCKETS) + 1)
        self.list_seconds = 0.0

    def listed(self, seconds: float) -> None:
        """A list was applied, `seconds` after it was asked for."""
        self.list_buckets[bisect_left(LIST_BUCKETS, seconds)] += 1
        self.list_seconds += seconds

    def keep(self, live: RoleLive) -> None:
        """Take over what a source has counted."""
        self.added += live.added
        self.updated += live.updated
        self.removed += live.removed
        self.rendered += live.rendered

    def add(self, other: RoleTotals) -> None:
        """Take over the totals of somebody who goes."""
        for name in _SUMS:
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
