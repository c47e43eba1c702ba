"""Exploration: what a frontier is, that all reachable floor is known when no frontier is left, and closed loops in
many worlds."""

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.ndimage import binary_dilation, label
from tests.harness.profiles import sample_count
from tests.navigation.random_rooms import Sensor, explore, free_pose, random_rooms

from roboyard.errors import ConfigError, InputError
from roboyard.geometry import SE2
from roboyard.grids import FREE, OCCUPIED, UNKNOWN, GridGeometry, OccupancyGrid
from roboyard.navigation.evaluation.exploration import coverage_fraction, reachable_area
from roboyard.navigation.exploration import (
    ExplorationPhase,
    Explorer,
    FailedViewpoint,
    FrontierConfig,
    Viewpoint,
    ViewpointSelectionConfig,
    find_frontiers,
    select_viewpoint,
)

RADIUS = 0.2
ALL_FRONTIERS = FrontierConfig(inscribed_radius=RADIUS, circumscribed_radius=0.3, min_frontier_length=0.0)


def _world(seed: int, rows: int = 50, columns: int = 70) -> tuple[np.ndarray, GridGeometry, SE2]:
    solid = random_rooms(seed, rows, columns)
    rng = np.random.default_rng(seed)
    frame = GridGeometry(0.1, solid.shape, SE2(*rng.uniform(-5.0, 5.0, 2), rng.uniform(-3.0, 3.0)))
    return solid, frame, free_pose(solid, frame, RADIUS, seed)


def _partly_known(solid: np.ndarray, frame: GridGeometry, seed: int) -> OccupancyGrid:
    """A map that knows some blobs of the world."""
    rng = np.random.default_rng(seed)
    is_known = binary_dilation(rng.random(solid.shape) < 0.002, iterations=int(rng.integers(3, 15)))
    return OccupancyGrid(np.where(is_known, np.where(solid, OCCUPIED, FREE), UNKNOWN).astype(np.int8), frame)


@settings(max_examples=30, deadline=None)
@given(st.integers(0, 2**32 - 1))
def test_frontiers_border_unknown_cells_and_have_reachable_viewpoints(seed):
    solid, frame, start = _world(seed)
    grid = _partly_known(solid, frame, seed)
    found = find_frontiers(grid, start, ALL_FRONTIERS)
    cells = np.array(grid.cells)
    row, column = frame.cells_of_points(start.xy)
    rows, columns = np.ogrid[: frame.shape[0], : frame.shape[1]]
    under = np.hypot(rows - row, columns - column) * frame.resolution < RADIUS + 0.1  # known, since it stands there
    cells[under & (cells < 0)] = FREE
    # where the middle of the robot can be, by other means
    clearance = binary_dilation(cells >= 65, structure=_disc(RADIUS / 0.1))
    center_labels, _ = label((cells >= 0) & ~clearance)
    home = {int(number) for number in center_labels[under]} - {0}
    framed = np.pad(grid.cells, 1, constant_values=-1)
    for frontier in found.cells:
        for r, c in frontier:
            assert 0 <= cells[r, c] < 65
            assert min(framed[r, c + 1], framed[r + 2, c + 1], framed[r + 1, c], framed[r + 1, c + 2]) < 0
    all_cells = np.concatenate(found.cells) if found.cells else np.zeros((0, 2), dtype=int)
    assert len(np.unique(all_cells, axis=0)) == len(all_cells)
    assert {view.frontier for view in found.viewpoints} == set(range(len(found.cells)))
    for view in found.viewpoints:
        cell = tuple(int(i) for i in frame.cells_of_points(view.pose.xy))
        assert int(center_labels[cell]) in home
        assert math.hypot(*(view.pose.xy - start.xy)) <= view.path_cost + 0.5
        nearest = np.hypot(*(found.cells[view.frontier] - cell).T).min() * frame.resolution
        assert nearest <= ALL_FRONTIERS.max_viewpoint_distance + 0.1
    repeated = find_frontiers(grid, start, ALL_FRONTIERS)
    assert repeated.viewpoints == found.viewpoints
    assert all((a == b).all() for a, b in zip(repeated.cells, found.cells, strict=True))


