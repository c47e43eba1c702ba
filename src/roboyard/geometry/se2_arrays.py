"""Arrays of planar poses, one pose (x, y, theta) per row."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike, NDArray

from roboyard.geometry.se2 import wrap_angle

SE2Array = NDArray[np.float64]


def compose(T_a_b: ArrayLike, T_b_c: ArrayLike) -> SE2Array:
    """Compute ``T_a_c`` (..., 3) row by row; one argument may be a single pose (3,)."""
    first, second = np.asarray(T_a_b, dtype=np.float64), np.asarray(T_b_c, dtype=np.float64)
    c, s = np.cos(first[..., 2]), np.sin(first[..., 2])
    return np.stack(
        [
            first[..., 0] + c * second[..., 0] - s * second[..., 1],
            first[..., 1] + s * second[..., 0] + c * second[..., 1],
            np.asarray(wrap_angle(first[..., 2] + second[..., 2])),
        ],
        axis=-1,
    )


def invert(T_a_b: ArrayLike) -> SE2Array:
    """Compute ``T_b_a`` (..., 3) row by row."""
    pose = np.asarray(T_a_b, dtype=np.float64)
    c, s = np.cos(pose[..., 2]), np.sin(pose[..., 2])
    return np.stack(
        [
            -c * pose[..., 0] - s * pose[..., 1],
            s * pose[..., 0] - c * pose[..., 1],
            np.asarray(wrap_angle(-pose[..., 2])),
        ],
        axis=-1,
    )


def relative(T_w_a: ArrayLike, T_w_b: ArrayLike) -> SE2Array:
    """Compute ``T_a_b`` (..., 3) row by row: the pose of b in a."""
    first, second = np.asarray(T_w_a, dtype=np.float64), np.asarray(T_w_b, dtype=np.float64)
    c, s = np.cos(first[..., 2]), np.sin(first[..., 2])
    dx, dy = second[..., 0] - first[..., 0], second[..., 1] - first[..., 1]
    theta = np.asarray(wrap_angle(second[..., 2] - first[..., 2]))
    return np.stack([c * dx + s * dy, -s * dx + c * dy, theta], axis=-1)
