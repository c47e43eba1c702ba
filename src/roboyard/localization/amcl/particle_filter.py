"""Adaptive Monte Carlo localization: the pose of a base in a map from odometry and laser scans.

`Amcl` is the particle filter; `RecoveryAverages` decides when it searches the map again.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from roboyard.compute import expect_kernels
from roboyard.errors import InputError
from roboyard.geometry import SE2, wrap_angle
from roboyard.geometry.arrays import Array
from roboyard.grids import OccupancyGrid
from roboyard.grids.distance_field import squared_distance_transform, sum_scores
from roboyard.grids.ray_casting import cast_rays
from roboyard.grids.regions import label_components
from roboyard.localization.amcl.config import AmclConfig
from roboyard.localization.amcl.laser_model import (
    LaserModel,
    ScanMeasurement,
    classify_beams,
    compute_visibility_scores,
    drop_short_beams,
    make_laser_model,
    prepare_scan,
    scan_consistency,
)
from roboyard.localization.amcl.motion_models import make_motion_model
from roboyard.localization.amcl.particles import (
    KldParameters,
    cluster_particles,
    effective_sample_size,
    low_variance_indices,
    required_particles,
)
from roboyard.localization.amcl.pose_refinement import (
    VISIBILITY_WEIGHT,
    AmclEstimate,
    FreeSpace,
    PoseHypotheses,
    align_poses_kernel,
    estimate_pose,
    search_poses,
)
from roboyard.mapping import LaserScan

_LIKELIHOOD_TEMPERING = 0.3
"""Factor of a hypothesis' log-likelihood in its number of particles: a single scan must not rule out much."""
_INJECTION_STD = (0.05, math.radians(2.0))
"""Standard deviations of particles around a hypothesis [m], [rad]."""
_SINGLE_CLUSTER_WEIGHT, _NARROW_STD = 0.9, 0.3
"""The pose is certain if one cluster has this fraction of the weight, and its standard deviation is smaller [m]."""
_MIN_VISIBILITY_GAIN = 0.15
"""Least gain in the visibility score that a hypothesis needs to receive particles."""


