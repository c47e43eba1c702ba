"""Every registered planner keeps the contract and its laws on random maps; planners that break it are found out."""

import json
import math
from dataclasses import dataclass, replace
from functools import cache

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from roboyard.errors import ConfigError, InputError, UnknownNameError
from roboyard.geometry import SE2
from roboyard.grids import GridGeometry, distance_transform
from roboyard.navigation import Costmap, Footprint
from roboyard.navigation.conformance import check_planner
from roboyard.navigation.costmap import INSCRIBED, LETHAL
from roboyard.navigation.errors import NavigationError, NoPathError
from roboyard.navigation.footprint import is_footprint_in_collision
from roboyard.navigation.navigator import PluginConfig
from roboyard.navigation.navigator.config import PathSmootherConfig
from roboyard.navigation.path import Path
from roboyard.navigation.planners import GridSearchPlanner
from roboyard.navigation.plugins import PLANNERS, make_planner

ROUND = Footprint.circle(0.15)
GRID = GridGeometry(0.1, (60, 70), SE2(2.0, -1.0, -0.4))


@pytest.fixture(scope="module")
def graph_file(tmp_path_factory):
    """A route graph with one lane in the part of the checker's map that is always free."""
    lane = (GridGeometry(0.1, (120, 160), SE2(-3.0, 2.0, 0.5)).cell_centers(np.array([[100, 40], [100, 60]]))).tolist()
    features = [
        {"properties": {"id": k}, "geometry": {"type": "Point", "coordinates": point}} for k, point in enumerate(lane)
    ]
    features.append({
        "properties": {"id": 7, "startid": 0, "endid": 1, "two_way": True},
        "geometry": {"type": "LineString", "coordinates": lane},
    })  # fmt: skip
    file = tmp_path_factory.mktemp("graph") / "lane.json"
    file.write_text(json.dumps({"type": "FeatureCollection", "features": features}))
    return str(file)


def settings_of(name, graph_file):
    return {"graph": graph_file} if name == "route" else {}


@pytest.mark.parametrize("name", PLANNERS.names())
def test_registered_planners_conform(name, graph_file):
    plugin = PluginConfig(name, {"traversal": {"allow_unknown": True}, **settings_of(name, graph_file)})
    check_planner(make_planner(plugin, ROUND))
    check_planner(make_planner(plugin, ROUND, PathSmootherConfig(turning_radius=0.4)))


def test_unknown_planner_names_are_refused():
    names = {"a_star", "dijkstra", "fast_marching", "hybrid_a_star", "navfn", "route", "state_lattice"}
    assert set(PLANNERS.names()) >= names
    with pytest.raises(UnknownNameError) as caught:
        PLANNERS["fast_march"](ROUND)
    assert "fast_marching" in str(caught.value)


@cache
def random_costmap(seed):
    """Boxes with inflated costs; a robot of 0.2 m radius must not touch them."""
    rng = np.random.default_rng(seed)
    is_obstacle = np.zeros(GRID.shape, dtype=bool)
    for row, column, height, width in rng.integers((0, 0, 1, 1), (60, 70, 12, 12), (rng.integers(2, 14), 4)):
        is_obstacle[row : row + height, column : column + width] = True
    distance = distance_transform(is_obstacle)
    cells = np.where(distance < 8.0, 252.0 * np.exp(-0.5 * np.maximum(distance - 2.0, 0.0)), 0.0).astype(np.uint8)
    cells[distance <= 2.0] = INSCRIBED
    cells[is_obstacle] = LETHAL
    return Costmap(cells, GRID)


def free_pose(costmap, fraction, theta):
    """A pose on one of the cells where a robot of any heading is free."""
    cells = np.argwhere(costmap.cells < 100)
    assume(len(cells))
    cell = cells[int(fraction * (len(cells) - 1))]
    return SE2(*GRID.cell_centers(cell), theta)


def try_plan(planner, costmap, start, goal):
    try:
        return planner.plan(Costmap(costmap.cells.copy(), GRID), start, goal)
    except NavigationError:
        return None


FRACTIONS, HEADINGS = st.floats(0.0, 1.0), st.floats(-3.1, 3.1)


@pytest.mark.parametrize("name", [name for name in PLANNERS.names() if name != "route"])
@given(seed=st.integers(0, 10_000), a=FRACTIONS, b=FRACTIONS, first=HEADINGS, last=HEADINGS)
@settings(max_examples=15, deadline=None)
def test_paths_on_random_maps_keep_their_laws(name, seed, a, b, first, last):
    costmap, planner = random_costmap(seed), make_planner(PluginConfig(name), ROUND)
    start, goal = free_pose(costmap, a, first), free_pose(costmap, b, last)
    path = try_plan(planner, costmap, start, goal)
    if path is None:
        return
    assert path.pose(0).distance(start) < 1e-6
    assert path.pose(-1).distance(goal) < 1e-6
    assert abs(math.remainder(path.pose(-1).theta - goal.theta, math.tau)) < 1e-6
    points = np.linspace(path.poses[:-1, :2], path.poses[1:, :2], 20).reshape(-1, 2)
    cells = GRID.cells_of_points(points)
    assert GRID.contains(cells).all()
    if not hasattr(planner, "footprint"):  # those look at the outline at poses, and may clip the corner of a cell
        assert (costmap.cells[cells[:, 0], cells[:, 1]] < INSCRIBED).all()
    border = ROUND.sample_border(GRID.resolution) / GRID.resolution
    for x, y, theta in path.poses:
        pose = GRID.T_map_grid.inverse() @ SE2(x, y, theta)
        center = pose.x / GRID.resolution, pose.y / GRID.resolution
        assert not is_footprint_in_collision(costmap.cells, border, *center, pose.theta, True)
    assert path.length * (1.0 - 1e-6) - 1e-9 <= path.cost <= 4.0 * path.length + 1e-9
    repeated = planner.plan(costmap, start, goal)
    assert repeated.poses.tobytes() == path.poses.tobytes()


