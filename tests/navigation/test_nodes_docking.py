"""The docking node, with a base that drives as commanded and a navigator that is not exact."""

from __future__ import annotations

import math
from typing import Any

import pytest
from tests.harness.bus import BusHarness, Goal

from roboyard.bus import GoalHandle, Node, NodeError
from roboyard.errors import ConfigError
from roboyard.geometry import SE2
from roboyard.messages import action, msg
from roboyard.messages.convert import pose_stamped_to_msg, pose_to_se2
from roboyard.messages.convert.action_goals import GoalStatus
from roboyard.navigation.docking import DockingConfig, staging_pose
from roboyard.navigation.nodes import DockingNode

DOCK = SE2(3.0, 1.0, 1.2)


class DockingBase(Node):
    """A base that drives as commanded, and a navigator that brings it near a goal in no time."""

    def setup(self) -> None:
        self.pose = SE2(0.0, 0.0, 0.0)
        self.T_map_odom = SE2(0.5, -0.3, 0.4)
        self.drift = SE2()  # of odometry, on the way to the staging pose
        self.twist = msg.Twist()
        self.blocked_within = 0.0  # of the dock
        self.navigates = True
        self.subscribe("cmd_vel", msg.Twist, self._on_command)
        self.action_server("navigate_to_pose", action.NavigateToPose, self._on_goal)
        self.timer(0.02, self._step)
        self._publish_pose()

    def _on_command(self, twist: Any) -> None:
        self.twist = twist

    def _step(self) -> None:
        vx, wz = self.twist.linear.x, self.twist.angular.z
        next_pose = self.pose @ SE2.exp([vx * 0.02, 0.0, wz * 0.02])
        if next_pose.distance(DOCK) < self.blocked_within and next_pose.distance(DOCK) < self.pose.distance(DOCK):
            next_pose = SE2(self.pose.x, self.pose.y, next_pose.theta)
        self.pose = next_pose
        self._publish_pose()

    def _publish_pose(self) -> None:
        self.send_transform(self.T_map_odom.to_se3(), "map", "odom")
        self.send_transform((self.T_map_odom.inverse() @ self.pose).to_se3(), "odom", "base_link")

    def _on_goal(self, handle: GoalHandle) -> None:
        handle.accept()
        if self.navigates:
            stamped = handle.goal.pose
            goal = pose_to_se2(stamped.pose)
            in_map = self.T_map_odom @ goal if stamped.header.frame_id == "odom" else goal
            self.call_after(1.0, lambda: self._arrive(handle, in_map))

    def _arrive(self, handle: GoalHandle, goal: SE2) -> None:
        self.pose = goal @ SE2(0.1, -0.15, 0.2)
        self.T_map_odom = self.T_map_odom @ self.drift
        self._publish_pose()
        handle.succeed(action.NavigateToPose.Result())


def start_docking(harness: BusHarness, **goal: Any) -> Goal:
    return harness.start_goal("/dock_robot", action.DockRobot, **goal)


def dock(harness: BusHarness, timeout: float = 60.0, **goal: Any) -> Goal:
    return harness.send_goal("/dock_robot", action.DockRobot, timeout=timeout, **goal)


def make_docking(harness: BusHarness, **parameters: Any) -> DockingBase:
    """A base, and the node that docks it."""
    base = harness.add(DockingBase(), "base")
    harness.add(DockingNode(docks={"charger": (DOCK.x, DOCK.y, DOCK.theta)}, **parameters), "docking")
    harness.run_for(0.1)
    return base


@pytest.mark.parametrize("backward", [False, True], ids=["forward", "backward"])
def test_docking_passes_the_staging_pose_and_returns(harness: BusHarness, backward: bool) -> None:
    base = make_docking(harness, docking={"backward": backward})
    goal = dock(harness, dock_id="charger")
    assert goal.succeeded
    assert goal.result.success
    assert base.pose.distance(DOCK) < 0.04
    assert abs(base.pose.theta - DOCK.theta) < 0.06
    states = [feedback.state for feedback in goal.feedback]
    assert states[0] == 1
    assert states[-1] == 3
    harness.run_for(0.1)
    assert (base.twist.linear.x, base.twist.angular.z) == (0.0, 0.0)
    assert harness.send_goal("/undock_robot", action.UndockRobot).succeeded
    staging = staging_pose(DOCK, DockingConfig(backward=backward))
    assert base.pose.distance(staging) < 0.08


