"""Kernels: what a straight way costs, and ways pulled taut."""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

from roboyard.compute import kernel
from roboyard.compute.array_kernels import assign
from roboyard.navigation.planning.ground import Ground, smallest

_LESS = 1.0 - 1e-9
"""A change must save more than rounding, or two ways of the same cost would alternate for ever."""


@kernel(examples=lambda: [(smallest(), 1.0, 1.0, 3.0, 2.0)])
def line_cost(ground: Ground, row: float, column: float, to_row: float, to_column: float) -> float:
    """Integral of the weight along a straight line, infinite where it touches a cell that cannot be entered.

    Args:
        ground: What cells cost.
        row: Of the beginning, in cells; the middle of cell (0, 0) is (0, 0).
        column: The same along x.
        to_row: Of the end.
        to_column: Of the end.
    """
    cells, weights = ground.cells, ground.weights
    r, c = np.int64(math.floor(row + 0.5)), np.int64(math.floor(column + 0.5))
    last_r, last_c = np.int64(math.floor(to_row + 0.5)), np.int64(math.floor(to_column + 0.5))
    dr, dc = to_row - row, to_column - column
    length = math.hypot(dr, dc)
    step_r, step_c = (1 if dr > 0.0 else -1), (1 if dc > 0.0 else -1)
    # share of the line at which it crosses into the next row and the next column, and from crossing to crossing
    next_r = (r + 0.5 * step_r - row) / dr if dr != 0.0 else np.inf
    next_c = (c + 0.5 * step_c - column) / dc if dc != 0.0 else np.inf
    every_r = abs(1.0 / dr) if dr != 0.0 else np.inf
    every_c = abs(1.0 / dc) if dc != 0.0 else np.inf
    done = cost = 0.0
    while True:
        weight = weights[cells[r, c]]
        if weight == 0.0:
            return np.inf
        if r == last_r and c == last_c:
            return float(cost + (1.0 - done) * length * weight)
        here = min(next_r, next_c, 1.0)
        cost += (here - done) * length * weight
        done = here
        if abs(next_r - next_c) < 1e-12:
            # through a corner: both cells beside it must be free, as for a diagonal step
            if weights[cells[r + step_r, c]] == 0.0 or weights[cells[r, c + step_c]] == 0.0:
                return np.inf
            r, c = r + step_r, c + step_c
            next_r += every_r
            next_c += every_c
        elif next_r < next_c:
            if r == last_r:
                return float(cost + (1.0 - done) * length * weight)
            r += step_r
            next_r += every_r
        else:
            if c == last_c:
                return float(cost + (1.0 - done) * length * weight)
            c += step_c
            next_c += every_c


@kernel(examples=lambda: [(smallest(), np.ones((2, 2)), 1)])
def way_cost(ground: Ground, way: NDArray[np.float64], rim: int) -> float:
    """What straight lines from point to point of a way (n, 2) cost together; see ``line_cost``.

    Only from row and column ``rim`` on, and up to those as far from the other edges, cells are looked at; all beyond
    costs what cell (rim, rim) does.
    """
    rows, columns = ground.cells.shape
    weight = float(ground.weights[ground.cells[rim, rim]])
    beyond = weight if weight > 0.0 else np.inf
    cost = 0.0
    for i in range(1, len(way)):
        r, c = way[i - 1, 0], way[i - 1, 1]
        dr, dc = way[i, 0] - r, way[i, 1] - c
        enter_r, leave_r = _within(r, dr, rim, rows - 1 - rim)
        enter_c, leave_c = _within(c, dc, rim, columns - 1 - rim)
        enter, leave = max(enter_r, enter_c), min(leave_r, leave_c)
        if enter > leave:
            enter = leave = 0.0
        else:
            kept = 1.0 - leave  # 0 gives the very end, not one beside it by rounding
            end_r, end_c = way[i, 0] - kept * dr, way[i, 1] - kept * dc
            cost += line_cost(ground, r + enter * dr, c + enter * dc, end_r, end_c)
        outside = (1.0 - (leave - enter)) * math.hypot(dr, dc)
        if outside > 0.0:
            cost += outside * beyond
    return cost


@kernel
def _within(begin: float, way: float, low: float, high: float) -> tuple[float, float]:
    """Shares of a line's way (0 to 1) at which it gets between two numbers and leaves again (Liang, Barsky 1984)."""
    if way == 0.0:
        return (0.0, 1.0) if low <= begin <= high else (2.0, -1.0)
    first, last = (low - begin) / way, (high - begin) / way
    return max(min(first, last), 0.0), min(max(first, last), 1.0)


@kernel(examples=lambda: [(smallest(), np.ones((2, 2)), 10)])
def pull_taut(ground: Ground, way: NDArray[np.float64], rounds: int) -> NDArray[np.float64]:
    """The way with all corners left out, and all remaining ones moved, wherever that makes it cheaper.

    Args:
        ground: As for ``line_cost``.
        way: (n, 2) rows and columns, joined by free lines.
        rounds: At most so many times over the whole way.

    Returns:
        (m, 2) corners, beginning and end included; it costs no more than ``way`` does.
    """
    way = _leave_out(ground, way)
    for _ in range(rounds):
        moved = _move_corners(ground, way)
        shorter = _leave_out(ground, way)
        if not moved and len(shorter) == len(way):
            break
        way = shorter
    return way


@kernel
def _leave_out(ground: Ground, way: NDArray[np.float64]) -> NDArray[np.float64]:
    """From each corner on to the farthest that a line reaches as cheaply."""
    n = len(way)
    along = np.zeros(n)
    for i in range(1, n):
        along[i] = along[i - 1] + line_cost(ground, way[i - 1, 0], way[i - 1, 1], way[i, 0], way[i, 1])
    kept = np.empty((n, 2))
    assign(kept[0], way[0])
    count, here = 1, 0
    while here < n - 1:
        chosen = here + 1
        reach, tried = chosen, here + 2
        # a line that is lost may be found again behind the next bend: look on for as long again
        while tried < n and tried <= here + 2 * (reach - here) + 8:
            straight = line_cost(ground, way[here, 0], way[here, 1], way[tried, 0], way[tried, 1])
            if straight <= (along[tried] - along[here]) * (1.0 + 1e-9):
                chosen, reach = tried, tried
            tried += 1
        assign(kept[count], way[chosen])
        count += 1
        here = chosen
    return kept[:count].copy()


@kernel
def _move_corners(ground: Ground, way: NDArray[np.float64]) -> bool:
    """Each corner to the best place about it, by steps from a cell down to a sixteenth; whether any moved."""
    any_moved = False
    for i in range(1, len(way) - 1):
        size = 1.0
        best = line_cost(ground, way[i - 1, 0], way[i - 1, 1], way[i, 0], way[i, 1])
        best += line_cost(ground, way[i, 0], way[i, 1], way[i + 1, 0], way[i + 1, 1])
        while size > 0.05:
            moved = False
            for turn in range(8):
                r = way[i, 0] + size * (1.0, 1.0, 0.0, -1.0, -1.0, -1.0, 0.0, 1.0)[turn]
                c = way[i, 1] + size * (0.0, 1.0, 1.0, 1.0, 0.0, -1.0, -1.0, -1.0)[turn]
                cost = line_cost(ground, way[i - 1, 0], way[i - 1, 1], r, c)
                if cost < best:
                    cost += line_cost(ground, r, c, way[i + 1, 0], way[i + 1, 1])
                if cost < best * _LESS:
                    way[i, 0], way[i, 1], best, moved, any_moved = r, c, cost, True, True
            if not moved:
                size *= 0.5
    return any_moved
