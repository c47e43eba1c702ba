"""Images of distorted cameras, remapped from pinhole images with a table that is computed once."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from roboyard.compute import kernel
from roboyard.geometry import CameraModel
from roboyard.geometry.arrays import F32, U8
from roboyard.rendering.cameras import PinholeIntrinsics

MAX_PINHOLE_SLOPE = math.tan(math.radians(65.0))
"""Slope up to which a pinhole's image can hold what a lens sees; beyond it grows too large."""
SURFACE_EDGE_DEPTH_RATIO = 0.02
"""Inverse depth that differs by this share between neighbors belongs to two surfaces."""


@dataclass(frozen=True, slots=True)
class LensRemap:
    """How to compute the image of a distorted camera from a wider pinhole image.

    Attributes:
        width: Of the wider image [px].
        height: [px].
        intrinsics: Where it lies before the pinhole.
        source_pixels: (h, w, 2) float32 column and row in it of each pixel, whose middles are whole; not a number:
            none.
    """

    width: int
    height: int
    intrinsics: PinholeIntrinsics
    source_pixels: F32


def make_lens_remap(camera_model: CameraModel, rays: F32) -> LensRemap | None:
    """Make the remap of a camera model; None if its field of view is too wide for a pinhole image.

    Args:
        camera_model: The lens.
        rays: (h, w, 3) its unit rays.
    """
    with np.errstate(invalid="ignore", divide="ignore"):
        slopes = np.where(rays[..., 2:] > 0.0, rays[..., :2] / rays[..., 2:], np.nan)
    behind = np.isfinite(rays[..., 2]) & (rays[..., 2] <= 0.0)
    if behind.any() or not np.isfinite(slopes).any() or float(np.nanmax(np.abs(slopes))) > MAX_PINHOLE_SLOPE:
        return None
    low, high = np.nanmin(slopes, axis=(0, 1)), np.nanmax(slopes, axis=(0, 1))
    # One more pixel on each side, so that every pixel has four neighbors.
    width = math.ceil((high[0] - low[0]) * camera_model.fx) + 3
    height = math.ceil((high[1] - low[1]) * camera_model.fy) + 3
    cx, cy = 1.5 - float(low[0]) * camera_model.fx, 1.5 - float(low[1]) * camera_model.fy
    source_pixels = slopes * np.array([camera_model.fx, camera_model.fy]) + np.array([cx - 0.5, cy - 0.5])
    return LensRemap(
        width, height, PinholeIntrinsics(camera_model.fx, camera_model.fy, cx, cy), source_pixels.astype(np.float32)
    )


def remap_color(image: U8, remap: LensRemap) -> U8:
    """Colors (h, w, 3) through the lens, mixed from four pixels of the wider image; black where it sees nothing."""
    out = np.zeros((*remap.source_pixels.shape[:2], 3), np.uint8)
    _interpolate_color(image, remap.source_pixels, out)
    return out


def remap_depth(depth: F32, remap: LensRemap) -> F32:
    """Depth (h, w) along the axis: mixed where its four pixels lie on one surface, else that of the nearest pixel."""
    out = np.zeros(remap.source_pixels.shape[:2], np.float32)
    _interpolate_depth(depth, remap.source_pixels, out)
    return out


def _example_interpolate_color() -> list[tuple[object, ...]]:
    image = np.zeros((1, 1, 3), np.uint8)
    return [(image, np.zeros((1, 1, 2), np.float32), image)]


@kernel(examples=_example_interpolate_color, error_model="numpy")
def _interpolate_color(image: U8, source_pixels: F32, out: U8) -> None:
    height, width = out.shape[:2]
    for row in range(height):
        for column in range(width):
            x, y = source_pixels[row, column, 0], source_pixels[row, column, 1]
            if x != x:
                continue
            i, j = min(max(int(x), 0), image.shape[1] - 2), min(max(int(y), 0), image.shape[0] - 2)
            a, b = x - i, y - j
            for c in range(3):
                top = (1.0 - a) * image[j, i, c] + a * image[j, i + 1, c]
                bottom = (1.0 - a) * image[j + 1, i, c] + a * image[j + 1, i + 1, c]
                out[row, column, c] = np.uint8(min(max((1.0 - b) * top + b * bottom + 0.5, 0.0), 255.0))


def _example_interpolate_depth() -> list[tuple[object, ...]]:
    image = np.zeros((1, 1), np.float32)
    return [(image, np.zeros((1, 1, 2), np.float32), image)]


@kernel(examples=_example_interpolate_depth, error_model="numpy")
def _interpolate_depth(depth: F32, source_pixels: F32, out: F32) -> None:
    height, width = out.shape
    for row in range(height):
        for column in range(width):
            x, y = float(source_pixels[row, column, 0]), float(source_pixels[row, column, 1])
            if x != x:
                continue
            i, j = min(max(int(x), 0), depth.shape[1] - 2), min(max(int(y), 0), depth.shape[0] - 2)
            a, b = x - i, y - j
            nearest = depth[j + (1 if b > 0.5 else 0), i + (1 if a > 0.5 else 0)]
            out[row, column] = nearest
            w00, w01, w10, w11 = depth[j, i], depth[j, i + 1], depth[j + 1, i], depth[j + 1, i + 1]
            low, high = min(min(w00, w01), min(w10, w11)), max(max(w00, w01), max(w10, w11))
            if low > 0.0 and high - low < SURFACE_EDGE_DEPTH_RATIO * high:
                # Inverse depth is linear in the image of a plane.
                top = (1.0 - a) / w00 + a / w01
                bottom = (1.0 - a) / w10 + a / w11
                out[row, column] = np.float32(1.0 / ((1.0 - b) * top + b * bottom))
