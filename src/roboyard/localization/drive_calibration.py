"""Calibration of a drive with a left and a right side: slip factor, wheel radii and track, with their uncertainty.

`fit_slip_factor` regresses the slip factor alone.  Without slip a drive would rotate by
(distance_right - distance_left) / c; a skid-steered one rotates k times less.  Over many rotations k is the slope of
the rotation without slip against the true rotation, by least squares through the origin.

`fit_drive` fits radii and track together from straight lines and rotations.  With wheel angles φ, the true distance D
of the axle's midpoint and the true rotation θ of a maneuver,

    D = (a_l φ_l + a_r φ_r) / 2,    θ = (a_r φ_r - a_l φ_l) / b,

where a are the rolling radii and b = k·c is the effective track: nominal track c times slip factor k.  The three
unknowns are fitted to all maneuvers at once by least squares.  Straight lines determine the radii, rotations the track,
and the curvature of the straight lines the difference between left and right.  A straight line is far more certain than
a rotation, in which wheels slip; therefore distances and rotations of both kinds of maneuvers are weighted by their
residuals.  For the same reason straight lines do not contribute to the track: their small rotations have almost no
slip, and their weight would suppress all true rotations.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from roboyard.control.wheel_kinematics import DifferentialDrive
from roboyard.errors import InputError


@dataclass(frozen=True, slots=True)
class SlipFactorFit:
    """Result of the regression of the slip factor.

    Attributes:
        slip_factor: k.
        standard_error: Standard error of k.
        confidence_interval: Confidence interval of k.
        confidence: Confidence of the interval, e.g. 0.95.
        residual_rms: Root mean square of the residuals, as true rotation [rad].
        n_samples: Number of rotations.
    """

    slip_factor: float
    standard_error: float
    confidence_interval: tuple[float, float]
    confidence: float
    residual_rms: float
    n_samples: int


def compute_no_slip_rotations(
    drive: DifferentialDrive, left_angles: ArrayLike, right_angles: ArrayLike
) -> NDArray[np.float64]:
    """Return the rotations [rad] that wheel angles (n,) [rad] would cause without slip (k = 1)."""
    left_distances = np.asarray(left_angles, dtype=np.float64) * drive.wheel_radius * drive.left_radius_scale
    right_distances = np.asarray(right_angles, dtype=np.float64) * drive.wheel_radius * drive.right_radius_scale
    rotations: NDArray[np.float64] = (right_distances - left_distances) / drive.track
    return rotations


def fit_slip_factor(no_slip_rotations: ArrayLike, true_rotations: ArrayLike, confidence: float = 0.95) -> SlipFactorFit:
    """Fit the slip factor k to measured rotations.

    Args:
        no_slip_rotations: (n,) rotations by the wheels without slip [rad], see ``compute_no_slip_rotations``.
        true_rotations: (n,) true rotations of the base [rad].
        confidence: Confidence of the interval.

    Raises:
        InputError: Fewer than two rotations, unequal lengths, numbers that are not finite, or no true rotation at all.
    """
    x, y = np.asarray(true_rotations, dtype=np.float64), np.asarray(no_slip_rotations, dtype=np.float64)
    if x.ndim != 1 or x.shape != y.shape or x.size < 2:
        raise InputError(
            f"rotations of shapes {y.shape} and {x.shape}", valid="two equally long lists of at least 2 rotations"
        )
    if not (np.isfinite(x).all() and np.isfinite(y).all()):
        raise InputError("a rotation is not finite", valid="finite angles [rad]")
    if not 0.0 < confidence < 1.0:
        raise InputError(f"confidence {confidence}", valid="between 0 and 1")
    sum_of_squares = float(x @ x)
    if sum_of_squares < 1e-6:
        raise InputError("the base did not rotate", valid="rotations of some radians")
    slope = float(x @ y) / sum_of_squares
    errors = y - slope * x
    degrees_of_freedom = x.size - 1
    standard_error = math.sqrt(float(errors @ errors) / degrees_of_freedom / sum_of_squares)
    from scipy.stats import t as student  # heavy, and only calibration needs it

    half_width = float(student.ppf(0.5 + 0.5 * confidence, degrees_of_freedom)) * standard_error
    return SlipFactorFit(
        slip_factor=slope,
        standard_error=standard_error,
        confidence_interval=(slope - half_width, slope + half_width),
        confidence=confidence,
        residual_rms=math.sqrt(float(errors @ errors) / x.size) / slope if slope else math.inf,
        n_samples=int(x.size),
    )


_N_REWEIGHTINGS = 8
_MAX_ITERATIONS = 30
_MAX_STRAIGHT_ROTATION = 0.1
"""Maneuvers with a smaller rotation count as straight lines [rad]."""
_MIN_RESIDUAL_STD = 1e-9
"""Least standard deviation of residuals, so that exact data can be weighted [m, rad]."""


class DriveMoves(NamedTuple):
    """Executed maneuvers with their wheel angles and their true motion.

    Attributes:
        left_angles: (n,) rotations of the left wheels [rad].
        right_angles: (n,) rotations of the right wheels [rad].
        distances: (n,) true distances of the axle's midpoint [m].
        rotations: (n,) true rotations of the base [rad].
        is_straight: (n,) whether the maneuver is a straight line.
    """

    left_angles: NDArray[np.float64]
    right_angles: NDArray[np.float64]
    distances: NDArray[np.float64]
    rotations: NDArray[np.float64]
    is_straight: NDArray[np.bool_]


@dataclass(frozen=True, slots=True)
class ParameterEstimate:
    """Estimated value of a parameter, with its uncertainty.

    Attributes:
        value: Most likely value.
        standard_error: Standard error of the value.
        confidence_interval: Interval that holds the true value with the confidence of the fit.
    """

    value: float
    standard_error: float
    confidence_interval: tuple[float, float]


@dataclass(frozen=True, slots=True)
class DriveFit:
    """Result of the calibration of a drive.

    Attributes:
        drive: The drive with the fitted parameters; its track is the nominal one.
        wheel_radius: Mean of both sides [m].
        left_radius_scale: Left over mean radius.
        right_radius_scale: Right over mean radius.
        slip_factor: k.
        effective_track: k·c [m].
        confidence: Confidence of the intervals.
        distance_residuals: (n,) measured minus fitted distances [m].
        rotation_residuals: (n,) measured minus fitted rotations [rad].
    """

    drive: DifferentialDrive
    wheel_radius: ParameterEstimate
    left_radius_scale: ParameterEstimate
    right_radius_scale: ParameterEstimate
    slip_factor: ParameterEstimate
    effective_track: ParameterEstimate
    confidence: float
    distance_residuals: NDArray[np.float64]
    rotation_residuals: NDArray[np.float64]


def fit_drive(
    nominal: DifferentialDrive,
    left_angles: ArrayLike,
    right_angles: ArrayLike,
    distances: ArrayLike,
    rotations: ArrayLike,
    confidence: float = 0.95,
) -> DriveFit:
    """Fit radii and track to executed maneuvers.

    Args:
        nominal: The drive as described; gives the track, the axle and the start of the iteration.
        left_angles: (n,) rotations of the left wheels [rad].
        right_angles: (n,) rotations of the right wheels [rad].
        distances: (n,) true distances of the axle's midpoint, along its heading [m].
        rotations: (n,) true rotations [rad], not wrapped.
        confidence: Confidence of the intervals.

    Raises:
        InputError: Fewer than three maneuvers, unequal lengths, numbers that are not finite, or maneuvers that do not
            determine all parameters: no straight lines, or no rotations.
    """
    data = [np.asarray(values, dtype=np.float64) for values in (left_angles, right_angles, distances, rotations)]
    size = data[0].size
    if any(row.ndim != 1 or row.size != size for row in data) or size < 3:
        raise InputError(
            f"maneuvers of shapes {[row.shape for row in data]}", valid="equally long lists of at least 3 maneuvers"
        )
    if not all(np.isfinite(row).all() for row in data):
        raise InputError("a maneuver is not finite", valid="finite angles [rad] and distances [m]")
    if not 0.0 < confidence < 1.0:
        raise InputError(f"confidence {confidence}", valid="between 0 and 1")
    left, right, true_distances, true_rotations = data
    is_straight = np.abs(true_rotations) < _MAX_STRAIGHT_ROTATION
    moves = DriveMoves(left, right, true_distances, true_rotations, is_straight)
    if np.abs(moves.rotations).max() < 0.1 or np.abs(moves.distances).max() < 1e-3:
        raise InputError(
            "the maneuvers contain no usable motion",
            valid="rotations of some radians and straights of some wheel revolutions",
        )
    p = np.array(
        [
            nominal.wheel_radius * nominal.left_radius_scale,
            nominal.wheel_radius * nominal.right_radius_scale,
            nominal.effective_track,
        ]
    )
    residual_kinds = np.concatenate([moves.is_straight, 2 + moves.is_straight])
    residual_stds = np.ones(2 * size)
    for _ in range(_N_REWEIGHTINGS):
        p = _fit_parameters(p, moves, residual_stds)
        residuals = _compute_residuals(p, moves)
        residual_stds = _compute_residual_stds(residuals, residual_kinds)
    jacobian = _compute_jacobian(p, moves) / residual_stds[:, None]
    covariance: NDArray[np.float64] = np.asarray(np.linalg.inv(jacobian.T @ jacobian), dtype=np.float64)
    # four standard deviations follow from few maneuvers each: the rarer kind determines their certainty
    degrees_of_freedom = max(int(np.unique(residual_kinds, return_counts=True)[1].min()) - 1, 1)
    return _make_drive_fit(nominal, p, covariance, residuals.reshape(2, size), confidence, degrees_of_freedom)


def _compute_residual_stds(residuals: NDArray[np.float64], residual_kinds: NDArray[np.int64]) -> NDArray[np.float64]:
    """Return (2n,) standard deviations of the residuals by kind, corrected for the three unknowns."""
    redundancy = 1.0 - 3.0 / residuals.size
    stds = np.empty_like(residuals)
    for k in range(4):
        is_of_kind = residual_kinds == k
        if is_of_kind.any():
            stds[is_of_kind] = max(float(np.sqrt((residuals[is_of_kind] ** 2).mean() / redundancy)), _MIN_RESIDUAL_STD)
    return stds


def _compute_residuals(p: NDArray[np.float64], moves: DriveMoves) -> NDArray[np.float64]:
    """Return (2n,) measured minus predicted distances [m] and rotations [rad] for radii and track ``p`` (3,) [m]."""
    phi_l, phi_r = moves.left_angles, moves.right_angles
    distances = 0.5 * (p[0] * phi_l + p[1] * phi_r)
    rotations = (p[1] * phi_r - p[0] * phi_l) / p[2]
    return np.concatenate([moves.distances - distances, moves.rotations - rotations])


def _compute_jacobian(p: NDArray[np.float64], moves: DriveMoves) -> NDArray[np.float64]:
    """Return (2n, 3) derivatives of distances and rotations by the unknowns; straight lines have none by the track."""
    phi_l, phi_r = moves.left_angles, moves.right_angles
    zeros = np.zeros_like(phi_l)
    distance_rows = np.column_stack([0.5 * phi_l, 0.5 * phi_r, zeros])
    track_derivatives = np.where(moves.is_straight, 0.0, -(p[1] * phi_r - p[0] * phi_l) / p[2] ** 2)
    rotation_rows = np.column_stack([-phi_l / p[2], phi_r / p[2], track_derivatives])
    return np.vstack([distance_rows, rotation_rows])


def _fit_parameters(
    p: NDArray[np.float64], moves: DriveMoves, residual_stds: NDArray[np.float64]
) -> NDArray[np.float64]:
    """Fit the unknowns by Gauss-Newton steps, of which few are needed: only b enters nonlinearly.

    Raises:
        InputError: The maneuvers do not determine all unknowns.
    """
    weights = 1.0 / residual_stds
    for _ in range(_MAX_ITERATIONS):
        jacobian = _compute_jacobian(p, moves) * weights[:, None]
        scale = np.linalg.norm(jacobian, axis=0)
        if scale.min() <= 0.0 or np.linalg.cond(jacobian / scale) > 1e6:
            raise InputError(
                "the maneuvers do not determine radii and track", valid="straights and rotations in both directions"
            )
        step, *_ = np.linalg.lstsq(jacobian, _compute_residuals(p, moves) * weights, rcond=None)
        # the track must stay positive: never more than halve it at once
        p = p + step * min(1.0, 0.5 * abs(p[2] / step[2]) if step[2] else 1.0)
        if np.abs(step).max() < 1e-14:
            break
    if not (np.isfinite(p).all() and (p > 0.0).all()):
        raise InputError(f"radii {p[0]:.3g}, {p[1]:.3g} and track {p[2]:.3g} m", valid="consistent maneuvers")
    return np.asarray(p, dtype=np.float64)


def _make_drive_fit(
    nominal: DifferentialDrive,
    p: NDArray[np.float64],
    covariance: NDArray[np.float64],
    residuals: NDArray[np.float64],
    confidence: float,
    degrees_of_freedom: int,
) -> DriveFit:
    from scipy.stats import t as student  # heavy, and only calibration needs it

    quantile = float(student.ppf(0.5 + 0.5 * confidence, degrees_of_freedom))
    mean = 0.5 * (p[0] + p[1])

    def make_estimate(value: float, gradient: list[float]) -> ParameterEstimate:
        slope = np.array(gradient)
        standard_error = float(np.sqrt(slope @ covariance @ slope))
        return ParameterEstimate(
            float(value),
            standard_error,
            (float(value - quantile * standard_error), float(value + quantile * standard_error)),
        )

    scale_derivative = 0.5 / mean**2
    left, right = p[0] / mean, p[1] / mean
    drive = DifferentialDrive(
        wheel_radius=float(mean),
        track=nominal.track,
        slip_factor=float(p[2] / nominal.track),
        left_radius_scale=float(left),
        right_radius_scale=float(right),
        axle_x=nominal.axle_x,
    )
    return DriveFit(
        drive,
        wheel_radius=make_estimate(mean, [0.5, 0.5, 0.0]),
        left_radius_scale=make_estimate(left, [scale_derivative * p[1], -scale_derivative * p[0], 0.0]),
        right_radius_scale=make_estimate(right, [-scale_derivative * p[1], scale_derivative * p[0], 0.0]),
        slip_factor=make_estimate(p[2] / nominal.track, [0.0, 0.0, 1.0 / nominal.track]),
        effective_track=make_estimate(p[2], [0.0, 0.0, 1.0]),
        confidence=confidence,
        distance_residuals=residuals[0],
        rotation_residuals=residuals[1],
    )
