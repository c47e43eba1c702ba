"""From a graph of stances to a whole plan: the way of the body through the regions, and the events along it."""

from __future__ import annotations

import math
from typing import Final

import numpy as np

from roboyard.compute import kernel
from roboyard.walking.steps.events import begin, repeat
from roboyard.walking.steps.ground_kernels import body_height
from roboyard.walking.steps.herd import EVENTS, LIFTED, SET, STEP, PlanningContext, Whole, sample_world
from roboyard.walking.steps.regions import SIDE, holds, path_in
from roboyard.walking.steps.rig_kernels import Limbs, sample_limbs
from roboyard.walking.steps.search import BLAMED, Search, make_search, repeat_past, take
from roboyard.walking.steps.stances import nearest_to_goal
from roboyard.walking.steps.stretch import polygon_edges
from roboyard.walking.steps.ways import lay_piece

OWN: Final = 1
"""The way of a whole plan."""


@kernel(examples=lambda: [(sample_world(), make_search(3, 1, 2, 2, 2))])
def lay_past(world: PlanningContext, search: Search) -> int:
    """Lay the settled part of a way, or the start alone; how many samples, 0 where no body can be there."""
    p, n0, first = search.ways.places, world.number, search.past_size[0]
    if first > 0:
        p[OWN, :first] = search.past_way[:first]
        return int(first)
    z = body_height(world.body, n0.x, n0.y, n0.cell, world.start[0], world.start[1])
    if math.isnan(z):
        return 0
    p[OWN, 0, 0], p[OWN, 0, 1], p[OWN, 0, 2] = world.start[0], world.start[1], z
    return 1


@kernel(
    examples=lambda: [
        (sample_world(), make_search(3, 1, 2, 2, 2), 0, 1, np.zeros(2, np.int64), np.zeros(2, np.int64),
         np.zeros((2, SIDE * SIDE), np.int64))
    ]
)  # fmt: skip
def lay_on(world: PlanningContext, search: Search, node: int, n: int, a: Whole, b: Whole, room: Whole) -> int:
    """Lay a way from one cell to another (2,) of a node's region: straight if that is in it; samples then, or -1."""
    graph, ways, herd = search.graph, search.ways, search.herd
    grid, region, first = graph.grid, graph.region[node], graph.first[node]
    x, y = grid[0] + grid[2] * a[1], grid[1] + grid[2] * a[0]
    dx, dy = grid[2] * (b[1] - a[1]), grid[2] * (b[0] - a[0])
    parts, edges = math.ceil(math.hypot(dx, dy) / STEP), polygon_edges(herd.feet, herd.down, node, -1, herd.edges)
    straight = True
    for k in range(1, parts):
        straight = straight and holds(world, herd, node, x + dx * k / parts, y + dy * k / parts, herd.edges, edges)
    if straight:
        return int(lay_piece(world, ways, OWN, n, x + dx, y + dy)) if parts > 0 else n
    count = path_in(
        region, a[0] - first[0], a[1] - first[1], b[0] - first[0], b[1] - first[1], room[0], room[1]
    )  # fmt: skip
    if count < 0:
        return -1
    for k in range(count):
        r, c = first[0] + room[1, k] // SIDE, first[1] + room[1, k] % SIDE
        n = lay_piece(world, ways, OWN, n, grid[0] + grid[2] * c, grid[1] + grid[2] * r)
        if n < 0:
            return -1
    return int(n)


@kernel(examples=lambda: [(sample_world(), sample_limbs(), make_search(3, 1, 2, 2, 2), 0)])
def arrive(world: PlanningContext, limbs: Limbs, search: Search, node: int) -> float:
    """Lay the way of the plan that led to a node, and take it: its estimated cost [s], infinite if that cannot be."""
    herd, ways, log, graph = search.herd, search.ways, search.log, search.graph
    one, chain, count = herd.events.shape[0] - 1, np.empty(EVENTS, np.int64), 0
    while graph.parent[node] >= 0:
        if count >= EVENTS or math.isinf(graph.cost[node]):
            return math.inf
        chain[count] = node
        node, count = graph.parent[node], count + 1
    n, at, room = lay_past(world, search), np.empty(EVENTS, np.int64), np.empty((2, SIDE * SIDE), np.int64)
    here, last = graph.place[0].copy(), 0
    for k in range(count - 1, -1, -1):
        n = lay_on(world, search, last, n, here, graph.place[chain[k]], room)
        if n < 0:
            return math.inf
        at[k], last = n - 1, chain[k]
        here[:] = graph.place[last]
    row, column, _ = nearest_to_goal(world, graph, last)
    there = np.array([row, column])
    n = lay_on(world, search, last, n, here, there, room)
    if n > 0:
        n = lay_piece(world, ways, OWN, n, world.goal[0], world.goal[1])
    if n < 0:
        return math.inf
    ways.size[OWN], log.used[0] = n, 0
    if not begin(world, ways, herd, log, one, OWN) or not repeat_past(world, search, one):
        return math.inf
    for k in range(count - 1, -1, -1):
        leg = graph.leg[chain[k]]
        kind = SET if herd.down[chain[k], leg] else LIFTED
        if not herd.span[one, 0] <= at[k] <= herd.span[one, 1] or not repeat(
            world, ways, herd, log, one, leg, kind, herd.feet[chain[k], leg], at[k]
        ):
            return math.inf
    if herd.span[one, 1] < n - 1:
        return math.inf
    cost = float(take(world, limbs, search, one, True))
    if math.isinf(cost):
        # what the exact look refused is taken out of the graph, with all that it led to
        k = search.tally[BLAMED] - search.past.events[0]
        if 0 <= k <= count:
            graph.cost[chain[max(count - 1 - k, 0)]] = math.inf
    return cost
