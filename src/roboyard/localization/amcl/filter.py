"""Adaptive Monte-Carlo localisation: where in a map a base is, by odometry and scans."""

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
from roboyard.localization.amcl import resampling
from roboyard.localization.amcl.alignment import align_all
from roboyard.localization.amcl.averages import Averages
from roboyard.localization.amcl.clusters import clusters
from roboyard.localization.amcl.config import AmclConfig
from roboyard.localization.amcl.estimate import AmclEstimate, estimate
from roboyard.localization.amcl.motion import moved
from roboyard.localization.amcl.search import WORTH, FreeSpace, Hypotheses, search
from roboyard.localization.amcl.sensing import Sensed, SensorModel, sense
from roboyard.localization.amcl.visibility import belief, merits, seen, without_strangers
from roboyard.mapping import Scan

_TRUST = 0.3
"""Of a hypothesis' log-likelihood this share decides how many particles it gets: one scan must not rule out much."""
_SPREAD = (0.05, math.radians(2.0))
"""Particles are laid about a hypothesis with these standard deviations [m], [rad]."""
_ONE, _NARROW = 0.9, 0.3
"""The pose is known well if one cluster has so much of the weight, and its deviation is below this [m]."""
_BETTER = 0.15
"""So much more merit a place must have that particles move there."""


