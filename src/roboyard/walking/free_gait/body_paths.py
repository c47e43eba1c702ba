"""Body paths: sampling of paths that the body may follow, and the distance-to-goal map that guides them.

A body that moves straight to the goal may reach places that no feet can follow.  The map states for each cell of a
coarse grid the length of the best path to the goal, weighted by how many legs find footholds.
"""

from __future__ import annotations

import math
from typing import Final

import numpy as np
from numpy.typing import NDArray
from scipy.ndimage import distance_transform_edt, maximum_filter

from roboyard.compute import kernel
from roboyard.geometry.arrays import Array
from roboyard.walking.free_gait.foothold_map import FootholdMap, interpolate_body_height
from roboyard.walking.free_gait.partial_plans import (
    MAX_PATH_SAMPLES,
    PATH_SPACING,
    BodyPaths,
    PlanningContext,
    derive_key,
    example_context,
    example_search_state,
    triangular_quantile,
    uniform_draw,
)
from roboyard.walking.free_gait.robot_model import FreeGaitModel

GUIDE_STRIDE: Final = 2
"""Number of cells of the foothold map along the edge of a cell of the distance-to-goal map."""
FOOTHOLD_RADIUS: Final = 0.2
"""Upper bound of the distance of a foot from its stance position, for the Akrobat [m]."""
_COST_RADIUS: Final = 0.1
"""Distance from its stance position within which a leg needs a foothold, or the cell costs more [m]."""
_MISSING_FOOTHOLD_COST: Final = 0.6
"""Fraction by which each leg without a foothold increases the cost of a cell."""


