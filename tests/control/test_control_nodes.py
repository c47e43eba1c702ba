"""The control nodes on a bus, with hardware made of plain numbers."""

from __future__ import annotations

import math

import numpy as np
import pytest

from roboyard.bus import Bus, NodeError
from roboyard.control.forward import ForwardKinematics
from roboyard.control.nodes import DriveNode, JointStateNode, RobotStateNode
from roboyard.description.model import Axis, Joint, Link, Model
from roboyard.errors import ConfigError
from roboyard.geometry import SE3
from roboyard.hardware.interface import CommandMode, JointCommand, JointReadings
from roboyard.messages import msg

SECOND = 1_000_000_000


class Wheels:
    """Ideal wheels: they turn as told from the moment they are told."""

    joint_names = ("left_wheel_joint", "right_wheel_joint")

    def __init__(self, bus: Bus) -> None:
        self.bus = bus
        self.speed = np.zeros(2)
        self.angle = np.zeros(2)
        self.since_ns = 0
        self.history: list[tuple[int, float, float]] = []

    def command_modes(self, joint: str) -> tuple[CommandMode, ...]:
        return ("velocity",)

    def read(self) -> JointReadings:
        now = self.bus.now_ns
        return JointReadings(
            now, self.angle + self.speed * (now - self.since_ns) * 1e-9, self.speed.copy(), np.zeros(2)
        )

    def write(self, command: JointCommand) -> None:
        assert command.mode == "velocity"
        self.angle = self.read().position
        self.since_ns = self.bus.now_ns
        for joint, value in zip(command.joints, command.values, strict=True):
            self.speed[self.joint_names.index(joint)] = value
        self.history.append((self.bus.now_ns, float(self.speed[0]), float(self.speed[1])))


def twist(vx: float, wz: float = 0.0) -> object:
    return msg.Twist(linear=msg.Vector3(x=vx), angular=msg.Vector3(z=wz))


def driven(bus: Bus, **parameters: object) -> tuple[Wheels, DriveNode]:
    wheels = Wheels(bus)
    node = bus.add(DriveNode(hardware=wheels, wheel_radius=0.1, track=0.4, **parameters), "drive")
    return wheels, node


def sender(bus: Bus):
    return bus.publisher("/cmd_vel_out", msg.Twist, "/test")


def test_a_steady_command_ends_in_the_wheel_speeds_of_the_kinematics() -> None:
    with Bus() as bus:
        wheels, _ = driven(bus, slip_factor=1.5, acceleration=2.0, timeout=5.0)
        sender(bus).publish(twist(0.5, 0.4))
        bus.executor.run_for(2.0)
        assert wheels.speed == pytest.approx([(0.5 - 0.4 * 0.3) / 0.1, (0.5 + 0.4 * 0.3) / 0.1])


def test_acceleration_at_the_wheels_keeps_the_limit() -> None:
    with Bus() as bus:
        wheels, _ = driven(bus, acceleration=0.8, deceleration=1.6)
        sender(bus).publish(twist(5.0))
        bus.executor.run_for(3.0)
        speed = np.array([left for _, left, _ in wheels.history]) * 0.1
        assert speed.max() <= 1.0 + 1e-12, "the parameter speed"
        rate = np.diff(speed) * 50.0
        assert rate.max() <= 0.8 + 1e-9
        assert rate.min() >= -1.6 - 1e-9


def test_silence_brakes_within_the_timeout_and_the_ramp() -> None:
    with Bus() as bus:
        wheels, _ = driven(bus, timeout=0.3, deceleration=2.0, acceleration=2.0)
        sender(bus).publish(twist(0.4))
        bus.executor.run_for(0.3)
        assert wheels.speed[0] > 3.0
        bus.executor.run_for(0.02 + 0.2 + 0.04)
        assert not wheels.speed.any()


def test_commands_that_are_not_finite_are_dropped() -> None:
    with Bus() as bus:
        wheels, _ = driven(bus)
        lines: list[str] = []
        bus.log_sinks.append(lambda record: lines.append(record.text))
        out = sender(bus)
        out.publish(twist(math.nan))
        out.publish(twist(0.0, math.inf))
        bus.executor.run_for(1.0)
        assert not wheels.speed.any()
        assert any("not finite" in line for line in lines)


