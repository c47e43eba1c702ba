"""The explorer on a bus, with a navigator that drives at once and a map that a perfect sensor makes."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from tests.navigation.planar_worlds import Sensor, free_place, rooms

from roboyard.bus import Bus, GoalHandle, Node, Status
from roboyard.geometry import SE2
from roboyard.grids import GridFrame
from roboyard.messages import action, msg
from roboyard.messages.convert import grid_to_msg, pose_to_se2
from roboyard.navigation.exploration import coverage, reachable_floor
from roboyard.navigation.nodes import ExplorerNode

RADIUS = 0.2


class Carrier(Node):
    """Stands for SLAM and navigator: maps every second, and is at a goal a second after it was given."""

    def setup(self) -> None:
        self.solid = rooms(12, 55, 80)
        self.grid_frame = GridFrame(0.1, self.solid.shape, SE2(-1.0, -2.0, 0.0))
        self.start = free_place(self.solid, self.grid_frame, RADIUS, 1)
        self.pose = self.start
        self.sensor = Sensor(self.solid, self.grid_frame, 4.0)
        self.refuse = False
        self.goals: list[SE2] = []
        self.handle: GoalHandle | None = None
        self.map = self.publisher("map", msg.OccupancyGrid, latched=True)
        self.server = self.action_server("navigate_to_pose", action.NavigateToPose, self._on_goal)
        self.timer(1.0, self._tell_map)
        self.timer(0.1, self._tell_pose)

    def _tell_pose(self) -> None:
        self.broadcast(self.pose.to_se3(), "map", "base_link")

    def _tell_map(self) -> None:
        grid = self.sensor.look(self.pose)
        where = grid.frame
        self.map.publish(grid_to_msg(grid.cells, where.resolution, where.T_map_grid, "map", self.now_ns))

    def _on_goal(self, handle: GoalHandle) -> None:
        goal = pose_to_se2(handle.goal.pose.pose)
        self.goals.append(goal)
        if self.refuse:
            handle.reject("no way there")
            return
        handle.accept()
        handle.on_cancel = lambda asked: asked.cancel(None, "")
        self.after(1.0, lambda: self._arrive(handle, goal))

    def _arrive(self, handle: GoalHandle, goal: SE2) -> None:
        if handle.status is Status.EXECUTING:
            self.pose = goal
            self._tell_pose()
            handle.succeed(action.NavigateToPose.Result())


class Yard:
    """Carrier and explorer on a bus."""

    def __init__(self, bus: Bus, **parameters: Any) -> None:
        self.bus = bus
        self.statuses: list[Any] = []
        self.markers: list[Any] = []
        bus.tap(self._tap)
        self.carrier = bus.add(Carrier(), "carrier")
        self.node = bus.add(ExplorerNode(own_size=False, frontiers={"sight": 4.0}, **parameters), "explorer")

    def _tap(self, topic: Any, message: Any, source: str, time_ns: int) -> None:
        if topic.name == "/exploration":
            self.statuses.append(message)
        elif topic.name == "/frontiers":
            self.markers.append(message)

    @property
    def phase(self) -> str:
        return str(self.statuses[-1].phase) if self.statuses else ""

    def run(self, seconds: float) -> None:
        self.bus.executor.run_until(
            self.bus.now_ns + round(seconds * 1e9), lambda: self.phase in ("done", "failed", "canceled")
        )

    @property
    def coverage(self) -> float:
        carrier = self.carrier
        floor = reachable_floor(carrier.solid, carrier.grid_frame, carrier.start.xy, RADIUS)
        return coverage(carrier.sensor.evidence.grid(), floor, carrier.grid_frame)


class Asker(Node):
    """Gives goals."""

    def setup(self) -> None:
        self.explore = self.action_client("explore", action.Explore)
        self.navigate = self.action_client("navigate_to_pose", action.NavigateToPose)


def test_it_explores_by_itself_sees_everything_and_comes_back():
    with Bus() as bus:
        yard = Yard(bus)
        yard.run(600.0)
        assert yard.phase == "done"
        assert yard.coverage >= 0.99
        assert yard.carrier.pose.distance(yard.carrier.start) < 1e-9
        known = [status.known for status in yard.statuses]
        assert (np.diff(known) >= -1e-6).all()
        assert yard.statuses[-1].frontiers == 0
        assert pose_to_se2(yard.statuses[-1].start).distance(yard.carrier.start) < 1e-9
        first, last = yard.markers[0].markers, yard.markers[-1].markers
        assert [len(marker.points) > 0 for marker in first] == [True, True, True]
        assert [marker.action for marker in last[:2]] == [msg.Marker.DELETE] * 2
        assert yard.node.health is not None
        assert yard.node.health.level == "ok"


def test_it_is_started_told_of_and_cancelled_by_its_action():
    with Bus() as bus:
        yard = Yard(bus, autostart=False)
        asker = bus.add(Asker(), "asker")
        early = asker.explore.send(action.Explore.Goal())
        bus.executor.run_for(0.05)
        assert early.accepted is False
        bus.executor.run_for(5.0)
        assert yard.carrier.goals == []
        heard: list[Any] = []
        goal = asker.explore.send(action.Explore.Goal(stay=True), heard.append)
        bus.executor.run_for(2.5)
        assert goal.accepted
        assert len(yard.carrier.goals) >= 1
        assert heard[-1].status.phase == "explore"
        goal.cancel()
        bus.executor.run_for(1.0)
        assert goal.status is Status.CANCELED
        assert goal.result.status.known > 1.0
        assert yard.carrier.server.active == ()
        count = len(yard.carrier.goals)
        bus.executor.run_for(5.0)
        assert len(yard.carrier.goals) == count
        again = asker.explore.send(action.Explore.Goal(stay=True))
        bus.executor.run_for(1.0)
        yard.run(600.0)
        bus.executor.run_for(0.1)
        assert again.succeeded
        assert yard.coverage >= 0.99


def test_somebody_elses_goal_ends_it():
    with Bus() as bus:
        yard = Yard(bus)
        asker = bus.add(Asker(), "asker")
        assert bus.executor.run_until(20 * 10**9, lambda: bool(yard.carrier.server.active))
        asker.navigate.send(action.NavigateToPose.Goal())
        bus.executor.run_for(0.1)
        assert (yard.phase, yard.statuses[-1].cause) == ("failed", "interrupted")
        assert len(yard.carrier.server.active) == 1  # theirs goes on


def test_where_no_goal_can_be_reached_it_gives_up_and_says_so():
    with Bus() as bus:
        yard = Yard(bus)
        yard.carrier.refuse = True
        yard.run(900.0)
        assert (yard.phase, yard.statuses[-1].cause) == ("failed", "not_back")
        assert yard.statuses[-1].failures >= 3


def test_it_waits_for_a_navigator_and_for_a_map_of_its_frame():
    with Bus() as bus:
        node = bus.add(ExplorerNode(), "explorer")
        maps = bus.publisher("/map", msg.OccupancyGrid, "/test")
        maps.publish(grid_to_msg(np.zeros((5, 5), dtype=np.int8), 0.1, SE2(), "elsewhere", 0))
        bus.executor.run_for(2.0)
        assert node.health is not None
        assert "map" in node.health.text


def test_two_runs_are_the_same_and_one_that_is_saved_goes_on():
    def told(interrupt: bool) -> list[Any]:
        with Bus(seed=1) as bus:
            yard = Yard(bus)
            bus.executor.run_for(3.35)
            if interrupt:
                state = yard.node.save()
                yard.node.load(state)
            yard.run(600.0)
            return [(status.phase, status.known, status.goals) for status in yard.statuses], yard.carrier.goals

    assert told(False) == told(False)
    phases, goals = told(True)
    assert phases[-1][0] == "done"
    assert goals


@pytest.mark.parametrize("bad", [{"frontiers": {"sigth": 3.0}}, {"choice": {"tries": 0}}, {"budget": 0}])
def test_nonsense_is_refused(bad):
    from roboyard.errors import ConfigError

    with pytest.raises(ConfigError):
        ExplorerNode(**bad)