class Amcl:
    """Particle filter for localization in a map.

    It follows ROS's amcl (KLD sampling, augmented recovery) and differs where this costs accuracy.  Without an initial
    pose, or when the weights show that the robot is lost, a search over the whole map proposes poses that explain the
    scan, instead of random particles.  The estimate is the best cluster, aligned to the map with many beams.

    Deterministic: the same calls with a generator in the same state give the same bits.

    Args:
        config: Configuration.
        rng: Generator of all random numbers.

    Attributes:
        particles: (n, 3) poses in the map: x, y [m], heading [rad].
        weights: (n,) weights, whose sum is 1.
    """

    def __init__(self, config: AmclConfig | None = None, rng: np.random.Generator | None = None) -> None:
        expect_kernels(align_poses_kernel, cast_rays, sum_scores, squared_distance_transform, label_components)
        self.config = config or AmclConfig()
        self._motion_model = make_motion_model(self.config)
        self._rng = rng or np.random.default_rng(0)
        self._laser_model: LaserModel | None = None
        self._free_space: FreeSpace | None = None
        self._reset()

    def _reset(self) -> None:
        self.particles: Array = np.zeros((0, 3))
        self.weights: Array = np.zeros(0)
        self._last_odometry: SE2 | None = None  # at the last motion update
        self._last_update_odometry: dict[str, SE2] = {}  # at the last measurement update of each laser
        self._is_pose_unknown = False  # the next scan starts a global search
        self._forced_lasers: set[str] | None = None  # lasers that have made the forced update; None: none is requested
        self._n_updates = 0
        self._recovery_averages = RecoveryAverages(self.config.recovery_alpha_slow, self.config.recovery_alpha_fast)

    @property
    def has_map(self) -> bool:
        """Whether a map has been set."""
        return self._laser_model is not None

    @property
    def is_initialized(self) -> bool:
        """Whether there is an initial pose, or a global localization has been requested."""
        return self._is_pose_unknown or len(self.particles) > 0

    def set_map(self, grid: OccupancyGrid) -> None:
        """Set the map; the particles remain.

        Raises:
            InputError: The map has no occupied cell.
        """
        self._laser_model, self._free_space = make_laser_model(grid, self.config), FreeSpace(grid)

    def set_initial_pose(self, pose: SE2, covariance: ArrayLike) -> None:
        """Set the initial pose ``T_map_base`` with its covariance (3, 3) of x, y [m²], heading [rad²].

        Raises:
            InputError: The covariance is not positive semi-definite.
        """
        matrix = np.asarray(covariance, dtype=np.float64)
        if matrix.shape != (3, 3) or not np.isfinite(matrix).all():
            raise InputError(f"a pose's covariance of shape {matrix.shape}", valid="(3, 3), finite")
        values, axes = np.linalg.eigh(0.5 * (matrix + matrix.T))
        if values.min() < -1e-9 * max(1.0, float(np.abs(values).max())):
            raise InputError("a pose's covariance with negative variances", valid="positive semi-definite")
        self._reset()
        noise = self._rng.standard_normal((self.config.max_particles, 3)) * np.sqrt(np.maximum(values, 0.0))
        self._set_particles(np.array([pose.x, pose.y, pose.theta]) + noise @ axes.T)

    def start_global_localization(self) -> None:
        """Discard the particles; the next scan starts a search over the free space of the map."""
        self._reset()
        self._is_pose_unknown = True

    def request_update(self) -> None:
        """Request an update with the next scan of every laser, even if the base has not moved."""
        self._forced_lasers = set()

    def process(self, scan: LaserScan) -> AmclEstimate | None:
        """Update the filter with a scan and its odometry.

        Returns:
            The new estimate; None if the base has not moved enough since the previous update, or the scan has too few
            hits.

        Raises:
            InputError: There is no map or no initial pose, or the scan has no odometry.
        """
        model, free_space = self._laser_model, self._free_space
        if model is None or free_space is None:
            raise InputError("there is no map", location="amcl", valid="set_map first")
        if not self.is_initialized:
            raise InputError(
                "there is no initial pose", location="amcl", valid="set_initial_pose or start_global_localization"
            )
        if scan.odometry is None:
            raise InputError(
                "a scan without odometry", location=scan.laser_name, valid="the pose of the base in its odometry"
            )
        if not self._is_update_due(scan.laser_name, scan.odometry):
            return None
        measurement = prepare_scan(scan, self.config)
        if len(measurement.points) < 3:
            return None
        if self._forced_lasers is not None:
            self._forced_lasers.add(scan.laser_name)
        self._last_update_odometry[scan.laser_name] = scan.odometry
        if self._is_pose_unknown:
            self._initialize(search_poses(model, free_space, measurement, self._rng), free_space)
        elif self._last_odometry is not None:
            step = self._last_odometry.inverse() @ scan.odometry
            self.particles = self._motion_model.sample(self.particles, step, self._rng)
        self._last_odometry = scan.odometry
        static_measurement = self._drop_dynamic_beams(model, measurement)
        self._weigh(model, static_measurement)
        estimate = estimate_pose(
            scan, cluster_particles(self.particles, self.weights), model, static_measurement, len(self.particles)
        )
        pose = estimate.T_map_base
        explained, through_wall = classify_beams(model, np.array([[pose.x, pose.y, pose.theta]]), measurement)
        self._recovery_averages.add_consistency(scan_consistency(float(explained[0]), float(through_wall[0])))
        if self._recovery_averages.update_injection_fraction(self.config.lost_fraction) > 0.0:
            self._recovery_averages.report_search(
                self._inject_particles(
                    search_poses(model, free_space, measurement, self._rng), estimate, model, measurement
                )
            )
        self._n_updates += 1
        if self._n_updates % self.config.resample_interval == 0:
            self._resample()
        return estimate

    # -- steps ---------------------------------------------------------------------------------------------------------
    def _is_update_due(self, laser: str, odometry: SE2) -> bool:
        if self._is_pose_unknown or (self._forced_lasers is not None and laser not in self._forced_lasers):
            return True
        previous = self._last_update_odometry.get(laser)
        if previous is None:
            return True
        step = previous.inverse() @ odometry
        return math.hypot(step.x, step.y) >= self.config.update_min_d or abs(step.theta) >= self.config.update_min_a

    def _set_particles(self, particles: Array) -> None:
        particles[:, 2] = wrap_angle(particles[:, 2])
        self.particles, self.weights = particles, np.full(len(particles), 1.0 / len(particles))

    def _initialize(self, hypotheses: PoseHypotheses, free_space: FreeSpace) -> None:
        """Sample particles around the hypotheses by their likelihood, and one tenth in all free space."""
        self._is_pose_unknown = False
        count = self.config.max_particles
        random_particles = free_space.sample_poses(count if not len(hypotheses.poses) else count // 10, self._rng)
        hypothesis_particles = (
            self._sample_around(hypotheses, count - len(random_particles))
            if len(hypotheses.poses)
            else np.zeros((0, 3))
        )
        self._set_particles(np.concatenate([hypothesis_particles, random_particles]))

    def _sample_around(self, hypotheses: PoseHypotheses, count: int) -> Array:
        scores = hypotheses.log_likelihoods + VISIBILITY_WEIGHT * hypotheses.visibility_scores
        weights = np.exp(_LIKELIHOOD_TEMPERING * (scores - scores.max()))
        indices = low_variance_indices(weights, count, self._rng)
        std = np.array([_INJECTION_STD[0], _INJECTION_STD[0], _INJECTION_STD[1]])
        return np.asarray(hypotheses.poses[indices] + self._rng.standard_normal((count, 3)) * std)

    def _drop_dynamic_beams(self, model: LaserModel, measurement: ScanMeasurement) -> ScanMeasurement:
        """Return the scan without beams of unmapped obstacles; the whole scan while the pose is uncertain."""
        if not self.config.dynamic_obstacle_distance:
            return measurement
        best = cluster_particles(self.particles, self.weights)[0]
        if best.weight < _SINGLE_CLUSTER_WEIGHT or float(np.trace(best.covariance[:2, :2])) > _NARROW_STD**2:
            return measurement
        return drop_short_beams(model, best.pose, measurement, self.config.dynamic_obstacle_distance)

    def _weigh(self, model: LaserModel, measurement: ScanMeasurement) -> None:
        log_weights, mean_log_weights = model.log_weights(self.particles, measurement)
        self._recovery_averages.add_weight(float(self.weights @ np.exp(mean_log_weights)))
        weights = self.weights * np.exp(log_weights - log_weights.max())
        weight_sum = float(weights.sum())
        self.weights = weights / weight_sum if weight_sum > 0.0 else np.full(len(weights), 1.0 / len(weights))

    def _inject_particles(
        self, hypotheses: PoseHypotheses, estimate: AmclEstimate, model: LaserModel, measurement: ScanMeasurement
    ) -> bool:
        """Replace particles by hypotheses that explain the scan better than the estimate; return whether any does."""
        pose = estimate.T_map_base
        is_better = (
            hypotheses.visibility_scores
            > compute_visibility_scores(model, np.array([[pose.x, pose.y, pose.theta]]), measurement)[0]
            + _MIN_VISIBILITY_GAIN
        )
        if not is_better.any():
            return False
        better_hypotheses = PoseHypotheses(
            hypotheses.poses[is_better],
            hypotheses.log_likelihoods[is_better],
            hypotheses.visibility_scores[is_better],
            hypotheses.information[is_better],
        )
        n_injected = max(1, int(self._recovery_averages.injection_fraction * len(self.particles)))
        indices = low_variance_indices(self.weights, max(1, len(self.particles) - n_injected), self._rng)
        self._set_particles(
            np.concatenate([self.particles[indices], self._sample_around(better_hypotheses, n_injected)])
        )
        return True

    def _resample(self) -> None:
        config, rng = self.config, self._rng
        is_degenerate = effective_sample_size(self.weights) < 0.5 * len(self.weights)
        if config.selective_resampling and not is_degenerate:
            return
        bounds = KldParameters(config.min_particles, config.max_particles, config.pf_err, config.pf_z)
        count = required_particles(self.particles, self.weights, bounds, rng)
        self._set_particles(self.particles[low_variance_indices(self.weights, count, rng)])

    # -- state ---------------------------------------------------------------------------------------------------------
    def save_state(self) -> dict[str, Any]:
        """Return the state as plain data, without the map and the generator."""

        def plain(pose: SE2) -> tuple[float, float, float]:
            return pose.x, pose.y, pose.theta

        return {
            "particles": self.particles.copy(),
            "weights": self.weights.copy(),
            "last_odometry": None if self._last_odometry is None else plain(self._last_odometry),
            "last_update_odometry": {laser: plain(pose) for laser, pose in self._last_update_odometry.items()},
            "is_pose_unknown": self._is_pose_unknown,
            "forced_lasers": None if self._forced_lasers is None else sorted(self._forced_lasers),
            "n_updates": self._n_updates,
            "recovery_averages": self._recovery_averages.save_state(),
        }

    def load_state(self, state: dict[str, Any]) -> None:
        """Restore the state that ``save_state`` returned."""
        self.particles, self.weights = np.array(state["particles"]), np.array(state["weights"])
        self._last_odometry = None if state["last_odometry"] is None else SE2(*state["last_odometry"])
        self._last_update_odometry = {laser: SE2(*pose) for laser, pose in state["last_update_odometry"].items()}
        self._is_pose_unknown, self._n_updates = state["is_pose_unknown"], state["n_updates"]
        self._forced_lasers = None if state["forced_lasers"] is None else set(state["forced_lasers"])
        self._recovery_averages.load_state(state["recovery_averages"])


_MAX_SEARCH_PAUSE = 15
"""Largest number of updates between two searches."""


class RecoveryAverages:
    """Short- and long-term averages of the measurement likelihood that trigger recovery in augmented MCL.

    See S. Thrun, W. Burgard, D. Fox, Probabilistic Robotics, table 8.3 (w_slow, w_fast).  A search that found no better
    pose is repeated at growing intervals, so that a permanently changed place does not cost a search with every scan.

    Args:
        alpha_slow: Weight of the newest value in the slow average.
        alpha_fast: Weight of the newest value in the fast average; either 0: no recovery.

    Attributes:
        injection_fraction: Fraction of the particles that should be replaced now.
    """

    def __init__(self, alpha_slow: float, alpha_fast: float) -> None:
        self._alphas = (alpha_slow, alpha_fast)
        self._slow: float | None = None
        self._fast: float | None = None
        self._consistency: float | None = None
        self.injection_fraction = 0.0
        self._search_pause = self._remaining_pause = 0

    def add_weight(self, weight: float) -> None:
        """Add the mean likelihood of one beam over all particles."""
        if self._slow is None or self._fast is None:
            self._slow = self._fast = weight
        self._slow += self._alphas[0] * (weight - self._slow)
        self._fast += self._alphas[1] * (weight - self._fast)

    def add_consistency(self, consistency: float) -> None:
        """Add the consistency of the scan with the estimate, see `scan_consistency`."""
        previous = consistency if self._consistency is None else self._consistency
        self._consistency = previous + max(self._alphas[1], 0.2) * (consistency - previous)

    def update_injection_fraction(self, lost_fraction: float) -> float:
        """Return the fraction of particles to replace now.

        It is 1 - fast / slow, or how far the scans contradict the estimate, if they do.  The averages alone cannot
        distinguish a kidnapped robot from one that is surrounded by people; beams through walls can.  Less than one
        percent does not justify a search of the whole map.
        """
        self.injection_fraction = 0.0
        if min(self._alphas) <= 0.0 or self._slow is None or self._fast is None or self._consistency is None:
            return 0.0
        weight_drop = max(0.0, 1.0 - self._fast / self._slow) if self._slow > 0.0 else 0.0
        inconsistency = max(0.0, 1.0 - self._consistency / lost_fraction) if lost_fraction > 0.0 else 0.0
        fraction = min(0.5, max(weight_drop, inconsistency)) if inconsistency > 0.0 else 0.0
        if fraction <= 0.01:
            self._search_pause = self._remaining_pause = 0
        elif self._remaining_pause > 0:
            self._remaining_pause -= 1
        else:
            self.injection_fraction = fraction
        return self.injection_fraction

    def report_search(self, has_found: bool) -> None:
        """Report whether a search has found better poses."""
        self._search_pause = 0 if has_found else min(2 * self._search_pause + 1, _MAX_SEARCH_PAUSE)
        self._remaining_pause = self._search_pause

    def save_state(self) -> dict[str, Any]:
        """Return the state as plain data."""
        return {
            "slow": self._slow, "fast": self._fast, "consistency": self._consistency,
            "injection_fraction": self.injection_fraction, "pause": self._search_pause, "wait": self._remaining_pause,
        }  # fmt: skip

    def load_state(self, state: dict[str, Any]) -> None:
        """Restore the state that ``save_state`` returned."""
        self._slow, self._fast, self._consistency = state["slow"], state["fast"], state["consistency"]
        self.injection_fraction, self._search_pause, self._remaining_pause = (
            state["injection_fraction"],
            state["pause"],
            state["wait"],
        )
