"""Leaves that come ready: what they ask of a robot, what they tell of its answers, and walking led by odometry."""

import math
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.behavior.missions import MissionHarness

import roboyard as ry
from roboyard.behavior import TreeError, load_tree, read_tree
from roboyard.behavior.nodes import TreeMissionNode
from roboyard.behavior.nodes.roaming import command_towards
from roboyard.bus import Node
from roboyard.geometry import SE2
from roboyard.messages import action, msg
from roboyard.messages.convert import pose_to_msg
from roboyard.scenarios import load_spec, run_scenario

ACTIONS = {
    "dock_robot": action.DockRobot,
    "undock_robot": action.UndockRobot,
    "explore": action.Explore,
    "look": action.LookForDiscs,
    "skills/pick": action.RunSkill,
    "skills/place": action.RunSkill,
}


class Handy(Node):
    """Does whatever it is asked at once, and notes it; its body goes as it is told, without inertia."""

    fields = ("asked", "_pose", "_command")

    def setup(self) -> None:
        self.asked: list[tuple[str, Any]] = []
        self.finds: list[Any] = []
        self.commands: list[tuple[float, float, float]] = []
        self._pose = (1.0, 2.0, 3.0)
        self._command = (0.0, 0.0, 0.0)
        for name, kind in ACTIONS.items():
            self.action_server(name, kind, lambda handle, name=name: self._on_goal(name, handle))
        self._odom = self.publisher("odom", msg.Odometry)
        self.subscribe("cmd_vel", msg.Twist, self._on_command)
        self.timer(rate=50.0, callback=self._tick)

    def _on_goal(self, name: str, handle: Any) -> None:
        handle.accept()
        self.asked.append((name, handle.goal))
        if name == "look" and not self.finds:
            handle.abort(action.LookForDiscs.Result(cause="nothing"), "nothing", "nothing to be seen")
            return
        results = {"look": {"positions": self.finds}, "dock_robot": {"num_retries": 2}}
        handle.succeed(ACTIONS[name].Result(**results.get(name, {})))

    def _on_command(self, message: Any) -> None:
        self._command = (message.linear.x, message.linear.y, message.angular.z)
        self.commands.append(self._command)

    def _tick(self) -> None:
        x, y, turn = (0.02 * part for part in self._command)
        here = SE2(*self._pose) @ SE2(x, y, turn)
        self._pose = (here.x, here.y, here.theta)
        odometry = msg.Odometry()
        odometry.pose.pose = pose_to_msg(here)
        self._odom.publish(odometry)


ALL = """<Sequence>
  <DockRobot dock_id="home" num_retries="{tries}"/>
  <DockRobot use_dock_id="false" dock_pose="1;2;0.5" navigate_to_staging_pose="false"/>
  <UndockRobot max_undocking_time="9"/>
  <Explore stay="true" known="{known}"/>
  <Look polarity="white" frame="base_link" count="{count}" positions="{places}"/>
  <Pick field="left"/>
  <Place field="right"/>
  <Place position="0.25;-0.1;0.02"/>
</Sequence>"""


def test_leaves_send_the_goals_given_by_their_ports(tmp_path: Path) -> None:
    mission = MissionHarness(tmp_path, ALL, Handy())
    mission.robot.finds = [msg.Point(x=0.3, y=0.1, z=0.02), msg.Point(x=0.5, y=0.0, z=0.02)]
    mission.run_for(3.0)
    assert mission.status[-1] == "SUCCESS"
    assert [name for name, _ in mission.robot.asked] == [
        "dock_robot", "dock_robot", "undock_robot", "explore", "look", "skills/pick", "skills/place", "skills/place",
    ]  # fmt: skip
    by_name, by_pose, undock, explore, look, pick, place, at = (goal for _, goal in mission.robot.asked)
    assert (by_name.use_dock_id, by_name.dock_id, by_name.navigate_to_staging_pose) == (True, "home", True)
    assert (by_pose.use_dock_id, by_pose.navigate_to_staging_pose) == (False, False)
    assert by_pose.dock_pose.header.frame_id == "map"
    assert by_pose.dock_pose.pose.orientation.z == pytest.approx(math.sin(0.25))
    assert undock.max_undocking_time == 9.0
    assert explore.stay
    assert (look.polarity, look.frame_id) == ("white", "base_link")
    assert (pick.field, place.field, place.at) == ("left", "right", False)
    assert (at.at, at.position.x, at.position.y, at.position.z) == (True, 0.25, -0.1, 0.02)
    assert (mission.entry("tries"), mission.entry("count")) == (2, 2)
    assert mission.entry("places")[0] == (0.3, 0.1, 0.02)


def test_look_leaf_without_detections_fails_with_the_reason(tmp_path: Path) -> None:
    mission = MissionHarness(tmp_path, '<Look error_msg="{why}"/>', Handy())
    mission.run_for(1.0)
    assert mission.status[-1] == "FAILURE"
    assert "nothing" in mission.entry("why")


@given(
    st.floats(-5, 5), st.floats(-5, 5), st.floats(-3.1, 3.1), st.floats(0.01, 1.0), st.floats(0.05, 2.0)
)  # fmt: skip
def test_walk_command_reaches_any_pose_within_speed_limits(
    x: float, y: float, yaw: float, speed: float, turn: float
) -> None:
    target = here = SE2(x, y, yaw)
    period, far = 0.1, math.inf
    for _ in range(round((math.hypot(x, y) / speed + abs(yaw) / turn + 10.0) / period)):
        forward, left, rotation = command_towards(here, speed, turn)
        assert math.hypot(forward, left) <= speed * (1 + 1e-9)
        assert abs(rotation) <= turn * (1 + 1e-9)
        here = SE2(forward * period, left * period, rotation * period).inverse() @ here
        far, before = math.hypot(here.x, here.y), far
        assert far <= before + 1e-9
    assert far < 0.01
    assert abs(here.theta) < 0.01, target


