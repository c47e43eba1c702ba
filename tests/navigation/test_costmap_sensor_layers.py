"""Voxels and ranges: what beams and echoes prove, and no more; updates of what changed equal putting all together."""

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from roboyard.errors import ConfigError, InputError
from roboyard.geometry import SE2
from roboyard.grids import GridGeometry, OccupancyGrid
from roboyard.navigation.costmap.inflation_layer import InflationLayer
from roboyard.navigation.costmap.layered_costmap import FREE, LETHAL, UNKNOWN, CellBounds, LayeredCostmap
from roboyard.navigation.costmap.map_layers import KeepoutLayer, ResampledGrid, StaticLayer
from roboyard.navigation.costmap.obstacle_layer import Observation, ObservationFilterConfig, ObstacleLayer
from roboyard.navigation.costmap.range_layer import RangeLayer, RangeModelConfig, RangeReading
from roboyard.navigation.costmap.voxel_layer import VoxelConfig, VoxelLayer
from roboyard.navigation.nodes.observation_sources import ObservationBuffer

FRAME = GridGeometry(0.1, (50, 60), SE2(-3.0, -2.5, 0.2))
EVERYWHERE = ObservationFilterConfig(
    min_height=-10.0, max_height=10.0, obstacle_max_range=20.0, raytrace_max_range=20.0
)
SEEDS = st.integers(0, 2**32 - 1)


def _cloud(rng: np.random.Generator, count: int = 40) -> Observation:
    origin = np.append(rng.uniform(-1.0, 1.0, 2), rng.uniform(0.1, 1.5))
    return Observation(origin, origin + rng.normal(0.0, 1.0, (count, 3)) * (1.5, 1.5, 0.6), rng.random(count) < 0.7)


def _reading(rng: np.random.Generator, distance: float | None = None) -> RangeReading:
    pose = SE2(*rng.uniform(-1.5, 1.5, 2), rng.uniform(-3.0, 3.0))
    return RangeReading(pose, rng.uniform(0.1, 3.0) if distance is None else distance, rng.uniform(0.1, 1.2), 0.1, 3.0)


def _cells(layer, frame: GridGeometry = FRAME) -> np.ndarray:
    cells = np.full(frame.shape, UNKNOWN, dtype=np.uint8)
    layer.update_costs(cells, CellBounds.full(frame.shape))
    return cells


@settings(max_examples=25, deadline=None)
@given(SEEDS, st.booleans())
def test_incremental_layer_update_equals_full_update(seed: int, rolling: bool) -> None:
    rng = np.random.default_rng(seed)
    voxels, ranges = VoxelLayer(EVERYWHERE), RangeLayer(RangeModelConfig(clear_on_max=True), overwrite=bool(seed % 2))
    costmap = LayeredCostmap(FRAME, [voxels, ranges, InflationLayer(0.15, 0.4)], track_unknown_space=True)
    for k in range(6):
        if rolling:
            costmap.center_on(SE2(*rng.uniform(-0.5, 0.5, 2)))
        voxels.add_observations([_cloud(rng), _cloud(rng, 3)])
        ranges.add_observations([_reading(rng), _reading(rng), _reading(rng, math.inf)])
        if k == 3:
            voxels.clear(CellBounds(5, 6, 30, 20))
            ranges.clear()
        if k == 4:
            outline = rng.uniform(-1.0, 1.0, (3, 2))
            voxels.clear_polygon(outline)
            ranges.clear_polygon(outline)
        costmap.update()
        now = costmap.snapshot()
        recomputed = LayeredCostmap.__new__(LayeredCostmap)
        recomputed.__dict__.update(costmap.__dict__)
        recomputed._cells, recomputed._pending_bounds = np.zeros_like(now.cells), CellBounds.full(FRAME.shape)
        recomputed.update()
        assert (recomputed.snapshot().cells == now.cells).all()
        assert costmap.update().is_empty


