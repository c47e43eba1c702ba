"""The scene follows the gripper and people; a motion under way goes on from a saved state."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.harness.arms import ARM_NODES, ArmCell, box_message
from tests.harness.bus import BusHarness, Goal
from tests.robots.grasping import Bench, block

from roboyard.bringup.joint_groups import load_joint_groups
from roboyard.bus import Node, resource
from roboyard.description import Capsule
from roboyard.errors import ConfigError, InputError
from roboyard.geometry import SE3
from roboyard.manipulation import box_obstacle
from roboyard.manipulation.collision.obstacles import BodyPartObstacles, PersonModelConfig, person_obstacle
from roboyard.manipulation.collision.planning_scene import (
    PlanningScene,
    find_grasp_center,
    find_grasped_object,
    find_touching_pairs,
)
from roboyard.manipulation.evaluation.motion import JointGroupGroundTruth
from roboyard.manipulation.nodes import MoveGroupNode
from roboyard.messages import msg
from roboyard.messages.convert import make_header, pose_to_msg
from roboyard.messages.convert.detections import make_detection, make_detection_array
from roboyard.record import open_recording
from roboyard.scenarios.nodes.actors import PedestrianNode
from roboyard.scenarios.run import Run
from roboyard.scenarios.run_options import RunOptions, SnapshotRequest

FIXED_POSITIONS = {"scitos_arm": {"finger_left_joint": 0.02}, "iisy": {"finger_left_joint": 0.02}, "youbot_arm": {}}


@pytest.mark.parametrize("robot", list(FIXED_POSITIONS))
def test_object_between_the_fingers_is_found(robot: str) -> None:
    bare = PlanningScene.create(load_joint_groups(robot), fixed_positions=FIXED_POSITIONS[robot])
    q = np.clip(np.full(bare.chain.dof, 0.3), bare.chain.lower, bare.chain.upper)
    point, reach = find_grasp_center(bare, q)
    assert 0.01 < reach < 0.2
    target_object = box_obstacle("thing", (0.02, 0.02, 0.02), point)
    adjacent_object = box_obstacle("beside", (0.02, 0.02, 0.02), point + np.array([0.03, 0.0, 0.0]))
    table = box_obstacle("table", (1.0, 1.0, 0.02), point - np.array([0.0, 0.0, 0.0205]))
    assert find_grasped_object(bare, q) is None
    assert find_grasped_object(bare.with_obstacles([table, adjacent_object, target_object]), q) == "thing"
    distant_object = box_obstacle("far", (0.02, 0.02, 0.02), point + np.array([0.0, 0.0, reach + 0.05]))
    assert find_grasped_object(bare.with_obstacles([distant_object]), q) is None
    grasp_scene = bare.with_obstacles([table, target_object]).attach_obstacle("thing", q)
    assert ("thing", "table") in find_touching_pairs(grasp_scene, {"thing"}, q)


@given(st.floats(-20, 20), st.floats(-20, 20), st.floats(0, 3))
def test_capsule_of_a_person_grows_with_speed(x: float, y: float, speed: float) -> None:
    settings = PersonModelConfig()
    one = person_obstacle("p", (x, y, 0.0), speed, settings)
    assert isinstance(one.geometry, Capsule)
    required_radius = settings.radius + settings.prediction_time * speed
    assert one.geometry.radius >= required_radius + np.hypot(*(one.T_world.translation[:2] - (x, y))) - 0.005
    assert one.geometry.radius <= required_radius + 0.031


def test_person_obstacle_refuses_values_that_are_not_finite() -> None:
    for place, speed in (((np.nan, 0.0, 0.0), 0.0), ((0.0, 0.0, 0.0), np.inf)):
        with pytest.raises(InputError):
            person_obstacle("p", place, speed, PersonModelConfig())


SCENES, STATUS = "/monitored_planning_scene", "/move_group/status"


def scene_names(scene: Any) -> tuple[set[str], set[str]]:
    """Objects of a planning scene: those that stand, and those that are held."""
    attached = scene.robot_state.attached_collision_objects
    return {one.id for one in scene.world.collision_objects}, {one.object.id for one in attached}


class SceneCell(ArmCell):
    """An arm whose scene follows its gripper and one person, and whose move node gets its options from the test."""

    def __init__(self, robot: str = "iisy", *, add_arm: bool = True, **more: Any) -> None:
        super().__init__(robot, ARM_NODES if add_arm else ARM_NODES[:2], seed=4, settle=0.0, **more)

    def add_move_node(self, **options: Any) -> MoveGroupNode:
        """Bring the move node up."""
        node = MoveGroupNode(groups=self.robot.groups, **options)
        self.robot.add_node(node, "move_group")
        self.run.run_for(0.3)
        return node

    def publish_gripper_state(self, state: str) -> None:
        """Publish what a gripper says."""
        self.harness.publish("/grip", msg.String(data=state))

    def put_person(self, x: float, y: float, speed: float = 0.0) -> None:
        """Publish where a person is [m] and how fast [m/s]."""
        odometry = msg.Odometry(header=make_header("world", 0))
        odometry.pose.pose.position.x, odometry.pose.pose.position.y = x, y
        odometry.twist.twist.linear.x = speed
        self.harness.publish("/somebody", odometry)

    def start_rotation(self, angle: float, other_joints: np.ndarray | None = None) -> Goal:
        """Send a goal with the first joint at an angle [rad], the others at home or as given; slowly."""
        q = [angle, *(self.pose("home") if other_joints is None else other_joints)[1:]]
        return self.start_move(self.joint_goal(q), max_velocity_scaling_factor=0.3)

    def states(self) -> list[str]:
        """What the move node said that it does."""
        return [message.state for message in self.harness.published(STATUS).messages]

    def scene_names(self) -> tuple[set[str], set[str]]:
        """Those of the newest scene that was published."""
        return scene_names(self.harness.last(SCENES))


@pytest.fixture(scope="module")
def cell() -> Iterator[SceneCell]:
    """The robot stands at x = 1 in the world."""
    with SceneCell(at=(1.0, 0.0, 0.0)) as cell:
        cell.add_move_node(
            gripper_state_topic="grip", person_topics=("somebody",), robot_pose=(1.0, 0.0, 0.0), max_replans=50
        )
        yield cell


def detected(name: str, size: tuple[float, float, float], place: Any) -> Any:
    return make_detection("base_link", 0, SE3(translation=place), size, name, 1.0)


def test_detected_objects_are_obstacles_until_gripped() -> None:
    with SceneCell() as cell:
        node = cell.add_move_node(
            gripper_state_topic="grip", detections_topic="eyes", allowed_collisions=[("bar", "finger_left")]
        )
        scene_monitor = node._monitor
        point, _ = find_grasp_center(PlanningScene.create(cell.robot.groups), scene_monitor.measured_joints())
        size, distant_position = (0.02, 0.12, 0.02), (3.0, 0.0, 0.0)

        def detect(*detections: Any) -> dict[str, Any]:
            cell.harness.publish("/eyes", make_detection_array("base_link", 0, detections))
            cell.run.run_for(0.05)
            return dict(scene_monitor.scene.obstacles)

        ignored_detections = (
            detected("", size, point),
            detected("flat", (0.1, 0.0, 0.1), point),
            detected("away", size, distant_position),
        )
        assert set(detect(detected("bar", size, point), *ignored_detections)) == {"bar"}
        first, version = scene_monitor.scene.obstacles["bar"], scene_monitor.version
        assert (
            detect(detected("bar", size, point + np.array([0.004, 0.0, 0.0])))["bar"] is first
        )  # an error of the look
        assert scene_monitor.version == version
        assert detect(detected("bar", size, point + np.array([0.0, 0.01, 0.0])))["bar"].T_world.y != first.T_world.y
        detect(detected("bar", size, point))
        cell.publish_gripper_state("holding")
        assert not detect(detected("bar", size, point + np.array([0.2, 0.0, 0.0])))  # the gripper knows better
        assert set(scene_monitor.scene.attached) == {"bar"}
        cell.publish_gripper_state("moving")
        assert set(detect(detected("bar", size, point))) == {"bar"}
        saved = node.save_state()
        assert set(detect(detected("bar", size, distant_position))) == set()
        node.load_state(saved)
        assert set(scene_monitor.scene.obstacles) == {"bar"}
        assert ("bar", "finger_left") in scene_monitor.scene.allowed
        cell.run.run_for(1.5)
        assert detect() == {}  # nobody has seen it for long
        with pytest.raises(ConfigError, match=r"allowed_collisions\[0\]"):
            MoveGroupNode(groups=cell.robot.groups, allowed_collisions=[("bar",)])


@pytest.mark.parametrize("ends", ["moving", "lost"])
def test_scene_attaches_and_detaches_with_the_gripper_state(cell: SceneCell, ends: str) -> None:
    scene = PlanningScene.create(cell.robot.groups)
    point, _ = find_grasp_center(scene, np.clip(cell.joints(), scene.chain.lower, scene.chain.upper))
    cell.add_box("cube", (0.02, 0.02, 0.02), point, "base_link")
    cell.add_box("table", (0.4, 0.4, 0.02), point - np.array([0.0, 0.0, 0.3]), "base_link")
    cell.publish_gripper_state("moving")
    cell.run.run_for(0.1)
    cell.publish_gripper_state("holding")
    cell.run.run_for(0.1)
    assert cell.scene_names() == ({"table"}, {"cube"})
    cell.publish_gripper_state(ends)
    cell.run.run_for(0.1)
    assert cell.scene_names() == (({"table", "cube"} if ends == "moving" else {"table"}), set())
    for name in cell.scene_names()[0]:
        cell.remove_object(name)
    cell.run.run_for(0.5)


def test_person_on_the_path_stops_the_arm_until_removed(cell: SceneCell) -> None:
    cell.put_person(9.0, 9.0)
    assert cell.harness.wait_for(cell.start_rotation(-1.0)).succeeded
    cell.harness.published(STATUS).clear()
    goal = cell.start_rotation(1.2)
    for k in range(60):  # they come as near as the arm reaches
        cell.run.run_for(0.05)
        cell.put_person(max(1.35, 4.0 - 0.15 * k), 0.5, 1.0)
    assert "stopping" in cell.states()
    assert not goal.done()
    cell.put_person(9.0, 9.0)
    cell.harness.wait_for(goal)
    assert goal.succeeded
    assert goal.result.error_code.val == 1


class TrueTool(Node):
    """Publishes where an arm's tool really is, as a person sees who walks up to it."""

    arm: JointGroupGroundTruth = resource(JointGroupGroundTruth)

    def setup(self) -> None:
        self.odometry = self.publisher("/tip", msg.Odometry)
        self.timer(rate=20.0, callback=self.publish)

    def publish(self) -> None:
        odometry = msg.Odometry(header=make_header("world", 0))
        odometry.pose.pose = pose_to_msg(self.arm.tip_poses("arm")[1])
        self.odometry.publish(odometry)


