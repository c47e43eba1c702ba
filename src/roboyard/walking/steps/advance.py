"""The kernels that every planner shares: begin a plan, and add one event to it.

After each event a plan keeps the stretch of its way where the body can be: within reach of all feet that are down, and
far enough inside their polygon.  Two stretches that follow each other overlap, so that the body can be in both when the
event happens; where exactly is left open until a plan is whole.
"""

from __future__ import annotations

import math
from typing import Final

import numpy as np
from numpy.typing import NDArray

from roboyard.compute import kernel
from roboyard.walking.steps.draws import triangular
from roboyard.walking.steps.ground_kernels import top_between
from roboyard.walking.steps.herd import (
    EVENTS,
    LIFTED,
    SET,
    Array,
    Herd,
    Log,
    Ways,
    World,
    make_herd,
    note,
    sample_parts,
)  # fmt: skip
from roboyard.walking.steps.rig_kernels import LAYERS

DEAD: Final = 0
ALIVE: Final = 1
ARRIVED: Final = 2
FULL: Final = 3
"""The log is."""
DRAWS: Final = 3
"""Numbers that an event takes: which foot, how far beside its place along and across."""
_STRIDE: Final = 4
"""Samples between two looks at what a foot reaches."""
_LOOKS: Final = 8
"""Places of a stretch that are tried for a body that stands without a foot."""
_BONUS: Final = 3.0


@kernel(examples=lambda: [(np.zeros((1, 1, 3)), np.ones((1, 1), np.bool_), 0, -1, np.zeros((12, 3)))])
def polygon_edges(feet: Array, down: NDArray[np.bool_], i: int, without: int, out: Array) -> int:
    """Edges of the polygon of the feet (p, l, 3) of plan ``i`` that are down, but one: (k, 3) inward normals and
    offsets; how many."""
    legs, count = feet.shape[1], 0
    for a in range(legs):
        if not down[i, a] or a == without:
            continue
        ax, ay = feet[i, a, 0], feet[i, a, 1]
        for b in range(legs):
            if b in (a, without) or not down[i, b]:
                continue
            ex, ey = feet[i, b, 0] - ax, feet[i, b, 1] - ay
            edge = True
            for k in range(legs):
                if (
                    down[i, k]
                    and k != a
                    and k != b
                    and k != without
                    and ex * (feet[i, k, 1] - ay) - ey * (feet[i, k, 0] - ax) < 0.0
                ):
                    edge = False
                    break
            if edge and count < out.shape[0]:
                length = math.sqrt(ex * ex + ey * ey)
                if length > 1e-9:
                    out[count, 0], out[count, 1] = -ey / length, ex / length
                    out[count, 2] = (ex * ay - ey * ax) / length
                    count += 1
    return count


@kernel(examples=lambda: [(np.zeros((12, 3)), 3, 0.0, 0.0)])
def inside_by(edges: Array, count: int, x: float, y: float) -> float:
    """How far a place is inside of edges [m]."""
    least = math.inf
    for k in range(count):
        least = min(least, edges[k, 0] * x + edges[k, 1] * y - edges[k, 2])
    return least


@kernel(examples=lambda: [(np.zeros((1, 2, 2), np.uint64), np.zeros((1, 3)), 0, 0.0, 0.0, 0.0, 100.0, 100.0)])
def in_table(
    table: NDArray[np.uint64], low: Array, leg: int, x: float, y: float, z: float, cells: float, layers: float
) -> bool:
    """Whether a leg reaches a place of the body, margins kept; ``cells`` and ``layers`` to the metre."""
    a = int((x - low[leg, 0]) * cells + 0.5)
    b = int((y - low[leg, 1]) * cells + 0.5)
    c = int((z - low[leg, 2]) * layers + 0.5)
    n = table.shape[1]
    if a < 0 or b < 0 or c < 0 or a >= n or b >= n or c >= LAYERS:
        return False
    return bool((table[leg, a, b] >> np.uint64(c)) & np.uint64(1))


