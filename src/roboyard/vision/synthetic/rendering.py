"""Synthetic images: antialiased coverage of flat shapes, exposure of linear light, and background textures."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from roboyard.geometry import SE3, CameraModel
from roboyard.geometry.arrays import F32, U8, Array
from roboyard.vision.opencv import opencv

SAMPLES_PER_SIDE = 6
"""Number of rays per pixel along each side."""
_MARGIN = 2


@dataclass(frozen=True)
class CoveragePatch:
    """Part of an image that a shape covers.

    Attributes:
        rows: Rows of the part.
        columns: Columns of the part.
        alpha: (h, w) covered fraction of each pixel, 0 to 1.
    """

    rows: slice
    columns: slice
    alpha: F32

    def paint(self, image: F32, color: tuple[float, float, float]) -> None:
        """Blend a color over an image (H, W, 3), in place."""
        region = image[self.rows, self.columns]
        region += self.alpha[..., None] * (np.asarray(color, np.float32) - region)


def disc_coverage(camera_model: CameraModel, T_camera_disc: SE3, radius: float) -> CoveragePatch | None:
    """Compute the coverage of a disc in the plane z = 0 of its frame; None outside the image.

    Args:
        camera_model: Of the camera.
        T_camera_disc: Pose of the disc in the optical frame.
        radius: Radius of the disc [m].
    """
    angle = np.linspace(0.0, 2.0 * np.pi, 64, endpoint=False)
    rim = radius * np.stack([np.cos(angle), np.sin(angle), np.zeros_like(angle)], axis=1)
    return _sample_coverage(
        camera_model, camera_model.project(T_camera_disc @ rim), T_camera_disc, lambda x, y: x * x + y * y <= radius**2
    )


def polygon_coverage(camera_model: CameraModel, T_camera_plane: SE3, corners: Array) -> CoveragePatch | None:
    """Compute the coverage of a convex, counter-clockwise polygon (n, 2) [m] in z = 0; None outside the image."""
    edges = np.roll(corners, -1, axis=0) - corners

    def inside(x: Array, y: Array) -> NDArray[np.bool_]:
        is_inside = np.ones(x.shape, dtype=bool)
        for (px, py), (ex, ey) in zip(corners, edges, strict=True):
            is_inside &= ex * (y - py) - ey * (x - px) >= 0.0
        return is_inside

    rim = np.concatenate([corners, np.zeros((len(corners), 1))], axis=1)
    return _sample_coverage(camera_model, camera_model.project(T_camera_plane @ rim), T_camera_plane, inside)


def _sample_coverage(
    camera_model: CameraModel, outline: Array, T_camera_plane: SE3, inside: Callable[[Array, Array], NDArray[np.bool_]]
) -> CoveragePatch | None:
    if not np.isfinite(outline).all():
        return None
    low = np.maximum(np.floor(outline.min(axis=0)).astype(int) - _MARGIN, 0)
    high = np.minimum(np.ceil(outline.max(axis=0)).astype(int) + _MARGIN + 1, (camera_model.width, camera_model.height))
    if (low >= high).any():
        return None
    offsets = (np.arange(SAMPLES_PER_SIDE) + 0.5) / SAMPLES_PER_SIDE - 0.5
    u = (np.arange(low[0], high[0])[:, None] + offsets).ravel()
    v = (np.arange(low[1], high[1])[:, None] + offsets).ravel()
    pixels = np.stack(np.meshgrid(u, v), axis=-1)
    rays = camera_model.rays(pixels)
    T_plane_camera = T_camera_plane.inverse()
    R, t = T_plane_camera.rotation_matrix(), T_plane_camera.translation
    directions = rays @ R.T
    with np.errstate(divide="ignore", invalid="ignore"):
        distances = -t[2] / directions[..., 2]
        points = directions[..., :2] * distances[..., None] + t[:2]
        covered = inside(points[..., 0], points[..., 1]) & (distances > 0.0)
    height, width = high[1] - low[1], high[0] - low[0]
    alpha = covered.reshape(height, SAMPLES_PER_SIDE, width, SAMPLES_PER_SIDE).mean(axis=(1, 3)).astype(np.float32)
    return CoveragePatch(slice(low[1], high[1]), slice(low[0], high[0]), alpha)


GAMMA = 2.2
"""Pixel values are light to the power of 1 / GAMMA, nearly as in IEC 61966-2-1 (sRGB)."""


def expose(light: F32, rng: np.random.Generator, *, blur: float, noise: float) -> U8:
    """Convert linear light (h, w, 3) to an image; 1 gives the largest pixel value.

    Args:
        light: Linear in energy.
        rng: Generator of the noise.
        blur: Standard deviation of the point spread function [px].
        noise: Standard deviation of each pixel value.
    """
    cv2 = opencv()
    if blur > 0.0:
        light = cv2.GaussianBlur(light, (0, 0), blur)
    pixel_values = 255.0 * np.clip(light, 0.0, 1.0) ** np.float32(1.0 / GAMMA)
    if noise > 0.0:
        pixel_values = pixel_values + np.float32(noise) * rng.standard_normal(pixel_values.shape, dtype=np.float32)
    return np.clip(np.round(pixel_values), 0.0, 255.0).astype(np.uint8)


def linear_light(image: U8) -> F32:
    """Convert an image to linear light, the inverse of `expose`."""
    table = (np.arange(256, dtype=np.float32) / 255.0) ** np.float32(GAMMA)
    return table[image]


_LETTERS = "ABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789&%@8OQDG"


def noise_texture(rng: np.random.Generator, width: int, height: int, contrast: float) -> F32:
    """Generate factors (height, width) around 1: noise in octaves, sometimes stretched along one direction as wood is.

    Args:
        rng: Generator of the noise.
        width: [px].
        height: [px].
        contrast: Approximate contrast of the darkest to the lightest parts.
    """
    cv2 = opencv()
    total, size, weight = np.zeros((height, width), np.float32), 4, 1.0
    stretch = int(rng.choice([1, 1, 6]))
    weights = 0.0
    while size < 160:
        coarse = rng.uniform(-1.0, 1.0, (size * 3 // 4 + 2, size // stretch + 2)).astype(np.float32)
        total += np.float32(weight) * cv2.resize(coarse, (width, height), interpolation=cv2.INTER_CUBIC)
        weights += weight
        size, weight = size * 2, weight * 0.75
    return (1.0 + np.float32(0.5 * contrast / weights) * total * 2.0).astype(np.float32)


def random_albedo(
    rng: np.random.Generator, low: float, high: float, color_variation: float
) -> tuple[float, float, float]:
    """Draw an albedo between two bounds whose channels differ by up to a relative variation."""
    base = rng.uniform(low, high) * (1.0 + color_variation * rng.uniform(-1.0, 1.0, 3))
    r, g, b = np.clip(base, 0.01, 0.95)
    return float(r), float(g), float(b)


def add_clutter(rng: np.random.Generator, albedo: F32, count: int) -> None:
    """Draw boxes, bars, words and blobs over an image (h, w, 3), in place."""
    if not count:
        return
    cv2 = opencv()
    height, width = albedo.shape[:2]
    pixel_values = np.round(255.0 * np.sqrt(albedo)).astype(
        np.uint8
    )  # OpenCV draws smooth edges and letters in uint8 only
    for _ in range(count):
        color = tuple(255.0 * math.sqrt(part) for part in random_albedo(rng, 0.02, 0.8, 0.4))
        x, y = (int(rng.integers(0, width)), int(rng.integers(0, height)))
        kind = rng.integers(0, 4)
        if kind == 0:
            size = (float(rng.uniform(8, 90)), float(rng.uniform(8, 90)))
            box = cv2.boxPoints(((float(x), float(y)), size, float(rng.uniform(0, 90))))
            cv2.fillConvexPoly(pixel_values, box.astype(np.int32), color, cv2.LINE_AA)
        elif kind == 1:
            end = (x + int(rng.integers(-150, 150)), y + int(rng.integers(-150, 150)))
            cv2.line(pixel_values, (x, y), end, color, int(rng.integers(1, 7)), cv2.LINE_AA)
        elif kind == 2:
            word = "".join(rng.choice(list(_LETTERS), int(rng.integers(1, 9))))
            scale, weight = float(rng.uniform(0.3, 1.4)), int(rng.integers(1, 4))
            cv2.putText(pixel_values, word, (x, y), cv2.FONT_HERSHEY_SIMPLEX, scale, color, weight, cv2.LINE_AA)
        else:
            long = int(rng.integers(6, 40))
            axes = (long, max(2, round(long * rng.uniform(0.2, 0.6))))
            cv2.ellipse(pixel_values, (x, y), axes, float(rng.uniform(0, 180)), 0, 360, color, -1, cv2.LINE_AA)
    albedo[:] = (pixel_values.astype(np.float32) / np.float32(255.0)) ** 2
