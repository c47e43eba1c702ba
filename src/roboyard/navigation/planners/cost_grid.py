"""Kernels over traversal costs: grid of costs, line integrals, string pulling, and a bucket queue."""

from __future__ import annotations

import math
from typing import NamedTuple, Self, SupportsIndex

import numpy as np
from numpy.typing import NDArray

from roboyard.compute import kernel
from roboyard.compute.array_kernels import assign
from roboyard.navigation.costmap import LETHAL


class TraversalGrid(NamedTuple):
    """Traversal costs of a grid: a byte for each cell, and a weight for each byte.

    A wave reads the weight of each cell several times; a weight for each cell would take four times the memory, and the
    wave would wait for it during half of its time.

    Attributes:
        cells: (rows, columns) value of each cell; the border is lethal.
        weights: (256,) cost of a cell's width by value, at least 1, or 0 for impassable cells.
    """

    cells: NDArray[np.uint8]
    weights: NDArray[np.float32]

    @classmethod
    def with_border(cls, cells: NDArray[np.uint8], weights: NDArray[np.float32]) -> Self:
        """Make a grid with a border of lethal cells; ``weights[LETHAL]`` must be 0."""
        rows, columns = cells.shape
        bordered = np.full((rows + 2, columns + 2), LETHAL, dtype=np.uint8)
        bordered[1:-1, 1:-1] = cells
        return cls(bordered, weights)

    def flat_index(self, cell: tuple[int, int]) -> int:
        """Return the index in ``cells.ravel()`` of a row and column of the grid without border."""
        return int((cell[0] + 1) * self.cells.shape[1] + cell[1] + 1)


def example_grid() -> TraversalGrid:
    """Return an example for the compilation of kernels."""
    return TraversalGrid(np.zeros((5, 5), dtype=np.uint8), np.zeros(256, dtype=np.float32))


_MIN_IMPROVEMENT = 1.0 - 1e-9
"""Factor of the cost below which a change counts as an improvement; without it two paths of equal cost would alternate
forever, by rounding."""


@kernel(examples=lambda: [(example_grid(), 1.0, 1.0, 3.0, 2.0)])
def line_cost(grid: TraversalGrid, start_row: float, start_column: float, end_row: float, end_column: float) -> float:
    """Return the integral of the weight along a straight line, infinite if it touches an impassable cell.

    Args:
        grid: Traversal costs.
        start_row: Fractional row of the start; the center of cell (0, 0) is (0, 0).
        start_column: Fractional column of the start.
        end_row: Fractional row of the end.
        end_column: Fractional column of the end.
    """
    cells, weights = grid.cells, grid.weights
    r, c = np.int64(math.floor(start_row + 0.5)), np.int64(math.floor(start_column + 0.5))
    last_r, last_c = np.int64(math.floor(end_row + 0.5)), np.int64(math.floor(end_column + 0.5))
    dr, dc = end_row - start_row, end_column - start_column
    length = math.hypot(dr, dc)
    step_r, step_c = (1 if dr > 0.0 else -1), (1 if dc > 0.0 else -1)
    # fractions of the line at which it enters the next row and the next column, and between two such crossings
    next_r = (r + 0.5 * step_r - start_row) / dr if dr != 0.0 else np.inf
    next_c = (c + 0.5 * step_c - start_column) / dc if dc != 0.0 else np.inf
    row_interval = abs(1.0 / dr) if dr != 0.0 else np.inf
    column_interval = abs(1.0 / dc) if dc != 0.0 else np.inf
    fraction = cost = 0.0
    while True:
        weight = weights[cells[r, c]]
        if weight == 0.0:
            return np.inf
        if r == last_r and c == last_c:
            return float(cost + (1.0 - fraction) * length * weight)
        next_fraction = min(next_r, next_c, 1.0)
        cost += (next_fraction - fraction) * length * weight
        fraction = next_fraction
        if abs(next_r - next_c) < 1e-12:
            # through a corner: both cells beside it must be free, as for a diagonal step
            if weights[cells[r + step_r, c]] == 0.0 or weights[cells[r, c + step_c]] == 0.0:
                return np.inf
            r, c = r + step_r, c + step_c
            next_r += row_interval
            next_c += column_interval
        elif next_r < next_c:
            if r == last_r:
                return float(cost + (1.0 - fraction) * length * weight)
            r += step_r
            next_r += row_interval
        else:
            if c == last_c:
                return float(cost + (1.0 - fraction) * length * weight)
            c += step_c
            next_c += column_interval


