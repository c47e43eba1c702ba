"""How much of each pixel a flat shape covers, by many rays a pixel: pictures without steps at their edges."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from roboyard.geometry import SE3, CameraModel
from roboyard.geometry.arrays import F32, Array

SAMPLES = 6
"""Rays a pixel along each side."""
_MARGIN = 2


@dataclass(frozen=True)
class Patch:
    """A part of a picture.

    Attributes:
        rows: Where it lies.
        columns: Where it lies.
        share: (h, w) of each pixel that is covered, 0 to 1.
    """

    rows: slice
    columns: slice
    share: F32

    def paint(self, picture: F32, colour: tuple[float, float, float]) -> None:
        """Lay the colour over a picture (H, W, 3), in place."""
        part = picture[self.rows, self.columns]
        part += self.share[..., None] * (np.asarray(colour, np.float32) - part)


def disc_patch(lens: CameraModel, T_camera_disc: SE3, radius: float) -> Patch | None:
    """Of a disc in the plane z = 0 of its frame; None if no pixel sees it.

    Args:
        lens: Of the camera.
        T_camera_disc: Its pose in the optical frame.
        radius: [m].
    """
    angle = np.linspace(0.0, 2.0 * np.pi, 64, endpoint=False)
    rim = radius * np.stack([np.cos(angle), np.sin(angle), np.zeros_like(angle)], axis=1)
    return _sampled(lens, lens.project(T_camera_disc @ rim), T_camera_disc, lambda x, y: x * x + y * y <= radius**2)


def polygon_patch(lens: CameraModel, T_camera_plane: SE3, corners: Array) -> Patch | None:
    """Of a convex polygon (n, 2) [m], counter-clockwise, in the plane z = 0 of its frame; None if no pixel sees it."""
    edges = np.roll(corners, -1, axis=0) - corners

    def inside(x: Array, y: Array) -> NDArray[np.bool_]:
        within = np.ones(x.shape, dtype=bool)
        for (px, py), (ex, ey) in zip(corners, edges, strict=True):
            within &= ex * (y - py) - ey * (x - px) >= 0.0
        return within

    rim = np.concatenate([corners, np.zeros((len(corners), 1))], axis=1)
    return _sampled(lens, lens.project(T_camera_plane @ rim), T_camera_plane, inside)


def _sampled(
    lens: CameraModel, outline: Array, T_camera_plane: SE3, inside: Callable[[Array, Array], NDArray[np.bool_]]
) -> Patch | None:
    if not np.isfinite(outline).all():
        return None
    low = np.maximum(np.floor(outline.min(axis=0)).astype(int) - _MARGIN, 0)
    high = np.minimum(np.ceil(outline.max(axis=0)).astype(int) + _MARGIN + 1, (lens.width, lens.height))
    if (low >= high).any():
        return None
    offsets = (np.arange(SAMPLES) + 0.5) / SAMPLES - 0.5
    u = (np.arange(low[0], high[0])[:, None] + offsets).ravel()
    v = (np.arange(low[1], high[1])[:, None] + offsets).ravel()
    pixels = np.stack(np.meshgrid(u, v), axis=-1)
    rays = lens.rays(pixels)
    T_plane_camera = T_camera_plane.inverse()
    R, t = T_plane_camera.rotation_matrix(), T_plane_camera.translation
    turned = rays @ R.T
    with np.errstate(divide="ignore", invalid="ignore"):
        way = -t[2] / turned[..., 2]
        hit = turned[..., :2] * way[..., None] + t[:2]
        covered = inside(hit[..., 0], hit[..., 1]) & (way > 0.0)
    tall, wide = high[1] - low[1], high[0] - low[0]
    share = covered.reshape(tall, SAMPLES, wide, SAMPLES).mean(axis=(1, 3)).astype(np.float32)
    return Patch(slice(low[1], high[1]), slice(low[0], high[0]), share)
