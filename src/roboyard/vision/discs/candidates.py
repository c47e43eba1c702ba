"""Places where discs may be: where many edges look at one another from all sides.

Each edge of the picture at half its size votes for the middles of all discs that it may belong to: the places up to the
largest radius away, on its light side.  It is the gradient's Hough transform without a third axis for the radius
(Loy and Zelinsky, "Fast radial symmetry for detecting points of interest", PAMI 2003): tilt, and edges that clutter
takes away, cost votes but not the place.  Small and large discs are voted for apart, since these get more votes.
"""

from __future__ import annotations

import math

import numpy as np

from roboyard.compute import kernel
from roboyard.geometry.arrays import I32, I64, U8, Array


def _examples() -> list[tuple[object, ...]]:
    return [(np.zeros((8, 8), np.uint8), 3.0, np.ones((2, 2)), np.zeros((2, 8, 3)), np.zeros(2, np.int64))]


@kernel(examples=_examples, error_model="numpy")
def vote(half: U8, least: float, radii: Array, out: Array, counts: I64) -> None:
    """Places with the most votes, for each range of radii.

    Args:
        half: (h, w), light where discs are.
        least: Slope of an edge [grey levels a pixel].
        radii: (n, 2) least shorter and greatest longer half axis [px of ``half``].
        out: (n, most, 3) column and row [px of ``half``], votes; the most votes first. Written.
        counts: (n,) how many places of each range there are. Written.
    """
    height, width = half.shape
    votes = np.zeros((len(radii), height, width), np.int32)
    bound = (8.0 * least) ** 2
    for row in range(1, height - 1):
        for column in range(1, width - 1):
            # Scharr's or Sobel's weights turn the direction by less than the votes' grid: Sobel's will do.
            a, b, c = int(half[row - 1, column - 1]), int(half[row - 1, column]), int(half[row - 1, column + 1])
            d, f = int(half[row, column - 1]), int(half[row, column + 1])
            g, h, i = int(half[row + 1, column - 1]), int(half[row + 1, column]), int(half[row + 1, column + 1])
            gx = float(c + 2 * f + i - a - 2 * d - g)
            gy = float(g + 2 * h + i - a - 2 * b - c)
            size = gx * gx + gy * gy
            if size < bound:
                continue
            size = math.sqrt(size)
            gx, gy = gx / size, gy / size
            for k in range(len(radii)):
                x, y = column + radii[k, 0] * gx + 0.5, row + radii[k, 0] * gy + 0.5
                for _ in range(math.ceil(radii[k, 1] - radii[k, 0]) + 1):
                    if 0.0 <= x < width and 0.0 <= y < height:
                        votes[k, int(y), int(x)] += 1
                    x, y = x + gx, y + gy
    for k in range(len(radii)):
        counts[k] = _peaks(votes[k], 0.9 * math.pi * radii[k, 0], out.shape[1], out[k])


def _peak_examples() -> list[tuple[object, ...]]:
    return [(np.zeros((8, 8), np.int32), 3.0, 8, np.zeros((8, 3)))]


@kernel(examples=_peak_examples, error_model="numpy")
def _peaks(votes: I32, least: float, most: int, out: Array) -> int:
    """Largest sums of 3 × 3 votes, none beside a larger one."""
    height, width = votes.shape
    sums = np.zeros((height, width), np.int32)
    for row in range(1, height - 1):
        for column in range(width):
            sums[row, column] = votes[row - 1, column] + votes[row, column] + votes[row + 1, column]
        before = sums[row, 0]
        for column in range(1, width - 1):
            own = sums[row, column]
            sums[row, column] = before + own + sums[row, column + 1]
            before = own
        sums[row, 0] = sums[row, width - 1] = 0
    count = 0
    for row in range(2, height - 2):
        for column in range(2, width - 2):
            own = sums[row, column]
            if own < least or (count == most and own <= out[most - 1, 2]):
                continue
            first = True
            for j in range(-2, 3):
                for i in range(-2, 3):
                    other = sums[row + j, column + i]
                    # of equal neighbours the first one
                    if other > own or (other == own and (j < 0 or (j == 0 and i < 0))):
                        first = False
            if not first:
                continue
            place = count if count < most else most - 1
            while place > 0 and out[place - 1, 2] < own:
                out[place] = out[place - 1]
                place -= 1
            # the middle of the votes around
            weight, x, y = 0.0, 0.0, 0.0
            for j in range(-1, 2):
                for i in range(-1, 2):
                    weight += votes[row + j, column + i]
                    x += i * votes[row + j, column + i]
                    y += j * votes[row + j, column + i]
            out[place, 0], out[place, 1], out[place, 2] = column + x / weight, row + y / weight, own
            count = min(count + 1, most)
    return count
