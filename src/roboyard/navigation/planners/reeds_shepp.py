"""Kernels: shortest paths of a car in free space, and the cost of a motion.

Forward only after Dubins (1957); forward and backward after Reeds and Shepp (1990), whose words are numbered as in
their table 8 and derived from a few by time reversal, reflection and reversed driving.

A motion is a length (negative backward) and the angle by which the robot rotates on it: an arc, a straight line, or a
rotation in place.  Poses are x, y in cells from the grid's corner and headings in the grid's frame.
"""

from __future__ import annotations

import math
from enum import IntEnum
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from roboyard.compute import kernel
from roboyard.geometry.planar_kernels import wrap_angle
from roboyard.navigation.costmap import LETHAL
from roboyard.navigation.footprint import cost_at_pose
from roboyard.navigation.planners.cost_grid import TraversalGrid

_ZERO = 1e-9
_QUARTER = 0.5 * math.pi


@kernel
def _wrap_positive(angle: float) -> float:
    """Wrap an angle into [0, 2π); a full circle but for rounding becomes 0."""
    wrapped = angle - 2.0 * math.pi * math.floor(angle / (2.0 * math.pi))
    return 0.0 if wrapped > 2.0 * math.pi - _ZERO or wrapped < 0.0 else wrapped


@kernel
def _tau_omega(u: float, v: float, xi: float, eta: float, phi: float) -> tuple[float, float]:
    delta = wrap_angle(u - v)
    a, b = math.sin(u) - math.sin(delta), math.cos(u) - math.cos(delta) - 1.0
    first = math.atan2(eta * a - xi * b, xi * a + eta * b)
    second = 2.0 * (math.cos(delta) - math.cos(v) - math.cos(u)) + 3.0
    tau = wrap_angle(first + math.pi) if second < 0.0 else wrap_angle(first)
    return tau, wrap_angle(tau - u + v - phi)


@kernel
def _evaluate_word(word: int, x: float, y: float, phi: float) -> tuple[bool, float, float, float]:
    """Return whether one of Reeds and Shepp's eight formulas has a solution, and its t, u, v."""
    same_x, same_y = x - math.sin(phi), y - 1.0 + math.cos(phi)  # circles on the same side
    other_x, other_y = x + math.sin(phi), y - 1.0 - math.cos(phi)
    rho, theta = math.hypot(same_x, same_y), math.atan2(same_y, same_x)
    sigma, psi = math.hypot(other_x, other_y), math.atan2(other_y, other_x)
    t = u = v = 0.0
    if word == 0:  # L+ S+ L+
        t, u = theta, rho
        v = wrap_angle(phi - t)
        return t >= -_ZERO and v >= -_ZERO, t, u, v
    if word == 1 and sigma >= 2.0:  # L+ S+ R+
        u = math.sqrt(sigma * sigma - 4.0)
        t = wrap_angle(psi + math.atan2(2.0, u))
        v = wrap_angle(t - phi)
        return t >= -_ZERO and v >= -_ZERO, t, u, v
    if word == 2 and rho <= 4.0:  # L+ R- L
        u = -2.0 * math.asin(0.25 * rho)
        t = wrap_angle(theta + 0.5 * u + math.pi)
        v = wrap_angle(phi - t + u)
        return t >= -_ZERO and u <= _ZERO, t, u, v
    if word == 3:  # L+ Ru+ Lu- R-
        cosine = 0.25 * (2.0 + sigma)
        if cosine <= 1.0:
            u = math.acos(cosine)
            t, v = _tau_omega(u, -u, other_x, other_y, phi)
            return t >= -_ZERO and v <= _ZERO, t, u, v
    if word == 4:  # L+ Ru- Lu- R+
        cosine = (20.0 - sigma * sigma) / 16.0
        if 0.0 <= cosine <= 1.0:
            u = -math.acos(cosine)
            if u >= -_QUARTER:
                t, v = _tau_omega(u, u, other_x, other_y, phi)
                return t >= -_ZERO and v >= -_ZERO, t, u, v
    if word == 5 and rho >= 2.0:  # L+ R- S- L-
        r = math.sqrt(rho * rho - 4.0)
        u = 2.0 - r
        t = wrap_angle(theta + math.atan2(r, -2.0))
        v = wrap_angle(phi - _QUARTER - t)
        return t >= -_ZERO and u <= _ZERO and v <= _ZERO, t, u, v
    if word == 6 and sigma >= 2.0:  # L+ R- S- R-
        t = math.atan2(other_x, -other_y)
        u = 2.0 - sigma
        v = wrap_angle(t + _QUARTER - phi)
        return t >= -_ZERO and u <= _ZERO and v <= _ZERO, t, u, v
    if word == 7 and sigma >= 2.0:  # L+ R- S- L- R+
        u = 4.0 - math.sqrt(sigma * sigma - 4.0)
        if u <= _ZERO:
            a, b = (4.0 - u) * other_x - 2.0 * other_y, -2.0 * other_x + (u - 4.0) * other_y
            t = wrap_angle(math.atan2(a, b))
            v = wrap_angle(t - phi)
            return t >= -_ZERO and v >= -_ZERO, t, u, v
    return False, t, u, v


