"""The control nodes on a bus, with hardware made of plain numbers."""

from __future__ import annotations

import math

import numpy as np
import pytest
from tests.harness.bus import BusHarness, twist
from tests.harness.hardware import FakeHardware

from roboyard.bus import NodeError
from roboyard.control.nodes import DifferentialDriveNode, JointStateNode, RobotStateNode
from roboyard.description.model import Axis, CommandMode, Joint, Link, Model
from roboyard.errors import ConfigError
from roboyard.geometry import SE3
from roboyard.kinematics.forward_kinematics import ForwardKinematics
from roboyard.messages import msg

WHEELS = ("left_wheel_joint", "right_wheel_joint")


def make_wheels(harness: BusHarness, mode: CommandMode = "velocity") -> FakeHardware:
    return FakeHardware(WHEELS, lambda: harness.now_ns, modes=[mode])


def make_drive(harness: BusHarness, **parameters: object) -> tuple[FakeHardware, DifferentialDriveNode]:
    wheels = make_wheels(harness)
    return wheels, harness.add(
        DifferentialDriveNode(hardware=wheels, wheel_radius=0.1, track=0.4, **parameters), "drive"
    )


def test_drive_reaches_wheel_speeds_of_the_kinematics(harness: BusHarness) -> None:
    wheels, _ = make_drive(harness, slip_factor=1.5, acceleration=2.0, timeout=5.0)
    harness.publish("/cmd_vel_out", twist(0.5, 0.4))
    harness.run_for(2.0)
    assert wheels.velocity == pytest.approx([(0.5 - 0.4 * 0.3) / 0.1, (0.5 + 0.4 * 0.3) / 0.1])


def test_drive_keeps_acceleration_limits_at_the_wheels(harness: BusHarness) -> None:
    wheels, _ = make_drive(harness, acceleration=0.8, deceleration=1.6)
    harness.publish("/cmd_vel_out", twist(5.0))
    harness.run_for(3.0)
    speed = np.array([item.setpoints[item.joints.index(WHEELS[0])] for item in wheels.written]) * 0.1
    assert speed.max() <= 1.0 + 1e-12, "the parameter speed"
    rate = np.diff(speed) * 50.0
    assert rate.max() <= 0.8 + 1e-9
    assert rate.min() >= -1.6 - 1e-9


def test_drive_brakes_after_command_timeout(harness: BusHarness) -> None:
    wheels, _ = make_drive(harness, timeout=0.3, deceleration=2.0, acceleration=2.0)
    harness.publish("/cmd_vel_out", twist(0.4))
    harness.run_for(0.3)
    assert wheels.velocity[0] > 3.0
    harness.run_for(0.02 + 0.2 + 0.04)
    assert not wheels.velocity.any()


def test_drive_drops_non_finite_commands(harness: BusHarness) -> None:
    wheels, _ = make_drive(harness)
    harness.publish("/cmd_vel_out", twist(math.nan))
    harness.publish("/cmd_vel_out", twist(0.0, math.inf))
    harness.run_for(1.0)
    assert not wheels.velocity.any()
    assert any("not finite" in line for line in harness.log_lines)


def test_drive_stops_wheels_when_it_leaves_the_bus(harness: BusHarness) -> None:
    wheels, node = make_drive(harness)
    harness.publish("/cmd_vel_out", twist(1.0))
    harness.run_for(0.4)
    assert wheels.velocity.any()
    harness.bus.remove(node)
    assert not wheels.velocity.any()


def test_drive_parameters_change_while_driving(harness: BusHarness) -> None:
    wheels, node = make_drive(harness, timeout=9.0)
    harness.publish("/cmd_vel_out", twist(1.0))
    harness.run_for(2.0)
    node.set_parameter("speed", 0.25)
    harness.run_for(2.0)
    assert wheels.velocity == pytest.approx([2.5, 2.5])
    with pytest.raises(ConfigError):
        node.set_parameter("wheel_radius", 0.0)


def test_drive_names_wheel_without_velocity_mode(harness: BusHarness) -> None:
    with pytest.raises(NodeError, match=r"left_wheel_joint.*velocity"):
        harness.add(DifferentialDriveNode(hardware=make_wheels(harness, "effort")), "drive")


def test_joint_states_carry_readings_and_their_time(harness: BusHarness) -> None:
    wheels, _ = make_drive(harness, timeout=9.0)
    harness.add(JointStateNode(hardware=wheels, rate=10.0), "joint_states")
    harness.publish("/cmd_vel_out", twist(0.2))
    harness.run_until(1.0)
    assert len(harness.published("/joint_states")) == 11
    last = harness.last("/joint_states")
    assert (last.header.stamp.sec, last.header.stamp.nanosec) == (1, 0)
    assert last.name == list(wheels.joint_names)
    assert last.velocity == pytest.approx([2.0, 2.0])
    assert not last.position.flags.writeable


def make_arm_model() -> Model:
    axis = (Axis((0.0, 0.0, 1.0)),)
    joints = (
        Joint("shoulder", "revolute", "base_link", "upper", SE3.from_xyz_rpy((0, 0, 1)), SE3.identity(), axis),
        Joint("elbow", "prismatic", "upper", "lower", SE3.from_xyz_rpy((1, 0, 0)), SE3.identity(), axis),
        Joint("flange", "fixed", "lower", "tool", SE3.from_xyz_rpy((0, 0, 0.5), (1, 0, 0)), SE3.identity()),
    )
    return Model("arm", tuple(Link(n, SE3.identity()) for n in ("base_link", "upper", "lower", "tool")), joints)


def test_robot_state_publishes_the_forward_kinematics(harness: BusHarness) -> None:
    model = make_arm_model()
    harness.add(RobotStateNode(description=model), "robot_state", frame_prefix="a/")
    harness.publish("/joint_states", msg.JointState(name=["elbow", "other"], position=np.array([0.3, 9.0])))
    harness.run_for(0.1)
    stamped = msg.JointState(name=["shoulder"], position=np.array([0.7]))
    stamped.header.stamp.nanosec = 100_000_000
    harness.publish("/joint_states", stamped)
    harness.run_for(0.1)
    found = ForwardKinematics(model).link_poses({"shoulder": 0.7, "elbow": 0.3})
    for name in ("upper", "lower", "tool"):
        assert harness.bus.transforms.lookup("a/base_link", f"a/{name}").almost_equal(found[name], 1e-12)


def test_robot_state_limits_its_rate(harness: BusHarness) -> None:
    wheels, _ = make_drive(harness)
    harness.add(JointStateNode(hardware=wheels, rate=100.0), "joint_states")
    axis = (Axis((0.0, 1.0, 0.0)),)
    joint = Joint("left_wheel_joint", "continuous", "a", "b", SE3.identity(), SE3.identity(), axis)
    model = Model("m", (Link("a", SE3.identity()), Link("b", SE3.identity())), (joint,))
    harness.add(RobotStateNode(description=model, rate=20.0), "robot_state")
    harness.run_for(2.0)
    assert harness.bus.topics["/tf"].count == 41
