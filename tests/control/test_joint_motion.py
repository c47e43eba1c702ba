"""Motion of single joints: always within limits, at the target in the end, and never beyond it."""

from __future__ import annotations

import math

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from roboyard.control import JointMotionState, PointToPointLimits
from roboyard.errors import ConfigError

LIMITS = PointToPointLimits(-2.0, 2.5, 0.33, 0.42)
DTS = st.sampled_from([0.002, 0.01, 0.05])


@settings(max_examples=100, deadline=None)
@given(st.floats(-2.0, 2.5), st.floats(-3.0, 3.0), DTS)
def test_target_from_rest_takes_the_trapezoid_time(start, target, dt) -> None:
    goal = min(max(target, LIMITS.lower), LIMITS.upper)
    distance = abs(goal - start)
    v, a = LIMITS.speed, LIMITS.acceleration
    min_time = distance / v + v / a if distance > v * v / a else 2.0 * math.sqrt(distance / a)
    state, time = JointMotionState(start), 0.0
    while state != JointMotionState(goal) and time < min_time + 1.0:
        next_state = LIMITS.step_to_position(state, target, dt)
        assert abs(next_state.velocity) <= v + 1e-12
        assert abs(next_state.velocity - state.velocity) <= a * dt + 1e-9
        assert min(start, goal) - 1e-9 <= next_state.position <= max(start, goal) + 1e-9
        state, time = next_state, time + dt
    assert state.position == pytest.approx(goal, abs=1e-9)
    assert state.velocity == 0.0
    assert min_time - 2 * dt <= time <= min_time + 4 * dt + 1e-9


@settings(max_examples=60, deadline=None)
@given(st.lists(st.tuples(st.booleans(), st.floats(-3.0, 3.0), st.integers(1, 200)), min_size=1, max_size=6), DTS)
def test_joint_motion_keeps_limits_for_any_commands(orders, dt) -> None:
    state = JointMotionState(0.3)
    for to_position, value, steps in orders:
        for _ in range(steps):
            next_state = (
                LIMITS.step_to_position(state, value, dt) if to_position else LIMITS.step_at_velocity(state, value, dt)
            )
            assert LIMITS.lower - 1e-9 <= next_state.position <= LIMITS.upper + 1e-9
            assert abs(next_state.velocity) <= LIMITS.speed + 1e-12
            assert abs(next_state.velocity - state.velocity) <= LIMITS.acceleration * dt + 1e-9
            state = next_state


@pytest.mark.parametrize("bad", [(1.0, -1.0, 1.0, 1.0), (-1.0, 1.0, 0.0, 1.0), (-1.0, 1.0, 1.0, math.nan)])
def test_invalid_joint_motion_limits_are_refused(bad) -> None:
    with pytest.raises(ConfigError):
        PointToPointLimits(*bad)
