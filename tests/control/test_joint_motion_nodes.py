"""Joints moved one by one, by number and by name, with ideal joints."""

from __future__ import annotations

import math

import numpy as np
import pytest
from tests.control.two_joint_arm import (
    ACCELERATION,
    ARM,
    NAMES,
    SPEED,
    command_by_name,
    command_by_number,
    is_within_limits,
    joint_list,
    make_arm,
    make_node,
)
from tests.harness.bus import BusHarness, Goal
from tests.harness.hardware import FakeHardware

from roboyard.control.joint_claims import JointClaims
from roboyard.control.nodes import (
    GripperNode,
    IndexedJointMotionNode,
    JointCommandNode,
    JointTrajectoryNode,
    NamedJointMotionNode,
)
from roboyard.control.nodes.joint_motion import JointMotionNode
from roboyard.messages import action, msg, srv


def start_gripping(harness: BusHarness, position: float) -> Goal:
    command = msg.GripperCommand(position=position)
    return harness.start_goal("/gripper/gripper_cmd", action.GripperCommand, command=command)


BOTH = pytest.mark.parametrize(
    ("kind", "command"),
    [(IndexedJointMotionNode, command_by_number), (NamedJointMotionNode, command_by_name)],
    ids=["by number", "by name"],
)


@BOTH
def test_joint_moves_keep_limits_and_velocities_time_out(harness: BusHarness, kind, command) -> None:
    arm, _ = make_node(harness, kind)
    command(harness, "position", 1.5)
    harness.run_for(1.4 / SPEED + SPEED / ACCELERATION + 0.01)  # the least time there is
    assert arm.position == pytest.approx([1.5, -0.1])
    command(harness, "velocity", -0.8)
    harness.run_for(0.6)
    assert arm.position[0] == pytest.approx(1.5 - 0.8 * 0.6 + 0.8**2 / 2 / ACCELERATION, abs=0.02)
    harness.run_for(1.0)
    stop_position = arm.position.copy()
    harness.run_for(1.0)
    assert (arm.position == stop_position).all()
    command(harness, "position", 5.0)
    harness.run_for(4.0)
    assert arm.position[0] == 2.0, "its limit"
    assert is_within_limits(arm)


@BOTH
def test_joint_moves_stop_and_pause_within_limits(harness: BusHarness, kind, command) -> None:
    arm, _ = make_node(harness, kind)
    command(harness, "position", 1.5)
    harness.run_for(0.8)
    harness.start_call("/moves/pause", srv.SetBool, data=True)
    harness.run_for(0.6)
    stop_position = arm.position.copy()
    harness.run_for(0.5)
    assert (arm.position == stop_position).all()
    harness.start_call("/moves/pause", srv.SetBool, data=False)
    harness.run_for(0.3)
    assert arm.position[0] > stop_position[0] + 0.05
    response = harness.start_call("/moves/stop", srv.Trigger)
    harness.run_for(0.6)
    assert response.result.success
    stop_position = arm.position.copy()
    harness.run_for(1.0)
    assert (arm.position == stop_position).all()
    assert stop_position[0] < 1.4
    assert is_within_limits(arm)


@pytest.mark.parametrize(
    ("quantity", "rows", "reason"),
    [
        ("position", [("turn", "rad", 0.5), ("arm_joint_9", "rad", 0.0)], "no joint 'arm_joint_9'"),
        ("position", [("turn", "deg", 0.5)], "unit 'deg' for turn ('rad')"),
        ("position", [("slide", "rad", 0.5)], "unit 'rad' for slide ('m')"),
        ("position", [("turn", "rad", 0.5), ("turn", "rad", 0.6)], "turn twice"),
        ("position", [("turn", "rad", math.inf)], "inf for turn"),
        ("velocity", [("turn", "rad", 0.5)], "unit 'rad' for turn ('s^-1 rad')"),
        ("velocity", [("slide", "s^-1 rad", 0.5)], "'s^-1 m'"),
        ("velocity", [("turn", "s^-1 rad", -math.inf)], "-inf for turn"),
        ("velocity", [("", "s^-1 rad", 0.1)], "no joint ''"),
    ],
)  # fmt: skip
def test_bad_joint_lists_are_refused_as_a_whole(harness: BusHarness, quantity: str, rows: list, reason: str) -> None:
    arm, _ = make_node(harness, NamedJointMotionNode)
    harness.publish(f"/{quantity}_command", joint_list(quantity, *rows))
    harness.run_for(0.3)
    assert any(reason in line for line in harness.log_lines), harness.log_lines
    assert (np.array(arm.history) == [0.1, -0.1]).all()


