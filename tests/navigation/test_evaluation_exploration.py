"""Exploration metrics against floor plan and truth, and the maps and shares of the report."""

from __future__ import annotations

import math
from pathlib import Path

import numpy as np
import pytest
from tests.harness.collectors import CollectorFeed, KnownWorld

from roboyard.evaluation.collector import RobotContext
from roboyard.evaluation.robot_trace import read_robot_trace
from roboyard.evaluation.topics import RobotTopics
from roboyard.geometry import SE2
from roboyard.grids import GridGeometry
from roboyard.grids.floor_plan import FloorPlan
from roboyard.messages import msg, serialize, type_name
from roboyard.messages.convert import grid_to_msg, odometry_to_msg, pose_to_msg
from roboyard.navigation.evaluation.exploration import (
    ExplorationMetrics,
    coverage_figure,
    map_figure,
    read_exploration_trace,
)
from roboyard.navigation.exploration import FrontierMap
from roboyard.navigation.nodes.explorer import frontiers_to_msg
from roboyard.record import McapWriter, open_recording

S = 1_000_000_000
T_world_map = SE2(5.0, -3.0, 0.7)
"""Its map begins where it stood; the world knows that place otherwise."""
START = SE2(0.3, 0.2, -0.4)
"""Where it sets out, in its map."""


def make_plan(resolution: float) -> FloorPlan:
    """A room of 4 x 4 m about the place where it sets out, square to the world."""
    solid = np.zeros((80, 80), dtype=bool)
    solid[[0, -1]] = solid[:, [0, -1]] = True
    start = T_world_map @ START
    return FloorPlan(solid, (start.x - 2.0, start.y - 2.0), resolution, 0.25)


class ExplorationFeed(CollectorFeed[ExplorationMetrics]):
    """The truth about a robot, its exploration and its map."""

    def __init__(self, *, with_truth: bool = True) -> None:
        truth = KnownWorld(lambda resolution, _: make_plan(resolution)) if with_truth else None
        super().__init__(ExplorationMetrics(RobotContext("rover", RobotTopics.for_robot("rover"), truth=truth)))

    def set_pose(self, second: float, in_map: SE2) -> None:
        """The robot is truly there."""
        self.send("/truth/rover/odom", make_truth(second, in_map), second)

    def send_status(self, second: float, phase: str) -> None:
        """The explorer publishes its status."""
        self.send("/exploration", make_status(phase), second)

    def send_map(self, second: float, reach: float) -> None:
        """A map comes that knows all about the start as far as that [m]."""
        self.send("/map", make_map(second, reach), second)


def make_truth(second: float, in_map: SE2):
    pose = T_world_map @ in_map
    return odometry_to_msg(pose, [0, 0, 0], [0, 0, 0], frame="world", child_frame="base", time_ns=round(second * S))


def make_status(phase: str, goals: int = 0, known_area: float = 0.0):
    return msg.ExplorationStatus(
        phase=phase, start=pose_to_msg(START), radius=0.2, goals_sent=goals, known_area=known_area
    )


def make_map(second: float, reach: float):
    """A map that knows all about the start as far as that [m]."""
    frame = GridGeometry(0.05, (160, 160), SE2(-4.0, -4.0, 0.0))
    centers = frame.cell_centers(np.argwhere(np.ones(frame.shape))) - (START.x, START.y)
    cells = np.where(np.hypot(*centers.T) < reach, 0, -1).astype(np.int8).reshape(frame.shape)
    return grid_to_msg(cells, 0.05, frame.T_map_grid, "map", round(second * S))