@pytest.mark.parametrize(
    ("name", "tolerance"), [("a_star", 1e-9), ("dijkstra", 1e-9), ("fast_marching", 0.05), ("navfn", 0.1)]
)
@given(seed=st.integers(0, 10_000), a=FRACTIONS, b=FRACTIONS)
@settings(max_examples=25, deadline=None)
def test_reversed_problem_costs_the_same(name, tolerance, seed, a, b):
    costmap, planner = random_costmap(seed), make_planner(PluginConfig(name), ROUND)
    start, goal = free_pose(costmap, a, 0.0), free_pose(costmap, b, 0.0)
    forward, backward = try_plan(planner, costmap, start, goal), try_plan(planner, costmap, goal, start)
    assert (forward is None) == (backward is None)
    if forward is not None:
        assert forward.cost == pytest.approx(backward.cost, rel=tolerance, abs=0.15 * (tolerance > 1e-6))


@dataclass
class BrokenPlanner:
    violation: str

    def plan(self, costmap: Costmap, start: SE2, goal: SE2) -> Path:
        if self.violation == "gives up":
            raise NoPathError("never")
        if self.violation == "after other calls":
            self.calls = getattr(self, "calls", 0) + 1
        path = GridSearchPlanner().plan(costmap, start, goal)
        if self.violation == "changes the costmap":
            costmap.cells[0, 0] = 7
        if self.violation == "does not lead":
            return replace(path, poses=path.poses[:-3])
        if self.violation == "goal's heading":
            return replace(path, poses=path.poses - [0.0, 0.0, 0.1])
        if self.violation == "apart":
            return replace(path, poses=path.poses[[0, -1]])
        if self.violation == "touches an obstacle" and len(path) > 2:
            return replace(path, poses=np.linspace(path.poses[0], path.poses[-1], 400))
        if self.violation == "cost":
            return replace(path, cost=0.5 * path.length)
        if self.violation == "clearance":
            return replace(path, clearance=0.0)
        if self.violation == "the same arguments":
            return replace(path, poses=np.repeat(path.poses, 1 + np.random.default_rng().integers(1, 1000), axis=0))
        if self.violation == "after other calls" and self.calls > 4:
            return replace(path, poses=np.repeat(path.poses, 2, axis=0))
        return path


@pytest.mark.parametrize(
    "violation",
    [
        "changes the costmap", "does not lead", "goal's heading", "apart", "touches an obstacle", "cost", "clearance",
        "the same arguments", "after other calls",
    ],
)  # fmt: skip
def test_planner_check_finds_each_violation(violation: str) -> None:
    with pytest.raises(InputError) as caught:
        check_planner(BrokenPlanner(violation))
    assert violation in str(caught.value)


def test_planner_check_passes_on_an_unfounded_failure() -> None:
    with pytest.raises(NoPathError):
        check_planner(BrokenPlanner("gives up"))


@dataclass(frozen=True)
class HeedlessPlanner(GridSearchPlanner):
    """Breaks one promise about unknown space, errors or its footprint."""

    violation: str = ""
    footprint: Footprint = ROUND

    def plan(self, costmap: Costmap, start: SE2, goal: SE2) -> Path:
        planner = GridSearchPlanner(self.traversal)
        if self.violation == "instead of GoalUnknownError" and not self.traversal.allow_unknown:
            planner = GridSearchPlanner()
        try:
            return planner.plan(costmap, start, goal)
        except NavigationError as error:
            if self.violation == "instead of GoalOccupiedError" and error.cause == "goal_occupied":
                raise NoPathError("none") from error
            if self.violation == "names no cause" and error.cause == "no_path":
                raise NavigationError("none") from error
            raise


def test_planner_check_finds_wrong_errors_unknown_space_and_collisions() -> None:
    for violation in ("instead of GoalOccupiedError", "names no cause"):
        with pytest.raises(InputError, match=violation):
            check_planner(HeedlessPlanner(violation=violation))
    with pytest.raises(InputError, match="finds a path where it must raise NavigationError"):
        check_planner(HeedlessPlanner(violation="instead of GoalUnknownError"))
    with pytest.raises(InputError, match="the footprint collides"):
        check_planner(HeedlessPlanner(footprint=Footprint.circle(1.0)))


def test_turning_radius_comes_from_the_drive_unless_the_settings_state_one():
    assert make_planner(PluginConfig("hybrid_a_star"), ROUND, None, 0.9).turning_radius == 0.9
    stated = PluginConfig("hybrid_a_star", {"turning_radius": 0.7})
    assert make_planner(stated, ROUND, None, 0.9).turning_radius == 0.7
    assert make_planner(PluginConfig("hybrid_a_star"), ROUND).turning_radius == 2.0 * ROUND.circumscribed_radius
    with pytest.raises(ConfigError, match="minimum turning radius of 0.9 m"):
        make_planner(PluginConfig("state_lattice"), ROUND, None, 0.9)
    smoothed = make_planner(PluginConfig("a_star"), ROUND, PathSmootherConfig(turning_radius=0.5), 0.9)
    assert smoothed.smoother.min_radius == smoothed.smoother.turning_radius == 0.9