@pytest.mark.parametrize("at", [None, 2.05])
def test_walk_leaf_reaches_a_goal_relative_to_the_start_pose(tmp_path: Path, at: float | None) -> None:
    body = '<Walk goal="0.4;-0.2;1.2" speed="0.1"/>'
    mission = MissionHarness(tmp_path, body, Handy())
    goal = SE2(1.0, 2.0, 3.0) @ SE2(0.4, -0.2, 1.2)
    if at is not None:  # saved and taken up again under way
        mission.run_for(at)
        saved, mission = mission.bus.save(), MissionHarness(tmp_path, body, Handy())
        mission.bus.load(saved)
    mission.run_for(12.0)
    left = SE2(*mission.robot._pose).inverse() @ goal
    assert mission.status[-1] == "SUCCESS"
    assert math.hypot(left.x, left.y) <= 0.011
    assert abs(left.theta) <= 0.021
    assert mission.robot.commands[-1] == (0.0, 0.0, 0.0)


def test_walk_leaf_stops_when_halted_or_timed_out(tmp_path: Path) -> None:
    for body in ('<Timeout msec="1000"><Walk goal="3;0;0"/></Timeout>', '<Walk goal="3;0;0" time_allowance="1"/>'):
        mission = MissionHarness(tmp_path, body, Handy())
        mission.run_for(2.0)
        assert mission.status[-1] == "FAILURE"
        assert mission.robot.commands[-1] == (0.0, 0.0, 0.0)
        assert len(mission.robot.commands) > 5


def test_walk_leaf_moves_a_hexapod_to_its_goal(tmp_path: Path) -> None:
    file = tmp_path / "walk.xml"
    body = '<Walk goal="0.15;0.05;0.3" speed="0.1" turn_speed="0.3"/>'
    file.write_text(f'<root BTCPP_format="4"><BehaviorTree ID="Main">{body}</BehaviorTree></root>')
    with ry.Run("empty", record=False) as run:
        hexapod = run.add("akrobat")
        hexapod.add_node(TreeMissionNode(file=str(file), start=5.0), "mission")
        ended: list[str] = []
        run.bus.subscribe("/mission/status", msg.String, "test", lambda m: ended.append(m.data))
        run.until(lambda: ended[-1:] in (["SUCCESS"], ["FAILURE"]), timeout=20)
        pose = hexapod.truth.pose
    assert ended[-1] == "SUCCESS"
    assert math.hypot(pose.translation[0] - 0.15, pose.translation[1] - 0.05) < 0.03
    assert abs(pose.rpy[2] - 0.3) < 0.05


def test_topic_leaves_read_and_publish_messages(tmp_path: Path) -> None:
    body = """<Sequence>
      <RetryUntilSuccessful num_attempts="50"><Delay delay_msec="100">
        <LastMessage topic="order" type="roboyard_msgs/msg/HomingOrder" field="number" value="{number}"/>
      </Delay></RetryUntilSuccessful>
      <LastMessage topic="order" type="roboyard_msgs/msg/HomingOrder" field="pose" value="{pose}"/>
      <PublishMessage topic="report" type="roboyard_msgs/msg/HomingReport" fields="number: {number}, outcome: near"/>
    </Sequence>"""
    mission = MissionHarness(tmp_path, body, Handy())
    reports: list[Any] = []
    mission.bus.subscribe("/report", msg.HomingReport, "test", reports.append)
    mission.run_for(1.0)
    assert mission.status[-1] == "RUNNING"  # nothing was said
    order = msg.HomingOrder(number=106_500_000_000)
    order.pose.pose = pose_to_msg(SE2(1.0, 2.0, 0.5))
    mission.bus.publisher("/order", msg.HomingOrder, "test").publish(order)
    mission.run_for(1.0)
    assert mission.status[-1] == "SUCCESS"
    assert [(one.number, one.outcome) for one in reports] == [(106_500_000_000, "near")]
    assert mission.entry("pose").theta == pytest.approx(0.5)


@pytest.mark.parametrize(
    ("body", "says"),
    [
        ('<LastMessage topic="a" type="std_msgs/msg/Bool" field="date"/>', "field. date: .*no attribute"),
        ('<PublishMessage topic="a" type="std_msgs/msg/Bool" fields="date: true"/>', "no field 'date' .fields: data"),
    ],
)
def test_unknown_message_fields_are_refused_when_a_tree_is_read(body: str, says: str) -> None:
    with pytest.raises(TreeError, match=says):
        read_tree(f'<root BTCPP_format="4"><BehaviorTree ID="Main">{body}</BehaviorTree></root>')


def test_library_missions_are_read_without_errors() -> None:
    found = sorted((Path(ry.__file__).parent / "scenarios" / "library" / "missions").glob("*.xml"))
    names = {"bystander", "driven", "handling", "loader", "machining", "partner", "team", "turns"}
    assert {file.name for file in found} == {"homing.xml", "youbot_loop.xml", *(f"cell_{name}.xml" for name in names)}
    for file in found:
        load_tree(file)


@pytest.mark.slow
def test_rover_homing_by_a_tree_succeeds() -> None:
    spec = load_spec("rover-homecoming", overrides=("method=tree",))
    outcome = run_scenario(spec, keep=False, serve=False)
    assert outcome.success, outcome.metrics
