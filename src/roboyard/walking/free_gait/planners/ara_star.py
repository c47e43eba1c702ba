"""ARA*: anytime repairing A* over the stance graph, as a reference for what is feasible at all.

A weight on the heuristic finds the first plan; then the weight is lowered, and the search continues with what is known.
What the exact evaluation rejects of a plan is removed from the graph.  A graph that was searched completely without a
plan has none; the next one uses other cells of each square as footholds.  Likhachev, Gordon and Thrun 2003; edges are
evaluated lazily: Dellin and Srinivasa 2016.  The heap alone would search all stances at a dead end before it turns
back; every other node is therefore taken from the square of the plane that is nearest to the goal and was not expanded
too often:
Xie, Müller, Holte and Imai 2014, Type-based exploration with multiple search queues.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import ClassVar, Final, NamedTuple

import numpy as np

from roboyard.compute import kernel
from roboyard.config import parameter
from roboyard.geometry.arrays import I64
from roboyard.walking.free_gait.body_paths import append_segment
from roboyard.walking.free_gait.foothold_map import interpolate_body_height
from roboyard.walking.free_gait.partial_plans import (
    MAX_EVENTS,
    PATH_SPACING,
    PartialPlans,
    PlanningContext,
    StepEvent,
    copy_plan,
    derive_key,
    example_context,
)
from roboyard.walking.free_gait.planners.planner import KernelStepPlanner, PlannerTraits, SearchKernel
from roboyard.walking.free_gait.search import (
    FAILED_EVENT,
    N_CANDIDATES,
    N_EVENTS,
    SearchCapacity,
    StepPlanSearch,
    example_search,
    replay_committed,
    submit_plan,
)
from roboyard.walking.free_gait.stance_graph import (
    BEST_COST,
    HEAP_SIZE,
    INCONSISTENT,
    N_EXHAUSTED,
    N_EXPANSIONS,
    N_GRAPHS,
    N_INCONSISTENT,
    N_NODES,
    N_SQUARES,
    NOT_EXPANDED,
    REGION_CELL_SIZE,
    REGION_SIZE,
    SQUARE_SIZE,
    WEIGHT_INDEX,
    GraphState,
    StanceGraph,
    copy_node_feet,
    example_graph_state,
    expand_lift_off,
    expand_touch_down,
    fill_node_region,
    hash_node,
    is_body_position_valid,
    is_in_region,
    min_events_to_goal,
    nearest_cell_to_goal,
    select_foothold_in_square,
    shortest_path_in_region,
)
from roboyard.walking.free_gait.step_constraints import support_edges
from roboyard.walking.free_gait.step_events import replay_event, start_plan

_CELLS_PER_SQUARE: Final = 3
"""Number of cells of a region along the edge of a square."""


class AraStarParameters(NamedTuple):
    """Parameters of the kernels, as `AraStarPlanner` declares them."""

    initial_max_nodes: int
    search_margin: float
    revisit_penalty: float


_EXAMPLE: Final = AraStarParameters(1, 0.3, 1.0)


@kernel(no_refcount=True, forceinline=True, examples=lambda: [(example_graph_state()[3], 0.0, 0)])
def heap_push(graph: StanceGraph, value: float, node: int) -> None:
    """Insert a node into the heap; a full heap ignores it."""
    heap_keys, heap_nodes, k = graph.heap_keys, graph.heap_nodes, graph.counters[HEAP_SIZE]
    if k >= heap_keys.shape[0]:
        return
    graph.counters[HEAP_SIZE] += 1
    while k > 0 and heap_keys[(k - 1) // 2] > value:
        heap_keys[k], heap_nodes[k] = heap_keys[(k - 1) // 2], heap_nodes[(k - 1) // 2]
        k = (k - 1) // 2
    heap_keys[k], heap_nodes[k] = value, node


@kernel(no_refcount=True, forceinline=True, examples=lambda: [(example_graph_state()[3],)])
def heap_pop(graph: StanceGraph) -> int:
    """Remove the first node of a heap that is not empty."""
    heap_keys, heap_nodes = graph.heap_keys, graph.heap_nodes
    graph.counters[HEAP_SIZE] -= 1
    size = graph.counters[HEAP_SIZE]
    first, value, node, k = heap_nodes[0], heap_keys[size], heap_nodes[size], 0
    while 2 * k + 1 < size:
        child = 2 * k + 1
        if child + 1 < size and heap_keys[child + 1] < heap_keys[child]:
            child += 1
        if heap_keys[child] >= value:
            break
        heap_keys[k], heap_nodes[k] = heap_keys[child], heap_nodes[child]
        k = child
    heap_keys[k], heap_nodes[k] = value, node
    return int(first)


@kernel(no_refcount=True, forceinline=True, examples=lambda: [(example_graph_state()[3], 0, 0, 0, 1.0)])
def insert_in_square(graph: StanceGraph, node: int, row: int, column: int, goal_distance: float) -> None:
    """Insert a new node into the list of its square, with a cell at a distance from the goal [m]."""
    square_id, k = math.floor(row / _CELLS_PER_SQUARE) * (1 << 20) + math.floor(column / _CELLS_PER_SQUARE), 0
    while k < graph.counters[N_SQUARES] and graph.square_id[k] != square_id:
        k += 1
    if k == graph.square_id.shape[0]:
        return
    if k == graph.counters[N_SQUARES]:
        graph.counters[N_SQUARES] += 1
        graph.square_id[k], graph.square_distance[k], graph.newest_in_square[k] = square_id, goal_distance, -1
    graph.older_in_square[node], graph.newest_in_square[k] = graph.newest_in_square[k], node


@kernel(no_refcount=True, forceinline=True, examples=lambda: [(example_graph_state()[3], 1.0, 1.0)])
def best_of_nearest_square(graph: StanceGraph, weight: float, revisit_penalty: float) -> int:
    """Return the best node of the square that is nearest to the goal and was not expanded too often; -1 without any."""
    best, min_distance = -1, math.inf
    for k in range(graph.counters[N_SQUARES]):
        while graph.newest_in_square[k] >= 0 and graph.expanded_at[graph.newest_in_square[k]] != NOT_EXPANDED:
            graph.newest_in_square[k] = graph.older_in_square[graph.newest_in_square[k]]
        if graph.newest_in_square[k] >= 0 and graph.square_distance[k] < min_distance:
            best, min_distance = k, graph.square_distance[k]
    if best < 0:
        return -1
    graph.square_distance[best] += revisit_penalty * graph.grid[2]
    node, min_distance, node_in_square = -1, math.inf, graph.newest_in_square[best]
    while node_in_square >= 0:
        value = graph.cost[node_in_square] + weight * graph.heuristic[node_in_square]
        if graph.expanded_at[node_in_square] == NOT_EXPANDED and value < min_distance:
            node, min_distance = node_in_square, value
        node_in_square = graph.older_in_square[node_in_square]
    return int(node)


PLAN_PATH: Final = 1
"""Index of the body path of complete plans."""


@kernel(examples=lambda: [(example_search(3, 2, 2))])
def write_committed_path(search: StepPlanSearch) -> int:
    """Write the committed part of a path, or the start alone; return the number of samples, 0 where the body cannot
    be."""
    context, p, n_committed = search.state.context, search.state.paths.positions, search.committed_path_size[0]
    params = context.parameters
    if n_committed > 0:
        p[PLAN_PATH, :n_committed] = search.committed_path[:n_committed]
        return int(n_committed)
    z = interpolate_body_height(
        context.body_height, params.x, params.y, params.cell_size, context.start[0], context.start[1]
    )
    if math.isnan(z):
        return 0
    p[PLAN_PATH, 0, 0], p[PLAN_PATH, 0, 1], p[PLAN_PATH, 0, 2] = context.start[0], context.start[1], z
    return 1


@kernel(
    examples=lambda: [
        (example_search(3, 2, 2), 0, 1, np.zeros(2, np.int64), np.zeros(2, np.int64),
         np.zeros((2, REGION_SIZE * REGION_SIZE), np.int64))
    ]
)  # fmt: skip
def append_region_path(
    search: StepPlanSearch,
    node: int,
    n_samples: int,
    start_cell: I64,
    end_cell: I64,
    path_buffers: I64,
) -> int:
    """Append a path between two cells (2,) of a node's region, straight if that is inside it; return the number of
    samples, or -1."""
    graph, state = search.graph, search.state
    context, paths, plans, _ = state
    grid, region, first = graph.grid, graph.region[node], graph.region_origin[node]
    x, y = grid[0] + grid[2] * start_cell[1], grid[1] + grid[2] * start_cell[0]
    dx, dy = grid[2] * (end_cell[1] - start_cell[1]), grid[2] * (end_cell[0] - start_cell[0])
    n_segments, n_edges = (
        math.ceil(math.hypot(dx, dy) / PATH_SPACING),
        support_edges(plans.feet, plans.in_stance, node, -1, plans.edge_buffer),
    )
    straight = True
    for k in range(1, n_segments):
        straight = straight and is_body_position_valid(
            context, plans, node, x + dx * k / n_segments, y + dy * k / n_segments, plans.edge_buffer, n_edges
        )
    if straight:
        return (
            int(append_segment(context, paths, PLAN_PATH, n_samples, x + dx, y + dy)) if n_segments > 0 else n_samples
        )
    count = shortest_path_in_region(
        region,
        start_cell[0] - first[0],
        start_cell[1] - first[1],
        end_cell[0] - first[0],
        end_cell[1] - first[1],
        path_buffers[0],
        path_buffers[1],
    )
    if count < 0:
        return -1
    for k in range(count):
        r, c = first[0] + path_buffers[1, k] // REGION_SIZE, first[1] + path_buffers[1, k] % REGION_SIZE
        n_samples = append_segment(context, paths, PLAN_PATH, n_samples, grid[0] + grid[2] * c, grid[1] + grid[2] * r)
        if n_samples < 0:
            return -1
    return int(n_samples)


@kernel(examples=lambda: [(example_search(3, 2, 2), 0)])
def submit_node_plan(search: StepPlanSearch, node: int) -> float:
    """Reconstruct the plan that led to a node and submit it; return its estimated cost [s], infinite if that is not
    possible."""
    graph, state = search.graph, search.state
    context, paths, plans, log = state
    plan_index, node_chain, n_nodes = plans.n_events.shape[0] - 1, np.empty(MAX_EVENTS, np.int64), 0
    while graph.parent[node] >= 0:
        if n_nodes >= MAX_EVENTS or math.isinf(graph.cost[node]):
            return math.inf
        node_chain[n_nodes] = node
        node, n_nodes = graph.parent[node], n_nodes + 1
    n_samples, body_samples, path_buffers = (
        write_committed_path(search),
        np.empty(MAX_EVENTS, np.int64),
        np.empty((2, REGION_SIZE * REGION_SIZE), np.int64),
    )
    current_cell, last_node = graph.body_cell[0].copy(), 0
    for k in range(n_nodes - 1, -1, -1):
        n_samples = append_region_path(
            search, last_node, n_samples, current_cell, graph.body_cell[node_chain[k]], path_buffers
        )
        if n_samples < 0:
            return math.inf
        body_samples[k], last_node = n_samples - 1, node_chain[k]
        current_cell[:] = graph.body_cell[last_node]
    row, column, _ = nearest_cell_to_goal(context, graph, last_node)
    goal_cell = np.array([row, column])
    n_samples = append_region_path(search, last_node, n_samples, current_cell, goal_cell, path_buffers)
    if n_samples > 0:
        n_samples = append_segment(context, paths, PLAN_PATH, n_samples, context.goal[0], context.goal[1])
    if n_samples < 0:
        return math.inf
    paths.n_samples[PLAN_PATH], log.n_rows[0] = n_samples, 0
    if not start_plan(state, plan_index, PLAN_PATH) or not replay_committed(search, plan_index):
        return math.inf
    for k in range(n_nodes - 1, -1, -1):
        leg = graph.leg[node_chain[k]]
        kind = StepEvent.TOUCH_DOWN if plans.in_stance[node_chain[k], leg] else StepEvent.LIFT_OFF
        if not plans.body_interval[plan_index, 0] <= body_samples[k] <= plans.body_interval[
            plan_index, 1
        ] or not replay_event(state, plan_index, leg, kind, plans.feet[node_chain[k], leg], body_samples[k]):
            return math.inf
    if plans.body_interval[plan_index, 1] < n_samples - 1:
        return math.inf
    cost = float(submit_plan(search, plan_index, True))
    if math.isinf(cost):
        # the node at which the plan violates a condition is removed, with all its descendants
        k = search.counters[FAILED_EVENT] - search.committed.counts[0]
        if 0 <= k <= n_nodes:
            graph.cost[node_chain[max(n_nodes - 1 - k, 0)]] = math.inf
    return cost


_HEURISTIC_WEIGHTS: Final = (5.0, 2.5, 1.5, 1.0)


@kernel(no_refcount=True, forceinline=True, examples=lambda: [(example_graph_state()[3], np.uint64(1))])
def find_slot(graph: StanceGraph, node_hash: np.uint64) -> int:
    """Return the slot of the hash table where a node's hash is, or would be."""
    slots = np.uint64(graph.hash_slots.shape[0])
    slot = np.int64(node_hash % slots)
    while graph.hash_slots[slot] >= 0 and graph.node_hash[graph.hash_slots[slot]] != node_hash:
        slot = (slot + 1) % graph.hash_slots.shape[0]
    return slot  # type: ignore[return-value]


