"""Smoothed ways: free, from end to end, no sharper, and worth it."""

import math

import numpy as np
import pytest

from roboyard.errors import ConfigError
from roboyard.geometry import SE2
from roboyard.grids import GridGeometry
from roboyard.navigation import Costmap
from roboyard.navigation.costmap import INSCRIBED, LETHAL
from roboyard.navigation.errors import NoPathError
from roboyard.navigation.planners import FastMarchingPlanner, GridSearchPlanner, PathSmoother


def _field(seed: int) -> Costmap:
    rng = np.random.default_rng(seed)
    cells = np.zeros((70, 90), dtype=np.uint8)
    for _ in range(12):
        r, c = rng.integers(6, 60, 2)
        h, w = rng.integers(1, 10, 2)
        cells[r : r + h, c : c + w] = LETHAL
    return Costmap(cells, GridGeometry(0.1, cells.shape, SE2(1.0, -2.0, 0.7)))


def _direction_changes(points: np.ndarray) -> np.ndarray:
    steps = np.diff(points, axis=0)
    steps = steps[np.linalg.norm(steps, axis=1) > 1e-9]
    heading = np.unwrap(np.arctan2(steps[:, 1], steps[:, 0]))
    return np.abs(np.diff(heading))


@pytest.mark.parametrize(
    "planner", [GridSearchPlanner(), FastMarchingPlanner(pull_string=False), FastMarchingPlanner()]
)
@pytest.mark.parametrize("seed", range(6))
def test_smoothed_paths_are_free_keep_ends_and_are_straighter(planner, seed) -> None:
    costmap = _field(seed)
    start, goal = (costmap.geometry.T_map_grid @ SE2(x, y, 0.4) for x, y in ((0.35, 0.45), (8.6, 6.5)))
    try:
        path = planner.plan(costmap, start, goal)
    except NoPathError:
        return
    smooth = PathSmoother().smooth(costmap, path)
    assert (smooth.poses[0, :2] == path.poses[0, :2]).all()
    assert (smooth.poses[-1] == path.poses[-1]).all()
    steps = np.linspace(smooth.poses[:-1, :2], smooth.poses[1:, :2], 40).reshape(-1, 2)
    cells = costmap.geometry.cells_of_points(steps)
    assert (costmap.cells[cells[:, 0], cells[:, 1]] < INSCRIBED).all()
    assert (
        _direction_changes(smooth.poses[:, :2]).max(initial=0.0)
        <= _direction_changes(path.poses[:, :2]).max(initial=0.0) + 0.35
    )
    assert (_direction_changes(smooth.poses[:, :2]) ** 2).sum() <= (
        _direction_changes(path.poses[:, :2]) ** 2
    ).sum() + 1e-9
    assert smooth.cost <= 1.1 * path.cost + 0.1
    repeated = PathSmoother().smooth(costmap, path)
    assert (repeated.poses == smooth.poses).all()


def _circles(points: np.ndarray) -> np.ndarray:
    """Radii of the circles through three points each that follow each other."""
    a, b, c = points[:-2], points[1:-1], points[2:]
    sides = [np.hypot(*(q - p).T) for p, q in ((a, b), (b, c), (c, a))]
    twice = np.abs((b - a)[:, 0] * (c - a)[:, 1] - (b - a)[:, 1] * (c - a)[:, 0])
    return sides[0] * sides[1] * sides[2] / np.maximum(2.0 * twice, 1e-12)


@pytest.mark.parametrize("planner", [GridSearchPlanner(), FastMarchingPlanner()])
@pytest.mark.parametrize("radius", [0.3, 0.6, 1.0])
def test_smoothed_paths_keep_the_turning_radius_or_are_unchanged(planner, radius) -> None:
    n_smoothed = 0
    for seed in range(8):
        costmap = _field(seed)
        start, goal = (costmap.geometry.T_map_grid @ SE2(x, y, 0.4) for x, y in ((0.35, 0.45), (8.6, 6.5)))
        try:
            path = planner.plan(costmap, start, goal)
        except NoPathError:
            continue
        smooth = PathSmoother(min_radius=radius).smooth(costmap, path)
        if smooth is path:
            continue
        n_smoothed += 1
        assert _circles(smooth.poses[:, :2]).min() >= radius
        assert (_direction_changes(smooth.poses[:, :2])).max() <= (_direction_changes(path.poses[:, :2])).max()
    assert n_smoothed or radius == 1.0


def test_corner_that_cannot_be_rounded_is_kept() -> None:
    cells = np.full((40, 40), LETHAL, dtype=np.uint8)
    cells[5:7, 5:35] = cells[5:35, 33:35] = 0
    costmap = Costmap(cells, GridGeometry(0.1, cells.shape))
    path = FastMarchingPlanner().plan(costmap, SE2(0.6, 0.6), SE2(3.4, 3.4))
    assert PathSmoother(min_radius=2.0).smooth(costmap, path) is path
    assert PathSmoother().smooth(costmap, path) is not path


@pytest.mark.parametrize(
    "wrong",
    [
        {"turning_radius": 0.0},
        {"turning_radius": math.nan},
        {"min_radius": -1.0},
        {"min_radius": math.nan},
        {"max_iterations": 0},
    ],
)
def test_smoothing_settings_out_of_range_are_refused(wrong) -> None:
    with pytest.raises(ConfigError):
        PathSmoother(**wrong)
