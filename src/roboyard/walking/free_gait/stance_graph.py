"""Stance graph: which foot stands where, and all positions where the body can be meanwhile, as bit grids.

Nothing is sampled, and no body path is needed first: a node consists of the cells on which the feet stand and of a
connected region of the plane for the body; an edge lifts a foot or sets one down, with the body at a position in the
regions of both nodes.  The body path follows once a plan is complete.  As the modes of Hauser and Latombe 2010,
Multi-modal motion planning in non-expansive spaces; Bretl 2006.
"""

from __future__ import annotations

import math
from typing import Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

from roboyard.compute import kernel
from roboyard.geometry.arrays import I64, Array
from roboyard.walking.free_gait.foothold_map import interpolate_body_height
from roboyard.walking.free_gait.partial_plans import (
    BodyPaths,
    PartialPlans,
    PlanningContext,
    copy_plan,
    empty_body_paths,
    empty_partial_plans,
    example_context,
    mix_bits,
    uniform_draw,
)
from roboyard.walking.free_gait.step_constraints import (
    edge_margin,
    is_foot_order_valid,
    is_in_reach_table,
    is_swing_order_valid,
    support_edges,
)
from roboyard.walking.free_gait.step_events import is_lift_off_reachable, is_swing_reachable
from roboyard.walking.statics import MIN_SUPPORT_FEET

RegionBits = NDArray[np.uint64]

REGION_SIZE: Final = 32
"""Number of cells along the edge of a region."""
_ONE_BIT: Final = np.uint64(1)
_ALL_BITS: Final = np.uint64((1 << REGION_SIZE) - 1)


@kernel(
    no_refcount=True,
    forceinline=True,
    examples=lambda: [(example_context(), empty_partial_plans(1, 1), 0, np.zeros(3), np.zeros(2, np.int64))],
)
def compute_region_origin(context: PlanningContext, plans: PartialPlans, i: int, grid: Array, out: I64) -> None:
    """Compute the first row and column of the region of a plan's feet: its center is where the feet have their stance
    positions.

    Args:
        context: The planning context.
        plans: The partial plans.
        i: Index of the plan.
        grid: (3,) x and y of the cell (0, 0) of the grid, and the edge of its cells [m].
        out: (2,) receives row and column.
    """
    x, y, n_feet, params = 0.0, 0.0, 0, context.parameters
    for leg in range(plans.in_stance.shape[1]):
        if plans.in_stance[i, leg]:
            x += (
                plans.feet[i, leg, 0]
                - params.cos * context.stance_feet[leg, 0]
                + params.sin * context.stance_feet[leg, 1]
            )
            y += (
                plans.feet[i, leg, 1]
                - params.sin * context.stance_feet[leg, 0]
                - params.cos * context.stance_feet[leg, 1]
            )
            n_feet += 1
    out[0] = round((y / max(n_feet, 1) - grid[1]) / grid[2]) - REGION_SIZE // 2
    out[1] = round((x / max(n_feet, 1) - grid[0]) / grid[2]) - REGION_SIZE // 2


@kernel(
    no_refcount=True,
    forceinline=True,
    examples=lambda: [(example_context(), empty_partial_plans(1, 1), 0, 0.0, 0.0, np.zeros((12, 3)), 3)],
)
def is_body_position_valid(
    context: PlanningContext, plans: PartialPlans, i: int, x: float, y: float, edges: Array, n_edges: int
) -> bool:
    """Return whether the body can be at a position [m] with the feet of a plan, inside the edges of their polygon."""
    params = context.parameters
    if edge_margin(edges, n_edges, x, y) < params.min_stability_margin:
        return False
    z = interpolate_body_height(context.body_height, params.x, params.y, params.cell_size, x, y)
    if math.isnan(z):
        return False
    for leg in range(plans.in_stance.shape[1]):
        if plans.in_stance[i, leg]:
            dx, dy = plans.feet[i, leg, 0] - x, plans.feet[i, leg, 1] - y
            if not is_in_reach_table(
                context.stance_reach,
                context.table_origin,
                leg,
                params.cos * dx + params.sin * dy,
                params.cos * dy - params.sin * dx,
                plans.feet[i, leg, 2] - z,
                params.cells_per_meter,
                params.layers_per_meter,
            ):
                return False
    return True


