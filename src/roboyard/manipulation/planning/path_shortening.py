"""Kernels that shorten a path of straight lines by shortcuts, and blend its corners."""

from __future__ import annotations

import math
from collections.abc import Iterable
from typing import Any

import numpy as np

from roboyard.compute import kernel
from roboyard.geometry.arrays import Array
from roboyard.manipulation.collision.collision_model import (
    CollisionArrays,
    CollisionWorkspace,
    example_collision_arrays,
    make_workspace,
)
from roboyard.manipulation.collision.motion_check import is_line_free, is_segment_free

_MAX_HALVINGS = 8
"""Maximum number of halvings of a blend before the path stops at the corner instead."""


def _examples() -> Iterable[tuple[Any, ...]]:
    collision = example_collision_arrays()
    yield collision, make_workspace(collision), np.zeros((9, 1)), 3, np.ones(1), np.random.default_rng(0), 4, 2


@kernel
def _length(a: Array, b: Array, weights: Array) -> float:
    square = 0.0
    for k in range(a.shape[0]):
        square += (weights[k] * (a[k] - b[k])) ** 2
    return math.sqrt(square)


@kernel
def _skip_waypoints(collision: CollisionArrays, workspace: CollisionWorkspace, path: Array, count: int) -> int:
    """Connect each state with the last one that a straight collision-free motion reaches."""
    current, n_points = 0, 1
    while current < count - 1:
        next_index = current + 1
        for candidate in range(count - 1, current + 1, -1):
            if is_line_free(collision, workspace, path[current], path[candidate]):
                next_index = candidate
                break
        path[n_points] = path[next_index]  # n_points <= next_index: no state is overwritten before it is read
        current = next_index
        n_points += 1
    return n_points


@kernel(examples=_examples)
def shortcut_path(
    collision: CollisionArrays,
    workspace: CollisionWorkspace,
    path: Array,
    count: int,
    weights: Array,
    rng: np.random.Generator,
    max_attempts: int,
    max_failures: int,
) -> int:
    """Shorten a path by straight collision-free shortcuts between random points.

    R. Geraerts, M. Overmars, "Creating high-quality paths for motion planning", IJRR 26(8), 2007.

    Args:
        collision: Collision model.
        workspace: Workspace.
        path: (capacity, dof) states, of which the first ``count`` are the path; needs room for two more per attempt.
        count: Number of states.
        weights: (dof,) weights of the joints in distances.
        rng: Generator of the random points.
        max_attempts: Maximum number of attempts.
        max_failures: Number of successive failures that ends the search.

    Returns:
        The number of states, at the front of ``path``.
    """
    dof = path.shape[1]
    count = _skip_waypoints(collision, workspace, path, count)
    lengths = np.empty(path.shape[0])
    a, b = np.empty(dof), np.empty(dof)
    n_failures = 0
    for _ in range(max_attempts):
        if count < 3 or n_failures >= max_failures:
            break
        path_length = 0.0
        for i in range(count - 1):
            lengths[i] = _length(path[i], path[i + 1], weights)
            path_length += lengths[i]
        first, second = rng.random() * path_length, rng.random() * path_length
        low, high = min(first, second), max(first, second)
        i, j, length_before = 0, 0, 0.0
        while i < count - 2 and length_before + lengths[i] < low:
            length_before += lengths[i]
            i += 1
        u = min((low - length_before) / lengths[i], 1.0) if lengths[i] > 0.0 else 0.0
        j = i
        while j < count - 2 and length_before + lengths[j] < high:
            length_before += lengths[j]
            j += 1
        v = min((high - length_before) / lengths[j], 1.0) if lengths[j] > 0.0 else 0.0
        n_failures += 1
        if i == j:
            continue
        for k in range(dof):
            a[k] = path[i, k] + u * (path[i + 1, k] - path[i, k])
            b[k] = path[j, k] + v * (path[j + 1, k] - path[j, k])
        gain = (high - low) - _length(a, b, weights)
        if gain <= 1e-3 * path_length or not is_line_free(collision, workspace, a, b):
            continue
        n_failures = 0
        # replace i + 1 … j by a and b
        n_tail = count - (j + 1)
        tail_start = i + 3
        if tail_start > j + 1:
            for m in range(n_tail - 1, -1, -1):
                path[tail_start + m] = path[j + 1 + m]
        else:
            for m in range(n_tail):
                path[tail_start + m] = path[j + 1 + m]
        path[i + 1], path[i + 2] = a, b
        count = tail_start + n_tail
        if count + 2 > path.shape[0]:
            break
    return count


@kernel(examples=lambda: [(*example[:2], np.zeros((3, 1)), 1.0) for example in _examples()])
def blend_corners(
    collision: CollisionArrays, workspace: CollisionWorkspace, path: Array, max_blend: float
) -> tuple[Array, Array]:
    """Blend the corners of a path of straight lines by parabolas that are tangent to both lines.

    Args:
        collision: Collision model.
        workspace: Workspace.
        path: (k, dof) states, successive ones different.
        max_blend: Maximum distance of a blend's start from its corner.

    Returns:
        (p, 3, dof) coefficients of the powers of the length along each segment, and (p,) their lengths.  A corner
        without
        a collision-free blend stays.
    """
    count, dof = path.shape
    segments, lengths = np.zeros((2 * count, 3, dof)), np.zeros(2 * count)
    ones = np.ones(dof)
    curve = np.zeros((3, dof))
    n_segments, blended_length = 0, 0.0  # how far the last blend reaches into the present line
    for i in range(count - 1):
        length = _length(path[i], path[i + 1], ones)
        next_length, radius = 0.0, 0.0
        if i < count - 2:
            next_length = _length(path[i + 1], path[i + 2], ones)
            radius = min(
                length - blended_length if i == 0 else min(0.5 * length, length - blended_length),
                next_length if i == count - 3 else 0.5 * next_length,
                max_blend,
            )
        is_free = False
        for _ in range(_MAX_HALVINGS):
            if radius <= 1e-6:
                break
            for k in range(dof):
                start_direction = (path[i + 1, k] - path[i, k]) / length
                end_direction = (path[i + 2, k] - path[i + 1, k]) / next_length
                curve[0, k] = path[i + 1, k] - radius * start_direction
                curve[1, k] = start_direction
                curve[2, k] = (end_direction - start_direction) / (4.0 * radius)
            if is_segment_free(collision, workspace, curve, 2.0 * radius):
                is_free = True
                break
            radius *= 0.5
        if not is_free:
            radius = 0.0
        if length - blended_length - radius > 1e-9:
            for k in range(dof):
                slope = (path[i + 1, k] - path[i, k]) / length
                segments[n_segments, 0, k] = path[i, k] + blended_length * slope
                segments[n_segments, 1, k] = slope
            lengths[n_segments] = length - blended_length - radius
            n_segments += 1
        if is_free:
            segments[n_segments] = curve
            lengths[n_segments] = 2.0 * radius
            n_segments += 1
        blended_length = radius
    return segments[:n_segments].copy(), lengths[:n_segments].copy()
