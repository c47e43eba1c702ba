"""Built-in leaves: the goals they send, how they report results, and walking controlled by odometry."""

import math
from collections.abc import Sequence
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.behavior.missions import MissionHarness, tree_document, write_tree
from tests.harness.bus import Abort, FakeActionServer, Outcome, Succeed
from tests.harness.profiles import sample_count
from tests.harness.robots import KinematicRobot

import roboyard as ry
from roboyard.behavior import TreeError, load_tree, read_tree
from roboyard.behavior.nodes import TreeExecutorNode
from roboyard.behavior.nodes.mobility import velocity_towards
from roboyard.bus import Node
from roboyard.geometry import SE2
from roboyard.messages import action, msg
from roboyard.messages.convert import pose_to_msg
from roboyard.scenarios import load_scenario, run_scenario
from roboyard.scenarios.run_options import RunOptions

ACTIONS = {
    "dock_robot": action.DockRobot,
    "undock_robot": action.UndockRobot,
    "explore": action.Explore,
    "look": action.LookForDiscs,
    "skills/pick": action.RunSkill,
    "skills/place": action.RunSkill,
}


def action_servers(detections: Sequence[Any] = ()) -> tuple[list[tuple[Node, str]], list[tuple[str, Any]]]:
    """Servers of all actions that succeed at once, though a look without detections fails; and the goals they get."""
    goals: list[tuple[str, Any]] = []

    def decide(name: str, goal: Any) -> Outcome:
        goals.append((name, goal))
        if name == "look" and not detections:
            return Abort(0.0, "nothing", "nothing to be seen", action.LookForDiscs.Result(error_code="nothing"))
        fields = {"look": {"positions": list(detections)}, "dock_robot": {"num_retries": 2}}
        return Succeed(result=ACTIONS[name].Result(**fields.get(name, {})))

    servers = [
        (FakeActionServer(name, type_, partial(decide, name)), f"server_{number}")
        for number, (name, type_) in enumerate(ACTIONS.items())
    ]
    return servers, goals


def walking_robot() -> KinematicRobot:
    """A robot that walks exactly as commanded from a pose that is not the origin."""
    robot = KinematicRobot(pose=SE2(1.0, 2.0, 3.0), rate=50.0)
    robot.publish_transforms = False
    return robot


ALL_LEAVES = """<Sequence>
  <DockRobot dock_id="home" num_retries="{tries}"/>
  <DockRobot use_dock_id="false" dock_pose="1;2;0.5" navigate_to_staging_pose="false"/>
  <UndockRobot max_undocking_time="9"/>
  <Explore stay_at_end="true" known_area="{known}"/>
  <DetectDiscs polarity="white" frame="base_link" count="{count}" positions="{places}"/>
  <Pick field="left"/>
  <Place field="right"/>
  <Place position="0.25;-0.1;0.02"/>
</Sequence>"""


def test_leaves_send_the_goals_given_by_their_ports(tmp_path: Path) -> None:
    servers, goals = action_servers([msg.Point(x=0.3, y=0.1, z=0.02), msg.Point(x=0.5, y=0.0, z=0.02)])
    mission = MissionHarness(tmp_path, ALL_LEAVES, nodes=servers)
    assert mission.run_to_end(3.0) == "SUCCESS"
    assert [name for name, _ in goals] == [
        "dock_robot", "dock_robot", "undock_robot", "explore", "look", "skills/pick", "skills/place", "skills/place",
    ]  # fmt: skip
    by_name, by_pose, undock, explore, detect, pick, place, saved_at = (goal for _, goal in goals)
    assert (by_name.use_dock_id, by_name.dock_id, by_name.navigate_to_staging_pose) == (True, "home", True)
    assert (by_pose.use_dock_id, by_pose.navigate_to_staging_pose) == (False, False)
    assert by_pose.dock_pose.header.frame_id == "map"
    assert by_pose.dock_pose.pose.orientation.z == pytest.approx(math.sin(0.25))
    assert undock.max_undocking_time == 9.0
    assert explore.stay_at_end
    assert (detect.polarity, detect.frame_id) == ("white", "base_link")
    assert (pick.field, place.field, place.has_position) == ("left", "right", False)
    assert (saved_at.has_position, saved_at.position.x, saved_at.position.y, saved_at.position.z) == (
        True,
        0.25,
        -0.1,
        0.02,
    )
    assert (mission.entry("tries"), mission.entry("count")) == (2, 2)
    assert mission.entry("places")[0] == (0.3, 0.1, 0.02)


