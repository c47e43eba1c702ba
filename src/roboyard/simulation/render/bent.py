"""Pictures through bent lenses out of pictures through a pinhole, by a table that is made once."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from roboyard.compute import kernel
from roboyard.geometry import CameraModel
from roboyard.geometry.arrays import F32, U8
from roboyard.simulation.render.camera import Window

WIDEST = math.tan(math.radians(65.0))
"""Slope up to which a pinhole's picture can hold what a lens sees; beyond it grows too large."""
TORN = 0.02
"""Inverse depth that differs by this share between neighbours belongs to two surfaces."""


@dataclass(frozen=True, slots=True)
class Bend:
    """How to make a lens's picture out of a wider one.

    Attributes:
        width: Of the wider picture [px].
        height: [px].
        window: Where it lies before the pinhole.
        places: (h, w, 2) float32 column and row in it of each pixel, whose middles are whole; not a number: none.
    """

    width: int
    height: int
    window: Window
    places: F32


def bend_of(lens: CameraModel, rays: F32) -> Bend | None:
    """The bend for a lens; None if it sees too far to the sides for a pinhole.

    Args:
        lens: The lens.
        rays: (h, w, 3) its unit rays.
    """
    with np.errstate(invalid="ignore", divide="ignore"):
        slopes = np.where(rays[..., 2:] > 0.0, rays[..., :2] / rays[..., 2:], np.nan)
    behind = np.isfinite(rays[..., 2]) & (rays[..., 2] <= 0.0)
    if behind.any() or not np.isfinite(slopes).any() or float(np.nanmax(np.abs(slopes))) > WIDEST:
        return None
    low, high = np.nanmin(slopes, axis=(0, 1)), np.nanmax(slopes, axis=(0, 1))
    # One more pixel on each side, so that every pixel has four neighbours.
    width = math.ceil((high[0] - low[0]) * lens.fx) + 3
    height = math.ceil((high[1] - low[1]) * lens.fy) + 3
    cx, cy = 1.5 - float(low[0]) * lens.fx, 1.5 - float(low[1]) * lens.fy
    places = slopes * np.array([lens.fx, lens.fy]) + np.array([cx - 0.5, cy - 0.5])
    return Bend(width, height, Window(lens.fx, lens.fy, cx, cy), places.astype(np.float32))


def bent_colour(wide: U8, bend: Bend) -> U8:
    """Colours (h, w, 3) through the lens, mixed from four pixels of the wider picture; black where it sees nothing."""
    out = np.zeros((*bend.places.shape[:2], 3), np.uint8)
    _mix(wide, bend.places, out)
    return out


def bent_depth(wide: F32, bend: Bend) -> F32:
    """Depth (h, w) along the axis: mixed where its four pixels lie on one surface, else that of the nearest pixel."""
    out = np.zeros(bend.places.shape[:2], np.float32)
    _mix_depth(wide, bend.places, out)
    return out


def _mix_examples() -> list[tuple[object, ...]]:
    picture = np.zeros((1, 1, 3), np.uint8)
    return [(picture, np.zeros((1, 1, 2), np.float32), picture)]


@kernel(examples=_mix_examples, error_model="numpy")
def _mix(wide: U8, places: F32, out: U8) -> None:
    height, width = out.shape[:2]
    for row in range(height):
        for column in range(width):
            x, y = places[row, column, 0], places[row, column, 1]
            if x != x:
                continue
            i, j = min(max(int(x), 0), wide.shape[1] - 2), min(max(int(y), 0), wide.shape[0] - 2)
            a, b = x - i, y - j
            for c in range(3):
                top = (1.0 - a) * wide[j, i, c] + a * wide[j, i + 1, c]
                bottom = (1.0 - a) * wide[j + 1, i, c] + a * wide[j + 1, i + 1, c]
                out[row, column, c] = np.uint8(min(max((1.0 - b) * top + b * bottom + 0.5, 0.0), 255.0))


def _depth_examples() -> list[tuple[object, ...]]:
    picture = np.zeros((1, 1), np.float32)
    return [(picture, np.zeros((1, 1, 2), np.float32), picture)]


@kernel(examples=_depth_examples, error_model="numpy")
def _mix_depth(wide: F32, places: F32, out: F32) -> None:
    height, width = out.shape
    for row in range(height):
        for column in range(width):
            x, y = float(places[row, column, 0]), float(places[row, column, 1])
            if x != x:
                continue
            i, j = min(max(int(x), 0), wide.shape[1] - 2), min(max(int(y), 0), wide.shape[0] - 2)
            a, b = x - i, y - j
            nearest = wide[j + (1 if b > 0.5 else 0), i + (1 if a > 0.5 else 0)]
            out[row, column] = nearest
            w00, w01, w10, w11 = wide[j, i], wide[j, i + 1], wide[j + 1, i], wide[j + 1, i + 1]
            low, high = min(min(w00, w01), min(w10, w11)), max(max(w00, w01), max(w10, w11))
            if low > 0.0 and high - low < TORN * high:
                # Inverse depth is linear in the picture of a plane.
                top = (1.0 - a) / w00 + a / w01
                bottom = (1.0 - a) / w10 + a / w11
                out[row, column] = np.float32(1.0 / ((1.0 - b) * top + b * bottom))