@kernel(
    no_refcount=True,
    examples=lambda: [
        (
            example_context(),
            empty_partial_plans(1, 1),
            0,
            np.ones(3),
            np.zeros(2, np.int64),
            np.zeros(REGION_SIZE, np.uint64),
        )
    ],
)
def fill_region(
    context: PlanningContext, plans: PartialPlans, i: int, grid: Array, first: I64, out: RegionBits
) -> None:
    """Compute where the body can be with the feet of a plan, as bits: k of row r is row ``first[0] + r``, ``first[1] +
    k``."""
    n_edges = support_edges(plans.feet, plans.in_stance, i, -1, plans.edge_buffer)
    for r in range(REGION_SIZE):
        bits, y = np.uint64(0), grid[1] + grid[2] * (first[0] + r)
        if n_edges >= 3:
            for c in range(REGION_SIZE):
                if is_body_position_valid(
                    context, plans, i, grid[0] + grid[2] * (first[1] + c), y, plans.edge_buffer, n_edges
                ):
                    bits |= _ONE_BIT << np.uint64(c)
        out[r] = bits


@kernel(no_refcount=True, forceinline=True, examples=lambda: [(np.zeros(REGION_SIZE, np.uint64), 0, 0)])
def is_in_region(region: RegionBits, row: int, column: int) -> bool:
    """Return whether a cell, relative to the region's origin, belongs to it."""
    return bool(
        0 <= row < REGION_SIZE
        and 0 <= column < REGION_SIZE
        and (region[row] >> np.uint64(column)) & _ONE_BIT != np.uint64(0)
    )


@kernel(
    no_refcount=True,
    forceinline=True,
    examples=lambda: [(np.zeros(REGION_SIZE, np.uint64), np.zeros(2, np.int64), 0.0, 0.0)],
)
def nearest_region_cell(region: RegionBits, first: I64, row: float, column: float) -> tuple[int, int]:
    """Return row and column on the grid of a region's cell nearest to a position on it; -1 for an empty region."""
    best, nearest_row, nearest_column = math.inf, -1, -1
    for r in range(REGION_SIZE):
        bits, c, dr = region[r], 0, first[0] + r - row
        if dr * dr >= best:
            continue
        while bits != np.uint64(0):
            if bits & _ONE_BIT:
                dc = first[1] + c - column
                if dr * dr + dc * dc < best:
                    best, nearest_row, nearest_column = dr * dr + dc * dc, first[0] + r, first[1] + c
            bits >>= _ONE_BIT
            c += 1
    return nearest_row, nearest_column


@kernel(
    no_refcount=True,
    forceinline=True,
    examples=lambda: [
        (
            np.zeros(REGION_SIZE, np.uint64),
            np.zeros(2, np.int64),
            np.zeros(REGION_SIZE, np.uint64),
            np.zeros(2, np.int64),
            np.zeros(REGION_SIZE, np.uint64),
        )
    ],
)
def intersect_regions(region: RegionBits, first: I64, other: RegionBits, other_first: I64, out: RegionBits) -> None:
    """Compute the cells of a region that are also in another region, at the first one's rows and columns."""
    shift = other_first[1] - first[1]
    for r in range(REGION_SIZE):
        row, bits = first[0] + r - other_first[0], np.uint64(0)
        if 0 <= row < REGION_SIZE and abs(shift) < REGION_SIZE:
            bits = other[row] << np.uint64(shift) if shift >= 0 else other[row] >> np.uint64(-shift)
        out[r] = region[r] & bits & _ALL_BITS


@kernel(no_refcount=True, examples=lambda: [(np.zeros(REGION_SIZE, np.uint64), 0, 0, np.zeros(REGION_SIZE, np.uint64))])
def connected_region(region: RegionBits, row: int, column: int, out: RegionBits) -> None:
    """Compute the part of a region that is connected to a cell, edge to edge."""
    for r in range(REGION_SIZE):
        out[r] = 0
    out[row] = _ONE_BIT << np.uint64(column)
    has_changed = True
    while has_changed:
        has_changed = False
        for step in range(2 * REGION_SIZE):
            r = step if step < REGION_SIZE else 2 * REGION_SIZE - 1 - step
            bits = out[r]
            if r > 0:
                bits |= out[r - 1]
            if r + 1 < REGION_SIZE:
                bits |= out[r + 1]
            bits &= region[r]
            previous_bits = np.uint64(0)
            while bits != previous_bits:
                previous_bits = bits
                bits |= ((bits << _ONE_BIT) | (bits >> _ONE_BIT)) & region[r] & _ALL_BITS
            has_changed = has_changed or bits != out[r]
            out[r] = bits


