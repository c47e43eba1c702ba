"""Laws of ramps: limits always hold, targets are reached and not passed."""

from __future__ import annotations

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from roboyard.control import Ramp, RampLimits
from roboyard.errors import ConfigError

DT = 0.02
rates = st.floats(0.05, 20.0)
limits = st.builds(RampLimits, speed=st.floats(0.1, 3.0), acceleration=rates, deceleration=st.one_of(st.none(), rates))
jerky = st.builds(
    RampLimits,
    speed=st.floats(0.1, 3.0),
    acceleration=rates,
    deceleration=st.one_of(st.none(), rates),
    jerk=st.floats(0.5, 500.0),
)
targets = st.lists(st.tuples(st.floats(-4.0, 4.0), st.integers(1, 40)), min_size=1, max_size=6)


def run_ramp(ramp: Ramp, plan: list[tuple[float, int]]):
    """Yields (target, velocity before, velocity after, acceleration before, acceleration after)."""
    for desired, steps in plan:
        for _ in range(steps):
            before = ramp.state
            ramp.step(desired, DT)
            yield (
                ramp.limits.clamp_target(desired),
                before.velocity,
                ramp.velocity,
                before.acceleration,
                ramp.state.acceleration,
            )


def tolerance(limit: RampLimits) -> float:
    return 1e-9 * max(limit.acceleration, limit.deceleration or 0.0, 1.0)


@given(limits, targets)
def test_ramp_keeps_speed_and_acceleration_limits(limit: RampLimits, plan: list[tuple[float, int]]) -> None:
    slowing = limit.deceleration or limit.acceleration
    for _, before, after, _, _ in run_ramp(Ramp(limit), plan):
        assert abs(after) <= limit.speed + 1e-12
        rate = (after - before) / DT
        if before * after >= 0.0:
            allowed = limit.acceleration if abs(after) > abs(before) else slowing
        else:  # one step through zero: braking first, then accelerating
            allowed = max(limit.acceleration, slowing)
        assert abs(rate) <= allowed + tolerance(limit)


@given(limits, targets)
def test_ramp_never_overshoots(limit: RampLimits, plan: list[tuple[float, int]]) -> None:
    for target, before, after, _, _ in run_ramp(Ramp(limit), plan):
        low, high = min(before, target), max(before, target)
        assert low - 1e-12 <= after <= high + 1e-12


@given(jerky, targets)
def test_jerk_limited_ramp_keeps_all_limits(limit: RampLimits, plan: list[tuple[float, int]]) -> None:
    slowing = limit.deceleration or limit.acceleration
    for _, before, after, a_before, a_after in run_ramp(Ramp(limit), plan):
        assert abs(after) <= limit.speed + 1e-9
        assert abs(a_after - a_before) <= limit.jerk * DT * (1 + 1e-9) + 1e-9
        assert abs(a_after) <= max(limit.acceleration, slowing) + tolerance(limit)
        if abs(after) > abs(before) and before * after > 0.0 and a_before * a_after > 0.0 and before * a_before > 0.0:
            assert abs(a_after) <= limit.acceleration + tolerance(limit)


@given(jerky, st.floats(-4.0, 4.0), st.floats(-4.0, 4.0))
def test_jerk_limited_ramp_does_not_overshoot_a_standing_target(limit: RampLimits, first: float, second: float) -> None:
    ramp = Ramp(limit)
    for desired in (first, second):
        target = limit.clamp_target(desired)
        start = ramp.velocity
        for _ in range(20000):
            ramp.step(desired, DT)
            assert min(start, target) - 1e-9 <= ramp.velocity <= max(start, target) + 1e-9
            if ramp.velocity == target and ramp.state.acceleration == 0.0:
                break
        assert ramp.velocity == target
        assert ramp.state.acceleration == pytest.approx(0.0, abs=1e-9)


@given(limits, st.floats(-4.0, 4.0))
def test_ramp_reaches_target_in_minimum_time(limit: RampLimits, desired: float) -> None:
    ramp, target = Ramp(limit), limit.clamp_target(desired)
    needed = math.ceil(abs(target) / (limit.acceleration * DT) - 1e-9)
    for _ in range(needed):
        ramp.step(desired, DT)
    assert ramp.velocity == pytest.approx(target, abs=1e-9)


@given(jerky, targets)
def test_mirrored_targets_give_mirrored_ramps(limit: RampLimits, plan: list[tuple[float, int]]) -> None:
    forward, backward = Ramp(limit), Ramp(limit)
    mirrored = [(-desired, steps) for desired, steps in plan]
    for (_, _, a, _, _), (_, _, b, _, _) in zip(run_ramp(forward, plan), run_ramp(backward, mirrored), strict=True):
        assert a == -b


def test_ramp_may_brake_harder_than_it_accelerates() -> None:
    ramp = Ramp(RampLimits(speed=2.0, acceleration=1.0, deceleration=4.0))
    up = sum(1 for _ in iter(lambda: ramp.step(1.0, DT), 1.0))
    down = sum(1 for _ in iter(lambda: ramp.step(0.0, DT), 0.0))
    assert up == pytest.approx(4 * down, abs=5)


def test_ramp_has_the_expected_shape() -> None:
    limit = RampLimits(speed=0.2, reverse_speed=0.1, deadband=0.01, min_speed=0.05)
    assert [limit.clamp_target(v) for v in (0.0, 0.005, 0.02, 0.1, 5.0, -0.02, -5.0)] == [
        0,
        0,
        0.05,
        0.1,
        0.2,
        -0.05,
        -0.1,
    ]
    assert RampLimits(reverse_speed=0.0).clamp_target(-1.0) == 0.0


@pytest.mark.parametrize(
    "bad", [{"acceleration": 0.0}, {"jerk": -1.0}, {"speed": math.nan}, {"speed": 0.1, "min_speed": 0.2}]
)
def test_invalid_ramp_limits_are_refused(bad: dict[str, float]) -> None:
    with pytest.raises(ConfigError):
        RampLimits(**bad)
