"""Groups of particles that lie together, and the pose of each."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from roboyard.geometry import SE2, wrap_angle
from roboyard.geometry.arrays import Array
from roboyard.localization.amcl.resampling import BIN_THETA, bins, keys

_TURNS = round(math.tau / BIN_THETA)
_NEXT = [(i, j, k) for i in (-1, 0, 1) for j in (-1, 0, 1) for k in (-1, 0, 1)]


@dataclass(frozen=True, slots=True)
class Cluster:
    """Particles in bins that touch.

    Attributes:
        weight: Its share of all.
        pose: Weighted mean; of headings the mean direction.
        covariance: (3, 3) of x, y [m²], heading [rad²].
        count: Particles.
    """

    weight: float
    pose: SE2
    covariance: Array
    count: int


def clusters(particles: Array, weights: Array) -> list[Cluster]:
    """Clusters of weighted particles (n, 3), the heaviest first."""
    every = bins(particles)
    _, first, member = np.unique(keys(every), return_index=True, return_inverse=True)
    group = _connected(every[first])[member.reshape(-1)]
    total = float(weights.sum())
    found = []
    for number in range(int(group.max(initial=-1)) + 1):
        inside = group == number
        share = weights[inside]
        mass = float(share.sum())
        if mass > 0.0:
            found.append(_cluster(particles[inside], share / mass, mass / total))
    return sorted(found, key=lambda cluster: -cluster.weight)


def _cluster(particles: Array, weights: Array, mass: float) -> Cluster:
    x, y = (float(weights @ particles[:, axis]) for axis in (0, 1))
    theta = math.atan2(float(weights @ np.sin(particles[:, 2])), float(weights @ np.cos(particles[:, 2])))
    away = np.column_stack([particles[:, 0] - x, particles[:, 1] - y, wrap_angle(particles[:, 2] - theta)])
    return Cluster(mass, SE2(x, y, theta), (away * weights[:, None]).T @ away, len(particles))


def _connected(cells: NDArray[np.int64]) -> NDArray[np.int64]:
    """Number of the group of each bin; bins that touch, even at a corner, belong together."""
    where = {tuple(cell): index for index, cell in enumerate(cells.tolist())}
    group = np.full(len(cells), -1, dtype=np.int64)
    count = 0
    for seed in range(len(cells)):
        if group[seed] >= 0:
            continue
        group[seed], open_ = count, [seed]
        while open_:
            i, j, k = cells[open_.pop()].tolist()
            for di, dj, dk in _NEXT:
                other = where.get((i + di, j + dj, (k + dk) % _TURNS))
                if other is not None and group[other] < 0:
                    group[other] = count
                    open_.append(other)
        count += 1
    return group