@settings(max_examples=40, deadline=None)
@given(SEEDS, st.floats(0.03, 0.3), st.floats(-3.0, 3.0))
def test_rolled_map_equals_a_map_built_in_place(seed: int, resolution: float, theta: float) -> None:
    rng = np.random.default_rng(seed)
    values = rng.choice(np.array([FREE, 90, LETHAL, UNKNOWN], np.uint8), (40, 50))
    under = GridGeometry(resolution, values.shape, SE2(-2.0, -1.5, theta))
    rolled = ResampledGrid(UNKNOWN)
    rolled.set_grid(values, under)
    frame = GridGeometry(0.1, (20, 15), SE2(-1.0, -0.7, 0.1))
    rolled.match_size(frame, None)
    for _ in range(6):
        shift = (int(rng.integers(-25, 25)), int(rng.integers(-18, 18))) if rng.random() < 0.3 else (1, -2)
        origin = frame.T_map_grid @ SE2(shift[1] * 0.1, shift[0] * 0.1, 0.0)
        frame = GridGeometry(0.1, frame.shape, origin)
        rolled.match_size(frame, shift)
    rebuilt = ResampledGrid(UNKNOWN)
    rebuilt.set_grid(values, under)
    rebuilt.match_size(frame, None)
    assert (rolled.cells == rebuilt.cells).all()


@settings(max_examples=40, deadline=None)
@given(SEEDS)
def test_single_voxel_level_equals_the_planar_layer(seed: int) -> None:
    rng = np.random.default_rng(seed)
    planar = ObstacleLayer(
        ObservationFilterConfig(min_height=0.0, max_height=1.5, obstacle_max_range=2.0, raytrace_max_range=2.5)
    )
    solid = VoxelLayer(
        ObservationFilterConfig(min_height=0.0, max_height=1.5, obstacle_max_range=2.0, raytrace_max_range=2.5),
        VoxelConfig(origin_z=-20.0, resolution_z=40.0, z_voxels=1, unknown_threshold=1),
    )
    for layer in (planar, solid):
        layer.match_size(FRAME, None)
    for _ in range(3):
        observations = [_cloud(rng), _cloud(rng)]
        planar.add_observations(observations)
        solid.add_observations(observations)
    assert (_cells(planar) == _cells(solid)).all()


@settings(max_examples=30, deadline=None)
@given(SEEDS)
def test_voxels_are_marked_at_beam_ends_and_cleared_along_beams(seed: int) -> None:
    """Against beams sampled densely."""
    rng = np.random.default_rng(seed)
    config = VoxelConfig(origin_z=-1.0, resolution_z=0.2, z_voxels=20)
    layer = VoxelLayer(EVERYWHERE, config)
    layer.match_size(FRAME, None)
    layer.add_observations([_cloud(rng, 60)])
    before = {tuple(np.round(p, 6)) for p in layer.voxel_centers()}
    observation = _cloud(rng, 30)
    layer.add_observations([observation])
    after = {tuple(np.round(p, 6)) for p in layer.voxel_centers()}

    def voxel(points: np.ndarray) -> np.ndarray:
        return np.column_stack([FRAME.cells_of_points(points[:, :2]), np.floor((points[:, 2] + 1.0) / 0.2)]).astype(int)

    def center(index: tuple[int, ...]) -> tuple[float, ...]:
        x, y = FRAME.cell_centers(index[:2])
        return tuple(np.round([x, y, -1.0 + (index[2] + 0.5) * 0.2], 6))

    ends = voxel(observation.points)
    inside = FRAME.contains(ends[:, :2]) & (ends[:, 2] >= 0) & (ends[:, 2] < 20)
    assert {center(tuple(v)) for v in ends[inside & observation.hits]} <= after
    passed: dict[tuple[int, ...], int] = {}
    for end in observation.points:
        line = voxel(observation.origin + np.linspace(0.0, 1.0, 3000)[:, None] * (end - observation.origin))
        # along a line a voxel's samples follow each other
        starts = np.flatnonzero(np.concatenate([[True], (np.diff(line, axis=0) != 0).any(axis=1)]))
        for cell, count in zip(line[starts].tolist(), np.diff([*starts, len(line)]).tolist(), strict=True):
            passed[tuple(cell)] = max(passed.get(tuple(cell), 0), count)
    last = {center(tuple(v)) for v in ends}
    surely = {center(v) for v, count in passed.items() if count > 3}
    maybe = {center(v) for v in passed}
    assert len(before - after - maybe) <= 2, "only what beams touch is cleared; some were touched at a corner"
    assert not (surely & after) - last, "what beams pass through is cleared"


