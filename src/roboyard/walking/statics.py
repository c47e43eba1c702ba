"""Statics of a standing robot: support polygon, stability margin, tip-over, foot loads and holding torques.

Sources: McGhee and Frank, On the stability properties of quadruped creeping gaits, Mathematical Biosciences 3, 1968
(stability margin); Messuri and Klein, IEEE Journal of Robotics and Automation 1, 1985 (energy stability margin);
Papadopoulos and Rey, A new measure of tipover stability margin for mobile manipulators, ICRA 1996 (tip-over angle).
"""

from __future__ import annotations

import math
from typing import Final, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from roboyard.compute import kernel
from roboyard.geometry.arrays import Array
from roboyard.geometry.polygons import convex_hull
from roboyard.walking.leg import LegKinematicsArrays, example_legs, foot_forward_kinematics
from roboyard.walking.legged_robot import LeggedRobot

MIN_SUPPORT_FEET: Final = 3
"""Smallest number of stance feet with which a support polygon has an area."""


class TipOver(NamedTuple):
    """What it takes to tip a body over the edge of its support polygon over which it tips most easily.

    Attributes:
        angle: (…) rotation about the edge until the center is above it [rad]; negative: the body tips over.
        energy_height: (…) height that the center rises by until then [m].
    """

    angle: Array
    energy_height: Array


def support_polygon(feet: ArrayLike) -> Array:
    """Return the corners (m, 2) of the convex hull of feet (k, 2 or 3) seen from above, counterclockwise."""
    points = np.asarray(feet, dtype=np.float64)
    return convex_hull(points[:, :2]) if len(points) else np.empty((0, 2))


def stability_margin(feet: ArrayLike, center: ArrayLike = (0.0, 0.0)) -> float:
    """Return the distance of a point from the nearest edge of the support polygon [m]; negative outside.

    McGhee and Frank, On the stability properties of quadruped creeping gaits, 1968.

    Args:
        feet: (k, 2 or 3) feet on the ground.
        center: (2,) point that must be above the polygon.

    Returns:
        The margin; -inf with fewer than three feet, or with all feet on a line.
    """
    points = np.atleast_2d(np.asarray(feet, dtype=np.float64))
    x, y = (float(value) for value in np.asarray(center, dtype=np.float64)[:2])
    return float(support_margin(points, np.ones(len(points), np.bool_), x, y))


def tip_over_stability(feet: ArrayLike, center: ArrayLike) -> TipOver:
    """Compute what it takes to tip a body over, with feet at any heights.

    The edges are those of the support polygon seen from above, each of them the line in space between its two feet.  A
    lower edge lets the body tip at a smaller angle for the same distance.  The angle is that of Papadopoulos and Rey (A
    new measure of tipover stability margin for mobile manipulators, 1996) under gravity alone; the energy height times
    the weight is the energy stability margin of Messuri and Klein (Automatic body regulation for maintaining stability
    of a legged vehicle during rough-terrain locomotion, 1985), the normalized margin of Hirose.

    Args:
        feet: (k, 3) feet on the ground.
        center: (…, 3) center of mass.

    Returns:
        Both measures; -inf with fewer than three feet, or with all feet on a line.
    """
    points, c = np.atleast_2d(np.asarray(feet, dtype=np.float64)), np.asarray(center, dtype=np.float64)
    angle, energy_height = np.full(c.shape[:-1], np.inf), np.full(c.shape[:-1], np.inf)
    for a, b in _tip_over_edges(points):
        edge_direction = (b - a) / np.linalg.norm(b - a)
        inward_normal = np.array([-edge_direction[1], edge_direction[0], 0.0])
        edge_slope_cosine = float(np.hypot(edge_direction[0], edge_direction[1]))  # cosine of the edge's slope
        inward_normal /= edge_slope_cosine
        upward_normal = np.cross(edge_direction, inward_normal)
        inward_distance, height_above_edge = (c - a) @ inward_normal, (c - a) @ upward_normal
        tip_angle = np.arctan2(inward_distance, height_above_edge)
        angle = np.minimum(angle, tip_angle)
        raised_height = np.hypot(inward_distance, height_above_edge) * (1.0 - np.cos(tip_angle)) * edge_slope_cosine
        energy_height = np.minimum(energy_height, np.copysign(raised_height, tip_angle))
    has_no_polygon = np.isinf(angle)
    return TipOver(np.where(has_no_polygon, -np.inf, angle), np.where(has_no_polygon, -np.inf, energy_height))


