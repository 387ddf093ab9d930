"""What follows after a failure, rule by rule, without a server."""

from __future__ import annotations

import pytest

from fastdisco.errors import ApiError, DecodeError, NetworkError
from fastdisco.recovery import Recovery, State, is_lower, restart_reason
from fastdisco.url_reader import Timings

TOO_LARGE = ApiError(504, "Timeout", cause="ResourceVersionTooLarge", retry_after=1.0)


class Clock:
    """A clock that stands still."""

    now = 100.0

    def __call__(self) -> float:
        return self.now


def make(clock: Clock | None = None) -> Recovery:
    return Recovery(Timings(), clock or Clock(), lambda: 0.0)


@pytest.mark.parametrize(
    ("error", "state", "then"),
    [
        (NetworkError("reset", ""), State.BACKING_OFF, State.WATCHING),
        (NetworkError("timeout", ""), State.BACKING_OFF, State.WATCHING),
        (NetworkError("connect", ""), State.BACKING_OFF, State.WATCHING),
        (NetworkError("silent", ""), State.PROBING, None),
        (DecodeError("too large"), State.BACKING_OFF, State.WATCHING),
        (ApiError(401), State.BACKING_OFF, State.WATCHING),
        (ApiError(403), State.REFUSED, State.WATCHING),
        (ApiError(404), State.BACKING_OFF, State.LISTING),
        (ApiError(410), State.LISTING, None),
        (ApiError(0, "Expired"), State.LISTING, None),
        (ApiError(429), State.BACKING_OFF, State.WATCHING),
        (ApiError(500), State.BACKING_OFF, State.WATCHING),
        (ApiError(503), State.BACKING_OFF, State.WATCHING),
        (ApiError(504), State.BACKING_OFF, State.WATCHING),
        (TOO_LARGE, State.BACKING_OFF, State.WATCHING),
        (ApiError(0), State.BACKING_OFF, State.WATCHING),
    ],
)
def test_after_a_watch(error: ApiError | NetworkError | DecodeError, state: State, then: State | None) -> None:
    """The version is kept unless the server says that it is gone."""
    recovery = make()
    assert recovery.after_watch(error) is state
    if then is not None:
        assert (recovery.then, recovery.delay > 0) == (then, True)


@pytest.mark.parametrize(
    ("error", "state"),
    [
        (NetworkError("reset", ""), State.BACKING_OFF),
        (NetworkError("silent", ""), State.BACKING_OFF),
        (DecodeError("truncated"), State.BACKING_OFF),
        (ApiError(401), State.BACKING_OFF),
        (ApiError(403), State.REFUSED),
        (ApiError(404), State.REFUSED),
        (ApiError(410), State.LISTING),
        (ApiError(429), State.BACKING_OFF),
        (ApiError(500), State.BACKING_OFF),
    ],
)
def test_after_a_list(error: ApiError | NetworkError | DecodeError, state: State) -> None:
    """A list follows, now or later."""
    recovery = make()
    assert recovery.after_list(error, page=0, versioned=False) is state
    assert recovery.then is State.LISTING


def test_the_first_410_lists_at_once_and_later_ones_wait() -> None:
    """Until a watch proves healthy; the second list asks for the newest state."""
    recovery = make()
    assert recovery.after_watch(ApiError(410)) is State.LISTING
    assert not recovery.newest
    recovery.listed()
    assert recovery.after_watch(ApiError(410)) is State.BACKING_OFF
    assert (recovery.then, recovery.newest) == (State.LISTING, True)
    recovery.listed()
    recovery.healthy()
    assert recovery.after_watch(ApiError(410)) is State.LISTING
    assert not recovery.newest


def test_an_expired_page_and_an_expired_list_differ() -> None:
    """The one asks for the whole, the other for the newest."""
    recovery = make()
    recovery.after_list(ApiError(410), page=1, versioned=True)
    assert (recovery.whole, recovery.newest) == (True, False)
    recovery = make()
    recovery.after_list(ApiError(410), page=0, versioned=True)
    assert (recovery.whole, recovery.newest) == (False, True)


