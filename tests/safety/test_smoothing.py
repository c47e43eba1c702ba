"""The velocity smoother: within limits always, at the command in the end, along the arc that was meant."""

from __future__ import annotations

import math

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from roboyard.bus import Bus, NodeError
from roboyard.control import PlanarLimits, PlanarTwist, RampLimits
from roboyard.errors import ConfigError
from roboyard.messages import msg
from roboyard.safety import SmootherConfig, VelocitySmoother
from roboyard.safety.nodes import VelocitySmootherNode

SPEEDS = st.floats(-3.0, 3.0).map(lambda v: 0.0 if abs(v) < 1e-3 else v)
TWISTS = st.builds(PlanarTwist, SPEEDS, SPEEDS, SPEEDS)
LIMITS = PlanarLimits(
    RampLimits(speed=1.0, acceleration=1.5, deceleration=2.5, reverse_speed=0.4, deadband=0.02),
    RampLimits(speed=0.8, acceleration=2.0, deceleration=1.0),
    RampLimits(speed=2.0, acceleration=4.0),
)
AXES = (LIMITS.forward, LIMITS.sideways, LIMITS.turning)


@settings(max_examples=60, deadline=None)
@given(st.lists(TWISTS, min_size=1, max_size=3), st.booleans(), st.sampled_from([0.01, 0.02, 0.05]))
@example([PlanarTwist(-1.0, 0.0, 0.0), PlanarTwist(-2.75, 0.0, 1.0)], True, 0.01)  # forward differs by rounding only
def test_every_step_keeps_the_limits_and_the_last_one_arrives(commands, keep, dt) -> None:
    config = SmootherConfig(LIMITS, keep_curvature=keep)
    now = PlanarTwist()
    for wanted in commands:
        for _ in range(400):
            then = config.step(now, wanted, dt)
            for before, after, axis in zip(now, then, AXES, strict=True):
                slowing = axis.deceleration or axis.acceleration
                fastest = max(axis.acceleration, slowing) if before * after < 0 else (
                    axis.acceleration if abs(after) > abs(before) else slowing
                )  # fmt: skip
                assert abs(after - before) <= fastest * dt + 1e-9
                assert -(axis.reverse_speed or axis.speed) - 1e-9 <= after <= axis.speed + 1e-9
            now = then
        assert now == pytest.approx(config.shape(wanted), abs=1e-9)


@settings(max_examples=40, deadline=None)
@given(TWISTS)
def test_from_rest_and_to_rest_the_arc_is_that_of_the_command(wanted) -> None:
    config = SmootherConfig(LIMITS)
    target = config.shape(wanted)
    if all(bool(a) == bool(b) for a, b in zip(target, wanted, strict=True)):  # no dead band, no axis that is not there
        assert max(abs(a - b) for a, b in _crossed(target, wanted)) < 1e-9
    for begin, end in ((PlanarTwist(), wanted), (target, PlanarTwist())):
        now = begin
        for _ in range(150):
            now = config.step(now, end, 0.02)
            assert max(abs(a - b) for a, b in _crossed(now, target)) < 1e-9


def _crossed(a: PlanarTwist, b: PlanarTwist) -> list[tuple[float, float]]:
    return [(a[i] * b[j], a[j] * b[i]) for i, j in ((0, 1), (0, 2), (1, 2))]


def test_silence_means_braking_and_a_measured_speed_is_begun_from() -> None:
    smoother = VelocitySmoother(SmootherConfig(LIMITS, timeout=0.5))
    smoother.command(PlanarTwist(1.0), 0)
    speeds = [smoother.step(k * 20_000_000, 0.02).vx for k in range(120)]
    assert max(speeds) == pytest.approx(0.78, abs=0.06)  # 0.5 s of acceleration and a step
    assert speeds[-1] == 0.0
    smoother.command(PlanarTwist(1.0), 10**10)
    assert smoother.step(10**10, 0.02, PlanarTwist(0.6)).vx == pytest.approx(0.63)


@pytest.mark.parametrize(
    "make",
    [
        lambda: SmootherConfig(timeout=0.0),
        lambda: SmootherConfig(timeout=math.nan),
        lambda: SmootherConfig(PlanarLimits(RampLimits(jerk=1.0), RampLimits(), RampLimits())),
        lambda: VelocitySmoother(SmootherConfig()).command(PlanarTwist(math.nan), 0),
    ],
)
def test_what_cannot_be_is_refused(make) -> None:
    with pytest.raises(ConfigError):
        make()


# -- node ------------------------------------------------------------------------------------------------------------
def _run(seconds: float, send, **parameters: object) -> tuple[list[tuple[float, float, float]], list[str]]:
    out, lines = [], []
    with Bus() as bus:
        bus.add(VelocitySmootherNode(**parameters), "smoother")
        sender = bus.publisher("/cmd_vel_in", msg.Twist, "/teleop")
        bus.log_sinks.append(lambda record: lines.append(record.text))

        def see(topic, message, node, time_ns) -> None:
            if topic.name == "/cmd_vel_out":
                out.append((time_ns * 1e-9, message.linear.x, message.angular.z))

        bus.tap(see)
        for k in range(round(seconds / 0.1)):
            command = send(k * 0.1)
            if command is not None:
                sender.publish(msg.Twist(linear=msg.Vector3(x=command[0]), angular=msg.Vector3(z=command[1])))
            bus.executor.run_for(0.1)
    return out, lines


def test_the_node_ramps_up_brakes_when_nobody_commands_and_then_keeps_quiet() -> None:
    out, _ = _run(5.0, lambda t: (0.4, 0.8) if t < 1.5 else None, velocity_timeout=0.5)
    speeds = [v for _, v, _ in out]
    assert max(abs(b - a) for a, b in zip([0.0, *speeds], speeds, strict=False)) <= 2.5 / 20 + 1e-9
    assert max(speeds) == pytest.approx(0.4)
    assert all(w == pytest.approx(2.0 * v, abs=1e-9) for _, v, w in out)
    assert speeds[-1] == 0.0
    assert 1.9 < out[-1][0] < 2.5


def test_the_node_refuses_what_is_not_finite() -> None:
    out, lines = _run(1.0, lambda t: (math.nan, 0.0))
    assert not out
    assert any("not finite" in line for line in lines)


@pytest.mark.parametrize(
    "bad", [{"max_velocity": (1.0, 1.0)}, {"max_accel": (-1.0, 0.0, 1.0)}, {"feedback": "NONE"},
            {"max_decel": (1.0, 0.0, 0.0)}, {"smoothing_frequency": 0.0}]
)  # fmt: skip
def test_parameters_out_of_range_are_refused(bad) -> None:
    with pytest.raises((ConfigError, NodeError)), Bus() as bus:
        bus.add(VelocitySmootherNode(**bad), "smoother")