def test_odometry_drift_does_not_move_the_dock(harness: BusHarness) -> None:
    base = make_docking(harness)
    base.drift = SE2(0.2, -0.1, 0.15)
    assert dock(harness, dock_id="charger").succeeded
    assert base.pose.distance(DOCK) < 0.04
    assert abs(base.pose.theta - DOCK.theta) < 0.06


def test_dock_pose_in_another_frame_and_detected_dock_are_followed(harness: BusHarness) -> None:
    base = make_docking(harness)
    base.pose = DOCK @ SE2(-1.0, 0.2, 0.3)
    harness.run_for(0.1)
    in_odom = pose_stamped_to_msg(base.T_map_odom.inverse() @ DOCK, "odom", 0)
    goal = start_docking(harness, use_dock_id=False, dock_pose=in_odom, navigate_to_staging_pose=False)
    harness.run_for(0.5)
    true_dock = DOCK @ SE2(0.05, 0.08, 0.1)
    harness.publish("/detected_dock_pose", pose_stamped_to_msg(true_dock, "map", harness.now_ns))
    harness.wait_for(goal)
    assert goal.succeeded
    assert base.pose.distance(true_dock) < 0.04


def test_failed_docking_gives_its_error_code(harness: BusHarness) -> None:
    base = make_docking(harness, docking={"max_retries": 1})
    unknown = dock(harness, 1.0, dock_id="kitchen")
    assert unknown.status is GoalStatus.ABORTED
    assert unknown.result.error_code == 901
    assert "charger" in unknown.result.error_msg
    unknown_frame = dock(harness, 1.0, use_dock_id=False, dock_pose=pose_stamped_to_msg(DOCK, "moon", 0))
    assert unknown_frame.result.error_code == 902
    base.navigates = False
    late = dock(harness, 10.0, dock_id="charger", max_staging_time=2.0)
    assert late.result.error_code == 903
    base.navigates, base.blocked_within = True, 0.3
    blocked = dock(harness, 200.0, dock_id="charger")
    assert blocked.result.error_code == 905
    assert blocked.result.num_retries == 1
    assert not blocked.result.success
    assert 5 in [feedback.state for feedback in blocked.feedback]


def test_canceled_and_preempted_docking_stops(harness: BusHarness) -> None:
    base = make_docking(harness)
    base.pose = DOCK @ SE2(-1.0, 0.0, 0.0)
    goal = start_docking(harness, dock_id="charger", navigate_to_staging_pose=False)
    harness.spin_until(lambda: base.twist.linear.x > 0.05, timeout=1.5)
    goal.cancel()
    harness.run_for(0.1)
    assert goal.status is GoalStatus.CANCELED
    assert base.twist.linear.x == 0.0
    first = start_docking(harness, dock_id="charger", navigate_to_staging_pose=False)
    second = start_docking(harness, dock_id="charger", navigate_to_staging_pose=False)
    harness.wait_for(second)
    assert first.status is GoalStatus.ABORTED
    assert second.succeeded
    assert math.hypot(*(base.pose.xy - DOCK.xy)) < 0.04


@pytest.mark.parametrize(
    "bad",
    [{"docks": {"charger": (1, 2)}}, {"docks": {"charger": ("a", "b", "c")}}, {"docking": {"max_speed": -1.0}}],
    ids=["short dock", "dock without numbers", "negative speed"],
)
def test_invalid_docking_parameters_are_refused(harness: BusHarness, bad: dict[str, Any]) -> None:
    with pytest.raises((ConfigError, NodeError), match="dock"):
        harness.add(DockingNode(**bad), "docking")
