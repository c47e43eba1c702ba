"""What beams say about voxels: kernels that mark what they pass and where they end, and that count it in."""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

from roboyard.compute import kernel, read_only
from roboyard.mapping.octree.blocks import ORIGIN, SPREAD

FREE_MARK, HIT_MARK = 1, 2


@kernel(examples=lambda: [(np.zeros((1, 3)), read_only(np.zeros(3)), np.zeros(1, np.bool_), 0.0, 1.0)])
def within_reach(
    points: NDArray[np.float64], origin: NDArray[np.float64], ground: NDArray[np.bool_], nearest: float, farthest: float
) -> tuple[NDArray[np.int64], NDArray[np.float64]]:
    """Which points count, and where beams end that only free.

    Args:
        points: (n, 3) [m]; not finite: they know nothing.
        origin: (3,) of the sensor [m].
        ground: (n,) which are not to be marked.
        nearest: Nearer points are left out [m].
        farthest: Beams to farther points are cut there [m].

    Returns:
        Numbers (m,) of the points that are to be marked, and ends (k, 3) of the other beams [m].
    """
    near, ends = np.empty(len(points), np.int64), np.empty((len(points), 3))
    count, free = 0, 0
    for i in range(len(points)):
        x, y, z = points[i, 0] - origin[0], points[i, 1] - origin[1], points[i, 2] - origin[2]
        away = math.sqrt(x * x + y * y + z * z)
        if not (nearest <= away < math.inf):
            continue
        if away <= farthest and not ground[i]:
            near[count] = i
            count += 1
            continue
        share = farthest / away if away > farthest else 1.0
        ends[free, 0], ends[free, 1], ends[free, 2] = (
            origin[0] + share * x,
            origin[1] + share * y,
            origin[2] + share * z,
        )
        free += 1
    return near[:count].copy(), ends[:free].copy()


@kernel(
    examples=lambda: [
        (read_only(np.zeros(3)), np.zeros((1, 3)), np.zeros((1, 3), np.int64), 0, 0.1, np.zeros(3, np.int64),
         np.zeros((1, 1, 1), np.int32), np.zeros((1, 3), np.int64), np.zeros((1, 512), np.uint8),
         np.zeros(1, np.uint8), 0),
    ]
)  # fmt: skip
def mark_beams(
    origin: NDArray[np.float64],
    ends: NDArray[np.float64],
    last: NDArray[np.int64],
    first: int,
    resolution: float,
    low: NDArray[np.int64],
    table: NDArray[np.int32],
    places: NDArray[np.int64],
    marks: NDArray[np.uint8],
    touched: NDArray[np.uint8],
    count: int,
) -> tuple[int, int]:
    """Mark as free the voxels that beams pass, from the sensor's up to the one before their end's, as OctoMap does
    (``OcTreeBaseImpl::computeRayKeys``, after Amanatides and Woo 1987).

    Args:
        origin: (3,) of the sensor [m].
        ends: (n, 3) of the beams [m].
        last: (n, 3) voxels in which they end.
        first: Beam to begin with.
        resolution: Edge of a voxel [m].
        low: As `Blocks` has it, as all that follows; table, places, marks and touched are written.
        table: Covers all beams.
        places: Of blocks.
        marks: Of voxels.
        touched: Blocks.
        count: Blocks in use.

    Returns:
        How many beams are done, and how many blocks there are now: fewer than there are beams when there is no room
        for another block.
    """
    here, step = np.empty(3, np.int64), np.empty(3, np.int64)
    until, each, way = np.empty(3), np.empty(3), np.empty(3, np.float32)
    for k in range(first, len(ends)):
        # with 32 bits where OctoMap has them, or other voxels are passed where beams run along borders
        for axis in range(3):
            way[axis] = np.float32(ends[k, axis]) - np.float32(origin[axis])
        length = np.float32(math.sqrt(way[0] * way[0] + way[1] * way[1] + way[2] * way[2]))
        if length == 0.0:
            continue
        for axis in range(3):
            way[axis] /= length
            here[axis] = math.floor(origin[axis] * (1.0 / resolution)) + ORIGIN
            step[axis] = 1 if way[axis] > 0.0 else -1
            border = (here[axis] - ORIGIN + 0.5) * resolution + np.float32(step[axis] * resolution * 0.5)
            until[axis] = (border - np.float32(origin[axis])) / way[axis] if way[axis] != 0.0 else math.inf
            each[axis] = resolution / abs(way[axis]) if way[axis] != 0.0 else math.inf
        # numbers instead of arrays from here on: half the time
        x, y, z = here[0], here[1], here[2]
        last_x, last_y, last_z = last[k, 0], last[k, 1], last[k, 2]
        until_x, until_y, until_z = until[0], until[1], until[2]
        bx, by, bz, block = -1, -1, -1, -1
        under_way = x != last_x or y != last_y or z != last_z
        while under_way:
            if x >> 3 != bx or y >> 3 != by or z >> 3 != bz:
                bx, by, bz = x >> 3, y >> 3, z >> 3
                block = table[bx - low[0], by - low[1], bz - low[2]]
                if block < 0:
                    if count == len(places):
                        return k, count
                    block = count
                    table[bx - low[0], by - low[1], bz - low[2]] = block
                    places[block, 0], places[block, 1], places[block, 2] = bx, by, bz
                    count += 1
                touched[block] = 1
            voxel = SPREAD[x & 7] | (SPREAD[y & 7] << 1) | (SPREAD[z & 7] << 2)
            if marks[block, voxel] == 0:
                marks[block, voxel] = FREE_MARK
            if until_x < until_y:
                if until_x < until_z:
                    x += step[0]
                    until_x += each[0]
                else:
                    z += step[2]
                    until_z += each[2]
            elif until_y < until_z:
                y += step[1]
                until_y += each[1]
            else:
                z += step[2]
                until_z += each[2]
            # where rounding leads past the end, it is the length that tells
            there = x == last_x and y == last_y and z == last_z
            under_way = not there and min(until_x, until_y, until_z) <= length
    return len(ends), count


@kernel(
    examples=lambda: [
        (np.zeros((1, 512), np.uint8), np.zeros(1, np.uint8), np.zeros((1, 512), np.float32), 1,
         np.zeros(4, np.float32)),
    ]
)  # fmt: skip
def count_in(
    marks: NDArray[np.uint8],
    touched: NDArray[np.uint8],
    values: NDArray[np.float32],
    count: int,
    model: NDArray[np.float32],
) -> tuple[int, int]:
    """Count what is marked into the log-odds, and wipe out the marks.

    Args:
        marks: (blocks, voxels) 1 free, 2 occupied; written.
        touched: (blocks,) which have marks; written.
        values: (blocks, voxels) log-odds, NaN unknown; written.
        count: Blocks in use.
        model: (4,) log-odds of a hit, of a miss, the lowest, the highest.

    Returns:
        How many voxels were told free, and how many occupied.
    """
    hit, miss, low, high = model[0], model[1], model[2], model[3]
    free, occupied = 0, 0
    for block in range(count):
        if touched[block] == 0:
            continue
        touched[block] = 0
        for voxel in range(marks.shape[1]):
            mark = marks[block, voxel]
            if mark == 0:
                continue
            marks[block, voxel] = 0
            value = values[block, voxel]
            if math.isnan(value):
                value = np.float32(0.0)
            if mark == HIT_MARK:
                occupied += 1
                value = min(np.float32(value + hit), high)
            else:
                free += 1
                value = max(np.float32(value + miss), low)
            values[block, voxel] = value
    return free, occupied