@kernel(no_refcount=True, forceinline=True, examples=lambda: [(example_graph_state()[3], 0)])
def is_removed(graph: StanceGraph, node: int) -> bool:
    """Return whether a node or one of its ancestors was removed; then it is removed as well."""
    ancestor = node
    while ancestor >= 0:
        if math.isinf(graph.cost[ancestor]):
            graph.cost[node] = math.inf
            return True
        ancestor = graph.parent[ancestor]
    return False


@kernel(no_refcount=True, forceinline=True, examples=lambda: [(example_context(), example_graph_state()[2], 0)])
def is_goal_stance(context: PlanningContext, plans: PartialPlans, i: int) -> bool:
    """Return whether all feet of a plan are in stance and support the body at the goal."""
    for leg in range(plans.in_stance.shape[1]):
        if not plans.in_stance[i, leg]:
            return False
    count = support_edges(plans.feet, plans.in_stance, i, -1, plans.edge_buffer)
    return is_body_position_valid(context, plans, i, context.goal[0], context.goal[1], plans.edge_buffer, count)


@kernel(examples=lambda: [(example_search(3, 2, 2))])
def start_graph(search: StepPlanSearch) -> bool:
    """Start a graph at the start, or at the end of the committed part; return whether the feet support the body
    there."""
    graph, state = search.graph, search.state
    context, paths, plans, log = state
    start_plan_index = plans.n_events.shape[0] - 1
    p, n_committed = paths.positions, search.committed_path_size[0]
    graph.counters[:N_GRAPHS] = 0  # counters of one graph only
    graph.hash_slots[:], log.n_rows[0] = -1, 0
    paths.n_samples[PLAN_PATH] = write_committed_path(search)
    if (
        paths.n_samples[PLAN_PATH] == 0
        or not start_plan(state, start_plan_index, PLAN_PATH)
        or not replay_committed(search, start_plan_index)
    ):
        return False
    start_sample = max(n_committed - 1, 0)
    graph.grid[0], graph.grid[1] = p[PLAN_PATH, start_sample, 0], p[PLAN_PATH, start_sample, 1]
    graph.grid[2] = REGION_CELL_SIZE * context.parameters.robot_scale
    for leg in range(plans.in_stance.shape[1]):
        graph.lift_off_position[0, leg] = p[PLAN_PATH, plans.lift_off_sample[start_plan_index, leg]]
    copy_plan(plans, start_plan_index, 0)
    if not fill_node_region(context, plans, graph, 0, 0, 0):
        return False
    graph.parent[0], graph.leg[0], graph.cost[0], graph.expanded_at[0] = -1, -1, 0.0, NOT_EXPANDED
    graph.node_hash[0] = hash_node(plans, graph, 0)
    graph.hash_slots[find_slot(graph, graph.node_hash[0])] = 0
    graph.counters[N_NODES] = 1
    graph.heuristic[0] = min_events_to_goal(context, plans, 0, nearest_cell_to_goal(context, graph, 0)[2])
    heap_push(graph, _HEURISTIC_WEIGHTS[0] * graph.heuristic[0], 0)
    return True


