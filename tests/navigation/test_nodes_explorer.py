"""The explorer on a bus, with a navigator that drives at once and a map that a perfect sensor makes."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from tests.harness.bus import BusHarness, Goal
from tests.navigation.random_rooms import Sensor, free_pose, random_rooms

from roboyard.bus import GoalHandle, Node
from roboyard.errors import ConfigError
from roboyard.geometry import SE2
from roboyard.grids import GridGeometry
from roboyard.messages import action, msg
from roboyard.messages.convert import grid_to_msg, pose_to_se2
from roboyard.messages.convert.action_goals import GoalStatus
from roboyard.navigation.evaluation.exploration import coverage_fraction, reachable_area
from roboyard.navigation.nodes import ExplorerNode

RADIUS = 0.2


class MappingRobot(Node):
    """Stands for SLAM and navigator: maps every second, and is at a goal a second after it was sent."""

    def setup(self) -> None:
        self.solid = random_rooms(12, 55, 80)
        self.grid_frame = GridGeometry(0.1, self.solid.shape, SE2(-1.0, -2.0, 0.0))
        self.start = free_pose(self.solid, self.grid_frame, RADIUS, 1)
        self.pose = self.start
        self.sensor = Sensor(self.solid, self.grid_frame, 4.0)
        self.rejects_goals = False
        self.goals: list[SE2] = []
        self.handle: GoalHandle | None = None
        self.map = self.publisher("map", msg.OccupancyGrid, latched=True)
        self.server = self.action_server("navigate_to_pose", action.NavigateToPose, self._on_goal)
        self.timer(1.0, self._publish_map)
        self.timer(0.1, self._publish_pose)

    def _publish_pose(self) -> None:
        self.send_transform(self.pose.to_se3(), "map", "base_link")

    def _publish_map(self) -> None:
        grid = self.sensor.update(self.pose)
        geometry = grid.geometry
        self.map.publish(grid_to_msg(grid.cells, geometry.resolution, geometry.T_map_grid, "map", self.now_ns))

    def _on_goal(self, handle: GoalHandle) -> None:
        goal = pose_to_se2(handle.goal.pose.pose)
        self.goals.append(goal)
        if self.rejects_goals:
            handle.reject("no way there")
            return
        handle.accept()
        handle.on_cancel = lambda canceled_handle: canceled_handle.set_canceled(None, "")
        self.call_after(1.0, lambda: self._arrive(handle, goal))

    def _arrive(self, handle: GoalHandle, goal: SE2) -> None:
        if handle.status is GoalStatus.EXECUTING:
            self.pose = goal
            self._publish_pose()
            handle.succeed(action.NavigateToPose.Result())


class ExplorationHarness(BusHarness):
    """A bus with an explorer, and the robot that it sends about."""

    def __init__(self, *, seed: int = 0, node_class: type[ExplorerNode] = ExplorerNode, **parameters: Any) -> None:
        super().__init__(seed=seed)
        self.robot = self.add(MappingRobot(), "robot")
        self.node = self.add(
            node_class(radii_from_footprint=False, frontiers={"sensor_range": 4.0}, **parameters), "explorer"
        )

    @property
    def statuses(self) -> list[Any]:
        """What the explorer published of itself."""
        return self.published("/exploration").messages

    @property
    def phase(self) -> str:
        """Its newest phase, "" before the first."""
        published = self.published("/exploration")
        return str(published.last.phase) if published else ""

    def run_to_end(self, timeout: float = 600.0) -> None:
        """Run until the exploration has ended, however."""
        self.spin_until(lambda: self.phase in ("done", "failed", "canceled"), timeout=timeout)

    @property
    def coverage(self) -> float:
        """Share of the reachable floor that the map shows."""
        robot = self.robot
        floor = reachable_area(robot.solid, robot.grid_frame, robot.start.xy, RADIUS)
        return coverage_fraction(robot.sensor.evidence.to_grid(), floor, robot.grid_frame)

    def start_exploring(self, **goal: Any) -> Goal:
        """Send a goal to the explorer."""
        return self.start_goal("/explore", action.Explore, **goal)


def test_explorer_covers_the_floor_and_returns() -> None:
    with ExplorationHarness() as harness:
        harness.run_to_end()
        assert harness.phase == "done"
        assert harness.coverage >= 0.99
        assert harness.robot.pose.distance(harness.robot.start) < 1e-9
        known_areas = [status.known_area for status in harness.statuses]
        assert (np.diff(known_areas) >= -1e-6).all()
        assert harness.statuses[-1].frontiers == 0
        assert pose_to_se2(harness.statuses[-1].start).distance(harness.robot.start) < 1e-9
        markers = harness.published("/frontiers").messages
        assert [len(marker.points) > 0 for marker in markers[0].markers] == [True, True, True]
        assert [marker.action for marker in markers[-1].markers[:2]] == [msg.Marker.DELETE] * 2
        assert harness.node.health is not None
        assert harness.node.health.level == "ok"


class MaxPathCostExplorer(ExplorerNode):
    """An explorer of a user's own: it drives to the viewpoint with the highest path cost first."""

    @staticmethod
    def select_viewpoint(viewpoints, goal, failures, config=None):
        if goal is not None:
            return next((one for one in viewpoints if one.pose == goal), None)
        return max(viewpoints, key=lambda one: one.path_cost, default=None)


