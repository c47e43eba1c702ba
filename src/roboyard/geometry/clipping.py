"""Cutting and growing polygons."""

from __future__ import annotations

import math
from typing import TypeAlias

import numpy as np
from numpy.typing import ArrayLike, NDArray

from roboyard.errors import InputError
from roboyard.geometry.polygons import anticlockwise, is_convex

Array: TypeAlias = NDArray[np.float64]


def clip(polygon: ArrayLike, window: ArrayLike) -> Array:
    """The part of a polygon inside a convex window, (n, 2) anticlockwise; (0, 2) if there is none.

    Sutherland and Hodgman 1974. Where a polygon that is not convex falls apart, the parts stay joined along the
    window's border.

    Raises:
        InputError: the window is not convex.
    """
    result = anticlockwise(polygon)
    frame = _convex(window, "window")
    for start, end in zip(frame, np.roll(frame, -1, axis=0), strict=True):
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
    kept: list[Array] = []
    for index in range(len(corners)):
        here, there = side[index], side[(index + 1) % len(corners)]
        if here >= 0.0:
            kept.append(corners[index])
        if (here > 0.0 > there) or (here < 0.0 < there):
            share = here / (here - there)
            kept.append(corners[index] + share * (corners[(index + 1) % len(corners)] - corners[index]))
    if len(kept) < 3:
        return np.zeros((0, 2))
    return np.array(kept)


def clip_segment(a: ArrayLike, b: ArrayLike, window: ArrayLike) -> tuple[Array, Array] | None:
    """The part of the segment a-b inside a convex window as its two ends; None if it passes by.

    Cyrus and Beck 1978.

    Raises:
        InputError: the window is not convex.
    """
    start, end = np.asarray(a, dtype=np.float64), np.asarray(b, dtype=np.float64)
    along = end - start
    enter, leave = 0.0, 1.0
    frame = _convex(window, "window")
    for corner, following in zip(frame, np.roll(frame, -1, axis=0), strict=True):
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


def offset(polygon: ArrayLike, distance: float) -> Array:
    """A convex polygon with every edge moved outwards by ``distance`` [m], inwards if negative; corners stay sharp.

    Raises:
        InputError: not convex, or nothing is left of it.
    """
    corners = _convex(polygon, "polygon")
    edges = np.roll(corners, -1, axis=0) - corners
    lengths = np.linalg.norm(edges, axis=1, keepdims=True)
    normals = np.stack([edges[:, 1], -edges[:, 0]], axis=1) / lengths
    if distance < 0.0:
        result = corners
        for corner, edge, normal in zip(corners, edges, normals, strict=True):
            moved = corner + distance * normal
            result = clip_half_plane(result, moved, moved + edge)
        if len(result) == 0:
            raise InputError(f"nothing is left of the polygon {-distance} m inside its border")
        return result
    before = np.roll(normals, 1, axis=0)
    corner_shift = (normals + before) / (1.0 + np.sum(normals * before, axis=1, keepdims=True))
    grown: Array = corners + distance * corner_shift
    return grown


def inflate(polygon: ArrayLike, radius: float, step: float = math.pi / 8.0) -> Array:
    """A convex polygon grown by a disc of ``radius`` [m]: corners become arcs of chords at most ``step`` [rad] apart.

    The chords lie outside of the true arc, so that the result holds every point within ``radius``.

    Raises:
        InputError: not convex, or a negative radius.
    """
    if radius < 0.0 or not 0.0 < step < math.pi:
        raise InputError(f"radius {radius}, step {step}", valid="radius at least 0, step between 0 and pi")
    corners = _convex(polygon, "polygon")
    edges = np.roll(corners, -1, axis=0) - corners
    headings = np.arctan2(edges[:, 1], edges[:, 0])
    points = []
    for corner, heading_in, heading_out in zip(corners, np.roll(headings, 1), headings, strict=True):
        turn = (heading_out - heading_in) % (2.0 * math.pi)
        pieces = max(1, math.ceil(turn / step - 1e-9))
        half = 0.5 * turn / pieces
        angles = heading_in - 0.5 * math.pi + half + 2.0 * half * np.arange(pieces)
        reach = radius / math.cos(half)
        points.append(corner + reach * np.stack([np.cos(angles), np.sin(angles)], axis=-1))
    return np.concatenate(points)


def _convex(polygon: ArrayLike, what: str) -> Array:
    corners = anticlockwise(polygon)
    corners = corners[np.any(corners != np.roll(corners, -1, axis=0), axis=1)]  # doubled corners have no edge
    if len(corners) < 3 or not is_convex(corners):
        raise InputError(f"the {what} is not convex", valid="a convex one, e.g. of convex_hull()")
    return corners