def _disc(radius: float) -> np.ndarray:
    reach = int(radius)
    rows, columns = np.ogrid[-reach : reach + 1, -reach : reach + 1]
    return np.hypot(rows, columns) <= radius + 1e-9


@settings(max_examples=30, deadline=None)
@given(st.integers(0, 2**32 - 1))
def test_no_frontier_remains_iff_reachable_floor_is_known(seed):
    solid, frame, start = _world(seed)
    complete_map = OccupancyGrid(np.where(solid, OCCUPIED, FREE).astype(np.int8), frame)
    assert find_frontiers(complete_map, start, ALL_FRONTIERS).viewpoints == ()
    floor = reachable_area(solid, frame, start.xy, RADIUS)
    assert coverage_fraction(complete_map, floor, frame) == 1.0
    # with a hole anywhere in that floor, there is a frontier again
    rng = np.random.default_rng(seed)
    hole = np.argwhere(floor)[rng.integers(floor.sum())]
    cells = complete_map.cells.copy()
    rows, columns = np.ogrid[: frame.shape[0], : frame.shape[1]]
    is_removed = np.hypot(rows - hole[0], columns - hole[1]) <= rng.uniform(0.0, 15.0)
    start_cell = frame.cells_of_points(start.xy)
    is_removed &= np.hypot(rows - start_cell[0], columns - start_cell[1]) * frame.resolution > RADIUS + 0.1
    cells[is_removed] = UNKNOWN
    holed = OccupancyGrid(cells, frame)
    fraction = coverage_fraction(holed, floor, frame)
    assert fraction == pytest.approx(1.0 - (floor & is_removed).sum() / floor.sum())
    assert (len(find_frontiers(holed, start, ALL_FRONTIERS).viewpoints) > 0) == (fraction < 1.0)


@settings(max_examples=8, deadline=None)
@given(st.integers(0, 2**32 - 1), st.sampled_from([2.0 * math.pi, math.pi]))
def test_exploration_covers_reachable_floor_and_returns(seed, field_of_view):
    solid, frame, start = _world(seed)
    config = FrontierConfig(inscribed_radius=RADIUS, circumscribed_radius=0.3, field_of_view=field_of_view)
    explorer = Explorer(start, config)
    grid, _, track = explore(Sensor(solid, frame, 4.0, field_of_view), explorer, start, RADIUS)
    assert explorer.phase is ExplorationPhase.COMPLETED
    assert track[-1].distance(start) < 1e-9
    assert coverage_fraction(grid, reachable_area(solid, frame, start.xy, RADIUS), frame) >= 0.99
    assert (grid.cells[solid] != FREE).all()


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(sample_count(40, 0.4)))
def test_exploration_of_large_rooms_ends_for_any_field_of_view(seed):
    solid, frame, start = _world(seed, 90, 130)
    field_of_view = (math.pi, 2.0 * math.pi)[seed % 2]
    explorer = Explorer(
        start, FrontierConfig(inscribed_radius=RADIUS, circumscribed_radius=0.3, field_of_view=field_of_view)
    )
    grid, distance, track = explore(Sensor(solid, frame, 4.0, field_of_view), explorer, start, RADIUS)
    assert explorer.phase is ExplorationPhase.COMPLETED
    assert track[-1].distance(start) < 1e-9
    assert not explorer.failures or explorer.progress.n_failures < 0.5 * explorer.n_goals
    floor = reachable_area(solid, frame, start.xy, RADIUS)
    assert coverage_fraction(grid, floor, frame) >= 0.99
    assert distance < 4.0 * floor.sum() * 0.01, "no more than a few metres for a square metre"


