"""Ellipses: least-squares fit, edges along rays with subpixel accuracy, and poses of the circles that they show."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from roboyard.compute import kernel
from roboyard.compute.array_kernels import solve_spd_in_place
from roboyard.errors import InputError
from roboyard.geometry.arrays import U8, Array


def _fit_ellipse_examples() -> list[tuple[object, ...]]:
    return [(np.zeros((8, 2)), np.zeros(8), np.zeros(5))]


@kernel(examples=_fit_ellipse_examples, error_model="numpy")
def fit_ellipse(points: Array, weights: Array, ellipse: Array) -> bool:
    """Fit an ellipse to points by least squares.

    The conic A x² + B x y + C y² + D x + E y = 1 is fitted about the points' mean, in units of their spread; the mean
    is inside the ellipse, so that the right side can be one.

    Args:
        points: (n, 2).
        weights: (n,); 0: left out.
        ellipse: (5,) center x and y, semi-major and semi-minor axis, angle of the major axis [rad], written.

    Returns:
        False if fewer than six points have a weight, or the conic is no ellipse.
    """
    total = mx = my = 0.0
    count = 0
    for k in range(len(points)):
        if weights[k] > 0.0:
            count += 1
            total += weights[k]
            mx += weights[k] * points[k, 0]
            my += weights[k] * points[k, 1]
    if count < 6:
        return False
    mx, my = mx / total, my / total
    spread = 0.0
    for k in range(len(points)):
        spread += weights[k] * ((points[k, 0] - mx) ** 2 + (points[k, 1] - my) ** 2)
    spread = math.sqrt(spread / total)
    if not spread > 0.0:
        return False
    normal, right, row = np.zeros((5, 5)), np.zeros(5), np.zeros(5)
    for k in range(len(points)):
        w = weights[k]
        if w > 0.0:
            x, y = (points[k, 0] - mx) / spread, (points[k, 1] - my) / spread
            row[0], row[1], row[2], row[3], row[4] = x * x, x * y, y * y, x, y
            for i in range(5):
                right[i] += w * row[i]
                for j in range(i + 1):
                    normal[i, j] += w * row[i] * row[j]
    if not solve_spd_in_place(normal, right, 1e-12):
        return False
    if not conic_axes(right[0], right[1], right[2], right[3], right[4], -1.0, ellipse):
        return False
    ellipse[0], ellipse[1] = mx + spread * ellipse[0], my + spread * ellipse[1]
    ellipse[2], ellipse[3] = spread * ellipse[2], spread * ellipse[3]
    return True


def _conic_axes_examples() -> list[tuple[object, ...]]:
    return [(1.0, 0.0, 1.0, 0.0, 0.0, -1.0, np.zeros(5))]


@kernel(examples=_conic_axes_examples, error_model="numpy")
def conic_axes(A: float, B: float, C: float, D: float, E: float, F: float, ellipse: Array) -> bool:
    """Center, semi-axes and angle of the ellipse A x² + B x y + C y² + D x + E y + F = 0; False if it is none."""
    determinant = 4.0 * A * C - B * B
    if not determinant > 0.0:
        return False
    x, y = (B * E - 2.0 * C * D) / determinant, (B * D - 2.0 * A * E) / determinant
    scale = -(F + 0.5 * (D * x + E * y))
    half_sum, half_difference = 0.5 * (A + C), 0.5 * math.hypot(A - C, B)
    small, large = (half_sum - half_difference) / scale, (half_sum + half_difference) / scale
    if small > large:
        small, large = large, small
    if not small > 0.0:
        return False
    sign = 1.0 if scale > 0.0 else -1.0
    ellipse[0], ellipse[1] = x, y
    ellipse[2], ellipse[3] = 1.0 / math.sqrt(small), 1.0 / math.sqrt(large)
    # the major axis is the direction in which the form grows least
    ellipse[4] = 0.5 * math.atan2(-sign * B, -sign * (A - C))
    return True


def ellipse_conic(ellipse: Array) -> Array:
    """Symmetric matrix (3, 3) of a conic, p' Q p = 0 for points p = (x, y, 1) of the ellipse (5,), negative inside."""
    x, y, a, b, angle = (float(value) for value in ellipse)
    c, s = math.cos(angle), math.sin(angle)
    T = np.array([[c / a, s / a, -(c * x + s * y) / a], [-s / b, c / b, (s * x - c * y) / b], [0.0, 0.0, 1.0]])
    return np.asarray(T.T @ np.diag([1.0, 1.0, -1.0]) @ T)


RAYS = 64
_ROUGH_RAYS = 32
_MAX_EDGE_SAMPLES = 200


def _bilinear_examples() -> list[tuple[object, ...]]:
    return [(np.zeros((2, 2), np.uint8), 0.0, 0.0)]


