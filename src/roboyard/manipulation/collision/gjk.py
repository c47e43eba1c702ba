"""GJK: a lower bound of the distance between two convex shapes, certified by a separating plane.

E. Gilbert, D. Johnson, S. Keerthi, "A fast procedure for computing the distance between complex objects in
three-dimensional space", IEEE J. Robotics and Automation 4(2), 1988; the nearest point of a simplex after C. Ericson,
"Real-Time Collision Detection", 2005, 5.1. The result never exceeds the distance, even if the search does not converge:
the support points along any direction bound the distance from below, and the best bound counts.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from typing import Any, NamedTuple

import numpy as np

from roboyard.compute import kernel
from roboyard.geometry import SE3
from roboyard.geometry.arrays import Array
from roboyard.manipulation.collision.convex_shapes import (
    BOX,
    CYLINDER,
    ELLIPSOID,
    ConvexShape,
    ConvexShapeArrays,
    stack_shapes,
)

_MAX_ITERATIONS = 40
_CONVERGENCE_TOLERANCE = 1e-9
"""Difference of two bounds below which the search has converged [m]."""


class DistanceThresholds(NamedTuple):
    """Distances beyond which the exact distance of two shapes does not matter [m].

    Attributes:
        max_distance: The search ends as soon as the distance is known to be larger.
        contact_distance: The search ends as soon as the distance is known to be smaller.
    """

    max_distance: float
    contact_distance: float


def example_shapes() -> ConvexShapeArrays:
    """Return a shape for the examples of kernels."""
    return stack_shapes([ConvexShape(BOX, np.ones(3), 0.0, SE3.identity(), np.zeros((0, 3)))])


def _examples() -> Iterable[tuple[Any, ...]]:
    one = example_shapes()
    yield one, 0, np.eye(4), one, 0, np.eye(4), DistanceThresholds(1.0, 0.0), np.zeros((5, 3))


@kernel(inline="always")
def _support(shapes: ConvexShapeArrays, i: int, T: Array, x: float, y: float, z: float) -> tuple[float, float, float]:
    """Return the support point of a core: its farthest point in a direction."""
    u = T[0, 0] * x + T[1, 0] * y + T[2, 0] * z
    v = T[0, 1] * x + T[1, 1] * y + T[2, 1] * z
    w = T[0, 2] * x + T[1, 2] * y + T[2, 2] * z
    a, b, c = shapes.half_size[i, 0], shapes.half_size[i, 1], shapes.half_size[i, 2]
    kind = shapes.kind[i]
    if kind == BOX:
        a = a if u >= 0.0 else -a
        b = b if v >= 0.0 else -b
        c = c if w >= 0.0 else -c
    elif kind == CYLINDER:
        horizontal_length = math.sqrt(u * u + v * v)
        if horizontal_length > 0.0:
            a, b = a * u / horizontal_length, b * v / horizontal_length
        else:
            b = 0.0
        c = c if w >= 0.0 else -c
    elif kind == ELLIPSOID:
        length = math.sqrt((a * u) ** 2 + (b * v) ** 2 + (c * w) ** 2)
        if length > 0.0:
            a, b, c = a * a * u / length, b * b * v / length, c * c * w / length
    else:
        best, start = -math.inf, shapes.first_point[i]
        support_index = start
        for k in range(start, start + shapes.n_points[i]):
            projection = shapes.points[k, 0] * u + shapes.points[k, 1] * v + shapes.points[k, 2] * w
            if projection > best:
                best, support_index = projection, k
        a, b, c = shapes.points[support_index, 0], shapes.points[support_index, 1], shapes.points[support_index, 2]
    return (
        T[0, 0] * a + T[0, 1] * b + T[0, 2] * c + T[0, 3],
        T[1, 0] * a + T[1, 1] * b + T[1, 2] * c + T[1, 3],
        T[2, 0] * a + T[2, 1] * b + T[2, 2] * c + T[2, 3],
    )


@kernel(inline="always")
def _dot(W: Array, i: int, j: int, k: int, m: int) -> float:
    """(W_j - W_i) · (W_m - W_k)."""
    return float(
        (W[j, 0] - W[i, 0]) * (W[m, 0] - W[k, 0])
        + (W[j, 1] - W[i, 1]) * (W[m, 1] - W[k, 1])
        + (W[j, 2] - W[i, 2]) * (W[m, 2] - W[k, 2])
    )


@kernel(inline="always")
def _edge_projection(W: Array, i: int, j: int, k: int) -> float:
    """-(W_j - W_i) · W_k: projection of the origin onto an edge, relative to a vertex."""
    return float(-((W[j, 0] - W[i, 0]) * W[k, 0] + (W[j, 1] - W[i, 1]) * W[k, 1] + (W[j, 2] - W[i, 2]) * W[k, 2]))


@kernel
def _closest_on_triangle(W: Array, a: int, b: int, c: int) -> tuple[float, float, float]:
    """Return the barycentric weights of a triangle's point nearest to the origin."""
    d1, d2 = _edge_projection(W, a, b, a), _edge_projection(W, a, c, a)
    if d1 <= 0.0 and d2 <= 0.0:
        return 1.0, 0.0, 0.0
    d3, d4 = _edge_projection(W, a, b, b), _edge_projection(W, a, c, b)
    if d3 >= 0.0 and d4 <= d3:
        return 0.0, 1.0, 0.0
    vc = d1 * d4 - d3 * d2
    if vc <= 0.0 and d1 >= 0.0 and d3 <= 0.0:
        v = d1 / (d1 - d3)
        return 1.0 - v, v, 0.0
    d5, d6 = _edge_projection(W, a, b, c), _edge_projection(W, a, c, c)
    if d6 >= 0.0 and d5 <= d6:
        return 0.0, 0.0, 1.0
    vb = d5 * d2 - d1 * d6
    if vb <= 0.0 and d2 >= 0.0 and d6 <= 0.0:
        w = d2 / (d2 - d6)
        return 1.0 - w, 0.0, w
    va = d3 * d6 - d5 * d4
    if va <= 0.0 and d4 - d3 >= 0.0 and d5 - d6 >= 0.0:
        w = (d4 - d3) / ((d4 - d3) + (d5 - d6))
        return 0.0, 1.0 - w, w
    weight_sum = va + vb + vc
    if not weight_sum > 0.0:
        return 1.0, 0.0, 0.0
    return va / weight_sum, vb / weight_sum, vc / weight_sum


