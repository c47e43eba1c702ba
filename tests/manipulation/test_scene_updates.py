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
from roboyard.manipulation.collision import box_obstacle
from roboyard.manipulation.evaluation.motion import JointGroupGroundTruth
from roboyard.manipulation.gripped import between_fingers, gripped, touched_by
from roboyard.manipulation.nodes import MoveGroupNode
from roboyard.manipulation.people import PartsOfBody, PeopleSettings, person_at
from roboyard.manipulation.scene import PlanningScene
from roboyard.messages import msg
from roboyard.messages.convert import make_header, pose_to_msg
from roboyard.messages.convert.detections import make_detection, make_detection_array
from roboyard.record import open_recording
from roboyard.scenarios.nodes.actors import PedestrianNode
from roboyard.scenarios.run import Run
from roboyard.scenarios.run_options import RunOptions, SnapshotRequest

HELD = {"scitos_arm": {"finger_left_joint": 0.02}, "iisy": {"finger_left_joint": 0.02}, "youbot_arm": {}}


@pytest.mark.parametrize("robot", list(HELD))
def test_object_between_the_fingers_is_gripped(robot: str) -> None:
    bare = PlanningScene.of(load_joint_groups(robot), held=HELD[robot])
    q = np.clip(np.full(bare.chain.dof, 0.3), bare.chain.lower, bare.chain.upper)
    point, reach = between_fingers(bare, q)
    assert 0.01 < reach < 0.2
    thing = box_obstacle("thing", (0.02, 0.02, 0.02), point)
    beside = box_obstacle("beside", (0.02, 0.02, 0.02), point + np.array([0.03, 0.0, 0.0]))
    table = box_obstacle("table", (1.0, 1.0, 0.02), point - np.array([0.0, 0.0, 0.0205]))
    assert gripped(bare, q) is None
    assert gripped(bare.with_obstacles([table, beside, thing]), q) == "thing"
    far = box_obstacle("far", (0.02, 0.02, 0.02), point + np.array([0.0, 0.0, reach + 0.05]))
    assert gripped(bare.with_obstacles([far]), q) is None
    held = bare.with_obstacles([table, thing]).grasp("thing", q)
    assert ("thing", "table") in touched_by(held, {"thing"}, q)


@given(st.floats(-20, 20), st.floats(-20, 20), st.floats(0, 3))
def test_capsule_of_a_person_grows_with_speed(x: float, y: float, speed: float) -> None:
    settings = PeopleSettings()
    one = person_at("p", (x, y, 0.0), speed, settings)
    assert isinstance(one.geometry, Capsule)
    wanted = settings.radius + settings.ahead * speed
    assert one.geometry.radius >= wanted + np.hypot(*(one.T_world.translation[:2] - (x, y))) - 0.005
    assert one.geometry.radius <= wanted + 0.031


def test_person_at_refuses_values_that_are_not_finite() -> None:
    for place, speed in (((np.nan, 0.0, 0.0), 0.0), ((0.0, 0.0, 0.0), np.inf)):
        with pytest.raises(InputError):
            person_at("p", place, speed, PeopleSettings())


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

    def say_gripper(self, state: str) -> None:
        """Publish what a gripper says."""
        self.harness.publish("/grip", msg.String(data=state))

    def put_person(self, x: float, y: float, speed: float = 0.0) -> None:
        """Publish where a person is [m] and how fast [m/s]."""
        odometry = msg.Odometry(header=make_header("world", 0))
        odometry.pose.pose.position.x, odometry.pose.pose.position.y = x, y
        odometry.twist.twist.linear.x = speed
        self.harness.publish("/somebody", odometry)

    def start_turn(self, angle: float, rest: np.ndarray | None = None) -> Goal:
        """Send a goal with the first joint at an angle [rad], the others at home or as given; slowly."""
        q = [angle, *(self.pose("home") if rest is None else rest)[1:]]
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
        cell.add_move_node(gripper_topic="grip", people_topics=("somebody",), place=(1.0, 0.0, 0.0), replans=50)
        yield cell


def detected(name: str, size: tuple[float, float, float], place: Any) -> Any:
    return make_detection("base_link", 0, SE3(translation=place), size, name, 1.0)