@kernel(examples=_bilinear_examples, error_model="numpy", inline="always")
def sample_bilinear(image: U8, x: float, y: float) -> float:
    """Interpolate the gray level between pixels; outside the image its edge is repeated."""
    height, width = image.shape
    x, y = min(max(x, 0.0), width - 1.001), min(max(y, 0.0), height - 1.001)
    i, j = int(x), int(y)
    a, b = x - i, y - j
    above: float = (1.0 - a) * image[j, i] + a * image[j, i + 1]
    below: float = (1.0 - a) * image[j + 1, i] + a * image[j + 1, i + 1]
    return (1.0 - b) * above + b * below


class EdgeRay(NamedTuple):
    """A ray in an image.

    Attributes:
        x: Column of its start [px].
        y: Row of its start [px].
        dx: Direction along the columns, of length 1 together with `dy`.
        dy: Direction along the rows.
    """

    x: float
    y: float
    dx: float
    dy: float


class EdgeSearch(NamedTuple):
    """Where on a ray an edge is searched, and which one is taken.

    Attributes:
        start: Start of the search along the ray [px].
        end: End of the search along the ray [px].
        step: Distance of the samples [px].
        first_fraction: The first edge with at least this fraction of the largest gradient is taken; 1: the steepest.
    """

    start: float
    end: float
    step: float
    first_fraction: float


def _edge_examples() -> list[tuple[object, ...]]:
    ray, search = EdgeRay(0.0, 0.0, 1.0, 0.0), EdgeSearch(1.0, 2.0, 1.0, 1.0)
    return [(np.zeros((2, 2), np.uint8), ray, search, np.zeros(_MAX_EDGE_SAMPLES))]


@kernel(examples=_edge_examples, error_model="numpy")
def find_falling_edge(image: U8, ray: EdgeRay, search: EdgeSearch, values: Array) -> tuple[float, float]:
    """Find the position at which the gray level along a ray falls from light to dark.

    Args:
        image: Image in which discs are light.
        ray: The ray.
        search: Where on the ray, and which edge.
        values: Buffer for samples.

    Returns:
        Position along the ray [px] and gradient there [gray levels per pixel]; two zeros without an edge.
    """
    count = min(int((search.end - search.start) / search.step) + 3, _MAX_EDGE_SAMPLES)
    for k in range(count):
        distance = search.start + (k - 1) * search.step
        values[k] = sample_bilinear(image, ray.x + distance * ray.dx, ray.y + distance * ray.dy)
    steepest = 0.0
    for k in range(1, count - 1):
        steepest = max(steepest, values[k - 1] - values[k + 1])
    if steepest <= 0.0:
        return 0.0, 0.0
    threshold = search.first_fraction * steepest
    for k in range(1, count - 1):
        slope = values[k - 1] - values[k + 1]
        before = values[k - 2] - values[k] if k > 1 else slope - 1e-9
        after = values[k] - values[k + 2] if k < count - 2 else slope - 1e-9
        if slope >= threshold and slope >= before and slope > after:
            curvature = before - 2.0 * slope + after
            shift = 0.5 * (before - after) / curvature if curvature < 0.0 else 0.0
            position = search.start + (k - 1 + min(max(shift, -0.5), 0.5)) * search.step
            return position, slope / (2.0 * search.step)
    return 0.0, 0.0


def _robust_fit_examples() -> list[tuple[object, ...]]:
    points = np.zeros((8, 2))
    return [(points, np.zeros(8), 4, 1.0, np.zeros(5), np.zeros(8))]


@kernel(examples=_robust_fit_examples, error_model="numpy")
def fit_ellipse_robust(
    points: Array, weights: Array, iterations: int, inlier_distance: float, ellipse: Array, residuals: Array
) -> bool:
    """Fit an ellipse to most of the points; outliers lose their weight.

    Args:
        points: (n, 2) [px].
        weights: (n,) weights, 0: left out; set to 0 for outliers.
        iterations: Number of fits.
        inlier_distance: Points within this distance of the ellipse are never outliers [px].
        ellipse: (5,) as `fit_ellipse` writes it.
        residuals: (n,) signed distance of each point from the ellipse, positive outside, written [px].

    Returns:
        Whether an ellipse was found.
    """
    n = len(points)
    initial_weights = weights.copy()
    magnitudes = np.empty(n)
    for _ in range(iterations):
        if not fit_ellipse(points, weights, ellipse):
            return False
        c, s = math.cos(ellipse[4]), math.sin(ellipse[4])
        count = 0
        for k in range(n):
            px, py = points[k, 0] - ellipse[0], points[k, 1] - ellipse[1]
            u, v = (c * px + s * py) / ellipse[2], (c * py - s * px) / ellipse[3]
            normalized_radius = math.hypot(u, v)
            # first order in the distance: the value of the form over its gradient
            slope = math.hypot(u / ellipse[2], v / ellipse[3])
            residuals[k] = (normalized_radius - 1.0) * normalized_radius / slope if slope > 0.0 else -ellipse[3]
            if weights[k] > 0.0:
                magnitudes[count] = abs(residuals[k])
                count += 1
        bound, changed = max(inlier_distance, 2.2 * np.median(magnitudes[:count])), False
        for k in range(n):
            weight = initial_weights[k] if abs(residuals[k]) <= bound else 0.0
            changed = changed or weight != weights[k]
            weights[k] = weight
        if not changed:
            return True
    return fit_ellipse(points, weights, ellipse)


