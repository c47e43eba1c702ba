"""Why there is no way: gaps of known width, named layers, and what closes all ways."""

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from roboyard.errors import InputError
from roboyard.geometry import SE2
from roboyard.grids import FREE, OCCUPIED, UNKNOWN, GridGeometry, OccupancyGrid
from roboyard.navigation.costmap import (
    CellCostOrigin,
    InflationLayer,
    KeepoutLayer,
    LayeredCostmap,
    Observation,
    ObstacleLayer,
    StaticLayer,
)
from roboyard.navigation.errors import NoPathError
from roboyard.navigation.path import BarrierKind
from roboyard.navigation.planners import GridSearchPlanner, TraversalCosts
from roboyard.navigation.planners.failure_explanation import explain_no_path, maximum_clearance_path, no_path_error

RESOLUTION = 0.05


def _layers(
    static: np.ndarray, keepout: np.ndarray | None = None, radius: float = 0.2, unknown: bool = False
) -> LayeredCostmap:
    frame = GridGeometry(RESOLUTION, static.shape, SE2(-1.0, 2.0, 0.4))
    ground, zone = StaticLayer(), KeepoutLayer()
    ground.set_map(OccupancyGrid(static, frame))
    if keepout is not None:
        zone.set_mask(OccupancyGrid(keepout, frame))
    layers = LayeredCostmap(frame, [ground, zone, InflationLayer(radius, radius)], track_unknown_space=unknown)
    layers.update()
    return layers


def _pose(layers: LayeredCostmap, row: int, column: int) -> SE2:
    return SE2(*layers.geometry.cell_centers(np.array([row, column])))