def test_detected_objects_are_obstacles_until_gripped() -> None:
    with SceneCell() as cell:
        node = cell.add_move_node(gripper_topic="grip", things_topic="eyes", allowed=[("bar", "finger_left")])
        keeper = node._keeper
        point, _ = between_fingers(PlanningScene.of(cell.robot.groups), keeper.measured())
        size, far = (0.02, 0.12, 0.02), (3.0, 0.0, 0.0)

        def detect(*things: Any) -> dict[str, Any]:
            cell.harness.publish("/eyes", make_detection_array("base_link", 0, things))
            cell.run.run_for(0.05)
            return dict(keeper.scene.obstacles)

        nothing = detected("", size, point), detected("flat", (0.1, 0.0, 0.1), point), detected("away", size, far)
        assert set(detect(detected("bar", size, point), *nothing)) == {"bar"}
        first, version = keeper.scene.obstacles["bar"], keeper.version
        assert (
            detect(detected("bar", size, point + np.array([0.004, 0.0, 0.0])))["bar"] is first
        )  # an error of the look
        assert keeper.version == version
        assert detect(detected("bar", size, point + np.array([0.0, 0.01, 0.0])))["bar"].T_world.y != first.T_world.y
        detect(detected("bar", size, point))
        cell.say_gripper("holding")
        assert not detect(detected("bar", size, point + np.array([0.2, 0.0, 0.0])))  # the gripper knows better
        assert set(keeper.scene.attached) == {"bar"}
        cell.say_gripper("moving")
        assert set(detect(detected("bar", size, point))) == {"bar"}
        saved = node.save_state()
        assert set(detect(detected("bar", size, far))) == set()
        node.load_state(saved)
        assert set(keeper.scene.obstacles) == {"bar"}
        assert ("bar", "finger_left") in keeper.scene.allowed
        cell.run.run_for(1.5)
        assert detect() == {}  # nobody has seen it for long
        with pytest.raises(ConfigError, match=r"allowed\[0\]"):
            MoveGroupNode(groups=cell.robot.groups, allowed=[("bar",)])


@pytest.mark.parametrize("ends", ["moving", "lost"])
def test_scene_attaches_and_detaches_with_the_gripper_state(cell: SceneCell, ends: str) -> None:
    scene = PlanningScene.of(cell.robot.groups)
    point, _ = between_fingers(scene, np.clip(cell.joints(), scene.chain.lower, scene.chain.upper))
    cell.add_box("cube", (0.02, 0.02, 0.02), point, "base_link")
    cell.add_box("table", (0.4, 0.4, 0.02), point - np.array([0.0, 0.0, 0.3]), "base_link")
    cell.say_gripper("moving")
    cell.run.run_for(0.1)
    cell.say_gripper("holding")
    cell.run.run_for(0.1)
    assert cell.scene_names() == ({"table"}, {"cube"})
    cell.say_gripper(ends)
    cell.run.run_for(0.1)
    assert cell.scene_names() == (({"table", "cube"} if ends == "moving" else {"table"}), set())
    for name in cell.scene_names()[0]:
        cell.remove_object(name)
    cell.run.run_for(0.5)


def test_person_in_the_way_stops_the_arm_until_gone(cell: SceneCell) -> None:
    cell.put_person(9.0, 9.0)
    assert cell.harness.wait_for(cell.start_turn(-1.0)).succeeded
    cell.harness.published(STATUS).clear()
    goal = cell.start_turn(1.2)
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
@pytest.mark.parametrize("seen", [True, False])
def test_walker_through_the_workspace_is_touched_only_if_unseen(seen: bool) -> None:
    """They walk up to where the arm wants to pass, stop short of its hand and go again; untold of them it hits them."""
    with SceneCell() as cell:
        run, robot = cell.run, cell.robot
        walker = run.add_robot("pedestrian", "anna", pose=(1.8, 0.0, 0.0), nodes=[])
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
        walker.add_node(node, "walk")
        cell.add_move_node(people_topics=(truth,) if seen else (), replans=1000)
        reached, rest = 0, cell.pose("home") + np.array([0.0, 0.35, -0.2, 0.0, 0.0, 0.0])
        for k in range(14):
            goal = cell.start_turn(1.2 if k % 2 else -1.2, rest)
            reached += cell.harness.wait_for(goal, timeout=60.0).succeeded
        contacts = run.evaluation.flat_metrics({})["iisy.contacts"]
        states = cell.states()
    if seen:
        assert contacts == 0
        assert reached == 14
        assert "stopping" in states
    else:
        assert contacts > 0


def test_known_world_gives_static_models_only() -> None:
    with SceneCell("scitos_arm", world="corridor", add_arm=False) as cell:
        node = cell.add_move_node(world=cell.run.world, know_world=True, place=(20.0, 5.0, 0.0))
        known = {name.partition("::")[0] for name in node._keeper.scene.obstacles}
        loose = {placed.name for placed in cell.run.world.models if not placed.model.static}
    assert loose == {"transport_box"}
    assert {"workbench_east", "shelf_north"} <= known
    assert not loose & known


