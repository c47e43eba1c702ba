"""Polygons in the plane: arrays (n, 2) [m] of corners in order, the last joined to the first.

Corners may run either way round unless a function says otherwise; results run anticlockwise.
"""

from __future__ import annotations

from typing import TypeAlias

import numpy as np
from numpy.typing import ArrayLike, NDArray

from roboyard.errors import InputError
from roboyard.geometry.segments import nearest_on_segments, segments_cross

Array: TypeAlias = NDArray[np.float64]


def area(polygon: ArrayLike) -> float:
    """Signed area [m²]: positive if the corners run anticlockwise."""
    x, y = _corners(polygon).T
    x, y = x - x[0], y - y[0]  # near the polygon, where the products are small
    return float(0.5 * np.sum(x * np.roll(y, -1) - np.roll(x, -1) * y))


def perimeter(polygon: ArrayLike) -> float:
    """Length of the border [m]."""
    corners = _corners(polygon)
    return float(np.sum(np.linalg.norm(np.roll(corners, -1, axis=0) - corners, axis=1)))


def centroid(polygon: ArrayLike) -> Array:
    """Centre of the area (2,) [m]; the mean of the corners if there is no area."""
    corners = _corners(polygon)
    shifted = corners - corners[0]
    following = np.roll(shifted, -1, axis=0)
    cross = shifted[:, 0] * following[:, 1] - following[:, 0] * shifted[:, 1]
    total = np.sum(cross)
    if abs(total) <= 1e-12 * np.max(np.abs(shifted), initial=0.0) ** 2:
        mean: Array = corners.mean(axis=0)
        return mean
    center: Array = corners[0] + np.sum((shifted + following) * cross[:, None], axis=0) / (3.0 * total)
    return center


def contains(polygon: ArrayLike, points: ArrayLike) -> NDArray[np.bool_]:
    """Which points (..., 2) lie inside, by counting crossings; on the border either answer may come.

    For polygons that cross themselves: inside where the border winds round an odd number of times.
    """
    corners, points = _corners(polygon), _points(points)
    flat = points.reshape(-1, 2)
    inside = np.zeros(len(flat), dtype=np.bool_)
    x, y = flat[:, 0], flat[:, 1]
    for (ax, ay), (bx, by) in zip(corners, np.roll(corners, -1, axis=0), strict=True):
        if ay != by:
            inside ^= ((ay > y) != (by > y)) & (x < ax + (y - ay) * ((bx - ax) / (by - ay)))
    return inside.reshape(points.shape[:-1])


def distance(polygon: ArrayLike, points: ArrayLike) -> Array:
    """From points (..., 2) to the polygon [m]; 0 inside."""
    outside = boundary_distance(polygon, points)
    return np.where(contains(polygon, points), 0.0, outside)


def boundary_distance(polygon: ArrayLike, points: ArrayLike) -> Array:
    """From points (..., 2) to the nearest point of the border [m]."""
    points = _points(points)
    lengths: Array = np.linalg.norm(nearest_on_boundary(polygon, points) - points, axis=-1)
    return lengths


def nearest_on_boundary(polygon: ArrayLike, points: ArrayLike) -> Array:
    """The nearest point of the border (..., 2) for each of the points (..., 2)."""
    corners = _corners(polygon)
    return nearest_on_segments(corners, np.roll(corners, -1, axis=0), _points(points))


def convex_hull(points: ArrayLike) -> Array:
    """Corners of the smallest convex polygon round points (n, 2), anticlockwise from the leftmost, none on an edge.

    Andrew's monotone chain. For points on one line the two ends, for equal points one of them.

    Raises:
        InputError: no points.
    """
    points = _points(points)
    if points.ndim != 2 or len(points) == 0:
        raise InputError(f"points of shape {points.shape}", valid="(n, 2), n at least 1")
    ordered = np.unique(points, axis=0)
    if len(ordered) < 3:
        return ordered

    def chain(sequence: list[list[float]]) -> list[list[float]]:
        hull: list[list[float]] = []
        for x, y in sequence:
            while len(hull) > 1:
                (ax, ay), (bx, by) = hull[-2], hull[-1]
                if (bx - ax) * (y - ay) - (by - ay) * (x - ax) > 0.0:
                    break
                hull.pop()
            hull.append([x, y])
        return hull

    rows = ordered.tolist()
    return np.array(chain(rows)[:-1] + chain(rows[::-1])[:-1])


