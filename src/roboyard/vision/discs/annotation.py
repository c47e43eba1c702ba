"""Drawing of detected discs, pairs and predicted paths into images."""

from __future__ import annotations

import math
from collections.abc import Sequence
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

from roboyard.geometry.arrays import U8
from roboyard.vision.discs.disc_detector import Disc
from roboyard.vision.discs.disc_pose import DiscPair, LocatedDisc
from roboyard.vision.opencv import opencv

RED, GREEN, BLUE = (230, 30, 30), (20, 170, 60), (40, 80, 230)
YELLOW = (245, 190, 20)
_SUBPIXEL_BITS = 4
"""Fractional bits of coordinates in OpenCV's drawing functions."""


def draw_discs(
    image: U8, discs: Sequence[Disc | LocatedDisc], pairs: Sequence[DiscPair] = (), scale: float = 0.4
) -> U8:
    """Return a copy (h, w, 3) with ellipses in red, centers in green, pairs in blue, diameters and distances in mm.

    Args:
        image: (h, w, 3) or (h, w).
        discs: Detected or located discs.
        pairs: Pairs of these discs.
        scale: Scale of the font.
    """
    cv2 = opencv()
    out = np.repeat(image[:, :, None], 3, axis=2) if image.ndim == 2 else image.copy()
    for one in discs:
        disc, center = (one.disc, one.pixel) if isinstance(one, LocatedDisc) else (one, one.center)
        box = tuple(disc.center.tolist()), (2.0 * disc.axes[0], 2.0 * disc.axes[1]), math.degrees(disc.angle)
        cv2.ellipse(out, box, RED, 1, cv2.LINE_AA)
        point = [round(float(value) * 2**_SUBPIXEL_BITS) for value in center]
        for dx, dy in ((3 << _SUBPIXEL_BITS, 0), (0, 3 << _SUBPIXEL_BITS)):
            ends = (point[0] - dx, point[1] - dy), (point[0] + dx, point[1] + dy)
            cv2.line(out, *ends, GREEN, 1, cv2.LINE_AA, _SUBPIXEL_BITS)
        if isinstance(one, LocatedDisc):
            label_position = (round(float(disc.center[0] + disc.radius + 3)), round(float(disc.center[1] + 4)))
            prefix = "" if one.has_depth else "~"
            draw_text(out, f"{prefix}{1e3 * one.diameter:.1f}", label_position, scale, RED)
    for pair in pairs:
        start, end = ([round(float(value)) for value in one.pixel] for one in (pair.first, pair.second))
        cv2.line(out, start, end, BLUE, 1, cv2.LINE_AA)
        pair_center = 0.5 * (pair.first.pixel + pair.second.pixel)
        cv2.circle(out, tuple(round(float(value)) for value in pair_center), 3, BLUE, -1, cv2.LINE_AA)
        pair_label_position = round(float(pair_center[0])) + 6, round(float(pair_center[1])) - 6
        draw_text(out, f"{1e3 * pair.distance:.1f}", pair_label_position, scale, BLUE)
    return out


def draw_predicted_paths(out: U8, paths: NDArray[np.float64]) -> None:
    """Draw predicted paths (k, seconds, 2) [px] into an image (h, w, 3), with a dot for each second."""
    cv2 = opencv()
    for path in paths:
        points = [
            tuple(round(float(value) * 2**_SUBPIXEL_BITS) for value in point)
            for point in path
            if np.isfinite(point).all()
        ]
        for start, end in pairwise(points):
            cv2.line(out, start, end, YELLOW, 1, cv2.LINE_AA, _SUBPIXEL_BITS)
        for point in points[1:]:
            cv2.circle(out, point, 3 << _SUBPIXEL_BITS, YELLOW, -1, cv2.LINE_AA, _SUBPIXEL_BITS)


def draw_text(out: U8, text: str, position: tuple[int, int], scale: float, color: tuple[int, int, int]) -> None:
    """Draw text with a white outline to the right of a position (column, row)."""
    cv2 = opencv()
    for width, stroke_color in ((3, (255, 255, 255)), (1, color)):
        cv2.putText(out, text, position, cv2.FONT_HERSHEY_SIMPLEX, scale, stroke_color, width, cv2.LINE_AA)
