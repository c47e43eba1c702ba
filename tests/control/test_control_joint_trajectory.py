"""The joint trajectory node on a bus, with ideal joints."""

from __future__ import annotations

import math

import numpy as np
import pytest

from roboyard.bus import Bus, Node, NodeError
from roboyard.control.nodes import JointTrajectoryNode
from roboyard.description.model import Axis, Joint, Limits, Link, Model
from roboyard.geometry import SE3
from roboyard.hardware.interface import CommandMode, JointCommand, JointReadings
from roboyard.messages import action, msg

NAMES = ("shoulder", "elbow")
ARM = Model(
    "arm",
    tuple(Link(name, SE3.identity()) for name in ("base", "upper", "lower")),
    tuple(
        Joint(
            name, "revolute", parent, child, SE3.identity(), SE3.identity(), (Axis((0, 0, 1), Limits(-2.0, 2.0, 3.0)),)
        )
        for name, parent, child in zip(NAMES, ("base", "upper"), ("upper", "lower"), strict=True)
    ),
)


class Arm:
    """Joints that are where they are told; ``stuck`` ones stay."""

    joint_names = ("other", *NAMES)

    def __init__(self, bus: Bus) -> None:
        self.bus, self.position = bus, np.array([9.0, 0.1, -0.1])
        self.stuck: set[str] = set()
        self.history: list[np.ndarray] = []

    def command_modes(self, joint: str) -> tuple[CommandMode, ...]:
        return ("position",)

    def read(self) -> JointReadings:
        return JointReadings(self.bus.now_ns, self.position.copy(), np.zeros(3), np.zeros(3))

    def write(self, command: JointCommand) -> None:
        for joint, value in zip(command.joints, command.values, strict=True):
            if joint not in self.stuck:
                self.position[self.joint_names.index(joint)] = value
        self.history.append(self.position[1:].copy())


def made(bus: Bus, **parameters: object) -> tuple[Arm, JointTrajectoryNode]:
    arm = Arm(bus)
    node = bus.add(JointTrajectoryNode(hardware=arm, description=ARM, joints=NAMES, **parameters), "jtc")
    return arm, node


def trajectory(*rows: tuple[float, list[float]], names: tuple[str, ...] = NAMES, speeds: bool = True) -> object:
    return msg.JointTrajectory(
        joint_names=list(names),
        points=[
            msg.JointTrajectoryPoint(
                positions=np.array(row), velocities=np.zeros(len(row) if speeds else 0),
                time_from_start=msg.builtin_interfaces.Duration(sec=int(t), nanosec=round((t % 1) * 1e9)),
            )
            for t, row in rows
        ],
    )  # fmt: skip


class Client:
    """Sends goals to the action and keeps what becomes of them."""

    def __init__(self, bus: Bus) -> None:
        self.bus, self.feedback = bus, []
        node = bus.add(Node(), "client")
        self.client = node.action_client("/jtc/follow_joint_trajectory", action.FollowJointTrajectory)

    def send(self, path: object, **more: object):
        goal = action.FollowJointTrajectory.Goal(trajectory=path, **more)
        return self.client.send(goal, feedback=self.feedback.append)


def test_it_goes_there_smoothly_and_says_so() -> None:
    with Bus() as bus:
        arm, _ = made(bus)
        client = Client(bus)
        goal = client.send(trajectory((1.0, [1.0, -1.0]), (2.0, [0.5, 0.0])))
        bus.executor.run_for(1.0)
        assert arm.position[1:] == pytest.approx([1.0, -1.0], abs=0.05)
        bus.executor.run_for(1.5)
        assert goal.done()
        assert goal.succeeded
        assert arm.position[1:] == pytest.approx([0.5, 0.0])
        steps = np.diff(np.array(arm.history), axis=0) * 100.0
        assert np.abs(np.diff(steps, axis=0)).max() < 0.15, "no jump of speed: bounded acceleration"
        assert 30 <= len(client.feedback) <= 45
        assert arm.position[0] == 9.0