def _rough_ellipse_examples() -> list[tuple[object, ...]]:
    return [(np.zeros((2, 2), np.uint8), 0.0, 0.0, 2.0, 6.0, 1.0, np.zeros(5))]


@kernel(examples=_rough_ellipse_examples, error_model="numpy")
def fit_rough_ellipse(
    image: U8, x: float, y: float, radius_min: float, radius_max: float, min_gradient: float, ellipse: Array
) -> float:
    """Fit a first ellipse from a position near a disc's center.

    Args:
        image: Light where discs are.
        x: Column near the center [px].
        y: [px].
        radius_min: Smallest semi-minor axis [px].
        radius_max: Largest semi-major axis [px].
        min_gradient: Smallest gradient of an edge [gray levels per pixel].
        ellipse: (5,) as `fit_ellipse` writes it.

    Returns:
        Fraction of the rays with an edge on it; 0 if there is no ellipse.
    """
    points, weights, residuals = np.zeros((_ROUGH_RAYS, 2)), np.zeros(_ROUGH_RAYS), np.zeros(_ROUGH_RAYS)
    edge_distances, found_distances, samples = (
        np.zeros(_ROUGH_RAYS),
        np.zeros(_ROUGH_RAYS),
        np.zeros(_MAX_EDGE_SAMPLES),
    )
    search = EdgeSearch(0.5 * radius_min, 1.25 * radius_max + 1.0, 1.0, 0.5)
    count = 0
    for k in range(_ROUGH_RAYS):
        angle = 2.0 * math.pi * k / _ROUGH_RAYS
        dx, dy = math.cos(angle), math.sin(angle)
        distance, gradient = find_falling_edge(image, EdgeRay(x, y, dx, dy), search, samples)
        if gradient >= min_gradient:
            points[k, 0], points[k, 1], weights[k] = x + distance * dx, y + distance * dy, 1.0
            edge_distances[k] = distance
            found_distances[count] = distance
            count += 1
        elif k + 1 - count > _ROUGH_RAYS // 2:
            return 0.0
    median_distance = np.median(found_distances[:count])
    for k in range(_ROUGH_RAYS):
        if weights[k] > 0.0 and not 0.55 * median_distance <= edge_distances[k] <= 1.6 * median_distance:
            weights[k] = 0.0
            count -= 1
    if count < _ROUGH_RAYS // 2:
        return 0.0
    if not fit_ellipse_robust(points, weights, 3, 1.0, ellipse, residuals):
        return 0.0
    n_inliers = 0
    for k in range(_ROUGH_RAYS):
        n_inliers += weights[k] > 0.0
    return n_inliers / _ROUGH_RAYS


def _refine_examples() -> list[tuple[object, ...]]:
    return [(np.zeros((2, 2), np.uint8), 1.0, np.zeros(5), np.zeros((RAYS, 2)), np.zeros(RAYS), np.zeros(3))]