def test_leaving_the_bus_stops_the_wheels() -> None:
    bus = Bus()
    wheels, node = driven(bus)
    sender(bus).publish(twist(1.0))
    bus.executor.run_for(0.4)
    assert wheels.speed.any()
    bus.remove(node)
    assert not wheels.speed.any()
    bus.close()


def test_parameters_change_while_driving_and_nonsense_is_refused() -> None:
    with Bus() as bus:
        wheels, node = driven(bus, timeout=9.0)
        sender(bus).publish(twist(1.0))
        bus.executor.run_for(2.0)
        node.set_parameter("speed", 0.25)
        bus.executor.run_for(2.0)
        assert wheels.speed == pytest.approx([2.5, 2.5])
        with pytest.raises(ConfigError):
            node.set_parameter("wheel_radius", 0.0)


def test_a_wheel_that_takes_no_velocity_is_named() -> None:
    class Passive(Wheels):
        def command_modes(self, joint: str) -> tuple[CommandMode, ...]:
            return ("effort",)

    with Bus() as bus, pytest.raises(NodeError, match=r"left_wheel_joint.*velocity"):
        bus.add(DriveNode(hardware=Passive(bus)), "drive")


def test_joint_states_carry_the_readings_and_their_time() -> None:
    with Bus() as bus:
        wheels, _ = driven(bus, timeout=9.0)
        bus.add(JointStateNode(hardware=wheels, rate=10.0), "joint_states")
        got: list[object] = []
        bus.tap(lambda topic, message, node, time_ns: got.append(message) if topic.name == "/joint_states" else None)
        sender(bus).publish(twist(0.2))
        bus.executor.run_until(SECOND)
        assert len(got) == 11
        last = got[-1]
        assert (last.header.stamp.sec, last.header.stamp.nanosec) == (1, 0)
        assert last.name == list(wheels.joint_names)
        assert last.velocity == pytest.approx([2.0, 2.0])
        assert not last.position.flags.writeable


def arm() -> Model:
    axis = (Axis((0.0, 0.0, 1.0)),)
    joints = (
        Joint("shoulder", "revolute", "base_link", "upper", SE3.from_xyz_rpy((0, 0, 1)), SE3.identity(), axis),
        Joint("elbow", "prismatic", "upper", "lower", SE3.from_xyz_rpy((1, 0, 0)), SE3.identity(), axis),
        Joint("flange", "fixed", "lower", "tool", SE3.from_xyz_rpy((0, 0, 0.5), (1, 0, 0)), SE3.identity()),
    )
    return Model("arm", tuple(Link(n, SE3.identity()) for n in ("base_link", "upper", "lower", "tool")), joints)


def test_the_tree_on_the_bus_is_the_forward_kinematics() -> None:
    model = arm()
    with Bus() as bus:
        bus.add(RobotStateNode(description=model), "robot_state", frame_prefix="a/")
        joints = bus.publisher("/joint_states", msg.JointState, "/test")
        joints.publish(msg.JointState(name=["elbow", "other"], position=np.array([0.3, 9.0])))
        bus.executor.run_for(0.1)
        stamped = msg.JointState(name=["shoulder"], position=np.array([0.7]))
        stamped.header.stamp.nanosec = 100_000_000
        joints.publish(stamped)
        bus.executor.run_for(0.1)
        found = ForwardKinematics(model).link_poses({"shoulder": 0.7, "elbow": 0.3})
        for name in ("upper", "lower", "tool"):
            assert bus.transforms.lookup("a/base_link", f"a/{name}").almost_equal(found[name], 1e-12)


def test_transforms_are_thinned_to_the_rate() -> None:
    with Bus() as bus:
        wheels, _ = driven(bus)
        bus.add(JointStateNode(hardware=wheels, rate=100.0), "joint_states")
        axis = (Axis((0.0, 1.0, 0.0)),)
        joint = Joint("left_wheel_joint", "continuous", "a", "b", SE3.identity(), SE3.identity(), axis)
        model = Model("m", (Link("a", SE3.identity()), Link("b", SE3.identity())), (joint,))
        bus.add(RobotStateNode(description=model, rate=20.0), "robot_state")
        bus.executor.run_for(2.0)
        assert bus.topics["/tf"].count == 41
