"""The smallest circle, sphere and capsule round points."""

from __future__ import annotations

from itertools import combinations

import numpy as np
from numpy.typing import NDArray

from roboyard.description.mesh_tools.surface import Points

MAX_ITERATIONS = 1000
"""The radius grows with every round, so that few are needed; this bounds what rounding may add."""


def smallest_enclosing_ball(points: Points) -> tuple[NDArray[np.float64], float]:
    """Centre and radius of the smallest ball round points (n, d): a circle in the plane, a sphere in space.

    The farthest point joins those that carry the ball, and the ball round these few is found by trying which of them
    lie on it (after B. Gärtner, "Fast and robust smallest enclosing balls", 1999).
    """
    support = points[:1]
    center, radius = points[0], 0.0
    for _ in range(MAX_ITERATIONS):
        squares = ((points - center) ** 2).sum(axis=1)
        outermost = int(np.argmax(squares))
        if squares[outermost] <= radius**2 * (1.0 + 1e-12):
            break
        candidates = np.concatenate([support, points[outermost : outermost + 1]])
        best: tuple[NDArray[np.float64], float, Points] | None = None
        for count in range(2, min(len(candidates), points.shape[1] + 1) + 1):
            for indices in combinations(range(len(candidates)), count):
                subset = candidates[list(indices)]
                subset_center = _circumcenter(subset)
                subset_radius = float(np.linalg.norm(subset[0] - subset_center))
                encloses_all = np.linalg.norm(candidates - subset_center, axis=1).max() <= subset_radius * (1.0 + 1e-10)
                if encloses_all and (best is None or subset_radius < best[1]):
                    best = subset_center, subset_radius, subset
        if best is None or best[1] <= radius:
            break
        center, radius, support = best
    return center, float(np.linalg.norm(points - center, axis=1).max())


def _circumcenter(points: Points) -> NDArray[np.float64]:
    """Centre of the ball through a few points, in the flat that they span."""
    edges = points[1:] - points[0]
    weights = np.linalg.lstsq(2.0 * edges @ edges.T, (edges**2).sum(axis=1), rcond=None)[0]
    center: NDArray[np.float64] = points[0] + weights @ edges
    return center


def fit_capsule_axis(axial: NDArray[np.float64], radial: NDArray[np.float64], radius: float) -> tuple[float, float]:
    """Ends of the shortest capsule's axis that holds points.

    Args:
        axial: (n,) places along the axis.
        radial: (n,) distances from it, none above ``radius``.
        radius: Of the capsule.
    """
    cap_height = np.sqrt(np.maximum(radius**2 - radial**2, 0.0))
    low, high = float((axial + cap_height).min()), float((axial - cap_height).max())
    center = (low + high) / 2.0
    # One ball may be enough: the axis then is a point.
    return (low, high) if low < high else (center, center)
