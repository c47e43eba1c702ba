"""Leaves that move an arm: the pose of the tool, the goals that are sent, and the reasons of failures."""

import math
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.harness.bus import Abort, FakeActionServer, Outcome, Succeed
from tests.harness.missions import MissionHarness

import roboyard as ry
from roboyard.geometry import SE3
from roboyard.manipulation.nodes.arm_leaves import level_pose, tilted_pose
from roboyard.messages import action
from roboyard.messages.convert import pose_to_se3

T_BASE_FOOT = SE3.from_xyz_rpy((-0.075, 0.0, 0.6), (0.0, 0.0, 0.4))
T_BASE_TOOL = SE3.from_xyz_rpy((0.5, 0.2, 0.9), (0.0, 1.4, 0.3))
T_MAP_BASE = SE3.from_xyz_rpy((3.0, -1.0, 0.0), (0.0, 0.0, 0.7))


SUCCEED = Succeed()


class ArmMission(MissionHarness):
    """A mission for an arm.

    Args:
        folder: Where the tree's file is written.
        body: What the tree consists of.
        outcome: What becomes of the arm's motions.
    """

    def __init__(self, folder: Path, body: str, *, outcome: Outcome = SUCCEED) -> None:
        self.arm = FakeActionServer("move_action", action.MoveGroup, outcome)
        super().__init__(folder, body, nodes=[(self.arm, "arm")], start=0.5)
        self.publish_transforms(
            (T_BASE_FOOT, "base_link", "arm_base"),
            (T_BASE_TOOL, "base_link", "gripper_link"),
            (T_MAP_BASE, "map", "base_link"),
            static=True,
        )


places = st.tuples(st.floats(-3, 3), st.floats(-3, 3), st.floats(0, 2))


@given(places, places, st.floats(0, 0.3), st.floats(-0.2, 0.2))
def test_level_pose_points_the_tool_from_arm_base_at_the_place(
    place: tuple[float, float, float], foot: tuple[float, float, float], short: float, over: float
) -> None:
    pose = level_pose(list(place), list(foot), short, over)
    R = pose.rotation_matrix()
    np.testing.assert_allclose(R[:, 0], [0, 0, -1], atol=1e-12)
    assert abs(R[2, 2]) < 1e-12
    target = pose.translation + short * R[:, 2]
    np.testing.assert_allclose(target, [place[0], place[1], place[2] + over], atol=1e-12)
    direction = np.array(place)[:2] - np.array(foot)[:2]
    np.testing.assert_allclose(R[:2, 2] * np.hypot(*direction), direction, atol=1e-9)


def test_offset_point_is_expressed_in_the_base_frame(tmp_path: Path) -> None:
    mission = ArmMission(tmp_path, '<ComputePointInFront pose="4;2;1.2" distance="0.7" height="0.85" position="{at}"/>')
    assert mission.run_to_end(4.0) == "SUCCESS"
    expected = T_MAP_BASE.inverse() @ np.array([4 + 0.7 * math.cos(1.2), 2 + 0.7 * math.sin(1.2), 0.85])
    np.testing.assert_allclose(mission.entry("at"), expected, atol=1e-9)


def test_reach_leaf_requests_the_level_pose(tmp_path: Path) -> None:
    before, up = (
        '<ReachPosition position="0.7;0.1;0.85" standoff="0.14"/>',
        '<ReachPosition tool="gripper_link" height_offset="0.1" straight="true"/>',
    )
    mission = ArmMission(tmp_path, f"<Sequence>{before}{up}</Sequence>")
    assert mission.run_to_end(4.0) == "SUCCESS"
    first, second = (goal.request for goal in mission.arm.goals)
    foot = T_BASE_FOOT.translation.tolist()
    for request, tool, pose, planner in (
        (first, "fingertips", level_pose([0.7, 0.1, 0.85], foot, 0.14), ""),
        (second, "gripper_link", level_pose(T_BASE_TOOL.translation.tolist(), foot, height_offset=0.1), "LIN"),
    ):
        constraint = request.goal_constraints[0].position_constraints[0]
        requested = pose_to_se3(constraint.constraint_region.primitive_poses[0])
        assert requested.distance(pose) < 1e-9
        assert (constraint.header.frame_id, constraint.link_name, request.planner_id) == ("base_link", tool, planner)


