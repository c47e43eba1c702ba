"""Kernel: A* over poses that a base can really drive through (Dolgov, Thrun, Montemerlo, Diebel 2010)."""

from __future__ import annotations

import heapq
import math

import numpy as np
from numpy.typing import NDArray

from roboyard.compute import kernel
from roboyard.navigation.planning.ground import Ground, smallest
from roboyard.navigation.planning.motions import FORWARDS, ON_THE_SPOT, direct, moved, weight_along

FOUND, NOT_FOUND, SPENT = 0, 1, 2
_EMPTY = np.int64(-1)
_SPREAD = np.uint64(0x9E3779B97F4A7C15)
_SPACING = 0.9
_NEAR_RADII = 12.0
"""The way in the open is only worked out this near to the goal, in turning radii: farther off, it tells little."""
_EAGER = 1.2
"""What is left counts so many times: a way costs at most that much more than the best, and is found by far sooner."""
_LINKED = 5
"""Motions of a way that needs no search, at most."""


@kernel
def _slot(keys: NDArray[np.int64], key: int) -> int:
    """Where a key is, or would be, in an open table whose size is a power of two."""
    mask = np.uint64(len(keys) - 1)
    at = ((np.uint64(key) * _SPREAD) >> np.uint64(20)) & mask
    while keys[at] != _EMPTY and keys[at] != key:
        at = (at + np.uint64(1)) & mask
    return int(at)


@kernel
def _grown(keys: NDArray[np.int64], holders: NDArray[np.int64]) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """The same table, four times as large."""
    larger = np.full(4 * len(keys), _EMPTY)
    held = np.empty(len(larger), dtype=np.int64)
    for k in range(len(keys)):
        if keys[k] != _EMPTY:
            at = _slot(larger, keys[k])
            larger[at], held[at] = keys[k], holders[k]
    return larger, held


@kernel
def _estimate(
    pose: NDArray[np.float64],
    goals: NDArray[np.float64],
    times: NDArray[np.float32],
    base: int,
    radius: float,
    lengths: NDArray[np.float64],
    turns: NDArray[np.float64],
) -> float:
    """What is left at least: round the obstacles without regard to turning, or turning without regard to them."""
    around = float(times[int(pose[1]) + 1, int(pose[0]) + 1])
    if math.hypot(goals[0, 0] - pose[0], goals[0, 1] - pose[1]) > _NEAR_RADII * radius or len(goals) > 1:
        return around
    return max(around, direct(base, radius, pose, goals[0], lengths, turns))


def _examples() -> list[tuple[object, ...]]:
    return [
        (np.zeros((3, 3), np.uint8), smallest(), np.zeros((5, 5), np.float32), np.zeros((4, 2)), 0,
         np.zeros(3), np.zeros((1, 3)), 1, 2.0, 3, 72, np.ones(4), 10)
    ]  # fmt: skip


