"""SLAM by a Rao-Blackwellised particle filter: each particle is a way that the robot may have gone, with its own map.

Source: G. Grisetti, C. Stachniss, W. Burgard, "Improved techniques for grid mapping with Rao-Blackwellized particle
filters", IEEE Transactions on Robotics 23 (2007) (gmapping): particles are drawn from a proposal that knows the scan as
well as odometry, and are chosen anew only when few of them carry most of the weight.  Here the proposal is the normal
distribution about the best match, as sharp as the match is there; where the scan does not tell (along a corridor),
odometry does, and odometry that contradicts the scan loses.
"""

from __future__ import annotations

import copy
import math
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from roboyard.errors import InputError
from roboyard.geometry import SE2, wrap_angle
from roboyard.geometry.se2_arrays import compose, relative
from roboyard.grids import OccupancyGrid
from roboyard.mapping.pose_graph import PoseGraph
from roboyard.mapping.rbpf_match import climb, curvature, fit, search
from roboyard.mapping.rbpf_paths import Paths
from roboyard.mapping.rbpf_tiles import TileMaps
from roboyard.mapping.scan import Scan
from roboyard.mapping.trajectory import Trajectory

_PLAIN = ("poses", "weights", "times", "odometry", "velocity", "way", "turned", "matched_ns", "step_pose", "fit")
_FARTHER = (1.0, 0.6)
"""How far off a better match is looked for where that at hand is poor [m, rad]."""
_WORSE = 0.3
"""A scan whose mean log-likelihood is so much less than the last one's was not taken at the same place."""
_CONTRADICTED = 9.0
"""Squared distance, in standard deviations, from which on odometry is not believed further."""


@dataclass(frozen=True, slots=True)
class RbpfConfig:
    """How the filter works.

    Attributes:
        particles: How many ways are kept.
        seed: Of the random draws.
        resolution: Side of the maps' cells [m].
        reach: Longer readings are left out [m].
        beams: Most beams matched of a scan.
        sigma: Standard deviation of a beam's end from the wall [m].
        move: A scan is matched when the robot has moved so far since the last [m],
        turn: or turned so far [rad],
        wait: or so much time has passed [s].
        poor: Mean log-likelihood of a beam below which a match is looked for farther off.
        sharpness: Number of independent beams that a scan counts for in the proposal,
        evidence: and in the weights.
        way_noise: Standard deviation of odometry's way per way [1], besides 1 cm.
        turn_noise: Standard deviation of odometry's turn per turn [1], besides 0.01 rad and ``turn_per_way``.
        turn_per_way: Standard deviation of odometry's turn per way [rad/m].
        few: Particles are chosen anew when fewer than this share of them carry the weight.
    """

    particles: int = 30
    seed: int = 1
    resolution: float = 0.05
    reach: float = 30.0
    beams: int = 90
    sigma: float = 0.05
    move: float = 0.05
    turn: float = 0.03
    wait: float = 5.0
    poor: float = -2.0
    sharpness: float = 20.0
    evidence: float = 4.0
    way_noise: float = 0.15
    turn_noise: float = 0.15
    turn_per_way: float = 0.05
    few: float = 0.5

    def __post_init__(self) -> None:
        if self.particles < 1 or self.beams < 1:
            raise InputError(f"{self.particles} particles and {self.beams} beams", valid="at least one of each")
        if not (self.resolution > 0.0 and self.sigma > 0.0 and self.reach > 0.0):
            raise InputError("resolution, sigma and reach of the particles' maps", valid="metres, more than 0")


