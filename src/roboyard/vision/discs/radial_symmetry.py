"""Disc candidates by radial symmetry voting (Loy and Zelinsky, PAMI 2003).

Each edge pixel of the image at half its size votes for the centers of all discs that it may belong to: the pixels up
to the largest radius away, on its light side.  It is a gradient Hough transform without a third axis for the radius
(Loy and Zelinsky, "Fast radial symmetry for detecting points of interest", PAMI 2003): tilt, and edges that clutter
hides, reduce the votes but do not move the center.  Small and large discs have separate votes.
"""

from __future__ import annotations

import math

import numpy as np

from roboyard.compute import kernel
from roboyard.geometry.arrays import I32, I64, U8, Array


def _vote_examples() -> list[tuple[object, ...]]:
    return [(np.zeros((8, 8), np.uint8), 3.0, np.ones((2, 2)), np.zeros((2, 8, 3)), np.zeros(2, np.int64))]


@kernel(examples=_vote_examples, error_model="numpy")
def vote_radial_symmetry(
    half_image: U8, min_gradient: float, radius_ranges: Array, candidates: Array, candidate_counts: I64
) -> None:
    """Find the pixels with the most votes, for each range of radii.

    Args:
        half_image: (h, w), light where discs are.
        min_gradient: Smallest gradient of an edge [gray levels per pixel].
        radii: (n, 2) smallest and largest radius of each range [px of ``half_image``].
        candidates: (n, count, 3) column and row [px of ``half_image``], votes; the most votes first. Written.
        counts: (n,) number of candidates of each range. Written.
    """
    height, width = half_image.shape
    votes = np.zeros((len(radius_ranges), height, width), np.int32)
    min_squared_magnitude = (8.0 * min_gradient) ** 2
    for row in range(1, height - 1):
        for column in range(1, width - 1):
            # Scharr's and Sobel's directions differ by less than the pixels of the votes: Sobel's are sufficient.
            a, b, c = (
                int(half_image[row - 1, column - 1]),
                int(half_image[row - 1, column]),
                int(half_image[row - 1, column + 1]),
            )
            d, f = int(half_image[row, column - 1]), int(half_image[row, column + 1])
            g, h, i = (
                int(half_image[row + 1, column - 1]),
                int(half_image[row + 1, column]),
                int(half_image[row + 1, column + 1]),
            )
            gx = float(c + 2 * f + i - a - 2 * d - g)
            gy = float(g + 2 * h + i - a - 2 * b - c)
            magnitude = gx * gx + gy * gy
            if magnitude < min_squared_magnitude:
                continue
            magnitude = math.sqrt(magnitude)
            gx, gy = gx / magnitude, gy / magnitude
            for k in range(len(radius_ranges)):
                x, y = column + radius_ranges[k, 0] * gx + 0.5, row + radius_ranges[k, 0] * gy + 0.5
                for _ in range(math.ceil(radius_ranges[k, 1] - radius_ranges[k, 0]) + 1):
                    if 0.0 <= x < width and 0.0 <= y < height:
                        votes[k, int(y), int(x)] += 1
                    x, y = x + gx, y + gy
    for k in range(len(radius_ranges)):
        candidate_counts[k] = _find_vote_peaks(
            votes[k], 0.9 * math.pi * radius_ranges[k, 0], candidates.shape[1], candidates[k]
        )


def _peak_examples() -> list[tuple[object, ...]]:
    return [(np.zeros((8, 8), np.int32), 3.0, 8, np.zeros((8, 3)))]


@kernel(examples=_peak_examples, error_model="numpy")
def _find_vote_peaks(votes: I32, min_votes: float, max_peaks: int, peaks: Array) -> int:
    """Find the local maxima of the sums of 3 × 3 votes."""
    height, width = votes.shape
    sums = np.zeros((height, width), np.int32)
    for row in range(1, height - 1):
        for column in range(width):
            sums[row, column] = votes[row - 1, column] + votes[row, column] + votes[row + 1, column]
        previous_sum = sums[row, 0]
        for column in range(1, width - 1):
            center_sum = sums[row, column]
            sums[row, column] = previous_sum + center_sum + sums[row, column + 1]
            previous_sum = center_sum
        sums[row, 0] = sums[row, width - 1] = 0
    count = 0
    for row in range(2, height - 2):
        for column in range(2, width - 2):
            center_sum = sums[row, column]
            if center_sum < min_votes or (count == max_peaks and center_sum <= peaks[max_peaks - 1, 2]):
                continue
            is_peak = True
            for j in range(-2, 3):
                for i in range(-2, 3):
                    neighbor_sum = sums[row + j, column + i]
                    # of equal neighbors the first one
                    if neighbor_sum > center_sum or (neighbor_sum == center_sum and (j < 0 or (j == 0 and i < 0))):
                        is_peak = False
            if not is_peak:
                continue
            rank = count if count < max_peaks else max_peaks - 1
            while rank > 0 and peaks[rank - 1, 2] < center_sum:
                peaks[rank] = peaks[rank - 1]
                rank -= 1
            # mean position of the votes around the maximum
            weight, x, y = 0.0, 0.0, 0.0
            for j in range(-1, 2):
                for i in range(-1, 2):
                    weight += votes[row + j, column + i]
                    x += i * votes[row + j, column + i]
                    y += j * votes[row + j, column + i]
            peaks[rank, 0], peaks[rank, 1], peaks[rank, 2] = column + x / weight, row + y / weight, center_sum
            count = min(count + 1, max_peaks)
    return count
