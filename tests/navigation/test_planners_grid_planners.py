"""Global planners: optimal against independent methods, symmetric, never truncated; and why there is no way."""

import gzip
import itertools
import math
import os
from dataclasses import replace
from pathlib import Path as File

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.sparse import csr_array
from scipy.sparse.csgraph import dijkstra

from roboyard.errors import ConfigError, InputError
from roboyard.geometry import SE2, polygons
from roboyard.grids import GridGeometry
from roboyard.navigation.costmap import FREE, INSCRIBED, LETHAL, UNKNOWN, Costmap
from roboyard.navigation.errors import (
    GoalOccupiedError,
    GoalOutsideMapError,
    GoalUnknownError,
    NavigationError,
    NoPathError,
    StartOccupiedError,
    StartOutsideMapError,
)
from roboyard.navigation.planners import (
    FastMarchingPlanner,
    GridSearchPlanner,
    TraversalCosts,
    evaluate_path,
    grid_search,
)

DATA = os.environ.get("ROBOYARD_DATA")
needs_data = pytest.mark.skipif(DATA is None, reason="ROBOYARD_DATA does not name the folder of data from outside")
UNIFORM = TraversalCosts(cost_weight=0.0)
PLANNERS = [
    GridSearchPlanner(),
    GridSearchPlanner(use_heuristic=False),
    FastMarchingPlanner(),
    FastMarchingPlanner(pull_string=False),
]


def _random_problem(
    seed: int, rows: int, columns: int, blocked: float, off_center: bool = False
) -> tuple[Costmap, SE2, SE2]:
    rng = np.random.default_rng(seed)
    cells = rng.integers(0, 253, (rows, columns)).astype(np.uint8)
    cells[rng.random((rows, columns)) < blocked] = LETHAL
    frame = GridGeometry(0.1, (rows, columns), SE2(*rng.normal(size=3)))
    cells[0, 0] = FREE  # there is a place to be at
    ends = np.argwhere(cells < INSCRIBED)
    start, goal = (
        SE2(*frame.cell_centers(ends[rng.integers(len(ends))] + off_center * rng.uniform(-0.49, 0.49, 2)), 0.3)
        for _ in range(2)
    )
    return Costmap(cells, frame), start, goal


def _scipy_cost(costmap: Costmap, traversal: TraversalCosts, start: SE2, goal: SE2) -> float:
    """The cheapest way's cost by scipy over an explicit graph [cells]."""
    grid = traversal.make_grid(costmap.cells)
    weights = grid.weights[grid.cells][1:-1, 1:-1].astype(np.float64)
    rows, columns = weights.shape
    ends, others, costs = [], [], []
    for r in range(rows):
        for c in range(columns):
            for dr, dc in ((0, 1), (1, 0), (1, 1), (1, -1)):
                rr, cc = r + dr, c + dc
                if rr >= rows or not 0 <= cc < columns or not weights[r, c] or not weights[rr, cc]:
                    continue
                if dr and dc and not (weights[rr, c] and weights[r, cc]):
                    continue
                ends.append(r * columns + c)
                others.append(rr * columns + cc)
                costs.append(math.hypot(dr, dc) * 0.5 * (weights[r, c] + weights[rr, cc]))
    graph = csr_array((costs, (ends, others)), shape=(rows * columns, rows * columns))
    first, last = (
        int(r * columns + c) for r, c in costmap.geometry.cells_of_points([[start.x, start.y], [goal.x, goal.y]])
    )
    return float(dijkstra(graph, directed=False, indices=first)[last])


@settings(max_examples=60, deadline=None)
@given(st.integers(0, 2**32 - 1), st.integers(2, 16), st.integers(2, 16), st.floats(0.0, 0.5), st.floats(0.0, 30.0))
def test_bounded_search_equals_full_search_up_to_its_bound(seed, rows, columns, blocked, cost_margin):
    costmap, start, goal = _random_problem(seed, rows, columns, blocked)
    grid = TraversalCosts(cost_weight=5.0).make_grid(costmap.cells)
    source, target = (
        grid.flat_index(tuple(int(i) for i in costmap.geometry.cells_of_points(pose.xy))) for pose in (start, goal)
    )
    full, bounded = (np.full(grid.cells.size, np.inf) for _ in range(2))
    max_expanded = grid_search.search_grid(grid, full, np.array([source]), -1, 0.0, False)
    assert grid_search.search_grid(grid, bounded, np.array([source]), target, cost_margin, False) <= max_expanded
    final = full <= full[target] + cost_margin
    assert (bounded[final] == full[final]).all()
    assert (bounded >= full).all()