@kernel(
    no_refcount=True,
    examples=lambda: [
        (
            np.zeros(REGION_SIZE, np.uint64),
            0,
            0,
            0,
            0,
            np.zeros(REGION_SIZE * REGION_SIZE, np.int64),
            np.zeros(REGION_SIZE * REGION_SIZE, np.int64),
        )
    ],
)
def shortest_path_in_region(
    region: RegionBits, row: int, column: int, to_row: int, to_column: int, predecessors: I64,
    queue: I64,
) -> int:  # fmt: skip
    """Compute a shortest path between two cells of a region, over edges and around corners; return the number of cells
    that follow.

    ``queue`` receives them as row times REGION_SIZE plus column; -1 without a path.  Both arrays have REGION_SIZE²
    entries.
    """
    start, end = row * REGION_SIZE + column, to_row * REGION_SIZE + to_column
    for k in range(REGION_SIZE * REGION_SIZE):
        predecessors[k] = -1
    predecessors[end], queue[0] = end, end
    head, tail = 0, 1
    while head < tail and predecessors[start] < 0:
        r, c = queue[head] // REGION_SIZE, queue[head] % REGION_SIZE
        for direction in range(8):
            # straight steps first, so that paths are straight where possible
            dr = (1, -1, 0, 0, 1, 1, -1, -1)[direction]
            dc = (0, 0, 1, -1, 1, -1, 1, -1)[direction]
            cell = (r + dr) * REGION_SIZE + c + dc
            if not (is_in_region(region, r + dr, c) and is_in_region(region, r, c + dc)):
                continue
            if is_in_region(region, r + dr, c + dc) and predecessors[cell] < 0:
                predecessors[cell], queue[tail] = queue[head], cell
                tail += 1
        head += 1
    if predecessors[start] < 0:
        return -1
    n_cells, cell_index = 0, start
    while cell_index != end:
        cell_index = predecessors[cell_index]
        queue[n_cells] = cell_index
        n_cells += 1
    return n_cells


REGION_CELL_SIZE: Final = 0.02
"""Edge of the cells of regions, for the Akrobat [m]."""
SQUARE_SIZE: Final = 0.07
"""Edge of the squares of which only one cell serves as a foothold, for the Akrobat [m]."""
_MAX_SWING_LENGTH: Final = 0.3
"""Largest length of a swing, for the Akrobat [m]."""
SCRATCH_PATH: Final = 0
"""Index of the scratch path, see `write_lift_off_samples`."""


class StanceGraph(NamedTuple):
    """Nodes of the graph; their feet are in the partial plans of the same index.

    Attributes:
        region: (n, REGION_SIZE) where the body can be, see `fill_region`.
        region_origin: (n, 2) first row and column of the region.
        body_cell: (n, 2) row and column of the body at the last event.
        lift_off_position: (n, l, 3) body position at the lift-off of a swing foot [m].
        parent: (n,) parent node; -1 for the root.
        leg: (n,) leg of the event that led to the node.
        cost: (n,) events from the root; infinite for a removed node.
        heuristic: (n,) lower bound of the events to the goal, see `min_events_to_goal`.
        node_hash: (n,) hash of stance and region.
        expanded_at: (n,) weight index at which the node was expanded last; NOT_EXPANDED before.
        hash_slots: (s,) nodes by hash; -1 without one.
        heap_keys: (h,) keys of the heap, the smallest first.
        heap_nodes: (h,) nodes of the heap.
        inconsistent_nodes: (n,) nodes that became cheaper after their expansion with the current weight (INCONS of
            ARA*).
        square_id: (b,) identifiers of squares that regions reach, see `insert_in_square`.
        square_distance: (b,) their distances to the goal [m], increased with each expansion.
        newest_in_square: (b,) newest node of each square.
        older_in_square: (n,) previous node of the same square, -1 without one.
        grid: (3,) see `compute_region_origin`.
        counters: (_N_COUNTERS,) counters, see the constants below.
        region_buffer: (REGION_SIZE,) scratch memory for a region.
        shared_buffer: (REGION_SIZE,) scratch memory for another region.
    """

    region: RegionBits
    region_origin: I64
    body_cell: I64
    lift_off_position: Array
    parent: I64
    leg: I64
    cost: Array
    heuristic: Array
    node_hash: RegionBits
    expanded_at: I64
    hash_slots: I64
    heap_keys: Array
    heap_nodes: I64
    inconsistent_nodes: I64
    square_id: I64
    square_distance: Array
    newest_in_square: I64
    older_in_square: I64
    grid: Array
    counters: I64
    region_buffer: RegionBits
    shared_buffer: RegionBits


