"""Voxels and ranges: what beams and echoes prove, and no more; updates of what changed equal putting all together."""

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from roboyard.errors import ConfigError, InputError
from roboyard.geometry import SE2
from roboyard.grids import GridGeometry, OccupancyGrid
from roboyard.navigation.costmap.bounds import Bounds
from roboyard.navigation.costmap.filters import KeepoutLayer
from roboyard.navigation.costmap.grid import FREE, LETHAL, UNKNOWN
from roboyard.navigation.costmap.inflation import InflationLayer
from roboyard.navigation.costmap.layered import LayeredCostmap
from roboyard.navigation.costmap.obstacles import Observation, ObstacleConfig, ObstacleLayer
from roboyard.navigation.costmap.ranges import RangeConfig, RangeLayer, RangeReading
from roboyard.navigation.costmap.recent import Recent
from roboyard.navigation.costmap.static import StaticLayer
from roboyard.navigation.costmap.underlay import Underlay
from roboyard.navigation.costmap.voxels import VoxelConfig, VoxelLayer

FRAME = GridGeometry(0.1, (50, 60), SE2(-3.0, -2.5, 0.2))
EVERYWHERE = ObstacleConfig(min_height=-10.0, max_height=10.0, mark_to=20.0, clear_to=20.0)
SEEDS = st.integers(0, 2**32 - 1)


def _cloud(rng: np.random.Generator, count: int = 40) -> Observation:
    origin = np.append(rng.uniform(-1.0, 1.0, 2), rng.uniform(0.1, 1.5))
    return Observation(origin, origin + rng.normal(0.0, 1.0, (count, 3)) * (1.5, 1.5, 0.6), rng.random(count) < 0.7)


def _reading(rng: np.random.Generator, distance: float | None = None) -> RangeReading:
    pose = SE2(*rng.uniform(-1.5, 1.5, 2), rng.uniform(-3.0, 3.0))
    return RangeReading(pose, rng.uniform(0.1, 3.0) if distance is None else distance, rng.uniform(0.1, 1.2), 0.1, 3.0)


def _cells(layer, frame: GridGeometry = FRAME) -> np.ndarray:
    cells = np.full(frame.shape, UNKNOWN, dtype=np.uint8)
    layer.apply(cells, Bounds.whole(frame.shape))
    return cells


@settings(max_examples=25, deadline=None)
@given(SEEDS, st.booleans())
def test_incremental_layer_update_equals_full_update(seed: int, rolling: bool) -> None:
    rng = np.random.default_rng(seed)
    voxels, ranges = VoxelLayer(EVERYWHERE), RangeLayer(RangeConfig(clear_on_max=True), overwrite=bool(seed % 2))
    costmap = LayeredCostmap(FRAME, [voxels, ranges, InflationLayer(0.15, 0.4)], unknown=True)
    for k in range(6):
        if rolling:
            costmap.centre_on(SE2(*rng.uniform(-0.5, 0.5, 2)))
        voxels.see([_cloud(rng), _cloud(rng, 3)])
        ranges.hear([_reading(rng), _reading(rng), _reading(rng, math.inf)])
        if k == 3:
            voxels.forget(Bounds(5, 6, 30, 20))
            ranges.forget()
        if k == 4:
            outline = rng.uniform(-1.0, 1.0, (3, 2))
            voxels.free(outline)
            ranges.free(outline)
        costmap.update()
        now = costmap.costmap()
        again = LayeredCostmap.__new__(LayeredCostmap)
        again.__dict__.update(costmap.__dict__)
        again._cells, again._pending = np.zeros_like(now.cells), Bounds.whole(FRAME.shape)
        again.update()
        assert (again.costmap().cells == now.cells).all()
        assert costmap.update().is_empty


@settings(max_examples=40, deadline=None)
@given(SEEDS, st.floats(0.03, 0.3), st.floats(-3.0, 3.0))
def test_rolled_map_equals_a_map_built_in_place(seed: int, resolution: float, theta: float) -> None:
    rng = np.random.default_rng(seed)
    values = rng.choice(np.array([FREE, 90, LETHAL, UNKNOWN], np.uint8), (40, 50))
    under = GridGeometry(resolution, values.shape, SE2(-2.0, -1.5, theta))
    rolled = Underlay(UNKNOWN)
    rolled.take(values, under)
    frame = GridGeometry(0.1, (20, 15), SE2(-1.0, -0.7, 0.1))
    rolled.fit(frame, None)
    for _ in range(6):
        moved = (int(rng.integers(-25, 25)), int(rng.integers(-18, 18))) if rng.random() < 0.3 else (1, -2)
        origin = frame.T_map_grid @ SE2(moved[1] * 0.1, moved[0] * 0.1, 0.0)
        frame = GridGeometry(0.1, frame.shape, origin)
        rolled.fit(frame, moved)
    fresh = Underlay(UNKNOWN)
    fresh.take(values, under)
    fresh.fit(frame, None)
    assert (rolled.cells == fresh.cells).all()