@kernel(
    examples=lambda: [
        (
            np.zeros((1, 2, 2), np.uint64), np.zeros((1, 3)), np.zeros((1, 2, 3)), 0, 1, 0, np.zeros((1, 1, 3)), 0,
            1.0, 0.0, 100.0, 100.0, 0,
        )
    ]
)  # fmt: skip
def reach_along(
    table: NDArray[np.uint64],
    low: Array,
    places: Array,
    w: int,
    end: int,
    leg: int,
    feet: Array,
    i: int,
    cos: float,
    sin: float,
    cells: float,
    layers: float,
    seed: int,
) -> tuple[int, int]:
    """First and last sample of a way from where a foot can be reached, found from one on: strides, then one by one."""
    x, y, z = feet[i, leg, 0], feet[i, leg, 1], feet[i, leg, 2]
    ends = (seed, seed)
    for turn in range(2):
        sign, at, stride = 1 - 2 * turn, seed, _STRIDE
        while True:
            to = at + sign * stride
            if stride > 1:
                to = min(max(to, 0), end)
            if to < 0 or to > end or to == at:
                if stride == 1:
                    break
                stride = 1
                continue
            dx, dy = x - places[w, to, 0], y - places[w, to, 1]
            if in_table(table, low, leg, cos * dx + sin * dy, cos * dy - sin * dx, z - places[w, to, 2], cells, layers):
                at = to
            elif stride > 1:
                stride = 1
            else:
                break
        ends = (ends[0], at) if turn == 0 else (at, ends[1])
    return ends


@kernel(examples=lambda: [(np.zeros((1, 4, 3)), 0, np.zeros((12, 3)), 3, 0.05, 0, 3)])
def last_stable(places: Array, w: int, edges: Array, count: int, margin: float, inner: int, outer: int) -> int:
    """The farthest sample towards ``outer`` that is inside of edges by a margin, as ``inner`` is: by bisection."""
    if inside_by(edges, count, places[w, outer, 0], places[w, outer, 1]) >= margin:
        return outer
    while abs(outer - inner) > 1:
        middle = (inner + outer) // 2
        if inside_by(edges, count, places[w, middle, 0], places[w, middle, 1]) >= margin:
            inner = middle
        else:
            outer = middle
    return inner


@kernel(
    examples=lambda: [(np.zeros((1, 4, 3)), np.zeros(1, np.int64), make_herd(1, 1), 0, 0, np.zeros((12, 3)), 3, 0.05)]
)
def widen(
    places: Array, size: NDArray[np.int64], herd: Herd, i: int, seed: int, edges: Array, count: int, margin: float
) -> None:
    """Set the stretch about a sample where the body is stable, by the reach of all feet that are down, and edges."""
    w = herd.way[i]
    low, high = 0, size[w] - 1
    for k in range(herd.down.shape[1]):
        if herd.down[i, k]:
            low, high = max(low, herd.reach[i, k, 0]), min(high, herd.reach[i, k, 1])
    herd.span[i, 0] = last_stable(places, w, edges, count, margin, seed, low)
    herd.span[i, 1] = last_stable(places, w, edges, count, margin, seed, high)


@kernel(examples=lambda: [(*sample_parts(), 0, 0)])
def begin(world: World, ways: Ways, herd: Herd, log: Log, i: int, w: int) -> bool:
    """Begin a plan on a way: all feet down where they are; whether they hold the body there, and the log has room.

    The first row of a plan's log has leg -1, and the stretch at the start.
    """
    n0, places, end = world.number, ways.places, ways.size[w] - 1
    herd.events[i], herd.way[i] = 0, w
    for leg in range(herd.down.shape[1]):
        herd.down[i, leg], herd.bonus[i, leg] = True, _BONUS
        for k in range(3):
            herd.feet[i, leg, k] = world.feet[leg, k]
        dx, dy = world.feet[leg, 0] - places[w, 0, 0], world.feet[leg, 1] - places[w, 0, 1]
        if not in_table(
            world.table, world.low, leg, n0.cos * dx + n0.sin * dy, n0.cos * dy - n0.sin * dx,
            world.feet[leg, 2] - places[w, 0, 2], n0.cells, n0.layers,
        ):  # fmt: skip
            return False
        herd.reach[i, leg, 0], herd.reach[i, leg, 1] = reach_along(
            world.table, world.low, places, w, end, leg, herd.feet, i, n0.cos, n0.sin, n0.cells, n0.layers, 0
        )
    count = polygon_edges(herd.feet, herd.down, i, -1, herd.edges)
    if count < 3 or inside_by(herd.edges, count, places[w, 0, 0], places[w, 0, 1]) < n0.margin:
        return False
    widen(places, ways.size, herd, i, 0, herd.edges, count, n0.margin)
    herd.last[i] = note(log, -1, -1, SET, herd.feet, i, 0, herd.span[i, 0], herd.span[i, 1])
    return bool(herd.last[i] >= 0)