@kernel(examples=_refine_examples, error_model="numpy")
def refine_ellipse(
    image: U8, min_gradient: float, ellipse: Array, points: Array, weights: Array, fit_quality: Array
) -> bool:
    """Refine an ellipse with edges along its normals, in two iterations.

    Args:
        image: Light where discs are.
        min_gradient: Smallest gradient of an edge [gray levels per pixel].
        ellipse: (5,) as `fit_ellipse` writes it, changed.
        points: (RAYS, 2) edge points [px], written.
        weights: (RAYS,) 1 where an edge point is on the ellipse, written.
        fit: (3,) fraction of the rays with an edge on the ellipse, root mean square of the distances [px],
            median gradient [gray levels per pixel], written.

    Returns:
        Whether the ellipse was confirmed.
    """
    samples, residuals, gradients = np.zeros(_MAX_EDGE_SAMPLES), np.zeros(RAYS), np.zeros(RAYS)
    for iteration in range(2):
        c, s = math.cos(ellipse[4]), math.sin(ellipse[4])
        a, b = ellipse[2], ellipse[3]
        search_range = max(2.0, 0.25 * b) if iteration == 0 else max(1.6, 0.15 * b)
        ray_step = 2 - iteration  # half of the rays are sufficient at first
        searched_count = 0
        weights[:] = 0.0
        for k in range(0, RAYS, ray_step):
            angle = 2.0 * math.pi * k / RAYS
            u, v = math.cos(angle), math.sin(angle)
            # normal of the ellipse
            nu, nv = u / a, v / b
            size = math.hypot(nu, nv)
            nu, nv = nu / size, nv / size
            dx, dy = c * nu - s * nv, s * nu + c * nv
            px, py = ellipse[0] + c * a * u - s * b * v, ellipse[1] + s * a * u + c * b * v
            search = EdgeSearch(-search_range, search_range, 0.5, 0.7)
            distance, gradient = find_falling_edge(image, EdgeRay(px, py, dx, dy), search, samples)
            points[k, 0], points[k, 1] = px + distance * dx, py + distance * dy
            gradients[searched_count] = gradient
            weights[k] = gradient if gradient >= min_gradient else 0.0
            searched_count += 1
        median_gradient = np.median(gradients[:searched_count])
        inlier_distance = 0.3 + 0.6 * min_gradient / max(median_gradient, min_gradient)  # noise moves edges
        count = 0
        for k in range(RAYS):
            weights[k] = 1.0 if weights[k] > 0.12 * median_gradient else 0.0
            count += weights[k] > 0.0
        if count < searched_count // 2 or not fit_ellipse_robust(
            points, weights, 2 + 2 * iteration, inlier_distance, ellipse, residuals
        ):
            return False
        count = 0
        for k in range(RAYS):
            count += weights[k] > 0.0
        if count < searched_count // 2:  # rejected, as most candidates are here
            return False
    total, squares = 0.0, 0.0
    for k in range(RAYS):
        if weights[k] > 0.0:
            total += 1.0
            squares += residuals[k] * residuals[k]
    fit_quality[0], fit_quality[1], fit_quality[2] = total / RAYS, math.sqrt(squares / total), median_gradient
    return True


@dataclass(frozen=True, eq=False)
class CirclePose:
    """One of the two poses of a circle that a camera sees as an ellipse.

    Attributes:
        center: Center of a circle of radius 1 (3,), in the optical frame.
        normal: Unit vector (3,) towards the camera's side.
    """

    center: Array
    normal: Array


def compute_circle_poses(cone: Array) -> tuple[CirclePose, CirclePose]:
    """Compute the poses of the two circles of radius 1 that a cone of rays may show (Chen, Wu, Wada, ECCV 2004).

    Args:
        cone: Symmetric (3, 3): rays d with d' cone d = 0 touch the circle; of either sign.

    Raises:
        InputError: The matrix is no cone on the side of the optical axis.
    """
    values, vectors = np.linalg.eigh(0.5 * (cone + cone.T))
    if values[1] < 0.0:
        values, vectors = -values[::-1], vectors[:, ::-1]
    small, medium, large = values
    if not (small < 0.0 < medium):
        raise InputError("these rays are no cone", valid="the cone through an ellipse")
    sine = math.sqrt(max(large - medium, 0.0) / (large - small))
    cosine = math.sqrt((medium - small) / (large - small))
    scale = medium / math.sqrt(-large * small)
    axis = vectors[:, 0] if vectors[2, 0] > 0.0 else -vectors[:, 0]
    side = vectors[:, 2]
    poses = []
    for sign in (1.0, -1.0):
        center = scale * (sign * (small / medium) * sine * side + (large / medium) * cosine * axis)
        normal = sign * sine * side + cosine * axis
        if center @ normal > 0.0:
            normal = -normal
        poses.append(CirclePose(center, normal))
    return poses[0], poses[1]


def viewing_cone(ellipse: Array) -> Array:
    """Return the cone (3, 3) of the rays through an ellipse (5,) in the plane at distance 1 in front of the camera."""
    return ellipse_conic(ellipse)


def project_circle(center: Array, normal: Array, radius: float) -> Array:
    """Project a circle to an ellipse (5,) in the plane at distance 1.

    Args:
        center: (3,) in the optical frame.
        normal: Unit vector (3,).
        radius: As ``center``.

    Raises:
        InputError: The projection is no ellipse: the camera is in the plane of the circle or the circle surrounds it.
    """
    # A ray d intersects the plane at d (n c) / (n d); on the cone its distance from the center is the radius.
    plane_distance = float(normal @ center)
    outer = np.outer(normal, center)
    Q = (
        plane_distance**2 * np.eye(3)
        - plane_distance * (outer + outer.T)
        + (float(center @ center) - radius**2) * np.outer(normal, normal)
    )
    ellipse = np.zeros(5)
    if not conic_axes(Q[0, 0], 2.0 * Q[0, 1], Q[1, 1], 2.0 * Q[0, 2], 2.0 * Q[1, 2], Q[2, 2], ellipse):
        raise InputError("the projection of the circle is not an ellipse", valid="a circle in front of the camera")
    return ellipse
