"""ARA*: anytime repairing A* over a graph of stances, as a reference for what is feasible at all.

The first plan is found by a weight on what is left; then the weight is lowered, and what is known already is gone on
with.  What the exact look refuses of a plan is taken out of the graph, which goes on without it.  A graph that was
gone through whole without a plan has none; the next one has other cells of each square for feet.  Likhachev, Gordon
and Thrun 2003; edges that are looked at only once they matter: Dellin and Srinivasa 2016.
"""

from __future__ import annotations

import math
from typing import Final

import numpy as np

from roboyard.compute import kernel
from roboyard.walking.steps.draws import key_of
from roboyard.walking.steps.events import begin
from roboyard.walking.steps.herd import EVENTS, Herd, PlanningContext, copy_plan, sample_world
from roboyard.walking.steps.queues import elsewhere, pop, push, sort_in
from roboyard.walking.steps.regions import SIDE, holds, is_in
from roboyard.walking.steps.rig_kernels import Limbs, sample_limbs
from roboyard.walking.steps.search import CANDIDATES, EVENTS_TRIED, Search, make_search, repeat_past
from roboyard.walking.steps.stances import (
    CHEAPEST,
    EXHAUSTED,
    FRESH,
    GRID,
    HEAP,
    NODES,
    ROUNDS,
    SQUARE,
    STEPS,
    TURN,
    WAITING,
    WAITS,
    StanceGraph,
    code_of,
    copy_node,
    events_left,
    foothold_of,
    nearest_to_goal,
    raise_foot,
    sample_graph,
    set_foot,
    spread,
)
from roboyard.walking.steps.stretch import polygon_edges
from roboyard.walking.steps.unfolding import OWN, arrive, lay_past

STANCES: Final = 12_000
"""Nodes of a graph, at most; two more plans are for trials."""
_FIRST: Final = 1_500
"""Nodes of the first graph; each has twice as many as the one before."""
ROWS: Final = EVENTS + 2
WAYS: Final = 2
_AROUND: Final = 0.3
"""Squares are looked for so far about a foot's place, beside the region, of the Akrobat [m]."""
_WEIGHTS: Final = (5.0, 2.5, 1.5, 1.0)


@kernel(no_refcount=True, forceinline=True, examples=lambda: [(sample_graph()[3], np.uint64(1))])
def slot_of(graph: StanceGraph, own: np.uint64) -> int:
    """Where in the table of nodes the one with a code is, or would be."""
    slots = np.uint64(graph.slots.shape[0])
    slot = np.int64(own % slots)
    while graph.slots[slot] >= 0 and graph.code[graph.slots[slot]] != own:
        slot = (slot + 1) % graph.slots.shape[0]
    return slot  # type: ignore[return-value]


@kernel(no_refcount=True, forceinline=True, examples=lambda: [(sample_graph()[3], 0)])
def is_lost(graph: StanceGraph, node: int) -> bool:
    """Whether a node was taken out, or one that led to it; if so it is taken out as well."""
    at = node
    while at >= 0:
        if math.isinf(graph.cost[at]):
            graph.cost[node] = math.inf
            return True
        at = graph.parent[at]
    return False


@kernel(no_refcount=True, forceinline=True, examples=lambda: [(sample_world(), sample_graph()[2], 0)])
def stands_at_goal(world: PlanningContext, herd: Herd, i: int) -> bool:
    """Whether all feet of a plan are down, and hold the body at the goal."""
    for leg in range(herd.down.shape[1]):
        if not herd.down[i, leg]:
            return False
    count = polygon_edges(herd.feet, herd.down, i, -1, herd.edges)
    return holds(world, herd, i, world.goal[0], world.goal[1], herd.edges, count)


