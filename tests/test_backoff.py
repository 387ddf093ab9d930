"""Delays and allowances, with clock and randomness in hand."""

from itertools import islice

import pytest

from fastdisco.backoff import Allowance, Backoff


def test_delays_double_up_to_the_longest() -> None:
    """Without jitter: 1, 2, 4, 8, 16 and 30 seconds for ever."""
    assert list(islice(Backoff(jitter=0.0), 7)) == [1, 2, 4, 8, 16, 30, 30]


@pytest.mark.parametrize("chance", [0.0, 0.5, 0.999])
def test_jitter_keeps_delays_between_first_and_longest(chance: float) -> None:
    """No delay is shorter than the first or longer than the longest, and none is fixed."""
    delays = list(islice(Backoff(random=lambda: chance), 20))
    assert all(1.0 <= delay <= 30.0 for delay in delays)
    assert delays[0] == 1.0 + 0.5 * chance
    assert delays[-1] == 30.0 * (1.0 - 0.5 * chance)


def test_reset_starts_again() -> None:
    """After success the next failure waits as the first did."""
    backoff = Backoff(random=lambda: 0.0)
    list(islice(backoff, 5))
    backoff.reset()
    assert next(backoff) == 1.0


def test_the_longest_delay_leaves_the_others_alone() -> None:
    """Who was refused waits long, without making later delays longer."""
    backoff = Backoff(random=lambda: 0.0)
    assert backoff.longest_delay() == 30.0
    assert next(backoff) == 1.0


def test_an_allowance_is_so_many_per_period() -> None:
    """What is refused is counted for the next one that is allowed."""
    now = 0.0
    allowance = Allowance(2, 60.0, clock=lambda: now)
    assert [allowance.take() for _ in range(5)] == [True, True, False, False, False]
    assert allowance.skipped == 3
    now = 60.0
    assert allowance.take()