NOT_EXPANDED: Final = -1
INCONSISTENT: Final = -2
"""Value of ``expanded_at`` of a node that became cheaper after its expansion."""
# indices of `StanceGraph.counters`
N_NODES: Final = 0
HEAP_SIZE: Final = 1
N_INCONSISTENT: Final = 2
WEIGHT_INDEX: Final = 3
N_SQUARES: Final = 4
N_EXPANSIONS: Final = 5
BEST_COST: Final = 6
"""Index of the number of events of the best plan; 0 without one."""
N_GRAPHS: Final = 7
"""Index of the number of previous graphs."""
N_EXHAUSTED: Final = 8
"""Index of the number of graphs that were searched completely without a plan."""
_N_COUNTERS: Final = 9
_MAX_SQUARES: Final = 1024


def empty_stance_graph(n_nodes: int, n_legs: int) -> StanceGraph:
    """Return memory for nodes."""
    return StanceGraph(
        np.zeros((n_nodes, REGION_SIZE), np.uint64),
        np.zeros((n_nodes, 2), np.int64),
        np.zeros((n_nodes, 2), np.int64),
        np.zeros((n_nodes, n_legs, 3)),
        np.zeros(n_nodes, np.int64),
        np.zeros(n_nodes, np.int64),
        np.zeros(n_nodes),
        np.zeros(n_nodes),
        np.zeros(n_nodes, np.uint64),
        np.zeros(n_nodes, np.int64),
        np.full(4 * n_nodes, -1, np.int64),
        np.zeros(16 * n_nodes),
        np.zeros(16 * n_nodes, np.int64),
        np.zeros(n_nodes, np.int64),
        np.zeros(_MAX_SQUARES, np.int64),
        np.zeros(_MAX_SQUARES),
        np.zeros(_MAX_SQUARES, np.int64),
        np.zeros(n_nodes, np.int64),
        np.zeros(3),
        np.zeros(_N_COUNTERS, np.int64),
        np.zeros(REGION_SIZE, np.uint64),
        np.zeros(REGION_SIZE, np.uint64),
    )


class GraphState(NamedTuple):
    """What the kernels that expand nodes take.

    Attributes:
        context: Constant inputs of the search.
        paths: Body paths; the first one is scratch memory, see `write_lift_off_samples`.
        plans: Feet of the nodes, and of trials.
        graph: The graph.
    """

    context: PlanningContext
    paths: BodyPaths
    plans: PartialPlans
    graph: StanceGraph


def example_graph_state() -> GraphState:
    """Return the state with which kernels are compiled; its parts are the first arguments of other kernels."""
    return GraphState(example_context(), empty_body_paths(1), empty_partial_plans(2, 1), empty_stance_graph(2, 1))


@kernel(no_refcount=True, forceinline=True, examples=lambda: [(*example_graph_state()[2:], 0)])
def hash_node(plans: PartialPlans, graph: StanceGraph, i: int) -> np.uint64:
    """Return a hash of a node's stance and region, equal for equal nodes."""
    code = np.uint64(1)
    for leg in range(plans.in_stance.shape[1]):
        part = np.uint64(0)
        if plans.in_stance[i, leg]:
            # in millimeters; feet stand on centers of cells
            a, b = round(1e3 * plans.feet[i, leg, 0]), round(1e3 * plans.feet[i, leg, 1])
            part = np.uint64((a + (1 << 24)) * (1 << 26) + b + (1 << 24))
        code = mix_bits(code * np.uint64(31) + part)
    for r in range(REGION_SIZE):
        if graph.region[i, r] != np.uint64(0):
            code = mix_bits(code * np.uint64(31) + graph.region[i, r])
            return mix_bits(code * np.uint64(31) + np.uint64(graph.region_origin[i, 0] + r + (1 << 24)))
    return code


