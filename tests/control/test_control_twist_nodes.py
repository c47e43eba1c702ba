"""Mecanum, Ackermann and velocity nodes on a bus, with hardware made of plain numbers."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from roboyard.bus import Bus, NodeError
from roboyard.control import AckermannDrive, MecanumDrive, PlanarLimits, PlanarTwist, RampLimits
from roboyard.control.nodes import AckermannNode, MecanumNode, VelocityNode
from roboyard.control.planar_ramps import AT_REST, twist_of
from roboyard.hardware.interface import CommandMode, JointCommand, JointReadings
from roboyard.messages import msg

WHEELS = ("fl", "fr", "rl", "rr")


class Joints:
    """Keeps what it is told."""

    joint_names = (*WHEELS, "sl", "sr")

    def __init__(self) -> None:
        self.told: dict[str, float] = {}
        self.history: list[dict[str, float]] = []

    def command_modes(self, joint: str) -> tuple[CommandMode, ...]:
        return ("position",) if joint.startswith("s") else ("velocity",)

    def read(self) -> JointReadings:
        return JointReadings(0, np.zeros(6), np.zeros(6), np.zeros(6))

    def write(self, command: JointCommand) -> None:
        self.told.update(zip(command.joints, command.values.tolist(), strict=True))
        self.history.append(dict(self.told))


class Body:
    """Keeps the velocities it is told."""

    kind = "planar"

    def __init__(self) -> None:
        self.linear = self.angular = (0.0, 0.0, 0.0)
        self.released = False

    def drive(self, linear: tuple[float, float, float], angular: tuple[float, float, float]) -> None:
        self.linear, self.angular = linear, angular

    def release(self) -> None:
        self.released = True


def send(bus: Bus, vx: float, vy: float = 0.0, wz: float = 0.0) -> None:
    twist = msg.Twist(linear=msg.Vector3(x=vx, y=vy), angular=msg.Vector3(z=wz))
    bus.publisher("/cmd_vel_out", msg.Twist, "/test").publish(twist)


SPEED = st.floats(-5.0, 5.0)


@given(st.lists(st.tuples(SPEED, SPEED, SPEED), min_size=1, max_size=20), st.floats(0.1, 2.0), st.floats(0.1, 5.0))
def test_no_command_leads_beyond_the_limits(wanted: list[tuple[float, ...]], top: float, acceleration: float) -> None:
    limits = PlanarLimits(*[RampLimits(speed=top, acceleration=acceleration)] * 3)
    state = AT_REST
    for command in wanted:
        before, state = twist_of(state), limits.step(state, PlanarTwist(*command), 0.02)
        now = twist_of(state)
        assert max(map(abs, now)) <= top + 1e-12
        assert max(abs(a - b) for a, b in zip(now, before, strict=True)) <= acceleration * 0.02 + 1e-12


def test_mecanum_wheels_and_base_move_alike_and_stop_in_silence() -> None:
    geometry = {"wheel_radius": 0.1, "wheelbase": 0.5, "track": 0.4}
    joints, body = Joints(), Body()
    with Bus() as bus:
        bus.add(MecanumNode(hardware=joints, base=body, joints=WHEELS, acceleration=10.0, timeout=0.3, **geometry), "d")
        send(bus, 0.3, -0.2, 0.5)
        bus.executor.run_for(0.28)
        assert (*body.linear, *body.angular) == pytest.approx((0.3, -0.2, 0.0, 0.0, 0.0, 0.5))
        wheels = MecanumDrive(**geometry).wheel_speeds(PlanarTwist(0.3, -0.2, 0.5))
        assert [joints.told[name] for name in WHEELS] == pytest.approx(wheels)
        send(bus, math.nan)
        bus.executor.run_for(0.6)
        assert not any(joints.told.values())
        assert body.linear == (0.0, 0.0, 0.0)


def test_a_mecanum_node_without_a_base_drives_its_wheels() -> None:
    joints = Joints()
    with Bus() as bus:
        bus.add(MecanumNode(hardware=joints, joints=WHEELS), "drive")
        send(bus, 0.0, 0.3)
        bus.executor.run_for(0.4)
        assert joints.told["fl"] < 0.0 < joints.told["fr"]


def test_ackermann_steers_at_its_rate_to_the_geometry() -> None:
    geometry = {"wheel_radius": 0.1, "wheelbase": 0.6, "track": 0.4, "kingpin_width": 0.3}
    names = {
        "left_joints": ("rl",),
        "right_joints": ("rr",),
        "left_steered_joints": ("fl",),
        "right_steered_joints": ("fr",),
        "left_steering_joints": ("sl",),
        "right_steering_joints": ("sr",),
    }
    joints = Joints()
    with Bus() as bus:
        bus.add(
            AckermannNode(hardware=joints, steering_rate=1.0, acceleration=10.0, timeout=9.0, **names, **geometry), "d"
        )
        send(bus, 0.5, 0.0, 0.3)
        bus.executor.run_for(2.0)
        car = AckermannDrive(**geometry)
        assert (joints.told["sl"], joints.told["sr"]) == pytest.approx(car.steering(0.6))
        assert [joints.told[name] for name in ("rl", "rr", "fl", "fr")] == pytest.approx(car.wheel_speeds(0.5, 0.6))
        steps = np.diff([told["sl"] for told in joints.history if "rl" in told])
        assert np.abs(steps).max() < 1.5 * 0.02, "about the steering rate"
        send(bus, 0.5, 0.0, 99.0)
        bus.executor.run_for(2.0)
        assert max(abs(joints.told["sl"]), abs(joints.told["sr"])) <= 0.5 + 1e-9


def test_velocities_hold_until_the_time_out_and_the_body_is_let_go() -> None:
    body = Body()
    with Bus() as bus:
        node = bus.add(VelocityNode(base=body, timeout=0.5, initial_linear=(0.1, 0.0, 0.2)), "drive")
        assert body.linear == (0.1, 0.0, 0.2)
        send(bus, 0.4)
        bus.executor.run_for(0.3)
        assert body.linear == (0.4, 0.0, 0.0)
        send(bus, math.inf)
        bus.executor.run_for(0.6)
        assert body.linear == (0.0, 0.0, 0.0)
        bus.remove(node)
        assert body.released


def test_what_cannot_be_is_refused() -> None:
    with Bus() as bus, pytest.raises(NodeError, match="no velocity commands"):
        bus.add(MecanumNode(hardware=Joints(), joints=("fl", "fr", "rl", "sl")), "drive")
    with Bus() as bus, pytest.raises(NodeError, match="three finite"):
        bus.add(VelocityNode(base=Body(), initial_linear=(1.0,)), "drive")