def test_motion_restored_from_a_saved_state_is_equal_bytewise(tmp_path: Path) -> None:
    """Bit for bit: the same set-points come after it as would have come without."""
    from roboyard.scenarios import load_scenario, run_scenario

    spec = load_scenario("arm-reach", overrides=["duration=2.2"])
    whole = run_scenario(
        spec,
        RunOptions(
            out=tmp_path / "whole", snapshots=(SnapshotRequest(1.4, tmp_path / "x"),), write_report=False, serve=False
        ),
    )
    again = run_scenario(
        spec, RunOptions(out=tmp_path / "again", from_snapshot=tmp_path / "x", write_report=False, serve=False)
    )
    assert whole.state == again.state == "done"
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
        node = MoveGroupNode(groups=handle.groups, gripper_topic=topic)
        handle.add_node(node, "move_group")
        harness = BusHarness(bus=run.bus)
        scenes = harness.published(SCENES)
        run.run_for(0.3)
        T_thing, root = SE3.from_matrix(rig._pose("thing", "thing")), handle.groups.root
        below = SE3(translation=T_thing.translation - np.array([0.0, 0.0, size[2] / 2 + 0.01]))
        for name, edges, T in (("thing", size, T_thing), ("stand", (0.2, 0.2, 0.02), below)):
            harness.publish("/collision_object", box_message(name, edges, T, root))
        run.run_for(0.1)
        rig.close()
        assert scene_names(scenes.last) == ({"stand"}, {"thing"})
        assert ("thing", "stand") in node._keeper.scene.allowed or ("stand", "thing") in node._keeper.scene.allowed
        rig.lift()
        run.run_for(0.3)
        scene = node._keeper.scene
        assert not any("stand" in pair for pair in scene.allowed), "once it is lifted off it must keep away"
        held = scene.attached["thing"]
        T = scene.T_world_base @ SE3.from_matrix(scene.link_pose(held.link, node._keeper.measured())) @ held.T_link
        assert T.distance(SE3.from_matrix(rig._pose("thing", "thing"))) < 3e-3
        rig.send(rig.gripper.width[1])
        run.run_for(1.0)
        assert scene_names(scenes.last) == ({"stand", "thing"}, set())


@given(
    st.tuples(st.floats(-1, 1), st.floats(-1, 1), st.floats(0, 2)), st.tuples(*[st.floats(-3, 3)] * 3),
    st.floats(0.02, 0.15), st.floats(0, 0.5), st.floats(0, 3),
)  # fmt: skip
def test_body_part_capsules_cover_the_parts(
    place: tuple[float, float, float], turn: tuple[float, float, float], radius: float, length: float, speed: float
) -> None:
    settings = PeopleSettings()
    T = SE3.from_xyz_rpy(place, turn)
    row = np.array([[*place, *T.quaternion, radius, length, speed]])
    turned = SE3.from_xyz_rpy((0.3, -0.2, 0.1), (0.2, -0.1, 2.0))
    T_other = turned.inverse() @ T
    parts = PartsOfBody(settings)
    for found in (
        parts.near("p", ["hand"], row, SE3.identity(), (0.0, 0.0, 0.0)),
        parts.near(
            "q", ["hand"], np.array([[*T_other.xyz, *T_other.quaternion, radius, length, speed]]), turned, (0.0,) * 3
        ),
    ):
        if not found:  # none of it is near
            assert np.linalg.norm(place) - radius - length / 2.0 > settings.within - 1e-9
            continue
        (one,) = found
        assert isinstance(one.geometry, Capsule)
        for end in (-0.5 * length, 0.5 * length):
            covered, wanted = (frame @ np.array([0.0, 0.0, end]) for frame in (one.T_world, T))
            assert np.linalg.norm(covered - wanted) + radius + settings.ahead * speed <= one.geometry.radius + 1e-9
    again = parts.near("p", ["hand"], row + 1e-12, SE3.identity(), (0.0, 0.0, 0.0))
    same = parts.near("p", ["hand"], row, SE3.identity(), (0.0, 0.0, 0.0))
    assert all(a is b for a, b in zip(again, same, strict=True)) or again != same, "rounded, it has not changed"


def test_body_parts_refuse_bad_values() -> None:
    right = [0.0, 0.0, 0.0, 1.0, 0.0, 0.0, 0.0, 0.1, 0.1, 0.0]
    parts = PartsOfBody(PeopleSettings())
    for k, wrong in ((0, np.nan), (4, np.inf), (7, np.nan), (7, -0.1), (8, -1.0), (9, -1.0)):
        row = np.array([right])
        row[0, k] = wrong
        with pytest.raises(InputError, match="a part of radius"):
            parts.near("p", ["hand"], row, SE3.identity(), (0.0, 0.0, 0.0))
    with pytest.raises(InputError, match="pose"):
        parts.near("p", ["hand"], np.array([[*[0.0] * 7, *right[7:]]]), SE3.identity(), (0.0, 0.0, 0.0))
