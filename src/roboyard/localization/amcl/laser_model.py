"""Measurement models of a laser scanner in a map: the three models of ROS's amcl, and the visibility of poses.

`LaserModel` is the contract; Probabilistic Robotics is S. Thrun, W. Burgard, D. Fox, MIT Press, 2005.  Likelihoods are
logarithms.  The visibility of a pose compares the measured ranges with those expected from the map:
beams that end on a surface support the pose, beams that pass through a wall contradict it.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from roboyard.errors import ConfigError
from roboyard.geometry import SE2
from roboyard.geometry.arrays import Array
from roboyard.grids import OCCUPIED_THRESHOLD, LikelihoodField, OccupancyGrid, simulate_scans
from roboyard.localization.amcl.config import LASER_MODELS, AmclConfig
from roboyard.mapping import LaserScan

UNLIMITED_RANGE = 100.0
"""Largest range that is assumed of a laser that states none [m]."""


@dataclass(frozen=True, slots=True)
class ScanMeasurement:
    """The valid beams of a scan.

    Attributes:
        points: (m, 2) hits in the base's frame [m], in the order of the beams.
        ranges: (b,) ranges of all valid beams [m]; infinite for beams without a hit.
        angles: (b,) directions of the beams in the laser's frame [rad].
        range_max: Range from which on the laser measures nothing [m].
        T_base_laser: Pose of the laser on the base.
    """

    points: Array
    ranges: Array
    angles: Array
    range_max: float
    T_base_laser: SE2

    def select(self, is_selected: NDArray[np.bool_]) -> ScanMeasurement:
        """Return the measurement with the selected beams (b,)."""
        hits = np.isfinite(self.ranges)
        return ScanMeasurement(
            self.points[is_selected[hits]],
            self.ranges[is_selected],
            self.angles[is_selected],
            self.range_max,
            self.T_base_laser,
        )

    def laser_poses(self, poses: Array) -> Array:
        """Return the poses (n, 3) of the laser in the map when the base is at ``poses`` (n, 3)."""
        mount, cos, sin = self.T_base_laser, np.cos(poses[:, 2]), np.sin(poses[:, 2])
        x, y = poses[:, 0] + cos * mount.x - sin * mount.y, poses[:, 1] + sin * mount.x + cos * mount.y
        return np.column_stack([x, y, poses[:, 2] + mount.theta])

    @property
    def finite_range_max(self) -> float:
        """``range_max``, or `UNLIMITED_RANGE` for a laser that states none [m]."""
        return self.range_max if math.isfinite(self.range_max) else UNLIMITED_RANGE

    def subsample(self, count: int) -> Array:
        """Return at most ``count`` of the points, evenly spaced over the beams."""
        return self.points[spaced_indices(len(self.points), count)]


def spaced_indices(length: int, count: int) -> NDArray[np.int64]:
    """Return at most ``count`` indices of a sequence of a length, at equal distances."""
    if length <= count:
        return np.arange(length)
    return ((np.arange(count) + 0.5) * (length / count)).astype(np.int64)


def prepare_scan(scan: LaserScan, config: AmclConfig) -> ScanMeasurement:
    """Return the valid beams of a scan; NaN, zero, and ranges below the minimum are invalid."""
    min_range = config.laser_min_range if config.laser_min_range >= 0.0 else scan.range_min
    max_range = min(config.laser_max_range, scan.range_max) if config.laser_max_range >= 0.0 else scan.range_max
    ranges, angles = scan.ranges.astype(np.float64), scan.angles
    is_valid = ~np.isnan(ranges) & (ranges > max(min_range, 0.0))
    ranges, angles = ranges[is_valid], angles[is_valid]
    ranges[ranges >= max_range] = math.inf
    is_hit = np.isfinite(ranges)
    hit_points = np.column_stack([ranges[is_hit] * np.cos(angles[is_hit]), ranges[is_hit] * np.sin(angles[is_hit])])
    return ScanMeasurement(scan.T_base_laser @ hit_points, ranges, angles, max_range, scan.T_base_laser)


class LaserModel(ABC):
    """Log-likelihoods of scans in a map: the contract of laser models (``nav2_amcl::Laser``).

    A class of your own derives from it, implements ``log_weights``, and is registered under a name with an entry point
    of the group ``roboyard.amcl_laser_models``; ``laser_model_type`` then accepts the name.  ``check_laser_model`` in
    ``roboyard.localization.conformance`` tests the contract:

    - Both results are finite, have one number for each particle, and depend only on its pose.
    - A scan is more likely at its true pose than a meter away from it.
    - Particles, scan and map stay unchanged; the same call gives the same bits.

    Args:
        grid: The map.
        config: Parameters of the sensor model.

    Attributes:
        field: Distances to the surfaces of the map.
        is_solid: (rows, columns) cells that stop a beam.

    Raises:
        InputError: The map has no occupied cell.
    """

    def __init__(self, grid: OccupancyGrid, config: AmclConfig) -> None:
        self.config = config
        self.grid = grid
        self.field = LikelihoodField.from_grid(grid, limit=config.laser_likelihood_max_dist)
        self.is_solid = np.ascontiguousarray(grid.cells >= OCCUPIED_THRESHOLD)
        self._log_likelihood_fields: dict[float, NDArray[np.float32]] = {}

    def log_likelihood_field(self, range_max: float) -> NDArray[np.float32]:
        """Return the table of log p of a hit in each cell; beams longer than ``range_max`` [m] have no return."""
        c = self.config
        random_density = c.z_rand / (range_max if math.isfinite(range_max) and range_max > 0.0 else UNLIMITED_RANGE)
        if random_density not in self._log_likelihood_fields:
            if len(self._log_likelihood_fields) >= 8:  # lasers whose limits change permanently must not fill the memory
                self._log_likelihood_fields.clear()
            min_density = max(random_density, 1e-9)
            double_variance = 2.0 * c.sigma_hit**2
            self._log_likelihood_fields[random_density] = self.field.score_table(
                lambda d: np.log(c.z_hit * np.exp(-(d**2) / double_variance) + min_density)
            )
        return self._log_likelihood_fields[random_density]

    @abstractmethod
    def log_weights(self, particles: Array, measurement: ScanMeasurement) -> tuple[Array, Array]:
        """Return the log-likelihood (n,) of each particle (n, 3), and (n,) the mean of one beam.

        The second does not depend on the number of beams: averages of its exponential measure how well the map explains
        the scans.
        """


def make_laser_model(grid: OccupancyGrid, config: AmclConfig) -> LaserModel:
    """Return the laser model that ``laser_model_type`` names, for a map.

    Raises:
        InputError: The map has no occupied cell.
        ConfigError: The registered object is no laser model.
    """
    model = LASER_MODELS[config.laser_model_type](grid, config)
    if not isinstance(model, LaserModel):
        raise ConfigError(
            f"laser_model_type '{config.laser_model_type}' is no laser model",
            location="amcl",
            valid="a class that derives from LaserModel",
        )
    return model


class LikelihoodFieldModel(LaserModel):
    """Laser model "likelihood_field" of ROS's amcl: 1 + the sum of cubed likelihoods of the hits."""

    def __init__(self, grid: OccupancyGrid, config: AmclConfig) -> None:
        super().__init__(grid, config)
        c = config
        self._cubed_likelihoods = self.field.score_table(
            lambda d: (c.z_hit * np.exp(-(d**2) / (2.0 * c.sigma_hit**2)) + 0.01) ** 3
        )

    def log_weights(self, particles: Array, measurement: ScanMeasurement) -> tuple[Array, Array]:
        """Return the log-likelihood (n,) of each particle (n, 3), and (n,) the mean of one beam."""
        points = measurement.subsample(self.config.max_beams)
        if not len(points):
            return np.zeros(len(particles)), np.zeros(len(particles))
        sums = self.field.score_poses(self._cubed_likelihoods, particles, points).astype(np.float64)
        return np.log1p(sums), np.log(np.maximum(sums / len(points), 1e-12)) / 3.0


