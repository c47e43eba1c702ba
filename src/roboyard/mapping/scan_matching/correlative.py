"""Correlative scan matching: the best pose in a search window, found exactly by branch and bound.

A table holds the likelihood of a point in each cell. Coarser tables hold the maximum over blocks of cells, so one
look-up for each point bounds the score of a block of translations from above, and a block whose bound is below the best
score so far is skipped (Olson 2009; Hess et al. 2016, section V). The result equals that of an exhaustive search.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from roboyard.compute import kernel
from roboyard.geometry import SE2

N_LEVELS = 6
"""Number of levels: blocks of 1, 2, … 32 cells."""
MAX_SCORE = 255
"""Value of a cell in the middle of a surface."""


class LikelihoodPyramid(NamedTuple):
    """Likelihood field at several resolutions ("precomputed grids" of Hess et al.).

    Attributes:
        values: All levels in sequence; an entry of level k holds the maximum of a block of 2^k cells and of its
            successors along rows and columns, 0 to `MAX_SCORE`.
        shapes: (levels, 3) start of each level in ``values``, number of rows, number of columns.
        origin: (2,) x, y of the corner of cell (0, 0) [m].
        resolution: Side of a cell of level 0 [m].
    """

    values: NDArray[np.uint8]
    shapes: NDArray[np.int64]
    origin: NDArray[np.float64]
    resolution: float

    @classmethod
    def from_points(cls, points: NDArray[np.float64], resolution: float = 0.1, sigma: float = 0.1) -> LikelihoodPyramid:
        """Create the pyramid of surfaces through points (n, 2) [m]; likelihoods are Gaussian with ``sigma`` [m]."""
        margin = 3.0 * sigma
        if len(points):
            low, high = points.min(axis=0) - margin, points.max(axis=0) + margin
        else:
            low, high = np.zeros(2), np.zeros(2)
        origin = np.floor(low / resolution) * resolution
        columns, rows = (int(value) for value in np.ceil((high - origin) / resolution) + 1)
        shapes = []
        start = 0
        for level in range(N_LEVELS):
            block = 1 << level
            height, width = -(-rows // block) + 1, -(-columns // block) + 1  # one more: what reaches in from before
            shapes.append((start, height, width))
            start += height * width
        values, sizes = np.zeros(start, dtype=np.uint8), np.array(shapes, dtype=np.int64)
        fill_pyramid(values, sizes, origin, resolution, sigma, np.ascontiguousarray(points))
        return cls(values, sizes, origin, resolution)


@dataclass(frozen=True, slots=True)
class SearchWindow:
    """Window of poses that a search covers.

    Attributes:
        half_width: Half the side of the square of positions [m].
        half_angle: Half the range of headings [rad]; pi: all headings.
        angle_step: Difference of successive headings [rad].
    """

    half_width: float
    half_angle: float
    angle_step: float


@dataclass(frozen=True, slots=True)
class CorrelativeMatch:
    """Best pose ``T_map_base`` of a window, with its mean likelihood, 0 to 1."""

    pose: SE2
    score: float


def match_correlative(
    pyramid: LikelihoodPyramid, points: NDArray[np.float64], center: SE2, window: SearchWindow, min_score: float = 0.0
) -> CorrelativeMatch | None:
    """Find the pose in a window at which a scan fits best.

    Args:
        pyramid: Likelihood field of the map.
        points: (n, 2) points of the scan, in the base's frame [m].
        center: Center of the window.
        window: Size of the window.
        min_score: Mean likelihood that the best pose must exceed, 0 to 1.

    Returns:
        The best pose, or None if no pose exceeds ``min_score``.
    """
    if not len(points):
        return None
    half_count = math.ceil(min(window.half_angle, math.pi) / window.angle_step - 1e-9)
    angles = np.asarray(center.theta + window.angle_step * np.arange(-half_count, half_count + 1), dtype=np.float64)
    half_cells = math.ceil(window.half_width / pyramid.resolution - 1e-9)
    score, angle_index, row, column = branch_and_bound(
        pyramid, np.ascontiguousarray(points), np.array([center.x, center.y]), angles, half_cells,
        min_score * MAX_SCORE * len(points),
    )  # fmt: skip
    if angle_index < 0:
        return None
    x, y = center.x + column * pyramid.resolution, center.y + row * pyramid.resolution
    return CorrelativeMatch(SE2(x, y, float(angles[angle_index])), score / (MAX_SCORE * len(points)))


def _example_fill() -> Iterable[tuple[Any, ...]]:
    yield np.zeros(64, dtype=np.uint8), np.zeros((N_LEVELS, 3), dtype=np.int64), np.zeros(2), 0.1, 0.1, np.zeros((3, 2))


@kernel(examples=_example_fill)
def fill_pyramid(
    values: NDArray[np.uint8],
    shapes: NDArray[np.int64],
    origin: NDArray[np.float64],
    resolution: float,
    sigma: float,
    points: NDArray[np.float64],
) -> None:
    """Write the likelihood around each point into level 0, and the maxima of blocks into the levels above.

    Entry (r, c) of level k covers the cells [(r-1) b, (r+1) b - 1) along rows and likewise along columns, with b = 2^k:
    wherever in its block a window of b cells begins that lies below entry r, all of it is covered.
    """
    reach = math.ceil(2.5 * sigma / resolution)
    rows, columns = shapes[0, 1], shapes[0, 2]
    for i in range(len(points)):
        px, py = (points[i, 0] - origin[0]) / resolution, (points[i, 1] - origin[1]) / resolution
        column, row = math.floor(px), math.floor(py)
        for r in range(max(row - reach, 0), min(row + reach + 1, rows - 1)):
            for c in range(max(column - reach, 0), min(column + reach + 1, columns - 1)):
                dx, dy = (c + 0.5 - px) * resolution, (r + 0.5 - py) * resolution
                value = np.uint8(MAX_SCORE * math.exp(-0.5 * (dx * dx + dy * dy) / (sigma * sigma)))
                offset = (r + 1) * columns + c + 1
                values[offset] = max(values[offset], value)
    for level in range(1, len(shapes)):
        start, height, width = shapes[level, 0], shapes[level, 1], shapes[level, 2]
        below, rows, columns = shapes[level - 1, 0], shapes[level - 1, 1], shapes[level - 1, 2]
        for r in range(height):
            for c in range(width):
                best = np.uint8(0)
                # entry r covers [(r-1)2b', (r+1)2b'-1) with b' the block below: entries 2r-1 .. 2r+1 of it cover
                # [(2r-2)b', (2r+2)b'-1), the same
                for rr in range(max(2 * r - 1, 0), min(2 * r + 2, rows)):
                    for cc in range(max(2 * c - 1, 0), min(2 * c + 2, columns)):
                        best = max(best, values[below + rr * columns + cc])
                values[start + r * width + c] = best


def _example_search() -> Iterable[tuple[Any, ...]]:
    pyramid = LikelihoodPyramid(np.zeros(64, dtype=np.uint8), np.zeros((N_LEVELS, 3), dtype=np.int64), np.zeros(2), 0.1)
    yield pyramid, np.zeros((3, 2)), np.zeros(2), np.zeros(3), 4, 0.0


@kernel
def block_score(
    values: NDArray[np.uint8],
    shapes: NDArray[np.int64],
    level: int,
    cells: NDArray[np.int64],
    row: int,
    column: int,
) -> int:
    """Return an upper bound of the score of the 2^level translations that start at (row, column); exact at level 0."""
    start, height, width = shapes[level, 0], shapes[level, 1], shapes[level, 2]
    total = 0
    for i in range(len(cells)):
        r, c = ((cells[i, 0] + row) >> level) + 1, ((cells[i, 1] + column) >> level) + 1
        if 0 <= r < height and 0 <= c < width:
            total += values[start + r * width + c]
    return total


@kernel(examples=_example_search)
def branch_and_bound(
    pyramid: LikelihoodPyramid,
    points: NDArray[np.float64],
    center: NDArray[np.float64],
    angles: NDArray[np.float64],
    half: int,
    min_score: float,
) -> tuple[int, int, int, int]:
    """Find the translation by whole cells and the rotation with the largest score, by branch and bound.

    Args:
        pyramid: Likelihood field.
        points: (n, 2) points of the scan, in the base's frame [m].
        center: (2,) center of the translations [m].
        angles: (m,) rotations [rad].
        half: Largest translation along each axis [cells].
        min_score: A score that the result must exceed.

    Returns:
        The score, the index of the rotation (-1: no score exceeds ``min_score``), and row and column of the
        translation [cells].
    """
    values, shapes, origin, resolution = pyramid.values, pyramid.shapes, pyramid.origin, pyramid.resolution
    top = 0
    while top < len(shapes) - 1 and (2 << top) <= half + 1:
        top += 1
    block = 1 << top
    n_blocks = (2 * half + 1 + block - 1) // block
    n, m = len(points), len(angles)
    cells = np.empty((m, n, 2), dtype=np.int64)
    candidates = m * n_blocks * n_blocks
    bounds = np.empty(candidates, dtype=np.int64)
    for t in range(m):
        c, s = math.cos(angles[t]), math.sin(angles[t])
        for i in range(n):
            x = center[0] + c * points[i, 0] - s * points[i, 1]
            y = center[1] + s * points[i, 0] + c * points[i, 1]
            cells[t, i, 0] = math.floor((y - origin[1]) / resolution)
            cells[t, i, 1] = math.floor((x - origin[0]) / resolution)
        for a in range(n_blocks):
            for b in range(n_blocks):
                k = (t * n_blocks + a) * n_blocks + b
                bounds[k] = block_score(values, shapes, top, cells[t], a * block - half, b * block - half)
    best, best_angle_index, best_row, best_column = math.floor(min_score), -1, 0, 0
    order = np.argsort(-bounds, kind="mergesort")
    stack = np.empty((4 * len(shapes) + 4, 4), dtype=np.int64)  # level, row, column, bound
    children = np.empty((4, 3), dtype=np.int64)
    for k in order:
        if bounds[k] <= best:
            break
        t = k // (n_blocks * n_blocks)
        stack[0, 0], stack[0, 3] = top, bounds[k]
        stack[0, 1] = (k // n_blocks) % n_blocks * block - half
        stack[0, 2] = k % n_blocks * block - half
        depth = 1
        while depth:
            depth -= 1
            level, row, column, bound = stack[depth, 0], stack[depth, 1], stack[depth, 2], stack[depth, 3]
            if bound <= best:
                continue
            if level == 0:
                best, best_angle_index, best_row, best_column = bound, t, row, column
                continue
            step = 1 << (level - 1)
            n_children = 0
            for a in range(2):
                for b in range(2):
                    r, q = row + a * step, column + b * step
                    if r > half or q > half:
                        continue
                    score = block_score(values, shapes, level - 1, cells[t], r, q)
                    if score > best:
                        insert_position = n_children
                        while (
                            insert_position > 0 and children[insert_position - 1, 0] > score
                        ):  # the best goes last: the stack gives it first
                            children[insert_position] = children[insert_position - 1]
                            insert_position -= 1
                        children[insert_position, 0], children[insert_position, 1], children[insert_position, 2] = (
                            score,
                            r,
                            q,
                        )
                        n_children += 1
            for i in range(n_children):
                stack[depth, 0], stack[depth, 3] = level - 1, children[i, 0]
                stack[depth, 1], stack[depth, 2] = children[i, 1], children[i, 2]
                depth += 1
    return best, best_angle_index, best_row, best_column