@kernel(inline="always")
def _signed_volume(W: Array, a: int, b: int, c: int, d: int) -> float:
    """Return six times the signed volume of a tetrahedron; index 4 is the origin."""
    ax, ay, az = W[a, 0], W[a, 1], W[a, 2]
    bx, by, bz = W[b, 0] - ax, W[b, 1] - ay, W[b, 2] - az
    cx, cy, cz = W[c, 0] - ax, W[c, 1] - ay, W[c, 2] - az
    dx, dy, dz = W[d, 0] - ax, W[d, 1] - ay, W[d, 2] - az
    return float(bx * (cy * dz - cz * dy) + by * (cz * dx - cx * dz) + bz * (cx * dy - cy * dx))


@kernel
def _reduce(W: Array, count: int) -> tuple[int, float, float, float]:
    """Keep those of the first ``count`` vertices that span the point nearest to the origin; return their number and
    this point.

    Four are kept where the origin is inside.
    """
    if count == 2:
        square = _dot(W, 0, 1, 0, 1)
        t = _edge_projection(W, 0, 1, 0) / square if square > 0.0 else 0.0
        if t <= 0.0:
            return 1, W[0, 0], W[0, 1], W[0, 2]
        if t >= 1.0:
            W[0] = W[1]
            return 1, W[0, 0], W[0, 1], W[0, 2]
        s = 1.0 - t
        return 2, s * W[0, 0] + t * W[1, 0], s * W[0, 1] + t * W[1, 1], s * W[0, 2] + t * W[1, 2]
    best, bi, bj, bk = math.inf, 0, 1, 2
    bu, bv, bw = 1.0, 0.0, 0.0
    outside = count == 3
    for face in range(1 if count == 3 else 4):
        i, j, k, other = 0, 1, 2, 3
        if face == 1:
            i, j, k, other = 0, 1, 3, 2
        elif face == 2:
            i, j, k, other = 0, 2, 3, 1
        elif face == 3:
            i, j, k, other = 1, 2, 3, 0
        if count == 4:
            corner_volume, origin_volume = _signed_volume(W, i, j, k, other), _signed_volume(W, i, j, k, 4)
            if corner_volume * origin_volume > 0.0:
                continue  # the origin lies on the same side as the fourth corner
            outside = True
        u, v, w = _closest_on_triangle(W, i, j, k)
        x = u * W[i, 0] + v * W[j, 0] + w * W[k, 0]
        y = u * W[i, 1] + v * W[j, 1] + w * W[k, 1]
        z = u * W[i, 2] + v * W[j, 2] + w * W[k, 2]
        square = x * x + y * y + z * z
        if square < best:
            best, bi, bj, bk, bu, bv, bw = square, i, j, k, u, v, w
    if not outside:
        return 4, 0.0, 0.0, 0.0
    x = bu * W[bi, 0] + bv * W[bj, 0] + bw * W[bk, 0]
    y = bu * W[bi, 1] + bv * W[bj, 1] + bw * W[bk, 1]
    z = bu * W[bi, 2] + bv * W[bj, 2] + bw * W[bk, 2]
    n_vertices = 0
    for index, weight in ((bi, bu), (bj, bv), (bk, bw)):
        if weight > 0.0:
            W[n_vertices] = W[index]  # indices ascend, so that none is lost
            n_vertices += 1
    return n_vertices, x, y, z