class LikelihoodFieldProbModel(LaserModel):
    """Laser model "likelihood_field_prob" of ROS's amcl, with beam skipping (Probabilistic Robotics, table 6.3).

    The sum of logarithms is multiplied by ``beam_independence``: errors of neighboring beams are correlated.
    """

    def __init__(self, grid: OccupancyGrid, config: AmclConfig) -> None:
        super().__init__(grid, config)
        self._is_unexplained = self.field.score_table(lambda d: d > config.beam_skip_distance)

    def log_weights(self, particles: Array, measurement: ScanMeasurement) -> tuple[Array, Array]:
        """Return the log-likelihood (n,) of each particle (n, 3), and (n,) the mean of one beam."""
        c = self.config
        points = measurement.subsample(c.max_beams)
        if not len(points):
            return np.zeros(len(particles)), np.zeros(len(particles))
        points = self._skip_beams(particles, points) if c.do_beamskip else points
        sums = self.field.score_poses(self.log_likelihood_field(measurement.range_max), particles, points).astype(
            np.float64
        )
        return sums * c.beam_independence, sums / len(points)

    def _skip_beams(self, particles: Array, points: Array) -> Array:
        """Return the points without those that most particles cannot explain, unless nearly all would be skipped."""
        c = self.config
        explained_fractions = np.array(
            [1.0 - self.field.score_poses(self._is_unexplained, particles, point).mean() for point in points]
        )
        is_explained = explained_fractions >= c.beam_skip_threshold
        return (
            points[is_explained]
            if is_explained.mean() >= 1.0 - c.beam_skip_error_threshold and is_explained.any()
            else points
        )


