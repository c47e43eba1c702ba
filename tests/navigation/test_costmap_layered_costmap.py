"""Costmaps: what changed alone is put together anew, and the result is as if all had been."""

import math

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from roboyard.errors import ConfigError, InputError
from roboyard.geometry import SE2
from roboyard.grids import GridGeometry, OccupancyGrid
from roboyard.navigation.costmap.inflation_layer import DenoiseLayer, InflationLayer
from roboyard.navigation.costmap.layered_costmap import (
    FREE,
    INSCRIBED,
    LETHAL,
    UNKNOWN,
    CellBounds,
    Costmap,
    LayeredCostmap,
)
from roboyard.navigation.costmap.map_layers import KeepoutLayer, SpeedFilter, StaticLayer
from roboyard.navigation.costmap.obstacle_layer import Observation, ObservationFilterConfig, ObstacleLayer


def _grid(rng: np.random.Generator, shape=(30, 40), resolution=0.1, theta=0.0) -> OccupancyGrid:
    cells = rng.choice(np.array([-1, 0, 40, 100], dtype=np.int8), shape, p=[0.1, 0.7, 0.1, 0.1])
    return OccupancyGrid(cells, GridGeometry(resolution, shape, SE2(-1.0, -1.5, theta)))


def _scan(rng: np.random.Generator, pose: SE2, n: int = 60) -> Observation:
    angles, ranges = np.linspace(-math.pi, math.pi, n, endpoint=False), rng.uniform(0.2, 3.0, n)
    points = pose @ np.column_stack([ranges * np.cos(angles), ranges * np.sin(angles)])
    heights = rng.uniform(-0.3, 2.5, n)
    return Observation(np.array([pose.x, pose.y, 0.2]), np.column_stack([points, heights]), rng.random(n) < 0.7)


def _layers(rng: np.random.Generator):
    static, obstacles, keepout = StaticLayer(trinary=False), ObstacleLayer(), KeepoutLayer()
    static.set_map(_grid(rng))
    keepout.set_mask(_grid(rng, (7, 9), 0.37, 0.3))
    return static, obstacles, keepout, [static, obstacles, DenoiseLayer(3), InflationLayer(0.15, 0.4), keepout]


@settings(max_examples=25, deadline=None)
@given(st.integers(0, 2**32 - 1), st.booleans())
def test_incremental_update_equals_full_update(seed: int, rolling: bool) -> None:
    rng = np.random.default_rng(seed)
    _, obstacles, _, layers = _layers(rng)
    frame = GridGeometry(0.1, (30, 40), SE2(-1.0, -1.5, 0.0))
    costmap = LayeredCostmap(frame, layers, track_unknown_space=bool(seed % 2))
    pose = SE2(1.0, 0.0, 0.0)
    for k in range(5):
        if rolling:
            pose = SE2(*(pose.xy + rng.uniform(-0.4, 0.4, 2)), 0.0)
            costmap.center_on(pose)
        if k:
            obstacles.add_observations([_scan(rng, pose), _scan(rng, pose, 5)])
        if k == 3:
            obstacles.clear()
        costmap.update()
        now = costmap.snapshot()
        recomputed = LayeredCostmap.__new__(LayeredCostmap)
        recomputed.__dict__.update(costmap.__dict__)
        recomputed._cells, recomputed._pending_bounds = (
            np.zeros_like(now.cells),
            costmap._pending_bounds.full(frame.shape),
        )
        recomputed.update()
        assert (recomputed.snapshot().cells == now.cells).all()
        assert costmap.update().is_empty


@given(st.integers(0, 2**32 - 1), st.floats(0.0, 0.5), st.floats(0.0, 1.0), st.floats(0.5, 10.0), st.booleans())
@settings(max_examples=40, deadline=None)
def test_inflation_depends_on_distance_to_nearest_obstacle(seed, inscribed, radius, scaling, unknown):
    rng = np.random.default_rng(seed)
    cells = rng.choice(np.array([FREE, 60, LETHAL, UNKNOWN], dtype=np.uint8), (24, 31), p=[0.8, 0.05, 0.1, 0.05])
    frame = GridGeometry(0.1, cells.shape)
    layer = InflationLayer(inscribed, radius, scaling, inflate_unknown=unknown)
    layer.match_size(frame, None)
    inflated = cells.copy()
    layer.update_costs(inflated, CellBounds.full(cells.shape))
    lethal = np.argwhere(cells == LETHAL)
    for r in range(24):
        for c in range(31):
            distance = np.hypot(*(lethal - (r, c)).T).min() * 0.1 if len(lethal) else math.inf
            cost = layer.cost_at(distance)
            if distance <= inscribed + 1e-9 and distance > 0.0:
                cost = INSCRIBED
            if cells[r, c] == UNKNOWN:
                expected = cost if cost and (unknown or cost >= INSCRIBED) else UNKNOWN
            else:
                expected = max(cost, cells[r, c])
            assert inflated[r, c] == expected or abs(distance - inscribed) < 1e-9 or abs(distance - radius) < 1e-9