def count_legs_with_foothold(
    robot_model: FreeGaitModel, foothold_map: FootholdMap, max_distance: float
) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Return (rows, columns) how many legs of the left and of the right side have a foothold near their position in the
    stance [m] with the body above a cell.
    """
    arrays = foothold_map.arrays
    is_near_foothold = arrays.can_stand
    if is_near_foothold.any():
        is_near_foothold = distance_transform_edt(~is_near_foothold) * arrays.cell_size <= max_distance
    left, right = np.zeros(arrays.can_stand.shape, np.int64), np.zeros(arrays.can_stand.shape, np.int64)
    c, s = math.cos(foothold_map.heading), math.sin(foothold_map.heading)
    for (x, y, _), side in zip(
        robot_model.arrays.stance_feet.tolist(), robot_model.arrays.leg_side.tolist(), strict=True
    ):
        column, row = round((c * x - s * y) / arrays.cell_size), round((s * x + c * y) / arrays.cell_size)
        shifted = _shift(is_near_foothold, row, column)
        if side > 0:
            left += shifted
        else:
            right += shifted
    return left, right


def find_traversable_cells(robot_model: FreeGaitModel, foothold_map: FootholdMap) -> NDArray[np.bool_]:
    """Return (rows, columns) where the body fits and three legs, not all of one side, may have footholds; an upper
    bound."""
    left, right = count_legs_with_foothold(robot_model, foothold_map, FOOTHOLD_RADIUS * robot_model.scale)
    traversable: NDArray[np.bool_] = (
        (left + right >= 3) & (left > 0) & (right > 0) & ~np.isnan(foothold_map.arrays.body_height)
    )
    return traversable


def compute_distance_to_goal(robot_model: FreeGaitModel, foothold_map: FootholdMap, goal: Array) -> Array:
    """Return (r, c) the length of the best path from each coarse cell to the goal (2,), longer where footholds are
    missing [m].

    Infinite where no path leads to the goal.
    """
    left, right = count_legs_with_foothold(robot_model, foothold_map, _COST_RADIUS * robot_model.scale)
    cost = 1.0 + _MISSING_FOOTHOLD_COST * (robot_model.arrays.stance_feet.shape[0] - left - right)
    traversable = find_traversable_cells(robot_model, foothold_map)
    traversable &= ~maximum_filter(np.isnan(foothold_map.arrays.body_height), size=3)  # heights are interpolated
    cost = np.where(traversable, cost, np.inf)
    rows, columns = (n // GUIDE_STRIDE for n in cost.shape)
    coarse = (
        cost[: rows * GUIDE_STRIDE, : columns * GUIDE_STRIDE]
        .reshape(rows, GUIDE_STRIDE, columns, GUIDE_STRIDE)
        .max(axis=(1, 3))
    )
    out = np.full(coarse.shape, np.inf)
    edge = GUIDE_STRIDE * foothold_map.arrays.cell_size
    row, column = int((goal[1] - foothold_map.arrays.y) / edge), int((goal[0] - foothold_map.arrays.x) / edge)
    if 0 <= row < rows and 0 <= column < columns:
        dijkstra_distances(
            coarse * edge, row, column, out, np.zeros(8 * out.size + 1), np.zeros(8 * out.size + 1, np.int64)
        )
    return out


@kernel(
    no_refcount=True, examples=lambda: [(np.ones((2, 2)), 0, 0, np.ones((2, 2)), np.zeros(33), np.zeros(33, np.int64))]
)
def dijkstra_distances(
    cost: Array, row: int, column: int, out: Array, heap_keys: Array, heap_cells: NDArray[np.int64]
) -> None:
    """Compute the costs of the cheapest paths to a cell over all eight neighbors (Dijkstra 1959); infinite costs are
    walls.

    Args:
        cost: (r, c) cost of crossing one cell.
        row: Row of the target cell.
        column: Column of the target cell.
        out: (r, c) infinite; receives the costs.
        heap_keys: (8 r c + 1,) scratch memory of the heap.
        heap_cells: (8 r c + 1,) scratch memory of the heap.
    """
    columns = cost.shape[1]
    out[row, column], heap_keys[0], heap_cells[0], size = 0.0, 0.0, row * columns + column, 1
    while size > 0:
        current_distance, cell = heap_keys[0], heap_cells[0]
        size -= 1
        last, moved_cell, k = heap_keys[size], heap_cells[size], 0
        while 2 * k + 1 < size:
            child = 2 * k + 1
            if child + 1 < size and heap_keys[child + 1] < heap_keys[child]:
                child += 1
            if heap_keys[child] >= last:
                break
            heap_keys[k], heap_cells[k] = heap_keys[child], heap_cells[child]
            k = child
        heap_keys[k], heap_cells[k] = last, moved_cell
        r, c = cell // columns, cell % columns
        if current_distance > out[r, c]:
            continue
        for dr in range(-1, 2):
            for dc in range(-1, 2):
                a, b = r + dr, c + dc
                if not (0 <= a < cost.shape[0] and 0 <= b < columns) or math.isinf(cost[a, b]):
                    continue
                if math.isinf(cost[r, b]) or math.isinf(cost[a, c]):
                    continue  # no diagonal step around the corner of a wall
                # half of the step lies on each cell
                distance = current_distance + 0.5 * (cost[r, c] + cost[a, b]) * math.sqrt(float(dr * dr + dc * dc))
                if distance < out[a, b]:
                    out[a, b], k = distance, size
                    size += 1
                    while k > 0 and heap_keys[(k - 1) // 2] > distance:
                        heap_keys[k], heap_cells[k] = heap_keys[(k - 1) // 2], heap_cells[(k - 1) // 2]
                        k = (k - 1) // 2
                    heap_keys[k], heap_cells[k] = distance, a * columns + b


def _shift(values: NDArray[np.bool_], row_shift: int, column_shift: int) -> NDArray[np.bool_]:
    """Return for each cell the value of the cell at an offset; False outside."""
    out = np.zeros_like(values)
    r, c = values.shape
    if abs(row_shift) < r and abs(column_shift) < c:
        out[max(-row_shift, 0) : r - max(row_shift, 0), max(-column_shift, 0) : c - max(column_shift, 0)] = values[
            max(row_shift, 0) : r - max(-row_shift, 0), max(column_shift, 0) : c - max(-column_shift, 0)
        ]
    return out


MAX_WAYPOINTS: Final = 6
"""Largest number of corners of a sampled path between start and goal."""
DRAWS_PER_PATH: Final = 1 + 2 * MAX_WAYPOINTS
_MAX_STRAIGHT_RATIO: Final = 1.1
"""Ratio of the guided to the straight distance up to which a path goes straight."""
_GUIDE_CELLS_PER_SEGMENT: Final = 3
"""Number of cells of the distance-to-goal map that one segment of a guided path spans."""
_MAX_DETOUR_ANGLE: Final = math.radians(120.0)
"""Largest angle between a detour and the direction to the goal [rad]."""


@kernel(
    no_refcount=True,
    forceinline=True,
    examples=lambda: [(example_context(), example_search_state()[1], 0, 1, 0.0, 0.0)],
)
def append_segment(context: PlanningContext, paths: BodyPaths, w: int, n: int, x: float, y: float) -> int:
    """Append a straight segment to a path after ``n`` samples; return the new number of samples, -1 where the body
    cannot be."""
    p, params = paths.positions, context.parameters
    ax, ay = p[w, n - 1, 0], p[w, n - 1, 1]
    n_segments = max(math.ceil(math.hypot(x - ax, y - ay) / PATH_SPACING), 1)
    if n + n_segments > MAX_PATH_SAMPLES:
        return -1
    for m in range(1, n_segments + 1):
        px, py = ax + (x - ax) * m / n_segments, ay + (y - ay) * m / n_segments
        z = interpolate_body_height(context.body_height, params.x, params.y, params.cell_size, px, py)
        if math.isnan(z):
            return -1
        p[w, n + m - 1, 0], p[w, n + m - 1, 1], p[w, n + m - 1, 2] = px, py, z
    return n + n_segments


@kernel(no_refcount=True, forceinline=True, examples=lambda: [(np.zeros((2, 2)), 0, 0)])
def next_guide_cell(guide: Array, row: int, column: int) -> tuple[int, int]:
    """Return the neighbor of a cell that is nearest to the goal, not around a wall's corner; the cell itself without
    any."""
    best_row, best_column, min_distance = row, column, guide[row, column]
    for dr in range(-1, 2):
        for dc in range(-1, 2):
            r, c = row + dr, column + dc
            if 0 <= r < guide.shape[0] and 0 <= c < guide.shape[1] and guide[r, c] < min_distance:
                if math.isinf(guide[row, c]) or math.isinf(guide[r, column]):
                    continue
                best_row, best_column, min_distance = r, c, guide[r, c]
    return best_row, best_column


@kernel(no_refcount=True, examples=lambda: [(example_context(), example_search_state()[1], 0, 1)])
def append_path_to_goal(context: PlanningContext, paths: BodyPaths, w: int, n: int) -> int:
    """Append a path to the goal after ``n`` samples: straight, or along the guide where that is much shorter.

    Return the new number of samples, -1 where the body cannot be.
    """
    p, params, goal, guide = paths.positions, context.parameters, context.goal, context.distance_to_goal
    edge = GUIDE_STRIDE * params.cell_size
    while True:
        x, y = p[w, n - 1, 0], p[w, n - 1, 1]
        r, c, guide_distance = int((y - params.y) / edge), int((x - params.x) / edge), math.inf
        if 0 <= r < guide.shape[0] and 0 <= c < guide.shape[1]:
            guide_distance = guide[r, c]
        straight_distance = math.hypot(goal[0] - x, goal[1] - y)
        if math.isinf(guide_distance) or guide_distance <= _MAX_STRAIGHT_RATIO * straight_distance + 2.0 * edge:
            m = append_segment(context, paths, w, n, goal[0], goal[1])
            if m > 0 or math.isinf(guide_distance) or straight_distance < 2.0 * edge:
                return m
        m = -1
        for stride in (_GUIDE_CELLS_PER_SEGMENT, 1):  # a longer segment may cut a corner
            target_row, target_column = r, c
            for _ in range(stride):
                target_row, target_column = next_guide_cell(guide, target_row, target_column)
            if (target_row, target_column) == (r, c):
                return append_segment(context, paths, w, n, goal[0], goal[1])
            m = append_segment(
                context, paths, w, n, params.x + (target_column + 0.5) * edge, params.y + (target_row + 0.5) * edge
            )
            if m > 0:
                break
        if m < 0:
            return -1
        n = m


@kernel(
    no_refcount=True,
    examples=lambda: [(example_context(), example_search_state()[1], 0, np.zeros(DRAWS_PER_PATH), 0)],
)
def sample_path(context: PlanningContext, paths: BodyPaths, w: int, draws: Array, first: int) -> bool:
    """Sample a path to the goal into row ``w``, after its first samples or from the start; return whether it is
    traversable.

    The number of its straight segments is geometric with p = 0.5; each waypoint is the middle of start and goal plus a
    vector whose components are within plus and minus their distance.  Herms 2004.
    """
    params, p, goal, n = context.parameters, paths.positions, context.goal, first
    if first == 0:
        z = interpolate_body_height(
            context.body_height, params.x, params.y, params.cell_size, context.start[0], context.start[1]
        )
        if math.isnan(z):
            return False
        p[w, 0, 0], p[w, 0, 1], p[w, 0, 2], n = context.start[0], context.start[1], z, 1
    x, y = p[w, n - 1, 0], p[w, n - 1, 1]
    goal_distance = math.hypot(goal[0] - x, goal[1] - y)
    n_waypoints = min(math.floor(-math.log2(max(1.0 - draws[0], 1e-12))), MAX_WAYPOINTS)
    for k in range(n_waypoints):
        ex = 0.5 * (x + goal[0]) + (2.0 * draws[1 + 2 * k] - 1.0) * goal_distance
        ey = 0.5 * (y + goal[1]) + (2.0 * draws[2 + 2 * k] - 1.0) * goal_distance
        n = append_segment(context, paths, w, n, ex, ey)
        if n < 0:
            return False
    n = append_path_to_goal(context, paths, w, n)
    if n > 0:
        paths.n_samples[w] = n
    return n > 0


@kernel(no_refcount=True, examples=lambda: [(example_context(), example_search_state()[1], 0, 1, 0.5, 0.5)])
def detour_path(context: PlanningContext, paths: BodyPaths, w: int, first: int, u: float, v: float) -> bool:
    """Replace a path after its first samples by a detour to one side and a path to the goal; return whether it is
    traversable.

    If it is not, samples after the first ones are lost.
    """
    p, goal, max_detour = paths.positions, context.goal, context.parameters.max_detour
    x, y = p[w, first - 1, 0], p[w, first - 1, 1]
    angle = math.atan2(goal[1] - y, goal[0] - x) + triangular_quantile(u, -_MAX_DETOUR_ANGLE, 0.0, _MAX_DETOUR_ANGLE)
    detour_length = PATH_SPACING * max(
        round(max_detour * (0.2 + 0.8 * v) / PATH_SPACING), 1
    )  # a whole number of samples, which keeps their distance
    n = first
    if math.hypot(goal[0] - x, goal[1] - y) > detour_length:
        n = append_segment(
            context, paths, w, n, x + detour_length * math.cos(angle), y + detour_length * math.sin(angle)
        )
        if n < 0:
            return False
    n = append_path_to_goal(context, paths, w, n)
    if n > 0:
        paths.n_samples[w] = n
    return n > 0


@kernel(examples=lambda: [(example_context(), example_search_state()[1], 0, np.uint64(1), 1, 0)])
def sample_feasible_path(
    context: PlanningContext, paths: BodyPaths, w: int, key: np.uint64, max_attempts: int, first: int
) -> bool:
    """Sample paths until the body can traverse one."""
    draws = np.empty(DRAWS_PER_PATH)
    for k in range(max_attempts):
        path_key = derive_key(key, k)
        for m in range(DRAWS_PER_PATH):
            draws[m] = uniform_draw(path_key, m)
        if sample_path(context, paths, w, draws, first):
            return True
    return False
