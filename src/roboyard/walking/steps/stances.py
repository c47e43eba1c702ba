"""A graph of stances: which foot stands where, and all places where the body can be meanwhile.

Nothing is drawn, and no way is laid before: a node is what feet stand on which cells, and a region of the plane that
hangs together; an edge raises a foot or sets one down, with the body at a place that both nodes' regions have.  The
way of the body is laid once there is a whole plan.  As the modes of Hauser and Latombe 2010, Multi-modal motion
planning in non-expansive spaces; Bretl 2006.
"""

from __future__ import annotations

import math
from typing import Final, NamedTuple

import numpy as np

from roboyard.compute import kernel
from roboyard.geometry.arrays import Array
from roboyard.walking.steps.draws import mixed, uniform
from roboyard.walking.steps.ground_kernels import body_height
from roboyard.walking.steps.herd import (
    Herd,
    PlanningContext,
    Ways,
    Whole,
    copy_plan,
    make_herd,
    make_ways,
    sample_world,
)
from roboyard.walking.steps.order import clear_of_air, in_order
from roboyard.walking.steps.placing import rise_reached, swing_reached
from roboyard.walking.steps.regions import SIDE, Bits, fill_region, flood, is_in, middle_of, nearest, overlap
from roboyard.walking.steps.stretch import in_table, inside_by, polygon_edges
from roboyard.walking.steps.support import FEWEST

GRID: Final = 0.02
"""Edge of the cells of regions, of the Akrobat [m]."""
SQUARE: Final = 0.07
"""Edge of the squares of each of which a foot is set on one cell only, of the Akrobat [m]."""
_FAR: Final = 0.3
"""A foot comes no farther with one swing, of the Akrobat [m]."""
SCRATCH: Final = 0
"""The way that trials are looked at on: where feet rose, then where the body is."""


class StanceGraph(NamedTuple):
    """Nodes; their feet are the plans of a herd.

    Attributes:
        region: (n, SIDE) where the body can be, see `fill_region`.
        first: (n, 2) the first row and column of that.
        place: (n, 2) row and column where the body is at the last event.
        rose: (n, l, 3) where it was when a foot that is in the air rose [m].
        parent: (n,) node; -1 of the root.
        leg: (n,) whose event led here.
        cost: (n,) events from the root; infinite of one that was taken out.
        left: (n,) no more than the events from there to the goal, see `events_left`.
        code: (n,) the same for what is the same.
        turn: (n,) the last turn of the search in which it was gone on with; FRESH before.
        slots: (s,) nodes by code; -1 for none.
        keys: (h,) of the heap, least first.
        heap: (h,) nodes.
        waiting: (n,) nodes that became cheaper in a turn after they were gone on with.
        square: (b,) of squares that regions come to, their numbers, see `sort_in`.
        way_off: (b,) how far they are from the goal [m], and farther the more often they were gone on with.
        newest: (b,) the newest node of each.
        older: (n,) the node of the same square before it, -1 for none.
        grid: (3,) see `middle_of`.
        number: (NUMBERS,) see below.
        found: (SIDE,) room for a region.
        shared: (SIDE,) and for one more.
    """

    region: Bits
    first: Whole
    place: Whole
    rose: Array
    parent: Whole
    leg: Whole
    cost: Array
    left: Array
    code: Bits
    turn: Whole
    slots: Whole
    keys: Array
    heap: Whole
    waiting: Whole
    square: Whole
    way_off: Array
    newest: Whole
    older: Whole
    grid: Array
    number: Whole
    found: Bits
    shared: Bits


FRESH: Final = -1
WAITS: Final = -2
"""Turn of a node that became cheaper after it was gone on with."""
# columns of `Graph.number`
NODES: Final = 0
HEAP: Final = 1
WAITING: Final = 2
TURN: Final = 3
SQUARES: Final = 4
STEPS: Final = 5
CHEAPEST: Final = 6
"""Events of the best plan so far; 0 without one."""
ROUNDS: Final = 7
"""Graphs before this one."""
EXHAUSTED: Final = 8
"""Those of them that were gone through whole, without a plan."""
_NUMBERS: Final = 9
_SQUARES: Final = 1024


