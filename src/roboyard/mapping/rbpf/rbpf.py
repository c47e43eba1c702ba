"""SLAM by a Rao-Blackwellized particle filter: each particle is a possible trajectory with a map of its own.

Source: G. Grisetti, C. Stachniss, W. Burgard, "Improved techniques for grid mapping with Rao-Blackwellized particle
filters", IEEE Transactions on Robotics 23 (2007) (gmapping): particles are drawn from a proposal that uses the scan and
odometry, and are resampled only when the effective sample size is small. Here the proposal is the normal distribution
around the best match, as narrow as the match is certain; where the scan is uninformative (along a corridor), odometry
decides, and odometry that contradicts the scan has no influence.
"""

from __future__ import annotations

import copy
import math
from dataclasses import dataclass
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from roboyard.errors import InputError
from roboyard.geometry import SE2, wrap_angle
from roboyard.geometry.se2_arrays import compose, relative
from roboyard.grids import OccupancyGrid
from roboyard.mapping.pose_graph import PoseGraph
from roboyard.mapping.rbpf.particle_maps import (
    ClimbSteps,
    TiledParticleMaps,
    hill_climb,
    negative_score_hessian,
    score_pose,
    search_lattice,
)
from roboyard.mapping.scan import LaserScan
from roboyard.mapping.slam import SlamAlgorithm
from roboyard.mapping.trajectory import PoseTrajectory

_STATE_FIELDS = (
    "poses",
    "weights",
    "times_ns",
    "odometry",
    "velocity",
    "distance",
    "rotation",
    "last_match_ns",
    "last_match_pose",
    "last_score",
)
_WIDE_SEARCH = (1.0, 0.6)
"""Window in which a better match is searched if that near the prediction is poor [m, rad]."""
_CLIMB_STEPS = ClimbSteps(position=0.05, angle=0.03, n_halvings=4)
_SCORE_DROP = 0.3
"""Drop of the mean log-likelihood since the last scan above which the robot must have moved."""
_MAX_SQUARED_DISTANCE = 9.0
"""Squared Mahalanobis distance of match and odometry above which the influence of odometry is limited."""


@dataclass(frozen=True, slots=True)
class RbpfConfig:
    """Parameters of the particle filter; the names of gmapping's parameters are in brackets.

    Attributes:
        particles: Number of particles ("particles").
        seed: Seed of the random draws.
        resolution: Side of a map cell [m] ("delta").
        max_range: Readings of at least this range are dropped [m] ("maxUrange").
        max_beams: Largest number of beams that are matched of a scan; gmapping uses each ``lskip + 1``-th.
        sigma: Standard deviation of the end of a beam from a surface [m] ("sigma").
        min_translation: Distance since the last match after which a scan is matched [m] ("linearUpdate").
        min_rotation: Rotation since the last match after which a scan is matched [rad] ("angularUpdate").
        max_interval: Time since the last match after which a scan is matched [s] ("temporalUpdate").
        poor_score: Mean log-likelihood of a beam below which a match is searched in a larger window.
        proposal_beams: Number of independent beams that a scan counts for in the proposal.
        weight_beams: Number of independent beams that a scan counts for in the weights ("ogain" divides it).
        translation_noise: Standard deviation of odometry's translation per distance [1], besides 1 cm ("srr").
        rotation_noise: Standard deviation of odometry's rotation per rotation [1], besides 0.01 rad ("stt").
        drift_rotation: Standard deviation of odometry's rotation per distance [rad/m] ("str").
        resample_threshold: Fraction of particles; fewer effective particles are resampled ("resampleThreshold").
    """

    particles: int = 30
    seed: int = 1
    resolution: float = 0.05
    max_range: float = 30.0
    max_beams: int = 90
    sigma: float = 0.05
    min_translation: float = 0.05
    min_rotation: float = 0.03
    max_interval: float = 5.0
    poor_score: float = -2.0
    proposal_beams: float = 20.0
    weight_beams: float = 4.0
    translation_noise: float = 0.15
    rotation_noise: float = 0.15
    drift_rotation: float = 0.05
    resample_threshold: float = 0.5

    def __post_init__(self) -> None:
        if self.particles < 1 or self.max_beams < 1:
            raise InputError(f"{self.particles} particles and {self.max_beams} beams", valid="at least one of each")
        if not (self.resolution > 0.0 and self.sigma > 0.0 and self.max_range > 0.0):
            raise InputError("resolution, sigma or max_range is not positive", valid="metres, more than 0")


