"""Ways that the body may go: the first step of random sampling."""

from __future__ import annotations

import math
from typing import Final

import numpy as np

from roboyard.compute import kernel
from roboyard.walking.steps.draws import key_of, uniform
from roboyard.walking.steps.ground_kernels import body_height
from roboyard.walking.steps.herd import LONGEST, STEP, Array, Ways, World, sample_parts, sample_world

CORNERS: Final = 6
"""Of a way, at most, beside start and goal."""
WAY_DRAWS: Final = 1 + 2 * CORNERS


@kernel(examples=lambda: [(sample_world(), sample_parts()[1], 0, np.zeros(WAY_DRAWS), 0)])
def lay_way(world: World, ways: Ways, w: int, draws: Array, first: int) -> bool:
    """Lay a way to the goal into row ``w``, from its first samples on, or from the start; whether the body can go it.

    The number of its straight pieces is geometric with p = 0.5; each corner is the middle of start and goal and a
    vector whose components lie within plus and minus their distance.  Herms 2004.
    """
    n0, p = world.number, ways.places
    goal = world.goal
    start = world.start if first == 0 else p[w, first - 1, :2]
    far = math.hypot(goal[0] - start[0], goal[1] - start[1])
    pieces = min(1 + math.floor(-math.log2(max(1.0 - draws[0], 1e-12))), CORNERS + 1)
    x, y, n = start[0], start[1], first
    for k in range(pieces):
        if k + 1 < pieces:
            ex = 0.5 * (start[0] + goal[0]) + (2.0 * draws[1 + 2 * k] - 1.0) * far
            ey = 0.5 * (start[1] + goal[1]) + (2.0 * draws[2 + 2 * k] - 1.0) * far
        else:
            ex, ey = goal[0], goal[1]
        parts = max(math.ceil(math.hypot(ex - x, ey - y) / STEP), 1)
        if n + parts + 1 > LONGEST:
            return False
        for m in range(0 if n == 0 else 1, parts + 1):
            px, py = x + (ex - x) * m / parts, y + (ey - y) * m / parts
            z = body_height(world.body, n0.x, n0.y, n0.cell, px, py)
            if math.isnan(z):
                return False
            p[w, n, 0], p[w, n, 1], p[w, n, 2] = px, py, z
            n += 1
        x, y = ex, ey
    ways.size[w] = n
    return True


@kernel(examples=lambda: [(sample_world(), sample_parts()[1], 0, np.uint64(1), 1, 0)])
def draw_way(world: World, ways: Ways, w: int, key: np.uint64, tries: int, first: int) -> bool:
    """Lay ways until the body can go along one."""
    draws = np.empty(WAY_DRAWS)
    for k in range(tries):
        own = key_of(key, k)
        for m in range(WAY_DRAWS):
            draws[m] = uniform(own, m)
        if lay_way(world, ways, w, draws, first):
            return True
    return False
