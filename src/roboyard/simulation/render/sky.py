"""The sky behind everything, alike in all renderers."""

from __future__ import annotations

import math
from dataclasses import dataclass

import mujoco
import numpy as np
from numpy.typing import NDArray

from roboyard.compute import kernel
from roboyard.simulation.render.camera import Camera
from roboyard.simulation.render.single import Cases


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


def _paint_examples() -> Cases:
    colours = np.zeros(3)
    yield np.zeros((1, 1, 3), np.uint8), np.zeros((1, 1), np.bool_), np.zeros(3), colours, colours, np.ones(4), False


@kernel(examples=_paint_examples, error_model="numpy")
def _paint(
    picture: NDArray[np.uint8],
    empty: NDArray[np.bool_],
    up_axis: NDArray[np.float64],
    zenith: NDArray[np.float64],
    horizon: NDArray[np.float64],
    window: NDArray[np.float64],
    parallel: bool,
) -> None:
    height, width = empty.shape
    for row in range(height):
        y = (row + 0.5 - window[3]) / window[1]
        for column in range(width):
            if not empty[row, column]:
                continue
            x = (column + 0.5 - window[2]) / window[0]
            up = up_axis[2]
            if not parallel:
                up = (up_axis[0] * x + up_axis[1] * y + up_axis[2]) / math.sqrt(x * x + y * y + 1.0)
            share = math.sqrt(min(max(up, 0.0), 1.0))
            for c in range(3):
                mixed = (1.0 - share) * horizon[c] + share * zenith[c]
                picture[row, column, c] = np.uint8(math.floor(255.0 * mixed + 0.5))


def paint_sky(picture: NDArray[np.uint8], empty: NDArray[np.bool_], camera: Camera, sky: Sky) -> None:
    """Paint the pixels ``empty`` (height, width) of ``picture`` (height, width, 3) with what ``camera`` sees there."""
    height, width = empty.shape
    window = camera.windowed(width, height)
    up = np.ascontiguousarray(camera.T_world_camera.rotation_matrix()[2])
    lens = np.array([window.fx, window.fy, window.cx, window.cy])
    _paint(picture, empty, up, np.array(sky.zenith), np.array(sky.horizon), lens, camera.span is not None)