def test_explorer_uses_the_selector_of_a_subclass() -> None:
    first_goals = []
    for node_class in (ExplorerNode, MaxPathCostExplorer):
        with ExplorationHarness(node_class=node_class) as harness:
            harness.run_for(4.0)
            first_goals.append(harness.robot.goals[0])
            start = harness.robot.start
    assert first_goals[1].distance(start) > first_goals[0].distance(start)


def test_explore_action_starts_reports_and_cancels() -> None:
    with ExplorationHarness(autostart=False) as harness:
        robot = harness.robot
        early = harness.start_exploring()
        harness.run_for(0.05)
        assert early.accepted is False
        harness.run_for(5.0)
        assert robot.goals == []
        goal = harness.start_exploring(stay_at_end=True)
        harness.run_for(2.5)
        assert goal.accepted
        assert len(robot.goals) >= 1
        assert goal.feedback[-1].status.phase == "explore"
        goal.cancel()
        harness.run_for(1.0)
        assert goal.status is GoalStatus.CANCELED
        assert goal.result.status.known_area > 1.0
        assert robot.server.active_goals == ()
        count = len(robot.goals)
        harness.run_for(5.0)
        assert len(robot.goals) == count
        second_goal = harness.start_exploring(stay_at_end=True)
        harness.run_for(1.0)
        harness.run_to_end()
        harness.run_for(0.1)
        assert second_goal.succeeded
        assert harness.coverage >= 0.99


def test_goal_of_another_client_ends_the_exploration() -> None:
    with ExplorationHarness() as harness:
        harness.spin_until(lambda: harness.robot.server.active_goals, timeout=20.0)
        harness.start_goal("/navigate_to_pose", action.NavigateToPose)
        harness.run_for(0.1)
        assert (harness.phase, harness.statuses[-1].error_code) == ("failed", "interrupted")
        assert len(harness.robot.server.active_goals) == 1  # the other client's goal goes on


def test_explorer_gives_up_when_no_goal_is_reachable() -> None:
    with ExplorationHarness() as harness:
        harness.robot.rejects_goals = True
        harness.run_to_end(900.0)
        assert (harness.phase, harness.statuses[-1].error_code) == ("failed", "not_back")
        assert harness.statuses[-1].goals_failed >= 3


def test_explorer_waits_for_navigator_and_map_of_its_frame(harness: BusHarness) -> None:
    node = harness.add(ExplorerNode(), "explorer")
    harness.publish("/map", grid_to_msg(np.zeros((5, 5), dtype=np.int8), 0.1, SE2(), "elsewhere", 0))
    harness.run_for(2.0)
    assert node.health is not None
    assert "map" in node.health.text


def test_explorer_repeats_and_continues_when_loaded() -> None:
    def explore(interrupt: bool) -> tuple[list[Any], list[SE2]]:
        with ExplorationHarness(seed=1) as harness:
            harness.run_for(3.35)
            if interrupt:
                harness.node.load_state(harness.node.save_state())
            harness.run_to_end()
            statuses = [(status.phase, status.known_area, status.goals_sent) for status in harness.statuses]
            return statuses, harness.robot.goals

    assert explore(False) == explore(False)
    phases, goals = explore(True)
    assert phases[-1][0] == "done"
    assert goals


@pytest.mark.parametrize(
    "bad",
    [{"frontiers": {"sensor_rnage": 3.0}}, {"viewpoint_selection": {"max_attempts": 0}}, {"max_goals": 0}],
    ids=["unknown key", "no tries", "no budget"],
)
def test_invalid_explorer_parameters_are_refused(bad: dict[str, Any]) -> None:
    with pytest.raises(ConfigError):
        ExplorerNode(**bad)
