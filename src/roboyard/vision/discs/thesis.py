"""The detector of a bachelor's thesis (Westfälische Hochschule 2017) with its constants, to be compared with.

Circles by Hough at a fixed scale, a mark by grey level, depth at pixels shifted by a fixed rule, millimetres by one
focal length.  Positions are in the thesis's arm frame: x to the right, y ahead of its first joint's axis, z up from the
ground.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import combinations
from typing import Final

import numpy as np

from roboyard.errors import InputError
from roboyard.geometry.arrays import F32, U8, Array
from roboyard.vision.discs.config import DiscConfig
from roboyard.vision.discs.drawing import RED, write
from roboyard.vision.discs.votes import circles_by_votes
from roboyard.vision.opencv import opencv

_WHITE_BELOW, _BLACK_ABOVE = 200, 201  # grey level in the middle of a white, of a black disc
_WINDOW, _PAIR_WINDOW, _EVERY = 5, 3, 2  # [px] of depth that is averaged
_EXTRA = 2.0  # [mm] the code adds to a pair's distance


@dataclass(frozen=True)
class ThesisCamera:
    """How the thesis gets from pixels to its arm; the numbers hold for its own camera as it was screwed to its own arm.

    Attributes:
        focal: By which pixels become millimetres, with the distance [px].
        zero: x and y of the camera in the arm's frame, and its height [mm].
        depth_map: a, b, c, d of the depth pixel u' = u + a u + b, v' = v + c v + d of a pixel u, v [px]; the thesis
            writes 0.1 (u - 130) and 0.1 (v - 60).
    """

    focal: float = 530.0
    zero: tuple[float, float, float] = (-12.0, 95.0, 564.0)
    depth_map: tuple[float, float, float, float] = (0.1, -13.0, 0.1, -6.0)

    def __post_init__(self) -> None:
        if not (math.isfinite(self.focal) and self.focal > 0.0 and np.isfinite([*self.zero, *self.depth_map]).all()):
            raise InputError("a camera whose numbers make no sense", location="the thesis's camera", valid="focal > 0")

    def depth_pixel(self, x: float, y: float) -> tuple[int, int]:
        """Column and row in the depth picture of a place in the colour picture [px]."""
        a, b, c, d = self.depth_map
        return round(x + a * x + b), round(y + c * y + d)

    def place(self, x: float, y: float, z: float) -> Array:
        """(3,) in the arm's frame [mm] of a pixel at a distance [mm]."""
        scale = z / self.focal
        return np.array([self.zero[0] - (320.0 - x) * scale, self.zero[1] + (240.0 - y) * scale, self.zero[2] - z])


AS_LISTED: Final = ThesisCamera()


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


def thesis_discs(image: U8, depth: F32, config: DiscConfig, camera: ThesisCamera = AS_LISTED) -> list[ThesisDisc]:
    """Discs, or middles of pairs, as ``config.mode`` says.

    Args:
        image: (480, 640, 3) in RGB.
        depth: (480, 640) as the depth camera sees it, not registered [m].
        config: Polarity, mode, diameter, distance, their tolerances, sensitivity, radii.
        camera: From pixels to the arm.

    Raises:
        InputError: pictures of another size: the constants hold for that one only.
    """
    if image.shape[:2] != (480, 640) or depth.shape != (480, 640):
        raise InputError(
            f"pictures of {image.shape[:2]} and {depth.shape} for the thesis's method", valid="480 rows, 640 columns"
        )
    grey = opencv().cvtColor(image, opencv().COLOR_RGB2GRAY) if image.ndim == 3 else image
    found = []
    for x, y, radius in circles_by_votes(grey, config):
        middle = int(grey[min(round(y), 479), min(round(x), 639)])
        if not (middle < _WHITE_BELOW if config.polarity == "white" else middle > _BLACK_ABOVE):
            continue
        column, row = camera.depth_pixel(x, y)
        if not (_WINDOW < column < 640 - _WINDOW and _WINDOW < row < 480 - _WINDOW):
            continue
        z = _mean_depth(depth, column, row, _WINDOW)
        real = round(radius * z / camera.focal, 2)
        if not abs(2.0 * real - 1e3 * config.diameter) < 1e3 * config.diameter_tolerance:
            continue
        found.append(ThesisDisc(np.array([x, y]), radius, 1e-3 * camera.place(x, y, z), 2e-3 * real))
    return found if config.mode == "single" else _pairs(found, depth, config, camera)


def _mean_depth(depth: F32, column: int, row: int, window: int) -> float:
    """Of every other pixel round it [mm]; not a number where none is known."""
    part = depth[row - window : row + window + 1 : _EVERY, column - window : column + window + 1 : _EVERY]
    known = part[np.isfinite(part)]
    return 1e3 * float(known.mean(dtype=np.float64)) if known.size else math.nan


def _pairs(discs: list[ThesisDisc], depth: F32, config: DiscConfig, camera: ThesisCamera) -> list[ThesisDisc]:
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
            round(0.5 * (a + b))
            for a, b in zip(camera.depth_pixel(*one.pixel), camera.depth_pixel(*two.pixel), strict=True)
        )
        middle.position[2] = 1e-3 * (camera.zero[2] - _mean_depth(depth, column, row, _PAIR_WINDOW))
        found.append(middle)
    return found


def draw_thesis_discs(image: U8, discs: Sequence[ThesisDisc]) -> U8:
    """A copy (h, w, 3) with circles in red, with diameters and distances of pairs in mm, as its program shows them."""
    out = image.copy() if image.ndim == 3 else np.repeat(image[:, :, None], 3, axis=2)
    for one in discs:
        x, y = (round(float(value)) for value in one.pixel)
        opencv().circle(out, (x, y), round(one.radius), RED, 1, opencv().LINE_AA)
        apart = f" {1e3 * one.distance:.1f}" if one.distance else ""
        write(out, f"{1e3 * one.diameter:.1f}{apart}", (x + 10, y + 4), 0.4, RED)
    return out
