"""Tracker and goal controller on a bus, with a navigator that drives straight and refuses goals by script."""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest
from tests.harness.bus import BusHarness, check_snapshot_continues, twist

from roboyard.bus import GoalHandle, Node, NodeError
from roboyard.errors import ConfigError
from roboyard.geometry import SE2
from roboyard.messages import action, msg
from roboyard.messages.convert import grid_to_msg, pose_stamped_to_msg, pose_to_se2
from roboyard.messages.time import time_to_msg
from roboyard.navigation.homing import ConfiguredHomingPolicy, HomeMode, HomingConfig, HomingPolicy
from roboyard.navigation.nodes import GoalControllerNode, HomingTrackerNode

Navigate = action.NavigateToPose


class StraightRobot(Node):
    """Follows twists, and drives straight to goals unless they lie in ``blocked``; publishes its pose as a transform.

    in: cmd_vel   out: /tf   action: navigate_to_pose
    """

    state_fields = ("x", "y", "theta", "v", "w")

    def setup(self) -> None:
        self.x = self.y = self.theta = self.v = self.w = 0.0
        self.blocked: list[tuple[float, float]] = []
        self.goals: list[tuple[float, float, float]] = []
        self.server = self.action_server("navigate_to_pose", Navigate, self._on_goal, on_goal_restored=lambda _: None)
        self.subscribe("cmd_vel", msg.Twist, self._on_twist)
        self.timer(rate=20.0, callback=self._step, immediate=True)

    def _on_twist(self, command: Any) -> None:
        self.v, self.w = command.linear.x, command.angular.z

    def _on_goal(self, handle: GoalHandle) -> None:
        goal = pose_to_se2(handle.goal.pose.pose)
        self.goals.append((self.now, goal.x, goal.y))
        if any(math.dist((goal.x, goal.y), point) < 0.5 for point in self.blocked):
            handle.reject("goal_occupied: something stands there")
            return
        handle.accept()
        handle.on_cancel = lambda handle: handle.set_canceled(Navigate.Result(), "as requested")

    def _step(self) -> None:
        for handle in self.server.active_goals:
            goal = pose_to_se2(handle.goal.pose.pose)
            distance = math.dist((goal.x, goal.y), (self.x, self.y))
            if distance < 0.1:
                handle.succeed(Navigate.Result())
                continue
            self.theta = math.atan2(goal.y - self.y, goal.x - self.x)
            step = min(0.05, distance)
            self.x, self.y = self.x + step * math.cos(self.theta), self.y + step * math.sin(self.theta)
        if not self.server.active_goals:
            self.theta += 0.05 * self.w
            self.x, self.y = (
                self.x + 0.05 * self.v * math.cos(self.theta),
                self.y + 0.05 * self.v * math.sin(self.theta),
            )
        self.send_transform(SE2(self.x, self.y, self.theta).to_se3(), "odom", "base_link")


class HomingHarness(BusHarness):
    """A bus with the robot, tracker and goal controller, and an operator who drives it."""

    def __init__(self, node_class: type[HomingTrackerNode] = HomingTrackerNode, **tracker: Any) -> None:
        super().__init__()
        self.robot = self.add(StraightRobot(), "navigator")
        self.tracker = self.add(node_class(**tracker), "homing_tracker")
        self.controller = self.add(GoalControllerNode(), "goal_controller")

    @property
    def status(self) -> Any:
        """The newest status of the goal controller."""
        return self.last("/homing/status")

    @property
    def reports(self) -> list[Any]:
        """What became of the goals."""
        return self.published("/homing/report").messages

    @property
    def navigating(self) -> bool:
        """Whether the robot drives to a goal."""
        return bool(self.robot.server.active_goals)

    def command(self, vx: float = 0.0, wz: float = 0.0) -> None:
        """One command of the operator, delivered at once."""
        self.send("/cmd_vel", twist(vx, wz), source="/operator")

    def drive(self, seconds: float, vx: float = 0.0, wz: float = 0.0) -> None:
        """Drive with ten commands a second, and stop."""
        for _ in range(round(10 * seconds)):
            self.publish("/cmd_vel", twist(vx, wz), source="/operator")
            self.run_for(0.1)
        self.command()


