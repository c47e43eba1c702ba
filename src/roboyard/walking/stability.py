"""How firmly a body stands: from above, how far it is inside of its feet; in space, what it takes to tip it over."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from roboyard.geometry.arrays import Array
from roboyard.geometry.polygons import convex_hull
from roboyard.walking.gait_kernels import held_by


class TipOver(NamedTuple):
    """What it takes to tip a body over the edge of its feet over which it goes most easily.

    Attributes:
        angle: (…) by which it turns about the edge until its centre is above it [rad]; below zero: it falls.
        rise: (…) by which its centre rises until then [m].
    """

    angle: Array
    rise: Array


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


def tip_over(feet: ArrayLike, centre: ArrayLike) -> TipOver:
    """What it takes to tip a body over, with feet at any heights.

    Its edges are those of the polygon seen from above, each the line in space between its two feet.  An edge that lies
    lower lets it tip at a smaller angle, at the same distance from above.  The angle is that of Papadopoulos and Rey (A
    new measure of tipover stability margin for mobile manipulators, 1996) under gravity alone; the rise, times the
    weight, is the energy stability margin of Messuri and Klein (Automatic body regulation for maintaining stability of
    a legged vehicle during rough-terrain locomotion, 1985), as Hirose's normalised one in metres.

    Args:
        feet: (k, 3) those on the ground.
        centre: (…, 3) of its mass.

    Returns:
        -inf with fewer than three feet, or all of them in a line.
    """
    points, c = np.atleast_2d(np.asarray(feet, dtype=np.float64)), np.asarray(centre, dtype=np.float64)
    angle, rise = np.full(c.shape[:-1], np.inf), np.full(c.shape[:-1], np.inf)
    for a, b in _edges(points):
        along = (b - a) / np.linalg.norm(b - a)
        inward = np.array([-along[1], along[0], 0.0])
        level = float(np.hypot(along[0], along[1]))  # cosine of the edge's slope
        inward /= level
        upward = np.cross(along, inward)
        depth, height = (c - a) @ inward, (c - a) @ upward
        turn = np.arctan2(depth, height)
        angle = np.minimum(angle, turn)
        lifted = np.hypot(depth, height) * (1.0 - np.cos(turn)) * level
        rise = np.minimum(rise, np.copysign(lifted, turn))
    nothing = np.isinf(angle)
    return TipOver(np.where(nothing, -np.inf, angle), np.where(nothing, -np.inf, rise))


def _edges(points: Array) -> list[tuple[Array, Array]]:
    """Pairs of points (k, 3) with none on the right of the line from one to the other, and some on its left."""
    found = []
    for a in points:
        for b in points:
            x, y = (b - a)[:2]
            if np.hypot(x, y) < 1e-9:
                continue
            side = x * (points[:, 1] - a[1]) - y * (points[:, 0] - a[0])
            if side.min() >= -1e-12 and side.max() > 1e-9:
                found.append((a, b))
    return found
