"""Joints that a client jogs, by number and by name, after other sources moved them."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.control.two_joint_arm import (
    ACCELERATION,
    ARM,
    NAMES,
    command_by_name,
    command_by_number,
    is_within_limits,
    make_arm,
    make_node,
)
from tests.harness.bus import BusHarness, Goal

from roboyard.bus import Node
from roboyard.control.joint_claims import JointClaims
from roboyard.control.joint_limits import JointAccelerationLimits
from roboyard.control.nodes import IndexedJointMotionNode, JointCommandNode, JointTrajectoryNode, NamedJointMotionNode
from roboyard.messages import action, msg, srv


class Jogger(Node):
    """A client that steps joints from the newest message of joint_targets."""

    def setup(self) -> None:
        self.targets: list[float] = []
        self.count = 0
        self.subscribe("joint_targets", msg.JointState, self._on_targets)
        self.positions = self.publisher("move_position", msg.IDAndFloat)

    def _on_targets(self, message: object) -> None:
        self.targets, self.count = message.position.tolist(), self.count + 1  # type: ignore[attr-defined]

    def step(self, number: int, step: float) -> None:
        self.targets[number - 1] += step
        self.positions.publish(msg.IDAndFloat(id=number, value=self.targets[number - 1]))


class JoggingHarness(BusHarness):
    """An arm that a trajectory node, set-points and a node for single joints move, and a client that jogs it."""

    def __init__(self) -> None:
        super().__init__()
        self.arm = make_arm(self)
        parts = {"hardware": self.arm, "description": ARM, "joints": NAMES, "joint_claims": JointClaims()}
        rates = JointAccelerationLimits(dict.fromkeys(NAMES, ACCELERATION))
        self.add(JointTrajectoryNode(acceleration_limits=rates, **parts), "jtc")
        self.add(IndexedJointMotionNode(acceleration_limits=rates, **parts), "moves")
        self.add(JointCommandNode(topics=("/turn/cmd", "/slide/cmd"), **parts), "commands")
        self.jogger = self.add(Jogger(), "jogger")
        self.run_for(0.1)

    def start_trajectory(self, end: tuple[float, float], seconds: int = 3) -> Goal:
        """Send the arm to joint positions."""
        point = msg.JointTrajectoryPoint(
            positions=np.array(end), velocities=np.zeros(2), time_from_start=msg.Duration(sec=seconds)
        )
        trajectory = msg.JointTrajectory(joint_names=list(NAMES), points=[point])
        follow = action.FollowJointTrajectory
        return self.start_goal("/jtc/follow_joint_trajectory", follow, trajectory=trajectory)

    def move(self, method: str, end: tuple[float, float]) -> None:
        """Move the joints by another source than single joints, to rest."""
        if method == "set-points":
            for topic, value in zip(("/turn/cmd", "/slide/cmd"), end, strict=True):
                self.publish(topic, msg.Float64(data=value))
            self.run_for(0.5)
            return
        self.start_trajectory(end)
        self.run_for(4.0 if method == "trajectory" else 1.2)
        if method == "stopped trajectory":
            self.start_call("/moves/stop", srv.Trigger)
            self.run_for(1.0)


@pytest.mark.parametrize("method", ["trajectory", "stopped trajectory", "set-points"])
@given(
    end=st.tuples(st.floats(-1.5, 1.5), st.floats(-1.5, 1.5)),
    number=st.sampled_from([1, 2]),
    step=st.sampled_from([-0.1, -0.05, 0.05, 0.1]),
)
@settings(max_examples=8, deadline=None)
def test_jog_starts_where_another_source_left_the_joints(
    method: str, end: tuple[float, float], number: int, step: float
) -> None:
    with JoggingHarness() as harness:
        harness.move(method, end)
        start_position = harness.arm.position.copy()
        harness.arm.history.clear()
        harness.jogger.step(number, step)
        harness.run_for(2.0)
        displacements = (np.array(harness.arm.history) - start_position) * np.sign(step)
        assert displacements[:, number - 1].min() > -2e-3
        assert displacements[-1, number - 1] == pytest.approx(abs(step), abs=2e-3)
        assert np.abs(displacements[:, 2 - number]).max() < 2e-3, "the other joint stays"


def test_refused_step_is_not_added_to_later_steps() -> None:
    with JoggingHarness() as harness:
        goal = harness.start_trajectory((1.0, 0.0))
        harness.run_for(0.5)
        harness.start_call("/jtc/pause", srv.SetBool, data=True)
        harness.run_for(1.0)
        start_position = harness.arm.position[0]
        for _ in range(5):
            harness.jogger.step(1, 0.1)
            harness.run_for(0.1)
        assert harness.arm.position[0] == start_position
        harness.start_call("/jtc/stop", srv.Trigger)
        harness.start_call("/jtc/pause", srv.SetBool, data=False)
        harness.run_for(0.5)
        assert goal.done()
        start_position = harness.arm.position[0]
        harness.arm.history.clear()
        harness.jogger.step(1, -0.1)
        harness.run_for(1.0)
        assert max(position[0] for position in harness.arm.history) < start_position + 2e-3
        assert harness.arm.position[0] == pytest.approx(start_position - 0.1, abs=2e-3)


def test_targets_are_published_while_a_trajectory_moves_the_joints() -> None:
    with JoggingHarness() as harness:
        before = harness.jogger.count
        harness.move("trajectory", (1.0, 0.5))
        assert 5 < harness.jogger.count - before <= 31, "ten times a second"
        before = harness.jogger.count
        harness.run_for(5.0)
        assert harness.jogger.count == before
        assert harness.jogger.targets == pytest.approx(harness.arm.position.tolist(), abs=2e-3)


@pytest.mark.parametrize(
    ("kind", "command"), [(IndexedJointMotionNode, command_by_number), (NamedJointMotionNode, command_by_name)],
    ids=["by number", "by name"],
)  # fmt: skip
@pytest.mark.parametrize("quantity", ["position", "velocity"])
def test_pushed_joint_starts_from_its_measured_position(harness: BusHarness, kind, command, quantity: str) -> None:
    arm, _ = make_node(harness, kind)
    command(harness, "position", 0.2)
    harness.run_for(1.0)
    arm.stuck.add("turn")  # the drives are off, and a person moves the arm by hand
    arm.place("turn", 1.0)
    harness.run_for(0.5)
    arm.stuck.clear()
    arm.place("turn", 1.0)
    arm.history.clear()
    command(harness, quantity, 1.2 if quantity == "position" else 0.5)
    harness.run_for(0.3)
    assert min(position[0] for position in arm.history) >= 1.0 - 1e-9
    assert is_within_limits(arm)