@kernel(no_refcount=True, forceinline=True, examples=lambda: [(*example_graph_state()[2:], 0, 1)])
def copy_node_feet(plans: PartialPlans, graph: StanceGraph, source: int, target: int) -> None:
    """Copy a node's feet, and the body positions at their lift-off."""
    copy_plan(plans, source, target)
    for k in range(plans.in_stance.shape[1]):
        for j in range(3):
            graph.lift_off_position[target, k, j] = graph.lift_off_position[source, k, j]


@kernel(no_refcount=True, forceinline=True, examples=lambda: [(*example_graph_state()[0::3], 0)])
def nearest_cell_to_goal(context: PlanningContext, graph: StanceGraph, i: int) -> tuple[int, int, float]:
    """Return row, column and distance to the goal [m] of the cell of a node's region nearest to the goal."""
    grid = graph.grid
    to_row, to_column = (context.goal[1] - grid[1]) / grid[2], (context.goal[0] - grid[0]) / grid[2]
    row, column = nearest_region_cell(graph.region[i], graph.region_origin[i], to_row, to_column)
    return row, column, grid[2] * math.hypot(row - to_row, column - to_column)


@kernel(no_refcount=True, forceinline=True, examples=lambda: [(*example_graph_state()[0:3:2], 0, 1.0)])
def min_events_to_goal(context: PlanningContext, plans: PartialPlans, i: int, goal_distance: float) -> float:
    """Return a lower bound of the events from a node to the goal, from the distances of the feet to their stance there.

    Swing feet are carried along with the body as far as it can get, ``goal_distance`` from the goal [m], and must touch
    down.
    """
    params, max_swing_length = context.parameters, _MAX_SWING_LENGTH * context.parameters.robot_scale
    total = 0.0
    for leg in range(plans.in_stance.shape[1]):
        if plans.in_stance[i, leg]:
            x = (
                context.goal[0]
                + params.cos * context.stance_feet[leg, 0]
                - params.sin * context.stance_feet[leg, 1]
                - plans.feet[i, leg, 0]
            )
            y = (
                context.goal[1]
                + params.sin * context.stance_feet[leg, 0]
                + params.cos * context.stance_feet[leg, 1]
                - plans.feet[i, leg, 1]
            )
            total += 2.0 * max(math.sqrt(x * x + y * y) / max_swing_length - 0.5, 0.0)
        else:
            total += 1.0 + 2.0 * max(goal_distance / max_swing_length - 0.5, 0.0)
    return total


@kernel(no_refcount=True, forceinline=True, examples=lambda: [(example_context(), 0, 0, np.uint64(1), False)])
def select_foothold_in_square(
    context: PlanningContext, a: int, b: int, key: np.uint64, is_sampled: bool
) -> tuple[int, int]:
    """Return the cell of a square on which a foot is set: the best foothold, or a sampled one; row -1 without any.

    There is none either where a neighboring cell of another square is a better foothold.
    """
    params, best, row, column = context.parameters, -1.0, -1, -1
    edge = max(round(SQUARE_SIZE * params.robot_scale / params.cell_size), 1)
    for r in range(max(a * edge, 0), min((a + 1) * edge, context.can_stand.shape[0])):
        for c in range(max(b * edge, 0), min((b + 1) * edge, context.can_stand.shape[1])):
            if context.can_stand[r, c]:
                value = (
                    uniform_draw(key, r * context.can_stand.shape[1] + c)
                    if is_sampled
                    else context.foothold_quality[r, c]
                )
                if value > best:
                    best, row, column = value, r, c
    if row >= 0 and not is_sampled:
        for r in range(max(row - 1, 0), min(row + 2, context.can_stand.shape[0])):
            for c in range(max(column - 1, 0), min(column + 2, context.can_stand.shape[1])):
                if context.can_stand[r, c] and context.foothold_quality[r, c] > best:
                    return -1, -1
    return row, column


