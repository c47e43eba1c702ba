"""The sky behind everything, alike in all renderers."""

from __future__ import annotations

from dataclasses import dataclass

import mujoco
import numpy as np
from numpy.typing import NDArray

from roboyard.simulation.render.camera import Camera


@dataclass(frozen=True, slots=True)
class Sky:
    """Colours of the sky, sRGB 0 … 1: overhead, and at the horizon (and below it)."""

    zenith: tuple[float, float, float] = (0.45, 0.65, 0.88)
    horizon: tuple[float, float, float] = (0.88, 0.93, 0.96)

    @staticmethod
    def of(model: mujoco.MjModel) -> Sky:
        """The colours of the model's own sky box; ours if it has none."""
        boxes = np.flatnonzero(np.asarray(model.tex_type) == mujoco.mjtTexture.mjTEXTURE_SKYBOX)
        if not len(boxes):
            return Sky()
        box = int(boxes[0])
        size, channels, start = int(model.tex_width[box]), int(model.tex_nchannel[box]), int(model.tex_adr[box])
        # Six square pictures below each other: right, left, up, down, front, back.
        faces = np.asarray(model.tex_data[start : start + 4 * size * size * channels]).reshape(4, size, size, channels)
        zenith, horizon = (faces[face, size // 2, size // 2, :3] / 255.0 for face in (2, 3))
        # Gradients are made of one world's background colour; a sky is bluer overhead.
        zenith = np.clip(zenith * [0.8, 1.0, 1.3], 0.0, 1.0)
        return Sky(_rgb(zenith), _rgb(horizon))


def _rgb(colour: NDArray[np.float64]) -> tuple[float, float, float]:
    return float(colour[0]), float(colour[1]), float(colour[2])


def paint_sky(picture: NDArray[np.uint8], empty: NDArray[np.bool_], camera: Camera, sky: Sky) -> None:
    """Paint the pixels ``empty`` (height, width) of ``picture`` (height, width, 3) with what ``camera`` sees there."""
    rows, columns = np.nonzero(empty)
    if not len(rows):
        return
    height, width = empty.shape
    axes = camera.T_world_camera.rotation_matrix()
    if camera.span is not None:
        up = np.full(len(rows), axes[2, 2])
    else:
        focal = camera.focal(height)
        x, y = (columns + 0.5 - width / 2) / focal, (rows + 0.5 - height / 2) / focal
        up = (axes[2, 0] * x + axes[2, 1] * y + axes[2, 2]) / np.sqrt(x * x + y * y + 1.0)
    share = np.sqrt(np.clip(up, 0.0, 1.0))[:, None]
    mixed = (1 - share) * np.array(sky.horizon) + share * np.array(sky.zenith)
    picture[rows, columns] = np.round(255 * mixed).astype(np.uint8)