def test_laser_below_a_table_does_not_clear_its_top() -> None:
    top = Observation(np.array([0.0, 0.0, 0.6]), np.array([[1.0, 0.0, 0.7], [1.1, 0.1, 0.7]]), np.ones(2, bool))
    below = Observation(np.array([0.0, 0.0, 0.2]), np.array([[2.0, 0.0, 0.2], [2.0, 0.2, 0.2]]), np.ones(2, bool))
    frame = GridGeometry(0.1, (20, 40), SE2(-1.0, -1.0))
    spots = {}
    for layer in (VoxelLayer(), ObstacleLayer()):
        layer.match_size(frame, None)
        layer.add_observations([top])
        layer.add_observations([below])
        spots[layer.name] = {
            tuple(np.round(p, 2)) for p in frame.cell_centers(np.argwhere(_cells(layer, frame) == LETHAL))
        }
    assert spots["voxels"] - spots["obstacles"] == {(1.05, 0.05), (1.15, 0.15)}


@settings(max_examples=25, deadline=None)
@given(SEEDS, st.integers(0, 8))
def test_higher_thresholds_mark_fewer_and_know_more_cells(seed: int, threshold: int) -> None:
    clouds = [_cloud(np.random.default_rng(seed), 200)]

    def cells(mark: int, unknown: int) -> np.ndarray:
        layer = VoxelLayer(EVERYWHERE, VoxelConfig(-1.0, mark_threshold=mark, unknown_threshold=unknown))
        layer.match_size(FRAME, None)
        layer.add_observations(clouds)
        return _cells(layer)

    assert not ((cells(threshold + 1, 5) == LETHAL) & (cells(threshold, 5) != LETHAL)).any()
    assert not ((cells(0, threshold + 1) == UNKNOWN) & (cells(0, threshold) != UNKNOWN)).any()


# -- ranges ----------------------------------------------------------------------------------------------------------
def _sonar_layer(distance: float, times: int = 5, **config: object) -> tuple[RangeLayer, GridGeometry]:
    """A sonar at the origin that looks along x and hears something at a distance."""
    frame = GridGeometry(0.05, (80, 80), SE2(-1.0, -2.0))
    layer = RangeLayer(RangeModelConfig(**config))
    layer.match_size(frame, None)
    layer.add_observations([RangeReading(SE2(), distance, 0.4, 0.1, 2.5)] * times)
    return layer, frame


@settings(max_examples=30, deadline=None)
@given(st.floats(0.3, 1.6))
def test_echo_marks_its_arc_and_clears_only_nearer_cells(distance: float) -> None:
    layer, frame = _sonar_layer(distance, 20)
    cells = _cells(layer, frame)
    marked = frame.cell_centers(np.argwhere(cells == LETHAL))
    assert len(marked)
    assert np.abs(np.hypot(*marked.T) - distance).max() < 0.051 * max(distance, 1.0)
    assert np.abs(np.arctan2(marked[:, 1], marked[:, 0])).max() < 0.2 + math.atan2(0.036, distance - 0.08)
    row = int(frame.cells_of_points((0.0, 0.0))[0])
    along = cells[
        row,
        int(frame.cells_of_points((0.05, 0.0))[1]) : int(
            frame.cells_of_points((distance - 0.15 * max(1, distance), 0.0))[1]
        ),
    ]
    assert (along == FREE).all()
    known_cells = frame.cell_centers(np.argwhere(cells != UNKNOWN))
    assert np.hypot(*known_cells.T).max() < distance + 0.051 * max(distance, 1.0)


@settings(max_examples=30, deadline=None)
@given(SEEDS)
def test_echo_order_does_not_matter(seed: int) -> None:
    rng = np.random.default_rng(seed)
    readings = [_reading(rng) for _ in range(4)]
    results = []
    for order in (readings, readings[::-1]):
        layer = RangeLayer(RangeModelConfig(max_probability=0.9999999))
        layer.match_size(FRAME, None)
        layer.add_observations(order)
        results.append(layer._probability)
    assert np.allclose(*results, atol=1e-6)