def test_costs_fall_with_distance() -> None:
    layer = InflationLayer(0.2, 0.6, 3.0)
    costs = [layer.cost_at(d) for d in np.linspace(0.0, 0.7, 200)]
    assert costs == sorted(costs, reverse=True)
    assert (costs[0], layer.cost_at(0.1), layer.cost_at(0.61)) == (LETHAL, INSCRIBED, 0)


@settings(max_examples=40, deadline=None)
@given(st.integers(0, 2**32 - 1))
def test_beams_clear_along_their_length_and_mark_their_end(seed: int) -> None:
    rng = np.random.default_rng(seed)
    frame = GridGeometry(0.1, (60, 60), SE2(-3.0, -3.0, float(rng.uniform(-0.3, 0.3))))
    layer = ObstacleLayer(
        ObservationFilterConfig(min_height=-1.0, max_height=3.0, obstacle_max_range=2.0, raytrace_max_range=2.5)
    )
    layer.match_size(frame, None)
    pose = SE2(*rng.uniform(-0.5, 0.5, 2), 0.0)
    observation = _scan(rng, pose, 12)
    layer.add_observations([observation])
    cells = np.zeros(frame.shape, dtype=np.uint8)
    cells[:] = UNKNOWN
    layer.update_costs(cells, CellBounds.full(frame.shape))
    marks = set()
    for point, hit in zip(observation.points, observation.hits, strict=True):
        reach = math.hypot(*(point[:2] - pose.xy))
        cell = tuple(int(i) for i in frame.cells_of_points(point[:2]))
        if hit and reach <= 2.0 and frame.contains(cell):
            marks.add(cell)
    assert {tuple(cell) for cell in np.argwhere(cells == LETHAL).tolist()} == marks
    passed = np.zeros(frame.shape, dtype=bool)
    ends = {tuple(int(i) for i in frame.cells_of_points(p[:2])) for p in observation.points}
    for point in observation.points:
        fractions = np.linspace(0.0, 1.0, 4000)[:, None]
        line = pose.xy + fractions * (point[:2] - pose.xy)
        line = line[np.hypot(*(line - pose.xy).T) <= 2.5]
        under = frame.cells_of_points(line)
        under = under[frame.contains(under)]
        passed[under[:, 0], under[:, 1]] = True
    free = cells == FREE
    for r, c in np.argwhere(passed & ~free).tolist():
        assert (r, c) in marks or (r, c) in ends or cells[r, c] == LETHAL or _grazed(frame, observation, (r, c))
    for cell in np.argwhere(free & ~passed).tolist():  # touched at their very corners, between two of those points
        assert _grazed(frame, observation, cell) or _beam_distance(frame, observation, cell) < 1e-3


def _grazed(frame: GridGeometry, observation: Observation, cell) -> bool:
    """Whether the sampled line only touched the cell's rim, or the beam's last, uncleared cell."""
    center = frame.cell_centers(cell)
    return bool(np.abs(np.hypot(*(center - observation.origin[:2])) - 2.5) < 0.15)


def _beam_distance(frame: GridGeometry, observation: Observation, cell) -> float:
    """How far the nearest beam is off a cell's square [m]: between both ends of the beam and the square's corners."""
    center, half = frame.cell_centers(cell), 0.5 * frame.resolution
    c, s = math.cos(frame.T_map_grid.theta), math.sin(frame.T_map_grid.theta)
    corners = center + half * np.array([[-1, -1], [-1, 1], [1, 1], [1, -1]]) @ np.array([[c, s], [-s, c]])
    directions = observation.points[:, :2] - observation.origin[:2]
    directions /= np.linalg.norm(directions, axis=1)[:, None]
    lateral_offsets = (corners - observation.origin[:2]) @ np.stack(
        [-directions[:, 1], directions[:, 0]]
    )  # (4 corners, beams)
    forward_offsets = (corners - observation.origin[:2]) @ directions.T
    distances = np.where(
        np.sign(lateral_offsets).min(axis=0) != np.sign(lateral_offsets).max(axis=0),
        0.0,
        np.abs(lateral_offsets).min(axis=0),
    )
    return float(np.where(forward_offsets.max(axis=0) > 0.0, distances, np.inf).min())


