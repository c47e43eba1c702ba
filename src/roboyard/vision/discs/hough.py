"""Circles by OpenCV's Hough transform: what discs were found with before, kept to be compared with."""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

from roboyard.geometry.arrays import U8
from roboyard.vision.discs.config import DiscConfig
from roboyard.vision.discs.detect import Disc
from roboyard.vision.opencv import opencv

_EDGE = 100.0
"""Upper threshold of Canny's edges."""
_PERIMETER = 2.0 * math.pi * 12.0
"""Of a circle in the middle of the thesis's window, 6 to 18 px: the votes that it could get."""


def hough_circles(image: U8, config: DiscConfig) -> NDArray[np.float64]:
    """Columns, rows and radii (n, 3) [px] of circles, the most votes first; with any polarity, with or without mark.

    Args:
        image: (h, w, 3) in RGB, or (h, w).
        config: Radii and sensitivity: the share of a circle's edge that may be missing.
    """
    cv2 = opencv()
    grey = cv2.cvtColor(image, cv2.COLOR_RGB2GRAY) if image.ndim == 3 else image
    votes = max(4.0, (1.0 - config.sensitivity) * _PERIMETER)
    found = cv2.HoughCircles(
        grey, cv2.HOUGH_GRADIENT, dp=1.0, minDist=config.radius_min, param1=_EDGE, param2=votes,
        minRadius=math.floor(config.radius_min), maxRadius=math.ceil(config.radius_max),
    )  # fmt: skip
    return np.zeros((0, 3)) if found is None else np.asarray(found, dtype=np.float64).reshape(-1, 3)


def find_discs_hough(image: U8, config: DiscConfig) -> list[Disc]:
    """Circles of the right polarity with a mark, by grey levels at the middle, in the ring and outside."""
    cv2 = opencv()
    grey = cv2.cvtColor(image, cv2.COLOR_RGB2GRAY) if image.ndim == 3 else image
    sign = 1.0 if config.polarity == "white" else -1.0
    discs = []
    for x, y, radius in hough_circles(image, config):
        angle = np.linspace(0.0, 2.0 * math.pi, 32, endpoint=False)
        levels = []
        for share in (0.0, 0.75, 1.3):
            columns = np.clip(np.round(x + share * radius * np.cos(angle)).astype(int), 0, grey.shape[1] - 1)
            rows = np.clip(np.round(y + share * radius * np.sin(angle)).astype(int), 0, grey.shape[0] - 1)
            levels.append(float(np.mean(grey[rows, columns])))
        middle, ring, outside = levels
        contrast, mark = sign * (ring - outside), sign * (ring - middle)
        if contrast <= 0.0 or (config.mark and mark < config.mark_contrast * max(middle, ring)):
            continue
        outline = np.stack([x + radius * np.cos(angle), y + radius * np.sin(angle)], axis=1)
        place, axes = np.array([x, y]), (float(radius), float(radius))
        discs.append(Disc(config.polarity, place, axes, 0.0, 1.0, 0.0, contrast, mark, np.zeros(2), 0.0, outline))
    return discs
