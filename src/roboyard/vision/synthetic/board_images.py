"""Synthetic images of printed planes, such as calibration boards and markers, with exact ground truth."""

from __future__ import annotations

from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

from roboyard.geometry import SE3, CameraModel
from roboyard.geometry.arrays import U8, Array
from roboyard.vision.opencv import opencv
from roboyard.vision.synthetic.rendering import expose

_SAMPLES = 3
_INK, _PAPER, _BACKGROUND = 0.04, 0.85, 0.3


def render_plane(
    camera_model: CameraModel,
    T_camera_plane: SE3,
    print_image: U8,
    origin: Array,
    scale: float,
    rng: np.random.Generator,
    *,
    blur: float = 0.6,
    noise: float = 1.5,
) -> U8:
    """Render an image (h, w, 3) of a printed plane in front of a uniform background.

    Args:
        camera_model: Camera model of the image.
        T_camera_plane: Pose of the plane: x along the columns of the print, y along its rows.
        print_image: (rows, columns) from black to white.
        origin: Column and row of the plane's (0, 0) [px of the print].
        scale: Edge length of a pixel of the print [m].
        rng: Generator of the noise.
        blur: As `expose` takes it.
        noise: As `expose` takes it.
    """
    cv2 = opencv()
    rays = _sample_rays(camera_model)
    T_plane_camera = T_camera_plane.inverse()
    R, t = T_plane_camera.rotation_matrix().astype(np.float32), T_plane_camera.translation
    directions = rays @ R.T
    with np.errstate(divide="ignore", invalid="ignore"):
        distances = np.float32(-t[2]) / directions[..., 2]
        x = (directions[..., 0] * distances + np.float32(t[0])) / np.float32(scale) + np.float32(origin[0])
        y = (directions[..., 1] * distances + np.float32(t[1])) / np.float32(scale) + np.float32(origin[1])
    x, y = np.where(distances > 0.0, x, np.float32(-10.0)), np.where(distances > 0.0, y, np.float32(-10.0))
    albedo = (_INK + (_PAPER - _INK) * print_image.astype(np.float32) / 255.0).astype(np.float32)
    samples = cv2.remap(albedo, np.ascontiguousarray(x), np.ascontiguousarray(y), cv2.INTER_LINEAR,
                     borderMode=cv2.BORDER_CONSTANT, borderValue=_BACKGROUND)  # fmt: skip
    gray = samples.reshape(camera_model.height, _SAMPLES, camera_model.width, _SAMPLES).mean(axis=(1, 3))
    return expose(np.repeat(gray[..., None], 3, axis=2).astype(np.float32), rng, blur=blur, noise=noise)


@lru_cache(maxsize=2)
def _sample_rays(camera_model: CameraModel) -> NDArray[np.float32]:
    """(h · samples, w · samples, 3) rays within pixels."""
    offsets = (np.arange(_SAMPLES) + 0.5) / _SAMPLES - 0.5
    u, v = ((np.arange(size)[:, None] + offsets).ravel() for size in (camera_model.width, camera_model.height))
    return camera_model.rays(np.stack(np.meshgrid(u, v), axis=-1)).astype(np.float32)
