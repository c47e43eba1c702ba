"""Fewer points that say the same: one for each voxel, however many a camera has in it."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from roboyard.compute import kernel


@dataclass(frozen=True, slots=True)
class Thinned:
    """Points that stand for voxels.

    Attributes:
        points: (n, 3) mean of the points in each voxel [m].
        keys: (n, 3) the voxels; voxel (0, 0, 0) has its lowest corner in the origin.
        colors: (n, 3) mean colours; None if there are none.
    """

    points: NDArray[np.float64]
    keys: NDArray[np.int64]
    colors: NDArray[np.uint8] | None


def thin(points: NDArray[np.float64], colors: NDArray[np.uint8] | None, resolution: float) -> Thinned:
    """One point for each voxel that holds some, in the order in which voxels come first.

    Args:
        points: (n, 3) finite [m].
        colors: (n, 3), or None.
        resolution: Edge of a voxel [m].
    """
    given = np.zeros((0, 3), dtype=np.uint8) if colors is None else colors
    mean, keys, shades = grouped(np.ascontiguousarray(points), np.ascontiguousarray(given), resolution)
    return Thinned(mean, keys, None if colors is None else shades)


@kernel(examples=lambda: [(np.zeros((2, 3)), np.zeros((2, 3), np.uint8), 0.1)])
def grouped(
    points: NDArray[np.float64], colors: NDArray[np.uint8], resolution: float
) -> tuple[NDArray[np.float64], NDArray[np.int64], NDArray[np.uint8]]:
    """Mean points (m, 3), voxels (m, 3) and mean colours (m, 3) of points that share voxels.

    Args:
        points: (n, 3) [m].
        colors: (n, 3), or (0, 3): none.
        resolution: Edge of a voxel [m].
    """
    count, groups = len(points), 0
    factor = 1.0 / resolution
    size = 16
    while size < 2 * count:
        size *= 2
    slots = np.full(size, -1, np.int64)
    members = np.zeros(count, np.int64)
    sums, shades, keys = np.zeros((count, 3)), np.zeros((count, 3), np.int64), np.empty((count, 3), np.int64)
    for i in range(count):
        x = np.int64(math.floor(points[i, 0] * factor))
        y = np.int64(math.floor(points[i, 1] * factor))
        z = np.int64(math.floor(points[i, 2] * factor))
        at = (x * 73856093 ^ y * 19349663 ^ z * 83492791) & (size - 1)  # Teschner et al. 2003
        while slots[at] >= 0:
            other = keys[slots[at]]
            if other[0] == x and other[1] == y and other[2] == z:
                break
            at = (at + 1) & (size - 1)
        group = slots[at]
        if group < 0:
            group = groups
            groups += 1
            slots[at] = group
            keys[group, 0], keys[group, 1], keys[group, 2] = x, y, z
        members[group] += 1
        for axis in range(3):
            sums[group, axis] += points[i, axis]
            if len(colors) > 0:
                shades[group, axis] += colors[i, axis]
    mean = np.zeros((groups, 3), np.uint8)
    for group in range(groups):
        for axis in range(3):
            sums[group, axis] /= members[group]
            mean[group, axis] = np.uint8((shades[group, axis] + members[group] // 2) // members[group])
    return sums[:groups].copy(), keys[:groups].copy(), mean