@kernel(no_refcount=True, forceinline=True, examples=lambda: [(example_graph_state(), 0, 0, 0)])
def write_lift_off_samples(state: GraphState, i: int, row: int, column: int) -> int:
    """Write the body positions at the lift-off of each swing foot of a node and its current position to the scratch
    path, twice each.

    Kernels that check swings and foot order take the body's positions from a path.  Return the sample of the current
    position.
    """
    context, paths, plans, graph = state
    p, params, n_legs = paths.positions, context.parameters, plans.in_stance.shape[1]
    x, y = graph.grid[0] + graph.grid[2] * column, graph.grid[1] + graph.grid[2] * row
    z = interpolate_body_height(context.body_height, params.x, params.y, params.cell_size, x, y)
    for k in range(2):
        p[SCRATCH_PATH, 2 * n_legs + k, 0], p[SCRATCH_PATH, 2 * n_legs + k, 1], p[SCRATCH_PATH, 2 * n_legs + k, 2] = (
            x,
            y,
            z,
        )
    for leg in range(n_legs):
        plans.lift_off_sample[i, leg] = 2 * leg
        for k in range(2):
            for j in range(3):
                p[SCRATCH_PATH, 2 * leg + k, j] = graph.lift_off_position[i, leg, j]
    paths.n_samples[SCRATCH_PATH], plans.path[i] = 2 * n_legs + 2, SCRATCH_PATH
    return 2 * int(n_legs) + 1


@kernel(
    no_refcount=True,
    forceinline=True,
    examples=lambda: [(*example_graph_state()[0::2], example_graph_state()[3], 0, 0, 0)],
)
def fill_node_region(
    context: PlanningContext, plans: PartialPlans, graph: StanceGraph, i: int, row: int, column: int
) -> bool:
    """Compute the region of a node with the body at a cell; return whether the body can be there."""
    compute_region_origin(context, plans, i, graph.grid, graph.region_origin[i])
    fill_region(context, plans, i, graph.grid, graph.region_origin[i], graph.region_buffer)
    local_row, local_column = row - graph.region_origin[i, 0], column - graph.region_origin[i, 1]
    if not is_in_region(graph.region_buffer, local_row, local_column):
        return False
    connected_region(graph.region_buffer, local_row, local_column, graph.region[i])
    graph.body_cell[i, 0], graph.body_cell[i, 1] = row, column
    return True


@kernel(
    no_refcount=True,
    forceinline=True,
    examples=lambda: [(*example_graph_state()[0:3:2], example_graph_state()[3], 0, 1)],
)
def fill_stable_region_without(
    context: PlanningContext, plans: PartialPlans, graph: StanceGraph, i: int, leg: int
) -> None:
    """Write the part of a node's region where the body is stable without a foot to ``region_buffer``."""
    n_edges, grid = support_edges(plans.feet, plans.in_stance, i, leg, plans.edge_buffer), graph.grid
    for r in range(REGION_SIZE):
        bits, y = graph.region[i, r], grid[1] + grid[2] * (graph.region_origin[i, 0] + r)
        for c in range(REGION_SIZE):
            cell = np.uint64(1) << np.uint64(c)
            if bits & cell:
                x = grid[0] + grid[2] * (graph.region_origin[i, 1] + c)
                if edge_margin(plans.edge_buffer, n_edges, x, y) < context.parameters.min_stability_margin:
                    bits &= ~cell
        graph.region_buffer[r] = bits


@kernel(no_refcount=True, forceinline=True, examples=lambda: [(example_graph_state(), 0, 1, 0)])
def expand_lift_off(state: GraphState, source: int, target: int, leg: int) -> bool:
    """Make ``target`` the node after the lift-off of a foot, with the body as near as possible to its previous
    position."""
    context, paths, plans, graph = state
    n_left, n_right, n_legs = 0, 0, plans.in_stance.shape[1]
    for k in range(n_legs):
        if plans.in_stance[source, k] and k != leg:
            n_left += context.leg_side[k] > 0
            n_right += context.leg_side[k] < 0
    if n_left + n_right < MIN_SUPPORT_FEET or n_left == 0 or n_right == 0:
        return False
    fill_stable_region_without(context, plans, graph, source, leg)
    row, column = nearest_region_cell(
        graph.region_buffer,
        graph.region_origin[source],
        float(graph.body_cell[source, 0]),
        float(graph.body_cell[source, 1]),
    )
    if row < 0:
        return False
    copy_node_feet(plans, graph, source, target)
    sample = write_lift_off_samples(state, target, row, column)
    if not (
        is_swing_order_valid(context, paths, plans, target, sample)
        and is_lift_off_reachable(context, paths, plans, target, leg, sample)
    ):
        return False
    for j in range(3):
        graph.lift_off_position[target, leg, j] = paths.positions[SCRATCH_PATH, sample, j]
    plans.in_stance[target, leg] = False
    return fill_node_region(context, plans, graph, target, row, column)