@kernel(examples=_examples)
def distance_lower_bound(
    a: ConvexShapeArrays,
    i: int,
    Ta: Array,
    b: ConvexShapeArrays,
    j: int,
    Tb: Array,
    thresholds: DistanceThresholds,
    W: Array,
) -> float:
    """Return a lower bound of the distance of two shapes, which is tight between the two thresholds.

    Args:
        a: Shapes.
        i: Index of the first shape.
        Ta: (4, 4) its pose.
        b: Shapes.
        j: Index of the second shape.
        Tb: (4, 4) its pose.
        thresholds: Distances at which the search ends early.
        W: (5, 3) workspace of the search.

    Returns:
        [m]; 0 or less in contact.
    """
    radius_sum = a.radius[i] + b.radius[j]
    vx, vy, vz = Ta[0, 3] - Tb[0, 3], Ta[1, 3] - Tb[1, 3], Ta[2, 3] - Tb[2, 3]
    length = math.sqrt(vx * vx + vy * vy + vz * vz)
    if length == 0.0:
        vx, length = 1.0, 1.0
    W[4, 0] = W[4, 1] = W[4, 2] = 0.0
    lower_bound, count = -math.inf, 0
    for _ in range(_MAX_ITERATIONS):
        ax, ay, az = _support(a, i, Ta, -vx, -vy, -vz)
        bx, by, bz = _support(b, j, Tb, vx, vy, vz)
        wx, wy, wz = ax - bx, ay - by, az - bz
        lower_bound = max(lower_bound, (vx * wx + vy * wy + vz * wz) / length)
        if lower_bound - radius_sum >= thresholds.max_distance:
            return float(lower_bound - radius_sum)
        if count > 0:
            if length - radius_sum < thresholds.contact_distance:
                return float(length - radius_sum)
            if length - lower_bound <= _CONVERGENCE_TOLERANCE:
                break
            is_known_vertex = False
            for k in range(count):
                is_known_vertex = is_known_vertex or (W[k, 0] == wx and W[k, 1] == wy and W[k, 2] == wz)
            if is_known_vertex:
                break
        W[count, 0], W[count, 1], W[count, 2] = wx, wy, wz
        count += 1
        if count == 1:
            vx, vy, vz = wx, wy, wz
        else:
            count, vx, vy, vz = _reduce(W, count)
            if count == 4:
                return float(-radius_sum)
        square = vx * vx + vy * vy + vz * vz
        if square <= _CONVERGENCE_TOLERANCE * _CONVERGENCE_TOLERANCE:
            return float(-radius_sum)
        length = math.sqrt(square)
    return float(lower_bound - radius_sum)
