"""Where a planner looked for each foothold of a plan: from the place that was drawn outwards, as a spiral."""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from roboyard.geometry.arrays import Array
from roboyard.walking.steps.ground import Ground
from roboyard.walking.steps.plan import StepPlan


class SpiralSearch(NamedTuple):
    """Of one foothold.  Step 2c of the thesis's random sampling.

    Attributes:
        leg: Number of it.
        wish: (2) where it was drawn for [m].
        found: (2) where it is [m].
        cells: (k, 2) middles of the cells that are nearer to the wish and were passed over, in turn [m].
        firm: (k,) whether feet may stand there at all: then the leg would not get there, or not in order.
    """

    leg: int
    wish: tuple[float, float]
    found: tuple[float, float]
    cells: Array
    firm: NDArray[np.bool_]


def searches(plan: StepPlan, ground: Ground) -> list[SpiralSearch]:
    """Of each swing of a plan that says what place was drawn for its foot; swing by swing."""
    found = []
    for one in plan.swings:
        if one.wish is None:
            continue
        first, last = (_cell(ground, place) for place in (one.wish, one.target[:2]))
        far = math.ceil(math.dist(first, last))
        r, c = (axis.ravel() for axis in np.mgrid[-far : far + 1, -far : far + 1])
        away = r * r + c * c
        nearer = away < math.dist(first, last) ** 2 - 0.5
        turn = np.lexsort((np.arctan2(r, c)[nearer], away[nearer]))
        rows, columns = r[nearer][turn] + first[0], c[nearer][turn] + first[1]
        stand = ground.rows.stand
        inside = (rows >= 0) & (columns >= 0) & (rows < stand.shape[0]) & (columns < stand.shape[1])
        rows, columns = rows[inside], columns[inside]
        middles = np.column_stack(
            [ground.rows.x + (columns + 0.5) * ground.rows.cell, ground.rows.y + (rows + 0.5) * ground.rows.cell]
        )
        found.append(SpiralSearch(one.leg, one.wish, one.target[:2], middles, stand[rows, columns]))
    return found


def _cell(ground: Ground, place: tuple[float, float]) -> tuple[int, int]:
    """Row and column of a place, outside of the map too."""
    rows = ground.rows
    return math.floor((place[1] - rows.y) / rows.cell), math.floor((place[0] - rows.x) / rows.cell)