def make_graph(nodes: int, legs: int) -> StanceGraph:
    """Room for some nodes."""
    return StanceGraph(
        np.zeros((nodes, SIDE), np.uint64), np.zeros((nodes, 2), np.int64), np.zeros((nodes, 2), np.int64),
        np.zeros((nodes, legs, 3)), np.zeros(nodes, np.int64), np.zeros(nodes, np.int64), np.zeros(nodes),
        np.zeros(nodes), np.zeros(nodes, np.uint64), np.zeros(nodes, np.int64), np.full(4 * nodes, -1, np.int64),
        np.zeros(16 * nodes), np.zeros(16 * nodes, np.int64), np.zeros(nodes, np.int64), np.zeros(_SQUARES, np.int64),
        np.zeros(_SQUARES), np.zeros(_SQUARES, np.int64), np.zeros(nodes, np.int64), np.zeros(3),
        np.zeros(_NUMBERS, np.int64), np.zeros(SIDE, np.uint64), np.zeros(SIDE, np.uint64),
    )  # fmt: skip


def sample_graph() -> tuple[PlanningContext, Ways, Herd, StanceGraph]:
    """What most kernels begin with."""
    return sample_world(), make_ways(1), make_herd(2, 1), make_graph(2, 1)


@kernel(no_refcount=True, forceinline=True, examples=lambda: [(*sample_graph()[2:], 0)])
def code_of(herd: Herd, graph: StanceGraph, i: int) -> np.uint64:
    """A number for the stance and region of a node, the same for nodes that are the same."""
    code = np.uint64(1)
    for leg in range(herd.down.shape[1]):
        part = np.uint64(0)
        if herd.down[i, leg]:
            # in millimetres: feet stand on middles of cells
            a, b = round(1e3 * herd.feet[i, leg, 0]), round(1e3 * herd.feet[i, leg, 1])
            part = np.uint64((a + (1 << 24)) * (1 << 26) + b + (1 << 24))
        code = mixed(code * np.uint64(31) + part)
    for r in range(SIDE):
        if graph.region[i, r] != np.uint64(0):
            code = mixed(code * np.uint64(31) + graph.region[i, r])
            return mixed(code * np.uint64(31) + np.uint64(graph.first[i, 0] + r + (1 << 24)))
    return code


@kernel(no_refcount=True, forceinline=True, examples=lambda: [(*sample_graph()[2:], 0, 1)])
def copy_node(herd: Herd, graph: StanceGraph, source: int, target: int) -> None:
    """Make a node a copy of another: its feet, and where the body was when they rose."""
    copy_plan(herd, source, target)
    for k in range(herd.down.shape[1]):
        for j in range(3):
            graph.rose[target, k, j] = graph.rose[source, k, j]


@kernel(no_refcount=True, forceinline=True, examples=lambda: [(*sample_graph()[0::3], 0)])
def nearest_to_goal(world: PlanningContext, graph: StanceGraph, i: int) -> tuple[int, int, float]:
    """Row, column and distance from the goal [m] of the cell of a node's region that is nearest to it."""
    grid = graph.grid
    to_row, to_column = (world.goal[1] - grid[1]) / grid[2], (world.goal[0] - grid[0]) / grid[2]
    row, column = nearest(graph.region[i], graph.first[i], to_row, to_column)
    return row, column, grid[2] * math.hypot(row - to_row, column - to_column)


@kernel(no_refcount=True, forceinline=True, examples=lambda: [(*sample_graph()[0:3:2], 0, 1.0)])
def events_left(world: PlanningContext, herd: Herd, i: int, away: float) -> float:
    """No more than the events that a node needs to the goal: by how far each foot is from its place there.

    Feet in the air are where they are carried, with the body as far as it can get, ``away`` from the goal [m], and
    have to be set down.
    """
    n0, far = world.number, _FAR * world.number.scale
    total = 0.0
    for leg in range(herd.down.shape[1]):
        if herd.down[i, leg]:
            x = world.goal[0] + n0.cos * world.home[leg, 0] - n0.sin * world.home[leg, 1] - herd.feet[i, leg, 0]
            y = world.goal[1] + n0.sin * world.home[leg, 0] + n0.cos * world.home[leg, 1] - herd.feet[i, leg, 1]
            total += 2.0 * max(math.sqrt(x * x + y * y) / far - 0.5, 0.0)
        else:
            total += 1.0 + 2.0 * max(away / far - 0.5, 0.0)
    return total


