"""A planner over a route graph keeps to its lanes, and avoids those on which obstacles stand."""

import json

import numpy as np
import pytest

from roboyard.errors import ConfigError, InputError
from roboyard.geometry import SE2
from roboyard.grids import GridGeometry
from roboyard.navigation.costmap import FREE, INSCRIBED, LETHAL, Costmap
from roboyard.navigation.errors import NoPathError
from roboyard.navigation.footprint import Footprint
from roboyard.navigation.navigator import PluginConfig
from roboyard.navigation.planners.route_graph import RoutePlanner
from roboyard.navigation.plugins import make_planner

NODES = {1: (1.0, 1.0), 2: (5.0, 1.0), 3: (5.0, 4.0), 4: (1.0, 4.0)}
LANES = [(1, 2), (2, 3), (1, 4), (4, 3)]


@pytest.fixture
def graph(tmp_path):
    features = [
        {"type": "Feature", "properties": {"id": number}, "geometry": {"type": "Point", "coordinates": position}}
        for number, position in NODES.items()
    ]
    features += [
        {
            "type": "Feature",
            "properties": {"id": 10 + number, "startid": first, "endid": last},
            "geometry": {"type": "MultiLineString", "coordinates": [[NODES[first], NODES[last]]]},
        }
        for number, (first, last) in enumerate(LANES)
    ]
    path = tmp_path / "lanes.geojson"
    path.write_text(json.dumps({"type": "FeatureCollection", "features": features}))
    return str(path)


def _costmap() -> Costmap:
    return Costmap(np.full((100, 120), FREE, dtype=np.uint8), GridGeometry(0.05, (100, 120)))


def _distance_from_lanes(points: np.ndarray) -> np.ndarray:
    distances = np.full(len(points), np.inf)
    for first, last in LANES:
        a, b = np.array(NODES[first]), np.array(NODES[last])
        fractions = np.clip((points - a) @ (b - a) / ((b - a) @ (b - a)), 0.0, 1.0)
        distances = np.minimum(distances, np.hypot(*(points - a - fractions[:, None] * (b - a)).T))
    return distances


def test_route_keeps_lanes_and_avoids_an_obstacle(graph: str) -> None:
    planner = make_planner(PluginConfig("route", {"graph": graph, "two_way": True}), Footprint.circle(0.2))
    costmap, start, goal = _costmap(), SE2(1.2, 1.3, 0.0), SE2(4.8, 3.7, 1.0)
    for blocked in (None, (slice(15, 25), slice(60, 64)), (slice(75, 85), slice(60, 64))):
        costmap.cells[:] = FREE
        if blocked is not None:
            costmap.cells[blocked] = INSCRIBED
        path = planner.plan(costmap, start, goal)
        np.testing.assert_allclose(path.poses[0, :2], start.xy)
        np.testing.assert_allclose(path.poses[-1], (goal.x, goal.y, goal.theta))
        assert np.hypot(*np.diff(path.poses[:, :2], axis=0).T).max() < 0.11
        assert (_distance_from_lanes(path.poses[:, :2]) < 0.06).mean() > 0.85
        cells = costmap.geometry.cells_of_points(path.poses[:, :2])
        assert (costmap.cells[cells[:, 0], cells[:, 1]] == FREE).all()
        assert np.isfinite(path.cost)


def test_wall_between_the_last_lane_and_the_goal_closes_no_lane(graph: str) -> None:
    costmap = _costmap()
    costmap.cells[85:88, 70:110] = LETHAL  # north of the lanes, with a way round it
    goal = SE2(4.5, 4.7, 1.0)
    path = RoutePlanner(graph, two_way=True).plan(costmap, SE2(1.2, 1.3, 0.0), goal)
    np.testing.assert_allclose(path.poses[-1], (goal.x, goal.y, goal.theta))
    assert np.isfinite(path.cost)
    assert np.hypot(*(path.poses[:, :2] - (3.0, 4.0)).T).min() < 0.06  # over the lane 4 -> 3, which is free


def test_route_failure_names_the_closed_lanes(graph: str) -> None:
    costmap = _costmap()
    costmap.cells[:, 60:63] = LETHAL
    with pytest.raises(NoPathError, match="obstacles stand on 10, 13"):
        RoutePlanner(graph, two_way=True).plan(costmap, SE2(1.2, 1.3, 0.0), SE2(4.8, 3.7, 1.0))


def test_one_way_lanes_are_driven_in_their_direction(graph: str) -> None:
    with pytest.raises(NoPathError):
        RoutePlanner(graph).plan(_costmap(), SE2(4.9, 3.9, 0.0), SE2(1.0, 1.1, 0.0))
    path = RoutePlanner(graph, two_way=True).plan(_costmap(), SE2(4.9, 3.9, 0.0), SE2(1.0, 1.1, 0.0))
    assert (_distance_from_lanes(path.poses[:, :2]) < 0.06).mean() > 0.85


def test_missing_or_invalid_route_file_is_refused(tmp_path) -> None:
    with pytest.raises(ConfigError, match="route graph"):
        RoutePlanner().plan(_costmap(), SE2(1, 1, 0), SE2(2, 2, 0))
    with pytest.raises(InputError):
        RoutePlanner(str(tmp_path / "none.geojson")).plan(_costmap(), SE2(1, 1, 0), SE2(2, 2, 0))