@pytest.fixture
def homing() -> Iterator[HomingHarness]:
    with HomingHarness() as homing:
        yield homing


def test_link_loss_after_a_drive_brings_the_robot_home(homing: HomingHarness) -> None:
    homing.drive(6, vx=1.0)
    homing.drive(1.5, wz=1.0)
    homing.drive(4, vx=1.0)
    homing.run_for(3.9)
    assert not homing.robot.goals, "not before the time-out"
    homing.run_for(20)
    assert math.hypot(homing.robot.x, homing.robot.y) < 0.15
    assert homing.status.phase == "home"
    assert (homing.status.outages, homing.status.skipped, homing.status.returns) == (1, 0, 1)
    first = homing.robot.goals[0]
    assert first[0] == pytest.approx(11.5 + 4.0, abs=0.11)
    distances = [math.dist(a[1:], b[1:]) for a, b in zip(homing.robot.goals, homing.robot.goals[1:], strict=False)]
    assert all(0.5 < distance < 1.3 for distance in distances), "a metre of way apart, newest first"
    assert {report.outcome for report in homing.reports} == {"reached"}


class DirectTracker(HomingTrackerNode):
    """A homing tracker of a user's own: it returns directly to the first stored point, whatever the parameters say."""

    def make_policy(self) -> HomingPolicy:
        return ConfiguredHomingPolicy(HomingConfig(home_mode=HomeMode.POSE))


def test_homing_tracker_uses_the_policy_of_a_subclass() -> None:
    with HomingHarness(DirectTracker) as homing:
        homing.drive(6, vx=1.0)
        homing.run_for(15)
        assert homing.status.phase == "home"
        assert len({goal[1:] for goal in homing.robot.goals}) == 1, "one goal: home"
        assert any("the link to the operator is lost: the robot returns" in line for line in homing.log_lines)


def test_operator_cancels_homing_at_once_until_next_link_loss(homing: HomingHarness) -> None:
    homing.drive(8, vx=1.0)
    homing.run_for(7)
    assert homing.navigating
    homing.command()
    assert not homing.navigating
    assert homing.status.link == "recovering"
    goals, n_stored = len(homing.robot.goals), homing.status.stored
    homing.drive(3, wz=1.0)
    assert len(homing.robot.goals) == goals
    homing.run_for(1.9)
    homing.drive(0.1)
    homing.run_for(3.9)
    assert homing.status.link == "connected", "heard for more than settle: the whole time-out holds again"
    homing.run_for(20)
    assert homing.robot.goals[goals][1] == pytest.approx(n_stored - 1, abs=0.5)
    assert homing.status.phase == "home"


def test_homing_with_a_flapping_link_comes_home(homing: HomingHarness) -> None:
    homing.drive(6, vx=1.0)
    for _ in range(12):
        homing.run_for(5)
        homing.command()
        assert not homing.navigating
    homing.run_for(30)
    assert math.hypot(homing.robot.x, homing.robot.y) < 0.15


def test_unreachable_point_is_approached_and_reported(homing: HomingHarness) -> None:
    homing.drive(6, vx=1.0)
    homing.robot.blocked = [(3.0, 0.0)]
    cells = [[0] * 90 for _ in range(40)]
    for row in range(20 - 6, 20 + 6):
        for column in range(40 - 6, 40 + 6):
            cells[row][column] = 100
    grid = grid_to_msg(np.array(cells, dtype=np.int8), 0.1, SE2(-1.0, -2.0, 0.0), "odom", 0)
    homing.publish("/global_costmap/costmap", grid, source="/navigator", latched=True)
    homing.run_for(40)
    failed_reports = [report for report in homing.reports if report.outcome != "reached"]
    assert [(report.outcome, "goal_occupied" in report.reason) for report in failed_reports] == [("nearby", True)]
    assert 0.5 < failed_reports[0].distance < 0.9
    assert (homing.status.phase, homing.status.skipped) == ("home", 1)
    assert any("was not reached" in line for line in homing.log_lines)


