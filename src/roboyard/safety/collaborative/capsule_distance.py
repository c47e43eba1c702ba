"""Distances and approach speeds between robot capsules and person capsules."""

from __future__ import annotations

import math
from collections.abc import Iterable
from typing import Any, NamedTuple

import numpy as np

from roboyard.compute import kernel
from roboyard.geometry.arrays import Array
from roboyard.kinematics import Chain, ChainArrays
from roboyard.kinematics.chain_kernels import compute_frame_twists, compute_frames, example_chain_arrays
from roboyard.safety.collaborative.capsules import (
    LinkCapsuleArrays,
    LinkCapsules,
    PersonCapsuleArrays,
    PersonCapsules,
)

_MIN_SQUARED_LENGTH = 1e-24
"""Squared length below which a segment counts as a point [m²]."""
_MIN_SQUARED_SINE = 1e-24
"""Squared sine of the angle between two segments below which they count as parallel."""


class CapsuleDistances(NamedTuple):
    """Distances between n robot capsules in k states and b person capsules; speeds along the shortest line between
    them.

    Attributes:
        distance: (k, n, b) distance between the surfaces; negative where they overlap [m].
        robot_approach_speed: (k, n, b) speed of the robot capsule towards the person capsule, at its faster end [m/s].
        person_approach_speed: (k, n, b) speed of the person capsule towards the robot capsule, likewise [m/s].
        max_speed: (k, n) speed of the robot capsule's faster end [m/s].
    """

    distance: Array
    robot_approach_speed: Array
    person_approach_speed: Array
    max_speed: Array


def compute_capsule_distances(
    chain: Chain, capsules: LinkCapsules, q: Array, velocity: Array, people: PersonCapsules
) -> CapsuleDistances:
    """Compute distances and approach speeds of all pairs.

    Args:
        chain: The robot's joints.
        capsules: Capsules on the robot's links.
        q: (k, dof) joint positions.
        velocity: (k, dof) joint velocities.
        people: Capsules of people.

    Raises:
        InputError: as `Chain.positions`.
    """
    positions, rates = np.atleast_2d(chain.as_positions(q)), np.atleast_2d(chain.as_positions(velocity))
    k, n, b = len(positions), len(capsules.radii), len(people.radii)
    distances = CapsuleDistances(np.empty((k, n, b)), np.empty((k, n, b)), np.empty((k, n, b)), np.empty((k, n)))
    compute_capsule_distances_kernel(chain.arrays, positions, rates, capsules.arrays, people.arrays, distances)
    return distances


@kernel(inline="always", examples=lambda: [(np.zeros((2, 3)), np.ones((2, 3)), np.zeros(2))])
def closest_segment_parameters(a: Array, b: Array, out: Array) -> None:
    """Compute the parameters of the closest points of two segments (2, 3), from 0 to 1 along each.

    C. Ericson, Real-Time Collision Detection, 2005, 5.1.9, with cross products where differences of products would be
    inaccurate for nearly parallel lines.
    """
    aa, bb, ab, ar, br = 0.0, 0.0, 0.0, 0.0, 0.0
    for i in range(3):
        u, v, r = a[1, i] - a[0, i], b[1, i] - b[0, i], a[0, i] - b[0, i]
        aa += u * u
        bb += v * v
        ab += u * v
        ar += u * r
        br += v * r
    s, t = 0.0, 0.0
    if aa <= _MIN_SQUARED_LENGTH and bb <= _MIN_SQUARED_LENGTH:
        pass
    elif aa <= _MIN_SQUARED_LENGTH:
        t = min(max(br / bb, 0.0), 1.0)
    elif bb <= _MIN_SQUARED_LENGTH:
        s = min(max(-ar / aa, 0.0), 1.0)
    else:
        squared_cross, projection = 0.0, 0.0
        for i in range(3):
            j, k = (i + 1) % 3, (i + 2) % 3
            uj, uk, vj, vk = a[1, j] - a[0, j], a[1, k] - a[0, k], b[1, j] - b[0, j], b[1, k] - b[0, k]
            cross = uj * vk - uk * vj
            squared_cross += cross * cross
            projection += cross * (vj * (a[0, k] - b[0, k]) - vk * (a[0, j] - b[0, j]))
        if squared_cross > _MIN_SQUARED_SINE * aa * bb:
            s = min(max(projection / squared_cross, 0.0), 1.0)
        t = (ab * s + br) / bb
        if t < 0.0:
            t = 0.0
            s = min(max(-ar / aa, 0.0), 1.0)
        elif t > 1.0:
            t = 1.0
            s = min(max((ab - ar) / aa, 0.0), 1.0)
    out[0], out[1] = s, t


@kernel(
    inline="always",
    examples=lambda: [(np.eye(4), np.zeros(6), np.zeros((2, 3)), np.zeros((2, 3)), np.zeros((2, 3)))],
)
def move_capsule(T: Array, twist: Array, ends: Array, segment: Array, velocities: Array) -> float:
    """Compute the ends of a capsule's axis in the base, and their velocities.

    Args:
        T: (4, 4) pose of the capsule's frame.
        twist: (6,) twist of the frame.
        ends: (2, 3) ends in the frame [m].
        segment: (2, 3) is filled: ends in the base [m].
        velocities: (2, 3) is filled: velocities of the ends [m/s].

    Returns:
        The speed of the faster end [m/s].
    """
    max_speed = 0.0
    for e in range(2):
        total = 0.0
        for x in range(3):
            segment[e, x] = T[x, 3] + T[x, 0] * ends[e, 0] + T[x, 1] * ends[e, 1] + T[x, 2] * ends[e, 2]
        rx, ry, rz = segment[e, 0] - T[0, 3], segment[e, 1] - T[1, 3], segment[e, 2] - T[2, 3]
        velocities[e, 0] = twist[0] + twist[4] * rz - twist[5] * ry
        velocities[e, 1] = twist[1] + twist[5] * rx - twist[3] * rz
        velocities[e, 2] = twist[2] + twist[3] * ry - twist[4] * rx
        for x in range(3):
            total += velocities[e, x] ** 2
        max_speed = max(max_speed, math.sqrt(total))
    return max_speed