def test_nan_in_joint_list_leaves_its_joint_alone(harness: BusHarness) -> None:
    arm, _ = make_node(harness, NamedJointMotionNode)
    harness.publish("/position_command", joint_list("position", ("turn", "rad", 0.4), ("slide", "m", math.nan)))
    harness.run_for(1.5)
    assert arm.position == pytest.approx([0.4, -0.1])
    harness.publish("/position_command", joint_list("position", ("turn", "rad", 1.4)))
    harness.publish("/position_command", joint_list("position", ("turn", "rad", math.nan), ("slide", "m", 0.2)))
    harness.run_for(3.0)
    assert arm.position == pytest.approx([1.4, 0.2]), "the first joint went on"


def test_bad_joint_numbers_and_values_are_refused(harness: BusHarness) -> None:
    arm, _ = make_node(harness, IndexedJointMotionNode)
    for number, value in ((0, 0.5), (3, 0.5), (1, math.nan), (2, math.inf)):
        harness.publish("/move_position", msg.IDAndFloat(id=number, value=value))
    harness.run_for(0.3)
    assert any("joint 0" in line and "there are 1 to 2" in line for line in harness.log_lines), harness.log_lines
    assert (np.array(arm.history) == [0.1, -0.1]).all()


def test_joint_moves_and_a_trajectory_are_exclusive(harness: BusHarness) -> None:
    arm, claims = make_arm(harness), JointClaims()
    parts = {"hardware": arm, "description": ARM, "joints": NAMES, "joint_claims": claims}
    harness.add(JointTrajectoryNode(**parts), "jtc")
    harness.add(NamedJointMotionNode(hold_position=False, **parts), "moves")
    point = msg.JointTrajectoryPoint(
        positions=np.array([1.0, 0.0]), velocities=np.zeros(2), time_from_start=msg.Duration(sec=3)
    )
    path = msg.JointTrajectory(joint_names=list(NAMES), points=[point])
    goal = harness.start_goal("/jtc/follow_joint_trajectory", action.FollowJointTrajectory, trajectory=path)
    harness.run_for(1.0)
    command_by_name(harness, "position", -1.0)
    harness.run_for(0.2)
    assert arm.position[0] > 0.2, "refused: the trajectory goes on"
    harness.start_call("/moves/stop", srv.Trigger)
    harness.wait_for(goal, timeout=0.5)
    assert goal.result.error_string == "stopped"
    command_by_name(harness, "position", -1.0)
    harness.run_for(3.0)
    assert arm.position[0] == pytest.approx(-1.0)


def test_set_points_and_grippers_respect_joint_claims(harness: BusHarness) -> None:
    arm, claims = make_arm(harness), JointClaims()
    parts = {"hardware": arm, "description": ARM, "joint_claims": claims}
    harness.add(IndexedJointMotionNode(joints=NAMES, **parts), "moves")
    harness.add(JointCommandNode(joints=NAMES, **parts), "commands")
    harness.add(GripperNode(joints=("slide",), **parts), "gripper")
    command_by_number(harness, "position", 1.0)
    harness.run_for(0.2)
    harness.publish("/turn/cmd", msg.Float64(data=-1.0))
    rejected = start_gripping(harness, 0.5)
    harness.run_for(2.0)
    assert not rejected.succeeded
    assert arm.position == pytest.approx([1.0, -0.1])
    assert sum("being moved by /moves" in line for line in harness.log_lines) == 2, harness.log_lines
    harness.publish("/turn/cmd", msg.Float64(data=0.4))  # at rest the next one takes them
    gripped = start_gripping(harness, 0.5)
    harness.run_for(0.5)
    assert gripped.succeeded
    assert arm.position == pytest.approx([0.4, 0.5])


def test_loaded_joint_moves_continue() -> None:
    def run_half() -> tuple[BusHarness, FakeHardware, JointMotionNode]:
        harness = BusHarness()
        arm, node = make_node(harness, IndexedJointMotionNode)
        command_by_number(harness, "position", 1.0)
        harness.run_for(0.4)
        command_by_number(harness, "velocity", 0.3)
        harness.run_for(0.2)
        return harness, arm, node

    harness, arm, node = run_half()
    state = node.save_state()
    with harness:
        harness.run_for(1.5)
    harness, restored, node = run_half()
    node.load_state(state)
    with harness:
        harness.run_for(1.5)
    assert (restored.position == arm.position).all()