@kernel
def _write_segments(
    word: int, t: float, u: float, v: float, sides: NDArray[np.int64], lengths: NDArray[np.float64]
) -> int:
    """Write the sides (1 left, 0 straight, -1 right) and signed lengths of a word, and return their number."""
    if word <= 2:
        sides[0], sides[1], sides[2] = 1, (-1 if word == 2 else 0), (-1 if word == 1 else 1)
        lengths[0], lengths[1], lengths[2] = t, u, v
        return 3
    if word <= 4:
        sides[0], sides[1], sides[2], sides[3] = 1, -1, 1, -1
        lengths[0], lengths[1], lengths[2], lengths[3] = t, u, (-u if word == 3 else u), v
        return 4
    if word <= 6:
        sides[0], sides[1], sides[2], sides[3] = 1, -1, 0, (1 if word == 5 else -1)
        lengths[0], lengths[1], lengths[2], lengths[3] = t, -_QUARTER, u, v
        return 4
    sides[0], sides[1], sides[2], sides[3], sides[4] = 1, -1, 0, 1, -1
    lengths[0], lengths[1], lengths[2], lengths[3], lengths[4] = t, -_QUARTER, u, -_QUARTER, v
    return 5


@kernel(examples=lambda: [(1.0, 1.0, 0.5, np.zeros(5, dtype=np.int64), np.zeros(5))])
def reeds_shepp(x: float, y: float, phi: float, sides: NDArray[np.int64], lengths: NDArray[np.float64]) -> float:
    """Find the shortest path of a car from the origin, with heading 0, to a pose; it drives forward and backward.

    Args:
        x: Position of the pose along x [turning radii].
        y: Position of the pose along y [turning radii].
        phi: Heading of the pose [rad].
        sides: (5,) result: 1 left, 0 straight, -1 right.
        lengths: (5,) result: lengths of the segments, negative backward, 0 beyond the last segment [turning radii].

    Returns:
        Length of the path [turning radii].
    """
    best = math.inf
    word_sides = np.zeros(5, dtype=np.int64)
    word_lengths = np.zeros(5)
    reversed_x, reversed_y = x * math.cos(phi) + y * math.sin(phi), x * math.sin(phi) - y * math.cos(phi)
    for word in range(8):
        for backwards in range(2 if word in (2, 5, 6) else 1):
            px, py = (reversed_x, reversed_y) if backwards else (x, y)
            for flip in range(2):
                for mirror in range(2):
                    fx, fy = (-px if flip else px), (-py if mirror else py)
                    fits, t, u, v = _evaluate_word(word, fx, fy, -phi if flip != mirror else phi)
                    if not fits:
                        continue
                    word_lengths[:] = 0.0
                    word_sides[:] = 0
                    count = _write_segments(word, t, u, v, word_sides, word_lengths)
                    total = np.abs(word_lengths[:count]).sum()
                    if total >= best:
                        continue
                    best = total
                    lengths[:] = 0.0
                    sides[:] = 0
                    for k in range(count):
                        j = count - 1 - k if backwards else k
                        sides[k] = -word_sides[j] if mirror else word_sides[j]
                        lengths[k] = -word_lengths[j] if flip else word_lengths[j]
    return best


@kernel(examples=lambda: [(1.0, 1.0, 0.5, np.zeros(5, dtype=np.int64), np.zeros(5))])
def dubins(x: float, y: float, phi: float, sides: NDArray[np.int64], lengths: NDArray[np.float64]) -> float:
    """Find the shortest path of a car that only drives forward; arguments and result are those of `reeds_shepp`."""
    best = math.inf
    for word in range(6):
        a, b = (1 if word in (0, 2, 4) else -1), (1 if word in (0, 3, 4) else -1)
        # centers of the circles at the start and the end
        cx, cy = x - b * math.sin(phi), y + b * math.cos(phi) - a
        center_distance, center_bearing = math.hypot(cx, cy), math.atan2(cy, cx)
        second_side = 0
        if word < 2:  # L S L, R S R
            u, heading = center_distance, center_bearing
        elif word < 4:  # L S R, R S L
            if center_distance < 2.0:
                continue
            u = math.sqrt(center_distance * center_distance - 4.0)
            heading = center_bearing + a * math.atan2(2.0, u)
        else:  # L R L, R L R
            if center_distance > 4.0:
                continue
            second_side = -a
            half = math.acos(0.25 * center_distance)
            heading = center_bearing + a * (half + _QUARTER)
            u = math.pi + 2.0 * half
        t = _wrap_positive(a * heading)
        v = _wrap_positive(b * (phi - heading)) if word < 4 else _wrap_positive(a * (phi - heading) + u)
        total = t + u + v
        if total < best:
            best = total
            sides[:] = 0
            lengths[:] = 0.0
            sides[0], sides[1], sides[2] = a, second_side, b
            lengths[0], lengths[1], lengths[2] = t, u, v
    return best