@kernel(examples=lambda: [(example_grid(), np.ones((2, 2)), 1)])
def polyline_cost(grid: TraversalGrid, points: NDArray[np.float64], rim: int) -> float:
    """Return the sum of the costs of the straight lines between the points (n, 2) of a path; see `line_cost`.

    The kernel reads cells from row and column ``rim`` on, and up to those as far from the other edges; everything
    beyond costs as much as cell (rim, rim).
    """
    rows, columns = grid.cells.shape
    weight = float(grid.weights[grid.cells[rim, rim]])
    outside_weight = weight if weight > 0.0 else np.inf
    cost = 0.0
    for i in range(1, len(points)):
        r, c = points[i - 1, 0], points[i - 1, 1]
        dr, dc = points[i, 0] - r, points[i, 1] - c
        enter_r, leave_r = _clip_interval(r, dr, rim, rows - 1 - rim)
        enter_c, leave_c = _clip_interval(c, dc, rim, columns - 1 - rim)
        enter, leave = max(enter_r, enter_c), min(leave_r, leave_c)
        if enter > leave:
            enter = leave = 0.0
        else:
            remaining = 1.0 - leave  # 0 gives the very end, not one beside it by rounding
            end_r, end_c = points[i, 0] - remaining * dr, points[i, 1] - remaining * dc
            cost += line_cost(grid, r + enter * dr, c + enter * dc, end_r, end_c)
        outside = (1.0 - (leave - enter)) * math.hypot(dr, dc)
        if outside > 0.0:
            cost += outside * outside_weight
    return cost


@kernel
def _clip_interval(start: float, delta: float, low: float, high: float) -> tuple[float, float]:
    """Return the fractions (0 to 1) at which a line enters and leaves an interval (Liang, Barsky 1984)."""
    if delta == 0.0:
        return (0.0, 1.0) if low <= start <= high else (2.0, -1.0)
    first, last = (low - start) / delta, (high - start) / delta
    return max(min(first, last), 0.0), min(max(first, last), 1.0)


@kernel(examples=lambda: [(example_grid(), np.ones((2, 2)), 10)])
def pull_string(grid: TraversalGrid, points: NDArray[np.float64], max_iterations: int) -> NDArray[np.float64]:
    """Shorten a path: remove and move its corners wherever that makes it cheaper (string pulling).

    Args:
        grid: Traversal costs.
        points: (n, 2) rows and columns, connected by free lines.
        max_iterations: Largest number of iterations over the whole path.

    Returns:
        Corners (m, 2), start and end included, of a path that costs no more.
    """
    points = _skip_corners(grid, points)
    for _ in range(max_iterations):
        any_shifted = _shift_corners(grid, points)
        shorter = _skip_corners(grid, points)
        if not any_shifted and len(shorter) == len(points):
            break
        points = shorter
    return points


@kernel
def _skip_corners(grid: TraversalGrid, points: NDArray[np.float64]) -> NDArray[np.float64]:
    """From each corner, connect to the farthest point that a straight line reaches at no higher cost."""
    n = len(points)
    cumulative_costs = np.zeros(n)
    for i in range(1, n):
        cumulative_costs[i] = cumulative_costs[i - 1] + line_cost(
            grid, points[i - 1, 0], points[i - 1, 1], points[i, 0], points[i, 1]
        )
    corners = np.empty((n, 2))
    assign(corners[0], points[0])
    count, corner = 1, 0
    while corner < n - 1:
        next_corner = corner + 1
        last_reached, candidate = next_corner, corner + 2
        # a straight line may be free again behind the next corner: search as far again
        while candidate < n and candidate <= corner + 2 * (last_reached - corner) + 8:
            straight = line_cost(grid, points[corner, 0], points[corner, 1], points[candidate, 0], points[candidate, 1])
            if straight <= (cumulative_costs[candidate] - cumulative_costs[corner]) * (1.0 + 1e-9):
                next_corner, last_reached = candidate, candidate
            candidate += 1
        assign(corners[count], points[next_corner])
        count += 1
        corner = next_corner
    return corners[:count].copy()


@kernel
def _shift_corners(grid: TraversalGrid, points: NDArray[np.float64]) -> bool:
    """Move each corner to the best position near it, by steps from 1 to 1/16 cell; return whether any has moved."""
    any_shifted = False
    for i in range(1, len(points) - 1):
        step = 1.0
        best = line_cost(grid, points[i - 1, 0], points[i - 1, 1], points[i, 0], points[i, 1])
        best += line_cost(grid, points[i, 0], points[i, 1], points[i + 1, 0], points[i + 1, 1])
        while step > 0.05:
            is_shifted = False
            for direction in range(8):
                r = points[i, 0] + step * (1.0, 1.0, 0.0, -1.0, -1.0, -1.0, 0.0, 1.0)[direction]
                c = points[i, 1] + step * (0.0, 1.0, 1.0, 1.0, 0.0, -1.0, -1.0, -1.0)[direction]
                cost = line_cost(grid, points[i - 1, 0], points[i - 1, 1], r, c)
                if cost < best:
                    cost += line_cost(grid, r, c, points[i + 1, 0], points[i + 1, 1])
                if cost < best * _MIN_IMPROVEMENT:
                    points[i, 0], points[i, 1], best, is_shifted, any_shifted = r, c, cost, True, True
            if not is_shifted:
                step *= 0.5
    return any_shifted


