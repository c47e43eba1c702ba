"""Pedestrians keep to their route, stay upright, and stop before others."""

from __future__ import annotations

import math

import pytest

from roboyard.bringup.robot_loader import load_robot
from roboyard.bus import NodeError
from roboyard.errors import RoboyardError
from roboyard.geometry import SE2
from roboyard.scenarios import Run


def add_pedestrian(run: Run, route: list[float], **more: object):
    package = load_robot("pedestrian").with_overrides({"pedestrian": {"route": route, **more}}, {})
    return run.add_robot(package, "anna", pose=(route[0], route[1], 0.0))


def test_pedestrian_walks_its_route_upright() -> None:
    with Run("empty", record=False, seed=3) as run:
        anna = add_pedestrian(run, [0.0, 0.0, 2.0, 0.5], avoided_topics=[])
        positions = []
        for _ in range(200):
            run.run_for(0.1)
            positions.append(anna.truth.pose)
    assert max(position.x for position in positions) == pytest.approx(2.0, abs=0.1)
    assert min(position.x for position in positions[100:]) < 0.5
    assert all(abs(position.y - 0.25 * position.x) < 0.1 for position in positions)
    assert all(math.hypot(*position.rpy[:2]) < 0.05 for position in positions)


def test_pedestrian_stops_before_a_robot_and_turns_back() -> None:
    with Run("empty", record=False, seed=1) as run:
        rover = run.add_robot("rover", pose=(2.0, 0.0, 0.0))
        anna = add_pedestrian(run, [0.0, 0.0, 4.0, 0.0], dwell_time=0.1)
        positions = []
        for _ in range(150):
            run.run_for(0.1)
            positions.append(SE2.from_se3(anna.truth.pose))
        distances = [math.hypot(position.x - 2.0, position.y) for position in positions]
        assert 0.85 < min(distances) < 1.1
        assert positions[-1].x < 1.0 or min(position.x for position in positions[60:]) < 0.9, "it turned back"
        assert abs(rover.truth.pose.x - 2.0) < 0.01


@pytest.mark.parametrize("later", [False, True])
def test_pedestrian_avoids_robots_of_any_name(later: bool) -> None:
    """Two robots bar its way, neither is called rover, and both may come after it; another pedestrian is no robot."""
    with Run("empty", record=False, seed=1) as run:
        if not later:
            run.add_robot("rover", "carrier", pose=(2.0, 0.0, 0.0))
        anna = add_pedestrian(run, [0.0, 0.0, 4.0, 0.0], dwell_time=0.0, speed_variation=0.0)
        package = load_robot("pedestrian").with_overrides({"pedestrian": {"route": []}}, {})
        run.add_robot(package, "ben", pose=(0.5, 0.6, 0.0))
        if later:
            run.add_robot("rover", "carrier", pose=(2.0, 0.0, 0.0))
        run.add_robot("rover", "second", pose=(-2.0, 0.0, 0.0))
        distances = []
        for _ in range(60):
            run.run_for(0.1)
            distances.append(math.hypot(anna.truth.pose.x - 2.0, anna.truth.pose.y))
        node = anna.nodes["pedestrian"]
        assert set(node._other_positions) == {"/truth/carrier/odom", "/truth/second/odom"}
        run.remove("carrier")
        run.run_for(0.2)
        assert set(node._other_positions) == {"/truth/second/odom"}
    assert 0.85 < min(distances) < 1.1


def test_pedestrian_walk_depends_on_the_seed() -> None:
    def end(seed: int) -> float:
        with Run("empty", record=False, seed=seed) as run:
            anna = add_pedestrian(run, [0.0, 0.0, 5.0, 0.0], avoided_topics=[])
            run.run_for(3.0)
            return anna.truth.pose.x

    assert end(1) == end(1) != end(2)


@pytest.mark.parametrize("route", [[1.0, 2.0], [1.0, 2.0, 3.0], [0.0, 0.0, math.nan, 1.0]])
def test_invalid_routes_are_refused(route) -> None:
    package = load_robot("pedestrian").with_overrides({"pedestrian": {"route": route}}, {})
    with Run("empty", record=False) as run, pytest.raises((NodeError, RoboyardError), match=r"route|numbers"):
        run.add_robot(package, "anna")