class RbpfSlam:
    """SLAM by a Rao-Blackwellized particle filter; it implements `roboyard.mapping.Slam`.

    ``process`` is the filter: project the scan, predict all particles by odometry, match each particle's map and draw
    the particle from its proposal, resample, insert the scan into the maps.

    Args:
        config: Parameters.

    Attributes:
        n_matched_scans: Number of scans that were matched.
        n_resamplings: Number of resamplings.
    """

    def __init__(self, config: RbpfConfig | None = None) -> None:
        self.config = config or RbpfConfig()
        count = self.config.particles
        self._random = np.random.default_rng(self.config.seed)
        self._maps = TiledParticleMaps(count, self.config.resolution)
        self._trajectories = ParticleTrajectories(count)
        self._poses: NDArray[np.float64] = np.zeros((count, 3))
        self._weights: NDArray[np.float64] = np.zeros(count)  # logarithms
        self._times_ns: list[int] = []
        self._odometry: SE2 | None = None
        self._velocity: NDArray[np.float64] = np.zeros(3)
        self._distance = self._rotation = 0.0  # since the last match
        self._last_match_ns = 0
        self._last_score = 0.0  # of the last scan matched
        self._last_match_pose: NDArray[np.float64] = np.zeros(3)
        self._n_dropped_scans = 0
        self.n_matched_scans = 0
        self.n_resamplings = 0

    def process(self, scan: LaserScan) -> SE2:
        """Process the next scan by the steps of the filter; see ``Slam.process``."""
        if self._times_ns and scan.time_ns <= self._times_ns[-1]:
            self._n_dropped_scans += 1
            return self._current_pose()
        points = self._project(scan)
        is_match_due = self._predict(scan)
        if len(points) and not self.n_matched_scans:
            self._start_maps(scan, points)
        elif len(points) and (is_match_due or self._contradicts_odometry(points)):
            self._match(points)
            self._resample()
            self._insert(scan, points)
        self._record_poses(scan)
        return self._current_pose()

    def _current_pose(self) -> SE2:
        return SE2(*self._poses[self.best_particle])

    @property
    def best_particle(self) -> int:
        """Return the number of the particle with the largest weight."""
        return int(np.argmax(self._weights))

    @property
    def n_effective(self) -> float:
        """Return the effective number of particles, ``1 / sum(w²)`` for normalized weights w (Liu 1996)."""
        weights = _normalized_weights(self._weights)
        return float(1.0 / np.sum(weights**2))

    @property
    def n_tiles(self) -> int:
        """Return the number of tiles in all maps together; a tile that maps share counts once."""
        return self._maps.n_used_tiles

    def finish(self) -> None:
        """Do nothing: the filter defers no work."""

    @property
    def warnings(self) -> list[str]:
        """Return one sentence for each kind of irregularity in the scans so far."""
        n = self._n_dropped_scans
        return [f"{n} scans dropped: time stamp not later than that of the scan before"] if n else []

    def trajectory(self) -> PoseTrajectory:
        """Return the trajectory of the best particle."""
        return PoseTrajectory(
            np.array(self._times_ns, dtype=np.int64), self._trajectories.trajectory(self.best_particle)
        )

    def graph(self) -> PoseGraph:
        """Return the trajectory of the best particle as a chain; the covariance of its edges is that of odometry."""
        trajectory = self.trajectory()
        n = len(trajectory)
        edges = np.column_stack([np.arange(n - 1), np.arange(1, n)]) if n > 1 else np.zeros((0, 2), dtype=np.int64)
        motions = relative(trajectory.poses[:-1], trajectory.poses[1:]) if n > 1 else np.zeros((0, 3))
        information = np.zeros((len(edges), 3, 3))
        for k, motion in enumerate(motions):
            information[k] = np.diag(1.0 / self._noise(math.hypot(motion[0], motion[1]), abs(motion[2])))
        return PoseGraph(
            trajectory.times_ns, trajectory.poses, edges, motions, information, np.zeros(len(edges), dtype=np.bool_)
        )

    def occupancy(self, resolution: float) -> OccupancyGrid:
        """Return the occupancy map of the best particle."""
        return self._maps.occupancy(self.best_particle, resolution)

    # -- steps of the filter -------------------------------------------------------------------------------------------
    def _project(self, scan: LaserScan) -> NDArray[np.float64]:
        """Return the ends (n, 2) of all beams that hit something, in the base's frame [m]."""
        is_hit = scan.hit_mask & (scan.ranges < self.config.max_range)
        ranges, angles = scan.ranges[is_hit].astype(np.float64), scan.angles[is_hit]
        return scan.T_base_laser @ np.column_stack([ranges * np.cos(angles), ranges * np.sin(angles)])

    def _predict(self, scan: LaserScan) -> bool:
        """Move all particles by odometry, or without it by the last velocity, since the proposal starts there.

        Returns:
            Whether the scan has to be matched: after a distance, a rotation or a time since the last match.
        """
        if not self._times_ns:
            self._odometry, self._last_match_ns = scan.odometry, scan.time_ns
            return True
        dt = (scan.time_ns - self._times_ns[-1]) * 1e-9
        if scan.odometry is not None and self._odometry is not None:
            odometry_motion = self._odometry.inverse() @ scan.odometry
            motion = np.array([odometry_motion.x, odometry_motion.y, odometry_motion.theta])
            has_odometry = True
        else:
            motion, has_odometry = self._velocity * min(dt, 1.0), False
        if scan.odometry is not None:
            self._odometry = scan.odometry
        else:
            self._odometry = None
        self._poses = compose(self._poses, motion)
        self._distance += math.hypot(motion[0], motion[1])
        self._rotation += abs(motion[2])
        config = self.config
        is_overdue = (scan.time_ns - self._last_match_ns) * 1e-9 > config.max_interval
        return (
            not has_odometry
            or is_overdue
            or self._distance > config.min_translation
            or self._rotation > config.min_rotation
        )

    def _noise(self, distance: float, rotation: float) -> NDArray[np.float64]:
        """Return the variances (3,) of odometry over a distance [m] and a rotation [rad]."""
        config = self.config
        translation_variance = (0.01 + config.translation_noise * distance) ** 2
        return np.array(
            [
                translation_variance,
                translation_variance,
                (0.01 + config.rotation_noise * rotation + config.drift_rotation * distance) ** 2,
            ]
        )

    def _match(self, points: NDArray[np.float64]) -> None:
        """Match the scan with each particle's map, draw the particle from its proposal, and weight it.

        A proposal that uses the scan needs fewer particles than one that uses odometry alone.
        """
        config, maps = self.config, self._maps
        search_points = self._subsample(points)
        noise = self._noise(self._distance, self._rotation)
        standard_normals = self._random.standard_normal((config.particles, 3))
        wide_offset = self._search_wider(search_points)
        for k in range(config.particles):
            predicted = self._poses[k].copy()
            arrays = maps.arrays(k)
            *matched, score = hill_climb(arrays, search_points, predicted, config.sigma, _CLIMB_STEPS)
            if wide_offset is not None:
                start = compose(predicted, wide_offset)
                *wide_matched, wide_score = hill_climb(arrays, search_points, start, config.sigma, _CLIMB_STEPS)
                if wide_score > score + 0.1:
                    matched, score = wide_matched, wide_score
            best = np.array(matched)
            match_information = negative_score_hessian(arrays, search_points, best, config.sigma, 1)
            self._poses[k], squared_distance = _sample_proposal(
                best, match_information * config.proposal_beams, predicted, noise, standard_normals[k]
            )
            self._weights[k] += config.weight_beams * score - 0.5 * squared_distance
        self._poses[:, 2] = wrap_angle(self._poses[:, 2])
        self._weights -= self._weights.max()
        self._last_score = self._best_score(search_points)

    def _subsample(self, points: NDArray[np.float64]) -> NDArray[np.float64]:
        return np.ascontiguousarray(points[:: max(1, math.ceil(len(points) / self.config.max_beams))])

    def _best_score(self, search_points: NDArray[np.float64]) -> float:
        k = self.best_particle
        return float(score_pose(self._maps.arrays(k), search_points, self._poses[k], self.config.sigma, 1))

    def _contradicts_odometry(self, points: NDArray[np.float64]) -> bool:
        """Return whether the scan indicates a motion that odometry does not."""
        return self._best_score(self._subsample(points)) < self._last_score - _SCORE_DROP

    def _search_wider(self, search_points: NDArray[np.float64]) -> NDArray[np.float64] | None:
        """Return the offset (3,) of a better match in a larger window, in the frame of the best particle [m, rad].

        None: the match near the prediction is not poor.
        """
        config, maps, k = self.config, self._maps, self.best_particle
        predicted = self._poses[k].copy()
        arrays = maps.arrays(k)
        *_, score = hill_climb(arrays, search_points, predicted, config.sigma, _CLIMB_STEPS)
        if score >= config.poor_score:
            return None
        *coarse, _ = search_lattice(arrays, search_points, predicted, *_WIDE_SEARCH)
        return np.asarray(relative(predicted, np.array(coarse)))

    def _resample(self) -> None:
        """Resample systematically if few particles carry the weight; more often would lose correct hypotheses."""
        count = self.config.particles
        if self.n_effective >= self.config.resample_threshold * count:
            return
        sample_positions = (np.arange(count) + self._random.random()) / count
        ancestors = np.minimum(
            np.searchsorted(np.cumsum(_normalized_weights(self._weights)), sample_positions), count - 1
        ).astype(np.int64)
        self._poses = self._poses[ancestors]
        self._weights = np.zeros(count)
        self._maps.resample(ancestors)
        self._trajectories.resample(ancestors)
        self.n_resamplings += 1

    def _start_maps(self, scan: LaserScan, points: NDArray[np.float64]) -> None:
        """Insert the first scan into one map that all particles share, since their poses agree."""
        self._insert_into(1, scan, points)
        self._maps.resample(np.zeros(len(self._poses), dtype=np.int64))
        self._note_match(scan)

    def _insert(self, scan: LaserScan, points: NDArray[np.float64]) -> None:
        """Insert a scan into every particle's map at the particle's pose, which makes the maps differ."""
        self._insert_into(len(self._poses), scan, points)
        self._note_match(scan)

    def _insert_into(self, n_maps: int, scan: LaserScan, points: NDArray[np.float64]) -> None:
        laser = np.array([scan.T_base_laser.x, scan.T_base_laser.y])
        points_and_laser = np.vstack([points, laser])
        points_by_particle = [SE2(*pose) @ points_and_laser for pose in self._poses]
        stacked = np.concatenate(points_by_particle)
        self._maps.allocate(stacked.min(axis=0), stacked.max(axis=0))
        is_hit = np.ones(len(points), dtype=np.bool_)
        for k, particle_points in enumerate(points_by_particle[:n_maps]):
            origins = np.broadcast_to(particle_points[-1], (len(points), 2)).copy()
            self._maps.write(k, origins, np.ascontiguousarray(particle_points[:-1]), is_hit)

    def _note_match(self, scan: LaserScan) -> None:
        """Estimate the velocity from the last two matches, and reset the distances since the last match."""
        match_pose = self._poses[self.best_particle].copy()
        dt = (scan.time_ns - self._last_match_ns) * 1e-9
        if self.n_matched_scans and dt > 0.0:
            self._velocity = np.asarray(relative(self._last_match_pose, match_pose)) / dt
        self._last_match_pose, self._last_match_ns = match_pose, scan.time_ns
        self._distance = self._rotation = 0.0
        self.n_matched_scans += 1

    def _record_poses(self, scan: LaserScan) -> None:
        """Record the poses of all particles, since the best particle of the end decides on the whole trajectory."""
        self._times_ns.append(scan.time_ns)
        self._trajectories.add(self._poses)

    # -- state -------------------------------------------------------------------------------------------------------
    def save_state(self) -> dict[str, Any]:
        """Return the complete state as plain data: numbers, lists and arrays."""
        fields = {name: copy.deepcopy(getattr(self, f"_{name}")) for name in _STATE_FIELDS}
        return fields | {
            "counts": [self.n_matched_scans, self.n_resamplings, self._n_dropped_scans],
            "random": copy.deepcopy(self._random.bit_generator.state),
            "maps": self._maps.save_state(),
            "paths": self._trajectories.save_state(),
        }

    def load_state(self, saved: dict[str, Any]) -> None:
        """Restore what `save_state` returned, in a filter with the same configuration."""
        for name in _STATE_FIELDS:
            setattr(self, f"_{name}", copy.deepcopy(saved[name]))
        self.n_matched_scans, self.n_resamplings, self._n_dropped_scans = saved["counts"]
        self._random.bit_generator.state = copy.deepcopy(saved["random"])
        self._maps.load_state(saved["maps"])
        self._trajectories.load_state(saved["paths"])


