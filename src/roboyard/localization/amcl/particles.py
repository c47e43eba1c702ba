"""Particles of Monte Carlo localization: their number, resampling and clusters.

Probabilistic Robotics is S. Thrun, W. Burgard, D. Fox, Probabilistic Robotics, MIT Press, 2005.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from roboyard.geometry import SE2, wrap_angle
from roboyard.geometry.arrays import Array

BIN_XY, BIN_THETA = 0.5, math.radians(10.0)
"""Size of the bins in which particles are counted [m], [rad]; as in ROS's amcl."""
_MAX_BIN_INDEX = 1 << 24
"""Bins at least this far from the origin count as one: 8000 km."""


def pose_bins(particles: Array) -> NDArray[np.int64]:
    """Return the bin (n, 3) of every particle (n, 3); headings wrap around."""
    bins = np.empty(particles.shape, dtype=np.int64)
    bins[:, :2] = np.floor(particles[:, :2] / BIN_XY)
    bins[:, 2] = np.floor(np.mod(particles[:, 2], math.tau) / BIN_THETA).astype(np.int64) % round(math.tau / BIN_THETA)
    return bins


def bin_keys(bins: NDArray[np.int64]) -> NDArray[np.int64]:
    """Return one number (n,) for each bin (n, 3), in their order: numbers sort ten times faster than rows."""
    x, y = (np.clip(bins[:, axis] + _MAX_BIN_INDEX, 0, 2 * _MAX_BIN_INDEX - 1) for axis in (0, 1))
    return np.asarray((x << 32) | (y << 7) | bins[:, 2], dtype=np.int64)


class KldParameters(NamedTuple):
    """Bounds of the number of particles by KLD sampling.

    Attributes:
        min_particles: Smallest number of particles.
        max_particles: Largest number of particles.
        error: Largest Kullback-Leibler distance between the true and the sampled distribution (``pf_err``).
        z: Upper quantile of the standard normal distribution for the probability that the bound holds (``pf_z``).
    """

    min_particles: int
    max_particles: int
    error: float
    z: float


def kld_sample_size(n_occupied: int, error: float, z: float) -> int:
    """Return the number of samples that limits the Kullback-Leibler distance to the true distribution to ``error``.

    D. Fox, Adapting the Sample Size in Particle Filters Through KLD-Sampling, IJRR 22, 2003, eq. 14.

    Args:
        n_occupied: Number of bins with at least one sample.
        error: Kullback-Leibler distance.
        z: Upper quantile of the standard normal distribution for the probability that the bound holds.
    """
    if n_occupied <= 1:
        return 1
    degrees_of_freedom = n_occupied - 1
    b = 2.0 / (9.0 * degrees_of_freedom)
    return math.ceil(degrees_of_freedom / (2.0 * error) * (1.0 - b + math.sqrt(b) * z) ** 3)


def required_particles(particles: Array, weights: Array, parameters: KldParameters, rng: np.random.Generator) -> int:
    """Return how many samples to draw from weighted particles, by KLD sampling as if they were drawn one by one."""
    min_particles, max_particles, error, z = parameters
    sampled = np.searchsorted(np.cumsum(weights), rng.random(max_particles) * weights.sum(), side="right")
    sampled = np.minimum(sampled, len(particles) - 1)
    _, first_draws = np.unique(bin_keys(pose_bins(particles))[sampled], return_index=True)
    # Before draw number i there are as many bins as first draws below i.
    first_draws.sort()
    for n_occupied, draw in enumerate(first_draws.tolist(), start=1):
        n_required = max(min_particles, kld_sample_size(n_occupied, error, z))
        next_draw = first_draws[n_occupied] if n_occupied < len(first_draws) else max_particles
        if n_required <= next_draw:
            return int(min(max(n_required, draw + 1), max_particles))
    return max_particles


def low_variance_indices(weights: Array, count: int, rng: np.random.Generator) -> NDArray[np.int64]:
    """Draw indices (count,) at equal spacing: a particle of weight w occurs floor or ceil of w · count times.

    Low-variance resampling, Probabilistic Robotics, table 4.4.
    """
    cumulative = np.cumsum(weights)
    positions = (rng.random() + np.arange(count)) * (cumulative[-1] / count)
    return np.asarray(
        np.minimum(np.searchsorted(cumulative, positions, side="right"), len(weights) - 1), dtype=np.int64
    )


def effective_sample_size(weights: Array) -> float:
    """Return the effective number of particles: 1 / sum of squares of normalized weights."""
    return float(weights.sum() ** 2 / np.sum(weights**2))


_N_HEADING_BINS = round(math.tau / BIN_THETA)
_NEIGHBOR_OFFSETS = [(i, j, k) for i in (-1, 0, 1) for j in (-1, 0, 1) for k in (-1, 0, 1)]


@dataclass(frozen=True, slots=True)
class ParticleCluster:
    """Particles in adjacent bins.

    Attributes:
        weight: Fraction of the total weight.
        pose: Weighted mean; of the headings the mean direction.
        covariance: (3, 3) of x, y [m²], heading [rad²].
        n_particles: Number of particles.
    """

    weight: float
    pose: SE2
    covariance: Array
    n_particles: int


def cluster_particles(particles: Array, weights: Array) -> list[ParticleCluster]:
    """Return the clusters of weighted particles (n, 3), the heaviest first."""
    all_bins = pose_bins(particles)
    _, first_members, bin_of_particle = np.unique(bin_keys(all_bins), return_index=True, return_inverse=True)
    labels = _label_bins(all_bins[first_members])[bin_of_particle.reshape(-1)]
    total = float(weights.sum())
    clusters = []
    for label in range(int(labels.max(initial=-1)) + 1):
        is_member = labels == label
        member_weights = weights[is_member]
        weight_sum = float(member_weights.sum())
        if weight_sum > 0.0:
            clusters.append(_make_cluster(particles[is_member], member_weights / weight_sum, weight_sum / total))
    return sorted(clusters, key=lambda cluster: -cluster.weight)


def _make_cluster(particles: Array, weights: Array, cluster_weight: float) -> ParticleCluster:
    x, y = (float(weights @ particles[:, axis]) for axis in (0, 1))
    theta = math.atan2(float(weights @ np.sin(particles[:, 2])), float(weights @ np.cos(particles[:, 2])))
    deviations = np.column_stack([particles[:, 0] - x, particles[:, 1] - y, wrap_angle(particles[:, 2] - theta)])
    return ParticleCluster(
        cluster_weight, SE2(x, y, theta), (deviations * weights[:, None]).T @ deviations, len(particles)
    )


def _label_bins(bins: NDArray[np.int64]) -> NDArray[np.int64]:
    """Return the cluster number of each bin; bins that touch, even at a corner, belong together."""
    index_of_bin = {tuple(bin_): index for index, bin_ in enumerate(bins.tolist())}
    labels = np.full(len(bins), -1, dtype=np.int64)
    n_labels = 0
    for seed in range(len(bins)):
        if labels[seed] >= 0:
            continue
        labels[seed], stack = n_labels, [seed]
        while stack:
            i, j, k = bins[stack.pop()].tolist()
            for di, dj, dk in _NEIGHBOR_OFFSETS:
                neighbor = index_of_bin.get((i + di, j + dj, (k + dk) % _N_HEADING_BINS))
                if neighbor is not None and labels[neighbor] < 0:
                    labels[neighbor] = n_labels
                    stack.append(neighbor)
        n_labels += 1
    return labels
