"""Local matching: motion prediction between scans, and the pose of a scan in the open submap.

Odometry may lose its sign, jump, freeze, be scaled wrongly, or be absent. So it is one motion hypothesis beside
constant velocity, and its weight follows its past agreement with the scans. Systematic errors of odometry (wrong wheel
size or track, a drift to one side) are estimated from the scans and corrected.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from roboyard.compute import expect_kernels
from roboyard.geometry import SE2, wrap_angle
from roboyard.mapping.scan import PreprocessedScan
from roboyard.mapping.scan_matching.correlative import LikelihoodPyramid, SearchWindow, match_correlative
from roboyard.mapping.scan_matching.point_to_line import (
    RefinementConfig,
    ScanMatch,
    gauss_newton,
    pose_difference,
    refine_pose,
)
from roboyard.mapping.scan_matching.surfel_map import SurfelMap, fraction_through_surfaces


@dataclass(frozen=True, slots=True)
class MotionPredictorConfig:
    """Parameters of the motion prediction.

    Attributes:
        odometry_noise: Standard deviation of the motion by odometry, at rest [m] and [rad].
        odometry_relative_noise: Standard deviation of odometry relative to the motion.
        acceleration: Standard deviation of the acceleration, for the hypothesis of constant velocity [m/s²] and
            [rad/s²].
        max_speed: Largest speed of the robot [m/s]; faster odometry counts as a jump, and is ignored.
        forgetting_factor: Weight of the old estimate of odometry's noise against the newest error.
        max_noise_scale: Largest factor by which the standard deviations of odometry are scaled.
        gain_std: Initial standard deviations of odometry's systematic errors: of the scale of distances, of the scale
            of rotations, and of a rotation per distance [rad/m].
        gain_drift: Growth of these standard deviations with each scan, as a fraction of the initial ones.
    """

    odometry_noise: tuple[float, float] = (0.02, 0.015)
    odometry_relative_noise: float = 0.1
    acceleration: tuple[float, float] = (0.6, 1.2)
    max_speed: float = 3.0
    forgetting_factor: float = 0.85
    max_noise_scale: float = 12.0
    gain_std: tuple[float, float, float] = (0.1, 0.1, 0.05)
    gain_drift: float = 0.02


@dataclass(frozen=True, slots=True)
class MotionHypothesis:
    """A predicted motion ``T_last_base`` since the last scan, with its standard deviations [m], [rad].

    The nominal standard deviations are those without the scale of odometry's noise.
    """

    motion: SE2
    sigma: float
    sigma_angle: float
    is_odometry: bool
    nominal_sigma: float = 0.0
    nominal_sigma_angle: float = 0.0

    def information(self, direction: float) -> NDArray[np.float64]:
        """Return the information (3, 3) of the motion in a frame in which the last pose has the heading ``direction``
        [rad]; it is equal for all headings.
        """
        return np.diag([1.0 / self.sigma**2, 1.0 / self.sigma**2, 1.0 / self.sigma_angle**2])

    def mahalanobis_cost(self, motion: SE2) -> float:
        """Return half the squared Mahalanobis distance of a motion from this hypothesis."""
        angle = float(wrap_angle(motion.theta - self.motion.theta))
        distance = self.motion.distance(motion)
        return 0.5 * ((distance / self.sigma) ** 2 + (angle / self.sigma_angle) ** 2)


class MotionPredictor:
    """Predicts motions between scans, and estimates the noise and the systematic errors of odometry.

    Args:
        config: Parameters.
    """

    def __init__(self, config: MotionPredictorConfig | None = None) -> None:
        self.config = config or MotionPredictorConfig()
        self.twist: NDArray[np.float64] = np.zeros(3)
        self.noise_scale = 1.0
        self._gains: NDArray[np.float64] = np.array([1.0, 1.0, 0.0])  # of way and turn, and turn by way
        self._gains_covariance: NDArray[np.float64] = np.diag(np.square(self.config.gain_std))
        self._last_scan_ns: int | None = None
        self._last_match_ns = 0  # when a scan last told where the robot is
        self._last_odometry: SE2 | None = None

    def predict(self, time_ns: int, odometry: SE2 | None) -> list[MotionHypothesis]:
        """Return hypotheses of the motion since the last scan, the most credible first; none before the first scan."""
        if self._last_scan_ns is None:
            return []
        config = self.config
        elapsed = max((time_ns - self._last_match_ns) * 1e-9, 1e-3)
        hypotheses = []
        prediction_time = min(elapsed, 2.0)
        constant_velocity_motion = SE2.exp(self.twist * prediction_time)
        if odometry is not None and self._last_odometry is not None:
            odometry_motion = self._correct_odometry(self._last_odometry.inverse() @ odometry)
            length, angle = math.hypot(odometry_motion.x, odometry_motion.y), abs(odometry_motion.theta)
            if length <= config.max_speed * max(elapsed, 0.2) + 0.5:
                relative_noise = config.odometry_relative_noise
                sigma = config.odometry_noise[0] + relative_noise * length
                sigma_angle = config.odometry_noise[1] + relative_noise * angle + 0.05 * length
                extra_scale = self.noise_scale - 1.0
                expected_distance = math.hypot(constant_velocity_motion.x, constant_velocity_motion.y)
                frozen_distance = (
                    expected_distance if 2.0 * length < expected_distance else 0.0
                )  # if it errs, then by all that it does not tell
                scaled_sigma, scaled_sigma_angle = (
                    sigma + extra_scale * (sigma + relative_noise * frozen_distance),
                    sigma_angle + extra_scale * sigma_angle,
                )
                hypotheses.append(
                    MotionHypothesis(odometry_motion, scaled_sigma, scaled_sigma_angle, True, sigma, sigma_angle)
                )
        half_squared_time = 0.5 * prediction_time * prediction_time
        speed = math.hypot(self.twist[0], self.twist[1])
        sigma = min(0.02 + half_squared_time * config.acceleration[0] + 0.1 * speed * prediction_time, 1.5)
        sigma_angle = min(
            0.02 + half_squared_time * config.acceleration[1] + 0.1 * abs(self.twist[2]) * prediction_time, 1.0
        )
        hypotheses.append(MotionHypothesis(constant_velocity_motion, sigma, sigma_angle, False))
        if self.noise_scale > 3.0:
            hypotheses.sort(key=lambda hypothesis: hypothesis.sigma)
        return hypotheses

    def update(
        self, time_ns: int, odometry: SE2 | None, motion: SE2 | None, is_informative: bool, odometry_error: float | None
    ) -> None:
        """Update velocity, noise and systematic errors of odometry by the motion that matching found.

        Args:
            time_ns: Time of the scan [ns].
            odometry: ``T_odom_base`` at the scan.
            motion: ``T_last_base`` that was found; None for the first scan.
            is_informative: Whether the scan was informative; otherwise the motion is only predicted.
            odometry_error: Squared error of odometry in nominal variances for each direction; None if unknown.
        """
        if (
            is_informative
            and odometry_error is not None
            and motion is not None
            and odometry is not None
            and self._last_odometry is not None
        ):
            self._update_odometry_gains(self._last_odometry.inverse() @ odometry, motion)
        is_motion_known = is_informative or (odometry is not None and self._last_odometry is not None)
        if motion is not None:
            elapsed = max((time_ns - self._last_match_ns) * 1e-9, 1e-3)
            if not is_motion_known:
                self.twist = 0.5 * self.twist
            elif elapsed < 5.0:
                blend = 1.0 if elapsed > 0.2 else max(0.2, elapsed / 0.2)
                self.twist = self.twist + blend * (motion.log() / elapsed - self.twist)
            else:
                self.twist = np.zeros(3)
            if odometry_error is not None:
                forgetting_factor = self.config.forgetting_factor
                newest_error = min(odometry_error, 4.0 * self.config.max_noise_scale**2)
                squared = forgetting_factor * self.noise_scale**2 + (1.0 - forgetting_factor) * newest_error
                self.noise_scale = min(max(1.0, math.sqrt(squared)), self.config.max_noise_scale)
        self._last_scan_ns, self._last_odometry = time_ns, odometry
        if is_motion_known or motion is None:
            self._last_match_ns = time_ns

    def _correct_odometry(self, odometry_motion: SE2) -> SE2:
        """Return a motion by odometry without the estimated systematic errors."""
        vx, vy, rotation = odometry_motion.log()
        distance_gain, rotation_gain, veer_gain = self._gains
        return SE2.exp((distance_gain * vx, distance_gain * vy, rotation_gain * rotation + veer_gain * vx))

    def _update_odometry_gains(self, odometry_motion: SE2, matched_motion: SE2) -> None:
        """Update the systematic errors of odometry by a Kalman filter; a large innovation, such as a jump, has little
        weight.
        """
        vx, _, rotation = odometry_motion.log()
        measured = matched_motion.log()
        covariance = self._gains_covariance + np.diag(
            np.square(np.array(self.config.gain_std) * self.config.gain_drift)
        )
        at_rest, relative_noise = self.config.odometry_noise, self.config.odometry_relative_noise
        for value, row, noise in (
            (measured[0], np.array([vx, 0.0, 0.0]), at_rest[0] + relative_noise * abs(vx)),
            (measured[2], np.array([0.0, rotation, vx]), at_rest[1] + relative_noise * abs(rotation) + 0.05 * abs(vx)),
        ):
            innovation = value - row @ self._gains
            variance = row @ covariance @ row + noise**2
            variance *= max(1.0, innovation * innovation / (4.0 * variance))
            gain = covariance @ row / variance
            self._gains = self._gains + gain * innovation
            covariance = covariance - np.outer(gain, row @ covariance)
        limits = np.square(self.config.gain_std)
        self._gains_covariance = covariance * min(1.0, float(np.min(limits / np.diag(covariance))))

    def reset(self, time_ns: int, odometry: SE2 | None) -> None:
        """Restart at a scan whose pose does not follow from the scans before."""
        self.twist = np.zeros(3)
        self._last_scan_ns, self._last_match_ns, self._last_odometry = time_ns, time_ns, odometry

    def reset_clock(self, time_ns: int) -> None:
        """Accept that the clock shows ``time_ns`` [ns]; the duration of the last motion is taken for half a second."""
        self._last_scan_ns = self._last_match_ns = time_ns - 500_000_000


_MAX_SEARCH_SIGMAS = 0.5, 0.25
"""Deviations of beliefs that a search takes into account, most [m] and [rad]."""
_N_SECTORS = 8
"""In which all directions are searched, to see whether more than one fits."""
_MIN_RESCUE_POINTS = 80
"""Points that such a search needs."""


@dataclass(frozen=True, slots=True)
class LocalMatcherConfig:
    """Parameters of the scan matching in the open submap.

    Attributes:
        good_fit: Fit above which a match near the likeliest hypothesis is accepted at once.
        min_relative_fit: Fit, as a fraction of the fit of recent scans, below which it is not accepted at once.
        trusted_relative_fit: Fit, as a fraction of the fit of recent scans, above which a match is believed against
            odometry.
        min_fit: Fit below which a scan is uninformative.
        min_points: Smallest number of points of an informative scan.
        search_threshold: Mahalanobis cost of the match above which a window around the hypotheses is searched.
        max_prior_cost: Upper limit of the Mahalanobis cost, so that false odometry cannot outweigh the scan.
        max_search_window: Half the width [m] and half the range of headings [rad] of the largest window.
        through_wall_cost: Cost of beams that pass through surfaces: this factor times their fraction.
        rescue_fit: Fit below which all directions are searched, if the match also contradicts odometry.
        rescue_relative_fit: Fit, as a fraction of the fit of recent scans, below which all directions are searched, if
            the motion may also exceed the window.
        rescue_limits: Smallest fit, and largest fraction of beams through surfaces, of a match in any direction.
        rescue_cost_margin: Smallest difference of its cost from that of the second-best match.
    """

    good_fit: float = 0.5
    min_relative_fit: float = 0.92
    trusted_relative_fit: float = 0.96
    min_fit: float = 0.25
    min_points: int = 15
    search_threshold: float = 4.0
    max_prior_cost: float = 10.0
    max_search_window: tuple[float, float] = (2.5, 0.8)
    through_wall_cost: float = 60.0
    rescue_fit: float = 0.4
    rescue_relative_fit: float = 0.8
    rescue_limits: tuple[float, float] = (0.35, 0.08)
    rescue_cost_margin: float = 10.0


@dataclass(frozen=True, slots=True)
class ScanPlacement:
    """Pose of a scan in a submap, with its uncertainty.

    Attributes:
        pose: ``T_anchor_base``.
        information: (3, 3) information of match and hypothesis together, in the anchor's frame.
        match: The match; None: the scan is uninformative, and the pose is that of the hypothesis.
        hypothesis: The hypothesis with the smallest Mahalanobis distance from the pose.
        odometry_error: Squared error of odometry relative to the match, in variances for each direction; None if
            unknown.
        is_typical_fit: Whether the scan fits as well as recent scans.
    """

    pose: SE2
    information: NDArray[np.float64]
    match: ScanMatch | None
    hypothesis: MotionHypothesis
    odometry_error: float | None = None
    is_typical_fit: bool = True


class ScanMatcher(Protocol):
    """Scan matcher of graph SLAM: the part of the pipeline that a class of your own can replace."""

    def match(
        self,
        scan: PreprocessedScan,
        surfels: SurfelMap,
        submap_key: tuple[int, int],
        last_pose: SE2,
        hypotheses: list[MotionHypothesis],
    ) -> ScanPlacement:
        """Find the pose of a scan in a submap.

        Args:
            scan: The scan.
            surfels: Surfaces of the submap, in the frame of its anchor.
            submap_key: Number and version of the submap; equal keys mean equal surfaces, for caches.
            last_pose: ``T_anchor_base`` of the previous scan.
            hypotheses: Predicted motions since the previous scan, the most credible first; at least one.

        Returns:
            The pose, and how certain it is.
        """
        ...


class LocalMatcher:
    """Scan matcher that refines the predicted pose, and searches where the refined pose is implausible.

    It implements `ScanMatcher`.

    Args:
        config: Conditions of a search.
        refinement_config: Parameters of the point-to-line refinement.
    """

    def __init__(
        self, config: LocalMatcherConfig | None = None, refinement_config: RefinementConfig | None = None
    ) -> None:
        expect_kernels(gauss_newton)
        self.config = config or LocalMatcherConfig()
        self.refinement_config = refinement_config or RefinementConfig()
        self._typical_fit = 0.0
        self._pyramid: LikelihoodPyramid | None = None
        self._pyramid_key: tuple[int, int] = (-1, -1)

    def match(
        self,
        scan: PreprocessedScan,
        surfels: SurfelMap,
        submap_key: tuple[int, int],
        last_pose: SE2,
        hypotheses: list[MotionHypothesis],
    ) -> ScanPlacement:
        """Find the pose of a scan in a submap; see `ScanMatcher.match`."""
        config = self.config
        likeliest = hypotheses[0]
        if len(scan.points) < config.min_points:
            return self._use_prediction(last_pose, hypotheses)
        matches = [self._refine_from(scan, surfels, last_pose, likeliest)]
        if not self._is_plausible(matches[0], last_pose, likeliest):
            matches += [self._refine_from(scan, surfels, last_pose, hypothesis) for hypothesis in hypotheses[1:]]
            searched_pose = self._search_near(scan, surfels, submap_key, last_pose, hypotheses)
            if searched_pose is not None:
                nearest_hypothesis = min(
                    hypotheses, key=lambda hypothesis: hypothesis.mahalanobis_cost(last_pose.inverse() @ searched_pose)
                )
                weak_information = nearest_hypothesis.information(last_pose.theta) * 0.05
                matches.append(
                    refine_pose(
                        surfels,
                        scan,
                        searched_pose,
                        self.refinement_config,
                        prior=searched_pose,
                        prior_information=weak_information,
                    )
                )
        costs = (
            [self._match_cost(match, surfels, scan, last_pose, hypotheses) for match in matches]
            if len(matches) > 1
            else [0.0]
        )
        best = matches[int(np.argmin(costs))]
        motion = last_pose.inverse() @ best.pose
        if len(matches) > 1 and self._needs_search(best, motion, hypotheses):
            best = self._search_all_directions(scan, surfels, submap_key, last_pose, hypotheses, min(costs)) or best
            motion = last_pose.inverse() @ best.pose
        hypothesis = min(hypotheses, key=lambda hypothesis: hypothesis.mahalanobis_cost(motion))
        if best.fit < config.min_fit:
            return self._use_prediction(last_pose, hypotheses)
        is_typical_fit = best.fit >= config.trusted_relative_fit * self._typical_fit
        self._typical_fit += 0.1 * (best.fit - self._typical_fit)
        prior_cost = hypothesis.mahalanobis_cost(motion)
        weight = min(1.0, config.search_threshold / prior_cost) if prior_cost > 0.0 else 1.0
        combined_information = best.information + weight * hypothesis.information(last_pose.theta)
        return ScanPlacement(
            best.pose,
            combined_information,
            best,
            hypothesis,
            _odometry_error(best, last_pose, hypotheses),
            is_typical_fit,
        )

    @staticmethod
    def _use_prediction(last_pose: SE2, hypotheses: list[MotionHypothesis]) -> ScanPlacement:
        """Keep the pose that odometry predicts; without odometry the last pose."""
        hypothesis = next((hypothesis for hypothesis in hypotheses if hypothesis.is_odometry), hypotheses[0])
        pose = last_pose @ hypothesis.motion if hypothesis.is_odometry else last_pose
        return ScanPlacement(pose, hypothesis.information(last_pose.theta), None, hypothesis)

    def _refine_from(
        self, scan: PreprocessedScan, surfels: SurfelMap, last_pose: SE2, hypothesis: MotionHypothesis
    ) -> ScanMatch:
        start = last_pose @ hypothesis.motion
        return refine_pose(
            surfels,
            scan,
            start,
            self.refinement_config,
            prior=start,
            prior_information=hypothesis.information(last_pose.theta),
        )

    def _is_plausible(self, match: ScanMatch, last_pose: SE2, hypothesis: MotionHypothesis) -> bool:
        min_fit = max(self.config.good_fit, self.config.min_relative_fit * self._typical_fit)
        return (
            match.fit >= min_fit
            and hypothesis.mahalanobis_cost(last_pose.inverse() @ match.pose) < self.config.search_threshold
        )

    def _match_cost(
        self,
        match: ScanMatch,
        surfels: SurfelMap,
        scan: PreprocessedScan,
        last_pose: SE2,
        hypotheses: list[MotionHypothesis],
    ) -> float:
        motion = last_pose.inverse() @ match.pose
        prior_cost = min(hypothesis.mahalanobis_cost(motion) for hypothesis in hypotheses)
        through_fraction = fraction_through_surfaces(surfels, scan, match.pose)
        return (
            match.data_cost
            + min(prior_cost, self.config.max_prior_cost)
            + self.config.through_wall_cost * through_fraction
        )

    def _needs_search(self, match: ScanMatch, motion: SE2, hypotheses: list[MotionHypothesis]) -> bool:
        """Return whether all directions have to be searched.

        This is so if the match fits badly and contradicts odometry, or if the motion may exceed the window that was
        searched.
        """
        config = self.config
        odometry_hypothesis = next((hypothesis for hypothesis in hypotheses if hypothesis.is_odometry), None)
        is_contradicted = (
            odometry_hypothesis is None or odometry_hypothesis.mahalanobis_cost(motion) > config.search_threshold
        )
        exceeds_search = any(
            hypothesis.sigma > _MAX_SEARCH_SIGMAS[0] or hypothesis.sigma_angle > _MAX_SEARCH_SIGMAS[1]
            for hypothesis in hypotheses
        )
        return (match.fit < config.rescue_fit and is_contradicted) or (
            match.fit < config.rescue_relative_fit * self._typical_fit and exceeds_search
        )

    def _search_all_directions(
        self,
        scan: PreprocessedScan,
        surfels: SurfelMap,
        submap_key: tuple[int, int],
        last_pose: SE2,
        hypotheses: list[MotionHypothesis],
        best_cost: float,
    ) -> ScanMatch | None:
        """Search a match without a hypothesis: the robot was turned or moved by hand, and odometry did not measure it.

        Its cost must be smaller by ``rescue_cost_margin`` than ``best_cost`` and than that of any other pose.
        """
        config = self.config
        min_fit, max_through_fraction = config.rescue_limits
        pyramid, points, angle_step = self._get_pyramid(surfels, submap_key), scan.points, 2.0 * search_angle_step(scan)
        points = points[:: max(1, len(points) // _MIN_RESCUE_POINTS)]
        sector = math.pi / _N_SECTORS
        candidates: list[tuple[float, ScanMatch]] = []
        for k in range(_N_SECTORS):
            sector_center = SE2(last_pose.x, last_pose.y, last_pose.theta + 2.0 * sector * k)
            coarse_match = match_correlative(
                pyramid, points, sector_center, SearchWindow(config.max_search_window[0], sector, angle_step), min_fit
            )
            if coarse_match is None:
                continue
            match = refine_pose(surfels, scan, coarse_match.pose, self.refinement_config)
            if match.fit >= min_fit and fraction_through_surfaces(surfels, scan, match.pose) <= max_through_fraction:
                candidates.append((self._match_cost(match, surfels, scan, last_pose, hypotheses), match))
        if not candidates:
            return None
        min_cost, best = min(candidates, key=lambda item: item[0])
        other_costs = [
            other_cost for other_cost, match in candidates if sum(pose_difference(best.pose, match.pose)) > 0.5
        ]
        return best if min_cost + config.rescue_cost_margin < min([best_cost, *other_costs]) else None

    def _get_pyramid(self, surfels: SurfelMap, submap_key: tuple[int, int]) -> LikelihoodPyramid:
        if submap_key != self._pyramid_key or self._pyramid is None:
            self._pyramid, self._pyramid_key = LikelihoodPyramid.from_points(surfels.means), submap_key
        return self._pyramid

    def _search_near(
        self,
        scan: PreprocessedScan,
        surfels: SurfelMap,
        submap_key: tuple[int, int],
        last_pose: SE2,
        hypotheses: list[MotionHypothesis],
    ) -> SE2 | None:
        center = last_pose @ hypotheses[0].motion
        half_width, half_angle = 0.3, 0.15
        for hypothesis in hypotheses:  # wide enough for all that may have happened
            distance, angle = pose_difference(center, last_pose @ hypothesis.motion)
            half_width = max(half_width, min(distance, 2.0) + 2.5 * min(hypothesis.sigma, _MAX_SEARCH_SIGMAS[0]))
            half_angle = max(half_angle, min(angle, 0.6) + 2.5 * min(hypothesis.sigma_angle, _MAX_SEARCH_SIGMAS[1]))
        max_window = self.config.max_search_window
        coarse_match = match_correlative(
            self._get_pyramid(surfels, submap_key),
            scan.points,
            center,
            SearchWindow(min(half_width, max_window[0]), min(half_angle, max_window[1]), search_angle_step(scan)),
        )
        return None if coarse_match is None else coarse_match.pose


def _odometry_error(match: ScanMatch, last_pose: SE2, hypotheses: list[MotionHypothesis]) -> float | None:
    hypothesis = next((hypothesis for hypothesis in hypotheses if hypothesis.is_odometry), None)
    if hypothesis is None:
        return None
    predicted_pose = last_pose @ hypothesis.motion
    residual = np.array(
        [
            match.pose.x - predicted_pose.x,
            match.pose.y - predicted_pose.y,
            wrap_angle(match.pose.theta - predicted_pose.theta),
        ]
    )
    odometry_covariance = np.diag(
        [hypothesis.nominal_sigma**2, hypothesis.nominal_sigma**2, hypothesis.nominal_sigma_angle**2]
    )
    match_covariance = np.linalg.inv(match.information + np.diag([1e-2, 1e-2, 1e-2]))
    return float(residual @ np.linalg.solve(odometry_covariance + match_covariance, residual)) / 3.0


def search_angle_step(scan: PreprocessedScan, resolution: float = 0.1) -> float:
    """Return the step of headings with which distant points move by about one cell [rad]."""
    if not len(scan.points):
        return math.radians(1.0)
    far_distance = float(np.percentile(np.linalg.norm(scan.points, axis=1), 80.0))
    return min(max(resolution / max(far_distance, 0.1), math.radians(0.5)), math.radians(3.0))
