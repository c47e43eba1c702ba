"""Exploration against floor plan and truth: the collector's metrics, and the report's maps and shares over time."""

from __future__ import annotations

import math
from pathlib import Path

import numpy as np
import pytest

from roboyard.geometry import SE2
from roboyard.grids import GridFrame
from roboyard.messages import msg, serialize, type_name
from roboyard.messages.convert import grid_to_msg, odometry_to_msg, pose_to_msg
from roboyard.navigation.exploration import Frontiers
from roboyard.navigation.nodes.exploration_messages import frontiers_to_msg
from roboyard.record import McapWriter, open_recording
from roboyard.scenarios.metrics import RobotTopics
from roboyard.scenarios.metrics.exploration import Exploration
from roboyard.scenarios.report.exploration import coverage_figure, map_figure, read_reconnaissance
from roboyard.scenarios.report.story import read_story
from roboyard.simulation.floor_plan import FloorPlan

S = 1_000_000_000
T_world_map = SE2(5.0, -3.0, 0.7)
"""Its map begins where it stood; the world knows that place otherwise."""
START = SE2(0.3, 0.2, -0.4)
"""Where it sets out, in its map."""


def plan(resolution: float) -> FloorPlan:
    """A room of 4 x 4 m about the place where it sets out, square to the world."""
    solid = np.zeros((80, 80), dtype=bool)
    solid[[0, -1]] = solid[:, [0, -1]] = True
    here = T_world_map @ START
    return FloorPlan(solid, (here.x - 2.0, here.y - 2.0), resolution, 0.25)


class Day:
    """A collector, and what it is told."""

    def __init__(self, known=plan) -> None:
        self.collector = Exploration("/truth/odom", "/exploration", "/map", known)
        self.told = self.collector.handlers()

    def truth(self, second: float, in_map: SE2) -> None:
        self.told["/truth/odom"](truth(second, in_map), round(second * S))

    def status(self, second: float, phase: str, **more) -> None:
        self.told["/exploration"](status(second, phase, **more), round(second * S))

    def map(self, second: float, reach: float) -> None:
        self.told["/map"](known_within(second, reach), round(second * S))


def truth(second: float, in_map: SE2):
    pose = T_world_map @ in_map
    return odometry_to_msg(pose, [0, 0, 0], [0, 0, 0], frame="world", child="base", time_ns=round(second * S))


def status(second: float, phase: str, goals: int = 0, known: float = 0.0):
    return msg.ExplorationStatus(phase=phase, start=pose_to_msg(START), radius=0.2, goals=goals, known=known)


def known_within(second: float, reach: float):
    """A map that knows all about the start as far as that [m]."""
    frame = GridFrame(0.05, (160, 160), SE2(-4.0, -4.0, 0.0))
    middles = frame.points(np.argwhere(np.ones(frame.shape))) - (START.x, START.y)
    cells = np.where(np.hypot(*middles.T) < reach, 0, -1).astype(np.int8).reshape(frame.shape)
    return grid_to_msg(cells, 0.05, frame.T_map_grid, "map", round(second * S))


@pytest.mark.parametrize(("reach", "share"), [(4.0, 1.0), (1.0, math.pi / 3.9**2), (0.5, 0.25 * math.pi / 3.9**2)])
def test_the_share_of_the_floor_is_that_of_the_circle_it_knows(reach: float, share: float) -> None:
    day = Day()
    day.truth(0.0, START)
    day.status(1.0, "explore")
    day.truth(9.0, START @ SE2(0.3, 0.0))
    day.map(9.0, reach)
    day.status(10.0, "done")
    day.status(10.0, "done")  # said twice, it is still the same exploration
    day.truth(20.0, START @ SE2(5.0, 0.0))
    found = day.collector.result()
    assert found["explored"] is True
    assert found["exploration_time"] == pytest.approx(9.0)
    assert found["return_error"] == pytest.approx(0.3)
    assert found["coverage"] == pytest.approx(share, abs=0.012)


def test_a_second_exploration_counts_anew_and_one_that_failed_is_not_done() -> None:
    day = Day()
    day.truth(0.0, START)
    day.status(1.0, "explore")
    day.status(5.0, "failed")
    assert day.collector.result()["explored"] is False
    day.truth(20.0, START @ SE2(1.0, 0.0))
    day.status(21.0, "explore")
    day.truth(30.0, START @ SE2(1.5, 0.0))
    day.status(31.0, "done")
    found = day.collector.result()
    assert (found["explored"], found["exploration_time"]) == (True, pytest.approx(10.0))
    assert found["return_error"] == pytest.approx(0.5)


def test_what_nobody_can_know_is_none() -> None:
    assert set(Day().collector.result().values()) == {None}
    day = Day(known=None)
    day.truth(0.0, START)
    day.status(1.0, "explore")
    day.map(2.0, 3.0)
    day.status(3.0, "done")
    assert day.collector.result()["coverage"] is None


def test_the_report_tells_how_the_map_grew(tmp_path: Path) -> None:
    path = tmp_path / "recording.mcap"
    nothing = Frontiers((), (), 0.0, GridFrame(0.05, (1, 1)))
    with McapWriter(path) as writer:
        for second in range(41):
            here = START @ SE2(0.02 * max(second - 10, 0), 0.0)
            said = {"/truth/rover/odom": truth(second, here)}
            if second % 10 == 0 and second:
                said["/map"] = known_within(second, 0.06 * second)
                said["/frontiers"] = frontiers_to_msg(nothing, here, "map", second * S)
                phase = "done" if second == 40 else "explore"
                said["/exploration"] = status(second, phase, goals=second // 20, known=second)
            for topic, message in said.items():
                channel = writer.channel(topic, type_name(type(message)), "/test")
                writer.write(channel, second * S, serialize(message))
    with open_recording(path) as recording:
        story = read_story(recording, "rover", "")
        found = read_reconnaissance(recording, story, RobotTopics.of("rover"), plan)
        unknown = read_reconnaissance(recording, story, RobotTopics.of("rover"), None)
        assert read_reconnaissance(recording, story, RobotTopics.of("rover", "/other"), plan) is None
    assert found is not None
    expected = math.pi * (0.06 * found.time) ** 2 / 3.9**2
    assert found.coverage[:3] == pytest.approx(expected[:3], abs=0.03)
    assert (np.diff(found.coverage) > 0.0).all()
    assert [known.time for known in found.pictures] == [17.5, 25.0, 32.5, 40.0]
    assert list(found.goals) == [20.0, 40.0]
    assert found.T_world_map.distance(T_world_map) < 1e-6
    for draw in (map_figure, coverage_figure):
        assert draw(story, found).startswith("<svg")
        assert draw(story, found) == draw(story, found), "the same run gives the same page"
    assert unknown is not None
    assert not len(unknown.coverage)
    assert "free ground" in coverage_figure(story, unknown)