@pytest.mark.slow
@pytest.mark.parametrize("is_observed", [True, False])
def test_pedestrian_in_the_workspace_is_hit_only_if_unobserved(is_observed: bool) -> None:
    """They walk up to where the arm wants to pass, stop short of its hand and go again; untold of them it hits them."""
    with SceneCell() as cell:
        run, robot = cell.run, cell.robot
        pedestrian = run.add_robot("pedestrian", "anna", pose=(1.8, 0.0, 0.0), nodes=[])
        route = (1.8, 0.0, 0.62, 0.0)
        robot.add_node(TrueTool(arm=robot.arm_truth), "tip")
        truth = "/truth/anna/odom"
        node = PedestrianNode(
            base=run.simulation.velocity_base("anna"),
            truth_topic=truth,
            route=route,
            speed=0.6,
            avoided_topics=("/tip",),
            clearance=0.5,
        )
        pedestrian.add_node(node, "walk")
        cell.add_move_node(person_topics=(truth,) if is_observed else (), max_replans=1000)
        reached, other_joints = 0, cell.pose("home") + np.array([0.0, 0.35, -0.2, 0.0, 0.0, 0.0])
        for k in range(14):
            goal = cell.start_rotation(1.2 if k % 2 else -1.2, other_joints)
            reached += cell.harness.wait_for(goal, timeout=60.0).succeeded
        contacts = run.evaluation.flat_metrics({})["iisy.contacts"]
        states = cell.states()
    if is_observed:
        assert contacts == 0
        assert reached == 14
        assert "stopping" in states
    else:
        assert contacts > 0