@kernel(examples=lambda: [(sample_world(), make_search(3, 1, 2, 2, 2))])
def plant(world: PlanningContext, search: Search) -> bool:
    """Begin a graph at the start, or where what is settled of a plan ends; whether feet hold the body there."""
    herd, ways, graph, one = search.herd, search.ways, search.graph, search.herd.events.shape[0] - 1
    p, first = ways.places, search.past_size[0]
    graph.number[:ROUNDS] = 0  # all that is not told over graphs
    graph.slots[:], search.log.used[0] = -1, 0
    ways.size[OWN] = lay_past(world, search)
    if ways.size[OWN] == 0 or not begin(world, ways, herd, search.log, one, OWN) or not repeat_past(world, search, one):
        return False
    last = max(first - 1, 0)
    graph.grid[0], graph.grid[1] = p[OWN, last, 0], p[OWN, last, 1]
    graph.grid[2] = GRID * world.number.scale
    for leg in range(herd.down.shape[1]):
        graph.rose[0, leg] = p[OWN, herd.rose[one, leg]]
    copy_plan(herd, one, 0)
    if not spread(world, herd, graph, 0, 0, 0):
        return False
    graph.parent[0], graph.leg[0], graph.cost[0], graph.turn[0] = -1, -1, 0.0, FRESH
    graph.code[0] = code_of(herd, graph, 0)
    graph.slots[slot_of(graph, graph.code[0])] = 0
    graph.number[NODES] = 1
    graph.left[0] = events_left(world, herd, 0, nearest_to_goal(world, graph, 0)[2])
    push(graph, _WEIGHTS[0] * graph.left[0], 0)
    return True


@kernel(examples=lambda: [(sample_world(), sample_limbs(), make_search(3, 1, 2, 2, 2), 0, 0)])
def meet(world: PlanningContext, limbs: Limbs, search: Search, node: int, leg: int) -> bool:
    """Look at the trial that a leg's event led to from a node: new, cheaper than known, or a whole plan.

    Returns:
        Whether there was room for it.
    """
    herd, graph, one = search.herd, search.graph, search.herd.events.shape[0] - 2
    cost = graph.cost[node] + 1.0
    if cost >= EVENTS - 2 or is_lost(graph, node):
        return True
    graph.parent[one], graph.leg[one], graph.cost[one] = node, leg, cost
    row, column, away = nearest_to_goal(world, graph, one)
    if away <= 0.75 * graph.grid[2] and stands_at_goal(world, herd, one):
        search.tally[CANDIDATES] += 1
        if math.isfinite(arrive(world, limbs, search, one)):
            graph.number[CHEAPEST] = min(graph.number[CHEAPEST] or EVENTS, int(cost))
        return True
    own = code_of(herd, graph, one)
    slot = slot_of(graph, own)
    at = graph.slots[slot]
    new = at < 0
    if new:
        at = graph.number[NODES]
        if at >= min(one, _FIRST << min(graph.number[ROUNDS], 10)):
            return False
        graph.number[NODES] += 1
        graph.slots[slot], graph.code[at], graph.cost[at], graph.turn[at] = at, own, math.inf, FRESH
    elif cost >= graph.cost[at] and not is_lost(graph, at):
        return True
    copy_node(herd, graph, one, at)
    graph.region[at], graph.first[at], graph.place[at] = graph.region[one], graph.first[one], graph.place[one]
    graph.parent[at], graph.leg[at], graph.cost[at] = node, leg, cost
    graph.left[at] = events_left(world, herd, at, away)
    if new:
        sort_in(graph, at, row, column, away)
    if graph.turn[at] == graph.number[TURN] and graph.number[WAITING] < graph.waiting.shape[0]:
        graph.turn[at] = WAITS
        graph.waiting[graph.number[WAITING]] = at
        graph.number[WAITING] += 1
    else:
        push(graph, cost + _WEIGHTS[graph.number[TURN]] * graph.left[at], at)
    return True


