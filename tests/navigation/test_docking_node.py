"""The docking node on a bus, with a base that does what it is told and a navigator that is not exact."""

from __future__ import annotations

import math
from typing import Any

import pytest

from roboyard.bus import Bus, GoalHandle, Node, Status
from roboyard.errors import ConfigError
from roboyard.geometry import SE2
from roboyard.messages import action, msg
from roboyard.messages.convert import pose_stamped, pose_to_se2
from roboyard.navigation.docking import DockingConfig, staging_pose
from roboyard.navigation.nodes import DockingNode

DOCK = SE2(3.0, 1.0, 1.2)


class Base(Node):
    """A base that drives as commanded, and a navigator that brings it near a goal in no time."""

    def setup(self) -> None:
        self.pose = SE2(0.0, 0.0, 0.0)
        self.T_map_odom = SE2(0.5, -0.3, 0.4)
        self.drift = SE2()  # of odometry, on the way to the staging pose
        self.twist = msg.Twist()
        self.blocked_within = 0.0  # of the dock
        self.way = True
        self.subscribe("cmd_vel", msg.Twist, self._on_command)
        self.action_server("navigate_to_pose", action.NavigateToPose, self._on_goal)
        self.timer(0.02, self._step)
        self._tell()

    def _on_command(self, twist: Any) -> None:
        self.twist = twist

    def _step(self) -> None:
        vx, wz = self.twist.linear.x, self.twist.angular.z
        ahead = self.pose @ SE2.exp([vx * 0.02, 0.0, wz * 0.02])
        if ahead.distance(DOCK) < self.blocked_within and ahead.distance(DOCK) < self.pose.distance(DOCK):
            ahead = SE2(self.pose.x, self.pose.y, ahead.theta)
        self.pose = ahead
        self._tell()

    def _tell(self) -> None:
        self.broadcast(self.T_map_odom.to_se3(), "map", "odom")
        self.broadcast((self.T_map_odom.inverse() @ self.pose).to_se3(), "odom", "base_link")

    def _on_goal(self, handle: GoalHandle) -> None:
        handle.accept()
        if self.way:
            wanted = handle.goal.pose
            goal = pose_to_se2(wanted.pose)
            in_map = self.T_map_odom @ goal if wanted.header.frame_id == "odom" else goal
            self.after(1.0, lambda: self._arrive(handle, in_map))

    def _arrive(self, handle: GoalHandle, goal: SE2) -> None:
        self.pose = goal @ SE2(0.1, -0.15, 0.2)
        self.T_map_odom = self.T_map_odom @ self.drift
        self._tell()
        handle.succeed(action.NavigateToPose.Result())


class Asker(Node):
    """Gives goals."""

    def setup(self) -> None:
        self.dock = self.action_client("dock_robot", action.DockRobot)
        self.undock = self.action_client("undock_robot", action.UndockRobot)
        self.states: list[int] = []

    def ask(self, **goal: Any) -> Any:
        return self.dock.send(action.DockRobot.Goal(**goal), lambda feedback: self.states.append(feedback.state))


def _yard(bus: Bus, **parameters: Any) -> tuple[Base, Asker]:
    base = bus.add(Base(), "base")
    bus.add(DockingNode(docks=(f"charger {DOCK.x} {DOCK.y} {DOCK.theta}",), **parameters), "docking")
    bus.executor.run_for(0.1)
    return base, bus.add(Asker(), "asker")


@pytest.mark.parametrize("backward", [False, True])
def test_it_goes_to_the_staging_pose_docks_and_undocks(backward):
    with Bus() as bus:
        base, asker = _yard(bus, docking={"backward": backward})
        goal = asker.ask(dock_id="charger")
        bus.executor.run_until(60 * 10**9, goal.done)
        assert goal.succeeded
        assert goal.result.success
        assert base.pose.distance(DOCK) < 0.04
        assert abs(base.pose.theta - DOCK.theta) < 0.06
        assert asker.states[0] == 1
        assert asker.states[-1] == 3
        bus.executor.run_for(0.1)
        assert (base.twist.linear.x, base.twist.angular.z) == (0.0, 0.0)
        out = asker.undock.send(action.UndockRobot.Goal())
        bus.executor.run_until(120 * 10**9, out.done)
        assert out.succeeded
        staging = staging_pose(DOCK, DockingConfig(backward=backward))
        assert base.pose.distance(staging) < 0.08