def test_exploration_repeats_and_continues_when_loaded():
    solid, frame, start = _world(3)
    tracks = []
    for _ in range(2):
        explorer = Explorer(start, ALL_FRONTIERS)
        tracks.append(explore(Sensor(solid, frame), explorer, start, RADIUS)[2])
    assert tracks[0] == tracks[1]
    sensor, explorer = Sensor(solid, frame), Explorer(start, ALL_FRONTIERS)
    with pytest.raises(AssertionError):
        explore(sensor, explorer, start, RADIUS, max_updates=5)
    other = Explorer(None, ALL_FRONTIERS)
    other.load_state(explorer.save_state())
    grid, pose = sensor.evidence.to_grid(), tracks[0][5]
    assert other.update(grid, pose) == explorer.update(grid, pose)
    assert other.progress == explorer.progress
    assert other.progress.known_area == pytest.approx((np.abs(grid.cells - 32) < 33).sum() * 0.01, rel=0.05)
    other.stop()
    assert (other.phase, other.goal) == (ExplorationPhase.RETURNING, start)
    other.report_arrival()
    assert (other.phase, other.is_finished) == (ExplorationPhase.COMPLETED, True)


def select_nearest_viewpoint(viewpoints, goal, failures, config=None):
    """Yamauchi's rule, a selector of a user's own: the nearest viewpoint that has not failed."""
    radius = (config or ViewpointSelectionConfig()).same_place_radius
    untried = [one for one in viewpoints if not any(failure.matches(one, radius) for failure in failures)]
    return min(untried, key=lambda one: one.path_cost, default=None)


@pytest.mark.parametrize("seed", [1, 3])
def test_exploration_with_a_selector_of_its_own_covers_the_floor(seed):
    solid, frame, start = _world(seed)
    config = FrontierConfig(inscribed_radius=RADIUS, circumscribed_radius=0.3)
    first_goals = []
    for arguments in ({}, {"selector": select_nearest_viewpoint}):
        explorer = Explorer(start, config, **arguments)
        grid, _, _ = explore(Sensor(solid, frame, 4.0, 2.0 * math.pi), explorer, start, RADIUS)
        assert explorer.phase is ExplorationPhase.COMPLETED
        assert coverage_fraction(grid, reachable_area(solid, frame, start.xy, RADIUS), frame) >= 0.99
        frontier_map = find_frontiers(Sensor(solid, frame, 4.0).update(start), start, config)
        first = Explorer(start, config, **arguments)
        first_goals.append(first.set_frontiers(frontier_map))
    nearest = min(frontier_map.viewpoints, key=lambda one: one.path_cost)
    assert first_goals[1] == nearest.pose


def test_selector_that_returns_none_ends_the_exploration():
    solid, frame, start = _world(3)
    explorer = Explorer(start, ALL_FRONTIERS, selector=lambda viewpoints, goal, failures, config=None: None)
    assert explorer.update(Sensor(solid, frame).update(start), start) == start
    assert explorer.phase is ExplorationPhase.RETURNING


def test_unreachable_frontiers_come_last_and_are_dropped():
    views = [Viewpoint(SE2(5.0, 0.0), 5.0, 10.0, 0), Viewpoint(SE2(0.0, 3.0), 3.0, 1.0, 1)]
    near_gain = ViewpointSelectionConfig(distance_decay=0.1, gain_exponent=1.0)
    assert select_viewpoint(views, None, [], near_gain) == views[0]
    far_failure, near_failure = FailedViewpoint(SE2(5.1, 0.0)), FailedViewpoint(SE2(0.0, 3.0))
    assert select_viewpoint(views, None, [far_failure], near_gain) == views[1]
    assert select_viewpoint(views, None, [far_failure, near_failure], near_gain) == views[0]
    assert select_viewpoint(views, None, [far_failure, near_failure] * 3, near_gain) is None
    visited_with_other_heading = FailedViewpoint(SE2(5.1, 0.0, 2.0), was_reached=True)
    assert select_viewpoint(views, None, [visited_with_other_heading], near_gain) == views[0]
    assert select_viewpoint(views, None, [FailedViewpoint(SE2(5.1, 0.0, 0.5), was_reached=True)], near_gain) == views[1]
    explorer = Explorer(SE2(), ALL_FRONTIERS)
    solid = np.ones((30, 60), dtype=bool)
    solid[1:-1, 1:-1] = False
    frame = GridGeometry(0.1, solid.shape)
    grid = Sensor(solid, frame, 1.5).update(SE2(1.5, 1.5))
    rejected_goals = []
    while explorer.update(grid, SE2(1.5, 1.5)) is not None and explorer.phase is ExplorationPhase.EXPLORING:
        rejected_goals.append(explorer.goal)
        explorer.report_failure()
    assert len(rejected_goals) >= 2
    assert explorer.phase is ExplorationPhase.RETURNING
    for _ in range(3):
        explorer.report_failure()
    assert explorer.phase is ExplorationPhase.FAILED


