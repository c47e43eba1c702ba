"""How much speaks against an ellipse being a marked disc.

A letter's hole, a bolt or a bottle's cap fails at no single point but is a little wrong at several; a disc that is
partly hidden or blurred is wrong at one.  So doubts are added, each squared, in units at which it alone would do.
The units were measured at pictures of `roboyard.vision.synthetic`.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from roboyard.compute import kernel
from roboyard.geometry.arrays import Array
from roboyard.vision.discs.inside import (
    CONTRAST,
    LEVEL,
    LIGHTER,
    MARK,
    OFF_X,
    OFF_Y,
    OUTER,
    SHARE,
    SLENDER,
    TOLD,
    UNEVEN,
)

_SUPPORT, _LIGHTER = 0.6, 0.9
_SHARES = 0.10, 0.60
NEVER = math.inf


class Limits(NamedTuple):
    """What a disc may be.

    Attributes:
        radius_min: Least longer half axis [px].
        radius_max: Greatest longer half axis [px].
        flattest: Least ratio of the half axes.
        steepness: Of an edge at least [grey levels a pixel].
        contrast: To the surroundings at least [grey levels].
        doubt: Most that may speak against it.
        with_mark: Whether it has a mark.
        mark_contrast: Of the mark at least, as a part of the lighter one's grey level.
        inverted: Whether the picture was inverted, so that black discs are light.
        noise: Standard deviation of a pixel [grey levels].
    """

    radius_min: float
    radius_max: float
    flattest: float
    steepness: float
    contrast: float
    doubt: float
    with_mark: bool
    mark_contrast: float
    inverted: bool
    noise: float


def example_limits() -> Limits:
    """For kernels' examples."""
    return Limits(6.0, 18.0, 0.7, 1.0, 5.0, 1.0, True, 0.3, False, 1.0)


def _examples() -> list[tuple[object, ...]]:
    return [(np.zeros(5), np.zeros(3), np.zeros(TOLD), example_limits())]


@kernel(examples=_examples, error_model="numpy")
def doubts(ellipse: Array, fit: Array, inside: Array, limits: Limits) -> float:
    """Root of the sum of squared doubts; infinite where one is beyond the limits.

    Args:
        ellipse: (5,) middle, half axes, angle.
        fit: (3,) as `fine_outline` writes it.
        inside: (TOLD,) as `look_inside` writes it.
        limits: What a disc may be.
    """
    a, b, noise = ellipse[2], ellipse[3], limits.noise
    if not (limits.radius_min <= a <= limits.radius_max and b >= limits.flattest * a):
        return NEVER
    if fit[0] < _SUPPORT or inside[CONTRAST] < limits.contrast or inside[LIGHTER] < _LIGHTER:
        return NEVER
    contrast = max(inside[CONTRAST], inside[MARK]) if limits.with_mark else inside[CONTRAST]
    # An edge of this height and steepness is blurred by so much; blur eats small marks and the ring's evenness.
    blur = inside[CONTRAST] / (math.sqrt(2.0 * math.pi) * fit[2])
    # A mark of just the colour of the surroundings may be a hole; no hole has a third colour.
    alike = max(0.0, 1.0 - abs(inside[MARK] / inside[CONTRAST] - 1.0) / 0.4) if limits.with_mark else 0.5
    total = ((1.0 - fit[0]) / (0.29 - 0.11 * alike)) ** 2
    total += (max(0.0, fit[1] / (0.17 + 0.6 * noise / fit[2]) - 0.5) / 0.5) ** 2
    total += (inside[UNEVEN] / ((0.07 + 0.25 * blur / b) * contrast + noise)) ** 2
    if limits.with_mark:
        # Light falls on disc and mark alike: the darker one's part of the lighter one does not depend on it.
        lighter = 255.0 - inside[LEVEL] + inside[MARK] if limits.inverted else inside[LEVEL]
        part = inside[MARK] / max(lighter, 1.0)
        if part < limits.mark_contrast or inside[MARK] < 2.5 * noise:
            return NEVER
        if not _SHARES[0] <= inside[SHARE] <= _SHARES[1]:
            return NEVER
        kept = 1.0 - math.exp(-0.5 * inside[SHARE] ** 2 * a * b / (blur * blur))
        total += (max(0.0, 0.5 - part / max(kept, 0.25)) / 0.3) ** 2
        total += (math.hypot(inside[OFF_X], inside[OFF_Y]) / (0.04 * a + 0.3)) ** 2
        total += (inside[OUTER] / (0.1 + 0.3 * blur / b)) ** 2
        slender = inside[SLENDER]
        total += (max(0.0, 1.0 - slender * a / b) / 0.12) ** 2 + (max(0.0, slender - 1.03) / 0.08) ** 2
        total += (alike * (0.7 + min(max(inside[SHARE] - 0.3, 0.0) / 0.1, 2.0))) ** 2
    return math.sqrt(total)