@settings(max_examples=60, deadline=None)
@given(st.integers(0, 2**32 - 1), st.integers(2, 16), st.integers(2, 16), st.floats(0.0, 0.5), st.booleans())
def test_grid_paths_cost_what_scipy_finds(seed, rows, columns, blocked, use_heuristic):
    costmap, start, goal = _random_problem(seed, rows, columns, blocked)
    planner = GridSearchPlanner(TraversalCosts(cost_weight=5.0), use_heuristic)
    expected = _scipy_cost(costmap, planner.traversal, start, goal)
    if math.isinf(expected):
        with pytest.raises(NoPathError):
            planner.plan(costmap, start, goal)
        return
    path = planner.plan(costmap, start, goal)
    assert path.cost == pytest.approx(expected * costmap.geometry.resolution, rel=1e-6)
    back = planner.plan(costmap, goal, start)
    assert back.cost == pytest.approx(path.cost, rel=1e-6)
    assert (path.poses[0, :2] == start.xy).all()
    assert path.poses[-1].tolist() == [goal.x, goal.y, goal.theta]
    cells = costmap.geometry.cells_of_points(path.poses[:, :2])
    assert (costmap.cells[cells[:, 0], cells[:, 1]] < INSCRIBED).all()
    assert np.abs(np.diff(cells, axis=0)).max(initial=0) <= 1
    lethal = costmap.geometry.cell_centers(np.argwhere(costmap.cells == LETHAL))
    if len(lethal):
        # the clearance is to the squares of lethal cells; to their middles it is at most half a diagonal more
        center_distance = np.linalg.norm(lethal[:, None] - path.poses[None, :, :2], axis=2).min()
        assert path.clearance <= center_distance + 1e-9
        assert path.clearance >= center_distance - 0.0708
    else:
        assert math.isinf(path.clearance)


@settings(max_examples=40, deadline=None)
@given(st.integers(0, 2**32 - 1), st.integers(3, 40), st.integers(3, 40), st.floats(0.0, 0.3))
def test_any_angle_paths_are_free_and_cost_no_more(seed, rows, columns, blocked) -> None:
    costmap, start, goal = _random_problem(seed, rows, columns, blocked, off_center=True)
    try:
        stepwise = GridSearchPlanner(UNIFORM).plan(costmap, start, goal)
    except NoPathError:
        # the wave goes through the four sides of a cell, as do diagonal steps between free cells
        with pytest.raises(NoPathError):
            FastMarchingPlanner(UNIFORM).plan(costmap, start, goal)
        return
    descended, pulled = (
        FastMarchingPlanner(UNIFORM, pull_string=False).plan(costmap, start, goal),
        FastMarchingPlanner(UNIFORM).plan(costmap, start, goal),
    )
    assert pulled.cost <= descended.cost * (1.0 + 1e-6)
    assert pulled.length <= stepwise.length * 1.03 + 0.1
    assert pulled.length >= math.hypot(goal.x - start.x, goal.y - start.y) - 1e-9
    for path in (descended, pulled, stepwise):
        assert (path.poses[0, :2] == start.xy).all()
        assert (path.poses[-1, :2] == goal.xy).all()
        steps = np.linspace(path.poses[:-1, :2], path.poses[1:, :2], 9).reshape(-1, 2)
        inside = (costmap.geometry.T_map_grid.inverse() @ steps) / costmap.geometry.resolution
        steps = steps[(np.abs(inside - np.round(inside)) > 1e-9).all(axis=1)]  # a line between cells is in neither
        cells = costmap.geometry.cells_of_points(steps)
        assert (costmap.cells[cells[:, 0], cells[:, 1]] < INSCRIBED).all()


