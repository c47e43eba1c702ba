"""Pictures of a printed plane: boards and markers seen through a lens, with exact truth."""

from __future__ import annotations

from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

from roboyard.geometry import SE3, CameraModel
from roboyard.geometry.arrays import U8, Array
from roboyard.vision.opencv import opencv
from roboyard.vision.synthetic.exposure import expose

_SAMPLES = 3
_INK, _PAPER, _GROUND = 0.04, 0.85, 0.3


def plane_picture(
    lens: CameraModel, T_camera_plane: SE3, print_: U8, origin: Array, scale: float, rng: np.random.Generator, *,
    blur: float = 0.6, noise: float = 1.5,
) -> U8:  # fmt: skip
    """A picture (h, w, 3) of a print before an even ground.

    Args:
        lens: Of the camera.
        T_camera_plane: Pose of the print's plane: x along its columns, y along its rows.
        print_: (rows, columns) from black to white.
        origin: Column and row of the plane's (0, 0) [px of the print].
        scale: Edge of one of its pixels [m].
        rng: Draws the noise.
        blur: As `expose` takes it.
        noise: As `expose` takes it.
    """
    cv2 = opencv()
    rays = _rays(lens)
    T_plane_camera = T_camera_plane.inverse()
    R, t = T_plane_camera.rotation_matrix().astype(np.float32), T_plane_camera.translation
    turned = rays @ R.T
    with np.errstate(divide="ignore", invalid="ignore"):
        way = np.float32(-t[2]) / turned[..., 2]
        x = (turned[..., 0] * way + np.float32(t[0])) / np.float32(scale) + np.float32(origin[0])
        y = (turned[..., 1] * way + np.float32(t[1])) / np.float32(scale) + np.float32(origin[1])
    x, y = np.where(way > 0.0, x, np.float32(-10.0)), np.where(way > 0.0, y, np.float32(-10.0))
    albedo = (_INK + (_PAPER - _INK) * print_.astype(np.float32) / 255.0).astype(np.float32)
    seen = cv2.remap(albedo, np.ascontiguousarray(x), np.ascontiguousarray(y), cv2.INTER_LINEAR,
                     borderMode=cv2.BORDER_CONSTANT, borderValue=_GROUND)  # fmt: skip
    grey = seen.reshape(lens.height, _SAMPLES, lens.width, _SAMPLES).mean(axis=(1, 3))
    return expose(np.repeat(grey[..., None], 3, axis=2).astype(np.float32), rng, blur=blur, noise=noise)


@lru_cache(maxsize=2)
def _rays(lens: CameraModel) -> NDArray[np.float32]:
    """(h · samples, w · samples, 3) rays within pixels."""
    offsets = (np.arange(_SAMPLES) + 0.5) / _SAMPLES - 0.5
    u, v = ((np.arange(size)[:, None] + offsets).ravel() for size in (lens.width, lens.height))
    return lens.rays(np.stack(np.meshgrid(u, v), axis=-1)).astype(np.float32)