def test_a_version_too_large_waits_once() -> None:
    """A second or what the server says, the same again; then the newest state at once; then with growing delays."""
    recovery = make()
    assert recovery.after_watch(TOO_LARGE) is State.BACKING_OFF
    assert (recovery.then, recovery.delay, recovery.newest) == (State.WATCHING, 1.0, False)
    assert recovery.after_watch(TOO_LARGE) is State.LISTING
    assert recovery.newest
    assert recovery.after_list(TOO_LARGE, page=0, versioned=False) is State.BACKING_OFF


def test_a_500_is_borne_for_30_seconds() -> None:
    """Then a list follows; a healthy watch in between starts the count again."""
    clock = Clock()
    recovery = make(clock)
    for clock.now, then in ((100, State.WATCHING), (129, State.WATCHING), (130, State.LISTING), (131, State.WATCHING)):
        recovery.after_watch(ApiError(500))
        assert recovery.then is then
    recovery.healthy()
    clock.now = 170
    recovery.after_watch(ApiError(500))
    assert recovery.then is State.WATCHING


def test_a_list_that_cannot_bear_its_version_goes_without() -> None:
    """As a version that is no number, which gives 500 on old servers."""
    recovery = make()
    recovery.after_list(ApiError(500), page=0, versioned=True)
    assert recovery.newest


@pytest.mark.parametrize(("error", "then"), [(ApiError(403), State.WATCHING), (ApiError(503), State.PROBING)])
def test_after_a_probe(error: ApiError, then: State) -> None:
    """Who may not list goes on to watch; others probe again."""
    recovery = make()
    assert recovery.after_probe(error) is State.BACKING_OFF
    assert recovery.then is then


def test_retry_after_bounds_the_delay_from_below() -> None:
    """A short wish does not shorten the growing delays."""
    recovery = make()
    recovery.back_off(State.WATCHING, ApiError(429, retry_after=100.0))
    assert recovery.delay == 100.0
    recovery.back_off(State.WATCHING, ApiError(429, retry_after=0.5))
    assert recovery.delay == 2.0
    recovery.after_list(ApiError(403, retry_after=0.5), page=0, versioned=False)
    assert recovery.delay == 30.0


@pytest.mark.parametrize(
    ("wish", "delay"), [(float("inf"), 1.0), (1e30, 3600.0), (99999999999.0, 3600.0), (3601.0, 3600.0), (3599.0, 3599.0)]
)
def test_retry_after_is_followed_within_reason(wish: float, delay: float) -> None:
    """A server cannot silence a watcher for hours: ten minutes at most, and what is no number of seconds is not followed at all."""
    recovery = make()
    recovery.back_off(State.WATCHING, ApiError(429, retry_after=wish))
    assert recovery.delay == delay


@pytest.mark.parametrize(
    ("version", "than", "lower"),
    [("99", "100", True), ("100", "100", False), ("101", "100", False), ("9" * 30, "1" + "0" * 30, True),
     ("", "100", False), ("0", "100", False), ("abc", "100", False), ("99", "", False)],
)  # fmt: skip
def test_versions_are_compared_as_numbers_of_any_length(version: str, than: str, lower: bool) -> None:
    """What is no number cannot be compared."""
    assert is_lower(version, than) is lower


@pytest.mark.parametrize(
    ("error", "reason"),
    [
        (NetworkError("timeout", ""), "timeout"), (NetworkError("silent", ""), "silent"), (NetworkError("reset", ""), "reset"),
        (NetworkError("connect", ""), "reset"), (NetworkError("credentials", ""), "error"), (DecodeError(""), "decode"),
        (ApiError(410), "gone"), (ApiError(500), "error"),
    ],
)  # fmt: skip
def test_reasons(error: ApiError | NetworkError | DecodeError, reason: str) -> None:
    """Each failure has its reason in the metrics."""
    assert restart_reason(error) == reason
