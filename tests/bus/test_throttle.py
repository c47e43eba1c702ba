"""Laws of thinning."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from roboyard.bus.throttle import Throttle

SECOND = 1_000_000_000


@given(st.integers(1, 100), st.integers(1, 200))
def test_throttle_keeps_and_reaches_its_rate(rate: int, stream: int) -> None:
    throttle = Throttle(rate)
    passed = [i for i in range(10 * stream + 1) if throttle.should_pass(i * SECOND // stream)]
    assert passed[0] == 0
    assert len(passed) <= 10 * rate + 2
    assert len(passed) >= 10 * min(rate, stream) - 1


@given(st.lists(st.integers(0, 5 * SECOND), min_size=1).map(sorted), st.integers(1, 50))
def test_throttle_drops_only_within_a_period(moments: list[int], rate: int) -> None:
    """However moments come; so after a gap the next passes at once."""
    throttle, period = Throttle(rate), round(SECOND / rate)
    last = None
    for moment in moments:
        if throttle.should_pass(moment):
            last = moment
        else:
            assert last is not None
            assert moment - last < period


def test_throttle_with_rate_zero_passes_everything() -> None:
    throttle = Throttle(0.0)
    assert all(throttle.should_pass(time) for time in (0, 0, 1, 1, 5))


def test_throttle_starts_anew_when_the_clock_jumps_back() -> None:
    throttle = Throttle(1.0)
    assert throttle.should_pass(100 * SECOND)
    assert throttle.should_pass(0)
    assert not throttle.should_pass(SECOND // 2)


def test_loaded_throttle_goes_on_alike() -> None:
    one, other = Throttle(20.0), Throttle(20.0)
    for i in range(7):
        one.should_pass(i * SECOND // 50)
    other.load_state(one.save_state())
    times = [i * SECOND // 50 for i in range(7, 40)]
    assert [one.should_pass(t) for t in times] == [other.should_pass(t) for t in times]


@pytest.mark.parametrize("rate", [20.0])
def test_throttle_passes_twenty_of_fifty_hertz(rate: float) -> None:
    throttle = Throttle(rate)
    assert sum(throttle.should_pass(i * SECOND // 50) for i in range(500)) == 200