@kernel(no_refcount=True, forceinline=True, examples=lambda: [(sample_world(), 0, 0, np.uint64(1), False)])
def foothold_of(world: PlanningContext, a: int, b: int, key: np.uint64, drawn: bool) -> tuple[int, int]:
    """The cell of a square that a foot is set on: where it stands best, or any, drawn; row -1 where there is none.

    Nor is there one where it stands better on a cell beside it that is another square's.
    """
    n0, best, row, column = world.number, -1.0, -1, -1
    edge = max(round(SQUARE * n0.scale / n0.cell), 1)
    for r in range(max(a * edge, 0), min((a + 1) * edge, world.stand.shape[0])):
        for c in range(max(b * edge, 0), min((b + 1) * edge, world.stand.shape[1])):
            if world.stand[r, c]:
                value = uniform(key, r * world.stand.shape[1] + c) if drawn else world.quality[r, c]
                if value > best:
                    best, row, column = value, r, c
    if row >= 0 and not drawn:
        for r in range(max(row - 1, 0), min(row + 2, world.stand.shape[0])):
            for c in range(max(column - 1, 0), min(column + 2, world.stand.shape[1])):
                if world.stand[r, c] and world.quality[r, c] > best:
                    return -1, -1
    return row, column


@kernel(no_refcount=True, forceinline=True, examples=lambda: [(*sample_graph(), 0, 0, 0)])
def lay_scratch(
    world: PlanningContext, ways: Ways, herd: Herd, graph: StanceGraph, i: int, row: int, column: int
) -> int:
    """Lay on the scratch way where the body was when each foot in the air of a node rose, and where it is, twice each.

    Kernels that look at swings and order take the body's places from a way.  Returns the sample where it is.
    """
    p, n0, legs = ways.places, world.number, herd.down.shape[1]
    x, y = graph.grid[0] + graph.grid[2] * column, graph.grid[1] + graph.grid[2] * row
    z = body_height(world.body, n0.x, n0.y, n0.cell, x, y)
    for k in range(2):
        p[SCRATCH, 2 * legs + k, 0], p[SCRATCH, 2 * legs + k, 1], p[SCRATCH, 2 * legs + k, 2] = x, y, z
    for leg in range(legs):
        herd.rose[i, leg] = 2 * leg
        for k in range(2):
            for j in range(3):
                p[SCRATCH, 2 * leg + k, j] = graph.rose[i, leg, j]
    ways.size[SCRATCH], herd.way[i] = 2 * legs + 2, SCRATCH
    return 2 * int(legs) + 1


@kernel(no_refcount=True, forceinline=True, examples=lambda: [(*sample_graph()[0::2], sample_graph()[3], 0, 0, 0)])
def spread(world: PlanningContext, herd: Herd, graph: StanceGraph, i: int, row: int, column: int) -> bool:
    """Fill in the region of a node with the body at a cell; whether it can be there."""
    middle_of(world, herd, i, graph.grid, graph.first[i])
    fill_region(world, herd, i, graph.grid, graph.first[i], graph.found)
    r, c = row - graph.first[i, 0], column - graph.first[i, 1]
    if not is_in(graph.found, r, c):
        return False
    flood(graph.found, r, c, graph.region[i])
    graph.place[i, 0], graph.place[i, 1] = row, column
    return True


@kernel(no_refcount=True, forceinline=True, examples=lambda: [(*sample_graph()[0:3:2], sample_graph()[3], 0, 1)])
def keep_firm(world: PlanningContext, herd: Herd, graph: StanceGraph, i: int, leg: int) -> None:
    """Put the part of a node's region into `Graph.found` where the body stands firmly without a foot."""
    count, grid = polygon_edges(herd.feet, herd.down, i, leg, herd.edges), graph.grid
    for r in range(SIDE):
        bits, y = graph.region[i, r], grid[1] + grid[2] * (graph.first[i, 0] + r)
        for c in range(SIDE):
            cell = np.uint64(1) << np.uint64(c)
            if bits & cell:
                x = grid[0] + grid[2] * (graph.first[i, 1] + c)
                if inside_by(herd.edges, count, x, y) < world.number.margin:
                    bits &= ~cell
        graph.found[r] = bits


@kernel(no_refcount=True, forceinline=True, examples=lambda: [(*sample_graph(), 0, 1, 0)])
def raise_foot(
    world: PlanningContext, ways: Ways, herd: Herd, graph: StanceGraph, source: int, target: int, leg: int
) -> bool:
    """Make ``target`` the node that a foot's rise leads to, with the body as near to where it was as can be."""
    left, right, legs = 0, 0, herd.down.shape[1]
    for k in range(legs):
        if herd.down[source, k] and k != leg:
            left += world.side[k] > 0
            right += world.side[k] < 0
    if left + right < FEWEST or left == 0 or right == 0:
        return False
    keep_firm(world, herd, graph, source, leg)
    row, column = nearest(
        graph.found, graph.first[source], float(graph.place[source, 0]), float(graph.place[source, 1])
    )
    if row < 0:
        return False
    copy_node(herd, graph, source, target)
    at = lay_scratch(world, ways, herd, graph, target, row, column)
    if not (clear_of_air(world, ways, herd, target, at) and rise_reached(world, ways, herd, target, leg, at)):
        return False
    for j in range(3):
        graph.rose[target, leg, j] = ways.places[SCRATCH, at, j]
    herd.down[target, leg] = False
    return spread(world, herd, graph, target, row, column)