def test_known_world_gives_static_models_only() -> None:
    with SceneCell("scitos_arm", world="corridor", add_arm=False) as cell:
        node = cell.add_move_node(world=cell.run.world, use_world_model=True, robot_pose=(20.0, 5.0, 0.0))
        obstacle_models = {name.partition("::")[0] for name in node._monitor.scene.obstacles}
        movable_models = {placed.name for placed in cell.run.world.models if not placed.model.static}
    assert movable_models == {"transport_box"}
    assert {"workbench_east", "shelf_north"} <= obstacle_models
    assert not movable_models & obstacle_models


def test_motion_restored_from_a_saved_state_is_equal_bytewise(tmp_path: Path) -> None:
    """Bit for bit: the same set-points come after it as would have come without."""
    from roboyard.scenarios import load_scenario, run_scenario

    spec = load_scenario("arm-reach", overrides=["duration=2.2"])
    uninterrupted = run_scenario(
        spec,
        RunOptions(
            out=tmp_path / "whole", snapshots=(SnapshotRequest(1.4, tmp_path / "x"),), write_report=False, serve=False
        ),
    )
    resumed = run_scenario(
        spec, RunOptions(out=tmp_path / "again", from_snapshot=tmp_path / "x", write_report=False, serve=False)
    )
    assert uninterrupted.state == resumed.state == "done"
    text = (tmp_path / "whole/recording.mcap").read_bytes()
    assert text == (tmp_path / "again/recording.mcap").read_bytes()
    with open_recording(tmp_path / "whole/recording.mcap") as recording:
        states = [(item.time_ns, item.message.state) for item in recording.messages(["/move_group/status"])]
    assert [state for time_ns, state in states if time_ns < 1.4e9][-1] == "executing"


