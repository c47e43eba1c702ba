"""The detector of a bachelor's thesis (Westfälische Hochschule 2017) with its constants, to be compared with.

Circles by Hough at a fixed scale, a mark by grey level, depth at pixels shifted by a fixed rule, millimetres by one
focal length.  Positions are in the thesis's arm frame: x to the side, y ahead, z up, zero where its camera's view ends.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from itertools import combinations

import numpy as np
from numpy.typing import NDArray

from roboyard.errors import InputError
from roboyard.vision.discs.config import DiscConfig
from roboyard.vision.discs.hough import hough_circles
from roboyard.vision.opencv import opencv

U8 = NDArray[np.uint8]
F32 = NDArray[np.float32]
Array = NDArray[np.float64]

FOCAL = 530.0  # [px]
ZERO = -12.0, 95.0, 564.0  # [mm] of the arm frame from the camera
_SHIFT, _FROM = 0.1, (130.0, 60.0)  # depth pixel u' = u + 0.1 (u − 130), v' = v + 0.1 (v − 60)
_WHITE_BELOW, _BLACK_ABOVE = 200, 201  # grey level in the middle of a white, of a black disc
_WINDOW, _PAIR_WINDOW, _EVERY = 5, 3, 2  # [px] of depth that is averaged
_EXTRA = 2.0  # [mm] the code adds to a pair's distance


@dataclass(frozen=True, eq=False)
class ThesisDisc:
    """A disc, or the middle of a pair, as the thesis measures it.

    Attributes:
        pixel: (2,) [px].
        radius: [px].
        position: (3,) in its arm frame [m].
        diameter: [m].
        distance: Of a pair, with the code's 2 mm [m]; 0 of a single disc.
    """

    pixel: Array
    radius: float
    position: Array
    diameter: float
    distance: float = 0.0


def thesis_discs(image: U8, depth: F32, config: DiscConfig) -> list[ThesisDisc]:
    """Discs, or middles of pairs, as ``config.mode`` says.

    Args:
        image: (480, 640, 3) in RGB.
        depth: (480, 640) as the depth camera sees it, not registered [m].
        config: Polarity, mode, diameter, distance, their tolerances, sensitivity, radii.

    Raises:
        InputError: pictures of another size: the constants hold for that one only.
    """
    if image.shape[:2] != (480, 640) or depth.shape != (480, 640):
        raise InputError(
            f"pictures of {image.shape[:2]} and {depth.shape} for the thesis's method", valid="480 rows, 640 columns"
        )
    grey = opencv().cvtColor(image, opencv().COLOR_RGB2GRAY) if image.ndim == 3 else image
    found = []
    for x, y, radius in hough_circles(image, config):
        middle = int(grey[min(round(y), 479), min(round(x), 639)])
        if not (middle < _WHITE_BELOW if config.polarity == "white" else middle > _BLACK_ABOVE):
            continue
        column, row = _depth_pixel(x, y)
        if not (_WINDOW < column < 640 - _WINDOW and _WINDOW < row < 480 - _WINDOW):
            continue
        z = _mean_depth(depth, column, row, _WINDOW)
        real = round(radius * z / FOCAL, 2)
        if not abs(2.0 * real - 1e3 * config.diameter) < 1e3 * config.diameter_tolerance:
            continue
        position = np.array([ZERO[0] - (320.0 - x) * z / FOCAL, ZERO[1] + (240.0 - y) * z / FOCAL, ZERO[2] - z])
        found.append(ThesisDisc(np.array([x, y]), radius, 1e-3 * position, 2e-3 * real))
    return found if config.mode == "single" else _pairs(found, depth, config)


def _depth_pixel(x: float, y: float) -> tuple[int, int]:
    return round(x + (x - _FROM[0]) * _SHIFT), round(y + (y - _FROM[1]) * _SHIFT)


def _mean_depth(depth: F32, column: int, row: int, window: int) -> float:
    """Of every other pixel round it [mm]; not a number where none is known."""
    part = depth[row - window : row + window + 1 : _EVERY, column - window : column + window + 1 : _EVERY]
    known = part[np.isfinite(part)]
    return 1e3 * float(known.mean(dtype=np.float64)) if known.size else math.nan


def _pairs(discs: list[ThesisDisc], depth: F32, config: DiscConfig) -> list[ThesisDisc]:
    found = []
    for one, two in combinations(discs, 2):
        distance = float(np.hypot(*(one.position - two.position)[:2])) + 1e-3 * _EXTRA
        if not abs(distance - config.distance) < config.distance_tolerance:
            continue
        middle = replace(
            one, pixel=0.5 * (one.pixel + two.pixel), radius=0.5 * (one.radius + two.radius), distance=distance,
            position=0.5 * (one.position + two.position), diameter=0.5 * (one.diameter + two.diameter),
        )  # fmt: skip
        column, row = (
            round(0.5 * (a + b)) for a, b in zip(_depth_pixel(*one.pixel), _depth_pixel(*two.pixel), strict=True)
        )
        middle.position[2] = 1e-3 * (ZERO[2] - _mean_depth(depth, column, row, _PAIR_WINDOW))
        found.append(middle)
    return found