def test_marked_cells_are_cleared_after_a_fixed_echo_count() -> None:
    needed = set()
    for times in (50, 500, 1000):
        layer, frame = _sonar_layer(1.0, times)
        for count in range(1, 100):
            layer.add_observations([RangeReading(SE2(), 2.0, 0.4, 0.1, 2.5)])
            if not (_cells(layer, frame)[:, :40] == LETHAL).any():
                needed.add(count)
                break
    assert len(needed) == 1
    assert max(needed) < 20


@pytest.mark.parametrize("distance", [math.nan, -math.inf, 0.05, 2.6, math.inf])
def test_invalid_ranges_change_nothing(distance: float) -> None:
    layer, frame = _sonar_layer(distance)
    assert layer.add_observations([RangeReading(SE2(), distance, 0.4, 0.1, 2.5)]) == 0
    assert (_cells(layer, frame) == UNKNOWN).all()


def test_no_echo_clears_the_cone_only_if_enabled() -> None:
    layer, frame = _sonar_layer(1.0, 20)
    marked = (_cells(layer, frame) == LETHAL).sum()
    layer.add_observations([RangeReading(SE2(), math.inf, 0.4, 0.1, 2.5)] * 20)
    assert (_cells(layer, frame) == LETHAL).sum() == marked > 0
    layer, frame = _sonar_layer(1.0, 20, clear_on_max=True)
    layer.add_observations([RangeReading(SE2(), math.inf, 0.4, 0.1, 2.5)] * 20)
    assert not (_cells(layer, frame) == LETHAL).any()


@settings(max_examples=20, deadline=None)
@given(SEEDS)
def test_sonar_ring_finds_the_walls_of_a_room(seed: int) -> None:
    rng = np.random.default_rng(seed)
    half = rng.uniform(0.7, 1.2, 2)  # of a rectangular room about the origin
    frame = GridGeometry(0.05, (70, 70), SE2(-1.75, -1.75))
    layer = RangeLayer()
    layer.match_size(frame, None)
    for k in range(240):
        pose = SE2(*rng.uniform(-0.2, 0.2, 2), 2.0 * math.pi * k / 80)
        rays = pose.theta + np.linspace(-0.15, 0.15, 30) + 1e-5
        reach = np.minimum(
            (half[0] - np.sign(np.cos(rays)) * pose.x) / np.abs(np.cos(rays)),
            (half[1] - np.sign(np.sin(rays)) * pose.y) / np.abs(np.sin(rays)),
        )
        layer.add_observations([RangeReading(pose, float(reach.min()), 0.3, 0.02, 3.0)])
    cells = _cells(layer, frame)
    marked = frame.cell_centers(np.argwhere(cells == LETHAL))
    assert np.abs(np.max(np.abs(marked) - half, axis=1)).max() < 0.3, (
        "obstacles are walls, to within the width of the cone"
    )
    inner = frame.cell_centers(np.argwhere(cells == FREE))
    assert (np.abs(inner) < half + 0.05).all(), "nothing is free beyond the walls"
    cell_centers = frame.cell_centers(np.argwhere(np.ones(frame.shape, bool)))
    is_near = np.hypot(*cell_centers.T) < 0.35
    assert (cells.ravel()[is_near] == FREE).all()


# -- what all of them can ---------------------------------------------------------------------------------------------
@pytest.mark.parametrize("make", [ObstacleLayer, VoxelLayer, RangeLayer, KeepoutLayer, StaticLayer])
def test_cells_under_the_robot_are_cleared(make) -> None:
    layer = make()
    if not hasattr(layer, "clear_polygon"):
        pytest.skip("knows only what it was given")
    layer.match_size(FRAME, None)
    layer.update_bounds()
    outline = SE2(0.3, -0.2, 0.5) @ np.array([[0.3, 0.2], [-0.3, 0.2], [-0.3, -0.2], [0.3, -0.2]])
    layer.clear_polygon(outline)
    local_centers = SE2(0.3, -0.2, 0.5).inverse() @ FRAME.cell_centers(np.argwhere(np.ones(FRAME.shape)))
    # half a cell's extent along the outline's sides: what lies wholly under it is free, and nothing else
    cell_extent = 0.05 * (abs(math.cos(0.3)) + abs(math.sin(0.3)))
    under = (np.abs(local_centers) <= np.array([0.3, 0.2]) - cell_extent).all(axis=1).reshape(FRAME.shape)
    assert under.sum() >= 10
    assert ((_cells(layer) == FREE) == under).all()
    assert not layer.update_bounds().is_empty
    layer.clear_polygon(outline + 100.0)
    assert layer.update_bounds().is_empty
    with pytest.raises(InputError, match="polygon"):
        layer.clear_polygon([[0.0, math.nan], [1.0, 0.0], [0.0, 1.0]])