@pytest.mark.slow
@pytest.mark.parametrize("robot", ["iisy", "scitos_arm", "youbot_arm"])
def test_object_gripped_in_physics_is_attached_and_released(robot: str) -> None:
    size = (0.02, 0.016, 0.04)
    with Run("empty", record=False) as run:
        rig = Bench(run, robot, block(size, 0.1, 1.0), size[2])
        handle = run.robots[robot]
        handle.start_nodes("joint_states", "robot_state")
        topic = "schunk/gripper/state" if robot == "scitos_arm" else "gripper/state"
        node = MoveGroupNode(groups=handle.groups, gripper_state_topic=topic)
        handle.add_node(node, "move_group")
        harness = BusHarness(bus=run.bus)
        scenes = harness.published(SCENES)
        run.run_for(0.3)
        T_world_object, root = SE3.from_matrix(rig._pose("thing", "thing")), handle.groups.root_link
        below = SE3(translation=T_world_object.translation - np.array([0.0, 0.0, size[2] / 2 + 0.01]))
        for name, edges, T in (("thing", size, T_world_object), ("stand", (0.2, 0.2, 0.02), below)):
            harness.publish("/collision_object", box_message(name, edges, T, root))
        run.run_for(0.1)
        rig.close()
        assert scene_names(scenes.last) == ({"stand"}, {"thing"})
        assert ("thing", "stand") in node._monitor.scene.allowed or ("stand", "thing") in node._monitor.scene.allowed
        rig.lift()
        run.run_for(0.3)
        scene = node._monitor.scene
        assert not any("stand" in pair for pair in scene.allowed), "once it is lifted off it must keep away"
        attached_body = scene.attached["thing"]
        T = (
            scene.T_world_base
            @ SE3.from_matrix(scene.link_pose(attached_body.link, node._monitor.measured_joints()))
            @ attached_body.T_link
        )
        assert T.distance(SE3.from_matrix(rig._pose("thing", "thing"))) < 3e-3
        rig.send(rig.gripper.opening_range[1])
        run.run_for(1.0)
        assert scene_names(scenes.last) == ({"stand", "thing"}, set())


