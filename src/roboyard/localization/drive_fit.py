"""Calibration of a two-sided drive from straights and turns: wheel radii and track, with their uncertainty.

With wheel angles φ and the real way D of the axle's middle and turn θ of a move,

    D = (a_l φ_l + a_r φ_r) / 2,    θ = (a_r φ_r - a_l φ_l) / b,

where a are the rolling radii and b = k·c is the effective track: nominal track c times slip factor k.  Three unknowns
are fitted to all moves at once by least squares.  Straights tell the radii, turns the track, and how straight the
straights are tells left from right.  A straight is far more certain than a turn, in which wheels slip; so ways and
turns of both kinds of moves are weighted by what the fit leaves of each.  And so straights have no say in the track:
what they turn by the way they turn almost without slip, and with a weight that would silence all turns.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray

from roboyard.control.kinematics import DifferentialDrive
from roboyard.errors import InputError

_REWEIGHTINGS = 8
_ITERATIONS = 30
_STRAIGHT = 0.1
"""Moves that turn less count as straights [rad]."""
_LEAST = 1e-9
"""Of a spread, so that exact data can be weighted [m, rad]."""


@dataclass(frozen=True, slots=True)
class Estimate:
    """A number with its uncertainty.

    Attributes:
        value: Most likely.
        standard_error: Of it.
        interval: That holds the true value with the fit's confidence.
    """

    value: float
    standard_error: float
    interval: tuple[float, float]


@dataclass(frozen=True, slots=True)
class DriveFit:
    """A calibrated drive.

    Attributes:
        drive: With the fitted numbers; its track is the nominal one.
        wheel_radius: Mean of both sides [m].
        left_radius_scale: Left over mean radius.
        right_radius_scale: Right over mean radius.
        slip_factor: k.
        effective_track: k·c [m].
        confidence: Of the intervals.
        way_residuals: (n,) measured less fitted ways [m].
        turn_residuals: (n,) measured less fitted turns [rad].
    """

    drive: DifferentialDrive
    wheel_radius: Estimate
    left_radius_scale: Estimate
    right_radius_scale: Estimate
    slip_factor: Estimate
    effective_track: Estimate
    confidence: float
    way_residuals: NDArray[np.float64]
    turn_residuals: NDArray[np.float64]


def fit_drive(
    nominal: DifferentialDrive,
    left: ArrayLike,
    right: ArrayLike,
    way: ArrayLike,
    turn: ArrayLike,
    confidence: float = 0.95,
) -> DriveFit:
    """Fit radii and track to driven moves.

    Args:
        nominal: What the drive was taken for; gives track, axle and where to begin.
        left: (n,) angles that the left wheels turned [rad].
        right: (n,) the right ones.
        way: (n,) real ways of the axle's middle, along its heading [m].
        turn: (n,) real turns [rad], not wrapped.
        confidence: Of the intervals.

    Raises:
        InputError: fewer than three moves, unequal lengths, numbers that are not finite, or moves that do not tell the
            numbers apart: no straights, or no turns.
    """
    data = [np.asarray(values, dtype=np.float64) for values in (left, right, way, turn)]
    size = data[0].size
    if any(row.ndim != 1 or row.size != size for row in data) or size < 3:
        raise InputError(
            f"moves of shapes {[row.shape for row in data]}", valid="equally long lists of at least 3 moves"
        )
    if not all(np.isfinite(row).all() for row in data):
        raise InputError("a move is not finite", valid="finite angles [rad] and ways [m]")
    if not 0.0 < confidence < 1.0:
        raise InputError(f"confidence {confidence}", valid="between 0 and 1")
    phi_l, phi_r, D, theta = data
    if np.abs(theta).max() < 0.1 or np.abs(D).max() < 1e-3:
        raise InputError("the moves tell nothing", valid="turns of some radians and straights of some wheel turns")
    p = np.array(
        [
            nominal.wheel_radius * nominal.left_radius_scale,
            nominal.wheel_radius * nominal.right_radius_scale,
            nominal.effective_track,
        ]
    )
    straight = np.abs(theta) < _STRAIGHT
    kind = np.concatenate([straight, 2 + straight])
    spread = np.ones(2 * size)
    for _ in range(_REWEIGHTINGS):
        p = _solve(p, phi_l, phi_r, D, theta, spread, straight)
        left_over = _residuals(p, phi_l, phi_r, D, theta)
        spread = _spread(left_over, kind)
    jacobian = _jacobian(p, phi_l, phi_r, straight) / spread[:, None]
    covariance: NDArray[np.float64] = np.asarray(np.linalg.inv(jacobian.T @ jacobian), dtype=np.float64)
    # four spreads are found from few moves each: the rarer kind says how sure that is
    freedom = max(int(np.unique(kind, return_counts=True)[1].min()) - 1, 1)
    return _result(nominal, p, covariance, left_over.reshape(2, size), confidence, freedom)


def _spread(left_over: NDArray[np.float64], kind: NDArray[np.int64]) -> NDArray[np.float64]:
    """(2n,) standard deviation of each residual: that of its kind, each paying its share of the three unknowns."""
    share = 1.0 - 3.0 / left_over.size
    spread = np.empty_like(left_over)
    for k in range(4):
        where = kind == k
        if where.any():
            spread[where] = max(float(np.sqrt((left_over[where] ** 2).mean() / share)), _LEAST)
    return spread


def _residuals(p: NDArray[np.float64], phi_l, phi_r, D, theta) -> NDArray[np.float64]:  # type: ignore[no-untyped-def]
    way = 0.5 * (p[0] * phi_l + p[1] * phi_r)
    turn = (p[1] * phi_r - p[0] * phi_l) / p[2]
    return np.concatenate([D - way, theta - turn])


def _jacobian(
    p: NDArray[np.float64], phi_l: NDArray[np.float64], phi_r: NDArray[np.float64], straight: NDArray[np.bool_]
) -> NDArray[np.float64]:
    """(2n, 3) of ways and turns by the unknowns, where straights do not know the track."""
    none = np.zeros_like(phi_l)
    ways = np.column_stack([0.5 * phi_l, 0.5 * phi_r, none])
    by_track = np.where(straight, 0.0, -(p[1] * phi_r - p[0] * phi_l) / p[2] ** 2)
    turns = np.column_stack([-phi_l / p[2], phi_r / p[2], by_track])
    return np.vstack([ways, turns])


def _solve(p, phi_l, phi_r, D, theta, spread, straight) -> NDArray[np.float64]:  # type: ignore[no-untyped-def]
    """Gauss and Newton's method, which needs a few steps: only b enters not linearly.

    Raises:
        InputError: the moves do not tell the unknowns apart.
    """
    weights = 1.0 / spread
    for _ in range(_ITERATIONS):
        jacobian = _jacobian(p, phi_l, phi_r, straight) * weights[:, None]
        scale = np.linalg.norm(jacobian, axis=0)
        if scale.min() <= 0.0 or np.linalg.cond(jacobian / scale) > 1e6:
            raise InputError("the moves do not tell radii and track apart", valid="straights and turns, both ways")
        step, *_ = np.linalg.lstsq(jacobian, _residuals(p, phi_l, phi_r, D, theta) * weights, rcond=None)
        # the track must stay a length: never halve it at once
        p = p + step * min(1.0, 0.5 * abs(p[2] / step[2]) if step[2] else 1.0)
        if np.abs(step).max() < 1e-14:
            break
    if not (np.isfinite(p).all() and (p > 0.0).all()):
        raise InputError(f"radii {p[0]:.3g}, {p[1]:.3g} and track {p[2]:.3g} m", valid="moves as the wheels made them")
    return np.asarray(p, dtype=np.float64)


def _result(
    nominal: DifferentialDrive,
    p: NDArray[np.float64],
    covariance: NDArray[np.float64],
    left_over: NDArray[np.float64],
    confidence: float,
    freedom: int,
) -> DriveFit:
    from scipy.stats import t as student  # heavy, and only calibration needs it

    quantile = float(student.ppf(0.5 + 0.5 * confidence, freedom))
    mean = 0.5 * (p[0] + p[1])

    def estimate(value: float, gradient: list[float]) -> Estimate:
        slope = np.array(gradient)
        error = float(np.sqrt(slope @ covariance @ slope))
        return Estimate(float(value), error, (float(value - quantile * error), float(value + quantile * error)))

    part = 0.5 / mean**2
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
        wheel_radius=estimate(mean, [0.5, 0.5, 0.0]),
        left_radius_scale=estimate(left, [part * p[1], -part * p[0], 0.0]),
        right_radius_scale=estimate(right, [-part * p[1], part * p[0], 0.0]),
        slip_factor=estimate(p[2] / nominal.track, [0.0, 0.0, 1.0 / nominal.track]),
        effective_track=estimate(p[2], [0.0, 0.0, 1.0]),
        confidence=confidence,
        way_residuals=left_over[0],
        turn_residuals=left_over[1],
    )