@kernel(no_refcount=True, forceinline=True, examples=lambda: [(*sample_graph()[0::3], 0, 0, 0.0, 0.0, 0.0)])
def reaches(world: PlanningContext, graph: StanceGraph, i: int, leg: int, x: float, y: float, z: float) -> bool:
    """Whether a leg reaches a place [m] with the body anywhere in a node's region."""
    n0, grid = world.number, graph.grid
    for r in range(SIDE):
        bits, c, dy = graph.region[i, r], 0, y - grid[1] - grid[2] * (graph.first[i, 0] + r)
        while bits != np.uint64(0):
            if bits & np.uint64(1):
                dx = x - grid[0] - grid[2] * (graph.first[i, 1] + c)
                if in_table(
                    world.table, world.low, leg, n0.cos * dx + n0.sin * dy, n0.cos * dy - n0.sin * dx,
                    z - body_height(world.body, n0.x, n0.y, n0.cell, x - dx, y - dy), n0.cells, n0.layers,
                ):  # fmt: skip
                    return True
            bits >>= np.uint64(1)
            c += 1
    return False


@kernel(no_refcount=True, forceinline=True, examples=lambda: [(*sample_graph(), 0, 1, 0, 0, 0)])
def set_foot(
    world: PlanningContext,
    ways: Ways,
    herd: Herd,
    graph: StanceGraph,
    source: int,
    target: int,
    leg: int,
    row: int,
    column: int,
) -> bool:
    """Make ``target`` the node that setting a foot on a cell of the map leads to.

    The body is as near as can be to where it was, or if the leg does not get there so, as near as can be to where it
    would stand on that foot as in the stance.
    """
    n0, grid, first = world.number, graph.grid, graph.first[target]
    x, y, z = n0.x + (column + 0.5) * n0.cell, n0.y + (row + 0.5) * n0.cell, world.heights[row, column]
    along = n0.cos * x + n0.sin * y
    for k in range(herd.down.shape[1]):
        if herd.down[source, k] and world.side[k] == world.side[leg]:
            other = n0.cos * herd.feet[source, k, 0] + n0.sin * herd.feet[source, k, 1]
            if (other - along if world.home[k, 0] > world.home[leg, 0] else along - other) < n0.gap:
                return False
    if not reaches(world, graph, source, leg, x, y, z):
        return False
    copy_node(herd, graph, source, target)
    herd.down[target, leg] = True
    herd.feet[target, leg, 0], herd.feet[target, leg, 1], herd.feet[target, leg, 2] = x, y, z
    middle_of(world, herd, target, grid, first)
    fill_region(world, herd, target, grid, first, graph.found)
    overlap(graph.found, first, graph.region[source], graph.first[source], graph.shared)
    hx = round((x - n0.cos * world.home[leg, 0] + n0.sin * world.home[leg, 1] - grid[0]) / grid[2])
    hy = round((y - n0.sin * world.home[leg, 0] - n0.cos * world.home[leg, 1] - grid[1]) / grid[2])
    for attempt in range(2):
        to_row, to_column = (hy, hx) if attempt else (graph.place[source, 0], graph.place[source, 1])
        r, c = nearest(graph.shared, first, float(to_row), float(to_column))
        if r < 0:
            return False
        at = lay_scratch(world, ways, herd, graph, target, r, c)
        # the foot is looked at on its way, from where it stood
        for j in range(3):
            herd.feet[target, leg, j] = herd.feet[source, leg, j]
        reached = in_order(world, ways, herd, target, leg, x, y, at) and swing_reached(
            world, ways, herd, target, leg, x, y, z, at
        )
        herd.feet[target, leg, 0], herd.feet[target, leg, 1], herd.feet[target, leg, 2] = x, y, z
        if reached:
            flood(graph.found, r - first[0], c - first[1], graph.region[target])
            graph.place[target, 0], graph.place[target, 1] = r, c
            return True
    return False
