"""Where on its way a body can be: within reach of all feet that are down, far enough inside their polygon."""

from __future__ import annotations

import math
from typing import Final

import numpy as np
from numpy.typing import NDArray

from roboyard.compute import kernel
from roboyard.geometry.arrays import Array
from roboyard.walking.steps.herd import STEP, Herd, PlanningContext, Ways, make_herd, sample_parts, sample_world
from roboyard.walking.steps.rig_kernels import LAYERS

_STRIDE: Final = 4
"""Samples between two looks at what a foot reaches."""
_SURE: Final = 0.999
"""Of a distance, for what is rounded."""
_ROW: Final = 1e-12
"""Feet whose triangle is no larger stand in a row, but for rounding [m²]."""


@kernel(
    no_refcount=True,
    forceinline=True,
    examples=lambda: [(np.zeros((1, 1, 3)), np.ones((1, 1), np.bool_), 0, -1, np.zeros((12, 3)))],
)
def polygon_edges(feet: Array, down: NDArray[np.bool_], i: int, without: int, out: Array) -> int:
    """Edges of the polygon of the feet (p, l, 3) of plan ``i`` that are down, but one: (k, 3) inward normals and
    offsets; how many.

    From the foot farthest back on, always to the one that has all others on its left (Jarvis 1973).
    """
    legs, count, first = feet.shape[1], 0, -1
    for k in range(legs):
        if down[i, k] and k != without:
            back = feet[i, k, 0] - feet[i, first, 0] if first >= 0 else -1.0
            if back < 0.0 or (back == 0.0 and feet[i, k, 1] < feet[i, first, 1]):
                first = k
    a = first
    for _ in range(legs):
        ax, ay, ex, ey, b = feet[i, a, 0], feet[i, a, 1], 0.0, 0.0, -1
        for k in range(legs):
            if k in (a, without) or not down[i, k]:
                continue
            dx, dy = feet[i, k, 0] - ax, feet[i, k, 1] - ay
            turn = ex * dy - ey * dx
            if b < 0 or turn < -_ROW or (turn <= _ROW and dx * dx + dy * dy > ex * ex + ey * ey):
                b, ex, ey = k, dx, dy
        length = math.sqrt(ex * ex + ey * ey)
        if length > 1e-9:
            out[count, 0], out[count, 1] = -ey / length, ex / length
            out[count, 2] = (ex * ay - ey * ax) / length
            count += 1
        a = b
        if a in (first, -1):
            break
    return count


@kernel(no_refcount=True, forceinline=True, examples=lambda: [(np.zeros((12, 3)), 3, 0.0, 0.0)])
def inside_by(edges: Array, count: int, x: float, y: float) -> float:
    """How far a place is inside of edges [m]."""
    least = math.inf
    for k in range(count):
        least = min(least, edges[k, 0] * x + edges[k, 1] * y - edges[k, 2])
    return least


@kernel(
    no_refcount=True,
    forceinline=True,
    examples=lambda: [(np.zeros((1, 2, 2), np.uint64), np.zeros((1, 3)), 0, 0.0, 0.0, 0.0, 100.0, 100.0)],
)
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
    no_refcount=True, forceinline=True,
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


@kernel(
    no_refcount=True, forceinline=True, examples=lambda: [(np.zeros((1, 4, 3)), 0, np.zeros((12, 3)), 3, 0.05, 0, 3)]
)
def last_stable(places: Array, w: int, edges: Array, count: int, margin: float, inner: int, outer: int) -> int:
    """The farthest sample towards ``outer`` up to which all are inside of edges by a margin, as ``inner`` is.

    Where a way bends it may leave the polygon and come back, which bisection would not see; but as samples lie STEP
    apart at most, so many are inside as fit into what the one before is farther inside.
    """
    step = 1 if outer > inner else -1
    spare = inside_by(edges, count, places[w, inner, 0], places[w, inner, 1]) - margin
    while inner != outer:
        ahead = inner + step * min(max(int(_SURE * spare / STEP), 1), abs(outer - inner))
        spare = inside_by(edges, count, places[w, ahead, 0], places[w, ahead, 1]) - margin
        if spare < 0.0:
            break
        inner = ahead
    return inner


@kernel(
    no_refcount=True,
    forceinline=True,
    examples=lambda: [(np.zeros((1, 4, 3)), np.zeros(1, np.int64), make_herd(1, 1), 0, 0, np.zeros((12, 3)), 3, 0.05)],
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


@kernel(no_refcount=True, forceinline=True, examples=lambda: [(sample_world(), *sample_parts()[1:3], 0)])
def left_over(world: PlanningContext, ways: Ways, herd: Herd, i: int) -> float:
    """From where the body of a plan can get to the goal [m]."""
    w, sample = herd.way[i], herd.span[i, 1]
    return math.hypot(world.goal[0] - ways.places[w, sample, 0], world.goal[1] - ways.places[w, sample, 1])