@settings(max_examples=40, deadline=None)
@given(SEEDS)
def test_single_voxel_level_equals_the_planar_layer(seed: int) -> None:
    rng = np.random.default_rng(seed)
    planar = ObstacleLayer(ObstacleConfig(min_height=0.0, max_height=1.5, mark_to=2.0, clear_to=2.5))
    solid = VoxelLayer(
        ObstacleConfig(min_height=0.0, max_height=1.5, mark_to=2.0, clear_to=2.5),
        VoxelConfig(origin_z=-20.0, resolution_z=40.0, levels=1, unknown_threshold=1),
    )
    for layer in (planar, solid):
        layer.fit(FRAME, None)
    for _ in range(3):
        seen = [_cloud(rng), _cloud(rng)]
        planar.see(seen)
        solid.see(seen)
    assert (_cells(planar) == _cells(solid)).all()


@settings(max_examples=30, deadline=None)
@given(SEEDS)
def test_voxels_are_marked_at_beam_ends_and_cleared_along_beams(seed: int) -> None:
    """Against beams sampled densely."""
    rng = np.random.default_rng(seed)
    config = VoxelConfig(origin_z=-1.0, resolution_z=0.2, levels=20)
    layer = VoxelLayer(EVERYWHERE, config)
    layer.fit(FRAME, None)
    layer.see([_cloud(rng, 60)])
    before = {tuple(np.round(p, 6)) for p in layer.voxels()}
    seen = _cloud(rng, 30)
    layer.see([seen])
    after = {tuple(np.round(p, 6)) for p in layer.voxels()}

    def voxel(points: np.ndarray) -> np.ndarray:
        return np.column_stack([FRAME.cells_of_points(points[:, :2]), np.floor((points[:, 2] + 1.0) / 0.2)]).astype(int)

    def middle(index: tuple[int, ...]) -> tuple[float, ...]:
        x, y = FRAME.cell_centers(index[:2])
        return tuple(np.round([x, y, -1.0 + (index[2] + 0.5) * 0.2], 6))

    ends = voxel(seen.points)
    inside = FRAME.contains(ends[:, :2]) & (ends[:, 2] >= 0) & (ends[:, 2] < 20)
    assert {middle(tuple(v)) for v in ends[inside & seen.hits]} <= after
    passed: dict[tuple[int, ...], int] = {}
    for end in seen.points:
        line = voxel(seen.origin + np.linspace(0.0, 1.0, 3000)[:, None] * (end - seen.origin))
        # along a line a voxel's samples follow each other
        starts = np.flatnonzero(np.concatenate([[True], (np.diff(line, axis=0) != 0).any(axis=1)]))
        for cell, count in zip(line[starts].tolist(), np.diff([*starts, len(line)]).tolist(), strict=True):
            passed[tuple(cell)] = max(passed.get(tuple(cell), 0), count)
    last = {middle(tuple(v)) for v in ends}
    surely = {middle(v) for v, count in passed.items() if count > 3}
    maybe = {middle(v) for v in passed}
    assert len(before - after - maybe) <= 2, "only what beams touch is cleared; some were touched at a corner"
    assert not (surely & after) - last, "what beams pass through is cleared"


def test_laser_below_a_table_does_not_clear_its_top() -> None:
    top = Observation(np.array([0.0, 0.0, 0.6]), np.array([[1.0, 0.0, 0.7], [1.1, 0.1, 0.7]]), np.ones(2, bool))
    below = Observation(np.array([0.0, 0.0, 0.2]), np.array([[2.0, 0.0, 0.2], [2.0, 0.2, 0.2]]), np.ones(2, bool))
    frame = GridGeometry(0.1, (20, 40), SE2(-1.0, -1.0))
    spots = {}
    for layer in (VoxelLayer(), ObstacleLayer()):
        layer.fit(frame, None)
        layer.see([top])
        layer.see([below])
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
        layer.fit(FRAME, None)
        layer.see(clouds)
        return _cells(layer)

    assert not ((cells(threshold + 1, 5) == LETHAL) & (cells(threshold, 5) != LETHAL)).any()
    assert not ((cells(0, threshold + 1) == UNKNOWN) & (cells(0, threshold) != UNKNOWN)).any()


# -- ranges ----------------------------------------------------------------------------------------------------------
def _turning(distance: float, times: int = 5, **config: object) -> tuple[RangeLayer, GridGeometry]:
    """A sonar at the origin that looks along x and hears something at a distance."""
    frame = GridGeometry(0.05, (80, 80), SE2(-1.0, -2.0))
    layer = RangeLayer(RangeConfig(**config))
    layer.fit(frame, None)
    layer.hear([RangeReading(SE2(), distance, 0.4, 0.1, 2.5)] * times)
    return layer, frame


