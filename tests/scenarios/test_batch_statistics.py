"""Wilson's intervals against an independent solution of the equation that defines them."""

import math
import statistics

import pytest
from hypothesis import given
from hypothesis import strategies as st

from roboyard.scenarios.batch.statistics import Z_95, summarize_metric, wilson_interval


@given(total=st.integers(1, 5000), proportion=st.floats(0, 1))
def test_wilson_bounds_solve_their_equation(total: int, proportion: float) -> None:
    successes = round(proportion * total)
    rate = wilson_interval(successes, total)
    assert 0.0 <= rate.low <= rate.value <= rate.high <= 1.0
    for p in (rate.low, rate.high):
        # by definition a bound lies z standard errors (of the bound, not of the estimate) from what was seen
        distance = abs(rate.value - p)
        assert distance == pytest.approx(Z_95 * math.sqrt(p * (1 - p) / total), abs=1e-9)


@given(total=st.integers(1, 500), successes=st.integers(0, 500))
def test_wilson_intervals_of_success_and_failure_mirror(total: int, successes: int) -> None:
    successes = min(successes, total)
    a, b = wilson_interval(successes, total), wilson_interval(total - successes, total)
    assert a.low == pytest.approx(1 - b.high, abs=1e-12)


def test_wilson_interval_has_published_values() -> None:
    rate = wilson_interval(81, 263)  # Newcombe (1998), table I, method 3
    assert (round(rate.low, 4), round(rate.high, 4)) == (0.2553, 0.3662)
    assert wilson_interval(0, 0).low == 0.0
    assert "no runs" in str(wilson_interval(0, 0))
    assert "3 of 4" in str(wilson_interval(3, 4))


@given(st.lists(st.floats(-1e6, 1e6), min_size=2, max_size=40))
def test_spread_agrees_with_the_standard_library(values: list[float]) -> None:
    found = summarize_metric(values)
    assert found is not None
    assert found.mean == pytest.approx(statistics.fmean(values), abs=1e-6)
    assert found.standard_deviation == pytest.approx(statistics.stdev(values), rel=1e-6, abs=1e-6)
    assert found.median == pytest.approx(statistics.median(values))
    assert (found.minimum, found.maximum) == (min(values), max(values))
    assert summarize_metric([]) is None
