"""Laws of thinning."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from roboyard.control.throttle import Throttle

SECOND = 1_000_000_000


@given(st.integers(1, 100), st.integers(1, 200))
def test_the_rate_is_kept_and_reached(rate: int, stream: int) -> None:
    throttle = Throttle(rate)
    passed = [i for i in range(10 * stream + 1) if throttle.passes(i * SECOND // stream)]
    assert passed[0] == 0
    assert len(passed) <= 10 * rate + 2
    assert len(passed) >= 10 * min(rate, stream) - 1


@given(st.lists(st.integers(0, 5 * SECOND), min_size=1).map(sorted), st.integers(1, 50))
def test_what_does_not_pass_came_within_a_period(moments: list[int], rate: int) -> None:
    """However moments come; so after a gap the next passes at once."""
    throttle, period = Throttle(rate), round(SECOND / rate)
    last = None
    for moment in moments:
        if throttle.passes(moment):
            last = moment
        else:
            assert last is not None
            assert moment - last < period


def test_zero_lets_everything_pass() -> None:
    throttle = Throttle(0.0)
    assert all(throttle.passes(time) for time in (0, 0, 1, 1, 5))


def test_a_clock_that_starts_anew_begins_anew() -> None:
    throttle = Throttle(1.0)
    assert throttle.passes(100 * SECOND)
    assert throttle.passes(0)
    assert not throttle.passes(SECOND // 2)


def test_saved_state_goes_on_alike() -> None:
    one, other = Throttle(20.0), Throttle(20.0)
    for i in range(7):
        one.passes(i * SECOND // 50)
    other.load(one.save())
    times = [i * SECOND // 50 for i in range(7, 40)]
    assert [one.passes(t) for t in times] == [other.passes(t) for t in times]


@pytest.mark.parametrize("rate", [20.0])
def test_twenty_of_fifty_hertz_are_twenty(rate: float) -> None:
    throttle = Throttle(rate)
    assert sum(throttle.passes(i * SECOND // 50) for i in range(500)) == 200
