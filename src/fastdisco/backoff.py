"""Delays between attempts, and an allowance of events per period; clock and randomness are passed in."""

from __future__ import annotations

import random as _random
from collections.abc import Callable
from time import monotonic


class Backoff:
    """Delays that grow from `first` to `longest` seconds, jittered so that watchers that failed together do not return together."""

    __slots__ = ("_delay", "_factor", "_first", "_jitter", "_longest", "_random")

    def __init__(
        self,
        first: float = 1.0,
        longest: float = 30.0,
        factor: float = 2.0,
        jitter: float = 0.5,
        random: Callable[[], float] = _random.random,
    ) -> None:
        self._first = first
        self._longest = longest
        self._factor = factor
        self._jitter = jitter
        self._random = random
        self._delay = first

    def __iter__(self) -> Backoff:
        return self

    def __next__(self) -> float:
        """The next delay: up to `jitter` of itself longer while delays grow, never above `longest`."""
        delay = self._delay
        if delay * (1.0 + self._jitter) > self._longest:
            return self.longest_delay()
        self._delay = delay * self._factor
        return delay * (1.0 + self._jitter * self._random())

    def reset(self) -> None:
        """Start again at the first delay: something worked."""
        self._delay = self._first

    def longest_delay(self) -> float:
        """A delay of the longest sort, up to `jitter` of itself shorter; what was refused for good waits this long."""
        return self._longest * (1.0 - self._jitter * self._random())


class Allowance:
    """So many events per period, for log lines about things that may come at any rate."""

    __slots__ = ("_clock", "_events", "_left", "_period", "_since", "skipped")

    def __init__(self, events: int = 5, period: float = 60.0, clock: Callable[[], float] = monotonic) -> None:
        self._events = events
        self._period = period
        self._clock = clock
        self._left = events
        self._since = clock()
        self.skipped = 0
        """How many were refused since the last one that was allowed."""

    def take(self) -> bool:
        """Whether one more may happen now; the caller reads and clears `skipped` when it does."""
        now = self._clock()
        if now - self._since >= self._period:
            self._since = now
            self._left = self._events
        if self._left == 0:
            self.skipped += 1
            return False
        self._left -= 1
        return True