@given(
    st.tuples(st.floats(-1, 1), st.floats(-1, 1), st.floats(0, 2)), st.tuples(*[st.floats(-3, 3)] * 3),
    st.floats(0.02, 0.15), st.floats(0, 0.5), st.floats(0, 3),
)  # fmt: skip
def test_body_part_capsules_cover_the_parts(
    position: tuple[float, float, float], rpy: tuple[float, float, float], radius: float, length: float, speed: float
) -> None:
    settings = PersonModelConfig()
    T = SE3.from_xyz_rpy(position, rpy)
    row = np.array([[*position, *T.quaternion, radius, length, speed]])
    T_world_other = SE3.from_xyz_rpy((0.3, -0.2, 0.1), (0.2, -0.1, 2.0))
    T_other = T_world_other.inverse() @ T
    parts = BodyPartObstacles(settings)
    for found in (
        parts.update("p", ["hand"], row, SE3.identity(), (0.0, 0.0, 0.0)),
        parts.update(
            "q",
            ["hand"],
            np.array([[*T_other.xyz, *T_other.quaternion, radius, length, speed]]),
            T_world_other,
            (0.0,) * 3,
        ),
    ):
        if not found:  # none of it is near
            assert np.linalg.norm(position) - radius - length / 2.0 > settings.max_distance - 1e-9
            continue
        (one,) = found
        assert isinstance(one.geometry, Capsule)
        for end in (-0.5 * length, 0.5 * length):
            covered, part_end = (frame @ np.array([0.0, 0.0, end]) for frame in (one.T_world, T))
            assert (
                np.linalg.norm(covered - part_end) + radius + settings.prediction_time * speed
                <= one.geometry.radius + 1e-9
            )
    rounded_again = parts.update("p", ["hand"], row + 1e-12, SE3.identity(), (0.0, 0.0, 0.0))
    same = parts.update("p", ["hand"], row, SE3.identity(), (0.0, 0.0, 0.0))
    assert all(a is b for a, b in zip(rounded_again, same, strict=True)) or rounded_again != same, (
        "rounded, it has not changed"
    )


def test_body_parts_refuse_bad_values() -> None:
    right = [0.0, 0.0, 0.0, 1.0, 0.0, 0.0, 0.0, 0.1, 0.1, 0.0]
    parts = BodyPartObstacles(PersonModelConfig())
    for k, wrong in ((0, np.nan), (4, np.inf), (7, np.nan), (7, -0.1), (8, -1.0), (9, -1.0)):
        row = np.array([right])
        row[0, k] = wrong
        with pytest.raises(InputError, match="a part of radius"):
            parts.update("p", ["hand"], row, SE3.identity(), (0.0, 0.0, 0.0))
    with pytest.raises(InputError, match="pose"):
        parts.update("p", ["hand"], np.array([[*[0.0] * 7, *right[7:]]]), SE3.identity(), (0.0, 0.0, 0.0))