def _normalized_weights(logarithms: NDArray[np.float64]) -> NDArray[np.float64]:
    weights = np.exp(logarithms - logarithms.max())
    return np.asarray(weights / weights.sum())


def _sample_proposal(
    best: NDArray[np.float64],
    match_information: NDArray[np.float64],
    predicted: NDArray[np.float64],
    noise: NDArray[np.float64],
    standard_normal: NDArray[np.float64],
) -> tuple[NDArray[np.float64], float]:
    """Draw a pose from the product of two normal distributions: that of the match and that of odometry.

    Args:
        best: (3,) mean of the match [m, rad].
        match_information: (3, 3) information of the match.
        predicted: (3,) mean of odometry [m, rad].
        noise: (3,) variances of odometry.
        standard_normal: (3,) numbers from the standard normal distribution.

    Returns:
        The pose (3,), and the squared Mahalanobis distance of the two means, at most ``_MAX_SQUARED_DISTANCE``.
    """
    values, axes = np.linalg.eigh(match_information)
    information = (axes * np.maximum(values, 1e-3)) @ axes.T
    offset = best - predicted
    offset[2] = wrap_angle(float(offset[2]))
    offset_covariance = np.linalg.inv(information) + np.diag(noise)
    squared_distance = float(offset @ np.linalg.solve(offset_covariance, offset))
    odometry_information = np.diag(1.0 / noise)
    if squared_distance > _MAX_SQUARED_DISTANCE:
        odometry_information *= _MAX_SQUARED_DISTANCE / squared_distance
    covariance = np.linalg.inv(information + odometry_information)
    mean = best - covariance @ (odometry_information @ offset)
    return mean + np.linalg.cholesky(covariance) @ standard_normal, min(squared_distance, _MAX_SQUARED_DISTANCE)


