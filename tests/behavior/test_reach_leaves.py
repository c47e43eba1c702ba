"""Leaves that see a thing and reach for it: where it is, where the tool goes, and what is said when that fails."""

import math
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import roboyard as ry
from roboyard.behavior.nodes import TreeMissionNode
from roboyard.behavior.nodes.reaching import level_pose
from roboyard.bus import Bus, Node
from roboyard.geometry import SE3
from roboyard.messages import action, msg
from roboyard.messages.convert import pose_to_se3
from roboyard.vision.nodes.detections import detection, detections

T_BASE_FOOT = SE3.from_xyz_rpy((-0.075, 0.0, 0.6), (0.0, 0.0, 0.4))
T_BASE_TOOL = SE3.from_xyz_rpy((0.5, 0.2, 0.9), (0.0, 1.4, 0.3))
T_BASE_CAMERA = SE3.from_xyz_rpy((0.1, 0.0, 1.1), (-1.9, 0.0, -1.6))
T_MAP_BASE = SE3.from_xyz_rpy((3.0, -1.0, 0.0), (0.0, 0.0, 0.7))


class Arm(Node):
    """A camera that sees what it is told, and an arm that notes where it shall go."""

    def setup(self) -> None:
        self.goals: list[Any] = []
        self.sees: list[tuple[str, SE3]] = []
        self.refuses = False
        self.broadcast(T_BASE_FOOT, "base_link", "arm_base", static=True)
        self.broadcast(T_BASE_TOOL, "base_link", "gripper_link", static=True)
        self.broadcast(T_BASE_CAMERA, "base_link", "camera", static=True)
        self.broadcast(T_MAP_BASE, "map", "base_link", static=True)
        self.action_server("move_action", action.MoveGroup, self._on_goal)
        self._out = self.publisher("fiducials", msg.vision_msgs.Detection3DArray)
        self.timer(rate=10.0, callback=self._tick)

    def _on_goal(self, handle: Any) -> None:
        handle.accept()
        self.goals.append(handle.goal)
        if self.refuses:
            result = action.MoveGroup.Result()
            result.error_code.val = -4
            handle.abort(result, "it does not follow", "not_followed")
        else:
            handle.succeed(action.MoveGroup.Result())

    def _tick(self) -> None:
        found = [
            detection("camera", self.now_ns, T_BASE_CAMERA.inverse() @ T, (0.04, 0.04, 0.0), name, 1.0)
            for name, T in self.sees
        ]
        self._out.publish(detections("camera", self.now_ns, found))


class World:
    def __init__(self, folder: Path, body: str) -> None:
        file = folder / "tree.xml"
        file.write_text(f'<root BTCPP_format="4"><BehaviorTree ID="Main">{body}</BehaviorTree></root>')
        self.bus = Bus(seed=1)
        self.arm, self.mission = Arm(), TreeMissionNode(file=str(file), start=0.5)
        self.bus.add(self.arm, "arm")
        self.bus.add(self.mission, "mission")
        self.status: list[str] = []
        self.bus.subscribe("/mission/status", msg.String, "test", lambda m: self.status.append(m.data))

    def run(self, seconds: float = 4.0) -> str:
        self.bus.executor.run_for(seconds)
        return self.status[-1]

    def entry(self, name: str) -> Any:
        return self.mission._tree.blackboard.get(name)


def tag(x: float, y: float, z: float, yaw: float) -> SE3:
    """A marker on a side of a thing: its z out of it, level."""
    return SE3.from_xyz_rpy((x, y, z), (0.0, 0.0, yaw)) @ SE3.from_xyz_rpy((0, 0, 0), (0.0, 0.5 * math.pi, 0.0))


places = st.tuples(st.floats(-3, 3), st.floats(-3, 3), st.floats(0, 2))


