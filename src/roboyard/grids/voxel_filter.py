"""Voxel filter: one averaged point (and color) per voxel."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from roboyard.compute import kernel


@dataclass(frozen=True, slots=True)
class VoxelPoints:
    """Points averaged by voxel.

    Attributes:
        points: (n, 3) mean of the points in each voxel [m].
        keys: (n, 3) voxel indices; voxel (0, 0, 0) has its minimum corner at the origin.
        colors: (n, 3) mean colors; None without colors.
    """

    points: NDArray[np.float64]
    keys: NDArray[np.int64]
    colors: NDArray[np.uint8] | None


def voxel_downsample(points: NDArray[np.float64], colors: NDArray[np.uint8] | None, resolution: float) -> VoxelPoints:
    """Downsample to one point per occupied voxel, in the order of the voxels' first points.

    Args:
        points: (n, 3) finite points [m].
        colors: (n, 3) colors, or None.
        resolution: Edge length of a voxel [m].
    """
    color_array = np.zeros((0, 3), dtype=np.uint8) if colors is None else colors
    mean, keys, mean_colors = average_by_voxel(
        np.ascontiguousarray(points), np.ascontiguousarray(color_array), resolution
    )
    return VoxelPoints(mean, keys, None if colors is None else mean_colors)


@kernel(examples=lambda: [(np.zeros((2, 3)), np.zeros((2, 3), np.uint8), 0.1)])
def average_by_voxel(
    points: NDArray[np.float64], colors: NDArray[np.uint8], resolution: float
) -> tuple[NDArray[np.float64], NDArray[np.int64], NDArray[np.uint8]]:
    """Compute mean points (m, 3), voxels (m, 3) and mean colors (m, 3) of points that share voxels.

    Args:
        points: (n, 3) points [m].
        colors: (n, 3) colors, or (0, 3) without colors.
        resolution: Edge length of a voxel [m].
    """
    count, groups = len(points), 0
    factor = 1.0 / resolution
    size = 16
    while size < 2 * count:
        size *= 2
    slots = np.full(size, -1, np.int64)
    counts = np.zeros(count, np.int64)
    sums, color_sums, keys = np.zeros((count, 3)), np.zeros((count, 3), np.int64), np.empty((count, 3), np.int64)
    for i in range(count):
        x = np.int64(math.floor(points[i, 0] * factor))
        y = np.int64(math.floor(points[i, 1] * factor))
        z = np.int64(math.floor(points[i, 2] * factor))
        slot = (x * 73856093 ^ y * 19349663 ^ z * 83492791) & (size - 1)  # Teschner et al. 2003
        while slots[slot] >= 0:
            other = keys[slots[slot]]
            if other[0] == x and other[1] == y and other[2] == z:
                break
            slot = (slot + 1) & (size - 1)
        group = slots[slot]
        if group < 0:
            group = groups
            groups += 1
            slots[slot] = group
            keys[group, 0], keys[group, 1], keys[group, 2] = x, y, z
        counts[group] += 1
        for axis in range(3):
            sums[group, axis] += points[i, axis]
            if len(colors) > 0:
                color_sums[group, axis] += colors[i, axis]
    mean_colors = np.zeros((groups, 3), np.uint8)
    for group in range(groups):
        for axis in range(3):
            sums[group, axis] /= counts[group]
            mean_colors[group, axis] = np.uint8((color_sums[group, axis] + counts[group] // 2) // counts[group])
    return sums[:groups].copy(), keys[:groups].copy(), mean_colors