def _polygon_costmap(rng: np.random.Generator) -> tuple[Costmap, list[np.ndarray]]:
    """Convex polygons on open ground of 20 x 20 m, as cells of 5 cm."""
    frame = GridGeometry(0.05, (400, 400))
    cell_centers = frame.cell_centers(np.stack(np.meshgrid(np.arange(400), np.arange(400), indexing="ij"), axis=-1))
    cells = np.zeros((400, 400), dtype=np.uint8)
    shapes: list[np.ndarray] = []
    while len(shapes) < 9:
        center, radius = rng.uniform(3.0, 17.0, 2), rng.uniform(0.6, 2.0)
        if any(np.linalg.norm(center - s.mean(axis=0)) < radius + 2.8 for s in shapes):
            continue
        angles = np.sort((np.arange(5) + rng.uniform(0.0, 0.8, 5)) * 2.0 * math.pi / 5)
        shapes.append(center + radius * np.column_stack([np.cos(angles), np.sin(angles)]))
        cells[polygons.contains(shapes[-1], cell_centers)] = LETHAL
    return Costmap(cells, frame), shapes


def _shortest_length(shapes: list[np.ndarray], start: np.ndarray, goal: np.ndarray) -> float:
    """Over the graph of corners that see each other."""
    corners = np.concatenate([start[None], goal[None], *shapes])
    fractions = np.linspace(0.0, 1.0, 200)[1:-1, None]
    first, last = np.triu_indices(len(corners), 1)
    lines = corners[first][:, None] + fractions * (corners[last] - corners[first])[:, None]
    crossed = np.zeros(len(lines), dtype=bool)
    for shape in shapes:
        crossed |= polygons.contains(shape.mean(axis=0) + (shape - shape.mean(axis=0)) * 0.999, lines).any(axis=1)
    graph = np.zeros((len(corners), len(corners)))
    graph[first, last] = np.where(crossed, 0.0, np.linalg.norm(corners[first] - corners[last], axis=1))
    return float(dijkstra(csr_array(graph), directed=False, indices=0)[1])


def test_any_angle_paths_are_near_the_polygon_optimum() -> None:
    rng = np.random.default_rng(3)
    ratios = []
    for _ in range(4):
        costmap, shapes = _polygon_costmap(rng)
        for start, goal in (((1.0, 1.0), (19.0, 19.0)), ((1.0, 18.0), (19.0, 3.0)), ((10.0, 0.7), (9.0, 19.3))):
            path = FastMarchingPlanner(UNIFORM).plan(costmap, SE2(*start), SE2(*goal))
            ratios.append(path.length / _shortest_length(shapes, np.array(start), np.array(goal)))
    assert max(ratios) < 1.02
    assert min(ratios) > 0.99  # a cell's half may be cut off a corner


@needs_data
@pytest.mark.parametrize("name", ["arena2", "den520d", "maze512-8-0", "random512-25-0"])
def test_planners_find_optimal_lengths_of_public_maps(name: str) -> None:
    folder = File(str(DATA)) / "movingai"
    lines = gzip.decompress((folder / f"{name}.map.gz").read_bytes()).decode().splitlines()
    rows, columns = int(lines[1].split()[1]), int(lines[2].split()[1])
    cells = np.array([[FREE if c in ".GS" else LETHAL for c in line[:columns]] for line in lines[4 : 4 + rows]])
    costmap = Costmap(cells.astype(np.uint8), GridGeometry(1.0, (rows, columns)))
    listed = gzip.decompress((folder / f"{name}.map.scen.gz").read_bytes()).decode().splitlines()[1:]
    problems = [line.split("\t") for line in listed if line]
    for i in np.linspace(0, len(problems) - 1, 25).astype(int):
        x0, y0, x1, y1 = (int(word) + 0.5 for word in problems[i][4:8])
        path = GridSearchPlanner(UNIFORM).plan(costmap, SE2(x0, y0), SE2(x1, y1))
        assert path.length == pytest.approx(float(problems[i][8]), rel=1e-5, abs=1e-5)  # the file gives six digits


@pytest.mark.parametrize("planner", PLANNERS)
def test_long_paths_are_complete(planner) -> None:
    cells = np.zeros((201, 301), dtype=np.uint8)
    for row in range(1, 200, 4):
        cells[row] = LETHAL
        cells[row, 0 if row % 8 == 1 else -1] = FREE
    costmap = Costmap(cells, GridGeometry(0.05, cells.shape))
    path = planner.plan(costmap, SE2(0.025, 0.025), SE2(15.0, 10.025))
    assert path.length > 49 * 300 * 0.05
    assert np.linalg.norm(np.diff(path.poses[:, :2], axis=0), axis=1).max() < 0.15


