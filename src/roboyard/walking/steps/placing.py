"""Raising a foot, and setting it down: what each has to look at."""

from __future__ import annotations

import math
from typing import Final

from roboyard.compute import kernel
from roboyard.walking.steps.draws import triangular
from roboyard.walking.steps.events import DEAD, body_at, changed
from roboyard.walking.steps.ground_kernels import top_between
from roboyard.walking.steps.herd import LIFTED, SET, Herd, Log, PlanningContext, Ways, sample_parts
from roboyard.walking.steps.order import clear_of_air, in_order, neighbours
from roboyard.walking.steps.stretch import in_table, inside_by, polygon_edges, reach_along, widen

_LOOKS: Final = 8
"""Places of a stretch that are tried for a body that stands without a foot."""
_TRIED: Final = 4
"""Places that a foot is set on for trial, about one it was drawn for."""
_WIDE: Final = 2.5
"""A patient planner draws places so much farther off, two times of three."""
_ACROSS: Final = 4
"""A swing's reach is looked at where it rises, where it comes down, and between, in so many parts."""
_LEAD: Final = 1
"""Samples that the body may go while a foot just rises, or just comes down."""


@kernel(no_refcount=True, forceinline=True, examples=lambda: [(*sample_parts()[:3], 0, 0, 0)])
def rise_reached(world: PlanningContext, ways: Ways, herd: Herd, i: int, leg: int, at: int) -> bool:
    """Whether a leg reaches its foot while it rises with the body at a sample, and about to go on."""
    n0, w, p = world.number, herd.way[i], ways.places
    x, y, z = herd.feet[i, leg, 0], herd.feet[i, leg, 1], herd.feet[i, leg, 2]
    for up in range(2):
        c = at if up == 1 else min(at + _LEAD, ways.size[w] - 1)
        dx, dy = x - p[w, c, 0], y - p[w, c, 1]
        if not in_table(
            world.air, world.low, leg, n0.cos * dx + n0.sin * dy, n0.cos * dy - n0.sin * dx,
            z + up * n0.lift - p[w, c, 2], n0.cells, n0.layers,
        ):  # fmt: skip
            return False
    return True


@kernel(no_refcount=True, forceinline=True, examples=lambda: [(*sample_parts(), 0, 0, -1.0)])
def lift(world: PlanningContext, ways: Ways, herd: Herd, log: Log, i: int, leg: int, draw: float) -> int:
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
    at = body_at(herd.at[i], low, high, herd.span[i, 0], herd.span[i, 1], draw)
    herd.down[i, leg] = True
    free = clear_of_air(world, ways, herd, i, at)
    herd.down[i, leg] = False
    if not (free and rise_reached(world, ways, herd, i, leg, at)):
        herd.down[i, leg], herd.span[i, 0], herd.span[i, 1] = True, low, high
        return DEAD
    herd.at[i] = at
    return changed(herd, log, i, leg, LIFTED)


@kernel(no_refcount=True, forceinline=True, examples=lambda: [(*sample_parts()[:3], 0, 0, 0.0, 0.0, 0.0, 0)])
def swing_reached(
    world: PlanningContext, ways: Ways, herd: Herd, i: int, leg: int, x: float, y: float, z: float, at: int
) -> bool:
    """Whether a leg reaches its foot all the way through the air, from where it rose to a place, the body at a sample.

    As the body sees it the foot goes up, straight across and down, whatever the body does meanwhile: see `swing_place`.
    """
    n0, w, a, b = world.number, herd.way[i], herd.rose[i, leg], at
    p, cos, sin = ways.places, n0.cos, n0.sin
    fx, fy = herd.feet[i, leg, 0], herd.feet[i, leg, 1]
    top = top_between(world.tops, n0.x, n0.y, n0.cell, fx, fy, x, y) + n0.lift
    ax, ay, bx, by = fx - p[w, a, 0], fy - p[w, a, 1], x - p[w, b, 0], y - p[w, b, 1]
    for part in range(_ACROSS + 3):
        across = min(part / _ACROSS, 1.0)
        lx, ly = ax + across * (bx - ax), ay + across * (by - ay)
        lz = top - p[w, a, 2] - across * (p[w, b, 2] - p[w, a, 2])
        if part > _ACROSS and b > a:
            c = min(a + _LEAD, b) if part == _ACROSS + 1 else max(b - _LEAD, a)
            lx, ly = (fx, fy) if part == _ACROSS + 1 else (x, y)
            lx, ly = lx - p[w, c, 0], ly - p[w, c, 1]
            lz = (herd.feet[i, leg, 2] if part == _ACROSS + 1 else z) - p[w, c, 2]
        if not in_table(world.air, world.low, leg, cos * lx + sin * ly, cos * ly - sin * lx, lz, n0.cells, n0.layers):
            return False
    return True