@kernel(no_refcount=True, forceinline=True, examples=lambda: [(*example_graph_state()[0::3], 0, 0, 0.0, 0.0, 0.0)])
def is_reachable_from_region(
    context: PlanningContext, graph: StanceGraph, i: int, leg: int, x: float, y: float, z: float
) -> bool:
    """Return whether a leg reaches a position [m] with the body anywhere in a node's region."""
    params, grid = context.parameters, graph.grid
    for r in range(REGION_SIZE):
        bits, c, dy = graph.region[i, r], 0, y - grid[1] - grid[2] * (graph.region_origin[i, 0] + r)
        while bits != np.uint64(0):
            if bits & np.uint64(1):
                dx = x - grid[0] - grid[2] * (graph.region_origin[i, 1] + c)
                if is_in_reach_table(
                    context.stance_reach,
                    context.table_origin,
                    leg,
                    params.cos * dx + params.sin * dy,
                    params.cos * dy - params.sin * dx,
                    z
                    - interpolate_body_height(
                        context.body_height, params.x, params.y, params.cell_size, x - dx, y - dy
                    ),
                    params.cells_per_meter,
                    params.layers_per_meter,
                ):
                    return True
            bits >>= np.uint64(1)
            c += 1
    return False


@kernel(no_refcount=True, forceinline=True, examples=lambda: [(example_graph_state(), 0, 1, 0, 0, 0)])
def expand_touch_down(state: GraphState, source: int, target: int, leg: int, row: int, column: int) -> bool:
    """Make ``target`` the node after a touch-down on a cell of the map.

    The body is as near as possible to its previous position, or, if the leg does not reach the cell from there, to
    where the foot has its position of the stance.
    """
    context, paths, plans, graph = state
    params, grid, first = context.parameters, graph.grid, graph.region_origin[target]
    x, y, z = (
        params.x + (column + 0.5) * params.cell_size,
        params.y + (row + 0.5) * params.cell_size,
        context.heights[row, column],
    )
    forward_position = params.cos * x + params.sin * y
    for k in range(plans.in_stance.shape[1]):
        if plans.in_stance[source, k] and context.leg_side[k] == context.leg_side[leg]:
            other_position = params.cos * plans.feet[source, k, 0] + params.sin * plans.feet[source, k, 1]
            if (
                other_position - forward_position
                if context.stance_feet[k, 0] > context.stance_feet[leg, 0]
                else forward_position - other_position
            ) < params.min_foot_gap:
                return False
    if not is_reachable_from_region(context, graph, source, leg, x, y, z):
        return False
    copy_node_feet(plans, graph, source, target)
    plans.in_stance[target, leg] = True
    plans.feet[target, leg, 0], plans.feet[target, leg, 1], plans.feet[target, leg, 2] = x, y, z
    compute_region_origin(context, plans, target, grid, first)
    fill_region(context, plans, target, grid, first, graph.region_buffer)
    intersect_regions(
        graph.region_buffer, first, graph.region[source], graph.region_origin[source], graph.shared_buffer
    )
    stance_column = round(
        (x - params.cos * context.stance_feet[leg, 0] + params.sin * context.stance_feet[leg, 1] - grid[0]) / grid[2]
    )
    stance_row = round(
        (y - params.sin * context.stance_feet[leg, 0] - params.cos * context.stance_feet[leg, 1] - grid[1]) / grid[2]
    )
    for attempt in range(2):
        to_row, to_column = (
            (stance_row, stance_column) if attempt else (graph.body_cell[source, 0], graph.body_cell[source, 1])
        )
        r, c = nearest_region_cell(graph.shared_buffer, first, float(to_row), float(to_column))
        if r < 0:
            return False
        sample = write_lift_off_samples(state, target, r, c)
        # the swing is checked with the foot at its position before lift-off
        for j in range(3):
            plans.feet[target, leg, j] = plans.feet[source, leg, j]
        is_reachable = is_foot_order_valid(context, paths, plans, target, leg, x, y, sample) and is_swing_reachable(
            context, paths, plans, target, leg, (x, y, z), sample
        )
        plans.feet[target, leg, 0], plans.feet[target, leg, 1], plans.feet[target, leg, 2] = x, y, z
        if is_reachable:
            connected_region(graph.region_buffer, r - first[0], c - first[1], graph.region[target])
            graph.body_cell[target, 0], graph.body_cell[target, 1] = r, c
            return True
    return False
