"""The leaf WalkToPose: velocities towards a pose, arrival, and standstill after the leaf was halted."""

import math
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.harness.missions import MissionHarness, write_tree
from tests.harness.robots import KinematicRobot

import roboyard as ry
from roboyard.behavior.nodes import TreeExecutorNode
from roboyard.geometry import SE2
from roboyard.messages import msg
from roboyard.walking.nodes.walk_to_pose import velocity_towards


def walking_robot() -> KinematicRobot:
    """A robot that walks exactly as commanded from a pose that is not the origin."""
    robot = KinematicRobot(pose=SE2(1.0, 2.0, 3.0), rate=50.0)
    robot.publish_transforms = False
    return robot


@given(
    st.floats(-5, 5), st.floats(-5, 5), st.floats(-3.1, 3.1), st.floats(0.01, 1.0), st.floats(0.05, 2.0)
)  # fmt: skip
def test_velocity_towards_reaches_any_pose_within_speed_limits(
    x: float, y: float, yaw: float, speed: float, angular_speed: float
) -> None:
    target = remaining = SE2(x, y, yaw)
    period, distance = 0.1, math.inf
    for _ in range(round((math.hypot(x, y) / speed + abs(yaw) / angular_speed + 10.0) / period)):
        forward, left, rotation = velocity_towards(remaining, speed, angular_speed)
        assert math.hypot(forward, left) <= speed * (1 + 1e-9)
        assert abs(rotation) <= angular_speed * (1 + 1e-9)
        remaining = SE2(forward * period, left * period, rotation * period).inverse() @ remaining
        distance, before = math.hypot(remaining.x, remaining.y), distance
        assert distance <= before + 1e-9
    assert distance < 0.01
    assert abs(remaining.theta) < 0.01, target


@pytest.mark.parametrize("saved_at", [None, 2.05], ids=["whole", "saved"])
def test_walk_leaf_reaches_a_goal_relative_to_the_start_pose(tmp_path: Path, saved_at: float | None) -> None:
    body = '<WalkToPose goal="0.4;-0.2;1.2" speed="0.1"/>'
    mission = MissionHarness(tmp_path, body, walking_robot())
    goal = SE2(1.0, 2.0, 3.0) @ SE2(0.4, -0.2, 1.2)
    if saved_at is not None:  # saved and continued on the way
        mission.run_for(saved_at)
        saved, mission = mission.bus.save_state(), MissionHarness(tmp_path, body, walking_robot())
        mission.bus.load_state(saved)
    assert mission.run_to_end(12.0) == "SUCCESS"
    error = mission.robot.pose.inverse() @ goal
    assert math.hypot(error.x, error.y) <= 0.011
    assert abs(error.theta) <= 0.021
    assert mission.robot.twist == (0.0, 0.0, 0.0)


def test_walk_leaf_stops_when_halted_or_timed_out(tmp_path: Path) -> None:
    for body in (
        '<Timeout msec="1000"><WalkToPose goal="3;0;0"/></Timeout>',
        '<WalkToPose goal="3;0;0" time_allowance="1"/>',
    ):
        mission = MissionHarness(tmp_path, body, walking_robot())
        assert mission.run_to_end(2.0) == "FAILURE"
        assert mission.robot.twist == (0.0, 0.0, 0.0)
        assert len(mission.robot.commands) > 5


def test_walk_leaf_moves_a_hexapod_to_its_goal(tmp_path: Path) -> None:
    file = write_tree(tmp_path, '<WalkToPose goal="0.15;0.05;0.3" speed="0.1" angular_speed="0.3"/>')
    with ry.Run("empty", record=False) as run:
        hexapod = run.add_robot("akrobat")
        hexapod.add_node(TreeExecutorNode(file=str(file), start_time=5.0), "mission")
        status: list[str] = []
        run.bus.subscribe("/mission/status", msg.String, "test", lambda message: status.append(message.data))
        run.run_until(lambda: status[-1:] in (["SUCCESS"], ["FAILURE"]), timeout=20)
        pose = hexapod.truth.pose
    assert status[-1] == "SUCCESS"
    assert math.hypot(pose.translation[0] - 0.15, pose.translation[1] - 0.05) < 0.03
    assert abs(pose.rpy[2] - 0.3) < 0.05
