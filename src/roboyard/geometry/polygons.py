"""Polygons and line segments in the plane; clipping, offsetting and inflating polygons.

A polygon is an array (n, 2) [m] of corners in order; the last one is connected to the first.  Both orders are allowed
unless a function says otherwise; results are counter-clockwise.  Segments are arrays, from `a` to `b`, both (n, 2) [m].
"""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import ArrayLike, NDArray

from roboyard.errors import InputError
from roboyard.geometry.arrays import Array


def nearest_point_on_segments(a: ArrayLike, b: ArrayLike, points: ArrayLike) -> Array:
    """Compute the nearest point (..., 2) on any of the segments, for each of the points (..., 2)."""
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


def distance_to_nearest_segment(a: ArrayLike, b: ArrayLike, points: ArrayLike) -> Array:
    """Compute the distances from points (..., 2) to the nearest segment [m]."""
    array = np.asarray(points, dtype=np.float64)
    lengths: Array = np.linalg.norm(nearest_point_on_segments(a, b, array) - array, axis=-1)
    return lengths


def segments_intersect_pairwise(a: ArrayLike, b: ArrayLike, c: ArrayLike, d: ArrayLike) -> NDArray[np.bool_]:
    """Return which of the n segments a-b cross or touch which of the m segments c-d: (n, m)."""
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
    """Compute the point (2,) where segment a-b meets segment c-d; None if they do not meet, or are collinear."""
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
    """Return the sign of the turn p, q, r."""
    sign: Array = np.sign(
        (q[..., 0] - p[..., 0]) * (r[..., 1] - p[..., 1]) - (q[..., 1] - p[..., 1]) * (r[..., 0] - p[..., 0])
    )
    return sign


def _is_within_segment(p: Array, q: Array, r: Array) -> NDArray[np.bool_]:
    """Return whether r, which lies on the line p-q, is within the segment."""
    low, high = np.minimum(p, q), np.maximum(p, q)
    within: NDArray[np.bool_] = np.all((r >= low) & (r <= high), axis=-1)
    return within


def signed_area(polygon: ArrayLike) -> float:
    """Compute the signed area [m²]: positive if the corners are counter-clockwise."""
    x, y = _corners(polygon).T
    x, y = x - x[0], y - y[0]  # relative to a corner, so that the products are small
    return float(0.5 * np.sum(x * np.roll(y, -1) - np.roll(x, -1) * y))


def perimeter(polygon: ArrayLike) -> float:
    """Compute the length of the boundary [m]."""
    corners = _corners(polygon)
    return float(np.sum(np.linalg.norm(np.roll(corners, -1, axis=0) - corners, axis=1)))


