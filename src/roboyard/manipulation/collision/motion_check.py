"""Kernels of continuous collision checking: certified collision-free intervals along a motion.

A state whose distance to all obstacles is known certifies the motion on both sides of it, as far as no point can have
moved farther than that distance (F. Schwarzer, M. Saha, J.-C. Latombe, "Adaptive dynamic collision checking for single
and multiple articulated robots in complex environments", IEEE Trans. Robotics 21(3), 2005). So a motion that is called
collision-free is so everywhere, not only at samples.

Checked states keep the full margin, the states between them half of it.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from roboyard.compute import kernel
from roboyard.geometry.arrays import Array
from roboyard.kinematics.chain_kernels import compute_frames, multiply_transforms
from roboyard.manipulation.collision.collision_model import (
    CollisionArrays,
    CollisionWorkspace,
    example_collision_arrays,
    make_workspace,
)
from roboyard.manipulation.collision.gjk import DistanceThresholds, distance_lower_bound

_SPHERE_DISTANCE_THRESHOLD = 0.01
"""Distances of bounding spheres above this are accurate enough; smaller ones are computed from the shapes [m]."""


def _example_inputs() -> tuple[CollisionArrays, CollisionWorkspace]:
    collision = example_collision_arrays()
    return collision, make_workspace(collision)


def _range_examples() -> Iterable[tuple[Any, ...]]:
    collision, workspace = _example_inputs()
    yield collision, np.zeros(1), 1.0, workspace


@kernel(inline="always")
def _squared_distance_to_box(low: Array, high: Array, node: int, x: float, y: float, z: float) -> float:
    """Squared distance of a point from an axis-aligned box."""
    dx = max(low[node, 0] - x, x - high[node, 0], 0.0)
    dy = max(low[node, 1] - y, y - high[node, 1], 0.0)
    dz = max(low[node, 2] - z, z - high[node, 2], 0.0)
    return float(dx * dx + dy * dy + dz * dz)


@kernel
def _sphere_distance(collision: CollisionArrays, i: int, T: Array, shapes: Any, j: int, P: Array) -> float:
    """Return the smallest distance from the bounding spheres of robot shape ``i`` to the box of shape ``j`` at pose
    ``P``.
    """
    links = collision.robot_shapes
    min_distance = math.inf
    start = links.first_sphere[i]
    for k in range(start, start + links.n_spheres[i]):
        a, b, c = links.spheres[k, 0], links.spheres[k, 1], links.spheres[k, 2]
        x = T[0, 0] * a + T[0, 1] * b + T[0, 2] * c + T[0, 3] - P[0, 3]
        y = T[1, 0] * a + T[1, 1] * b + T[1, 2] * c + T[1, 3] - P[1, 3]
        z = T[2, 0] * a + T[2, 1] * b + T[2, 2] * c + T[2, 3] - P[2, 3]
        u = max(abs(P[0, 0] * x + P[1, 0] * y + P[2, 0] * z) - shapes.half_size[j, 0], 0.0)
        v = max(abs(P[0, 1] * x + P[1, 1] * y + P[2, 1] * z) - shapes.half_size[j, 1], 0.0)
        w = max(abs(P[0, 2] * x + P[1, 2] * y + P[2, 2] * z) - shapes.half_size[j, 2], 0.0)
        min_distance = min(min_distance, math.sqrt(u * u + v * v + w * w) - links.spheres[k, 3])
    return float(min_distance - shapes.radius[j])


@kernel(examples=_range_examples)
def certified_free_range(collision: CollisionArrays, q: Array, limit: float, workspace: CollisionWorkspace) -> float:
    """Return how far a motion through a state is certified as collision-free on both sides.

    Args:
        collision: Collision model.
        q: (dof,) the state.
        limit: Maximum range, as a fraction of the motion.
        workspace: Workspace; ``motion_rates`` and ``pair_rates`` are the maximum speeds of shapes for each unit of the
            motion [m].

    Returns:
        At most ``limit``; negative in contact, which ``contact_pair`` of the workspace then names.
    """
    workspace.n_checks[0] += 1
    chain, shapes, frame_index, margin = (
        collision.chain,
        collision.robot_shapes,
        collision.frame_index,
        collision.margin,
    )
    compute_frames(chain, q, workspace.frames)
    count = frame_index.shape[0]
    for i in range(count):
        multiply_transforms(workspace.frames[frame_index[i]], collision.T_frame_shape[i], workspace.poses[i])
    half = 0.5 * margin
    free_range = limit
    tree, nodes = collision.world_tree, collision.world_tree.leaf.shape[0]
    for i in range(count):
        if frame_index[i] == 0:
            continue
        T, motion_rate, bounding_radius = workspace.poses[i], workspace.motion_rates[i], shapes.bounding_radius[i]
        x, y, z = T[0, 3], T[1, 3], T[2, 3]
        node = 0
        while node < nodes:
            far_threshold = max(margin, half + free_range * motion_rate)
            max_center_distance = bounding_radius + far_threshold
            if (
                _squared_distance_to_box(tree.low, tree.high, node, x, y, z)
                >= max_center_distance * max_center_distance
            ):
                node = tree.skip[node]
                continue
            j = tree.leaf[node]
            node += 1
            if j < 0 or collision.is_allowed[i, j]:
                continue
            distance = _sphere_distance(collision, i, T, collision.world_shapes, j, collision.world_poses[j])
            if distance < far_threshold and distance < _SPHERE_DISTANCE_THRESHOLD:
                distance = distance_lower_bound(
                    shapes,
                    i,
                    T,
                    collision.world_shapes,
                    j,
                    collision.world_poses[j],
                    DistanceThresholds(far_threshold, margin),
                    workspace.simplex,
                )
            if distance < far_threshold:
                if distance < margin:
                    workspace.contact_pair[0], workspace.contact_pair[1] = i, j
                    return -1.0
                free_range = min(free_range, (distance - half) / motion_rate) if motion_rate > 0.0 else free_range
    for p in range(collision.pairs.shape[0]):
        i, j = collision.pairs[p, 0], collision.pairs[p, 1]
        A, B = workspace.poses[i], workspace.poses[j]
        motion_rate = workspace.pair_rates[p]
        far_threshold = max(margin, half + free_range * motion_rate)
        dx, dy, dz = A[0, 3] - B[0, 3], A[1, 3] - B[1, 3], A[2, 3] - B[2, 3]
        max_center_distance = shapes.bounding_radius[i] + shapes.bounding_radius[j] + far_threshold
        if dx * dx + dy * dy + dz * dz >= max_center_distance * max_center_distance:
            continue
        distance = _sphere_distance(collision, i, A, shapes, j, B)
        if distance < far_threshold and distance < _SPHERE_DISTANCE_THRESHOLD:
            distance = distance_lower_bound(
                shapes, i, A, shapes, j, B, DistanceThresholds(far_threshold, margin), workspace.simplex
            )
        if distance < far_threshold:
            if distance < margin:
                workspace.contact_pair[0], workspace.contact_pair[1] = i, -1 - j
                return -1.0
            free_range = min(free_range, (distance - half) / motion_rate) if motion_rate > 0.0 else free_range
    return free_range


@kernel(examples=lambda: [(*_example_inputs(), np.zeros(1))])
def set_motion_rates(collision: CollisionArrays, workspace: CollisionWorkspace, joint_rates: Array) -> None:
    """Set the maximum speeds of shapes from those of the joints: (dof,) for each unit of the motion, not negative."""
    chain, frame_index, motion_bounds = collision.chain, collision.frame_index, collision.motion_bounds
    for i in range(frame_index.shape[0]):
        motion_rate = 0.0
        for k in range(frame_index[i]):
            motion_rate += abs(chain.multiplier[k]) * joint_rates[chain.driving_joint[k]] * motion_bounds[i, k]
        workspace.motion_rates[i] = motion_rate
    for p in range(collision.pairs.shape[0]):
        i, j = collision.pairs[p, 0], collision.pairs[p, 1]
        motion_rate = 0.0
        for k in range(frame_index[i], frame_index[j]):
            motion_rate += abs(chain.multiplier[k]) * joint_rates[chain.driving_joint[k]] * motion_bounds[j, k]
        workspace.pair_rates[p] = motion_rate


@kernel(examples=lambda: [(*_example_inputs(), np.zeros((3, 1)), 1.0)])
def is_segment_free(
    collision: CollisionArrays, workspace: CollisionWorkspace, coefficients: Array, length: float
) -> bool:
    """Return whether a segment of a motion is collision-free.

    Args:
        collision: Collision model.
        workspace: Workspace; ``contact_pair`` names the contact.
        coefficients: (3, dof) coefficients of the powers of the length along the segment.
        length: Length of the segment.
    """
    dof = coefficients.shape[1]
    rates = np.empty(dof)
    for k in range(dof):
        slope = coefficients[1, k]
        rates[k] = length * max(abs(slope), abs(slope + 2.0 * length * coefficients[2, k]))
    set_motion_rates(collision, workspace, rates)
    open_intervals = workspace.intervals
    open_intervals[0, 0], open_intervals[0, 1] = 0.0, 1.0
    count, first = 1, 0
    # a ring buffer, first in, first out: the center of the largest interval comes first, where a collision is likeliest
    size = open_intervals.shape[0]
    while count:
        low, high = open_intervals[first, 0], open_intervals[first, 1]
        first = (first + 1) % size
        count -= 1
        half_length = 0.5 * (high - low)
        center = low + half_length
        s = center * length
        for k in range(dof):
            workspace.q[k] = coefficients[0, k] + s * (coefficients[1, k] + s * coefficients[2, k])
        free_range = certified_free_range(collision, workspace.q, half_length, workspace)
        if free_range < 0.0:
            return False
        if free_range >= half_length:
            continue
        if count + 2 > size:  # too near to an obstacle over too long a motion
            return False
        end = (first + count) % size
        open_intervals[end, 0], open_intervals[end, 1] = low, center - free_range
        end = (end + 1) % size
        open_intervals[end, 0], open_intervals[end, 1] = center + free_range, high
        count += 2
    return True


@kernel(examples=lambda: [(*_example_inputs(), np.zeros(1), np.zeros(1))])
def is_line_free(collision: CollisionArrays, workspace: CollisionWorkspace, a: Array, b: Array) -> bool:
    """Return whether the straight motion between two states (dof,) is collision-free."""
    coefficients = np.zeros((3, a.shape[0]))
    for k in range(a.shape[0]):
        coefficients[0, k], coefficients[1, k] = a[k], b[k] - a[k]
    return is_segment_free(collision, workspace, coefficients, 1.0)


@kernel(examples=lambda: [(*_example_inputs(), np.zeros((2, 1)))])
def find_contacts(collision: CollisionArrays, workspace: CollisionWorkspace, states: Array) -> NDArray[np.int64]:
    """Return the contacts of many states (k, dof): (k, 2) as ``contact_pair`` of the workspace, or -1 and 0 without
    contact.
    """
    contacts = np.empty((states.shape[0], 2), np.int64)
    workspace.motion_rates[:] = 0.0
    workspace.pair_rates[:] = 0.0
    for s in range(states.shape[0]):
        if certified_free_range(collision, states[s], 0.0, workspace) < 0.0:
            contacts[s] = workspace.contact_pair
        else:
            contacts[s, 0], contacts[s, 1] = -1, 0
    return contacts


@kernel(examples=lambda: [(*_example_inputs(), np.zeros((2, 1)), 1.0)])
def compute_distances(collision: CollisionArrays, workspace: CollisionWorkspace, states: Array, limit: float) -> Array:
    """Return the distance of each of many states (k, dof) to collision: at most ``limit``, 0 in contact [m].

    Margins do not count.
    """
    min_distances = np.empty(states.shape[0])
    frame_index, shapes, world_tree = collision.frame_index, collision.robot_shapes, collision.world_tree
    for s in range(states.shape[0]):
        compute_frames(collision.chain, states[s], workspace.frames)
        min_distance = limit
        for i in range(frame_index.shape[0]):
            multiply_transforms(workspace.frames[frame_index[i]], collision.T_frame_shape[i], workspace.poses[i])
        for i in range(frame_index.shape[0]):
            T = workspace.poses[i]
            node = 0
            while frame_index[i] > 0 and node < world_tree.leaf.shape[0]:
                max_center_distance = shapes.bounding_radius[i] + min_distance
                if (
                    _squared_distance_to_box(world_tree.low, world_tree.high, node, T[0, 3], T[1, 3], T[2, 3])
                    >= max_center_distance * max_center_distance
                ):
                    node = world_tree.skip[node]
                    continue
                j = world_tree.leaf[node]
                node += 1
                if j >= 0 and not collision.is_allowed[i, j]:
                    distance = distance_lower_bound(
                        shapes,
                        i,
                        T,
                        collision.world_shapes,
                        j,
                        collision.world_poses[j],
                        DistanceThresholds(min_distance, 0.0),
                        workspace.simplex,
                    )
                    min_distance = min(min_distance, max(distance, 0.0))
        for p in range(collision.pairs.shape[0]):
            i, j = collision.pairs[p, 0], collision.pairs[p, 1]
            distance = distance_lower_bound(
                shapes,
                i,
                workspace.poses[i],
                shapes,
                j,
                workspace.poses[j],
                DistanceThresholds(min_distance, 0.0),
                workspace.simplex,
            )
            min_distance = min(min_distance, max(distance, 0.0))
        min_distances[s] = min_distance
    return min_distances
