"""Line segments in the plane, many at a time: from ``a`` to ``b``, both (n, 2) [m]."""

from __future__ import annotations

from typing import TypeAlias

import numpy as np
from numpy.typing import ArrayLike, NDArray

Array: TypeAlias = NDArray[np.float64]


def nearest_on_segments(a: ArrayLike, b: ArrayLike, points: ArrayLike) -> Array:
    """The nearest point (..., 2) on any of the segments, for each of the points (..., 2)."""
    start, end = (np.asarray(v, dtype=np.float64).reshape(-1, 2) for v in (a, b))
    array = np.asarray(points, dtype=np.float64)
    flat = array.reshape(-1, 1, 2)
    along = end - start
    square = np.sum(along * along, axis=1)
    fraction = np.sum((flat - start) * along, axis=-1) / np.where(square > 0.0, square, 1.0)
    projections = start + np.clip(fraction, 0.0, 1.0)[..., None] * along
    best = np.argmin(np.sum((projections - flat) ** 2, axis=-1), axis=1)
    nearest: Array = projections[np.arange(len(projections)), best].reshape(array.shape)
    return nearest


def distance_to_segments(a: ArrayLike, b: ArrayLike, points: ArrayLike) -> Array:
    """From points (..., 2) to the nearest of the segments [m]."""
    array = np.asarray(points, dtype=np.float64)
    lengths: Array = np.linalg.norm(nearest_on_segments(a, b, array) - array, axis=-1)
    return lengths


def segments_cross(a: ArrayLike, b: ArrayLike, c: ArrayLike, d: ArrayLike) -> NDArray[np.bool_]:
    """Which segments a-b (n of them) cross or touch which segments c-d (m of them): (n, m)."""
    a, b, c, d = (np.asarray(v, dtype=np.float64).reshape(-1, 2) for v in (a, b, c, d))
    p, q = a[:, None], b[:, None]
    r, s = c[None], d[None]
    side_c, side_d = _orientation(p, q, r), _orientation(p, q, s)
    side_a, side_b = _orientation(r, s, p), _orientation(r, s, q)
    proper = (side_c * side_d < 0.0) & (side_a * side_b < 0.0)
    touching = (
        ((side_c == 0.0) & _is_within_segment(p, q, r))
        | ((side_d == 0.0) & _is_within_segment(p, q, s))
        | ((side_a == 0.0) & _is_within_segment(r, s, p))
        | ((side_b == 0.0) & _is_within_segment(r, s, q))
    )
    result: NDArray[np.bool_] = proper | touching
    return result


def intersect_segments(a: ArrayLike, b: ArrayLike, c: ArrayLike, d: ArrayLike) -> Array | None:
    """The point (2,) where segment a-b meets segment c-d; None if they do not, or lie along each other."""
    a, b, c, d = (np.asarray(v, dtype=np.float64) for v in (a, b, c, d))
    u, v, w = b - a, d - c, c - a
    cross = u[0] * v[1] - u[1] * v[0]
    if cross == 0.0:
        return None
    s, t = (w[0] * v[1] - w[1] * v[0]) / cross, (w[0] * u[1] - w[1] * u[0]) / cross
    if not (0.0 <= s <= 1.0 and 0.0 <= t <= 1.0):
        return None
    point: Array = a + s * u
    return point


def _orientation(p: Array, q: Array, r: Array) -> Array:
    """Sign of the turn p, q, r."""
    sign: Array = np.sign(
        (q[..., 0] - p[..., 0]) * (r[..., 1] - p[..., 1]) - (q[..., 1] - p[..., 1]) * (r[..., 0] - p[..., 0])
    )
    return sign


def _is_within_segment(p: Array, q: Array, r: Array) -> NDArray[np.bool_]:
    """Whether r, known to lie on the line p-q, lies between its ends."""
    low, high = np.minimum(p, q), np.maximum(p, q)
    within: NDArray[np.bool_] = np.all((r >= low) & (r <= high), axis=-1)
    return within
