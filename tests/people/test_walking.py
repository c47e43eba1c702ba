"""Walking maps: paths around obstacles of a grid, without a simulation."""

from itertools import pairwise

import numpy as np
import pytest

from roboyard.people.walking import GRID_RESOLUTION, WALKING_CLEARANCE, PersonGoalError, WalkingMap, WalkingObstacle


def open_map(size: float = 10.0) -> WalkingMap:
    """A square around the origin without obstacles."""
    n_cells = round(size / GRID_RESOLUTION)
    return WalkingMap(np.full((n_cells, n_cells), np.inf), (-0.5 * size, -0.5 * size))


def map_with_pillar(radius: float, size: float = 10.0) -> WalkingMap:
    """A square around the origin with a round pillar at the origin."""
    n_cells = round(size / GRID_RESOLUTION)
    centers = GRID_RESOLUTION * (np.arange(n_cells) + 0.5) - 0.5 * size
    distance = np.hypot(centers[None], centers[:, None]) - radius
    return WalkingMap(np.maximum(distance, 0.0), (-0.5 * size, -0.5 * size))


def distances_along(path_points: np.ndarray, center: tuple[float, float]) -> np.ndarray:
    fractions = np.linspace(0.0, 1.0, 200)[:, None]
    samples = np.concatenate([start + fractions * (end - start) for start, end in pairwise(path_points)])
    return np.linalg.norm(samples - center, axis=1)


def test_open_space_is_crossed_straight() -> None:
    assert open_map().plan_path((-3.0, 1.0), (4.0, -2.0)).points.tolist() == [[-3.0, 1.0], [4.0, -2.0]]


@pytest.mark.parametrize("radius", [0.3, 1.0, 2.0])
def test_pillars_are_passed_with_clearance(radius: float) -> None:
    walking_map = map_with_pillar(radius)
    assert walking_map.explain_blockage((-4.0, 0.0), (4.0, 0.0)) != ""
    path = walking_map.plan_path((-4.0, 0.0), (4.0, 0.0))
    assert distances_along(path.points, (0.0, 0.0)).min() > radius + WALKING_CLEARANCE - GRID_RESOLUTION
    assert path.length < np.pi * (radius + 1.0) + 8.0
    with pytest.raises(PersonGoalError, match="an obstacle is at") as caught:
        walking_map.plan_path((-4.0, 0.0), (0.0, 0.0))
    assert caught.value.error_code == "unreachable"


def test_standing_people_are_walked_around_but_block_nothing() -> None:
    person = WalkingObstacle((0.0, 0.1), 0.55)
    path = open_map().plan_path((-3.0, 0.0), (3.0, 0.0), [person])
    assert distances_along(path.points, person.center).min() > person.radius - GRID_RESOLUTION
    row = [WalkingObstacle((0.0, y), 0.55) for y in np.arange(-7.0, 7.0, 0.5)]
    assert open_map().plan_path((-3.0, 0.0), (3.0, 0.0), row).length == pytest.approx(6.0, abs=0.5)
    assert open_map().explain_blockage((-3.0, 0.0), (3.0, 0.0)) == ""


def test_nearest_obstacle_is_the_side_of_the_pillar() -> None:
    walking_map = map_with_pillar(0.5)
    assert walking_map.nearest_obstacle((1.2, 0.0)) == pytest.approx((0.5, 0.0), abs=2.0 * GRID_RESOLUTION)
    assert walking_map.nearest_obstacle((4.0, 0.0)) is None, "it is farther than the margin"