@pytest.mark.parametrize("planner", PLANNERS)
def test_planner_failures_have_causes(planner) -> None:
    cells = np.zeros((40, 40), dtype=np.uint8)
    cells[:, 20] = LETHAL
    cells[:, 19] = cells[:, 21] = INSCRIBED
    cells[0, 5] = UNKNOWN
    costmap = Costmap(cells, GridGeometry(0.1, cells.shape, SE2(-1.0, -1.0, 0.0)))
    free_pose = SE2(0.0, 0.0)
    for start, goal, error in (
        (free_pose, SE2(50.0, 0.0), GoalOutsideMapError),
        (SE2(0.0, -1.1), free_pose, StartOutsideMapError),
        (free_pose, SE2(1.05, 0.0), GoalOccupiedError),
        (free_pose, SE2(0.95, 0.0), GoalOccupiedError),
        (SE2(1.15, 0.0), free_pose, StartOccupiedError),
        (free_pose, SE2(2.0, 0.0), NoPathError),
    ):
        with pytest.raises(error) as caught:
            planner.plan(costmap, start, goal)
        assert caught.value.valid
        assert isinstance(caught.value, NavigationError)
        assert caught.value.cause != NavigationError.cause
    careful = type(planner)(TraversalCosts(allow_unknown=False))
    with pytest.raises(GoalUnknownError):
        careful.plan(costmap, free_pose, SE2(-0.45, -0.95))
    assert len(planner.plan(costmap, free_pose, SE2(-0.45, -0.95)))
    stay = planner.plan(costmap, free_pose, SE2(0.0, 0.0, 1.0))
    assert stay.length == 0.0
    assert stay.poses[-1, 2] == 1.0


@pytest.mark.parametrize("wrong", [{"cost_weight": -1.0}, {"cost_weight": math.nan}, {"unknown_cost": 253}])
def test_planner_settings_out_of_range_are_refused(wrong) -> None:
    with pytest.raises(ConfigError):
        TraversalCosts(**wrong)


# -- what poses cost ---------------------------------------------------------------------------------------------------
@settings(max_examples=40, deadline=None)
@given(st.integers(0, 2**32 - 1), st.integers(0, 3))
def test_pose_costs_are_the_integral_also_outside_the_map(seed: int, planes: int) -> None:
    rng = np.random.default_rng(seed)
    cells = rng.integers(0, 250, (9, 12)).astype(np.uint8)
    cells[rng.random(cells.shape) < 0.2] = UNKNOWN
    costmap = Costmap(cells, GridGeometry(0.1, cells.shape, SE2(1.0, -2.0, 0.5 * planes)))
    points = costmap.geometry.T_map_grid @ (rng.uniform(-1.0, 2.0, (5, 2)))
    poses = np.column_stack([points, np.zeros(5)])
    traversal = TraversalCosts(cost_weight=2.0, unknown_cost=70)
    # independently: many points along the lines
    dense = np.concatenate([np.linspace(a, b, 20_001)[:-1] for a, b in itertools.pairwise(points)])
    steps = np.repeat(np.linalg.norm(np.diff(points, axis=0), axis=1) / 20_000, 20_000)
    found = costmap.geometry.cells_of_points(dense + 0.5 * np.diff(dense, axis=0, append=points[-1:]))
    inside = costmap.geometry.contains(found)
    values = np.full(len(dense), UNKNOWN)
    values[inside] = cells[found[inside, 0], found[inside, 1]]
    values[values == UNKNOWN] = 70
    expected = (steps * (1.0 + 2.0 * values / 252.0)).sum()
    assert evaluate_path(costmap, poses, traversal).cost == pytest.approx(expected, rel=2e-3)
    known_only = replace(traversal, allow_unknown=False)
    entered = not inside.all() or (cells[found[inside, 0], found[inside, 1]] == UNKNOWN).any()
    if entered:
        assert evaluate_path(costmap, poses, known_only).cost == math.inf


def test_distant_or_non_finite_poses_are_handled() -> None:
    costmap = Costmap(np.zeros((4, 4), dtype=np.uint8), GridGeometry(1.0, (4, 4)))
    poses = np.array([[-1e6, 2.0, 0.0], [1e6, 2.0, 0.0]])
    outside_cost = 1.0 + 3.0 * 50 / 252
    assert evaluate_path(costmap, poses, TraversalCosts()).cost == pytest.approx(
        4.0 + (2e6 - 4.0) * outside_cost, rel=1e-6
    )
    poses[1, 0] = math.nan
    with pytest.raises(InputError):
        evaluate_path(costmap, poses, TraversalCosts())
