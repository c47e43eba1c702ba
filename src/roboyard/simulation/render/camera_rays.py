"""Rays through the points of a picture."""

from __future__ import annotations

import math

import numpy as np

from roboyard.compute import kernel
from roboyard.geometry.arrays import F32
from roboyard.simulation.render.single import Cases


def _examples() -> Cases:
    yield np.zeros((3, 3), np.float32), np.zeros(3, np.float32), np.zeros((1, 2), np.float32), 1.0, 1.0, 1.0, 1.0, False


@kernel(examples=_examples, error_model="numpy")
def camera_rays(
    rotation: F32,
    position: F32,
    pixels: F32,
    focal_x: float,
    focal_y: float,
    centre_x: float,
    centre_y: float,
    parallel: bool,
) -> tuple[F32, F32]:
    """Rays through picture points.

    Args:
        rotation: (3, 3) world from optical frame (x right, y down, z forward).
        position: (3,) of the camera in the world [m].
        pixels: (n, 2) picture points (column, row) [px]; a pixel's middle is at +0.5.
        focal_x: Focal length along the rows [px]; with ``parallel`` pixels per metre instead.
        focal_y: Along the columns.
        centre_x: Column of the optical axis [px].
        centre_y: Row of the optical axis [px].
        parallel: Orthographic: all rays look along z, and start apart.
    """
    count = len(pixels)
    origins, directions = np.empty((count, 3), np.float32), np.empty((count, 3), np.float32)
    for i in range(count):
        x, y = (pixels[i, 0] - centre_x) / focal_x, (pixels[i, 1] - centre_y) / focal_y
        scale = 0.0 if parallel else 1.0 / math.sqrt(x * x + y * y + 1.0)
        forward = 1.0 if parallel else scale
        for k in range(3):
            directions[i, k] = scale * (rotation[k, 0] * x + rotation[k, 1] * y) + forward * rotation[k, 2]
            shift = rotation[k, 0] * x + rotation[k, 1] * y if parallel else 0.0
            origins[i, k] = position[k] + shift
    return origins, directions