@given(places, places, st.floats(0, 0.3), st.floats(-0.2, 0.2))
def test_level_pose_points_the_tool_from_arm_base_at_the_place(
    place: tuple[float, float, float], foot: tuple[float, float, float], short: float, over: float
) -> None:
    pose = level_pose(list(place), list(foot), short, over)
    R = pose.rotation_matrix()
    np.testing.assert_allclose(R[:, 0], [0, 0, -1], atol=1e-12)
    assert abs(R[2, 2]) < 1e-12
    ahead = pose.translation + short * R[:, 2]
    np.testing.assert_allclose(ahead, [place[0], place[1], place[2] + over], atol=1e-12)
    away = np.array(place)[:2] - np.array(foot)[:2]
    np.testing.assert_allclose(R[:2, 2] * np.hypot(*away), away, atol=1e-9)


@pytest.mark.parametrize("yaw", [3.1, 2.0, -2.5])
def test_find_thing_places_the_center_behind_the_marker(tmp_path: Path, yaw: float) -> None:
    body = '<FindThing what="tea" behind="0.025" position="{at}"/>'
    world = World(tmp_path, body)
    middle = np.array([0.7, 0.1, 0.85])
    world.arm.sees = [
        ("screws", tag(0.6, -0.3, 0.9, 3.0)),
        ("tea", tag(middle[0] + 0.025 * math.cos(yaw), middle[1] + 0.025 * math.sin(yaw), 0.85, yaw)),
    ]
    assert world.run() == "SUCCESS"
    np.testing.assert_allclose(world.entry("at"), middle, atol=1e-9)


def test_find_thing_fails_by_timeout_and_names_the_object(tmp_path: Path) -> None:
    world = World(tmp_path, '<FindThing what="tea" timeout="1" position="{at}"/>')
    world.arm.sees = [("screws", tag(0.6, -0.3, 0.9, 3.0))]
    assert world.run() == "FAILURE"
    assert world.mission._tree.root.why == "tea is not seen"


def test_point_ahead_is_expressed_in_the_base_frame(tmp_path: Path) -> None:
    world = World(tmp_path, '<PointAhead pose="4;2;1.2" ahead="0.7" height="0.85" position="{at}"/>')
    assert world.run() == "SUCCESS"
    wanted = T_MAP_BASE.inverse() @ np.array([4 + 0.7 * math.cos(1.2), 2 + 0.7 * math.sin(1.2), 0.85])
    np.testing.assert_allclose(world.entry("at"), wanted, atol=1e-9)


def test_reach_leaf_requests_the_level_pose(tmp_path: Path) -> None:
    before, up = (
        '<Reach position="0.7;0.1;0.85" short="0.14"/>',
        '<Reach tool="gripper_link" over="0.1" straight="true"/>',
    )
    world = World(tmp_path, f"<Sequence>{before}{up}</Sequence>")
    assert world.run() == "SUCCESS"
    first, second = (goal.request for goal in world.arm.goals)
    foot = T_BASE_FOOT.translation.tolist()
    for request, tool, pose, planner in (
        (first, "fingertips", level_pose([0.7, 0.1, 0.85], foot, 0.14), ""),
        (second, "gripper_link", level_pose(T_BASE_TOOL.translation.tolist(), foot, over=0.1), "LIN"),
    ):
        place = request.goal_constraints[0].position_constraints[0]
        asked = pose_to_se3(place.constraint_region.primitive_poses[0])
        assert asked.distance(pose) < 1e-9
        assert (place.header.frame_id, place.link_name, request.planner_id) == ("base_link", tool, planner)


def test_rejected_reach_gives_reason_and_error_code(tmp_path: Path) -> None:
    world = World(tmp_path, '<Reach position="0.7;0.1;0.85" error_msg="{why}" error_code_id="{code}"/>')
    world.arm.refuses = True
    assert world.run() == "FAILURE"
    assert (world.entry("why"), world.entry("code")) == ("it does not follow", -4)


@pytest.mark.slow
def test_assistant_fetches_an_object(tmp_path: Path) -> None:
    only = {"mission.parameters": {"goals": ["tea to the table"]}, "faults": [], "draws": {}}
    spec = ry.scenarios.load_spec("scitos-tasks", overrides=[f"{key}={value}" for key, value in only.items()])
    outcome = ry.scenarios.run_scenario(spec, out=tmp_path / "run")
    assert outcome.metrics["tasks_done"] == 1
    assert outcome.metrics["tasks_wrong"] == 0
    assert outcome.metrics["collisions"] == 0