@kernel(examples=lambda: [(*sample_parts()[2:], 0, 0, LIFTED)])
def _changed(herd: Herd, log: Log, i: int, leg: int, kind: int) -> int:
    for k in range(herd.bonus.shape[1]):
        herd.bonus[i, k] += 1.0
    herd.bonus[i, leg] = 0.0
    herd.events[i] += 1
    herd.last[i] = note(log, herd.last[i], leg, kind, herd.feet, i, leg, herd.span[i, 0], herd.span[i, 1])
    return FULL if herd.last[i] < 0 else ALIVE


@kernel(examples=lambda: [(*sample_parts(), 0, 0, LIFTED, np.zeros(3), 0)])
def repeat(
    world: World, ways: Ways, herd: Herd, log: Log, i: int, leg: int, kind: int, place: Array, sample: int
) -> bool:
    """Add an event of another plan, at which the body is at a sample of the way; whether there is room for it."""
    n0 = world.number
    herd.down[i, leg] = kind != LIFTED
    if kind != LIFTED:
        for k in range(3):
            herd.feet[i, leg, k] = place[k]
        herd.reach[i, leg, 0], herd.reach[i, leg, 1] = reach_along(
            world.table, world.low, ways.places, herd.way[i], ways.size[herd.way[i]] - 1, leg, herd.feet, i, n0.cos,
            n0.sin, n0.cells, n0.layers, sample,
        )  # fmt: skip
    count = polygon_edges(herd.feet, herd.down, i, -1, herd.edges)
    if count < 3:
        return False
    widen(ways.places, ways.size, herd, i, sample, herd.edges, count, n0.margin)
    return _changed(herd, log, i, leg, kind) == ALIVE


@kernel(examples=lambda: [(*sample_parts(), 0, 0)])
def lift(world: World, ways: Ways, herd: Herd, log: Log, i: int, leg: int) -> int:
    """Raise a foot: ALIVE, FULL, or DEAD where the others would not hold the body; then nothing has changed."""
    side, left, right, edges = world.side, 0, 0, herd.edges
    for k in range(herd.down.shape[1]):
        if herd.down[i, k] and k != leg:
            left += side[k] > 0
            right += side[k] < 0
    if left + right < 3 or left == 0 or right == 0:
        return DEAD
    count = polygon_edges(herd.feet, herd.down, i, leg, edges)
    if count < 3:
        return DEAD
    low, high = herd.span[i, 0], herd.span[i, 1]
    places, w, seed, margin = ways.places, herd.way[i], -1, world.number.margin
    for k in range(_LOOKS):
        sample = high - (high - low) * k // (_LOOKS - 1)
        if inside_by(edges, count, places[w, sample, 0], places[w, sample, 1]) >= margin:
            seed = sample
            break
    if seed < 0:
        return DEAD
    herd.down[i, leg] = False
    widen(places, ways.size, herd, i, seed, edges, count, margin)
    return _changed(herd, log, i, leg, LIFTED)


@kernel(examples=lambda: [(*sample_parts()[2:3], np.zeros((1, 3)), np.ones(1, np.int64), 0, 0, 1.0, 0.0, 0.02)])
def neighbours(
    herd: Herd, home: Array, side: NDArray[np.int64], i: int, leg: int, cos: float, sin: float, gap: float
) -> tuple[float, float]:
    """Between which places along the body a foot keeps in order with those of its side that are down."""
    low, high = -math.inf, math.inf
    for k in range(herd.down.shape[1]):
        if herd.down[i, k] and k != leg and side[k] == side[leg]:
            other = cos * herd.feet[i, k, 0] + sin * herd.feet[i, k, 1]
            if home[k, 0] > home[leg, 0]:
                high = min(high, other - gap)
            else:
                low = max(low, other + gap)
    return low, high