@kernel(examples=lambda: [(np.zeros(3), 1.0, 0.5)])
def arc_end(pose: NDArray[np.float64], length: float, curvature: float) -> tuple[float, float, float]:
    """Return the pose x, y, theta at the end of an arc; a negative length is driven backward."""
    theta = pose[2]
    angle = length * curvature
    if abs(angle) < 1e-12:
        return pose[0] + length * math.cos(theta), pose[1] + length * math.sin(theta), theta
    radius = 1.0 / curvature
    x = pose[0] + radius * (math.sin(theta + angle) - math.sin(theta))
    y = pose[1] - radius * (math.cos(theta + angle) - math.cos(theta))
    return x, y, theta + angle


class DriveType(IntEnum):
    """Motions that a base can execute."""

    FORWARD_ONLY = 0
    """A car that only drives forward."""
    REVERSIBLE = 1
    """A car that drives forward and backward."""
    DIFFERENTIAL = 2
    """A base that drives straight and rotates in place."""


class CollisionMap(NamedTuple):
    """Costmap and footprint, as the search checks motions.

    Attributes:
        cells: (rows, columns) costs of the costmap.
        grid: Traversal costs of those cells, with a border.
        footprint_border: (n, 2) points on the outline of the robot [cells].
        possible_collision_cost: Smallest cost of a center whose outline may touch an obstacle.
    """

    cells: NDArray[np.uint8]
    grid: TraversalGrid
    footprint_border: NDArray[np.float64]
    possible_collision_cost: int


@kernel
def motion_pose(pose: NDArray[np.float64], length: float, angle: float, fraction: float) -> tuple[float, float, float]:
    """Return the pose x, y, theta after a fraction of a motion."""
    if length == 0.0:
        return pose[0], pose[1], pose[2] + fraction * angle
    return arc_end(pose, fraction * length, angle / length)


@kernel
def write_motion_pose(
    pose: NDArray[np.float64], length: float, angle: float, fraction: float, out: NDArray[np.float64]
) -> None:
    """Write the pose after a fraction of a motion into ``out`` (3,)."""
    out[0], out[1], out[2] = motion_pose(pose, length, angle, fraction)


@kernel(no_refcount=True)
def mean_motion_weight(
    collision_map: CollisionMap,
    pose: NDArray[np.float64],
    length: float,
    angle: float,
    spacing: float,
    footprint_radius: float,
) -> float:
    """Return the mean traversal cost of a motion per cell, infinite if the robot collides on it.

    Args:
        collision_map: Costmap and footprint.
        pose: (3,) pose at the start of the motion, which is not checked itself.
        length: Length of the motion [cells].
        angle: Rotation on the motion [rad].
        spacing: Largest distance that a point of the robot moves between two checks [cells].
        footprint_radius: Distance of the robot's farthest point from its center [cells].
    """
    cells, grid, footprint_border, possible_collision_cost = collision_map
    count = max(math.ceil((abs(length) + footprint_radius * abs(angle)) / spacing), 1)
    total = 0.0
    for k in range(1, count + 1):
        x, y, theta = motion_pose(pose, length, angle, k / count)
        if cost_at_pose(cells, footprint_border, possible_collision_cost, x, y, theta) == LETHAL:
            return np.inf
        weight = grid.weights[grid.cells[int(y) + 1, int(x) + 1]]
        if weight == 0.0:
            return np.inf
        total += weight
    return total / count


@kernel
def analytic_expansion(
    drive_type: DriveType,
    radius: float,
    start: NDArray[np.float64],
    goal: NDArray[np.float64],
    lengths: NDArray[np.float64],
    angles: NDArray[np.float64],
) -> float:
    """Find the shortest motions from pose to pose in free space (analytic expansion).

    Args:
        drive_type: Motions that the base can execute.
        radius: Minimum turning radius [cells]; of a base that rotates in place, the distance that counts as a rotation
            by one radian.
        start: (3,) pose.
        goal: (3,) pose.
        lengths: (5,) result: lengths of the motions, negative backward [cells].
        angles: (5,) result: rotations of the motions [rad].

    Returns:
        Length of the path, rotations in place included [cells].
    """
    dx, dy = goal[0] - start[0], goal[1] - start[1]
    lengths[:] = 0.0
    angles[:] = 0.0
    if drive_type == DriveType.DIFFERENTIAL:
        distance = math.hypot(dx, dy)
        bearing = math.atan2(dy, dx) if distance > 1e-9 else goal[2]
        angles[0] = wrap_angle(bearing - start[2])
        lengths[1] = distance
        angles[2] = wrap_angle(goal[2] - bearing)
        return float(distance + radius * (abs(angles[0]) + abs(angles[2])))
    c, s = math.cos(start[2]), math.sin(start[2])
    x, y = (c * dx + s * dy) / radius, (-s * dx + c * dy) / radius
    sides = np.zeros(5, dtype=np.int64)
    phi = wrap_angle(goal[2] - start[2])
    if drive_type == DriveType.FORWARD_ONLY:
        total = dubins(x, y, phi, sides, lengths)
    else:
        total = reeds_shepp(x, y, phi, sides, lengths)
    for k in range(5):
        angles[k] = sides[k] * lengths[k]
        lengths[k] *= radius
    return float(total * radius)
