"""The velocity smoother: within limits always, at the command in the end, along the arc that was meant."""

from __future__ import annotations

import math
from collections.abc import Callable

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from tests.harness.bus import BusHarness, twist

from roboyard.bus import NodeError
from roboyard.control import PlanarRampLimits, PlanarTwist, RampLimits
from roboyard.errors import ConfigError
from roboyard.safety import SmootherConfig, VelocitySmoother
from roboyard.safety.nodes import VelocitySmootherNode

SPEEDS = st.floats(-3.0, 3.0).map(lambda v: 0.0 if abs(v) < 1e-3 else v)
TWISTS = st.builds(PlanarTwist, SPEEDS, SPEEDS, SPEEDS)
LIMITS = PlanarRampLimits(
    RampLimits(speed=1.0, acceleration=1.5, deceleration=2.5, reverse_speed=0.4, deadband=0.02),
    RampLimits(speed=0.8, acceleration=2.0, deceleration=1.0),
    RampLimits(speed=2.0, acceleration=4.0),
)
AXES = (LIMITS.forward, LIMITS.lateral, LIMITS.angular)


@settings(max_examples=60, deadline=None)
@given(st.lists(TWISTS, min_size=1, max_size=3), st.booleans(), st.sampled_from([0.01, 0.02, 0.05]))
@example([PlanarTwist(-1.0, 0.0, 0.0), PlanarTwist(-2.75, 0.0, 1.0)], True, 0.01)  # forward differs by rounding only
def test_smoothed_steps_keep_limits_and_arrive(commands, preserves_curvature, dt) -> None:
    config = SmootherConfig(LIMITS, preserves_curvature=preserves_curvature)
    now = PlanarTwist()
    for command in commands:
        for _ in range(400):
            next_twist = config.step(now, command, dt)
            for before, after, axis in zip(now, next_twist, AXES, strict=True):
                deceleration = axis.deceleration or axis.acceleration
                max_change = max(axis.acceleration, deceleration) if before * after < 0 else (
                    axis.acceleration if abs(after) > abs(before) else deceleration
                )  # fmt: skip
                assert abs(after - before) <= max_change * dt + 1e-9
                assert -(axis.reverse_speed or axis.speed) - 1e-9 <= after <= axis.speed + 1e-9
            now = next_twist
        assert now == pytest.approx(config.clamp_target(command), abs=1e-9)


@settings(max_examples=40, deadline=None)
@given(TWISTS)
def test_smoothed_arc_is_that_of_the_command(command) -> None:
    config = SmootherConfig(LIMITS)
    target = config.clamp_target(command)
    if all(bool(a) == bool(b) for a, b in zip(target, command, strict=True)):  # no dead band, no axis that is not there
        assert max(abs(a - b) for a, b in _crossed(target, command)) < 1e-9
    for start, end in ((PlanarTwist(), command), (target, PlanarTwist())):
        now = start
        for _ in range(150):
            now = config.step(now, end, 0.02)
            assert max(abs(a - b) for a, b in _crossed(now, target)) < 1e-9


def _crossed(a: PlanarTwist, b: PlanarTwist) -> list[tuple[float, float]]:
    return [(a[i] * b[j], a[j] * b[i]) for i, j in ((0, 1), (0, 2), (1, 2))]


def test_smoother_brakes_without_commands_and_starts_measured() -> None:
    smoother = VelocitySmoother(SmootherConfig(LIMITS, timeout=0.5))
    smoother.set_command(PlanarTwist(1.0), 0)
    speeds = [smoother.step(k * 20_000_000, 0.02).vx for k in range(120)]
    assert max(speeds) == pytest.approx(0.78, abs=0.06)  # 0.5 s of acceleration and a step
    assert speeds[-1] == 0.0
    smoother.set_command(PlanarTwist(1.0), 10**10)
    assert smoother.step(10**10, 0.02, PlanarTwist(0.6)).vx == pytest.approx(0.63)


@pytest.mark.parametrize(
    "make",
    [
        lambda: SmootherConfig(timeout=0.0),
        lambda: SmootherConfig(timeout=math.nan),
        lambda: SmootherConfig(PlanarRampLimits(RampLimits(jerk=1.0), RampLimits(), RampLimits())),
        lambda: VelocitySmoother(SmootherConfig()).set_command(PlanarTwist(math.nan), 0),
    ],
)
def test_invalid_smoother_config_is_refused(make) -> None:
    with pytest.raises(ConfigError):
        make()


# -- node ------------------------------------------------------------------------------------------------------------
def run_smoother(
    harness: BusHarness, seconds: float, command_at: Callable[[float], tuple[float, float] | None], **parameters: object
) -> list[tuple[float, float, float]]:
    """Publish ``command_at(time)`` every 0.1 s; returns what came out: (time [s], v [m/s], w [rad/s])."""
    harness.add(VelocitySmootherNode(**parameters), "smoother")
    for k in range(round(seconds / 0.1)):
        command = command_at(k * 0.1)
        if command is not None:
            harness.publish("/cmd_vel_in", twist(*command), source="/teleop")
        harness.run_for(0.1)
    output = harness.published("/cmd_vel_out")
    return [(item.time_ns * 1e-9, item.message.linear.x, item.message.angular.z) for item in output]


def test_smoother_node_ramps_brakes_and_falls_silent(harness: BusHarness) -> None:
    output = run_smoother(harness, 5.0, lambda t: (0.4, 0.8) if t < 1.5 else None, velocity_timeout=0.5)
    speeds = [v for _, v, _ in output]
    assert max(abs(b - a) for a, b in zip([0.0, *speeds], speeds, strict=False)) <= 2.5 / 20 + 1e-9
    assert max(speeds) == pytest.approx(0.4)
    assert all(w == pytest.approx(2.0 * v, abs=1e-9) for _, v, w in output)
    assert speeds[-1] == 0.0
    assert 1.9 < output[-1][0] < 2.5


def test_smoother_node_refuses_non_finite_commands(harness: BusHarness) -> None:
    assert not run_smoother(harness, 1.0, lambda t: (math.nan, 0.0))
    assert any("not finite" in line for line in harness.log_lines)


@pytest.mark.parametrize(
    "bad", [{"max_velocity": (1.0, 1.0)}, {"max_accel": (-1.0, 0.0, 1.0)}, {"feedback": "NONE"},
            {"max_decel": (1.0, 0.0, 0.0)}, {"smoothing_frequency": 0.0}]
)  # fmt: skip
def test_smoother_parameters_out_of_range_are_refused(harness: BusHarness, bad: dict[str, object]) -> None:
    with pytest.raises((ConfigError, NodeError)):
        harness.add(VelocitySmootherNode(**bad), "smoother")