@kernel(examples=_examples)
def search(
    cells: NDArray[np.uint8],
    ground: Ground,
    times: NDArray[np.float32],
    border: NDArray[np.float64],
    possible: int,
    start: NDArray[np.float64],
    goals: NDArray[np.float64],
    base: int,
    radius: float,
    stride: int,
    headings: int,
    prices: NDArray[np.float64],
    budget: int,
) -> tuple[int, NDArray[np.float64], int]:
    """The cheapest motions from the start to one of the goals.

    From each pose the base drives so far that its heading changes by ``stride`` of ``headings`` directions at full
    lock, or as far straight on; it is remembered with one cell and one direction for all poses within.  From time to
    time, the oftener the nearer the goal, the way that needs no search is tried.

    Args:
        cells: See ``weight_along``.
        ground: See there.
        times: (rows + 2, columns + 2) what the goal costs from each cell, in any direction [cells].
        border: See there.
        possible: See there.
        start: (3,) pose.
        goals: (n, 3) poses, any of which will do; all at one place.
        base: See ``direct``.
        radius: See there.
        stride: Directions that a motion turns by.
        headings: Into so many directions the circle is parted.
        prices: (4,) a metre backwards costs so many times one forwards; one in a turn so many times a straight one;
            each change between forwards and backwards so many cells; each other turn than before so many.
        budget: Poses at most to look on from.

    Returns:
        ``FOUND``, ``NOT_FOUND`` or ``SPENT``; the motions (n, 2), each length [cells] and turn [rad]; and how many
        poses were looked on from.
    """
    columns = cells.shape[1]
    slice_ = 2.0 * math.pi / headings
    turn = stride * slice_
    reach = turn * radius if base != ON_THE_SPOT else 2.0
    far = 0.0
    for k in range(len(border)):
        far = max(far, math.hypot(border[k, 0], border[k, 1]))
    # motions: straight, left, right; the same backwards; turns on the spot
    lengths, turns = np.zeros(8), np.zeros(8)
    options = 3 if base == FORWARDS else 6
    for k in range(6):
        lengths[k] = reach if k < 3 else -reach
        turns[k] = (0.0, turn, -turn)[k % 3] * (1.0 if k < 3 else -1.0)
    if base == ON_THE_SPOT:
        turns[1] = turns[4] = slice_ * stride
        turns[2] = turns[5] = -slice_ * stride
        lengths[6] = lengths[7] = 0.0
        turns[6], turns[7] = slice_ * stride, -slice_ * stride
        options = 8
    most = budget * options + 2
    poses = np.empty((most, 3))
    costs = np.empty(most)
    parents = np.empty(most, dtype=np.int64)
    by = np.empty(most, dtype=np.int8)
    keys = np.full(1 << 14, _EMPTY)
    holders = np.empty(len(keys), dtype=np.int64)
    closed = np.zeros(most, dtype=np.bool_)
    linked_lengths, linked_turns = np.zeros(_LINKED), np.zeros(_LINKED)
    best_lengths, best_turns = np.zeros(_LINKED), np.zeros(_LINKED)
    here = np.empty(3)
    poses[0] = start
    costs[0], parents[0], by[0] = 0.0, -1, -1
    count = 1
    queue: list[tuple[float, int]] = [(0.0, 0)]
    best_cost, best_end = np.inf, -1
    seen, next_try = 0, 0
    outcome = NOT_FOUND
    while len(queue) > 0:
        estimate, u = heapq.heappop(queue)
        if best_cost <= estimate:
            break
        if closed[u]:
            continue
        if seen >= budget:
            outcome = SPENT
            break
        closed[u] = True
        seen += 1
        if seen >= next_try:
            left = math.hypot(goals[0, 0] - poses[u, 0], goals[0, 1] - poses[u, 1])
            next_try = seen + 1 + int(left / (4.0 * reach))
            for j in range(len(goals)):
                direct(base, radius, poses[u], goals[j], linked_lengths, linked_turns)
                cost = costs[u]
                last_length, last_turn = 0.0, 0.0
                if by[u] >= 0:
                    last_length, last_turn = lengths[by[u]], turns[by[u]]
                here[:] = poses[u]
                for k in range(_LINKED):
                    length, angle = linked_lengths[k], linked_turns[k]
                    if length == 0.0 and angle == 0.0:
                        continue
                    weight = weight_along(cells, ground, border, possible, here, length, angle, _SPACING, far)
                    cost += _price(length, angle, weight, radius, last_length, last_turn, prices)
                    if cost >= best_cost:
                        break
                    moved(here.copy(), length, angle, 1.0, here)
                    last_length, last_turn = length, angle
                if cost < best_cost:
                    best_cost, best_end = cost, u
                    best_lengths[:] = linked_lengths
                    best_turns[:] = linked_turns
        for k in range(options):
            moved(poses[u], lengths[k], turns[k], 1.0, here)
            row, column = math.floor(here[1]), math.floor(here[0])
            if row < 0 or column < 0 or row >= cells.shape[0] or column >= columns:
                continue
            if ground.weights[ground.cells[row + 1, column + 1]] == 0.0 or not times[row + 1, column + 1] < np.inf:
                continue
            facing = math.floor(here[2] / slice_ + 0.5) % headings
            key = (np.int64(row) * columns + column) * headings + facing
            at = _slot(keys, key)
            v = holders[at] if keys[at] == key else np.int64(-1)
            if v >= 0 and closed[v]:
                continue
            last_length, last_turn = 0.0, 0.0
            if by[u] >= 0:
                last_length, last_turn = lengths[by[u]], turns[by[u]]
            least = costs[u] + _price(lengths[k], turns[k], 1.0, radius, last_length, last_turn, prices)
            if v >= 0 and least >= costs[v]:
                continue
            weight = weight_along(cells, ground, border, possible, poses[u], lengths[k], turns[k], _SPACING, far)
            cost = costs[u] + _price(lengths[k], turns[k], weight, radius, last_length, last_turn, prices)
            if not cost < np.inf or (v >= 0 and cost >= costs[v]):
                continue
            v = count
            count += 1
            keys[at], holders[at] = key, v
            if 2 * count > len(keys):
                keys, holders = _grown(keys, holders)
            poses[v] = here
            costs[v], parents[v], by[v] = cost, u, k
            left = _estimate(here, goals, times, base, radius, linked_lengths, linked_turns)
            heapq.heappush(queue, (float(cost + _EAGER * left), int(v)))
    if best_end < 0:
        return outcome, np.empty((0, 2)), seen
    steps = 0
    u = best_end
    while parents[u] >= 0:
        steps += 1
        u = int(parents[u])
    motions = np.empty((steps + _LINKED, 2))
    u = best_end
    for k in range(steps - 1, -1, -1):
        motions[k, 0], motions[k, 1] = lengths[by[u]], turns[by[u]]
        u = int(parents[u])
    for k in range(_LINKED):
        if best_lengths[k] != 0.0 or best_turns[k] != 0.0:
            motions[steps, 0], motions[steps, 1] = best_lengths[k], best_turns[k]
            steps += 1
    return FOUND, motions[:steps], seen


@kernel
def _price(
    length: float, turn: float, weight: float, radius: float, last_length: float, last_turn: float,
    prices: NDArray[np.float64],
) -> float:  # fmt: skip
    """What a motion costs after another one [cells]; arguments as of ``search``."""
    way = abs(length) if length != 0.0 else radius * abs(turn)
    price = way * weight
    if length < 0.0:
        price *= prices[0]
    if turn != 0.0:
        price *= prices[1]
    if length * last_length < 0.0:
        price += prices[2]
    bend = turn / length if length != 0.0 else np.sign(turn)
    last_bend = last_turn / last_length if last_length != 0.0 else np.sign(last_turn)
    if abs(bend - last_bend) > 1e-9:
        price += prices[3]
    return price
