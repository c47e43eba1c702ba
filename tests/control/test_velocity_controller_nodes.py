"""Mecanum, Ackermann and velocity nodes on a bus, with hardware made of plain numbers."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.harness.bus import BusHarness, twist
from tests.harness.hardware import FakeHardware

from roboyard.bus import NodeError
from roboyard.control import AckermannDrive, MecanumDrive, PlanarRampLimits, PlanarTwist, RampLimits
from roboyard.control.nodes import AckermannDriveNode, MecanumDriveNode, VelocityBaseNode
from roboyard.control.velocity_ramps import ZERO_STATE, twist_from_state
from roboyard.errors import ConfigError

WHEELS = ("fl", "fr", "rl", "rr")


def make_joints() -> FakeHardware:
    """Four wheels that take velocities, and two steering joints that take positions."""
    modes = {**{wheel: ["velocity"] for wheel in WHEELS}, "sl": ["position"], "sr": ["position"]}
    return FakeHardware([*WHEELS, "sl", "sr"], lambda: 0, modes=modes)


class FakeBase:
    """A base that keeps the velocities that it is driven with."""

    kind = "planar"

    def __init__(self) -> None:
        self.linear = self.angular = (0.0, 0.0, 0.0)
        self.released = False

    def set_velocity(self, linear: tuple[float, float, float], angular: tuple[float, float, float]) -> None:
        self.linear, self.angular = linear, angular

    def release(self) -> None:
        self.released = True


def send(harness: BusHarness, vx: float, vy: float = 0.0, wz: float = 0.0) -> None:
    harness.publish("/cmd_vel_out", twist(vx, wz, vy))


SPEED = st.floats(-5.0, 5.0)


@given(st.lists(st.tuples(SPEED, SPEED, SPEED), min_size=1, max_size=20), st.floats(0.1, 2.0), st.floats(0.1, 5.0))
def test_planar_ramps_keep_their_limits(commands: list[tuple[float, ...]], top: float, acceleration: float) -> None:
    limits = PlanarRampLimits(*[RampLimits(speed=top, acceleration=acceleration)] * 3)
    state = ZERO_STATE
    for command in commands:
        before, state = twist_from_state(state), limits.step(state, PlanarTwist(*command), 0.02)
        now = twist_from_state(state)
        assert max(map(abs, now)) <= top + 1e-12
        assert max(abs(a - b) for a, b in zip(now, before, strict=True)) <= acceleration * 0.02 + 1e-12


def test_mecanum_wheels_and_base_agree_and_time_out(harness: BusHarness) -> None:
    geometry = {"wheel_radius": 0.1, "wheelbase": 0.5, "track": 0.4}
    joints, body = make_joints(), FakeBase()
    harness.add(
        MecanumDriveNode(hardware=joints, base=body, joints=WHEELS, acceleration=10.0, timeout=0.3, **geometry), "d"
    )
    send(harness, 0.3, -0.2, 0.5)
    harness.run_for(0.28)
    assert (*body.linear, *body.angular) == pytest.approx((0.3, -0.2, 0.0, 0.0, 0.0, 0.5))
    wheels = MecanumDrive(**geometry).wheel_speeds(PlanarTwist(0.3, -0.2, 0.5))
    assert [joints.set_points[name] for name in WHEELS] == pytest.approx(wheels)
    send(harness, math.nan)
    harness.run_for(0.6)
    assert not any(joints.set_points.values())
    assert body.linear == (0.0, 0.0, 0.0)


def test_mecanum_node_without_base_drives_wheels(harness: BusHarness) -> None:
    joints = make_joints()
    harness.add(MecanumDriveNode(hardware=joints, joints=WHEELS), "drive")
    send(harness, 0.0, 0.3)
    harness.run_for(0.4)
    assert joints.set_points["fl"] < 0.0 < joints.set_points["fr"]


def test_ackermann_steers_at_its_rate_to_the_geometry(harness: BusHarness) -> None:
    geometry = {"wheel_radius": 0.1, "wheelbase": 0.6, "track": 0.4, "kingpin_width": 0.3}
    names = {
        "left_joints": ("rl",),
        "right_joints": ("rr",),
        "left_steered_joints": ("fl",),
        "right_steered_joints": ("fr",),
        "left_steering_joints": ("sl",),
        "right_steering_joints": ("sr",),
    }
    joints = make_joints()
    harness.add(
        AckermannDriveNode(hardware=joints, steering_rate=1.0, acceleration=10.0, timeout=9.0, **names, **geometry), "d"
    )
    send(harness, 0.5, 0.0, 0.3)
    harness.run_for(2.0)
    car = AckermannDrive(**geometry)
    assert (joints.set_points["sl"], joints.set_points["sr"]) == pytest.approx(car.steering(0.6))
    assert [joints.set_points[name] for name in ("rl", "rr", "fl", "fr")] == pytest.approx(car.wheel_speeds(0.5, 0.6))
    steps = np.diff([item.setpoints[item.joints.index("sl")] for item in joints.written if "sl" in item.joints])
    assert np.abs(steps).max() < 1.5 * 0.02, "about the steering rate"
    send(harness, 0.5, 0.0, 99.0)
    harness.run_for(2.0)
    assert max(abs(joints.set_points["sl"]), abs(joints.set_points["sr"])) <= 0.5 + 1e-9


def test_velocity_node_times_out_and_releases_its_base(harness: BusHarness) -> None:
    body = FakeBase()
    node = harness.add(VelocityBaseNode(base=body, timeout=0.5, initial_linear=(0.1, 0.0, 0.2)), "drive")
    assert body.linear == (0.1, 0.0, 0.2)
    send(harness, 0.4)
    harness.run_for(0.3)
    assert body.linear == (0.4, 0.0, 0.0)
    send(harness, math.inf)
    harness.run_for(0.6)
    assert body.linear == (0.0, 0.0, 0.0)
    harness.bus.remove(node)
    assert body.released


def test_invalid_twist_nodes_are_refused(harness: BusHarness) -> None:
    with pytest.raises(NodeError, match="no velocity commands"):
        harness.add(MecanumDriveNode(hardware=make_joints(), joints=("fl", "fr", "rl", "sl")), "drive")
    with pytest.raises(ConfigError, match="initial_linear: has 1 elements"):
        VelocityBaseNode(base=FakeBase(), initial_linear=(1.0,))
