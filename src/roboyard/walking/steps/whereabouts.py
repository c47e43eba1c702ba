"""How high a body is that stands on its legs: what odometry on the plane does not tell."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from roboyard.geometry import SE3
from roboyard.geometry.arrays import Array
from roboyard.grids.height_map import HeightMap


def over_feet(T: SE3, feet: Array, stands: Array, down: NDArray[np.bool_]) -> SE3:
    """A pose of the body, but so high that feet (l, 3) that are down (l,) are where they stand (l, 3) [m]."""
    turned = feet @ T.matrix()[:3, :3].T
    return SE3(T.quaternion, (T.x, T.y, float((stands[down, 2] - turned[down, 2]).mean())))


def over_ground(T: SE3, feet: Array, ground: HeightMap | None) -> tuple[SE3, Array]:
    """A pose of the body, but so high that its feet (l, 3) are in the mean on the ground, and where they stand (l, 3).

    Without a map the ground is at 0.
    """
    turned = feet @ T.matrix()[:3, :3].T
    level = 0.0 if ground is None else ground.mean_height(turned + np.array([T.x, T.y, 0.0]))
    z = level - float(turned[:, 2].mean())
    return SE3(T.quaternion, (T.x, T.y, z)), turned + np.array([T.x, T.y, z])