def test_detect_discs_leaf_without_detections_fails_with_the_reason(tmp_path: Path) -> None:
    mission = MissionHarness(tmp_path, '<DetectDiscs error_msg="{why}"/>', nodes=action_servers()[0])
    assert mission.run_to_end(1.0) == "FAILURE"
    assert "nothing" in mission.entry("why")


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


def test_topic_leaves_read_and_publish_messages(tmp_path: Path) -> None:
    body = """<Sequence>
      <RetryUntilSuccessful num_attempts="50"><Delay delay_msec="100">
        <LastMessage topic="order" type="roboyard_msgs/msg/HomingOrder" field="id" value="{id}"/>
      </Delay></RetryUntilSuccessful>
      <LastMessage topic="order" type="roboyard_msgs/msg/HomingOrder" field="pose" value="{pose}"/>
      <PublishMessage topic="report" type="roboyard_msgs/msg/HomingReport" fields="id: {id}, outcome: nearby"/>
    </Sequence>"""
    mission = MissionHarness(tmp_path, body)
    reports = mission.record("/report", msg.HomingReport)
    mission.run_for(1.0)
    assert mission.status[-1] == "RUNNING"  # no order has been published
    order = msg.HomingOrder(id=106_500_000_000)
    order.pose.pose = pose_to_msg(SE2(1.0, 2.0, 0.5))
    mission.publish("/order", order)
    assert mission.run_to_end(1.0) == "SUCCESS"
    assert [(one.id, one.outcome) for one in reports.messages] == [(106_500_000_000, "nearby")]
    assert mission.entry("pose").theta == pytest.approx(0.5)


@pytest.mark.parametrize(
    ("body", "error"),
    [
        ('<LastMessage topic="a" type="std_msgs/msg/Bool" field="date"/>', "field. date: .*no attribute"),
        ('<PublishMessage topic="a" type="std_msgs/msg/Bool" fields="date: true"/>', "no field 'date' .fields: data"),
    ],
    ids=["read", "published"],
)
def test_unknown_message_fields_are_refused_when_a_tree_is_read(body: str, error: str) -> None:
    with pytest.raises(TreeError, match=error):
        read_tree(tree_document(body))


def test_library_missions_are_read_without_errors() -> None:
    found = sorted((Path(ry.__file__).parent / "scenarios" / "library" / "missions").glob("*.xml"))
    names = {file.stem.removeprefix("cell_") for file in found if file.stem.startswith("cell_")}
    assert len(names) == 10
    assert {file.name for file in found} == {"homing.xml", "youbot_loop.xml", *(f"cell_{name}.xml" for name in names)}
    for file in found:
        load_tree(file)


@pytest.mark.slow
def test_rover_homing_by_a_tree_succeeds() -> None:
    """At night out of the lab, as the scenario has it; else the link is lost while the rover is in the corridor."""
    method = "method=tree"
    follow = load_scenario("rover-homing").config.operator[1].follow
    assert follow is not None
    count = sample_count(len(follow.points), 0.3)
    points = [list(point) for point in follow.points[:count]]
    shorter = (f"operator.1.follow.points={points}", "operator.5.link_loss=25 s", "faults.0.time=15 s", "duration=65 s")
    spec = load_scenario("rover-homing", overrides=(method, *shorter) if count < len(follow.points) else (method,))
    outcome = run_scenario(spec, RunOptions(write_files=False, serve=False))
    assert outcome.success, outcome.metrics