def _tip_over_edges(points: Array) -> list[tuple[Array, Array]]:
    """Return pairs of points (k, 3) with no point on the right of the line between them, and some on its left."""
    edges = []
    for a in points:
        for b in points:
            x, y = (b - a)[:2]
            if np.hypot(x, y) < 1e-9:
                continue
            side = x * (points[:, 1] - a[1]) - y * (points[:, 0] - a[0])
            if side.min() >= -1e-12 and side.max() > 1e-9:
                edges.append((a, b))
    return edges


@kernel(examples=lambda: [(np.zeros((6, 3)), np.ones(6, np.bool_), 0.0, 0.0)])
def support_margin(feet: Array, in_stance: NDArray[np.bool_], x: float, y: float) -> float:
    """Return the distance of a point from the edges of the polygon of the stance feet (l, 3) [m]; -inf without a
    polygon.

    A line through two stance feet that has no other stance foot on its right is an edge.
    """
    n_feet, margin, has_area, n_stance_feet = feet.shape[0], math.inf, False, 0
    for i in range(n_feet):
        n_stance_feet += in_stance[i]
    if n_stance_feet < MIN_SUPPORT_FEET:
        return -math.inf
    for i in range(n_feet):
        for j in range(n_feet):
            if i == j or not in_stance[i] or not in_stance[j]:
                continue
            ex, ey = feet[j, 0] - feet[i, 0], feet[j, 1] - feet[i, 1]
            length = math.hypot(ex, ey)
            if length < 1e-9:
                continue
            edge = True
            for k in range(n_feet):
                if in_stance[k] and k != i and k != j:
                    side = ex * (feet[k, 1] - feet[i, 1]) - ey * (feet[k, 0] - feet[i, 0])
                    has_area = has_area or abs(side) > 1e-12
                    if side < -1e-12:
                        edge = False
                        break
            if edge:
                margin = min(margin, (ex * (y - feet[i, 1]) - ey * (x - feet[i, 0])) / length)
    return margin if has_area else -math.inf


@kernel(examples=lambda: [(np.zeros((6, 3)), np.ones(6, np.bool_), 0.0, 0.0)])
def tip_over_angle(feet: Array, in_stance: NDArray[np.bool_], roll: float, pitch: float) -> float:
    """Return the rotation about an edge between the stance feet (l, 3), in space, until the body's center is above it
    [rad].

    It is the angle of `tip_over_stability` for a tilted body; negative outside, -inf without a polygon.
    """
    if support_margin(feet, in_stance, 0.0, 0.0) == -math.inf:
        return -math.inf
    cr, sr, cp, sp = math.cos(roll), math.sin(roll), math.cos(pitch), math.sin(pitch)
    level_feet, min_angle = np.empty_like(feet), math.inf
    for k in range(feet.shape[0]):
        x, y, z = feet[k, 0], cr * feet[k, 1] - sr * feet[k, 2], sr * feet[k, 1] + cr * feet[k, 2]
        level_feet[k, 0], level_feet[k, 1], level_feet[k, 2] = cp * x + sp * z, y, cp * z - sp * x
    for i in range(feet.shape[0]):
        for j in range(feet.shape[0]):
            ax, ay, az = level_feet[i, 0], level_feet[i, 1], level_feet[i, 2]
            ex, ey, ez = level_feet[j, 0] - ax, level_feet[j, 1] - ay, level_feet[j, 2] - az
            length = math.hypot(ex, ey)
            if not in_stance[i] or not in_stance[j] or length < 1e-9:
                continue
            edge = True
            for k in range(feet.shape[0]):
                edge = edge and (
                    not in_stance[k] or ex * (level_feet[k, 1] - ay) - ey * (level_feet[k, 0] - ax) >= -1e-12
                )
            if edge:
                slope = ez / length
                inward_distance, along_edge = (ey * ax - ex * ay) / length, -(ax * ex + ay * ey) / length
                height_above_edge = -(az + slope * along_edge) / math.hypot(1.0, slope)
                min_angle = min(min_angle, math.atan2(inward_distance, height_above_edge))
    return min_angle


LOAD_RAMP_TIME: Final = 0.06
"""Time in which a foot takes up its load [s]."""
_DIFFERENCE_STEP: Final = 1e-5


