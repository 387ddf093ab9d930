"""What a watcher does after a failure: which step comes next, how long to wait before it, and what the next list asks for."""

from __future__ import annotations

import enum
import math
import re
from collections.abc import Callable

from .backoff import Backoff
from .errors import ApiError, DecodeError, NetworkError
from .url_reader import Timings

Failure = ApiError | NetworkError | DecodeError

_REASONS = {"connect": "reset", "credentials": "error"}  # kinds of NetworkError that have no reason of their own
_LONGEST_WISH = 3600.0  # seconds; servers ask for 32 at most, and no mistake in a header may stop a watcher for good
_NUMBER = re.compile(r"[1-9][0-9]*")


class State(enum.Enum):
    """What a watcher is doing; the value is for people."""

    LISTING = "listing"
    APPLYING = "applying a list"
    WATCHING = "watching"
    PROBING = "probing a silent watch"
    BACKING_OFF = "backing off"
    REFUSED = "refused"
    STOPPED = "stopped"


class Recovery:
    """The rules of one watcher. Each `after_...` returns the next state; if that waits, `delay` says how long and `then` for what."""

    __slots__ = ("_backoff", "_failing_since", "_gone", "_now", "_random", "_timings", "_too_large", "delay", "newest", "then", "whole")

    def __init__(self, timings: Timings, now: Callable[[], float], random: Callable[[], float]) -> None:
        self.delay = 0.0
        self.then = State.LISTING
        self.newest = False
        """The next list takes the newest state there is, however old its version looks."""
        self.whole = False
        """The next list asks for no pages, because one expired."""
        self._timings = timings
        self._now = now
        self._random = random
        self._backoff = Backoff(timings.first_backoff, timings.longest_backoff, random=random)
        self._gone = 0  # answers of this sort, and of the next, since the last healthy watch
        self._too_large = 0
        self._failing_since: float | None = None  # the first of several failures over one version

    def healthy(self) -> None:
        """A watch has proved itself: what failed before counts no more."""
        self._backoff.reset()
        self._gone = self._too_large = 0
        self._failing_since = None

    def listed(self) -> None:
        """A list was applied."""
        self.newest = self.whole = False

    def after_list(self, error: Failure, *, page: int, versioned: bool) -> State:
        """`page` counts from 0; `versioned` says that the list asked for a version of the server's own."""
        if isinstance(error, ApiError):
            if error.expired:
                if page:
                    self.whole = True
                else:
                    self.newest = True
                return self._expired()
            if error.too_large:
                return self._too_far_ahead(error, State.LISTING)
            if error.code in (403, 404):
                return self._refused(error, State.LISTING)
            if error.code in (400, 422, 500) and versioned:
                self.newest = True  # perhaps it is the version that it cannot bear
        return self.back_off(State.LISTING, error)

    def after_watch(self, error: Failure) -> State:
        """The version is kept and no list asked for, unless the server has had enough of that version."""
        if isinstance(error, NetworkError) and error.kind == "silent":
            return State.PROBING
        if isinstance(error, ApiError):
            if error.expired:
                return self._expired()
            if error.too_large:
                return self._too_far_ahead(error, State.WATCHING)
            if error.code == 403:
                return self._refused(error, State.WATCHING)
            if error.code == 404:  # an API version that the server no longer has
                return self.back_off(State.LISTING, error)
            if error.code in (400, 422, 500) and self._has_failed_long():
                return self.back_off(State.LISTING, error)
        return self.back_off(State.WATCHING, error)

    def after_probe(self, error: Failure) -> State:
        """Who may watch and not list cannot be told more than the watch tells."""
        forbidden = isinstance(error, ApiError) and error.code in (403, 404, 405)
        return self.back_off(State.WATCHING if forbidden else State.PROBING, error)

    def back_off(self, then: State, error: Exception | None = None, *, instead: float | None = None) -> State:
        """Wait for the next of the growing delays or `instead` of it; what the server wishes is the least, within reason."""
        self.delay = next(self._backoff) if instead is None else instead
        wish = error.retry_after if isinstance(error, ApiError) else None
        if wish is not None and math.isfinite(wish) and (wish := min(wish, _LONGEST_WISH)) >= self.delay:
            self.delay = wish * (1.0 + 0.1 * self._random())  # all clients were told the same
        self.then = then
        return State.BACKING_OFF

    def _expired(self) -> State:
        """The first time it lists at once; where a list led to an expired version again, only the newest state helps."""
        self._gone += 1
        if self._gone == 1:
            return State.LISTING
        self.newest = True
        return self.back_off(State.LISTING)

    def _too_far_ahead(self, error: ApiError, doing: State) -> State:
        """This server is behind the one that gave the version: wait for it once, then take what it has."""
        self._too_large += 1
        if self._too_large == 1:
            return self.back_off(doing, error, instead=self._timings.too_large_wait)
        self.newest = True
        return State.LISTING if self._too_large == 2 else self.back_off(State.LISTING, error)

    def _refused(self, error: ApiError, again: State) -> State:
        self.back_off(again, error, instead=self._backoff.longest_delay())
        return State.REFUSED

    def _has_failed_long(self) -> bool:
        now = self._now()
        if self._failing_since is None:
            self._failing_since = now
        if now - self._failing_since < self._timings.error_500_for:
            return False
        self._failing_since = None
        return True


def restart_reason(error: Failure) -> str:
    """Under which reason `watch_restarts_total` counts it."""
    if isinstance(error, NetworkError):
        return _REASONS.get(error.kind, error.kind)
    if isinstance(error, DecodeError):
        return "decode"
    return "gone" if error.expired else "error"


def is_lower(version: str, than: str) -> bool:
    """Versions are numbers of any length; what is no number cannot be compared."""
    if not _NUMBER.fullmatch(version) or not _NUMBER.fullmatch(than):
        return False
    return (len(version), version) < (len(than), than)