@kernel(examples=lambda: [(example_search(3, 2, 2), _EXAMPLE, 0, 0)])
def relax_successor(search: StepPlanSearch, parameters: AraStarParameters, node: int, leg: int) -> bool:
    """Process the trial that a leg's event from a node led to: a new node, a cheaper one, or a complete plan.

    Returns:
        Whether there was room for it.
    """
    graph, context, plans = search.graph, search.state.context, search.state.plans
    trial = plans.n_events.shape[0] - 2
    cost = graph.cost[node] + 1.0
    if cost >= MAX_EVENTS - 2 or is_removed(graph, node):
        return True
    graph.parent[trial], graph.leg[trial], graph.cost[trial] = node, leg, cost
    row, column, goal_distance = nearest_cell_to_goal(context, graph, trial)
    if goal_distance <= 0.75 * graph.grid[2] and is_goal_stance(context, plans, trial):
        search.counters[N_CANDIDATES] += 1
        if math.isfinite(submit_node_plan(search, trial)):
            graph.counters[BEST_COST] = min(graph.counters[BEST_COST] or MAX_EVENTS, int(cost))
        return True
    node_hash = hash_node(plans, graph, trial)
    slot = find_slot(graph, node_hash)
    known_node = graph.hash_slots[slot]
    is_new = known_node < 0
    if is_new:
        known_node = graph.counters[N_NODES]
        if known_node >= min(trial, parameters.initial_max_nodes << min(graph.counters[N_GRAPHS], 10)):
            return False
        graph.counters[N_NODES] += 1
        graph.hash_slots[slot], graph.node_hash[known_node], graph.cost[known_node], graph.expanded_at[known_node] = (
            known_node,
            node_hash,
            math.inf,
            NOT_EXPANDED,
        )
    elif cost >= graph.cost[known_node] and not is_removed(graph, known_node):
        return True
    copy_node_feet(plans, graph, trial, known_node)
    graph.region[known_node], graph.region_origin[known_node], graph.body_cell[known_node] = (
        graph.region[trial],
        graph.region_origin[trial],
        graph.body_cell[trial],
    )
    graph.parent[known_node], graph.leg[known_node], graph.cost[known_node] = node, leg, cost
    graph.heuristic[known_node] = min_events_to_goal(context, plans, known_node, goal_distance)
    if is_new:
        insert_in_square(graph, known_node, row, column, goal_distance)
    if (
        graph.expanded_at[known_node] == graph.counters[WEIGHT_INDEX]
        and graph.counters[N_INCONSISTENT] < graph.inconsistent_nodes.shape[0]
    ):
        graph.expanded_at[known_node] = INCONSISTENT
        graph.inconsistent_nodes[graph.counters[N_INCONSISTENT]] = known_node
        graph.counters[N_INCONSISTENT] += 1
    else:
        heap_push(
            graph, cost + _HEURISTIC_WEIGHTS[graph.counters[WEIGHT_INDEX]] * graph.heuristic[known_node], known_node
        )
    return True