def test_newest_measurement_of_a_sensor_counts() -> None:
    newest: ObservationBuffer[str] = ObservationBuffer()
    newest.add("b", 2)
    newest.add("a", 1)  # came late
    assert newest.get(10**12) == ["b"]
    persistent: ObservationBuffer[str] = ObservationBuffer(persistence=1.0, expected_period=0.5, name="sonar")
    for k in range(5):
        persistent.add(str(k), k * 400_000_000)
    assert persistent.get(2_000_000_000) == ["3", "4"]
    assert (persistent.is_stale(2_000_000_000), persistent.is_stale(2_200_000_000)) == (False, True)
    assert persistent.time_since_last(2_100_000_000) == pytest.approx(0.5)
    never: ObservationBuffer[str] = ObservationBuffer(expected_period=0.5)
    assert never.is_stale(10**9)
    assert not never.is_stale(10**9, since_ns=700_000_000)


def test_rotated_static_map_is_shown_in_a_rolling_window() -> None:
    cells = np.zeros((60, 60), np.int8)
    cells[30, :] = 100
    static = StaticLayer()
    static.set_map(OccupancyGrid(cells, GridGeometry(0.07, cells.shape, SE2(-2.0, -2.0, 0.4))))
    costmap = LayeredCostmap(GridGeometry(0.1, (30, 30), SE2(-1.5, -1.5)), [static])
    for x in np.linspace(0.0, 1.0, 12):
        costmap.center_on(SE2(float(x), 0.3 * float(x)))
        costmap.update()
        frame = costmap.geometry
        marked = costmap.snapshot().cells == LETHAL
        wall = SE2(-2.0, -2.0, 0.4) @ np.column_stack([np.linspace(0.0, 4.2, 2000), np.full(2000, 30.5 * 0.07)])
        on = frame.cells_of_points(wall)
        on = on[frame.contains(on)]
        assert len(on) > 100
        assert marked[on[:, 0], on[:, 1]].mean() > 0.95


@pytest.mark.parametrize(
    "make",
    [
        lambda: VoxelConfig(z_voxels=0),
        lambda: VoxelConfig(z_voxels=33),
        lambda: VoxelConfig(resolution_z=0.0),
        lambda: VoxelConfig(origin_z=math.nan),
        lambda: VoxelConfig(z_voxels=4, mark_threshold=4, unknown_threshold=4),
        lambda: VoxelConfig(z_voxels=4, unknown_threshold=5),
        lambda: RangeModelConfig(phi=0.0),
        lambda: RangeModelConfig(mark_threshold=0.4),
        lambda: RangeModelConfig(clear_threshold=math.nan),
        lambda: RangeModelConfig(max_probability=1.0),
        lambda: RangeReading(SE2(), 1.0, 0.0, 0.1, 3.0),
        lambda: RangeReading(SE2(), 1.0, math.nan, 0.1, 3.0),
        lambda: RangeReading(SE2(), 1.0, 0.3, 3.0, 0.1),
        lambda: RangeReading(SE2(), 1.0, 0.3, 0.1, math.inf),
        lambda: ObservationBuffer(persistence=-1.0),
        lambda: ObservationBuffer(expected_period=0.0),
        lambda: ObservationBuffer(expected_period=math.nan),
    ],
)
def test_impossible_sensor_layers_are_refused(make) -> None:
    with pytest.raises((ConfigError, InputError)):
        make()