def test_what_odometry_drifted_on_the_way_does_not_move_the_dock():
    with Bus() as bus:
        base, asker = _yard(bus)
        base.drift = SE2(0.2, -0.1, 0.15)
        goal = asker.ask(dock_id="charger")
        bus.executor.run_until(60 * 10**9, goal.done)
        assert goal.succeeded
        assert base.pose.distance(DOCK) < 0.04
        assert abs(base.pose.theta - DOCK.theta) < 0.06


def test_a_pose_in_another_frame_will_do_and_a_dock_that_is_seen_is_followed():
    with Bus() as bus:
        base, asker = _yard(bus)
        base.pose = DOCK @ SE2(-1.0, 0.2, 0.3)
        seen = bus.publisher("/detected_dock_pose", msg.PoseStamped, "/test")
        bus.executor.run_for(0.1)
        in_odom = pose_stamped(base.T_map_odom.inverse() @ DOCK, "odom", 0)
        goal = asker.ask(use_dock_id=False, dock_pose=in_odom, navigate_to_staging_pose=False)
        bus.executor.run_for(0.5)
        true = DOCK @ SE2(0.05, 0.08, 0.1)
        seen.publish(pose_stamped(true, "map", bus.now_ns))
        bus.executor.run_until(60 * 10**9, goal.done)
        assert goal.succeeded
        assert base.pose.distance(true) < 0.04


def test_it_says_why_it_did_not_dock():
    with Bus() as bus:
        base, asker = _yard(bus, docking={"retries": 1})
        unknown = asker.ask(dock_id="kitchen")
        bus.executor.run_until(10**9, unknown.done)
        assert unknown.status is Status.ABORTED
        assert unknown.result.error_code == 901
        assert "charger" in unknown.result.error_msg
        elsewhere = asker.ask(use_dock_id=False, dock_pose=pose_stamped(DOCK, "moon", 0))
        bus.executor.run_until(10**9, elsewhere.done)
        assert elsewhere.result.error_code == 902
        base.way = False
        late = asker.ask(dock_id="charger", max_staging_time=2.0)
        bus.executor.run_until(10 * 10**9, late.done)
        assert late.result.error_code == 903
        base.way, base.blocked_within = True, 0.3
        blocked = asker.ask(dock_id="charger")
        bus.executor.run_until(200 * 10**9, blocked.done)
        assert blocked.result.error_code == 905
        assert blocked.result.num_retries == 1
        assert not blocked.result.success
        assert 5 in asker.states


def test_cancelling_and_newer_goals_stop_it():
    with Bus() as bus:
        base, asker = _yard(bus)
        base.pose = DOCK @ SE2(-1.0, 0.0, 0.0)
        goal = asker.ask(dock_id="charger", navigate_to_staging_pose=False)
        bus.executor.run_for(1.5)
        assert base.twist.linear.x > 0.05
        goal.cancel()
        bus.executor.run_for(0.1)
        assert goal.status is Status.CANCELED
        assert base.twist.linear.x == 0.0
        first = asker.ask(dock_id="charger", navigate_to_staging_pose=False)
        second = asker.ask(dock_id="charger", navigate_to_staging_pose=False)
        bus.executor.run_until(60 * 10**9, second.done)
        assert first.status is Status.ABORTED
        assert second.succeeded
        assert math.hypot(*(base.pose.xy - DOCK.xy)) < 0.04


@pytest.mark.parametrize(
    "bad", [{"docks": ("charger 1 2",)}, {"docks": ("charger a b c",)}, {"docking": {"speed": -1.0}}]
)
def test_nonsense_is_refused(bad):
    from roboyard.bus import NodeError

    with Bus() as bus, pytest.raises((ConfigError, NodeError), match="dock"):
        bus.add(DockingNode(**bad), "docking")