def test_a_cancel_stops_where_the_joints_are_and_a_newer_goal_takes_over() -> None:
    with Bus() as bus:
        arm, _ = made(bus)
        client = Client(bus)
        first = client.send(trajectory((2.0, [1.0, -1.0])))
        bus.executor.run_for(1.0)
        first.cancel()
        bus.executor.run_for(0.1)
        here = arm.position.copy()
        bus.executor.run_for(1.0)
        assert (arm.position == here).all()
        assert first.done()
        assert not first.succeeded
        second = client.send(trajectory((1.0, [1.0, 1.0])))
        bus.executor.run_for(0.5)
        third = client.send(trajectory((1.0, [-1.0, 0.0])))
        bus.executor.run_for(2.0)
        assert second.done()
        assert not second.succeeded
        assert "newer goal" in second.result.error_string
        assert third.succeeded
        assert arm.position[1:] == pytest.approx([-1.0, 0.0])
        assert np.abs(np.diff(np.array(arm.history), axis=0)).max() < 0.05, "taken over without a jump"


def test_what_is_off_its_path_or_its_goal_is_told_with_its_cause() -> None:
    codes = action.FollowJointTrajectory.Result
    with Bus() as bus:
        arm, _ = made(bus, goal_time=0.2)
        client = Client(bus)
        arm.stuck = {"elbow"}
        tolerance = [msg.control_msgs.JointTolerance(name="elbow", position=0.05)]
        off_path = client.send(trajectory((1.0, [1.0, 1.0])), path_tolerance=tolerance)
        bus.executor.run_for(2.0)
        assert off_path.result.error_code == codes.PATH_TOLERANCE_VIOLATED
        assert "elbow" in off_path.result.error_string
        off_goal = client.send(trajectory((1.0, [0.0, 1.0])))
        bus.executor.run_for(3.0)
        assert off_goal.result.error_code == codes.GOAL_TOLERANCE_VIOLATED


@pytest.mark.parametrize(
    ("path", "reason"),
    [
        (trajectory((1.0, [0.0]), names=("wrist",)), "INVALID_JOINTS"),
        (trajectory((1.0, [0.0, 0.0]), names=("elbow", "elbow")), "INVALID_JOINTS"),
        (trajectory(), "INVALID_GOAL"),
        (trajectory((3.0, [2.5, 0.0])), "from -2 to 2"),
        (trajectory((0.1, [1.5, 0.0])), "more time"),
        (trajectory((0.0, [1.5, 0.0]), (1.0, [1.5, 0.0])), "would jump"),
        (trajectory((1.0, [math.nan, 0.0])), "finite"),
        (trajectory((1.0, [0.5, 0.0]), (1.0, [0.6, 0.0])), "later"),
        (trajectory((1.0, [0.5, 0.0]), (0.5, [0.6, 0.0])), "later"),
        (trajectory((1.0, [0.5, 0.0, 0.0]), names=(*NAMES, "wrist")), "INVALID_JOINTS"),
        (trajectory((1.0, [0.5])), "one for each joint"),
        (trajectory((1.0, [math.inf, 0.0])), "finite"),
    ],
)
def test_impossible_goals_are_refused_with_a_reason(path: object, reason: str) -> None:
    with Bus() as bus:
        arm, _ = made(bus)
        lines = []
        bus.log_sinks.append(lambda record: lines.append(record.text))
        goal = Client(bus).send(path)
        bus.executor.run_for(0.5)
        assert not goal.succeeded
        assert any(reason in line for line in lines), lines
        assert arm.position[1:] == pytest.approx([0.1, -0.1]), "they stay"


def test_a_topic_moves_some_joints_and_the_state_goes_on() -> None:
    def half_way() -> tuple[Bus, Arm, JointTrajectoryNode]:
        bus = Bus()
        arm, node = made(bus)
        bus.publisher("/jtc/joint_trajectory", msg.JointTrajectory, "/t").publish(
            trajectory((1.0, [0.8]), names=("elbow",), speeds=False)
        )
        bus.executor.run_for(0.5)
        return bus, arm, node

    bus, arm, node = half_way()
    state = node.save()
    with bus:
        bus.executor.run_for(1.0)
        assert arm.position[1:] == pytest.approx([0.1, 0.8])
    bus, again, node = half_way()
    node.load(state)
    with bus:
        bus.executor.run_for(1.0)
        assert (again.position == arm.position).all()


def test_wrong_groups_are_refused() -> None:
    with Bus() as bus, pytest.raises(NodeError, match="no joints"):
        bus.add(JointTrajectoryNode(hardware=Arm(bus), description=ARM), "jtc")
    with Bus() as bus, pytest.raises(NodeError, match="velocity"):
        made(bus, mode="velocity")