class RbpfSlam:
    """SLAM by particles; see the module.

    Args:
        config: How it works.

    Attributes:
        matched: Number of scans that were matched.
        resampled: How often particles were chosen anew.
    """

    def __init__(self, config: RbpfConfig | None = None) -> None:
        self.config = config or RbpfConfig()
        count = self.config.particles
        self._random = np.random.default_rng(self.config.seed)
        self._maps = TileMaps(count, self.config.resolution)
        self._paths = Paths(count)
        self._poses: NDArray[np.float64] = np.zeros((count, 3))
        self._weights: NDArray[np.float64] = np.zeros(count)  # logarithms
        self._times: list[int] = []
        self._odometry: SE2 | None = None
        self._velocity: NDArray[np.float64] = np.zeros(3)
        self._way = self._turned = 0.0  # since the last match
        self._matched_ns = 0
        self._fit = 0.0  # of the last scan matched
        self._step_pose: NDArray[np.float64] = np.zeros(3)
        self.matched = 0
        self.resampled = 0

    def process(self, scan: Scan) -> SE2:
        """Take the next scan; see ``Slam``.

        Raises:
            InputError: it is not later than the one before.
        """
        if self._times and scan.time_ns <= self._times[-1]:
            raise InputError(f"a scan at {scan.time_ns} ns after one at {self._times[-1]} ns", valid="later scans")
        points = self._points(scan)
        moved = self._predict(scan)
        self._times.append(scan.time_ns)
        if len(points):
            if not self.matched:
                self._register(scan, points)
                self._maps.choose(np.zeros(len(self._poses), dtype=np.int64))
                self._note_match(scan)
            elif moved or self._differs(points):
                self._match(points)
                self._choose()
                self._register(scan, points)
                self._note_match(scan)
        self._paths.add(self._poses)
        return SE2(*self._poses[self.best])

    @property
    def best(self) -> int:
        """Number of the particle with the largest weight."""
        return int(np.argmax(self._weights))

    @property
    def effective(self) -> float:
        """How many particles carry the weight."""
        weights = _normal(self._weights)
        return float(1.0 / np.sum(weights**2))

    @property
    def tiles(self) -> int:
        """Number of tiles in all maps together."""
        return self._maps.used

    def finish(self) -> None:
        """Nothing is put off."""

    def trajectory(self) -> Trajectory:
        """The way of the best particle."""
        return Trajectory(np.array(self._times, dtype=np.int64), self._paths.of(self.best))

    def graph(self) -> PoseGraph:
        """The way of the best particle as a chain; what is known of its edges is odometry's noise."""
        track = self.trajectory()
        n = len(track)
        pairs = np.column_stack([np.arange(n - 1), np.arange(1, n)]) if n > 1 else np.zeros((0, 2), dtype=np.int64)
        steps = relative(track.poses[:-1], track.poses[1:]) if n > 1 else np.zeros((0, 3))
        information = np.zeros((len(pairs), 3, 3))
        for k, step in enumerate(steps):
            information[k] = np.diag(1.0 / self._noise(math.hypot(step[0], step[1]), abs(step[2])))
        return PoseGraph(track.times_ns, track.poses, pairs, steps, information, np.zeros(len(pairs), dtype=np.bool_))

    def occupancy(self, resolution: float) -> OccupancyGrid:
        """The map of the best particle."""
        return self._maps.occupancy(self.best, resolution)

    # -- parts of a step ---------------------------------------------------------------------------------------------
    def _points(self, scan: Scan) -> NDArray[np.float64]:
        """Where beams hit (n, 2), in the base's frame [m]."""
        hits = scan.hits & (scan.ranges < self.config.reach)
        ranges, angles = scan.ranges[hits].astype(np.float64), scan.angles[hits]
        return scan.T_base_laser @ np.column_stack([ranges * np.cos(angles), ranges * np.sin(angles)])

    def _predict(self, scan: Scan) -> bool:
        """Move all particles by odometry, or on as before without it; gives whether the scan is to be matched."""
        if not self._times:
            self._odometry, self._matched_ns = scan.odometry, scan.time_ns
            return True
        dt = (scan.time_ns - self._times[-1]) * 1e-9
        if scan.odometry is not None and self._odometry is not None:
            step = self._odometry.inverse() @ scan.odometry
            delta = np.array([step.x, step.y, step.theta])
            known = True
        else:
            delta, known = self._velocity * min(dt, 1.0), False
        if scan.odometry is not None:
            self._odometry = scan.odometry
        else:
            self._odometry = None
        self._poses = compose(self._poses, delta)
        self._way += math.hypot(delta[0], delta[1])
        self._turned += abs(delta[2])
        config = self.config
        waited = (scan.time_ns - self._matched_ns) * 1e-9 > config.wait
        return not known or waited or self._way > config.move or self._turned > config.turn

    def _noise(self, way: float, turned: float) -> NDArray[np.float64]:
        """Variances (3,) of odometry over a way [m] and turn [rad]."""
        config = self.config
        along = (0.01 + config.way_noise * way) ** 2
        return np.array([along, along, (0.01 + config.turn_noise * turned + config.turn_per_way * way) ** 2])

    def _match(self, points: NDArray[np.float64]) -> None:
        """Draw each particle from its proposal and weigh it."""
        config, maps = self.config, self._maps
        thinned = self._thinned(points)
        noise = self._noise(self._way, self._turned)
        draws = self._random.standard_normal((config.particles, 3))
        elsewhere = self._looked_farther(thinned)
        for k in range(config.particles):
            predicted = self._poses[k].copy()
            arguments = (maps.tiles, maps.table[k], maps.corner, thinned)
            *found, score = climb(*arguments, predicted, maps.resolution, config.sigma, 0.05, 0.03, 4)
            if elsewhere is not None:
                start = compose(predicted, elsewhere)
                *other, value = climb(*arguments, start, maps.resolution, config.sigma, 0.05, 0.03, 4)
                if value > score + 0.1:
                    found, score = other, value
            best = np.array(found)
            sharp = curvature(*arguments, best, maps.resolution, config.sigma, 1)
            self._poses[k], apart = _drawn(best, sharp * config.sharpness, predicted, noise, draws[k])
            self._weights[k] += config.evidence * score - 0.5 * apart
        self._poses[:, 2] = wrap_angle(self._poses[:, 2])
        self._weights -= self._weights.max()
        self._fit = self._fit_of_best(thinned)

    def _thinned(self, points: NDArray[np.float64]) -> NDArray[np.float64]:
        return np.ascontiguousarray(points[:: max(1, math.ceil(len(points) / self.config.beams))])

    def _fit_of_best(self, thinned: NDArray[np.float64]) -> float:
        maps, k = self._maps, self.best
        table, pose = maps.table[k], self._poses[k]
        return float(fit(maps.tiles, table, maps.corner, thinned, pose, maps.resolution, self.config.sigma, 1))

    def _differs(self, points: NDArray[np.float64]) -> bool:
        """Whether the scan says that the robot moved although odometry does not."""
        return self._fit_of_best(self._thinned(points)) < self._fit - _WORSE

    def _looked_farther(self, thinned: NDArray[np.float64]) -> NDArray[np.float64] | None:
        """A better place farther off (3,), as seen from the best particle; None where its match at hand is not poor."""
        config, maps, k = self.config, self._maps, self.best
        predicted = self._poses[k].copy()
        arguments = (maps.tiles, maps.table[k], maps.corner, thinned)
        *_, score = climb(*arguments, predicted, maps.resolution, config.sigma, 0.05, 0.03, 4)
        if score >= config.poor:
            return None
        *coarse, _ = search(*arguments, predicted, maps.resolution, *_FARTHER)
        return np.asarray(relative(predicted, np.array(coarse)))

    def _choose(self) -> None:
        """Choose particles anew where few carry the weight: systematic resampling."""
        count = self.config.particles
        if self.effective >= self.config.few * count:
            return
        places = (np.arange(count) + self._random.random()) / count
        chosen = np.minimum(np.searchsorted(np.cumsum(_normal(self._weights)), places), count - 1).astype(np.int64)
        self._poses = self._poses[chosen]
        self._weights = np.zeros(count)
        self._maps.choose(chosen)
        self._paths.choose(chosen)
        self.resampled += 1

    def _register(self, scan: Scan, points: NDArray[np.float64]) -> None:
        """Write a scan into every map; into the first only as long as they are all the same."""
        laser = np.array([scan.T_base_laser.x, scan.T_base_laser.y])
        places = np.vstack([points, laser])
        everywhere = [SE2(*pose) @ places for pose in self._poses]
        stacked = np.concatenate(everywhere)
        self._maps.cover(stacked.min(axis=0), stacked.max(axis=0))
        hit = np.ones(len(points), dtype=np.bool_)
        for k, there in enumerate(everywhere if self.matched else everywhere[:1]):
            origins = np.broadcast_to(there[-1], (len(points), 2)).copy()
            self._maps.write(k, origins, np.ascontiguousarray(there[:-1]), hit)

    def _note_match(self, scan: Scan) -> None:
        now = self._poses[self.best].copy()
        dt = (scan.time_ns - self._matched_ns) * 1e-9
        if self.matched and dt > 0.0:
            self._velocity = np.asarray(relative(self._step_pose, now)) / dt
        self._step_pose, self._matched_ns = now, scan.time_ns
        self._way = self._turned = 0.0
        self.matched += 1

    # -- state -------------------------------------------------------------------------------------------------------
    def save_state(self) -> dict[str, Any]:
        """State as plain data: numbers, lists and arrays."""
        plain = {name: copy.deepcopy(getattr(self, f"_{name}")) for name in _PLAIN}
        return plain | {
            "counts": [self.matched, self.resampled],
            "random": copy.deepcopy(self._random.bit_generator.state),
            "maps": self._maps.save_state(),
            "paths": self._paths.save_state(),
        }

    def load_state(self, saved: dict[str, Any]) -> None:
        """Take back what ``save`` gave, with the same configuration."""
        for name in _PLAIN:
            setattr(self, f"_{name}", copy.deepcopy(saved[name]))
        self.matched, self.resampled = saved["counts"]
        self._random.bit_generator.state = copy.deepcopy(saved["random"])
        self._maps.load_state(saved["maps"])
        self._paths.load_state(saved["paths"])


