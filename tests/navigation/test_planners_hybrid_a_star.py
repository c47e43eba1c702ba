"""Planners for cars and long robots: what they promise can be driven, and touches nothing."""

import itertools
import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from roboyard.errors import ConfigError
from roboyard.geometry import SE2, polygons
from roboyard.grids import GridGeometry
from roboyard.navigation import Footprint
from roboyard.navigation.costmap import LETHAL, Costmap
from roboyard.navigation.errors import (
    GoalOccupiedError,
    NavigationError,
    NoPathError,
    SearchBudgetExceededError,
    StartOccupiedError,
)
from roboyard.navigation.planners import HybridAStarPlanner, MotionPenalties, TraversalCosts

RESOLUTION = 0.1
CAR = Footprint(polygons.rectangle(1.0, 0.5, (0.3, 0.0)))
TEE = Footprint(np.array([[0.6, 0.15], [-0.2, 0.15], [-0.2, 0.5], [-0.5, 0.5], [-0.5, -0.5], [-0.2, -0.5],
                          [-0.2, -0.15], [0.6, -0.15]]))  # fmt: skip
PENALTIES = MotionPenalties(reverse=1.5)


def _field(seed: int, boxes: int = 10, side: int = 80) -> Costmap:
    rng = np.random.default_rng(seed)
    cells = np.zeros((side, side), dtype=np.uint8)
    for _ in range(boxes):
        r, c = rng.integers(8, side - 12, 2)
        h, w = rng.integers(1, 9, 2)
        cells[r : r + h, c : c + w] = LETHAL
    cells[:16, :16] = cells[-16:, -16:] = 0
    return Costmap(cells, GridGeometry(RESOLUTION, cells.shape, SE2(-2.0, 1.0, 0.3)))


def _map_pose(costmap: Costmap, x: float, y: float, theta: float) -> SE2:
    return costmap.geometry.T_map_grid @ SE2(x, y, theta)


def _is_in_collision(costmap: Costmap, footprint: Footprint, poses: np.ndarray) -> bool:
    """Whether the outline holds any of 36 points of an obstacle's cell, at the poses and between them."""
    spots = (np.stack(np.meshgrid(*[np.linspace(-0.499, 0.499, 6)] * 2), axis=-1)).reshape(-1, 2)
    lethal = np.argwhere(costmap.cells == LETHAL)
    if not len(lethal):
        return False
    for first, last in itertools.pairwise(poses):
        for fraction in (0.0, 0.5):
            rotation = math.remainder(last[2] - first[2], 2.0 * math.pi)
            x, y = first[:2] + fraction * (last[:2] - first[:2])
            pose = SE2(x, y, first[2] + fraction * rotation)
            outline = np.array([pose @ corner for corner in footprint.corners])
            center = outline.mean(axis=0)
            nearby = lethal[np.linalg.norm(costmap.geometry.cell_centers(lethal) - center, axis=1) < 1.3]
            if len(nearby) and polygons.contains(outline, costmap.geometry.cell_centers(nearby[:, None] + spots)).any():
                return True
    return False


