"""Geometry of a rectified stereo pair, left camera first.

A point at depth Z is seen by the left camera at column u and by the right one, the baseline B to its right, at
u − f B / Z: the disparity d = f B / Z is positive.  In ROS's projection matrix the right camera has the origin of the
left one's frame at −B: P = K [I | −B, 0, 0], so P[0, 3] = −f B, and

    Q = [[1, 0, 0, −cx], [0, 1, 0, −cy], [0, 0, 0, f], [0, 0, 1 / B, 0]]

takes (u, v, d, 1) to the point times d / B.  (With T_x for the translation in P, −B, OpenCV writes −1 / T_x for 1 / B:
the two matrices need the same sign of T_x.)
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from roboyard.geometry import CameraModel
from roboyard.geometry.arrays import Array


def projection(lens: CameraModel, baseline: float = 0.0) -> Array:
    """P (3, 4) [px] of the left camera (no ``baseline``) or the right one, for points in the left one's frame [m]."""
    return np.concatenate([lens.matrix, [[-lens.fx * baseline], [0.0], [0.0]]], axis=1)


def reprojection(lens: CameraModel, baseline: float) -> Array:
    """Q (4, 4): (u, v, d, 1) to homogeneous points in the left camera's frame; pixels must be square."""
    return np.array(
        [
            [1.0, 0.0, 0.0, -lens.cx],
            [0.0, lens.fx / lens.fy, 0.0, -lens.cy * lens.fx / lens.fy],
            [0.0, 0.0, 0.0, lens.fx],
            [0.0, 0.0, 1.0 / baseline, 0.0],
        ]
    )


def disparity(depth: NDArray[np.float32], lens: CameraModel, baseline: float) -> NDArray[np.float32]:
    """Disparity (h, w) [px] of depth (h, w) [m]; −1 where depth is unknown, as image_proc writes it."""
    with np.errstate(divide="ignore", invalid="ignore"):
        found = lens.fx * baseline / depth
    return np.where(np.isfinite(depth) & (depth > 0.0), found, -1.0).astype(np.float32)
