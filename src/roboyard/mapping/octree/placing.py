"""From what a camera's message holds to points in the map: in one go, since there are hundreds of thousands."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from roboyard.compute import kernel, read_only
from roboyard.geometry import SE3


def place(
    columns: tuple[NDArray[np.float32], NDArray[np.float32], NDArray[np.float32]],
    T_map_sensor: SE3,
    low: float,
    high: float,
) -> tuple[NDArray[np.float64], NDArray[np.int64]]:
    """Points in the map, and which they are.

    Args:
        columns: (n,) x, y and z in the sensor's frame [m]; what is not finite is left out.
        T_map_sensor: Where it was taken from.
        low: Lowest point that counts, in the map [m].
        high: Highest [m].

    Returns:
        (m, 3) points [m], and the number (m,) of each among all.
    """
    x, y, z = (np.ascontiguousarray(column, dtype=np.float32) for column in columns)
    return placed(x, y, z, T_map_sensor.rotation_matrix(), T_map_sensor.translation, low, high)


@kernel(
    examples=lambda: [
        (*(np.zeros(1, np.float32),) * 3, np.eye(3), read_only(np.zeros(3)), 0.0, 1.0),
    ]
)
def placed(
    x: NDArray[np.float32],
    y: NDArray[np.float32],
    z: NDArray[np.float32],
    rotation: NDArray[np.float64],
    translation: NDArray[np.float64],
    low: float,
    high: float,
) -> tuple[NDArray[np.float64], NDArray[np.int64]]:
    """See `place`; with the rotation (3, 3) and translation (3,) of the transform."""
    points, kept, count = np.empty((len(x), 3)), np.empty(len(x), np.int64), 0
    for i in range(len(x)):
        if not (np.isfinite(x[i]) and np.isfinite(y[i]) and np.isfinite(z[i])):
            continue
        for axis in range(3):
            way = rotation[axis, 0] * x[i] + rotation[axis, 1] * y[i] + rotation[axis, 2] * z[i]
            points[count, axis] = way + translation[axis]
        if low <= points[count, 2] <= high:
            kept[count] = i
            count += 1
    return points[:count].copy(), kept[:count].copy()