@kernel(examples=lambda: [(np.zeros((6, 3)), 40.0, np.ones(6))])
def distribute_weight(feet: Array, weight: float, load_fractions: Array) -> Array:
    """Return vertical forces (l) on the feet [N] that hold a weight above the body's center.

    `compute_foot_loads` is the same for any arrays.

    Args:
        feet: (l, 3) foot positions in the body frame [m].
        weight: Weight of the robot [N].
        load_fractions: (l) 0 for feet in the air, 1 for stance feet; feet in between count less.
    """
    count = len(feet)
    moments = np.zeros((3, 3))
    row = np.ones(3)
    for i in range(count):
        row[1], row[2] = feet[i, 0], feet[i, 1]
        for a in range(3):
            for b in range(3):
                moments[a, b] += load_fractions[i] * row[a] * row[b]
    # The first column of the inverse, by cofactors: forces that hold the weight above the body's center.
    cofactor_1 = moments[1, 1] * moments[2, 2] - moments[1, 2] * moments[2, 1]
    cofactor_x = moments[1, 2] * moments[2, 0] - moments[1, 0] * moments[2, 2]
    cofactor_y = moments[1, 0] * moments[2, 1] - moments[1, 1] * moments[2, 0]
    determinant = moments[0, 0] * cofactor_1 + moments[0, 1] * cofactor_x + moments[0, 2] * cofactor_y
    loads = np.zeros(count)
    if determinant >= 1e-12:
        for i in range(count):
            force = (cofactor_1 + feet[i, 0] * cofactor_x + feet[i, 1] * cofactor_y) * weight / determinant
            loads[i] = max(load_fractions[i] * force, 0.0)
    return loads


@kernel(examples=lambda: [(example_legs(), np.zeros((1, 3)), np.zeros(1))])
def compute_holding_torques(legs: LegKinematicsArrays, q: Array, loads: Array) -> Array:
    """Return static joint torques (l, 3) [N m] that hold vertical forces (l) [N] on the feet: -Jᵀ f.

    The Jacobian of the foot heights is computed by forward differences.

    Args:
        legs: Kinematics of all legs.
        q: (l, 3) joint positions [rad].
        loads: (l) vertical forces on the feet [N].
    """
    leg_indices = np.arange(len(q))
    feet_before, feet_after = np.empty_like(q), np.empty_like(q)
    foot_forward_kinematics(legs, leg_indices, q, feet_before)
    out = np.empty_like(q)
    for k in range(3):
        shifted = q.copy()
        for i in range(len(q)):
            shifted[i, k] += _DIFFERENCE_STEP
        foot_forward_kinematics(legs, leg_indices, shifted, feet_after)
        for i in range(len(q)):
            out[i, k] = -(feet_after[i, 2] - feet_before[i, 2]) / _DIFFERENCE_STEP * loads[i]
    return out


@kernel(
    examples=lambda: [
        (
            example_legs(),
            np.zeros((1, 3)),
            np.zeros((1, 3)),
            40.0,
            np.ones(1, np.bool_),
            0.1,
            np.ones(1),
            np.ones((1, 3)),
        )
    ]
)
def compensate_joint_compliance(
    legs: LegKinematicsArrays,
    q: Array,
    feet: Array,
    weight: float,
    in_stance: NDArray[np.bool_],
    max_change: float,
    load_fractions: Array,
    compliance: Array,
) -> Array:
    """Return set-points (l, 3) with which servos that yield under load reach the desired joint positions [rad].

    Args:
        legs: Kinematics of all legs.
        q: (l, 3) desired joint positions [rad].
        feet: (l, 3) desired foot positions in the body frame [m].
        weight: Weight of the robot [N].
        in_stance: (l) feet that carry load, or are about to.
        max_change: Maximum change of a load fraction in this step.
        load_fractions: (l) fractions of their loads that the feet have taken up; changed.
        compliance: (l, 3) compliance of the servos [rad/(N m)].
    """
    for i in range(len(q)):
        load_fractions[i] = min(
            max(1.0 if in_stance[i] else 0.0, load_fractions[i] - max_change), load_fractions[i] + max_change
        )
    setpoints = q + compute_holding_torques(legs, q, distribute_weight(feet, weight, load_fractions)) * compliance
    return np.minimum(np.maximum(setpoints, legs.lower), legs.upper)


def compute_foot_loads(feet: ArrayLike, weight: float, load_fractions: ArrayLike) -> Array:
    """Return vertical forces (l) on the feet [N] that hold a weight above the body's center, by weighted least squares.

    Args:
        feet: (l, 3) foot positions in the body frame [m].
        weight: Weight of the robot [N].
        load_fractions: (l) 0 for feet in the air, 1 for stance feet; feet in between count less.

    Returns:
        Forces; all zero without stance feet; feet that would have to pull carry nothing.
    """
    foot_positions = np.ascontiguousarray(feet, dtype=np.float64)
    return distribute_weight(foot_positions, weight, np.asarray(load_fractions, dtype=np.float64))


def holding_torques(legged_robot: LeggedRobot, q: ArrayLike, loads: ArrayLike) -> Array:
    """Return static joint torques (l, 3) [N m] that hold vertical forces (l) [N] on the feet: -Jᵀ f."""
    joints = np.ascontiguousarray(q, dtype=np.float64)
    return compute_holding_torques(legged_robot.arrays, joints, np.asarray(loads, dtype=np.float64))
