"""Joints on their way: within limits always, at the target in the end, and never beyond it."""

from __future__ import annotations

import math

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from roboyard.control import Reach, ReachLimits
from roboyard.errors import ConfigError

LIMITS = ReachLimits(-2.0, 2.5, 0.33, 0.42)
DTS = st.sampled_from([0.002, 0.01, 0.05])


@settings(max_examples=100, deadline=None)
@given(st.floats(-2.0, 2.5), st.floats(-3.0, 3.0), DTS)
def test_target_from_rest_takes_the_trapezoid_time(start, target, dt) -> None:
    goal = min(max(target, LIMITS.lower), LIMITS.upper)
    way = abs(goal - start)
    v, a = LIMITS.speed, LIMITS.acceleration
    least = way / v + v / a if way > v * v / a else 2.0 * math.sqrt(way / a)
    now, time = Reach(start), 0.0
    while now != Reach(goal) and time < least + 1.0:
        then = LIMITS.toward(now, target, dt)
        assert abs(then.velocity) <= v + 1e-12
        assert abs(then.velocity - now.velocity) <= a * dt + 1e-9
        assert min(start, goal) - 1e-9 <= then.position <= max(start, goal) + 1e-9
        now, time = then, time + dt
    assert now.position == pytest.approx(goal, abs=1e-9)
    assert now.velocity == 0.0
    assert least - 2 * dt <= time <= least + 4 * dt + 1e-9


@settings(max_examples=60, deadline=None)
@given(st.lists(st.tuples(st.booleans(), st.floats(-3.0, 3.0), st.integers(1, 200)), min_size=1, max_size=6), DTS)
def test_reaching_keeps_limits_for_any_commands(orders, dt) -> None:
    now = Reach(0.3)
    for to_position, value, steps in orders:
        for _ in range(steps):
            then = LIMITS.toward(now, value, dt) if to_position else LIMITS.at(now, value, dt)
            assert LIMITS.lower - 1e-9 <= then.position <= LIMITS.upper + 1e-9
            assert abs(then.velocity) <= LIMITS.speed + 1e-12
            assert abs(then.velocity - now.velocity) <= LIMITS.acceleration * dt + 1e-9
            now = then


@pytest.mark.parametrize("bad", [(1.0, -1.0, 1.0, 1.0), (-1.0, 1.0, 0.0, 1.0), (-1.0, 1.0, 1.0, math.nan)])
def test_invalid_reaching_limits_are_refused(bad) -> None:
    with pytest.raises(ConfigError):
        ReachLimits(*bad)