def test_rolling_window_drops_cells_outside_it() -> None:
    layer = ObstacleLayer()
    costmap = LayeredCostmap(GridGeometry(0.1, (20, 20), SE2(-1.0, -1.0)), [layer])
    layer.add_observations(
        [Observation(np.zeros(3), np.array([[0.55, 0.05, 0.0], [-0.85, 0.05, 0.0]]), np.array([True, True]))]
    )
    costmap.update()
    before = costmap.snapshot()
    costmap.center_on(SE2(0.4, 0.0))
    costmap.update()
    after = costmap.snapshot()
    lethal = [frame.geometry.cell_centers(np.argwhere(frame.cells == LETHAL)) for frame in (before, after)]
    assert np.allclose(lethal[0], [[-0.85, 0.05], [0.55, 0.05]])
    assert np.allclose(lethal[1], [[0.55, 0.05]])


@given(st.integers(0, 2**32 - 1), st.floats(0.02, 0.5), st.floats(0.02, 0.5), st.floats(-3.0, 3.0))
@example(253, 0.02, 0.02, 0.0)  # cells of one size, half a cell apart: looks that lie on the other's lines
@example(0, 0.05, 0.1, math.pi / 2)
@settings(max_examples=60, deadline=None)
def test_no_wall_is_lost_between_resolutions(seed, fine, coarse, theta) -> None:
    rng = np.random.default_rng(seed)
    cells = np.zeros((20, 20), dtype=np.int8)
    cells[rng.integers(0, 20), rng.integers(0, 20)] = 100
    grid = OccupancyGrid(cells, GridGeometry(fine, cells.shape, SE2(0.3, -0.2, theta)))
    center = grid.geometry.cell_centers(np.argwhere(cells == 100))[0]
    half = 15 * coarse
    frame = GridGeometry(coarse, (30, 30), SE2(center[0] - half, center[1] - half, 0.0))
    layer = StaticLayer()
    layer.set_map(grid)
    costmap = LayeredCostmap(frame, [layer])
    costmap.update()
    lethal = frame.cell_centers(np.argwhere(costmap.snapshot().cells == LETHAL))
    assert len(lethal)
    assert np.hypot(*(lethal - center).T).max() <= 0.71 * (fine + coarse) + 1e-9


def test_denoising_removes_small_groups_only() -> None:
    cells = np.zeros((20, 20), dtype=np.int8)
    cells[3, 3] = cells[10, 10] = cells[11, 11] = 100
    cells[15, 4:8] = 100
    static = StaticLayer()
    static.set_map(OccupancyGrid(cells, GridGeometry(0.1, cells.shape)))
    for diagonal, left in (
        (True, {(10, 10), (11, 11), *((15, c) for c in range(4, 8))}),
        (False, {(15, c) for c in range(4, 8)}),
    ):
        costmap = LayeredCostmap(GridGeometry(0.1, (20, 20)), [static, DenoiseLayer(2, diagonal=diagonal)])
        costmap.update()
        assert {tuple(cell) for cell in np.argwhere(costmap.snapshot().cells == LETHAL).tolist()} == left


def test_speed_filter_limits_inside_masked_cells() -> None:
    cells = np.zeros((10, 10), dtype=np.int8)
    cells[5, 5], cells[6, 6] = 50, -1
    mask = OccupancyGrid(cells, GridGeometry(1.0, cells.shape))
    zones = SpeedFilter(mask, base=100.0, multiplier=-1.0)
    assert zones.speed_limit_at(SE2(5.5, 5.5), 2.0) == 1.0
    assert (
        zones.speed_limit_at(SE2(6.5, 6.5), 2.0)
        == zones.speed_limit_at(SE2(-6.5, 6.5), 2.0)
        == zones.speed_limit_at(SE2(1.5, 1.5), 2.0)
        == 2.0
    )
    assert SpeedFilter(mask, multiplier=0.01, percent=False).speed_limit_at(SE2(5.5, 5.5), 2.0) == 0.5


@pytest.mark.parametrize(
    "make",
    [
        lambda: InflationLayer(-0.1),
        lambda: InflationLayer(0.1, 1.0, 0.0),
        lambda: InflationLayer(0.1, math.nan),
        lambda: StaticLayer(lethal_threshold=0),
        lambda: DenoiseLayer(0),
        lambda: ObservationFilterConfig(min_height=2.0, max_height=1.0),
        lambda: ObservationFilterConfig(obstacle_max_range=math.inf),
        lambda: SpeedFilter(OccupancyGrid(np.zeros((1, 1), np.int8), GridGeometry(1.0, (1, 1))), base=math.nan),
        lambda: Observation(np.zeros(2), np.zeros((1, 3)), np.ones(1, bool)),
        lambda: Observation(np.zeros(3), np.full((1, 3), np.nan), np.ones(1, bool)),
        lambda: LayeredCostmap(GridGeometry(0.1, (2, 2)), [ObstacleLayer(), ObstacleLayer()]),
        lambda: Costmap(np.zeros((2, 2)), GridGeometry(0.1, (2, 2))),
    ],
)
def test_impossible_layers_are_refused(make) -> None:
    with pytest.raises((ConfigError, InputError)):
        make()
