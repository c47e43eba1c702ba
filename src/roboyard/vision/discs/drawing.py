"""A picture with what was found drawn into it."""

from __future__ import annotations

import math
from collections.abc import Sequence
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

from roboyard.geometry.arrays import U8
from roboyard.vision.discs.detect import Disc
from roboyard.vision.discs.pairs import DiscPair
from roboyard.vision.discs.place import PlacedDisc
from roboyard.vision.opencv import opencv

RED, GREEN, BLUE = (230, 30, 30), (20, 170, 60), (40, 80, 230)
YELLOW = (245, 190, 20)
_FINE = 4
"""Bits of a pixel's parts in OpenCV's drawing."""


def draw_discs(image: U8, discs: Sequence[Disc | PlacedDisc], pairs: Sequence[DiscPair] = (), scale: float = 0.4) -> U8:
    """A copy (h, w, 3) with the ellipses in red, middles in green, pairs in blue, diameters and distances in mm.

    Args:
        image: (h, w, 3) or (h, w).
        discs: As they are seen, or placed.
        pairs: Between them.
        scale: Of the letters.
    """
    cv2 = opencv()
    out = np.repeat(image[:, :, None], 3, axis=2) if image.ndim == 2 else image.copy()
    for one in discs:
        disc, middle = (one.disc, one.pixel) if isinstance(one, PlacedDisc) else (one, one.centre)
        box = tuple(disc.centre.tolist()), (2.0 * disc.axes[0], 2.0 * disc.axes[1]), math.degrees(disc.angle)
        cv2.ellipse(out, box, RED, 1, cv2.LINE_AA)
        point = [round(float(value) * 2**_FINE) for value in middle]
        for dx, dy in ((3 << _FINE, 0), (0, 3 << _FINE)):
            ends = (point[0] - dx, point[1] - dy), (point[0] + dx, point[1] + dy)
            cv2.line(out, *ends, GREEN, 1, cv2.LINE_AA, _FINE)
        if isinstance(one, PlacedDisc):
            place = (round(float(disc.centre[0] + disc.radius + 3)), round(float(disc.centre[1] + 4)))
            sign = "" if one.measured else "~"
            write(out, f"{sign}{1e3 * one.diameter:.1f}", place, scale, RED)
    for pair in pairs:
        start, end = ([round(float(value)) for value in one.pixel] for one in (pair.first, pair.second))
        cv2.line(out, start, end, BLUE, 1, cv2.LINE_AA)
        middle_pixel = 0.5 * (pair.first.pixel + pair.second.pixel)
        cv2.circle(out, tuple(round(float(value)) for value in middle_pixel), 3, BLUE, -1, cv2.LINE_AA)
        beside = round(float(middle_pixel[0])) + 6, round(float(middle_pixel[1])) - 6
        write(out, f"{1e3 * pair.distance:.1f}", beside, scale, BLUE)
    return out


def draw_ways(out: U8, ways: NDArray[np.float64]) -> None:
    """Draw into a picture (h, w, 3) where things go: ways (k, seconds, 2) in pixels, with a dot for each second."""
    cv2 = opencv()
    for way in ways:
        points = [tuple(round(float(value) * 2**_FINE) for value in point) for point in way if np.isfinite(point).all()]
        for start, end in pairwise(points):
            cv2.line(out, start, end, YELLOW, 1, cv2.LINE_AA, _FINE)
        for point in points[1:]:
            cv2.circle(out, point, 3 << _FINE, YELLOW, -1, cv2.LINE_AA, _FINE)


def write(out: U8, text: str, place: tuple[int, int], scale: float, colour: tuple[int, int, int]) -> None:
    """Letters with a white rim, from a place (column, row) to the right."""
    cv2 = opencv()
    for width, shade in ((3, (255, 255, 255)), (1, colour)):
        cv2.putText(out, text, place, cv2.FONT_HERSHEY_SIMPLEX, scale, shade, width, cv2.LINE_AA)
