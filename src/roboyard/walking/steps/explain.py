"""Why there is no plan: what the body would have to cross, and cannot, whatever its feet do."""

from __future__ import annotations

import math
from typing import Final

import numpy as np
from numpy.typing import NDArray
from scipy.ndimage import binary_dilation, distance_transform_edt, label

from roboyard.walking.steps.problem import Problem

_FAR: Final = 0.2
"""No foot of the Akrobat gets farther from its place in the stance [m]."""
_NAMED: Final = 8


def passable(problem: Problem) -> NDArray[np.bool_]:
    """(rows, columns) where the body has room, and three legs, not all on one side, may have ground: generous."""
    rig, ground, rows = problem.rig.rows, problem.ground, problem.ground.rows
    near = rows.stand
    if near.any():
        near = distance_transform_edt(~near) * rows.cell <= _FAR * problem.rig.scale
    left, right = np.zeros(rows.stand.shape, np.int64), np.zeros(rows.stand.shape, np.int64)
    c, s = math.cos(ground.heading), math.sin(ground.heading)
    for (x, y, _), side in zip(rig.home.tolist(), rig.side.tolist(), strict=True):
        column, row = round((c * x - s * y) / rows.cell), round((s * x + c * y) / rows.cell)
        shifted = _shifted(near, row, column)
        if side > 0:
            left += shifted
        else:
            right += shifted
    open_: NDArray[np.bool_] = (left + right >= 3) & (left > 0) & (right > 0) & ~np.isnan(rows.body)
    return open_


def barrier(problem: Problem) -> list[tuple[int, int]] | None:
    """Cells, the nearest to the goal first, at which all that can be reached from the start ends; None if none does."""
    free = passable(problem)
    ground = problem.ground
    start, goal = (ground.cell_at(float(x), float(y)) for x, y in (problem.start, problem.goal))
    parts, _ = label(free, structure=np.ones((3, 3)))
    if parts[start] == parts[goal] != 0:
        return None
    mine = parts == parts[start] if parts[start] else np.zeros(free.shape, np.bool_)
    mine[start] = True
    rim = np.argwhere(binary_dilation(mine, structure=np.ones((3, 3), np.bool_)) & ~mine)
    order = np.argsort(np.hypot(*(rim - goal).T), kind="stable")
    return [(int(r), int(c)) for r, c in rim[order[:_NAMED]]]


def _shifted(values: NDArray[np.bool_], rows: int, columns: int) -> NDArray[np.bool_]:
    """Of each cell the value of the one so far away; False beyond the map."""
    out = np.zeros_like(values)
    r, c = values.shape
    if abs(rows) < r and abs(columns) < c:
        out[max(-rows, 0) : r - max(rows, 0), max(-columns, 0) : c - max(columns, 0)] = values[
            max(rows, 0) : r - max(-rows, 0), max(columns, 0) : c - max(-columns, 0)
        ]
    return out
