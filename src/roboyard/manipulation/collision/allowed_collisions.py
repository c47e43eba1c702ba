"""Allowed collisions of a robot's links, found by sampling random states (as MoveIt's Setup Assistant does)."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from roboyard.compute import kernel
from roboyard.errors import InputError
from roboyard.geometry.arrays import Array
from roboyard.kinematics.chain_kernels import compute_frames, multiply_transforms
from roboyard.manipulation.collision.collision_model import (
    CollisionArrays,
    CollisionWorkspace,
    example_collision_arrays,
    make_workspace,
)
from roboyard.manipulation.collision.gjk import DistanceThresholds, distance_lower_bound
from roboyard.manipulation.collision.planning_scene import PlanningScene
from roboyard.manipulation.semantics.planning_groups import AllowedCollisionReason, SemanticDescription, sorted_pair

_ALWAYS_FRACTION = 0.95
"""Fraction of states in contact above which a pair of links always touches by the shapes of its links."""
_NEVER_DISTANCE = 0.01
"""Pairs of links that come nearer than this are not called "never" [m]."""
_NEVER_DISTANCE_ONE_JOINT = 0.001
"""The same for links that one joint moves relative to each other: their states are sampled so densely that hardly any
is missed [m].
"""
_BATCH_SIZE = 1000
Pair = tuple[str, str]


def sample_allowed_pairs(
    semantics: SemanticDescription,
    rng: np.random.Generator,
    n_states: int = 10_000,
    should_stop: Callable[[], bool] = lambda: False,
) -> dict[Pair, AllowedCollisionReason]:
    """Return pairs of links, in alphabetical order, that need no collision checks, and the reasons.

    Adjacent links of the description stay adjacent.  Of the others, those in contact in nearly every state of a group's
    joints, with grippers closed and open, are "always", those that are never near each other "never": with more states
    this is more certain.  Pairs without relative motion are left out, and so are pairs that several groups move, as the
    grippers of two arms, unless they always touch.

    Args:
        semantics: Semantic description of the robot; of its allowed collisions only adjacent pairs count.
        rng: Generator of the states.
        n_states: Number of states of each group.
        should_stop: Ends the search early; the result is then what is known so far.

    Raises:
        InputError: no states.
    """
    if n_states < 1:
        raise InputError(f"{n_states} states", valid="1 or more")
    adjacent = {pair: reason for pair, reason in semantics.allowed_collisions.items() if reason == "adjacent"}
    semantics_with_adjacent_pairs = replace(semantics, allowed_collisions=adjacent)
    counts: dict[Pair, NDArray[np.int64]] = {}
    moving_groups: dict[Pair, set[tuple[str, ...]]] = {}
    for name, group in semantics.groups.items():
        for gripper_positions in _gripper_states(semantics, group.joints):
            for pair, found in _count_pairs(
                semantics_with_adjacent_pairs, name, gripper_positions, rng, n_states, should_stop
            ):
                counts[pair] = counts.get(pair, np.zeros(3, np.int64)) + found
                moving_groups.setdefault(pair, set()).add(group.joints)
    result: dict[Pair, AllowedCollisionReason] = dict(adjacent)
    for pair, (n_contacts, n_near, n_checks) in counts.items():
        if n_checks and n_contacts >= _ALWAYS_FRACTION * n_checks:
            result[pair] = "always"
        elif n_checks and not n_near and len(moving_groups[pair]) == 1:
            result[pair] = "never"
    return dict(sorted(result.items()))


def _gripper_states(semantics: SemanticDescription, joints: tuple[str, ...]) -> list[Mapping[str, float]]:
    """Return the positions of closed and open grippers, as far as their joints are not part of the group."""
    found: list[Mapping[str, float]] = []
    for positions in ("closed", "open"):
        gripper_positions = {
            joint: value
            for gripper in semantics.grippers.values()
            for joint, value in zip(gripper.joints, getattr(gripper, positions), strict=True)
            if joint not in joints
        }
        if gripper_positions not in found:
            found.append(gripper_positions)
    return found


def _count_pairs(
    semantics: SemanticDescription,
    name: str,
    fixed_positions: Mapping[str, float],
    rng: np.random.Generator,
    n_states: int,
    should_stop: Callable[[], bool],
) -> Iterator[tuple[Pair, NDArray[np.int64]]]:
    """Yield each pair with the numbers of its contacts, of its near states, and of all states."""
    scene = PlanningScene.create(semantics, name, fixed_positions=fixed_positions)
    collision, shapes = scene.collision_arrays, scene.robot_shapes
    workspace, n_checked = make_workspace(collision), 0
    pairs = [sorted_pair(shapes[i].name, shapes[j].name) for i, j in collision.pairs]
    pair_indices = {pair: k for k, pair in enumerate(dict.fromkeys(pairs))}
    link_pair_index = np.array([pair_indices[pair] for pair in pairs], dtype=np.int64)
    n_joints_between = np.zeros(len(pair_indices), np.int64)
    np.maximum.at(
        n_joints_between, link_pair_index, np.abs(np.diff(collision.frame_index[collision.pairs], axis=1)).ravel()
    )
    near_distances = np.where(n_joints_between > 1, _NEVER_DISTANCE, _NEVER_DISTANCE_ONE_JOINT)
    found = np.zeros((len(pair_indices), 2), np.int64)
    while n_checked < n_states and not should_stop():
        batch_size = min(n_states - n_checked, _BATCH_SIZE)
        count_contacts(
            collision, workspace, scene.chain.sample_positions(rng, batch_size), link_pair_index, near_distances, found
        )
        n_checked += batch_size
    for pair, k in pair_indices.items():
        yield pair, np.array([*found[k], n_checked])


def _examples() -> list[tuple[CollisionArrays, CollisionWorkspace, Array, NDArray[np.int64], Array, NDArray[np.int64]]]:
    collision, zero_index = example_collision_arrays(), np.zeros(1, np.int64)
    return [
        (
            collision,
            make_workspace(collision),
            np.zeros((2, 1)),
            zero_index,
            np.full(1, 0.1),
            np.zeros((1, 2), np.int64),
        )
    ]


@kernel(examples=_examples)
def count_contacts(
    collision: CollisionArrays,
    workspace: CollisionWorkspace,
    states: Array,
    link_pair_index: NDArray[np.int64],
    near_distances: Array,
    counts: NDArray[np.int64],
) -> None:
    """Count in how many states (k, dof) links are in contact, and near each other.

    Args:
        collision: The robot.
        workspace: Workspace.
        states: States to check.
        link_pair_index: (p,) the pair of links of each pair of shapes.
        near_distances: (pairs of links,) distances that count as near [m].
        counts: (pairs of links, 2) contacts and near states; incremented.
    """
    shapes, frame_index = collision.robot_shapes, collision.frame_index
    min_distances = np.empty(counts.shape[0])
    for s in range(states.shape[0]):
        compute_frames(collision.chain, states[s], workspace.frames)
        for i in range(frame_index.shape[0]):
            multiply_transforms(workspace.frames[frame_index[i]], collision.T_frame_shape[i], workspace.poses[i])
        min_distances[:] = near_distances
        for p in range(collision.pairs.shape[0]):
            i, j, k = collision.pairs[p, 0], collision.pairs[p, 1], link_pair_index[p]
            A, B = workspace.poses[i], workspace.poses[j]
            squared_distance = (A[0, 3] - B[0, 3]) ** 2 + (A[1, 3] - B[1, 3]) ** 2 + (A[2, 3] - B[2, 3]) ** 2
            max_center_distance = shapes.bounding_radius[i] + shapes.bounding_radius[j] + min_distances[k]
            if squared_distance < max_center_distance * max_center_distance:
                distance = distance_lower_bound(
                    shapes, i, A, shapes, j, B, DistanceThresholds(min_distances[k], 0.0), workspace.simplex
                )
                min_distances[k] = min(min_distances[k], distance)
        for k in range(min_distances.shape[0]):
            counts[k, 0] += min_distances[k] < collision.margin
            counts[k, 1] += min_distances[k] < near_distances[k]