@given(st.floats(0.0, 10.0), st.floats(0.0, 10.0))
def test_goal_is_kept_until_another_has_clearly_more_gain(gain, path_cost):
    config = ViewpointSelectionConfig(hysteresis=0.5)
    present, other = Viewpoint(SE2(0.0, 0.0), 4.0, 4.0, 0), Viewpoint(SE2(9.0, 0.0), path_cost, gain, 1)
    selected = select_viewpoint([present, other], present.pose, [], config)
    assert (selected == other) == (config.utility(other) > 1.5 * config.utility(present))


def test_viewpoint_heading_faces_the_most_unknown_cells():
    cells = np.full((40, 40), UNKNOWN, dtype=np.int8)
    cells[5:35, 5:20] = FREE
    cells[:, 4] = cells[5, :] = cells[35, :] = OCCUPIED
    frame = GridGeometry(0.1, cells.shape, SE2(0.0, 0.0, 1.0))
    config = FrontierConfig(
        inscribed_radius=RADIUS, circumscribed_radius=0.3, field_of_view=math.pi / 2, sensor_range=2.0
    )
    found = find_frontiers(OccupancyGrid(cells, frame), SE2(*frame.cell_centers([20, 10])), config)
    nearest_viewpoint = min(
        found.viewpoints, key=lambda view: np.hypot(*(frame.cells_of_points(view.pose.xy) - [20, 19]))
    )
    assert nearest_viewpoint.pose.theta == pytest.approx(1.0, abs=0.3)  # along the grid's x
    assert all(view.gain > 0.5 for view in found.viewpoints)


def test_frontiers_exist_at_the_map_edge_and_in_an_empty_map():
    frame = GridGeometry(0.1, (40, 40))
    unknown_map = OccupancyGrid(np.full(frame.shape, UNKNOWN, dtype=np.int8), frame)
    pose = SE2(2.0, 2.0, 0.0)
    assert len(find_frontiers(unknown_map, pose, ALL_FRONTIERS).cells) == 1  # round the robot's own place
    assert find_frontiers(unknown_map, SE2(50.0, 50.0), ALL_FRONTIERS).viewpoints == ()
    free_map = OccupancyGrid(np.zeros(frame.shape, dtype=np.int8), frame)
    assert sum(map(len, find_frontiers(free_map, pose, ALL_FRONTIERS).cells)) == 4 * 39
    occupied_map = OccupancyGrid(np.full(frame.shape, OCCUPIED, dtype=np.int8), frame)
    assert find_frontiers(occupied_map, pose, ALL_FRONTIERS).viewpoints == ()


def test_explorer_near_a_wall_finds_goals():
    solid = np.ones((40, 60), dtype=bool)
    solid[1:-1, 1:-1] = False
    frame = GridGeometry(0.1, solid.shape)
    grid = Sensor(solid, frame, 2.0).update(SE2(1.5, 0.25))
    assert find_frontiers(grid, SE2(1.5, 0.25), ALL_FRONTIERS).viewpoints


def test_invalid_exploration_settings_are_refused():
    for bad in (
        {"inscribed_radius": -0.1},
        {"circumscribed_radius": 0.1},
        {"occupied_threshold": 0},
        {"min_frontier_length": math.nan},
        {"sensor_range": 0.0},
        {"field_of_view": 7.0},
        {"viewpoint_spacing": 0.0},
    ):
        with pytest.raises(ConfigError, match=next(iter(bad))):
            FrontierConfig(**bad)
    for bad in ({"distance_decay": -1.0}, {"max_attempts": 0}, {"hysteresis": math.inf}):
        with pytest.raises(ConfigError, match=next(iter(bad))):
            ViewpointSelectionConfig(**bad)
    solid = np.ones((20, 20), dtype=bool)
    with pytest.raises(InputError, match="does not fit"):
        reachable_area(solid, GridGeometry(0.1, solid.shape), [1.0, 1.0], RADIUS)