def _step_geometry(poses: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Of each step: its chord, how much the heading turns, and the angle between its direction and its mean heading."""
    steps = np.diff(poses, axis=0)
    chords = np.hypot(steps[:, 0], steps[:, 1])
    rotations = np.remainder(steps[:, 2] + math.pi, 2.0 * math.pi) - math.pi
    slip_angles = np.arctan2(steps[:, 1], steps[:, 0]) - (poses[:-1, 2] + 0.5 * rotations)
    return chords, rotations, np.remainder(slip_angles + math.pi, 2.0 * math.pi) - math.pi


CARS = given(st.integers(0, 2**32 - 1), st.floats(-3.1, 3.1), st.sampled_from([0.4, 0.8, 1.5]), st.booleans())


@settings(max_examples=6, deadline=None)
@CARS
def test_car_paths_are_free_and_keep_the_turning_radius(seed, theta, radius, reverse) -> None:
    _drives_as_a_car(seed, theta, radius, reverse, max_expansions=2_000)


@pytest.mark.slow
@settings(max_examples=40, deadline=None)
@CARS
def test_expensive_car_paths_are_free_and_keep_turning_radius(seed, theta, radius, reverse) -> None:
    _drives_as_a_car(seed, theta, radius, reverse, max_expansions=50_000)


def _drives_as_a_car(seed: int, theta: float, radius: float, reverse: bool, max_expansions: int) -> None:
    costmap = _field(seed)
    planner = HybridAStarPlanner(CAR, radius, reverse, penalties=PENALTIES, max_expansions=max_expansions)
    start, goal = _map_pose(costmap, 0.6, 0.6, 0.8), _map_pose(costmap, 7.0, 7.0, theta)
    try:
        path = planner.plan(costmap, start, goal)
    except (NoPathError, SearchBudgetExceededError, GoalOccupiedError):
        return
    assert path.poses[0] == pytest.approx([start.x, start.y, start.theta], abs=1e-9)
    assert path.poses[-1] == pytest.approx([goal.x, goal.y, goal.theta], abs=1e-9)
    assert not _is_in_collision(costmap, CAR, path.poses)
    chords, rotations, slip_angles = _step_geometry(path.poses)
    moving = chords > 1e-6
    assert (np.abs(rotations) <= 2.0 * np.arcsin(np.minimum(chords / (2.0 * radius), 1.0)) + 1e-6).all()
    assert np.abs(np.sin(slip_angles[moving])).max() < 1e-4  # wheels do not slip aside
    if not reverse:
        assert (np.cos(slip_angles[moving]) > 0.0).all()
    repeated = planner.plan(costmap, start, goal)
    assert (repeated.poses == path.poses).all()
    assert repeated.cost == path.cost


@settings(max_examples=6, deadline=None)
@given(st.integers(0, 2**32 - 1), st.floats(-3.1, 3.1))
def test_long_robot_turns_in_place_without_collision(seed, theta) -> None:
    costmap = _field(seed)
    start, goal = _map_pose(costmap, 0.9, 0.9, 0.8), _map_pose(costmap, 7.1, 7.1, theta)
    try:
        path = HybridAStarPlanner(TEE, 0.0, penalties=PENALTIES, max_expansions=5_000).plan(costmap, start, goal)
    except (NoPathError, SearchBudgetExceededError, GoalOccupiedError):
        return
    assert not _is_in_collision(costmap, TEE, path.poses)
    chords, rotations, slip_angles = _step_geometry(path.poses)
    moving = chords > 1e-6
    assert np.abs(np.sin(slip_angles[moving])).max() < 1e-4
    assert np.abs(rotations).max() < 0.35
    assert path.poses[-1] == pytest.approx([goal.x, goal.y, goal.theta], abs=1e-9)


def test_path_cost_is_the_weight_integral() -> None:
    costmap = _field(5)
    costmap.cells[costmap.cells == 0] = np.random.default_rng(1).integers(0, 200, (costmap.cells == 0).sum())
    path = HybridAStarPlanner(CAR, 0.8).plan(
        costmap, _map_pose(costmap, 0.6, 0.6, 0.8), _map_pose(costmap, 7.0, 7.0, 0.8)
    )
    steps = np.linspace(0.0, 1.0, 200, endpoint=False) + 0.0025
    total = 0.0
    for first, last in zip(path.poses[:-1, :2], path.poses[1:, :2], strict=True):
        cells = costmap.geometry.cells_of_points(first + steps[:, None] * (last - first))
        total += np.linalg.norm(last - first) * (1.0 + 3.0 * costmap.cells[cells[:, 0], cells[:, 1]] / 252.0).mean()
    assert path.cost == pytest.approx(total, rel=2e-3)
    lethal = costmap.geometry.cell_centers(np.argwhere(costmap.cells == LETHAL))
    center_distance = np.linalg.norm(lethal[:, None] - path.poses[None, :, :2], axis=2).min()
    assert center_distance - 0.0708 <= path.clearance <= center_distance


def test_reverse_gear_shortens_a_turnaround() -> None:
    cells = np.full((60, 60), 0, dtype=np.uint8)
    costmap = Costmap(cells, GridGeometry(RESOLUTION, cells.shape))
    start, goal = SE2(3.0, 3.0, 0.0), SE2(3.0, 3.0, math.pi)
    forwards = HybridAStarPlanner(CAR, 0.8, allow_reverse=False).plan(costmap, start, goal)
    both = HybridAStarPlanner(CAR, 0.8, penalties=PENALTIES).plan(costmap, start, goal)
    assert forwards.length > 1.5 * math.pi * 0.8
    assert both.length < forwards.length
    spin = HybridAStarPlanner(CAR, 0.0).plan(costmap, start, goal)
    assert spin.length == pytest.approx(0.0, abs=1e-9)
    any_heading = HybridAStarPlanner(CAR, 0.8, allow_reverse=False, heading_tolerance=math.pi).plan(
        costmap, start, SE2(3.0, 5.0, 0.0)
    )
    straight = HybridAStarPlanner(CAR, 0.8, allow_reverse=False).plan(costmap, start, SE2(3.0, 5.0, 0.0))
    assert any_heading.length < straight.length
    some = HybridAStarPlanner(CAR, 0.8, allow_reverse=False, heading_tolerance=0.5).plan(
        costmap, start, SE2(3.0, 5.0, 0.0)
    )
    assert abs(some.poses[-1, 2]) <= 0.5 + 1e-9


def test_hybrid_planner_failures_have_causes() -> None:
    cells = np.zeros((60, 60), dtype=np.uint8)
    cells[:, 30] = LETHAL
    cells[28:32, 30] = 0  # its centre would fit through, the robot does not
    costmap = Costmap(cells, GridGeometry(RESOLUTION, cells.shape))
    left, right = SE2(1.0, 3.0), SE2(5.0, 3.0)
    for radius in (0.8, 0.0):
        with pytest.raises(NoPathError) as caught:
            HybridAStarPlanner(CAR, radius, max_expansions=200_000).plan(costmap, left, right)
        assert "this robot" in str(caught.value)
    with pytest.raises(SearchBudgetExceededError):
        HybridAStarPlanner(CAR, 0.8, max_expansions=10).plan(costmap, left, right)
    with pytest.raises(GoalOccupiedError):
        HybridAStarPlanner(CAR).plan(costmap, left, SE2(2.5, 3.0))
    with pytest.raises(StartOccupiedError):
        HybridAStarPlanner(CAR).plan(costmap, SE2(2.5, 3.0), left)
    with pytest.raises(NavigationError):
        HybridAStarPlanner(CAR).plan(costmap, left, SE2(9.0, 9.0))
    for wrong in ({"turning_radius": math.nan}, {"turning_radius": -1.0}, {"n_headings": 3}, {"max_expansions": 0}):
        with pytest.raises(ConfigError):
            HybridAStarPlanner(CAR, **wrong)
    with pytest.raises(ConfigError):
        MotionPenalties(reverse=0.5)
    assert HybridAStarPlanner(CAR).traversal == TraversalCosts()