def example_link_capsules() -> LinkCapsuleArrays:
    """Return one robot capsule as example argument of kernels."""
    return LinkCapsuleArrays(np.zeros(1, np.int64), np.zeros((1, 2, 3)), np.zeros(1))


def example_person_capsules() -> PersonCapsuleArrays:
    """Return one person capsule as example argument of kernels."""
    return PersonCapsuleArrays(np.zeros((1, 2, 3)), np.zeros(1), np.zeros((1, 2, 3)))


@kernel(
    inline="always",
    examples=lambda: [
        (np.zeros((2, 3)), np.zeros((2, 3)), 0.0, np.ones((2, 3)), np.zeros((2, 3)), np.zeros(2), np.zeros(3))
    ],
)
def axis_distance(
    segment: Array,
    segment_velocities: Array,
    speed: float,
    other_segment: Array,
    other_velocities: Array,
    parameters: Array,
    normal: Array,
) -> tuple[float, float, float]:
    """Return the distance between the axes of a robot capsule and a person capsule, and the approach speeds of both.

    The approach speed of a rigid part along a line is greatest at one of its ends. Where the axes cross there is no
    such line: then each part counts with its whole speed.

    Args:
        segment: (2, 3) ends of the axis of the robot capsule [m].
        segment_velocities: (2, 3) velocities of these ends [m/s].
        speed: Speed of the faster end [m/s].
        other_segment: (2, 3) ends of the axis of the person capsule [m].
        other_velocities: (2, 3) velocities of these ends [m/s].
        parameters: (2,) workspace.
        normal: (3,) workspace.

    Returns:
        Distance between the axes [m], approach speed of the robot capsule, and that of the person capsule [m/s].
    """
    closest_segment_parameters(segment, other_segment, parameters)
    length = 0.0
    for x in range(3):
        point = segment[0, x] + parameters[0] * (segment[1, x] - segment[0, x])
        other_point = other_segment[0, x] + parameters[1] * (other_segment[1, x] - other_segment[0, x])
        normal[x] = other_point - point
        length += normal[x] ** 2
    length = math.sqrt(length)
    robot_approach_speed, person_approach_speed = -math.inf, -math.inf
    for e in range(2):
        robot_projection, person_projection, squared_speed = 0.0, 0.0, 0.0
        for x in range(3):
            robot_projection += normal[x] * segment_velocities[e, x]
            person_projection -= normal[x] * other_velocities[e, x]
            squared_speed += other_velocities[e, x] ** 2
        if length > 1e-6:
            robot_approach_speed, person_approach_speed = (
                max(robot_approach_speed, robot_projection / length),
                max(person_approach_speed, person_projection / length),
            )
        else:
            robot_approach_speed, person_approach_speed = speed, max(person_approach_speed, math.sqrt(squared_speed))
    return length, robot_approach_speed, person_approach_speed


def _distance_examples() -> Iterable[tuple[Any, ...]]:
    one, several = np.zeros((1, 1)), np.zeros((1, 1, 1))
    distances = CapsuleDistances(several, several, several, one)
    yield example_chain_arrays(), one, one, example_link_capsules(), example_person_capsules(), distances


@kernel(examples=_distance_examples)
def compute_capsule_distances_kernel(
    chain: ChainArrays,
    q: Array,
    velocity: Array,
    capsules: LinkCapsuleArrays,
    people: PersonCapsuleArrays,
    out: CapsuleDistances,
) -> None:
    """Compute the distances and approach speeds of all pairs of capsules.

    Args:
        chain: The robot's joints.
        q: (k, dof) joint positions.
        velocity: (k, dof) joint velocities.
        capsules: Capsules on the robot's links.
        people: Capsules of people.
        out: Arrays of the result, which are filled.
    """
    m = chain.rotation_per_unit.shape[0]
    frames, twists = np.empty((m + 1, 4, 4)), np.empty((m + 1, 6))
    segment, segment_velocities, parameters, normal = np.empty((2, 3)), np.empty((2, 3)), np.empty(2), np.empty(3)
    frame_indices, ends, radii = capsules
    person_ends, person_radii, person_velocities = people
    distances, robot_approach_speed, person_approach_speed, max_speeds = out
    for k in range(q.shape[0]):
        compute_frames(chain, q[k], frames)
        compute_frame_twists(chain, frames, velocity[k], twists)
        for i in range(radii.shape[0]):
            frame = frame_indices[i]
            max_speed = move_capsule(frames[frame], twists[frame], ends[i], segment, segment_velocities)
            max_speeds[k, i] = max_speed
            for j in range(person_radii.shape[0]):
                distance, robot_approach_speed[k, i, j], person_approach_speed[k, i, j] = axis_distance(
                    segment, segment_velocities, max_speed, person_ends[j], person_velocities[j], parameters, normal
                )
                distances[k, i, j] = distance - radii[i] - person_radii[j]