@kernel(no_refcount=True, forceinline=True, examples=lambda: [(*sample_parts(), 0, 0, 0, 0, 0, 0.5)])
def stand_on(
    world: PlanningContext,
    ways: Ways,
    herd: Herd,
    log: Log,
    i: int,
    leg: int,
    row: int,
    column: int,
    sample: int,
    draw: float,
) -> int:
    """Set a foot down on a cell that it reaches with the body at a sample: ALIVE, FULL, or DEAD.

    DEAD, where it does not reach all of its way there, changes nothing.
    """
    n0, w, low, high = world.number, herd.way[i], herd.span[i, 0], herd.span[i, 1]
    x, y, z = n0.x + (column + 0.5) * n0.cell, n0.y + (row + 0.5) * n0.cell, world.heights[row, column]
    fx, fy, fz = herd.feet[i, leg, 0], herd.feet[i, leg, 1], herd.feet[i, leg, 2]
    herd.feet[i, leg, 0], herd.feet[i, leg, 1], herd.feet[i, leg, 2] = x, y, z
    herd.down[i, leg] = True
    herd.reach[i, leg, 0], herd.reach[i, leg, 1] = reach_along(
        world.table, world.low, ways.places, w, ways.size[w] - 1, leg, herd.feet, i, n0.cos, n0.sin, n0.cells,
        n0.layers, sample,
    )  # fmt: skip
    count = polygon_edges(herd.feet, herd.down, i, -1, herd.edges)
    widen(ways.places, ways.size, herd, i, sample, herd.edges, count, n0.margin)
    at = body_at(herd.at[i], low, high, herd.span[i, 0], herd.span[i, 1], draw)
    herd.feet[i, leg, 0], herd.feet[i, leg, 1], herd.feet[i, leg, 2] = fx, fy, fz
    if not (in_order(world, ways, herd, i, leg, x, y, at) and swing_reached(world, ways, herd, i, leg, x, y, z, at)):
        herd.down[i, leg], herd.span[i, 0], herd.span[i, 1] = False, low, high
        return DEAD
    herd.feet[i, leg, 0], herd.feet[i, leg, 1], herd.feet[i, leg, 2] = x, y, z
    herd.at[i] = at
    return changed(herd, log, i, leg, SET)


@kernel(no_refcount=True, forceinline=True, examples=lambda: [(*sample_parts(), 0, 0, 0, 0, 0, 0.5)])
def stand_near(
    world: PlanningContext,
    ways: Ways,
    herd: Herd,
    log: Log,
    i: int,
    leg: int,
    row: int,
    column: int,
    sample: int,
    draw: float,
) -> int:
    """Set a foot down on the nearest allowed cell about one, the body at a sample: ALIVE, FULL, or DEAD.

    Of those that the leg reaches, in order with its side's feet, a few are tried.
    """
    n0, w, stand, rings, tried = world.number, herd.way[i], world.stand, world.rings, 0
    low, high = neighbours(world, ways, herd, i, leg, sample)
    bx, by, bz = ways.places[w, sample, 0], ways.places[w, sample, 1], ways.places[w, sample, 2]
    for k in range(rings.shape[0]):
        r, c = row + rings[k, 0], column + rings[k, 1]
        if r < 0 or c < 0 or r >= stand.shape[0] or c >= stand.shape[1] or not stand[r, c]:
            continue
        x, y = n0.x + (c + 0.5) * n0.cell, n0.y + (r + 0.5) * n0.cell
        if not low <= n0.cos * x + n0.sin * y <= high:
            continue
        dx, dy = x - bx, y - by
        if not in_table(
            world.table, world.low, leg, n0.cos * dx + n0.sin * dy, n0.cos * dy - n0.sin * dx,
            world.heights[r, c] - bz, n0.cells, n0.layers,
        ):  # fmt: skip
            continue
        state = stand_on(world, ways, herd, log, i, leg, r, c, sample, draw)
        tried += 1
        if state != DEAD or tried == _TRIED:
            return state
    return DEAD


@kernel(no_refcount=True, forceinline=True, examples=lambda: [(*sample_parts(), 0, 0, 0.5, 0.5, 0.5, False)])
def set_down(
    world: PlanningContext,
    ways: Ways,
    herd: Herd,
    log: Log,
    i: int,
    leg: int,
    u: float,
    v: float,
    draw: float,
    patient: bool,
) -> int:
    """Set a foot down near a drawn place, or on the nearest allowed one about it: ALIVE, FULL, or DEAD.

    Allowed is what the leg reaches, in order with its side's feet, and with a way there that it reaches too.  Where the
    body at the far end of its stretch finds none, its middle and near end are tried; a patient planner tries one of
    them only.  DEAD changes nothing.
    """
    n0, w = world.number, herd.way[i]
    low, high, end, places = herd.span[i, 0], herd.span[i, 1], ways.size[w] - 1, ways.places
    hx, hy = (
        n0.cos * world.home[leg, 0] - n0.sin * world.home[leg, 1],
        n0.sin * world.home[leg, 0] + n0.cos * world.home[leg, 1],
    )
    first = int(3.0 * draw) if patient else 0
    spread = n0.spread * (_WIDE if first > 0 else 1.0)
    hx, hy = hx + triangular(u, -spread, 0.0, spread), hy + triangular(v, -spread, 0.0, spread)
    for attempt in range(first, first + 1 if patient else 3):
        sample = high - (high - low) * attempt // 2
        if attempt > first and sample == high:
            break
        ahead = min(sample + 5, end)
        bx, by = places[w, sample, 0], places[w, sample, 1]
        tx, ty = places[w, ahead, 0] - bx, places[w, ahead, 1] - by
        far = math.sqrt(tx * tx + ty * ty)
        share = n0.step / far if far > 1e-9 else 0.0
        herd.wish[i, 0], herd.wish[i, 1] = bx + hx + share * tx, by + hy + share * ty
        column = math.floor((herd.wish[i, 0] - n0.x) / n0.cell)
        row = math.floor((herd.wish[i, 1] - n0.y) / n0.cell)
        state = stand_near(world, ways, herd, log, i, leg, row, column, sample, -1.0 if patient else draw)
        if state != DEAD:
            return state
    return DEAD