@kernel(examples=lambda: [(example_search(3, 2, 2), _EXAMPLE, 0, np.uint64(1))])
def expand_node(search: StepPlanSearch, parameters: AraStarParameters, node: int, key: np.uint64) -> bool:
    """Try all events from a node; return whether there was room for the successors."""
    context, paths, plans, _ = search.state
    graph, trial, params = search.graph, plans.n_events.shape[0] - 2, context.parameters
    state = GraphState(context, paths, plans, graph)
    scale, grid, is_sampled = params.robot_scale, graph.grid, graph.counters[N_GRAPHS] > 0
    edge = max(round(SQUARE_SIZE * scale / params.cell_size), 1) * params.cell_size
    min_row, max_row, min_column, max_column = REGION_SIZE, -1, REGION_SIZE, -1
    for r in range(REGION_SIZE):
        for c in range(REGION_SIZE):
            if is_in_region(graph.region[node], r, c):
                min_row, max_row, min_column, max_column = (
                    min(min_row, r),
                    max(max_row, r),
                    min(min_column, c),
                    max(max_column, c),
                )
    for leg in range(plans.in_stance.shape[1]):
        if plans.in_stance[node, leg]:
            search.counters[N_EVENTS] += 1
            if expand_lift_off(state, node, trial, leg) and not relax_successor(search, parameters, node, leg):
                return False
            continue
        x = grid[0] + params.cos * context.stance_feet[leg, 0] - params.sin * context.stance_feet[leg, 1] - params.x
        y = grid[1] + params.sin * context.stance_feet[leg, 0] + params.cos * context.stance_feet[leg, 1] - params.y
        search_margin, first = parameters.search_margin * scale, graph.region_origin[node]
        for a in range(
            math.floor((y + grid[2] * (first[0] + min_row) - search_margin) / edge),
            math.floor((y + grid[2] * (first[0] + max_row) + search_margin) / edge) + 1,
        ):
            for b in range(
                math.floor((x + grid[2] * (first[1] + min_column) - search_margin) / edge),
                math.floor((x + grid[2] * (first[1] + max_column) + search_margin) / edge) + 1,
            ):
                row, column = select_foothold_in_square(context, a, b, key, is_sampled)
                if row < 0:
                    continue
                search.counters[N_EVENTS] += 1
                if expand_touch_down(state, node, trial, leg, row, column) and not relax_successor(
                    search, parameters, node, leg
                ):
                    return False
    return True


