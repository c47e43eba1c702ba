"""Metrics of navigation goals: how goals end, and the clearance from obstacles that come, go and move."""

from __future__ import annotations

from collections.abc import Collection

import numpy as np
import pytest
from tests.harness.collectors import CollectorFeed, KnownWorld

from roboyard.evaluation.collector import RobotContext
from roboyard.evaluation.topics import RobotTopics
from roboyard.geometry import SE2
from roboyard.grids.floor_plan import FloorPlan
from roboyard.messages import message_type, msg
from roboyard.messages.convert import pose_to_msg
from roboyard.navigation.evaluation.navigation import NavigationMetrics

FOOTPRINT = ((0.2, 0.2), (-0.2, 0.2), (-0.2, -0.2), (0.2, -0.2))
BOX_X = 2.0
"""Where the box stands at the end: on the robot's track [m]."""


def make_plan(resolution: float, excluded_models: Collection[str]) -> FloorPlan:
    """Return the plan of a wall at y = 1 m, and of a box of 0.4 m on the x axis unless it is excluded."""
    occupied = np.zeros((round(3.0 / resolution), round(6.0 / resolution)), np.bool_)
    occupied[round(2.0 / resolution)] = True
    if "box" not in excluded_models:
        rows, columns = (
            slice(round(low / resolution), round(high / resolution)) for low, high in ((0.8, 1.2), (2.8, 3.2))
        )
        occupied[rows, columns] = True
    return FloorPlan(occupied, (-1.0, -1.0), resolution, 0.25)


def _cells(bounds: tuple[float, float], resolution: float) -> slice:
    return slice(round(bounds[0] / resolution), round(bounds[1] / resolution))


class NavigationFeed(CollectorFeed[NavigationMetrics]):
    """A navigator and the true poses of its robot, in a world with a box."""

    def __init__(self) -> None:
        self.world = KnownWorld(make_plan, {"wall": ()})
        topics = RobotTopics.for_robot("rover")
        super().__init__(
            NavigationMetrics(RobotContext("rover", topics, footprint=FOOTPRINT, lidar_height=0.25, truth=self.world))
        )

    def set_pose(self, x: float, y: float = 0.0) -> None:
        """Publish the robot's true position [m]."""
        odometry = msg.Odometry()
        odometry.pose.pose = pose_to_msg(SE2(x, y, 0.0).to_se3())
        self.send("/truth/rover/odom", odometry)

    def send_status(self, state: str, error_code: str = "", x: float = 4.0) -> None:
        """Publish the state of a goal at x [m]."""
        pose = pose_to_msg(SE2(x, 0.0, 0.0).to_se3())
        status = message_type("roboyard_msgs/msg/NavigationStatus")
        self.send("/navigator/status", status(task="navigate_to_pose", state=state, goal=pose, error_code=error_code))

    def drive(self) -> dict[str, object]:
        """Drive along the x axis to the goal, and end the run."""
        for x in np.arange(0.0, 4.01, 0.05):
            self.set_pose(float(x))
        self.send_status("succeeded")
        return dict(self.finish(10.0))


def test_goals_that_a_newer_goal_replaces_have_not_failed() -> None:
    feed = NavigationFeed()
    feed.set_pose(0.0)
    for state in ("started", "aborted", "started", "aborted", "started", "succeeded"):
        feed.send_status(state)
    found = feed.result()
    assert (found["navigation_goals"], found["goals_reached"], found["goals_failed"]) == (3, 1, 0)
    assert (found["goals_preempted"], found["navigation_failure"]) == (2, "")
    feed.send_status("started")
    feed.send_status("aborted", "no_path")
    assert (feed["goals_failed"], feed["navigation_failure"]) == (1, "no_path")


def test_each_goal_has_an_event_at_its_start_and_one_at_its_end() -> None:
    feed = NavigationFeed()
    feed.set_pose(0.0)
    rows = [
        ("started", "", "goal_started"), ("succeeded", "", "goal_reached"), ("rejected", "refused", "goal_failed"),
        ("started", "", "goal_started"), ("aborted", "preempted", "goal_preempted"),
        ("started", "", "goal_started"), ("canceled", "", "goal_canceled"),
        ("started", "", "goal_started"), ("planning", "", ""), ("aborted", "no_path", "goal_failed"),
    ]  # fmt: skip
    for second, (state, error_code, _) in enumerate(rows):
        feed.time = float(second)
        feed.send_status(state, error_code)
    events = feed.collector.events()
    assert [(event.time, event.kind) for event in events] == [
        (float(second), kind) for second, (_, _, kind) in enumerate(rows) if kind
    ]
    assert events[1].text == "navigate_to_pose to (4.00, 0.00) m"
    assert events[-1].text.endswith(": no_path")


def test_robot_without_goals_has_no_metrics_of_navigation() -> None:
    feed = NavigationFeed()
    feed.set_pose(0.0)
    assert feed.collector.values() == {}


def test_box_on_the_track_leaves_no_clearance() -> None:
    feed = NavigationFeed()
    feed.world.placements["box"] = (BOX_X, 0.0, 0.2)
    feed.send_status("started")
    assert feed.drive()["min_clearance"] == 0.0


@pytest.mark.parametrize("placement", [None, (5.0, 0.0, 0.2)], ids=["absent", "elsewhere"])
def test_clearance_is_from_obstacles_of_the_moment_that_are_still_there(placement: tuple[float, ...] | None) -> None:
    feed = NavigationFeed()
    if placement is not None:
        feed.world.placements["box"] = placement
    feed.send_status("started")
    feed.drive()
    feed.world.placements["box"] = (BOX_X, 0.0, 0.2)  # the run ends with the box on the track
    assert feed["min_clearance"] == pytest.approx(0.8, abs=0.03), "the wall is nearest"
    feed.set_pose(1.0)
    assert feed["min_clearance"] == pytest.approx(0.6, abs=0.03), "the robot saw the box from there"
    state = feed.collector.save_state()
    restored = NavigationFeed()
    restored.world.placements = feed.world.placements
    restored.collector.load_state(state)
    assert restored["min_clearance"] == feed["min_clearance"]