_MERGE_INTERVAL = 64


class ParticleTrajectories:
    """Poses of all particles over time, and the ancestor of each particle in each step.

    Args:
        particles: Number of particles.
    """

    def __init__(self, particles: int) -> None:
        self._particles = particles
        self._trunk: list[NDArray[np.float64]] = []  # poses (3,) that all particles have in common
        self._steps: list[NDArray[np.float64]] = []  # (particles, 3) of each later step
        self._parents: list[NDArray[np.int64]] = []  # (particles,) whose pose of the step before each came from
        self._next = np.arange(particles)

    def __len__(self) -> int:
        return len(self._trunk) + len(self._steps)

    @property
    def n_branched_steps(self) -> int:
        """Return the number of steps in which particles differ."""
        return len(self._steps)

    def add(self, poses: NDArray[np.float64]) -> None:
        """Append the poses (particles, 3) of a step [m, rad]."""
        self._steps.append(poses.copy())
        self._parents.append(self._next)
        self._next = np.arange(self._particles)
        if len(self._steps) % _MERGE_INTERVAL == 0:
            self._merge_trunk()

    def resample(self, ancestors: NDArray[np.int64]) -> None:
        """Let particle k continue the trajectory of particle ``ancestors[k]`` (particles,)."""
        self._next = self._next[ancestors]

    def trajectory(self, particle: int) -> NDArray[np.float64]:
        """Return all poses (n, 3) of one particle [m, rad]."""
        poses, slot = [], int(self._next[particle])
        for step, parents in zip(reversed(self._steps), reversed(self._parents), strict=True):
            poses.append(step[slot])
            slot = int(parents[slot])
        rows = self._trunk + poses[::-1]
        return np.array(rows, dtype=np.float64).reshape(-1, 3)

    def save_state(self) -> dict[str, Any]:
        """Return the complete state as plain data."""
        shape = (-1, self._particles)
        return {
            "trunk": np.array(self._trunk).reshape(-1, 3),
            "steps": np.array(self._steps).reshape(*shape, 3),
            "parents": np.array(self._parents, dtype=np.int64).reshape(shape),
            "next": self._next.copy(),
        }

    def load_state(self, saved: dict[str, Any]) -> None:
        """Restore what `save_state` returned."""
        self._trunk, self._steps, self._parents = ([*saved[name].copy()] for name in ("trunk", "steps", "parents"))
        self._next = saved["next"].copy()

    def _merge_trunk(self) -> None:
        """Move steps on which all particles agree to the trunk."""
        alive = np.unique(self._next)
        for index in range(len(self._steps) - 1, -1, -1):
            if len(alive) == 1:
                self._append_trunk(index, int(alive[0]))
                return
            alive = np.unique(self._parents[index][alive])

    def _append_trunk(self, last: int, slot: int) -> None:
        """Move steps up to ``last`` to the trunk: the poses of the ancestors of the particle ``slot``."""
        poses = []
        for index in range(last, -1, -1):
            poses.append(self._steps[index][slot])
            slot = int(self._parents[index][slot])
        self._trunk += poses[::-1]
        del self._steps[: last + 1], self._parents[: last + 1]
        if self._parents:
            self._parents[0] = np.zeros(self._particles, dtype=np.int64)
        else:
            self._next = np.zeros(self._particles, dtype=np.int64)


ALGORITHM: Final = SlamAlgorithm(title="a particle filter", create=RbpfSlam)