def _normal(logarithms: NDArray[np.float64]) -> NDArray[np.float64]:
    weights = np.exp(logarithms - logarithms.max())
    return np.asarray(weights / weights.sum())


def _drawn(
    best: NDArray[np.float64],
    sharp: NDArray[np.float64],
    predicted: NDArray[np.float64],
    noise: NDArray[np.float64],
    draw: NDArray[np.float64],
) -> tuple[NDArray[np.float64], float]:
    """A pose drawn from match and odometry together, and the squared distance of the two, at most ``_CONTRADICTED``.

    Both are normal distributions: about ``best`` with the information ``sharp`` (3, 3), and about ``predicted`` with
    variances ``noise`` (3,).
    """
    values, axes = np.linalg.eigh(sharp)
    information = (axes * np.maximum(values, 1e-3)) @ axes.T
    off = best - predicted
    off[2] = wrap_angle(float(off[2]))
    spread = np.linalg.inv(information) + np.diag(noise)
    apart = float(off @ np.linalg.solve(spread, off))
    trust = np.diag(1.0 / noise)
    if apart > _CONTRADICTED:
        trust *= _CONTRADICTED / apart
    both = np.linalg.inv(information + trust)
    mean = best - both @ (trust @ off)
    return mean + np.linalg.cholesky(both) @ draw, min(apart, _CONTRADICTED)