@settings(max_examples=30, deadline=None)
@given(st.floats(0.3, 1.6))
def test_echo_marks_its_arc_and_clears_only_nearer_cells(distance: float) -> None:
    layer, frame = _turning(distance, 20)
    cells = _cells(layer, frame)
    at = frame.cell_centers(np.argwhere(cells == LETHAL))
    assert len(at)
    assert np.abs(np.hypot(*at.T) - distance).max() < 0.051 * max(distance, 1.0)
    assert np.abs(np.arctan2(at[:, 1], at[:, 0])).max() < 0.2 + math.atan2(0.036, distance - 0.08)
    row = int(frame.cells_of_points((0.0, 0.0))[0])
    along = cells[
        row,
        int(frame.cells_of_points((0.05, 0.0))[1]) : int(
            frame.cells_of_points((distance - 0.15 * max(1, distance), 0.0))[1]
        ),
    ]
    assert (along == FREE).all()
    beyond = frame.cell_centers(np.argwhere(cells != UNKNOWN))
    assert np.hypot(*beyond.T).max() < distance + 0.051 * max(distance, 1.0)


@settings(max_examples=30, deadline=None)
@given(SEEDS)
def test_echo_order_does_not_matter(seed: int) -> None:
    rng = np.random.default_rng(seed)
    readings = [_reading(rng) for _ in range(4)]
    results = []
    for order in (readings, readings[::-1]):
        layer = RangeLayer(RangeConfig(surest=0.9999999))
        layer.fit(FRAME, None)
        layer.hear(order)
        results.append(layer._probability)
    assert np.allclose(*results, atol=1e-6)


def test_marked_cells_are_cleared_after_a_fixed_echo_count() -> None:
    needed = set()
    for times in (50, 500, 1000):
        layer, frame = _turning(1.0, times)
        for count in range(1, 100):
            layer.hear([RangeReading(SE2(), 2.0, 0.4, 0.1, 2.5)])
            if not (_cells(layer, frame)[:, :40] == LETHAL).any():
                needed.add(count)
                break
    assert len(needed) == 1
    assert max(needed) < 20


@pytest.mark.parametrize("distance", [math.nan, -math.inf, 0.05, 2.6, math.inf])
def test_invalid_ranges_change_nothing(distance: float) -> None:
    layer, frame = _turning(distance)
    assert layer.hear([RangeReading(SE2(), distance, 0.4, 0.1, 2.5)]) == 0
    assert (_cells(layer, frame) == UNKNOWN).all()


def test_no_echo_clears_the_cone_only_if_enabled() -> None:
    layer, frame = _turning(1.0, 20)
    marked = (_cells(layer, frame) == LETHAL).sum()
    layer.hear([RangeReading(SE2(), math.inf, 0.4, 0.1, 2.5)] * 20)
    assert (_cells(layer, frame) == LETHAL).sum() == marked > 0
    layer, frame = _turning(1.0, 20, clear_on_max=True)
    layer.hear([RangeReading(SE2(), math.inf, 0.4, 0.1, 2.5)] * 20)
    assert not (_cells(layer, frame) == LETHAL).any()


@settings(max_examples=20, deadline=None)
@given(SEEDS)
def test_sonar_ring_finds_the_walls_of_a_room(seed: int) -> None:
    rng = np.random.default_rng(seed)
    half = rng.uniform(0.7, 1.2, 2)  # of a rectangular room about the origin
    frame = GridGeometry(0.05, (70, 70), SE2(-1.75, -1.75))
    layer = RangeLayer()
    layer.fit(frame, None)
    for k in range(240):
        pose = SE2(*rng.uniform(-0.2, 0.2, 2), 2.0 * math.pi * k / 80)
        rays = pose.theta + np.linspace(-0.15, 0.15, 30) + 1e-5
        reach = np.minimum(
            (half[0] - np.sign(np.cos(rays)) * pose.x) / np.abs(np.cos(rays)),
            (half[1] - np.sign(np.sin(rays)) * pose.y) / np.abs(np.sin(rays)),
        )
        layer.hear([RangeReading(pose, float(reach.min()), 0.3, 0.02, 3.0)])
    cells = _cells(layer, frame)
    at = frame.cell_centers(np.argwhere(cells == LETHAL))
    assert np.abs(np.max(np.abs(at) - half, axis=1)).max() < 0.3, "obstacles are walls, to within the width of the cone"
    inner = frame.cell_centers(np.argwhere(cells == FREE))
    assert (np.abs(inner) < half + 0.05).all(), "nothing is free beyond the walls"
    middles = frame.cell_centers(np.argwhere(np.ones(frame.shape, bool)))
    near = np.hypot(*middles.T) < 0.35
    assert (cells.ravel()[near] == FREE).all()


