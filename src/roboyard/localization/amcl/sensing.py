"""How well particles explain a scan: the three models of ROS's amcl, in logarithms."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from roboyard.geometry import SE2
from roboyard.geometry.arrays import Array
from roboyard.grids import OCCUPIED_THRESHOLD, LikelihoodField, OccupancyGrid, simulate_scans
from roboyard.localization.amcl.config import AmclConfig
from roboyard.mapping import Scan


@dataclass(frozen=True, slots=True)
class Sensed:
    """What is used of a scan.

    Attributes:
        points: (m, 2) hits in the base's frame [m], in the order of the beams.
        ranges: (b,) all beams that say something [m]; infinite where nothing was hit.
        angles: (b,) their directions in the laser's frame [rad].
        range_max: From here on nothing is seen [m].
        T_base_laser: Where the laser sits.
    """

    points: Array
    ranges: Array
    angles: Array
    range_max: float
    T_base_laser: SE2

    def only(self, kept: NDArray[np.bool_]) -> Sensed:
        """What remains with some of the beams (b,)."""
        hits = np.isfinite(self.ranges)
        return Sensed(self.points[kept[hits]], self.ranges[kept], self.angles[kept], self.range_max, self.T_base_laser)

    def laser_poses(self, poses: Array) -> Array:
        """Poses (n, 3) of the laser in the map when the base is at ``poses`` (n, 3)."""
        mount, cos, sin = self.T_base_laser, np.cos(poses[:, 2]), np.sin(poses[:, 2])
        x, y = poses[:, 0] + cos * mount.x - sin * mount.y, poses[:, 1] + sin * mount.x + cos * mount.y
        return np.column_stack([x, y, poses[:, 2] + mount.theta])

    def some(self, count: int) -> Array:
        """At most so many of the points, evenly spread over the beams."""
        return self.points[evenly(len(self.points), count)]


def evenly(length: int, count: int) -> NDArray[np.int64]:
    """Indices of at most ``count`` of ``length`` things in a row, at equal distances."""
    if length <= count:
        return np.arange(length)
    return ((np.arange(count) + 0.5) * (length / count)).astype(np.int64)


def sense(scan: Scan, config: AmclConfig) -> Sensed:
    """What a scan says; NaN, zero, and what is nearer than the least range says nothing."""
    low = config.laser_min_range if config.laser_min_range >= 0.0 else scan.range_min
    high = min(config.laser_max_range, scan.range_max) if config.laser_max_range >= 0.0 else scan.range_max
    ranges, angles = scan.ranges.astype(np.float64), scan.angles
    says = ~np.isnan(ranges) & (ranges > max(low, 0.0))
    ranges, angles = ranges[says], angles[says]
    ranges[ranges >= high] = math.inf
    hits = np.isfinite(ranges)
    away = np.column_stack([ranges[hits] * np.cos(angles[hits]), ranges[hits] * np.sin(angles[hits])])
    return Sensed(scan.T_base_laser @ away, ranges, angles, high, scan.T_base_laser)


class SensorModel:
    """Log-likelihoods of scans in a map.

    Args:
        grid: The map.
        config: Model and its shares.

    Attributes:
        field: Distances to the map's surfaces.
        solid: (rows, columns) cells that stop a beam.

    Raises:
        InputError: the map has no occupied cell.
    """

    def __init__(self, grid: OccupancyGrid, config: AmclConfig) -> None:
        self.config = config
        self.grid = grid
        self.field = LikelihoodField.from_grid(grid, limit=config.laser_likelihood_max_dist)
        self.solid = np.ascontiguousarray(grid.cells >= OCCUPIED_THRESHOLD)
        self._tables: dict[float, NDArray[np.float32]] = {}
        c = config
        # The same numbers that ROS's amcl adds up: 1 + sum of cubes for likelihood_field.
        self._cubes = self.field.score_table(lambda d: (c.z_hit * np.exp(-(d**2) / (2.0 * c.sigma_hit**2)) + 0.01) ** 3)
        self._far = self.field.score_table(lambda d: d > c.beam_skip_distance)

    def log_field(self, range_max: float) -> NDArray[np.float32]:
        """Table of log p of a point in each cell; beams longer than ``range_max`` [m] do not come back."""
        c = self.config
        chance = c.z_rand / (range_max if math.isfinite(range_max) and range_max > 0.0 else 100.0)
        if chance not in self._tables:
            if len(self._tables) >= 8:  # lasers whose limits change all the time must not fill the memory
                self._tables.clear()
            floor = max(chance, 1e-9)
            spread = 2.0 * c.sigma_hit**2
            self._tables[chance] = self.field.score_table(lambda d: np.log(c.z_hit * np.exp(-(d**2) / spread) + floor))
        return self._tables[chance]

    def log_weights(self, particles: Array, sensed: Sensed) -> tuple[Array, Array]:
        """Log-likelihood (n,) of each particle, and (n,) the same for one beam on average.

        The second does not depend on how many beams there are: averages of its exponential tell how well the map
        explains what is seen.
        """
        c = self.config
        if c.laser_model_type == "beam":
            total, count = self._beam(particles, sensed)
            return total, total / max(count, 1)
        points = sensed.some(c.max_beams)
        if not len(points):
            nothing = np.zeros(len(particles))
            return nothing, nothing
        if c.laser_model_type == "likelihood_field":
            sums = self.field.score_poses(self._cubes, particles, points).astype(np.float64)
            return np.log1p(sums), np.log(np.maximum(sums / len(points), 1e-12)) / 3.0
        points = self._kept(particles, points) if c.do_beamskip else points
        sums = self.field.score_poses(self.log_field(sensed.range_max), particles, points).astype(np.float64)
        return sums * c.beam_independence, sums / len(points)

    def _kept(self, particles: Array, points: Array) -> Array:
        """Points without those that most particles cannot explain, unless that were nearly all."""
        c = self.config
        share = np.array([1.0 - self.field.score_poses(self._far, particles, point).mean() for point in points])
        kept = share >= c.beam_skip_threshold
        return points[kept] if kept.mean() >= 1.0 - c.beam_skip_error_threshold and kept.any() else points

    def _beam(self, particles: Array, sensed: Sensed) -> tuple[Array, int]:
        """Probabilistic Robotics, table 6.1, with the cubes' place taken by logarithms."""
        c = self.config
        chosen = evenly(len(sensed.ranges), c.max_beams)
        if not len(chosen):
            return np.zeros(len(particles)), 0
        high = sensed.range_max if math.isfinite(sensed.range_max) else 100.0
        measured, angles = np.minimum(sensed.ranges[chosen], high), sensed.angles[chosen]
        poses = sensed.laser_poses(particles)
        expected = np.minimum(simulate_scans(self.solid, self.grid.geometry, poses, angles, high), high)
        error = measured - expected
        p = c.z_hit * np.exp(-(error**2) / (2.0 * c.sigma_hit**2))
        p += np.where(error < 0.0, c.z_short * c.lambda_short * np.exp(-c.lambda_short * measured), 0.0)
        p += np.where(measured >= high, c.z_max, c.z_rand / high)
        return c.beam_independence * np.log(np.maximum(p, 1e-12)).sum(axis=1), len(chosen)