@kernel(examples=lambda: [(sample_world(), sample_limbs(), make_search(3, 1, 2, 2, 2), 0, np.uint64(1))])
def go_on(world: PlanningContext, limbs: Limbs, search: Search, node: int, key: np.uint64) -> bool:
    """Try all events from a node; whether there was room for what they led to."""
    herd, ways, graph, one, n0 = search.herd, search.ways, search.graph, search.herd.events.shape[0] - 2, world.number
    scale, grid, drawn = n0.scale, graph.grid, graph.number[ROUNDS] > 0
    edge = max(round(SQUARE * scale / n0.cell), 1) * n0.cell
    low_r, high_r, low_c, high_c = SIDE, -1, SIDE, -1
    for r in range(SIDE):
        for c in range(SIDE):
            if is_in(graph.region[node], r, c):
                low_r, high_r, low_c, high_c = min(low_r, r), max(high_r, r), min(low_c, c), max(high_c, c)
    for leg in range(herd.down.shape[1]):
        if herd.down[node, leg]:
            search.tally[EVENTS_TRIED] += 1
            if raise_foot(world, ways, herd, graph, node, one, leg) and not meet(world, limbs, search, node, leg):
                return False
            continue
        x = grid[0] + n0.cos * world.home[leg, 0] - n0.sin * world.home[leg, 1] - n0.x
        y = grid[1] + n0.sin * world.home[leg, 0] + n0.cos * world.home[leg, 1] - n0.y
        far, first = _AROUND * scale, graph.first[node]
        for a in range(
            math.floor((y + grid[2] * (first[0] + low_r) - far) / edge),
            math.floor((y + grid[2] * (first[0] + high_r) + far) / edge) + 1,
        ):
            for b in range(
                math.floor((x + grid[2] * (first[1] + low_c) - far) / edge),
                math.floor((x + grid[2] * (first[1] + high_c) + far) / edge) + 1,
            ):
                row, column = foothold_of(world, a, b, key, drawn)
                if row < 0:
                    continue
                search.tally[EVENTS_TRIED] += 1
                if set_foot(world, ways, herd, graph, node, one, leg, row, column) and not meet(
                    world, limbs, search, node, leg
                ):
                    return False
    return True


@kernel(examples=lambda: [(sample_graph()[3],)])
def lower(graph: StanceGraph) -> None:
    """Go on with the next weight: all nodes that wait are put among those of the heap, which is laid anew."""
    graph.number[TURN] += 1
    weight, known = _WEIGHTS[graph.number[TURN]], graph.number[HEAP]
    nodes = graph.heap[:known].copy()
    graph.number[HEAP] = 0
    for node in nodes:
        if not math.isinf(graph.cost[node]):
            push(graph, graph.cost[node] + weight * graph.left[node], node)
    for k in range(graph.number[WAITING]):
        node = graph.waiting[k]
        if not math.isinf(graph.cost[node]):
            push(graph, graph.cost[node] + weight * graph.left[node], node)
    graph.number[WAITING] = 0


@kernel(examples=lambda: [(sample_world(), sample_limbs(), make_search(3, 1, 2, 2, 2), np.uint64(1), 1)])
def repair(world: PlanningContext, limbs: Limbs, search: Search, seed: np.uint64, events: int) -> None:
    """Go on with graphs, one after the other, until so many more events were tried."""
    graph, goal = search.graph, search.tally[EVENTS_TRIED] + events
    while search.tally[EVENTS_TRIED] < goal:
        key = key_of(seed, graph.number[ROUNDS])
        if graph.number[NODES] == 0:
            search.tally[CANDIDATES] += 1
            search.tally[EVENTS_TRIED] += 1
            if not plant(world, search):
                continue
        room, cheapest = True, graph.number[CHEAPEST]
        if graph.number[HEAP] > 0 and (cheapest == 0 or graph.keys[0] < cheapest):
            node = -1
            graph.number[STEPS] += 1
            if cheapest == 0 and graph.number[STEPS] % 2 == 0:
                node = elsewhere(graph, _WEIGHTS[0])
            if node < 0:
                node = pop(graph)
            if graph.turn[node] != graph.number[TURN] and not is_lost(graph, node):
                graph.turn[node] = graph.number[TURN]
                room = go_on(world, limbs, search, node, key)
        elif cheapest > 0 and graph.number[TURN] + 1 < len(_WEIGHTS):
            lower(graph)
        else:
            graph.number[EXHAUSTED] += cheapest == 0
            room = False
        if not room:
            graph.number[ROUNDS] += 1
            graph.number[NODES] = 0
