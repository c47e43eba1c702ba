"""The smallest circle, sphere and capsule round points."""

from __future__ import annotations

from itertools import combinations

import numpy as np
from numpy.typing import NDArray

from roboyard.description.mesh_tools.surface import Points

ROUNDS = 1000
"""The radius grows with every round, so that few are needed; this bounds what rounding may add."""


def smallest_ball(points: Points) -> tuple[NDArray[np.float64], float]:
    """Centre and radius of the smallest ball round points (n, d): a circle in the plane, a sphere in space.

    The farthest point joins those that carry the ball, and the ball round these few is found by trying which of them
    lie on it (after B. Gärtner, "Fast and robust smallest enclosing balls", 1999).
    """
    support = points[:1]
    centre, radius = points[0], 0.0
    for _ in range(ROUNDS):
        squares = ((points - centre) ** 2).sum(axis=1)
        far = int(np.argmax(squares))
        if squares[far] <= radius**2 * (1.0 + 1e-12):
            break
        candidates = np.concatenate([support, points[far : far + 1]])
        best: tuple[NDArray[np.float64], float, Points] | None = None
        for count in range(2, min(len(candidates), points.shape[1] + 1) + 1):
            for chosen in combinations(range(len(candidates)), count):
                some = candidates[list(chosen)]
                middle = _round(some)
                reach = float(np.linalg.norm(some[0] - middle))
                inside = np.linalg.norm(candidates - middle, axis=1).max() <= reach * (1.0 + 1e-10)
                if inside and (best is None or reach < best[1]):
                    best = middle, reach, some
        if best is None or best[1] <= radius:
            break
        centre, radius, support = best
    return centre, float(np.linalg.norm(points - centre, axis=1).max())


def _round(points: Points) -> NDArray[np.float64]:
    """Centre of the ball through a few points, in the flat that they span."""
    edges = points[1:] - points[0]
    weights = np.linalg.lstsq(2.0 * edges @ edges.T, (edges**2).sum(axis=1), rcond=None)[0]
    centre: NDArray[np.float64] = points[0] + weights @ edges
    return centre


def capsule_ends(along: NDArray[np.float64], beside: NDArray[np.float64], radius: float) -> tuple[float, float]:
    """Ends of the shortest capsule's axis that holds points.

    Args:
        along: (n,) places along the axis.
        beside: (n,) distances from it, none above ``radius``.
        radius: Of the capsule.
    """
    bulge = np.sqrt(np.maximum(radius**2 - beside**2, 0.0))
    low, high = float((along + bulge).min()), float((along - bulge).max())
    middle = (low + high) / 2.0
    # One ball may be enough: the axis then is a point.
    return (low, high) if low < high else (middle, middle)