def test_rejected_reach_gives_reason_and_error_code(tmp_path: Path) -> None:
    result = action.MoveGroup.Result()
    result.error_code.val = -4
    body = '<ReachPosition position="0.7;0.1;0.85" error_msg="{why}" error_code_id="{code}"/>'
    mission = ArmMission(tmp_path, body, outcome=Abort(0.0, "it does not follow", "not_followed", result))
    assert mission.run_to_end(4.0) == "FAILURE"
    assert (mission.entry("why"), mission.entry("code")) == ("it does not follow", -4)


@pytest.mark.slow
def test_assistant_fetches_an_object() -> None:
    only = {"mission.parameters": {"goals": ["tea to the table"]}, "faults": [], "randomize": {}}
    spec = ry.scenarios.load_scenario("scitos-tasks", overrides=[f"{key}={value}" for key, value in only.items()])
    outcome = ry.scenarios.run_scenario(spec, ry.scenarios.RunOptions(serve=False, write_files=False))
    assert outcome.metrics["tasks_done"] == 1
    assert outcome.metrics["tasks_incorrect"] == 0
    assert outcome.metrics["collisions"] == 0


angles = st.floats(-math.pi, math.pi)


@given(places, angles, st.floats(0, 1.5), angles)
def test_leaning_pose_tilts_the_tool_away_from_the_arm_base(
    place: tuple[float, float, float], yaw: float, tilt: float, angle: float
) -> None:
    now = SE3.from_xyz_rpy((0.0, 0.0, 0.0), (math.pi, 0.0, angle))
    R = tilted_pose(place, yaw, tilt, [0.0, 0.0, 0.0], now).rotation_matrix()
    np.testing.assert_allclose(R.T @ R, np.eye(3), atol=1e-9)
    assert np.linalg.det(R) == pytest.approx(1.0)
    assert abs(R[2, 0]) < 1e-9  # x is level
    assert abs(abs(R[0, 0] * math.cos(yaw) + R[1, 0] * math.sin(yaw)) - 1.0) < 1e-9  # and along the direction
    assert R[2, 2] == pytest.approx(-math.cos(tilt))
    assert R[:2, 2] @ np.array(place[:2]) >= -1e-9  # away from the foot
    assert R[:, 0] @ now.rotation_matrix()[:, 0] >= -1e-9  # the nearer way round
    exact = tilted_pose(place, yaw, tilt, [0.0, 0.0, 0.0]).rotation_matrix()
    np.testing.assert_allclose(exact[:, 0], (math.cos(yaw), math.sin(yaw), 0.0), atol=1e-9)
    np.testing.assert_allclose(exact[:, 2], R[:, 2], atol=1e-9)


def test_skill_leaves_send_the_goals_given_by_their_ports(tmp_path: Path) -> None:
    body = '<Sequence><Pick field="left"/><Place field="right"/><Place position="0.25;-0.1;0.02"/></Sequence>'
    skills = [FakeActionServer(f"skills/{name}", action.RunSkill, SUCCEED) for name in ("pick", "place")]
    mission = MissionHarness(tmp_path, body, nodes=[(node, f"server_{k}") for k, node in enumerate(skills)])
    assert mission.run_to_end(3.0) == "SUCCESS"
    pick, place = (node.goals for node in skills)
    assert [goal.field for goal in pick] == ["left"]
    assert [(goal.field, goal.has_position) for goal in place] == [("right", False), ("", True)]
    position = place[1].position
    assert (position.x, position.y, position.z) == (0.25, -0.1, 0.02)
