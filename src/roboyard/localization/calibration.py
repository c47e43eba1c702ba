"""Calibration of a two-sided drive from driven turns: the slip factor k with its uncertainty.

A drive without slip would turn by (way_right - way_left) / c; a skid-steered one turns k times less.  Over many turns k
is the slope of rolled against true turn, by least squares through the origin (no wheel motion, no turn).
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray

from roboyard.control.kinematics import DifferentialDrive
from roboyard.errors import InputError


@dataclass(frozen=True, slots=True)
class SlipFit:
    """Result of a regression.

    Attributes:
        slip_factor: k.
        standard_error: Of k.
        interval: Confidence interval of k.
        confidence: Of the interval, e.g. 0.95.
        residual: Root mean square of what the fit leaves, as true turn [rad].
        count: Number of turns.
    """

    slip_factor: float
    standard_error: float
    interval: tuple[float, float]
    confidence: float
    residual: float
    count: int


def rolled_turn(drive: DifferentialDrive, left: ArrayLike, right: ArrayLike) -> NDArray[np.float64]:
    """Turns [rad] that wheel angles (n,) [rad] would make without slip (k = 1)."""
    way_left = np.asarray(left, dtype=np.float64) * drive.wheel_radius * drive.left_radius_scale
    way_right = np.asarray(right, dtype=np.float64) * drive.wheel_radius * drive.right_radius_scale
    turn: NDArray[np.float64] = (way_right - way_left) / drive.track
    return turn


def fit_slip_factor(rolled: ArrayLike, turned: ArrayLike, confidence: float = 0.95) -> SlipFit:
    """Regress k from turns.

    Args:
        rolled: (n,) what the wheels say without slip [rad], see ``rolled_turn``.
        turned: (n,) what the base really turned [rad].
        confidence: Of the interval.

    Raises:
        InputError: fewer than two turns, unequal lengths, numbers that are not finite, or no true turn at all.
    """
    x, y = np.asarray(turned, dtype=np.float64), np.asarray(rolled, dtype=np.float64)
    if x.ndim != 1 or x.shape != y.shape or x.size < 2:
        raise InputError(f"turns of shapes {y.shape} and {x.shape}", valid="two equally long lists of at least 2 turns")
    if not (np.isfinite(x).all() and np.isfinite(y).all()):
        raise InputError("a turn is not finite", valid="finite angles [rad]")
    if not 0.0 < confidence < 1.0:
        raise InputError(f"confidence {confidence}", valid="between 0 and 1")
    power = float(x @ x)
    if power < 1e-6:
        raise InputError("the base did not turn", valid="turns of some radians")
    slope = float(x @ y) / power
    errors = y - slope * x
    freedom = x.size - 1
    standard_error = math.sqrt(float(errors @ errors) / freedom / power)
    from scipy.stats import t as student  # heavy, and only calibration needs it

    half = float(student.ppf(0.5 + 0.5 * confidence, freedom)) * standard_error
    return SlipFit(
        slip_factor=slope,
        standard_error=standard_error,
        interval=(slope - half, slope + half),
        confidence=confidence,
        residual=math.sqrt(float(errors @ errors) / x.size) / slope if slope else math.inf,
        count=int(x.size),
    )