class Amcl:
    """The filter.

    It follows ROS's amcl (KLD-sampling, augmented recovery) and differs where that costs accuracy: when nothing is
    known, or the weights say that it is lost, particles are not strewn at random but where a search finds that the scan
    could have been taken; and the estimate is the best cluster, aligned to the map with many beams.

    Deterministic: the same calls with a generator in the same state give the same bits.

    Args:
        config: Settings.
        rng: All randomness comes from it.

    Attributes:
        particles: (n, 3) poses in the map: x, y [m], heading [rad].
        weights: (n,) that add up to 1.
    """

    def __init__(self, config: AmclConfig | None = None, rng: np.random.Generator | None = None) -> None:
        expect_kernels(align_all, cast_rays, sum_scores, squared_distance_transform, label_components)
        self.config = config or AmclConfig()
        self._rng = rng or np.random.default_rng(0)
        self._model: SensorModel | None = None
        self._space: FreeSpace | None = None
        self._forget()

    def _forget(self) -> None:
        self.particles: Array = np.zeros((0, 3))
        self.weights: Array = np.zeros(0)
        self._odometry: SE2 | None = None  # where the odometry was when the particles were moved last
        self._since: dict[str, SE2] = {}  # and when each laser was weighed last
        self._unknown = False  # nothing is known: the next scan begins with a search
        self._forced: set[str] | None = None  # lasers that have answered a forced update; None: none is wanted
        self._count = 0
        self._averages = Averages(self.config.recovery_alpha_slow, self.config.recovery_alpha_fast)

    @property
    def has_map(self) -> bool:
        """Whether there is a map."""
        return self._model is not None

    @property
    def started(self) -> bool:
        """Whether it has something to begin with: a pose, or the order to search."""
        return self._unknown or len(self.particles) > 0

    def set_map(self, grid: OccupancyGrid) -> None:
        """Take a map; what is believed of the pose stays.

        Raises:
            InputError: it has no occupied cell.
        """
        self._model, self._space = SensorModel(grid, self.config), FreeSpace(grid)

    def start(self, pose: SE2, covariance: ArrayLike) -> None:
        """Believe ``T_map_base`` with a covariance (3, 3) of x, y [m²], heading [rad²].

        Raises:
            InputError: it is no covariance.
        """
        spread = np.asarray(covariance, dtype=np.float64)
        if spread.shape != (3, 3) or not np.isfinite(spread).all():
            raise InputError(f"a pose's covariance of shape {spread.shape}", valid="(3, 3), finite")
        values, axes = np.linalg.eigh(0.5 * (spread + spread.T))
        if values.min() < -1e-9 * max(1.0, float(np.abs(values).max())):
            raise InputError("a pose's covariance with negative variances", valid="positive semi-definite")
        self._forget()
        noise = self._rng.standard_normal((self.config.max_particles, 3)) * np.sqrt(np.maximum(values, 0.0))
        self._take(np.array([pose.x, pose.y, pose.theta]) + noise @ axes.T)

    def start_anywhere(self) -> None:
        """Believe nothing: the base may be anywhere in free space."""
        self._forget()
        self._unknown = True

    def request_update(self) -> None:
        """Weigh the next scan of every laser though the base may not have moved."""
        self._forced = set()

    def process(self, scan: Scan) -> AmclEstimate | None:
        """Take a scan with its odometry.

        Returns:
            The new estimate; None when the base has not moved enough since the last one, or nothing was to be seen.

        Raises:
            InputError: no map, nothing to begin with, or a scan without odometry.
        """
        model, space = self._model, self._space
        if model is None or space is None:
            raise InputError("there is no map to be located in", location="amcl", valid="set_map first")
        if not self.started:
            raise InputError("there is no pose to begin with", location="amcl", valid="start, or start_anywhere")
        if scan.odometry is None:
            raise InputError(
                "a scan without odometry", location=scan.laser, valid="the pose of the base in its odometry"
            )
        if not self._due(scan.laser, scan.odometry):
            return None
        sensed = sense(scan, self.config)
        if len(sensed.points) < 3:
            return None
        if self._forced is not None:
            self._forced.add(scan.laser)
        self._since[scan.laser] = scan.odometry
        if self._unknown:
            self._begin(search(model, space, sensed, self._rng), space)
        elif self._odometry is not None:
            self.particles = moved(self.particles, self._odometry.inverse() @ scan.odometry, self.config, self._rng)
        self._odometry = scan.odometry
        believable = self._without_strangers(model, sensed)
        self._weigh(model, believable)
        found = estimate(scan, clusters(self.particles, self.weights), model, believable, len(self.particles))
        pose = found.T_map_base
        explained, through = seen(model, np.array([[pose.x, pose.y, pose.theta]]), sensed)
        self._averages.believed(belief(float(explained[0]), float(through[0])))
        if self._averages.recover(self.config.lost_share) > 0.0:
            self._averages.looked(self._inject(search(model, space, sensed, self._rng), found, model, sensed))
        self._count += 1
        if self._count % self.config.resample_interval == 0:
            self._resample()
        return found

    # -- steps ---------------------------------------------------------------------------------------------------------
    def _due(self, laser: str, odometry: SE2) -> bool:
        if self._unknown or (self._forced is not None and laser not in self._forced):
            return True
        before = self._since.get(laser)
        if before is None:
            return True
        step = before.inverse() @ odometry
        return math.hypot(step.x, step.y) >= self.config.update_min_d or abs(step.theta) >= self.config.update_min_a

    def _take(self, particles: Array) -> None:
        particles[:, 2] = wrap_angle(particles[:, 2])
        self.particles, self.weights = particles, np.full(len(particles), 1.0 / len(particles))

    def _begin(self, found: Hypotheses, space: FreeSpace) -> None:
        """Particles about the hypotheses, by their likelihood, and some anywhere."""
        self._unknown = False
        count = self.config.max_particles
        strewn = space.poses(count if not len(found.poses) else count // 10, self._rng)
        laid = self._about(found, count - len(strewn)) if len(found.poses) else np.zeros((0, 3))
        self._take(np.concatenate([laid, strewn]))

    def _about(self, found: Hypotheses, count: int) -> Array:
        worth = found.scores + WORTH * found.merits
        shares = np.exp(_TRUST * (worth - worth.max()))
        chosen = resampling.low_variance(shares, count, self._rng)
        spread = np.array([_SPREAD[0], _SPREAD[0], _SPREAD[1]])
        return np.asarray(found.poses[chosen] + self._rng.standard_normal((count, 3)) * spread)

    def _without_strangers(self, model: SensorModel, sensed: Sensed) -> Sensed:
        """What of a scan belongs to the map; all of it while the pose is not known well."""
        if not self.config.distance_filter:
            return sensed
        best = clusters(self.particles, self.weights)[0]
        if best.weight < _ONE or float(np.trace(best.covariance[:2, :2])) > _NARROW**2:
            return sensed
        return without_strangers(model, best.pose, sensed, self.config.distance_filter)

    def _weigh(self, model: SensorModel, sensed: Sensed) -> None:
        total, each = model.log_weights(self.particles, sensed)
        self._averages.weighed(float(self.weights @ np.exp(each)))
        weights = self.weights * np.exp(total - total.max())
        mass = float(weights.sum())
        self.weights = weights / mass if mass > 0.0 else np.full(len(weights), 1.0 / len(weights))

    def _inject(self, found: Hypotheses, now: AmclEstimate, model: SensorModel, sensed: Sensed) -> bool:
        """Give a share of the particles to hypotheses that explain the scan better than the present estimate does."""
        pose = now.T_map_base
        better = found.merits > merits(model, np.array([[pose.x, pose.y, pose.theta]]), sensed)[0] + _BETTER
        if not better.any():
            return False
        kept = Hypotheses(found.poses[better], found.scores[better], found.merits[better], found.information[better])
        count = max(1, int(self._averages.share * len(self.particles)))
        chosen = resampling.low_variance(self.weights, max(1, len(self.particles) - count), self._rng)
        self._take(np.concatenate([self.particles[chosen], self._about(kept, count)]))
        return True

    def _resample(self) -> None:
        config, rng = self.config, self._rng
        few = resampling.effective(self.weights) < 0.5 * len(self.weights)
        if config.selective_resampling and not few:
            return
        count = resampling.needed(
            self.particles, self.weights, config.min_particles, config.max_particles, config.pf_err, config.pf_z, rng
        )
        self._take(self.particles[resampling.low_variance(self.weights, count, rng)])

    # -- state ---------------------------------------------------------------------------------------------------------
    def save_state(self) -> dict[str, Any]:
        """State as plain data, without the map and the generator."""

        def plain(pose: SE2) -> tuple[float, float, float]:
            return pose.x, pose.y, pose.theta

        return {
            "particles": self.particles.copy(),
            "weights": self.weights.copy(),
            "odometry": None if self._odometry is None else plain(self._odometry),
            "since": {laser: plain(pose) for laser, pose in self._since.items()},
            "unknown": self._unknown,
            "forced": None if self._forced is None else sorted(self._forced),
            "count": self._count,
            "averages": self._averages.save_state(),
        }

    def load_state(self, state: dict[str, Any]) -> None:
        """Take back what ``save`` gave."""
        self.particles, self.weights = np.array(state["particles"]), np.array(state["weights"])
        self._odometry = None if state["odometry"] is None else SE2(*state["odometry"])
        self._since = {laser: SE2(*pose) for laser, pose in state["since"].items()}
        self._unknown, self._count = state["unknown"], state["count"]
        self._forced = None if state["forced"] is None else set(state["forced"])
        self._averages.load_state(state["averages"])