@settings(max_examples=40, deadline=None)
@given(
    st.lists(st.integers(1, 7), min_size=1, max_size=4),
    st.integers(0, 2**32 - 1),
    st.booleans(),
)
def test_explanation_names_the_largest_gap_of_the_hardest_wall(widths, seed, transposed) -> None:
    """Walls behind each other, each with gaps of known width: the hardest wall's widest gap is the answer."""
    rng = np.random.default_rng(seed)
    cells = np.full((60, 30 + 30 * len(widths)), FREE, dtype=np.int8)
    gaps = []
    for k, width in enumerate(widths):
        column = 25 + 30 * k
        cells[:, column] = OCCUPIED
        gap_start = int(rng.integers(8, 45))
        cells[gap_start : gap_start + width, column] = FREE
        gaps.append((gap_start + (width - 1) / 2, column))
    cells = cells.T.copy() if transposed else cells
    layers = _layers(cells, radius=0.2)
    start, goal = (3, 3), (50, cells.shape[1] - 4)
    if transposed:
        start, goal = (3, 3), (cells.shape[0] - 4, 50)
    found = explain_no_path(layers, _pose(layers, *start), _pose(layers, *goal), 0.2)
    narrowest = min(widths)
    # a robot's centre in the middle of k cells is (k + 1) / 2 cells from both sides
    expected = BarrierKind.NO_BARRIER if (narrowest + 1) // 2 * RESOLUTION > 0.2 + 1e-9 else BarrierKind.GAP
    assert found.barrier is expected
    assert found.gap_width == pytest.approx(narrowest * RESOLUTION, abs=RESOLUTION * 1.01)
    assert found.required_width == pytest.approx(0.4)
    hardest = [g for g, w in zip(gaps, widths, strict=True) if (w + 1) // 2 == (narrowest + 1) // 2]
    gap_centers = layers.geometry.cell_centers([(c, r) if transposed else (r, c) for r, c in hardest])
    assert np.linalg.norm(gap_centers - np.array(found.position), axis=1).min() <= 1.5 * RESOLUTION
    assert found.marked_by == (CellCostOrigin("static"),)
    if found.barrier is BarrierKind.GAP:
        with pytest.raises(NoPathError):
            GridSearchPlanner().plan(layers.snapshot(), _pose(layers, *start), _pose(layers, *goal))


def test_explanation_names_the_layers_next_to_a_gap() -> None:
    static = np.full((60, 60), FREE, dtype=np.int8)
    zone = np.zeros((60, 60), dtype=np.int8)
    static[:30, 30] = OCCUPIED
    zone[34:, 28:33] = 100
    layers = _layers(static, zone)
    start, goal = _pose(layers, 10, 8), _pose(layers, 10, 52)
    found = explain_no_path(layers, start, goal, 0.2)
    assert found.barrier is BarrierKind.GAP
    assert set(found.marked_by) == {CellCostOrigin("static"), CellCostOrigin("keepout")}
    assert found.gap_width == pytest.approx(4 * RESOLUTION, abs=RESOLUTION)
    error = no_path_error(layers, start, goal, 0.2)
    assert error.cause == "no_path"
    assert str(error.explanation) == str(found)
    for word in ("0.20 m wide", "0.40 m", "'static'", "'keepout'"):
        assert word in str(error)
    zone[30:, 28:33] = 100
    layers = _layers(static, zone)
    closed = explain_no_path(layers, start, goal, 0.2)
    assert closed.barrier is BarrierKind.WALL
    assert closed.gap_width == 0.0
    assert closed.marked_by == (CellCostOrigin("static"),)  # one cell thick, the zone is five
    assert len(closed.cells) == 1
    static[:30, 26:35] = OCCUPIED
    layers = _layers(static, zone)
    thick = explain_no_path(layers, _pose(layers, 40, 8), _pose(layers, 40, 52), 0.2)
    assert thick.marked_by == (CellCostOrigin("keepout"),)
    assert len(thick.cells) == 5


def test_explanation_names_the_sensor_of_an_obstacle() -> None:
    frame = GridGeometry(RESOLUTION, (40, 40))
    obstacles = ObstacleLayer()
    layers = LayeredCostmap(frame, [obstacles, InflationLayer(0.2, 0.2)])
    ends = np.column_stack([np.full(80, 1.01), np.linspace(0.01, 1.99, 80), np.full(80, 0.2)])
    observations = [
        Observation(np.array([0.2, 1.0, 0.2]), part, np.ones(len(part), dtype=bool), name)
        for name, part in (("front_laser", ends[:38]), ("camera", ends[42:]))
    ]
    obstacles.add_observations(observations)
    layers.update()
    found = explain_no_path(layers, SE2(0.3, 1.0), SE2(1.7, 1.0), 0.2)
    assert found.barrier is BarrierKind.GAP
    assert set(found.marked_by) == {CellCostOrigin("obstacles", "front_laser"), CellCostOrigin("obstacles", "camera")}
    layers.center_on(SE2(1.2, 1.1, 0.0))
    layers.update()
    assert layers.find_cost_origins(layers.geometry.cells_of_points([[1.01, 0.5]])) == (
        CellCostOrigin("obstacles", "front_laser"),
    )


def test_explanation_names_map_edge_and_unknown_cells() -> None:
    static = np.full((60, 60), FREE, dtype=np.int8)
    static[:57, 30] = OCCUPIED
    layers = _layers(static)
    found = explain_no_path(layers, _pose(layers, 20, 8), _pose(layers, 20, 52), 0.2)
    assert found.barrier is BarrierKind.GAP
    assert found.required_width == pytest.approx(0.2)  # its centre stays on the map
    assert found.gap_width == pytest.approx(2.5 * RESOLUTION)
    static[:] = FREE
    static[:, 30:33] = UNKNOWN
    layers = _layers(static, unknown=True)
    ends = _pose(layers, 20, 8), _pose(layers, 20, 52)
    assert explain_no_path(layers, *ends, 0.2).barrier is BarrierKind.NO_BARRIER
    unknown_barrier = explain_no_path(layers, *ends, 0.2, allow_unknown=False)
    assert unknown_barrier.barrier is BarrierKind.WALL
    assert "unknown space" in str(unknown_barrier)
    with pytest.raises(NoPathError):
        GridSearchPlanner(TraversalCosts(allow_unknown=False)).plan(layers.snapshot(), *ends)


def test_explanation_names_a_goal_or_start_near_an_obstacle() -> None:
    static = np.full((60, 60), FREE, dtype=np.int8)
    static[30, 30] = OCCUPIED
    layers = _layers(static)
    free = _pose(layers, 5, 5)
    near_obstacle = _pose(layers, 30, 33)
    for start, goal, barrier in ((free, near_obstacle, BarrierKind.GOAL), (near_obstacle, free, BarrierKind.START)):
        found = explain_no_path(layers, start, goal, 0.2)
        assert found.barrier is barrier
        assert found.gap_width == pytest.approx(2.5 * RESOLUTION)
        assert found.cells.tolist() == [[30, 30]]
        assert barrier.value in str(found)
    open_ground = explain_no_path(
        _layers(np.full((9, 9), FREE, dtype=np.int8)), _pose(layers, 1, 1), _pose(layers, 7, 7), 0.2
    )
    assert open_ground.barrier is BarrierKind.NO_BARRIER
    assert math.isinf(open_ground.gap_width)
    with pytest.raises(InputError):
        explain_no_path(layers, SE2(99.0, 0.0), free, 0.2)
    with pytest.raises(InputError):
        explain_no_path(layers, free, near_obstacle, math.nan)


@settings(max_examples=60, deadline=None)
@given(st.integers(0, 2**32 - 1), st.integers(2, 14), st.integers(2, 14))
def test_maximum_clearance_path_equals_exhaustive_search(seed, rows, columns) -> None:
    rng = np.random.default_rng(seed)
    squares = rng.integers(0, 9, (rows, columns)).astype(np.float64)
    a, b = (tuple(int(i) for i in rng.integers((0, 0), (rows, columns))) for _ in range(2))
    squares[a] = max(squares[a], 1.0)
    squares[b] = max(squares[b], 1.0)
    square, narrowest_cell = maximum_clearance_path(squares, *a, *b)
    assert square == max((level for level in range(1, 9) if _are_connected(squares, level, a, b)), default=0)
    if square:
        assert squares.ravel()[narrowest_cell] == square


def _are_connected(squares: np.ndarray, level: float, a: tuple[int, int], b: tuple[int, int]) -> bool:
    """Whether a flood from one reaches the other over cells of that level, obstacles' corners not cut."""
    rows, columns = squares.shape
    if squares[a] < level or squares[b] < level:
        return False
    visited, waiting = {a}, [a]
    while waiting:
        r, c = waiting.pop()
        for rr in range(max(r - 1, 0), min(r + 2, rows)):
            for cc in range(max(c - 1, 0), min(c + 2, columns)):
                if (rr, cc) in visited or squares[rr, cc] < level or not squares[r, cc] or not squares[rr, c]:
                    continue
                visited.add((rr, cc))
                waiting.append((rr, cc))
    return b in visited