@kernel(examples=lambda: [(*sample_parts(), 0, 0, 0.5, 0.5)])
def set_down(world: World, ways: Ways, herd: Herd, log: Log, i: int, leg: int, u: float, v: float) -> int:
    """Set a foot down near a drawn place, or on the nearest allowed one in a spiral: ALIVE, FULL, or DEAD.

    Allowed is what the leg reaches, in order with its side's feet, and with a way there that it reaches too.  Where the
    body at the far end of its stretch finds none, its middle and near end are tried.
    """
    n0, w = world.number, herd.way[i]
    low, high, end, places = herd.span[i, 0], herd.span[i, 1], ways.size[w] - 1, ways.places
    cos, sin, cells, layers = n0.cos, n0.sin, n0.cells, n0.layers
    hx, hy = world.home[leg, 0], world.home[leg, 1]
    beside_x, beside_y = triangular(u, -n0.spread, 0.0, n0.spread), triangular(v, -n0.spread, 0.0, n0.spread)
    stand, rings, tops, table, corner = world.stand, world.rings, world.tops, world.table, world.low
    least, most = neighbours(herd, world.home, world.side, i, leg, cos, sin, n0.gap)
    for attempt in range(3):
        sample = high - (high - low) * attempt // 2
        if attempt > 0 and sample == high:
            break
        ahead = min(sample + 5, end)
        bx, by, bz = places[w, sample, 0], places[w, sample, 1], places[w, sample, 2]
        tx, ty = places[w, ahead, 0] - bx, places[w, ahead, 1] - by
        far = math.sqrt(tx * tx + ty * ty)
        share = n0.step / far if far > 1e-9 else 0.0
        c0 = math.floor((bx + cos * hx - sin * hy + share * tx + beside_x - n0.x) / n0.cell)
        r0 = math.floor((by + sin * hx + cos * hy + share * ty + beside_y - n0.y) / n0.cell)
        for k in range(rings.shape[0]):
            r, c = r0 + rings[k, 0], c0 + rings[k, 1]
            if r < 0 or c < 0 or r >= stand.shape[0] or c >= stand.shape[1] or not stand[r, c]:
                continue
            x, y, z = n0.x + (c + 0.5) * n0.cell, n0.y + (r + 0.5) * n0.cell, world.heights[r, c]
            if not least <= cos * x + sin * y <= most:
                continue
            lx, ly = cos * (x - bx) + sin * (y - by), cos * (y - by) - sin * (x - bx)
            if not in_table(table, corner, leg, lx, ly, z - bz, cells, layers):
                continue
            fx, fy = herd.feet[i, leg, 0], herd.feet[i, leg, 1]
            top = top_between(tops, n0.x, n0.y, n0.cell, fx, fy, x, y) + n0.lift
            if not in_table(table, corner, leg, lx, ly, top - bz, cells, layers):
                continue
            herd.feet[i, leg, 0], herd.feet[i, leg, 1], herd.feet[i, leg, 2] = x, y, z
            herd.down[i, leg] = True
            herd.reach[i, leg, 0], herd.reach[i, leg, 1] = reach_along(
                table, corner, places, w, end, leg, herd.feet, i, cos, sin, cells, layers, sample
            )
            count = polygon_edges(herd.feet, herd.down, i, -1, herd.edges)
            widen(places, ways.size, herd, i, sample, herd.edges, count, n0.margin)
            return _changed(herd, log, i, leg, SET)
    return DEAD


@kernel(examples=lambda: [(*sample_parts(), 0, np.zeros(DRAWS))])
def advance(world: World, ways: Ways, herd: Herd, log: Log, i: int, draws: Array) -> int:
    """Add one event to plan ``i``: a wheel picks a foot by the square of its bonus; it rises, or is set down.

    A body that can be at the goal only sets feet down any more, until all are.

    Returns:
        ALIVE, ARRIVED (nothing was left to do), DEAD (no foot can rise, or one finds no place), FULL.
    """
    legs = herd.down.shape[1]
    if herd.events[i] >= EVENTS:
        return DEAD
    ending = herd.span[i, 1] >= ways.size[herd.way[i]] - 1
    weights, total = herd.weights, 0.0
    for k in range(legs):
        weights[k] = 0.0
        if not (ending and herd.down[i, k]):
            weights[k] = herd.bonus[i, k] ** 2
            if ending:
                weights[k] += 1.0
            total += weights[k]
    if ending and total == 0.0:
        return ARRIVED
    share = draws[0]
    while total > 0.0:
        left, leg = share * total, -1
        for k in range(legs):
            if weights[k] > 0.0:
                leg = k
                if left < weights[k]:
                    break
                left -= weights[k]
        share = min(max(left / weights[leg], 0.0), 0.999999)  # what is left of the draw is as good as a new one
        if not herd.down[i, leg]:
            return set_down(world, ways, herd, log, i, leg, draws[1], draws[2])
        state = lift(world, ways, herd, log, i, leg)
        if state != DEAD:
            return state
        weights[leg], total = 0.0, 0.0
        for k in range(legs):
            total += weights[k]
    return DEAD
