"""How firmly a body stands: the polygon of the feet on the ground, and how far its middle is inside."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike, NDArray

from roboyard.geometry.polygons import convex_hull
from roboyard.walking.gait_kernels import held_by

Array = NDArray[np.float64]


def support_polygon(feet: ArrayLike) -> Array:
    """Corners (m, 2) of the convex hull of feet (k, 2 or 3) seen from above, anticlockwise."""
    points = np.asarray(feet, dtype=np.float64)
    return convex_hull(points[:, :2]) if len(points) else np.empty((0, 2))


def stability_margin(feet: ArrayLike, centre: ArrayLike = (0.0, 0.0)) -> float:
    """How far a place is inside the support polygon of feet [m]: to its nearest edge; below zero outside.

    McGhee and Frank, On the stability properties of quadruped creeping gaits, 1968.

    Args:
        feet: (k, 2 or 3) those on the ground.
        centre: (2,) what has to be above the polygon.

    Returns:
        -inf with fewer than three feet, or all of them in a line.
    """
    points = np.atleast_2d(np.asarray(feet, dtype=np.float64))
    x, y = (float(value) for value in np.asarray(centre, dtype=np.float64)[:2])
    return float(held_by(points, np.ones(len(points), np.bool_), x, y))