BLOCK_SIZE = 64
"""Entries of a block, with its link to the block below: four lines of a processor's cache."""
BLOCK_MASK = BLOCK_SIZE - 1
"""Bits of an index that state the position in its block."""
NO_BLOCK = -1
_FREE, _USED = 0, 1


class BucketQueue(NamedTuple):
    """A priority queue of integers: a ring of stacks, one for each bucket of priorities.

    Where speed counts, kernels write out the push of ``v`` on bucket ``k`` (left) and the pop (right)::

        end = ends[k] + 1                               end = ends[k]
        if end & BLOCK_MASK == 0:                       v = blocks[end]
            end = open_block(queue, k)                  ends[k] = end - 1
        blocks[end] = v                                 if end & BLOCK_MASK == 1:
        ends[k] = end                                       close_block(queue, k)

    Attributes:
        blocks: (n,) entries in blocks of ``BLOCK_SIZE``; the first of each is the end of the block below it, or the
            next free block, or ``NO_BLOCK``.
        ends: (ring,) index of the newest entry of each bucket, or ``NO_BLOCK``; the ring is a power of two.
        pool: (2,) the first free block, or ``NO_BLOCK``; and the index from which blocks were never used.
    """

    blocks: NDArray[np.int32]
    ends: NDArray[np.int64]
    pool: NDArray[np.int64]


@kernel(examples=lambda: [(10, 3.0)])
def make_bucket_queue(capacity: int, max_lead: float) -> BucketQueue:
    """Make a queue for ``capacity`` entries, with enough buckets for a push ``max_lead`` buckets ahead."""
    ring = 1
    while ring < max_lead + 1.0:
        ring *= 2
    # each bucket may have a block that is not full, and one is being emptied; untouched memory costs nothing
    blocks = np.empty((capacity // (BLOCK_SIZE - 1) + ring + 2) * BLOCK_SIZE, dtype=np.int32)
    return BucketQueue(blocks, np.full(ring, NO_BLOCK), np.array([NO_BLOCK, 0]))


@kernel
def grow(queue: BucketQueue) -> BucketQueue:
    """Return the queue with twice as many blocks."""
    blocks = np.empty(2 * len(queue.blocks), dtype=np.int32)
    blocks[: len(queue.blocks)] = queue.blocks
    return BucketQueue(blocks, queue.ends, queue.pool)


@kernel
def has_capacity(queue: BucketQueue, n_pushes: int) -> bool:
    """Return whether there are blocks for a number of pushes."""
    return bool(queue.pool[_USED] + n_pushes * BLOCK_SIZE <= len(queue.blocks))


@kernel
def open_block(queue: BucketQueue, k: SupportsIndex) -> int:
    """Put an empty block on bucket ``k``, whose blocks are full, and return the index of its first entry."""
    blocks, ends, pool = queue
    block = pool[_FREE]
    if block == NO_BLOCK:
        block = pool[_USED]
        pool[_USED] += BLOCK_SIZE
    else:
        pool[_FREE] = blocks[block]
    blocks[block] = ends[k]
    return int(block + 1)


@kernel
def close_block(queue: BucketQueue, k: SupportsIndex) -> None:
    """Remove the uppermost block, which is empty, from bucket ``k``."""
    block = queue.ends[k]
    queue.ends[k] = queue.blocks[block]
    release_block(queue, block)


@kernel
def release_block(queue: BucketQueue, block: SupportsIndex) -> None:
    """Add a block that is in no bucket to the free ones."""
    queue.blocks[block] = queue.pool[_FREE]
    queue.pool[_FREE] = block


@kernel
def pop_all(queue: BucketQueue, k: SupportsIndex) -> int:
    """Remove all blocks from bucket ``k``, which is not empty.

    Returns:
        The end of the lowest block; from there each block links to the end of the next one, and the last to
        ``NO_BLOCK``.
    """
    end, below = queue.ends[k], np.int64(NO_BLOCK)
    queue.ends[k] = NO_BLOCK
    while end != NO_BLOCK:
        block = end - (end & BLOCK_MASK)
        after = np.int64(queue.blocks[block])
        queue.blocks[block] = below
        below, end = end, after
    return int(below)