@kernel(examples=lambda: [(example_graph_state()[3],)])
def lower_weight(graph: StanceGraph) -> None:
    """Continue with the next weight: inconsistent nodes join those of the heap, which is rebuilt."""
    graph.counters[WEIGHT_INDEX] += 1
    weight, heap_size = _HEURISTIC_WEIGHTS[graph.counters[WEIGHT_INDEX]], graph.counters[HEAP_SIZE]
    nodes = graph.heap_nodes[:heap_size].copy()
    graph.counters[HEAP_SIZE] = 0
    for node in nodes:
        if not math.isinf(graph.cost[node]):
            heap_push(graph, graph.cost[node] + weight * graph.heuristic[node], node)
    for k in range(graph.counters[N_INCONSISTENT]):
        node = graph.inconsistent_nodes[k]
        if not math.isinf(graph.cost[node]):
            heap_push(graph, graph.cost[node] + weight * graph.heuristic[node], node)
    graph.counters[N_INCONSISTENT] = 0


@kernel(examples=lambda: [(example_search(3, 2, 2), _EXAMPLE, np.uint64(1), 1)])
def search_ara_star(search: StepPlanSearch, parameters: AraStarParameters, key: np.uint64, max_events: int) -> None:
    """Search graphs, one after the other, until a number of events has been tried."""
    graph, goal = search.graph, search.counters[N_EVENTS] + max_events
    while search.counters[N_EVENTS] < goal:
        graph_key = derive_key(key, graph.counters[N_GRAPHS])
        if graph.counters[N_NODES] == 0:
            search.counters[N_CANDIDATES] += 1
            search.counters[N_EVENTS] += 1
            if not start_graph(search):
                continue
        has_room, best_cost = True, graph.counters[BEST_COST]
        if graph.counters[HEAP_SIZE] > 0 and (best_cost == 0 or graph.heap_keys[0] < best_cost):
            node = -1
            graph.counters[N_EXPANSIONS] += 1
            if best_cost == 0 and graph.counters[N_EXPANSIONS] % 2 == 0:
                node = best_of_nearest_square(graph, _HEURISTIC_WEIGHTS[0], parameters.revisit_penalty)
            if node < 0:
                node = heap_pop(graph)
            if graph.expanded_at[node] != graph.counters[WEIGHT_INDEX] and not is_removed(graph, node):
                graph.expanded_at[node] = graph.counters[WEIGHT_INDEX]
                has_room = expand_node(search, parameters, node, graph_key)
        elif best_cost > 0 and graph.counters[WEIGHT_INDEX] + 1 < len(_HEURISTIC_WEIGHTS):
            lower_weight(graph)
        else:
            graph.counters[N_EXHAUSTED] += best_cost == 0
            has_room = False
        if not has_room:
            graph.counters[N_GRAPHS] += 1
            graph.counters[N_NODES] = 0