def centroid(polygon: ArrayLike) -> Array:
    """Compute the center of the area (2,) [m]; the mean of the corners if the area is zero."""
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
    """Return which points (..., 2) are inside, by counting crossings; on the boundary the result may be either.

    Self-intersecting polygons: inside where the boundary winds an odd number of times.
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
    """Compute the distances from points (..., 2) to the polygon [m]; 0 inside."""
    outside = boundary_distance(polygon, points)
    return np.where(contains(polygon, points), 0.0, outside)


def boundary_distance(polygon: ArrayLike, points: ArrayLike) -> Array:
    """Compute the distances from points (..., 2) to the boundary [m]."""
    points = _points(points)
    lengths: Array = np.linalg.norm(nearest_on_boundary(polygon, points) - points, axis=-1)
    return lengths


def nearest_on_boundary(polygon: ArrayLike, points: ArrayLike) -> Array:
    """Compute the nearest boundary point (..., 2) for each of the points (..., 2)."""
    corners = _corners(polygon)
    return nearest_point_on_segments(corners, np.roll(corners, -1, axis=0), _points(points))


def convex_hull(points: ArrayLike) -> Array:
    """Compute the convex hull of points (n, 2): corners counter-clockwise from the leftmost, without collinear ones.

    Andrew's monotone chain. For points on one line the two ends, for equal points one of them.

    Raises:
        InputError: There are no points.
    """
    points = _points(points)
    if points.ndim != 2 or len(points) == 0:
        raise InputError(f"points have the shape {points.shape}", valid="(n, 2), n at least 1")
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
    """Return whether all corners turn the same way and the polygon winds once; collinear corners are allowed."""
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
    """Return whether the boundary neither crosses nor touches itself."""
    corners = _corners(polygon)
    following = np.roll(corners, -1, axis=0)
    count = len(corners)
    if np.any(np.all(corners == following, axis=1)):
        return False
    touching = segments_intersect_pairwise(corners, following, corners, following)
    index = np.arange(count)
    index_distance = np.abs(index[:, None] - index[None, :])
    is_non_adjacent = (index_distance > 1) & (index_distance < count - 1)
    if np.any(touching & is_non_adjacent):
        return False
    # adjacent edges share a corner; they must not fold back onto each other
    edges = following - corners
    next_edges = np.roll(edges, -1, axis=0)
    cross = edges[:, 0] * next_edges[:, 1] - edges[:, 1] * next_edges[:, 0]
    return not bool(np.any((cross == 0.0) & (np.sum(edges * next_edges, axis=1) < 0.0)))


def make_counter_clockwise(polygon: ArrayLike) -> Array:
    """Return the polygon with its corners in counter-clockwise order."""
    corners = _corners(polygon)
    return corners if signed_area(corners) >= 0.0 else corners[::-1]


def rectangle(length: float, width: float, center: ArrayLike = (0.0, 0.0)) -> Array:
    """Return the corners (4, 2) of a rectangle: `length` along x, `width` along y [m].

    Raises:
        InputError: A side is not positive.
    """
    if not (length > 0.0 and width > 0.0):
        raise InputError(f"rectangle sides must be positive, got {length} × {width} m", valid="positive sides")
    corners: Array = np.array([[-0.5, -0.5], [0.5, -0.5], [0.5, 0.5], [-0.5, 0.5]]) * (length, width)
    return corners + np.asarray(center, dtype=np.float64)


def regular_polygon(inradius: float, corners: int = 16) -> Array:
    """Return a regular polygon (corners, 2) around the origin whose *edges* touch the circle of `radius` [m]: it
    contains it.

    Raises:
        InputError: There are fewer than three corners, or the radius is not positive.
    """
    if corners < 3 or not inradius > 0.0:
        raise InputError(
            f"invalid regular polygon of {corners} corners and radius {inradius}",
            valid="at least 3 corners, positive radius",
        )
    angles = np.arange(corners) * (2.0 * np.pi / corners)
    polygon: Array = inradius / np.cos(np.pi / corners) * np.stack([np.cos(angles), np.sin(angles)], axis=-1)
    return polygon


def _corners(polygon: ArrayLike) -> Array:
    corners = np.asarray(polygon, dtype=np.float64)
    if corners.ndim != 2 or corners.shape[1] != 2 or len(corners) < 3:
        raise InputError(f"polygon has the shape {corners.shape}", valid="(n, 2), n at least 3")
    return corners


def _points(points: ArrayLike) -> Array:
    array = np.asarray(points, dtype=np.float64)
    if array.shape[-1:] != (2,):
        raise InputError(f"points have the shape {array.shape}", valid="(..., 2)")
    return array


def clip(polygon: ArrayLike, window: ArrayLike) -> Array:
    """Clip a polygon to a convex window, (n, 2) counter-clockwise; (0, 2) if nothing remains.

    Sutherland and Hodgman 1974. If a non-convex polygon splits into parts, these remain connected along the window's
    boundary.

    Raises:
        InputError: The window is not convex.
    """
    result = make_counter_clockwise(polygon)
    window_corners = _require_convex(window, "window")
    for start, end in zip(window_corners, np.roll(window_corners, -1, axis=0), strict=True):
        result = clip_half_plane(result, start, end)
        if len(result) == 0:
            break
    return result


def clip_half_plane(polygon: ArrayLike, a: ArrayLike, b: ArrayLike) -> Array:
    """Clip a polygon to the left side of the line from `a` to `b`; (0, 2) if nothing remains."""
    corners = np.asarray(polygon, dtype=np.float64).reshape(-1, 2)
    a, b = np.asarray(a, dtype=np.float64), np.asarray(b, dtype=np.float64)
    along = b - a
    side = along[0] * (corners[:, 1] - a[1]) - along[1] * (corners[:, 0] - a[0])
    clipped: list[Array] = []
    for index in range(len(corners)):
        start_side, end_side = side[index], side[(index + 1) % len(corners)]
        if start_side >= 0.0:
            clipped.append(corners[index])
        if (start_side > 0.0 > end_side) or (start_side < 0.0 < end_side):
            fraction = start_side / (start_side - end_side)
            clipped.append(corners[index] + fraction * (corners[(index + 1) % len(corners)] - corners[index]))
    if len(clipped) < 3:
        return np.zeros((0, 2))
    return np.array(clipped)


def clip_segment(a: ArrayLike, b: ArrayLike, window: ArrayLike) -> tuple[Array, Array] | None:
    """Clip the segment a-b to a convex window; return its two ends, or None if it is outside.

    Cyrus and Beck 1978.

    Raises:
        InputError: The window is not convex.
    """
    start, end = np.asarray(a, dtype=np.float64), np.asarray(b, dtype=np.float64)
    along = end - start
    enter, leave = 0.0, 1.0
    window_corners = _require_convex(window, "window")
    for corner, following in zip(window_corners, np.roll(window_corners, -1, axis=0), strict=True):
        edge = following - corner
        inside = edge[0] * (start[1] - corner[1]) - edge[1] * (start[0] - corner[0])
        speed = edge[0] * along[1] - edge[1] * along[0]
        if speed == 0.0:
            if inside < 0.0:
                return None
        elif speed > 0.0:
            enter = max(enter, -inside / speed)
        else:
            leave = min(leave, -inside / speed)
    return (start + enter * along, start + leave * along) if enter <= leave else None


def offset_convex_polygon(polygon: ArrayLike, distance: float) -> Array:
    """Offset every edge of a convex polygon outwards by `distance` [m], inwards if negative; corners remain sharp.

    Raises:
        InputError: The polygon is not convex, or nothing remains.
    """
    corners = _require_convex(polygon, "polygon")
    edges = np.roll(corners, -1, axis=0) - corners
    lengths = np.linalg.norm(edges, axis=1, keepdims=True)
    normals = np.stack([edges[:, 1], -edges[:, 0]], axis=1) / lengths
    if distance < 0.0:
        result = corners
        for corner, edge, normal in zip(corners, edges, normals, strict=True):
            offset_corner = corner + distance * normal
            result = clip_half_plane(result, offset_corner, offset_corner + edge)
        if len(result) == 0:
            raise InputError(f"an offset of {distance} m leaves no polygon")
        return result
    before = np.roll(normals, 1, axis=0)
    corner_shift = (normals + before) / (1.0 + np.sum(normals * before, axis=1, keepdims=True))
    expanded: Array = corners + distance * corner_shift
    return expanded


def inflate_convex_polygon(polygon: ArrayLike, radius: float, arc_step: float = math.pi / 8.0) -> Array:
    """Inflate a convex polygon by a disc of ``radius`` [m].

    Corners become arcs of chords of at most ``arc_step`` [rad].  The chords lie outside the true arc, so that the
    result contains every point within ``radius``.

    Raises:
        InputError: The polygon is not convex, or the radius is negative.
    """
    if radius < 0.0 or not 0.0 < arc_step < math.pi:
        raise InputError(
            f"invalid radius {radius} or arc step {arc_step}", valid="radius at least 0, step between 0 and pi"
        )
    corners = _require_convex(polygon, "polygon")
    edges = np.roll(corners, -1, axis=0) - corners
    headings = np.arctan2(edges[:, 1], edges[:, 0])
    points = []
    for corner, heading_in, heading_out in zip(corners, np.roll(headings, 1), headings, strict=True):
        exterior_angle = (heading_out - heading_in) % (2.0 * math.pi)
        n_chords = max(1, math.ceil(exterior_angle / arc_step - 1e-9))
        half = 0.5 * exterior_angle / n_chords
        angles = heading_in - 0.5 * math.pi + half + 2.0 * half * np.arange(n_chords)
        vertex_radius = radius / math.cos(half)
        points.append(corner + vertex_radius * np.stack([np.cos(angles), np.sin(angles)], axis=-1))
    return np.concatenate(points)


def _require_convex(polygon: ArrayLike, name: str) -> Array:
    corners = make_counter_clockwise(polygon)
    corners = corners[np.any(corners != np.roll(corners, -1, axis=0), axis=1)]  # duplicate corners have no edge
    if len(corners) < 3 or not is_convex(corners):
        raise InputError(f"the {name} is not convex", valid="a convex one, e.g. of convex_hull()")
    return corners
