"""Ways that the body may go: the first step of random sampling."""

from __future__ import annotations

import math
from typing import Final

import numpy as np

from roboyard.compute import kernel
from roboyard.geometry.arrays import Array
from roboyard.walking.steps.draws import key_of, triangular, uniform
from roboyard.walking.steps.ground_kernels import body_height
from roboyard.walking.steps.guide import COARSE
from roboyard.walking.steps.herd import LONGEST, STEP, PlanningContext, Ways, sample_parts, sample_world

CORNERS: Final = 6
"""Of a way, at most, beside start and goal."""
WAY_DRAWS: Final = 1 + 2 * CORNERS
_STRAIGHT: Final = 1.1
"""A way that is longer than the straight one by less is not worth it."""
_STRIDE: Final = 3
"""Cells of the guide that are gone at once."""
_ASIDE: Final = math.radians(120.0)
"""A way that is bent goes off from the goal's direction by less."""


@kernel(no_refcount=True, forceinline=True, examples=lambda: [(sample_world(), sample_parts()[1], 0, 1, 0.0, 0.0)])
def lay_piece(world: PlanningContext, ways: Ways, w: int, n: int, x: float, y: float) -> int:
    """Go straight to a place from the sample before ``n``; how many samples there are then, -1 where no body can go."""
    p, n0 = ways.places, world.number
    ax, ay = p[w, n - 1, 0], p[w, n - 1, 1]
    parts = max(math.ceil(math.hypot(x - ax, y - ay) / STEP), 1)
    if n + parts > LONGEST:
        return -1
    for m in range(1, parts + 1):
        px, py = ax + (x - ax) * m / parts, ay + (y - ay) * m / parts
        z = body_height(world.body, n0.x, n0.y, n0.cell, px, py)
        if math.isnan(z):
            return -1
        p[w, n + m - 1, 0], p[w, n + m - 1, 1], p[w, n + m - 1, 2] = px, py, z
    return n + parts


@kernel(no_refcount=True, forceinline=True, examples=lambda: [(np.zeros((2, 2)), 0, 0)])
def next_cell(guide: Array, row: int, column: int) -> tuple[int, int]:
    """The neighbour of a cell that is nearest to the goal, not past a corner of a wall; or the cell, where none is."""
    to_row, to_column, least = row, column, guide[row, column]
    for dr in range(-1, 2):
        for dc in range(-1, 2):
            r, c = row + dr, column + dc
            if 0 <= r < guide.shape[0] and 0 <= c < guide.shape[1] and guide[r, c] < least:
                if math.isinf(guide[row, c]) or math.isinf(guide[r, column]):
                    continue
                to_row, to_column, least = r, c, guide[r, c]
    return to_row, to_column


@kernel(no_refcount=True, examples=lambda: [(sample_world(), sample_parts()[1], 0, 1)])
def lay_home(world: PlanningContext, ways: Ways, w: int, n: int) -> int:
    """Go to the goal from the sample before ``n``, straight or, where that is much shorter, along the guide.

    How many samples there are then, -1 where no body can go.
    """
    p, n0, goal, guide = ways.places, world.number, world.goal, world.guide
    edge = COARSE * n0.cell
    while True:
        x, y = p[w, n - 1, 0], p[w, n - 1, 1]
        r, c, far = int((y - n0.y) / edge), int((x - n0.x) / edge), math.inf
        if 0 <= r < guide.shape[0] and 0 <= c < guide.shape[1]:
            far = guide[r, c]
        straight = math.hypot(goal[0] - x, goal[1] - y)
        if math.isinf(far) or far <= _STRAIGHT * straight + 2.0 * edge:
            m = lay_piece(world, ways, w, n, goal[0], goal[1])
            if m > 0 or math.isinf(far) or straight < 2.0 * edge:
                return m
        m = -1
        for stride in (_STRIDE, 1):  # a longer piece may cut a corner
            to_r, to_c = r, c
            for _ in range(stride):
                to_r, to_c = next_cell(guide, to_r, to_c)
            if (to_r, to_c) == (r, c):
                return lay_piece(world, ways, w, n, goal[0], goal[1])
            m = lay_piece(world, ways, w, n, n0.x + (to_c + 0.5) * edge, n0.y + (to_r + 0.5) * edge)
            if m > 0:
                break
        if m < 0:
            return -1
        n = m


@kernel(no_refcount=True, examples=lambda: [(sample_world(), sample_parts()[1], 0, np.zeros(WAY_DRAWS), 0)])
def lay_way(world: PlanningContext, ways: Ways, w: int, draws: Array, first: int) -> bool:
    """Lay a way to the goal into row ``w``, from its first samples on, or from the start; whether the body can go it.

    The number of its straight pieces is geometric with p = 0.5; each corner is the middle of start and goal and a
    vector whose components lie within plus and minus their distance.  Herms 2004.
    """
    n0, p, goal, n = world.number, ways.places, world.goal, first
    if first == 0:
        z = body_height(world.body, n0.x, n0.y, n0.cell, world.start[0], world.start[1])
        if math.isnan(z):
            return False
        p[w, 0, 0], p[w, 0, 1], p[w, 0, 2], n = world.start[0], world.start[1], z, 1
    x, y = p[w, n - 1, 0], p[w, n - 1, 1]
    far = math.hypot(goal[0] - x, goal[1] - y)
    corners = min(math.floor(-math.log2(max(1.0 - draws[0], 1e-12))), CORNERS)
    for k in range(corners):
        ex = 0.5 * (x + goal[0]) + (2.0 * draws[1 + 2 * k] - 1.0) * far
        ey = 0.5 * (y + goal[1]) + (2.0 * draws[2 + 2 * k] - 1.0) * far
        n = lay_piece(world, ways, w, n, ex, ey)
        if n < 0:
            return False
    n = lay_home(world, ways, w, n)
    if n > 0:
        ways.size[w] = n
    return n > 0


@kernel(no_refcount=True, examples=lambda: [(sample_world(), sample_parts()[1], 0, 1, 0.5, 0.5)])
def bend_way(world: PlanningContext, ways: Ways, w: int, first: int, u: float, v: float) -> bool:
    """Lay a way anew after its first samples: some way off to one side, then straight to the goal; whether it can be.

    If not, samples after the first ones are lost.
    """
    p, goal, near = ways.places, world.goal, world.number.bend
    x, y = p[w, first - 1, 0], p[w, first - 1, 1]
    angle = math.atan2(goal[1] - y, goal[0] - x) + triangular(u, -_ASIDE, 0.0, _ASIDE)
    far = STEP * max(round(near * (0.2 + 0.8 * v) / STEP), 1)  # whole samples: they are as far apart as elsewhere
    n = first
    if math.hypot(goal[0] - x, goal[1] - y) > far:
        n = lay_piece(world, ways, w, n, x + far * math.cos(angle), y + far * math.sin(angle))
        if n < 0:
            return False
    n = lay_home(world, ways, w, n)
    if n > 0:
        ways.size[w] = n
    return n > 0


@kernel(examples=lambda: [(sample_world(), sample_parts()[1], 0, np.uint64(1), 1, 0)])
def draw_way(world: PlanningContext, ways: Ways, w: int, key: np.uint64, tries: int, first: int) -> bool:
    """Lay ways until the body can go along one."""
    draws = np.empty(WAY_DRAWS)
    for k in range(tries):
        own = key_of(key, k)
        for m in range(WAY_DRAWS):
            draws[m] = uniform(own, m)
        if lay_way(world, ways, w, draws, first):
            return True
    return False