# -- what all of them can ---------------------------------------------------------------------------------------------
@pytest.mark.parametrize("make", [ObstacleLayer, VoxelLayer, RangeLayer, KeepoutLayer, StaticLayer])
def test_cells_under_the_robot_are_cleared(make) -> None:
    layer = make()
    if not hasattr(layer, "free"):
        pytest.skip("knows only what it was given")
    layer.fit(FRAME, None)
    layer.changed()
    outline = SE2(0.3, -0.2, 0.5) @ np.array([[0.3, 0.2], [-0.3, 0.2], [-0.3, -0.2], [0.3, -0.2]])
    layer.free(outline)
    middles = SE2(0.3, -0.2, 0.5).inverse() @ FRAME.cell_centers(np.argwhere(np.ones(FRAME.shape)))
    # half a cell's extent along the outline's sides: what lies wholly under it is free, and nothing else
    turned = 0.05 * (abs(math.cos(0.3)) + abs(math.sin(0.3)))
    under = (np.abs(middles) <= np.array([0.3, 0.2]) - turned).all(axis=1).reshape(FRAME.shape)
    assert under.sum() >= 10
    assert ((_cells(layer) == FREE) == under).all()
    assert not layer.changed().is_empty
    layer.free(outline + 100.0)
    assert layer.changed().is_empty
    with pytest.raises(InputError, match="polygon"):
        layer.free([[0.0, math.nan], [1.0, 0.0], [0.0, 1.0]])


def test_newest_measurement_of_a_sensor_counts() -> None:
    newest: Recent[str] = Recent()
    newest.add("b", 2)
    newest.add("a", 1)  # came late
    assert newest.recent(10**12) == ["b"]
    kept: Recent[str] = Recent(persistence=1.0, every=0.5, name="sonar")
    for k in range(5):
        kept.add(str(k), k * 400_000_000)
    assert kept.recent(2_000_000_000) == ["3", "4"]
    assert (kept.is_silent(2_000_000_000), kept.is_silent(2_200_000_000)) == (False, True)
    assert kept.silent_for(2_100_000_000) == pytest.approx(0.5)
    never: Recent[str] = Recent(every=0.5)
    assert never.is_silent(10**9)
    assert not never.is_silent(10**9, since_ns=700_000_000)


def test_rotated_static_map_is_shown_in_a_rolling_window() -> None:
    cells = np.zeros((60, 60), np.int8)
    cells[30, :] = 100
    static = StaticLayer()
    static.take(OccupancyGrid(cells, GridGeometry(0.07, cells.shape, SE2(-2.0, -2.0, 0.4))))
    costmap = LayeredCostmap(GridGeometry(0.1, (30, 30), SE2(-1.5, -1.5)), [static])
    for x in np.linspace(0.0, 1.0, 12):
        costmap.centre_on(SE2(float(x), 0.3 * float(x)))
        costmap.update()
        frame = costmap.frame
        marked = costmap.costmap().cells == LETHAL
        wall = SE2(-2.0, -2.0, 0.4) @ np.column_stack([np.linspace(0.0, 4.2, 2000), np.full(2000, 30.5 * 0.07)])
        on = frame.cells_of_points(wall)
        on = on[frame.contains(on)]
        assert len(on) > 100
        assert marked[on[:, 0], on[:, 1]].mean() > 0.95


@pytest.mark.parametrize(
    "make",
    [
        lambda: VoxelConfig(levels=0),
        lambda: VoxelConfig(levels=33),
        lambda: VoxelConfig(resolution_z=0.0),
        lambda: VoxelConfig(origin_z=math.nan),
        lambda: VoxelConfig(levels=4, mark_threshold=4, unknown_threshold=4),
        lambda: VoxelConfig(levels=4, unknown_threshold=5),
        lambda: RangeConfig(phi=0.0),
        lambda: RangeConfig(mark_threshold=0.4),
        lambda: RangeConfig(clear_threshold=math.nan),
        lambda: RangeConfig(surest=1.0),
        lambda: RangeReading(SE2(), 1.0, 0.0, 0.1, 3.0),
        lambda: RangeReading(SE2(), 1.0, math.nan, 0.1, 3.0),
        lambda: RangeReading(SE2(), 1.0, 0.3, 3.0, 0.1),
        lambda: RangeReading(SE2(), 1.0, 0.3, 0.1, math.inf),
        lambda: Recent(persistence=-1.0),
        lambda: Recent(every=0.0),
        lambda: Recent(every=math.nan),
    ],
)
def test_impossible_sensor_layers_are_refused(make) -> None:
    with pytest.raises((ConfigError, InputError)):
        make()
