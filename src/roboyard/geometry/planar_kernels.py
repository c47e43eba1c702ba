"""Kernels: angles and polygons in the plane.

They are the compiled counterparts of `wrap_angle` and of `polygons`, in a module of their own because numba takes long
to import.
"""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

from roboyard.compute import kernel


@kernel(examples=lambda: [(4.0,)])
def wrap_angle(angle: float) -> float:
    """Wrap an angle to (-pi, pi].

    An angle of that range is returned as it is, unless it lies within rounding (1e-15) of its lower end. From others
    whole turns of the rounded 2 pi are subtracted, which is not exact over many turns; `roboyard.geometry.wrap_angle`
    is.

    Args:
        angle: Angle [rad].
    """
    return angle - 2.0 * math.pi * math.ceil((angle - math.pi) / (2.0 * math.pi))


@kernel(no_refcount=True, forceinline=True, examples=lambda: [(0.0, -1.0, 1.0)])
def wrap_angle_into_range(angle: float, low: float, high: float) -> float:
    """Return an angle plus the whole turns that bring it nearest to the center of a range; unchanged within the range.

    Args:
        angle: Angle [rad].
        low: Lower end of the range, such as a joint limit [rad].
        high: Upper end of the range [rad].
    """
    if low <= angle <= high:
        return angle
    center = 0.5 * (low + high)
    return float(angle - 2.0 * math.pi * math.floor((angle - center) / (2.0 * math.pi) + 0.5))


@kernel(examples=lambda: [(np.eye(3)[:, :2].copy(), 0.0, 0.0)])
def signed_distance(corners: NDArray[np.float64], x: float, y: float) -> float:
    """Compute the distance of a point from the boundary of a polygon, in the unit of the corners; negative inside.

    Args:
        corners: (n, 2) corners in either order.
        x: First coordinate of the point.
        y: Second coordinate of the point.
    """
    is_inside = False
    smallest_square = math.inf
    last = len(corners) - 1
    for k in range(len(corners)):
        ax, ay, bx, by = corners[last, 0], corners[last, 1], corners[k, 0], corners[k, 1]
        last = k
        ex, ey, px, py = bx - ax, by - ay, x - ax, y - ay
        fraction = min(max((px * ex + py * ey) / max(ex * ex + ey * ey, 1e-12), 0.0), 1.0)
        gx, gy = px - fraction * ex, py - fraction * ey
        smallest_square = min(smallest_square, gx * gx + gy * gy)
        if (ay > y) != (by > y) and x < ax + (y - ay) * ex / ey:
            is_inside = not is_inside
    return -math.sqrt(smallest_square) if is_inside else math.sqrt(smallest_square)