def is_convex(polygon: ArrayLike) -> bool:
    """Whether it turns one way only, once round; straight corners are allowed."""
    corners = _corners(polygon)
    edges = np.roll(corners, -1, axis=0) - corners
    edges = edges[np.any(edges != 0.0, axis=1)]
    if len(edges) < 3:
        return False
    following = np.roll(edges, -1, axis=0)
    cross = edges[:, 0] * following[:, 1] - edges[:, 1] * following[:, 0]
    exterior_angles = np.arctan2(cross, np.sum(edges * following, axis=1))
    one_way = bool(np.all(cross >= 0.0) or np.all(cross <= 0.0)) and bool(np.any(cross != 0.0))
    return one_way and bool(abs(abs(np.sum(exterior_angles)) - 2.0 * np.pi) < 1e-6)


def is_simple(polygon: ArrayLike) -> bool:
    """Whether the border neither crosses nor touches itself."""
    corners = _corners(polygon)
    following = np.roll(corners, -1, axis=0)
    count = len(corners)
    if np.any(np.all(corners == following, axis=1)):
        return False
    touching = segments_cross(corners, following, corners, following)
    index = np.arange(count)
    index_distance = np.abs(index[:, None] - index[None, :])
    is_non_adjacent = (index_distance > 1) & (index_distance < count - 1)
    if np.any(touching & is_non_adjacent):
        return False
    # neighbours share a corner; they may not fold back onto each other
    edges = following - corners
    next_edges = np.roll(edges, -1, axis=0)
    cross = edges[:, 0] * next_edges[:, 1] - edges[:, 1] * next_edges[:, 0]
    return not bool(np.any((cross == 0.0) & (np.sum(edges * next_edges, axis=1) < 0.0)))


def make_counter_clockwise(polygon: ArrayLike) -> Array:
    """The same polygon with its corners running anticlockwise."""
    corners = _corners(polygon)
    return corners if area(corners) >= 0.0 else corners[::-1]


def rectangle(length: float, width: float, center: ArrayLike = (0.0, 0.0)) -> Array:
    """Corners (4, 2) of a rectangle: ``length`` along x, ``width`` along y [m].

    Raises:
        InputError: a side is not positive.
    """
    if not (length > 0.0 and width > 0.0):
        raise InputError(f"rectangle of {length} by {width}", valid="positive sides")
    corners: Array = np.array([[-0.5, -0.5], [0.5, -0.5], [0.5, 0.5], [-0.5, 0.5]]) * (length, width)
    return corners + np.asarray(center, dtype=np.float64)


def regular_polygon(radius: float, corners: int = 16) -> Array:
    """A regular polygon (corners, 2) round the origin whose *edges* touch the circle of ``radius`` [m]: it holds it.

    Raises:
        InputError: fewer than three corners, or no radius.
    """
    if corners < 3 or not radius > 0.0:
        raise InputError(f"polygon of {corners} corners, radius {radius}", valid="at least 3 corners, positive radius")
    angles = np.arange(corners) * (2.0 * np.pi / corners)
    polygon: Array = radius / np.cos(np.pi / corners) * np.stack([np.cos(angles), np.sin(angles)], axis=-1)
    return polygon


def _corners(polygon: ArrayLike) -> Array:
    corners = np.asarray(polygon, dtype=np.float64)
    if corners.ndim != 2 or corners.shape[1] != 2 or len(corners) < 3:
        raise InputError(f"polygon of shape {corners.shape}", valid="(n, 2), n at least 3")
    return corners


def _points(points: ArrayLike) -> Array:
    array = np.asarray(points, dtype=np.float64)
    if array.shape[-1:] != (2,):
        raise InputError(f"points of shape {array.shape}", valid="(..., 2)")
    return array
