"""Cutting and growing polygons."""

from __future__ import annotations

import math
from typing import TypeAlias

import numpy as np
from numpy.typing import ArrayLike, NDArray

from roboyard.errors import InputError
from roboyard.geometry.polygons import is_convex, make_counter_clockwise

Array: TypeAlias = NDArray[np.float64]


def clip(polygon: ArrayLike, window: ArrayLike) -> Array:
    """The part of a polygon inside a convex window, (n, 2) anticlockwise; (0, 2) if there is none.

    Sutherland and Hodgman 1974. Where a polygon that is not convex falls apart, the parts stay joined along the
    window's border.

    Raises:
        InputError: the window is not convex.
    """
    result = make_counter_clockwise(polygon)
    window_corners = _require_convex(window, "window")
    for start, end in zip(window_corners, np.roll(window_corners, -1, axis=0), strict=True):
        result = clip_half_plane(result, start, end)
        if len(result) == 0:
            break
    return result


def clip_half_plane(polygon: ArrayLike, a: ArrayLike, b: ArrayLike) -> Array:
    """The part of a polygon to the left of the line from ``a`` to ``b``; (0, 2) if there is none."""
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
    """The part of the segment a-b inside a convex window as its two ends; None if it passes by.

    Cyrus and Beck 1978.

    Raises:
        InputError: the window is not convex.
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


def offset_polygon(polygon: ArrayLike, distance: float) -> Array:
    """A convex polygon with every edge moved outwards by ``distance`` [m], inwards if negative; corners stay sharp.

    Raises:
        InputError: not convex, or nothing is left of it.
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
            raise InputError(f"nothing is left of the polygon {-distance} m inside its border")
        return result
    before = np.roll(normals, 1, axis=0)
    corner_shift = (normals + before) / (1.0 + np.sum(normals * before, axis=1, keepdims=True))
    expanded: Array = corners + distance * corner_shift
    return expanded


def inflate_polygon(polygon: ArrayLike, radius: float, arc_step: float = math.pi / 8.0) -> Array:
    """Inflate a convex polygon by a disc of ``radius`` [m].

    Corners become arcs of chords of at most ``arc_step`` [rad].  The chords lie outside the true arc, so that the
    result contains every point within ``radius``.

    Raises:
        InputError: not convex, or a negative radius.
    """
    if radius < 0.0 or not 0.0 < arc_step < math.pi:
        raise InputError(f"radius {radius}, step {arc_step}", valid="radius at least 0, step between 0 and pi")
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
    corners = corners[np.any(corners != np.roll(corners, -1, axis=0), axis=1)]  # doubled corners have no edge
    if len(corners) < 3 or not is_convex(corners):
        raise InputError(f"the {name} is not convex", valid="a convex one, e.g. of convex_hull()")
    return corners
