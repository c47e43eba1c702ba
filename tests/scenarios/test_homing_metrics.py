"""Metrics of coming home: what the collector makes of truth, tracker, arbiter and navigator."""

from __future__ import annotations

import pytest

from roboyard.messages import msg
from roboyard.scenarios.metrics.homing import Homing

S = 1_000_000_000


class Day:
    """A collector, and what it is told."""

    def __init__(self) -> None:
        self.homing = Homing("/truth/rover/odom", "/rover")
        self.told = self.homing.handlers()

    def at(self, second: float, x: float, y: float = 0.0) -> None:
        odometry = msg.Odometry()
        odometry.pose.pose.position.x, odometry.pose.pose.position.y = x, y
        self.told["/truth/rover/odom"](odometry, round(second * S))

    def status(self, second: float, link: str, phase: str, **more: int) -> None:
        told = msg.HomingStatus(link=link, phase=phase, stored=3, **more)
        self.told["/rover/homing/status"](told, round(second * S))

    def goal(self, second: float, *codes: int) -> None:
        goals = [msg.GoalStatus(status=code) for code in codes]
        self.told["/rover/navigate_to_pose/_action/status"](msg.GoalStatusArray(status_list=goals), round(second * S))

    def owner(self, second: float, name: str) -> None:
        self.told["/rover/arbiter/owner"](msg.String(data=name), round(second * S))

    def out(self) -> None:
        self.at(0, 1.0)
        self.status(0, "up", "driven")
        self.at(10, 9.0)
        self.status(14, "lost", "returning", blackouts=1)
        self.goal(14, 2)


def test_home_again() -> None:
    day = Day()
    day.out()
    assert day.homing.result()["returned"] is False
    day.at(30, 1.1)
    day.status(30, "lost", "home", blackouts=1, skipped=2)
    found = day.homing.result()
    assert (found["blackouts"], found["returned"], found["points_skipped"]) == (1, True, 2)
    assert found["home_error"] == pytest.approx(0.1)
    assert found["homecoming_seconds"] == pytest.approx(16.0)
    day.status(40, "back", "driven", blackouts=1, skipped=2)
    day.at(50, 7.0)
    assert day.homing.result() == found, "what is driven afterwards changes nothing"


def test_what_the_tracker_takes_for_home_is_judged_by_the_truth() -> None:
    day = Day()
    day.out()
    day.at(30, 1.5)
    day.status(30, "lost", "home", blackouts=1)
    assert day.homing.result()["returned"] is False
    assert day.homing.result()["home_error"] == pytest.approx(0.5)


def test_latency_runs_from_the_operators_message_to_the_goals_end() -> None:
    day = Day()
    day.out()
    day.owner(15, "/rover/navigator")
    assert day.homing.result()["cancel_latency"] is None
    day.owner(20, "/rover/operator")
    day.goal(20.05, 3)
    day.goal(20.15, 5)
    assert day.homing.result()["cancel_latency"] == pytest.approx(0.15)
    day.goal(25, 5, 2)
    day.told["/rover/teleop/heartbeat"](msg.Header(), 30 * S)
    day.homing.finish(34 * S)
    assert day.homing.result()["cancel_latency"] == pytest.approx(4.0), "an operator who is not obeyed waits to the end"


def test_of_a_robot_without_a_tracker_nothing_is_known() -> None:
    assert set(Homing("/truth/rover/odom").result().values()) == {None}