def test_restarted_controller_continues_the_return(homing: HomingHarness) -> None:
    homing.drive(8, vx=1.0)
    homing.run_for(7)
    assert homing.navigating
    for _ in range(3):
        homing.bus.remove(homing.controller)
        homing.run_for(0.5)
        homing.controller = homing.add(GoalControllerNode(), "goal_controller")
        homing.run_for(0.5)
        assert homing.navigating
    assert all(report.outcome == "reached" for report in homing.reports)
    homing.run_for(15)
    assert homing.status.phase == "home"
    assert homing.status.skipped == 0


def test_restarted_controller_cancels_a_goal_of_a_lost_link(
    homing: HomingHarness,
) -> None:
    homing.drive(8, vx=1.0)
    homing.run_for(5)
    homing.bus.remove(homing.controller)
    homing.publish("/cmd_vel", msg.Twist(), source="/operator")
    homing.run_for(0.2)
    assert homing.navigating
    homing.controller = homing.add(GoalControllerNode(), "goal_controller")
    homing.run_for(0.1)
    assert not homing.navigating


def test_controller_without_navigator_waits(homing: HomingHarness) -> None:
    homing.drive(3, vx=1.0)
    homing.bus.remove(homing.robot)
    homing.run_for(20)
    assert homing.status.skipped == 0
    assert any("no action server for" in line for line in homing.log_lines)


def test_own_commands_and_stale_messages_count_as_no_operator(homing: HomingHarness) -> None:
    homing.drive(3, vx=1.0)
    homing.publish("/joy", msg.Joy(header=msg.Header(stamp=time_to_msg(homing.now_ns))), source="/teleop")
    old = time_to_msg(homing.now_ns)
    for _ in range(60):
        homing.run_for(0.1)
        homing.publish("/cmd_vel", twist(), source="/navigator")
        homing.publish("/joy", msg.Joy(header=msg.Header(stamp=old)), source="/teleop")
    assert homing.status.link == "lost"
    homing.publish("/joy", msg.Joy(header=msg.Header(stamp=time_to_msg(homing.now_ns))), source="/teleop")
    homing.run_for(0.01)
    assert homing.status.link == "recovering"


def test_trail_moves_into_a_map_that_arrives_later(homing: HomingHarness) -> None:
    homing.drive(4, vx=1.0)
    for tenth in range(31):
        homing.at(4.0 + 0.1 * tenth, lambda: homing.publish_transforms((SE2(5.0, 5.0, math.pi / 2), "map", "odom")))
    homing.drive(3, vx=1.0)
    trail = homing.last("/homing/trail")
    positions = [(pose.pose.position.x, pose.pose.position.y) for pose in trail.poses]
    assert trail.header.frame_id == "map"
    assert positions[0] == pytest.approx((5.0, 5.0), abs=0.1)
    assert positions[3] == pytest.approx((5.0, 8.0), abs=0.2)


def test_mission_is_finished_before_homing() -> None:
    with HomingHarness(on_link_loss="finish-task") as homing:
        homing.drive(2, vx=1.0)
        goal = homing.start_goal("/navigate_to_pose", Navigate, pose=pose_stamped_to_msg(SE2(2.0, 9.0, 0.0), "odom", 0))
        homing.run_for(6)
        assert homing.status.phase == "mission"
        homing.run_for(5)
        assert goal.succeeded
        assert homing.status.phase == "returning"
        homing.run_for(20)
        assert math.hypot(homing.robot.x, homing.robot.y) < 0.15


def test_saved_homing_continues_unchanged() -> None:
    def make() -> HomingHarness:
        homing = HomingHarness()
        homing.drive(6, vx=1.0)
        return homing

    def observe(homing: HomingHarness) -> tuple[float, float]:
        assert homing.status.phase == "home"
        return homing.robot.x, homing.robot.y

    check_snapshot_continues(make, [12.03], 27.0, observe=observe)


def test_invalid_home_pose_is_refused() -> None:
    with BusHarness() as harness, pytest.raises((ConfigError, NodeError), match="home_pose"):
        harness.add(HomingTrackerNode(home_pose=(1.0, 2.0)), "homing_tracker")