class BeamModel(LaserModel):
    """Laser model "beam": Probabilistic Robotics, table 6.1, with sums of logarithms instead of cubes."""

    def log_weights(self, particles: Array, measurement: ScanMeasurement) -> tuple[Array, Array]:
        """Return the log-likelihood (n,) of each particle (n, 3), and (n,) the mean of one beam."""
        total, count = self._sum_beams(particles, measurement)
        return total, total / max(count, 1)

    def _sum_beams(self, particles: Array, measurement: ScanMeasurement) -> tuple[Array, int]:
        c = self.config
        indices = spaced_indices(len(measurement.ranges), c.max_beams)
        if not len(indices):
            return np.zeros(len(particles)), 0
        max_range = measurement.finite_range_max
        measured, angles = np.minimum(measurement.ranges[indices], max_range), measurement.angles[indices]
        poses = measurement.laser_poses(particles)
        expected = np.minimum(simulate_scans(self.is_solid, self.grid.geometry, poses, angles, max_range), max_range)
        error = measured - expected
        p = c.z_hit * np.exp(-(error**2) / (2.0 * c.sigma_hit**2))
        p += np.where(error < 0.0, c.z_short * c.lambda_short * np.exp(-c.lambda_short * measured), 0.0)
        p += np.where(measured >= max_range, c.z_max, c.z_rand / max_range)
        return c.beam_independence * np.log(np.maximum(p, 1e-12)).sum(axis=1), len(indices)


_WALL_TOLERANCE = 0.3
"""A beam that ends farther behind a mapped surface passed through it [m]."""
_THROUGH_WALL_PENALTY, _SHORT_BEAM_PENALTY = 2.0, 0.15
_MIN_REMAINING_FRACTION = 0.2


def compute_visibility_scores(model: LaserModel, poses: Array, measurement: ScanMeasurement) -> Array:
    """Return the score (n,) of poses (n, 3): fraction of explained beams minus twice the fraction through walls.

    A beam that is shorter than the map predicts does not count: it may have hit something that the map does not
    contain.
    """
    explained, through_wall = classify_beams(model, poses, measurement)
    return np.asarray(explained - _THROUGH_WALL_PENALTY * through_wall)


def drop_short_beams(
    model: LaserModel, pose: SE2, measurement: ScanMeasurement, min_shortfall: float
) -> ScanMeasurement:
    """Return a scan without beams that end more than ``min_shortfall`` [m] before the mapped surface, seen from a pose.

    People and boxes would attract the estimate to wrong walls (the distance filter of D. Fox, W. Burgard, S. Thrun,
    Markov Localization for Mobile Robots in Dynamic Environments, JAIR 11, 1999).  If hardly any beam would remain, all
    are kept.
    """
    laser_poses = measurement.laser_poses(np.array([[pose.x, pose.y, pose.theta]]))
    max_range = measurement.finite_range_max
    expected = simulate_scans(model.is_solid, model.grid.geometry, laser_poses, measurement.angles, max_range)[0]
    is_selected = ~(measurement.ranges < expected - min_shortfall) | (~np.isfinite(expected))
    return measurement.select(is_selected) if is_selected.mean() >= _MIN_REMAINING_FRACTION else measurement


def scan_consistency(explained: float, through_wall: float) -> float:
    """Return how consistent a scan is with a pose: 1, minus penalties for beams through walls and for short beams.

    Objects around a robot shorten its beams and say little about the pose; but if all beams remain shorter than
    expected for long, the pose is wrong.
    """
    return 1.0 - _THROUGH_WALL_PENALTY * through_wall - _SHORT_BEAM_PENALTY * (1.0 - explained - through_wall)


def classify_beams(model: LaserModel, poses: Array, measurement: ScanMeasurement) -> tuple[Array, Array]:
    """Return the fractions (n,) of beams that end on a surface, and of beams through walls, at poses (n, 3)."""
    indices = spaced_indices(len(measurement.ranges), model.config.max_beams)
    if not len(indices) or not len(poses):
        return np.zeros(len(poses)), np.zeros(len(poses))
    max_range = measurement.finite_range_max
    measured, angles = np.minimum(measurement.ranges[indices], max_range), measurement.angles[indices]
    laser_poses = measurement.laser_poses(poses)
    expected = np.minimum(
        simulate_scans(model.is_solid, model.grid.geometry, laser_poses, angles, max_range), max_range
    )
    geometry = model.field.geometry
    bearing = laser_poses[:, 2:] + angles
    end_points = np.stack(
        [laser_poses[:, :1] + measured * np.cos(bearing), laser_poses[:, 1:2] + measured * np.sin(bearing)], axis=-1
    )
    cells = geometry.cells_of_points(end_points)
    is_inside = geometry.contains(cells)
    cells = np.where(is_inside[..., None], cells, 0)
    surface_distances = np.where(is_inside, model.field.distances[cells[..., 0], cells[..., 1]], model.field.limit)
    is_on_surface = (surface_distances < max(0.1, 1.5 * geometry.resolution)) & (measured < max_range)
    is_explained = is_on_surface | ((measured >= max_range) & (expected >= max_range))
    is_through_wall = ~is_explained & (measured > expected + _WALL_TOLERANCE)
    return is_explained.mean(axis=1), is_through_wall.mean(axis=1)
