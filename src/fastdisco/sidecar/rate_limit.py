"""How many requests the web server takes in a time."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from typing import Any

from fastdisco.errors import ConfigError
from fastdisco.sections import parse_duration


class RateLimit:
    """So many requests at once, and then one in each interval: as `golang.org/x/time/rate` has it."""

    def __init__(self, burst: int, interval: float, now: Callable[[], float] = time.monotonic) -> None:
        self._burst = burst
        self._interval = interval
        self._now = now
        self._left = float(burst)
        self._last = now()

    @classmethod
    def of(cls, section: Mapping[str, Any]) -> RateLimit | None:
        """`rate_limit` as written; None where it sets no limit. ConfigError, with the key."""
        for key in section:
            if key not in ("burst", "interval"):
                raise ConfigError(f"rate_limit.{key}: unknown key")
        written = str(section.get("burst", 0))
        if not written.isdecimal():
            raise ConfigError(f"rate_limit.burst: must be a number of requests, not {written!r}")
        burst = int(written)
        try:
            interval = parse_duration(section.get("interval", 0))
        except ConfigError as error:
            raise ConfigError(f"rate_limit.interval: {error}") from None
        return cls(burst, interval) if burst and interval else None

    def take(self) -> bool:
        """Whether there is one left."""
        now = self._now()
        self._left = min(self._burst, self._left + (now - self._last) / self._interval)
        self._last = now
        if self._left < 1:
            return False
        self._left -= 1
        return True