@pytest.mark.parametrize(
    ("reach", "fraction"),
    [(4.0, 1.0), (1.0, math.pi / 3.9**2), (0.5, 0.25 * math.pi / 3.9**2)],
    ids=["whole", "1-m", "half-a-meter"],
)
def test_coverage_is_the_known_fraction_of_the_floor(reach: float, fraction: float) -> None:
    feed = ExplorationFeed()
    feed.set_pose(0.0, START)
    feed.send_status(1.0, "explore")
    feed.set_pose(9.0, START @ SE2(0.3, 0.0))
    feed.send_map(9.0, reach)
    feed.send_status(10.0, "done")
    feed.send_status(10.0, "done")  # said twice, it is still the same exploration
    feed.set_pose(20.0, START @ SE2(5.0, 0.0))
    found = feed.result()
    assert found["explored"] is True
    assert found["exploration_time"] == pytest.approx(9.0)
    assert found["return_error"] == pytest.approx(0.3)
    assert found["coverage"] == pytest.approx(fraction, abs=0.012)


def test_second_exploration_replaces_a_failed_one() -> None:
    feed = ExplorationFeed()
    feed.set_pose(0.0, START)
    feed.send_status(1.0, "explore")
    feed.send_status(5.0, "failed")
    assert feed.result()["explored"] is False
    feed.set_pose(20.0, START @ SE2(1.0, 0.0))
    feed.send_status(21.0, "explore")
    feed.set_pose(30.0, START @ SE2(1.5, 0.0))
    feed.send_status(31.0, "done")
    found = feed.result()
    assert (found["explored"], found["exploration_time"]) == (True, pytest.approx(10.0))
    assert found["return_error"] == pytest.approx(0.5)


def test_coverage_without_floor_plan_is_not_measured() -> None:
    assert ExplorationFeed().collector.values() == {}
    feed = ExplorationFeed(with_truth=False)
    feed.set_pose(0.0, START)
    feed.send_status(1.0, "explore")
    feed.send_map(2.0, 3.0)
    feed.send_status(3.0, "done")
    assert feed.result()["coverage"] is None


def test_report_shows_the_growth_of_the_map(tmp_path: Path) -> None:
    path = tmp_path / "recording.mcap"
    no_frontiers = FrontierMap((), (), 0.0, GridGeometry(0.05, (1, 1)))
    with McapWriter(path) as writer:
        for second in range(41):
            pose = START @ SE2(0.02 * max(second - 10, 0), 0.0)
            published = {"/truth/rover/odom": make_truth(second, pose)}
            if second % 10 == 0 and second:
                published["/map"] = make_map(second, 0.06 * second)
                published["/frontiers"] = frontiers_to_msg(no_frontiers, pose, "map", second * S)
                phase = "done" if second == 40 else "explore"
                published["/exploration"] = make_status(phase, goals=second // 20, known_area=second)
            for topic, message in published.items():
                channel = writer.channel(topic, type_name(type(message)), "/test")
                writer.write(channel, second * S, serialize(message))
    with open_recording(path) as recording:
        trace = read_robot_trace(recording, "rover", "")
        found = read_exploration_trace(recording, trace, RobotTopics.for_robot("rover"), make_plan)
        unknown = read_exploration_trace(recording, trace, RobotTopics.for_robot("rover"), None)
        assert read_exploration_trace(recording, trace, RobotTopics.for_robot("rover", "/other"), make_plan) is None
    assert found is not None
    expected = math.pi * (0.06 * found.time) ** 2 / 3.9**2
    assert found.coverage[:3] == pytest.approx(expected[:3], abs=0.03)
    assert (np.diff(found.coverage) > 0.0).all()
    assert [snapshot.time for snapshot in found.snapshots] == [17.5, 25.0, 32.5, 40.0]
    assert list(found.goal_times) == [20.0, 40.0]
    assert found.T_world_map.distance(T_world_map) < 1e-6
    for draw in (map_figure, coverage_figure):
        assert draw(trace, found).startswith("<svg")
        assert draw(trace, found) == draw(trace, found), "the same run gives the same page"
    assert unknown is not None
    assert not len(unknown.coverage)
    assert "free area" in coverage_figure(trace, unknown)