@dataclass(frozen=True)
class AraStarPlanner(KernelStepPlanner):
    """Anytime repairing A* over the stance graph, as a reference for what is feasible at all.

    A node of the graph is a set of footholds and the connected region where the body can be meanwhile; no body path is
    sampled.  Take it to find out whether the ground between start and goal can be crossed, not for good plans.
    """

    traits: ClassVar[PlannerTraits] = PlannerTraits(
        idea="A* over footholds and body regions; the weight of the heuristic falls from 5 to 1",
        references=(
            "Likhachev, Gordon, Thrun: ARA*: Anytime A* with provable bounds on sub-optimality, NIPS 2003",
            "Hauser, Latombe: Multi-modal motion planning in non-expansive spaces, IJRR 2010",
            "Dellin, Srinivasa: A unifying formalism for shortest path problems with expensive edge evaluations via "
            "lazy best-first search, ICAPS 2016",
            "Xie, Müller, Holte, Imai: Type-based exploration with multiple search queues, AAAI 2014",
        ),
        completeness="resolution",
        optimality="number of events, within the weight, on the graph",
    )
    search_kernel: ClassVar[SearchKernel] = staticmethod(search_ara_star)
    parameters_type: ClassVar[type[NamedTuple]] = AraStarParameters

    max_nodes: int = parameter(12_000, low=100, high=1_000_000, doc="Largest number of nodes of a graph.")
    initial_max_nodes: int = parameter(
        1_500, low=100, high=1_000_000, doc="Number of nodes of the first graph; each further graph has twice as many."
    )
    search_margin: float = parameter(
        0.3, unit="m", low=0.0, high=2.0, doc="Distance from a leg's stance position within which footholds are tried."
    )
    revisit_penalty: float = parameter(
        1.0, low=0.0, high=100.0, doc="Cells by which a square counts as farther from the goal after each expansion."
    )

    @property
    def capacity(self) -> SearchCapacity:
        """Memory of a search: two more plans than nodes serve trials."""
        return SearchCapacity(self.max_nodes + 2, MAX_EVENTS + 2, n_paths=2, n_nodes=self.max_nodes + 2)
