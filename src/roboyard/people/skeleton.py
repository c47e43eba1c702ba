"""The skeleton: seventeen body parts, forward kinematics and two-bone inverse kinematics (compiled).

In the rest pose a person stands upright with hanging arms, and the frames of all parts are aligned with the world: x
forward, y left, z up.  The origin of each frame is the joint at the part's upper end.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from roboyard.compute import kernel
from roboyard.geometry.arrays import Array, Vec3
from roboyard.geometry.quaternion_kernels import (
    add_scaled,
    dot,
    multiply,
    rotate_vector,
    shortest_rotation,
    subtract,
)
from roboyard.people.anthropometry import (
    ANKLE_HEIGHT,
    FOREARM_LENGTH,
    HALF_HIP_WIDTH,
    HALF_SHOULDER_WIDTH,
    HIP_HEIGHT,
    KNEE_HEIGHT,
    SHOULDER_HEIGHT,
    UPPER_ARM_LENGTH,
    BodyDimensions,
)

PARTS = (
    "pelvis", "abdomen", "chest", "neck", "head",
    "left_upper_arm", "left_forearm", "left_hand",
    "right_upper_arm", "right_forearm", "right_hand",
    "left_thigh", "left_shank", "left_foot",
    "right_thigh", "right_shank", "right_foot",
)  # fmt: skip
"""Names of the parts, each after its parent."""
PARENTS = np.array([-1, 0, 1, 2, 3, 2, 5, 6, 2, 8, 9, 0, 11, 12, 0, 14, 15], np.int64)
REST_POSE_ROTATIONS = np.tile([1.0, 0.0, 0.0, 0.0], (len(PARTS), 1))
"""Rotations of the rest pose."""
REST_POSE_ROTATIONS.flags.writeable = False
PART_INDEX = {name: index for index, name in enumerate(PARTS)}


def segment_name(part: str) -> str:
    """Return the name of a part without its side."""
    return part.removeprefix("left_").removeprefix("right_")


@dataclass(frozen=True, slots=True)
class Skeleton:
    """Skeleton of a person.

    Attributes:
        dimensions: Dimensions of the person.
        offsets: Positions (17, 3) of the joints in the frames of the parent parts; of the pelvis, above the ground [m].
    """

    dimensions: BodyDimensions
    offsets: Array

    @classmethod
    def from_dimensions(cls, dimensions: BodyDimensions) -> Skeleton:
        """Return the skeleton of a person with these dimensions."""
        joints = {
            "pelvis": (0.0, 0.0, HIP_HEIGHT),
            "abdomen": (0.0, 0.0, 0.055),
            "chest": (0.0, 0.0, 0.105),
            "neck": (0.0, 0.0, 0.135),
            "head": (0.012, 0.0, 0.060),
            "upper_arm": (0.0, HALF_SHOULDER_WIDTH, SHOULDER_HEIGHT - HIP_HEIGHT - 0.160),
            "forearm": (0.0, 0.0, -UPPER_ARM_LENGTH),
            "hand": (0.0, 0.0, -FOREARM_LENGTH),
            "thigh": (0.0, HALF_HIP_WIDTH, 0.0),
            "shank": (0.0, 0.0, KNEE_HEIGHT - HIP_HEIGHT),
            "foot": (0.0, 0.0, ANKLE_HEIGHT - KNEE_HEIGHT),
        }
        sides = [(joints[segment_name(part)], -1.0 if part.startswith("right_") else 1.0) for part in PARTS]
        offsets = np.array([(x, side * y, z) for (x, y, z), side in sides]) * dimensions.height
        offsets.flags.writeable = False
        return cls(dimensions, offsets)

    @property
    def hip_height(self) -> float:
        """Height of the hips of a person who stands upright [m]."""
        return float(self.offsets[0, 2])

    @property
    def leg_lengths(self) -> tuple[float, float]:
        """Lengths of thigh and shank [m]."""
        return float(-self.offsets[PART_INDEX["left_shank"], 2]), float(-self.offsets[PART_INDEX["left_foot"], 2])

    @property
    def arm_lengths(self) -> tuple[float, float]:
        """Lengths of upper arm and forearm [m]."""
        return float(-self.offsets[PART_INDEX["left_forearm"], 2]), float(-self.offsets[PART_INDEX["left_hand"], 2])

    def compute_part_poses(self, root: Array, rotations: Array) -> tuple[Array, Array]:
        """Return positions and orientations of the parts (see `compute_part_poses`)."""
        return compute_part_poses(self.offsets, PARENTS, root, rotations)


def _example_part_poses() -> Iterable[tuple[Any, ...]]:
    read_only = np.zeros((17, 3))
    read_only.flags.writeable = False
    yield (read_only, PARENTS, np.zeros(3), np.zeros((17, 4)))
    yield (read_only, PARENTS, read_only[0], REST_POSE_ROTATIONS)


@kernel(examples=_example_part_poses)
def compute_part_poses(
    offsets: Array, parents: NDArray[np.int64], root: Array, rotations: Array
) -> tuple[Array, Array]:
    """Compute the forward kinematics.

    Args:
        offsets: Positions (n, 3) of the joints in the frames of the parent parts [m].
        parents: Indices (n,) of the parents, each smaller than that of its child; -1 for the root.
        root: Position (3,) of the root [m].
        rotations: Rotations (n, 4) relative to the parents, of the root relative to the frame of ``root``.

    Returns:
        Positions (n, 3) [m] and orientations (n, 4) of the parts in the frame of ``root``.
    """
    n = len(parents)
    positions, orientations = np.empty((n, 3)), np.empty((n, 4))
    for k in range(n):
        p = parents[k]
        a, b, c, d = rotations[k, 0], rotations[k, 1], rotations[k, 2], rotations[k, 3]
        if p < 0:
            positions[k], orientations[k] = root, rotations[k]
            continue
        w, x, y, z = orientations[p, 0], orientations[p, 1], orientations[p, 2], orientations[p, 3]
        orientation = multiply((w, x, y, z), (a, b, c, d))
        for i in range(4):
            orientations[k, i] = orientation[i]
        ox, oy, oz = offsets[k, 0], offsets[k, 1], offsets[k, 2]
        tx, ty, tz = 2.0 * (y * oz - z * oy), 2.0 * (z * ox - x * oz), 2.0 * (x * oy - y * ox)
        positions[k, 0] = positions[p, 0] + ox + w * tx + y * tz - z * ty
        positions[k, 1] = positions[p, 1] + oy + w * ty + z * tx - x * tz
        positions[k, 2] = positions[p, 2] + oz + w * tz + x * ty - y * tx
    return positions, orientations


def _example_compose_poses() -> Iterable[tuple[Any, ...]]:
    yield (np.zeros((17, 3)), np.zeros((17, 4)), np.zeros((17, 3)), np.zeros((17, 4)))


@kernel(examples=_example_compose_poses)
def compose_poses(
    positions: Array, orientations: Array, local_positions: Array, local_orientations: Array
) -> tuple[Array, Array]:
    """Return positions (n, 3) and orientations (n, 4) of ``T_world_frame @ T_frame_object`` for each row."""
    composed_positions, composed_orientations = np.empty(positions.shape), np.empty(orientations.shape)
    for k in range(len(positions)):
        q = (orientations[k, 0], orientations[k, 1], orientations[k, 2], orientations[k, 3])
        offset = rotate_vector(q, (local_positions[k, 0], local_positions[k, 1], local_positions[k, 2]))
        orientation = multiply(
            q, (local_orientations[k, 0], local_orientations[k, 1], local_orientations[k, 2], local_orientations[k, 3])
        )
        for i in range(3):
            composed_positions[k, i] = positions[k, i] + offset[i]
        for i in range(4):
            composed_orientations[k, i] = orientation[i]
    return composed_positions, composed_orientations


MAX_EXTENSION = 0.9995
"""Maximum extension of a limb, as a fraction of its length: a straight limb has no direction to bend."""
LEFT_ARM, RIGHT_ARM, LEFT_LEG, RIGHT_LEG = 5, 8, 11, 14
"""Index of the upper part of each limb; its lower part and its end follow."""


@kernel(inline="always")
def _read_vector(table: Array, k: int) -> Vec3:
    return (table[k, 0], table[k, 1], table[k, 2])


def _example_two_bone_ik() -> Iterable[tuple[Any, ...]]:
    read_only = np.zeros((17, 3))
    read_only.flags.writeable = False
    yield (read_only, np.zeros((17, 3)), np.zeros((17, 4)), 0, (0.0, 0.0, 0.0))


@kernel(examples=_example_two_bone_ik, error_model="numpy")
def solve_two_bone_ik(offsets: Array, positions: Array, orientations: Array, upper: int, target: Vec3) -> float:
    """Move the end of a limb to a target, or as near as possible; the hand or foot keeps its orientation.

    Knee or elbow keeps the direction in which it is bent; a straight limb bends as knees and elbows do.

    Args:
        offsets: Joint offsets (17, 3) of the skeleton [m].
        positions: Positions (17, 3) of the parts in the world [m]; updated.
        orientations: Orientations (17, 4) of the parts in the world; updated.
        upper: Index of the upper part of the limb.
        target: Position of wrist or ankle [m].

    Returns:
        Remaining distance from the target [m].
    """
    lower, end = upper + 1, upper + 2
    upper_length, lower_length = (
        math.sqrt(dot(_read_vector(offsets, lower), _read_vector(offsets, lower))),
        math.sqrt(dot(_read_vector(offsets, end), _read_vector(offsets, end))),
    )
    root, hinge, tip = _read_vector(positions, upper), _read_vector(positions, lower), _read_vector(positions, end)
    to_target = subtract(target, root)
    distance = math.sqrt(dot(to_target, to_target))
    if distance < 1e-9:
        return 0.0
    direction = (to_target[0] / distance, to_target[1] / distance, to_target[2] / distance)
    length = min(
        max(distance, abs(upper_length - lower_length) + 1e-3 * upper_length),
        MAX_EXTENSION * (upper_length + lower_length),
    )
    q1 = (orientations[upper, 0], orientations[upper, 1], orientations[upper, 2], orientations[upper, 3])
    q2 = (orientations[lower, 0], orientations[lower, 1], orientations[lower, 2], orientations[lower, 3])
    hinge_direction = rotate_vector(q1, (1.0 if upper >= LEFT_LEG else -1.0, 0.0, 0.0))
    upper_bone, chord = subtract(hinge, root), subtract(tip, root)
    span = math.sqrt(dot(chord, chord))
    if span < 1e-9:
        return abs(distance - length)
    chord = (chord[0] / span, chord[1] / span, chord[2] / span)
    # A nearly straight joint bends in the direction in which knees and elbows do.
    side = add_scaled(upper_bone, 0.02 * upper_length, hinge_direction)
    # The limb is rotated as a whole towards the target.
    side = rotate_vector(shortest_rotation(chord, direction), add_scaled(side, -dot(side, chord), chord))
    size = math.sqrt(dot(side, side))
    if size < 1e-9:
        return abs(distance - length)
    cosine = (upper_length * upper_length + length * length - lower_length * lower_length) / (
        2.0 * upper_length * length
    )
    sine = math.sqrt(max(1.0 - cosine * cosine, 0.0)) / size
    upper_direction = add_scaled((cosine * direction[0], cosine * direction[1], cosine * direction[2]), sine, side)
    new_hinge = add_scaled(root, upper_length, upper_direction)
    new_tip = add_scaled(root, length, direction)
    new_lower_bone = subtract(new_tip, new_hinge)
    scale = 1.0 / math.sqrt(dot(new_lower_bone, new_lower_bone))
    old_upper_bone, old_lower_bone = subtract(hinge, root), subtract(tip, hinge)
    q1 = multiply(
        shortest_rotation(
            (old_upper_bone[0] / upper_length, old_upper_bone[1] / upper_length, old_upper_bone[2] / upper_length),
            upper_direction,
        ),
        q1,
    )
    q2 = multiply(
        shortest_rotation(
            (old_lower_bone[0] / lower_length, old_lower_bone[1] / lower_length, old_lower_bone[2] / lower_length),
            (new_lower_bone[0] * scale, new_lower_bone[1] * scale, new_lower_bone[2] * scale),
        ),
        q2,
    )
    for i in range(4):
        orientations[upper, i], orientations[lower, i] = q1[i], q2[i]
    for i in range(3):
        positions[lower, i], positions[end, i] = new_hinge[i], new_tip[i]
    return abs(distance - length)
