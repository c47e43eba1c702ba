"""How many particles are needed, and which ones live on."""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

from roboyard.geometry.arrays import Array

BIN_XY, BIN_THETA = 0.5, math.radians(10.0)
"""Bins that particles are counted in [m], [rad]; as in ROS's amcl."""
_HALF = 1 << 24
"""Bins this far from the origin and beyond are one: 8000 km."""


def bins(particles: Array) -> NDArray[np.int64]:
    """Bin (n, 3) of every particle (n, 3); headings go round."""
    cells = np.empty(particles.shape, dtype=np.int64)
    cells[:, :2] = np.floor(particles[:, :2] / BIN_XY)
    cells[:, 2] = np.floor(np.mod(particles[:, 2], math.tau) / BIN_THETA).astype(np.int64) % round(math.tau / BIN_THETA)
    return cells


def keys(cells: NDArray[np.int64]) -> NDArray[np.int64]:
    """One number (n,) for each bin (n, 3), in their order: sorting numbers is ten times faster than sorting rows."""
    x, y = (np.clip(cells[:, axis] + _HALF, 0, 2 * _HALF - 1) for axis in (0, 1))
    return np.asarray((x << 32) | (y << 7) | cells[:, 2], dtype=np.int64)


def kld_bound(occupied: int, error: float, z: float) -> int:
    """Samples with which the distribution over bins is nearer to the true one than ``error``.

    D. Fox, Adapting the Sample Size in Particle Filters Through KLD-Sampling, IJRR 22, 2003, eq. 14.

    Args:
        occupied: Bins with at least one sample.
        error: Kullback-Leibler distance.
        z: Upper quantile of the standard normal distribution, for the chance that this holds.
    """
    if occupied <= 1:
        return 1
    free = occupied - 1
    b = 2.0 / (9.0 * free)
    return math.ceil(free / (2.0 * error) * (1.0 - b + math.sqrt(b) * z) ** 3)


def needed(
    particles: Array, weights: Array, low: int, high: int, error: float, z: float, rng: np.random.Generator
) -> int:
    """How many samples of weighted particles to draw: by KLD-sampling, as if they were drawn one after the other."""
    drawn = np.searchsorted(np.cumsum(weights), rng.random(high) * weights.sum(), side="right")
    drawn = np.minimum(drawn, len(particles) - 1)
    _, first = np.unique(keys(bins(particles))[drawn], return_index=True)
    # Before draw number i there are as many bins as first draws below i.
    first.sort()
    for occupied, draw in enumerate(first.tolist(), start=1):
        limit = max(low, kld_bound(occupied, error, z))
        until = first[occupied] if occupied < len(first) else high
        if limit <= until:
            return int(min(max(limit, draw + 1), high))
    return high


def low_variance(weights: Array, count: int, rng: np.random.Generator) -> NDArray[np.int64]:
    """Indices (count,) drawn with equal spacing: a particle of weight w comes floor or ceil of w · count times.

    Probabilistic Robotics, table 4.4.
    """
    total = np.cumsum(weights)
    marks = (rng.random() + np.arange(count)) * (total[-1] / count)
    return np.asarray(np.minimum(np.searchsorted(total, marks, side="right"), len(weights) - 1), dtype=np.int64)


def effective(weights: Array) -> float:
    """How many particles count: 1 / sum of squares of normalised weights."""
    return float(weights.sum() ** 2 / np.sum(weights**2))
