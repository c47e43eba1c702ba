"""Speed and separation monitoring: the protective separation distance, and the speed scaling that keeps it.

The protective separation distance of ISO/TS 15066:2016, 5.5.4 and ISO 10218-2:2025,

    Sp = Sh + Sr + Ss + C + Zd + Zr,

holds for each part of the robot and of the body, along the line between them: how far the person moves until the robot
has stopped, how far the robot moves until it brakes and while it brakes, the intrusion distance before a body is
detected, and the uncertainties of both positions. The formulas take arrays that broadcast against each other; the
compiled kernels at the end evaluate all pairs of capsules along a planned motion. They skip pairs whose bounding
spheres are so far apart that they cannot lower the speed scaling that was found already.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from roboyard.compute import kernel
from roboyard.config import Config, parameter
from roboyard.geometry.arrays import Array, Flags
from roboyard.kinematics import Chain, ChainArrays
from roboyard.kinematics.chain_kernels import compute_frame_twists, compute_frames, example_chain_arrays
from roboyard.safety.collaborative.capsule_distance import (
    CapsuleDistances,
    axis_distance,
    example_link_capsules,
    example_person_capsules,
    move_capsule,
)
from roboyard.safety.collaborative.capsules import (
    LinkCapsuleArrays,
    LinkCapsules,
    PersonCapsuleArrays,
    PersonCapsules,
)

STANDSTILL_SPEED = 0.02
"""Parts that move slower count as at rest [m/s]."""
MIN_MONITORED_SPEED = 0.5 * STANDSTILL_SPEED
"""Parts that move slower are not monitored [m/s]; half of `STANDSTILL_SPEED`, since joints that brake overshoot."""


class SeparationParameters(Config):
    """Parameters of the protective separation distance, besides the speeds."""

    reaction_time: float = parameter(
        0.1,
        unit="s",
        low=0.0,
        high=5.0,
        doc="Time from a person's arrival at a position until the robot begins to brake: sensor and controller.",
    )
    intrusion_distance: float = parameter(
        0.0,
        unit="m",
        low=0.0,
        high=2.0,
        doc="Distance C by which a hand may reach past the detected parts; 0 if all parts of the body are detected.",
    )
    person_uncertainty: float = parameter(
        0.03, unit="m", low=0.0, high=2.0, doc="Uncertainty Zd of the person's position."
    )
    robot_uncertainty: float = parameter(
        0.01, unit="m", low=0.0, high=1.0, doc="Uncertainty Zr of the robot's position."
    )
    person_speed: float = parameter(
        1.6,
        unit="m/s",
        low=0.0,
        high=10.0,
        doc="Assumed speed of people towards the robot (ISO 13855); 0: the measured speed.",
    )
    person_acceleration: float = parameter(
        8.0, unit="m/s²", low=0.0, high=100.0, doc="Largest acceleration of a person since the measurement."
    )

    @property
    def constant_distance(self) -> float:
        """Terms C + Zd + Zr, which do not depend on speeds [m]."""
        return self.intrusion_distance + self.person_uncertainty + self.robot_uncertainty

    def person_approach_speed(self, measured: ArrayLike, elapsed: ArrayLike = 0.0) -> Array:
        """Return the speed at which a person is assumed to approach.

        Args:
            measured: Measured speeds towards the robot, negative away from it [m/s].
            elapsed: Time since the measurement [s].
        """
        if self.person_speed > 0.0:
            return np.full_like(np.asarray(measured, dtype=np.float64), self.person_speed)
        speeds: Array = np.maximum(np.asarray(measured) + self.person_acceleration * np.asarray(elapsed), 0.0)
        return speeds


def stopping_time(velocity: ArrayLike, deceleration: ArrayLike) -> Array:
    """Return the time in which the slowest of the joints stops from velocities (…, n) with decelerations (n,) [s]."""
    times: Array = (np.abs(np.asarray(velocity)) / np.asarray(deceleration)).max(axis=-1)
    return times


def protective_distance(
    parameters: SeparationParameters,
    person_speed: ArrayLike,
    robot_speed: ArrayLike,
    stop_time: ArrayLike,
    speed_scaling: ArrayLike = 1.0,
) -> Array:
    """Return the protective separation distance Sp [m].

    Args:
        parameters: Parameters of the distance.
        person_speed: Speed of the person's part towards the robot's, 0 or more [m/s].
        robot_speed: Speed of the robot's part towards the person's at full speed; negative speeds count as 0 [m/s].
        stop_time: How long the robot takes to stop from full speed [s].
        speed_scaling: Fraction of the full speed; the time to stop is proportional to it.
    """
    s, vh, vr = np.asarray(speed_scaling), np.asarray(person_speed), np.maximum(np.asarray(robot_speed), 0.0)
    braking = s * np.asarray(stop_time)
    Sh = vh * (parameters.reaction_time + braking)
    Sr = s * vr * parameters.reaction_time
    Ss = 0.5 * s * vr * braking
    distance: Array = Sh + Sr + Ss + parameters.constant_distance
    return distance


def max_speed_scaling(
    parameters: SeparationParameters,
    distance: ArrayLike,
    person_speed: ArrayLike,
    robot_speed: ArrayLike,
    stop_time: ArrayLike,
) -> Array:
    """Return the largest speed scaling from 0 to 1 at which a distance [m] is at least `protective_distance`.

    The result is 0 if there is none; the other arguments are those of `protective_distance`.
    """
    vh, vr, T = np.asarray(person_speed), np.maximum(np.asarray(robot_speed), 0.0), np.asarray(stop_time)
    available_distance = np.asarray(distance) - vh * parameters.reaction_time - parameters.constant_distance
    a, b = 0.5 * vr * T, vh * T + vr * parameters.reaction_time
    usable_distance = np.maximum(available_distance, 0.0)
    denominator = b + np.sqrt(b * b + 4.0 * a * usable_distance)
    shape = np.broadcast(usable_distance, denominator).shape
    default_scaling = np.where(np.broadcast_to(a, shape) > 1e-12, 0.0, 1.0)
    scaling = np.divide(2.0 * usable_distance, denominator, out=default_scaling, where=denominator > 1e-12)
    result: Array = np.where(available_distance >= 0.0, np.minimum(scaling, 1.0), 0.0)
    return result


def speed_scaling_for_braking(scalings: Array, path_times: Array, stop_time: float, delay: float) -> tuple[float, int]:
    """Return the largest present speed scaling from which the robot can still brake to the scalings allowed ahead.

    Args:
        scalings: (k,) scalings allowed at path times ahead, the first of which is the present one.
        path_times: (k,) how far ahead on the trajectory they are, as time at full speed [s].
        stop_time: How long the robot takes to stop from full speed [s].
        delay: Time until it begins to brake [s].

    Returns:
        The scaling, and the index of the path time that limits it.
    """
    if stop_time <= 1e-6:
        limiting_index = int(np.argmin(scalings))
        return float(scalings[limiting_index]), limiting_index
    relative_delay = delay / stop_time
    allowed = np.maximum(
        scalings, np.sqrt(relative_delay**2 + scalings**2 + 2.0 * path_times / stop_time) - relative_delay
    )
    limiting_index = int(np.argmin(allowed))
    return float(min(allowed[limiting_index], 1.0)), limiting_index


def person_travel(parameters: SeparationParameters, measured: ArrayLike, elapsed: float) -> Array:
    """Return how far a person may have moved towards the robot since the measurement [m]."""
    speeds = np.asarray(measured, dtype=np.float64)
    distance: Array = np.maximum(parameters.person_approach_speed(speeds, elapsed), np.maximum(speeds, 0.0)) * elapsed
    return distance


class SeparationStatus(NamedTuple):
    """Separation of n robot capsules and b person capsules in one state.

    Attributes:
        protective_distance: (n, b) distance that should be kept [m].
        is_approaching: (n, b) whether the robot capsule approaches the person capsule faster than `STANDSTILL_SPEED`.
        min_distance: (b,) distance of each person capsule from the nearest robot capsule [m].
        nearest_pair: Indices of the robot capsule and the person capsule with the smallest distance.
        is_violated: Whether a robot capsule that moves is nearer than it should be.
    """

    protective_distance: Array
    is_approaching: NDArray[np.bool_]
    min_distance: Array
    nearest_pair: tuple[int, int]
    is_violated: bool


class PersonMotionModel(NamedTuple):
    """Assumptions about people's motion (speeds in m/s, distances in m).

    Attributes:
        reaction_time: Time from a person's arrival at a position until the robot begins to brake [s].
        constant_distance: Terms C + Zd + Zr.
        assumed_speed: Assumed approach speed of people; 0: the measured one.
        acceleration: Largest acceleration of people since the measurement [m/s²].
        observation_age: Age of the measurement [s].
        margin: Additional distance.
    """

    reaction_time: float
    constant_distance: float
    assumed_speed: float
    acceleration: float
    observation_age: float
    margin: float

    @classmethod
    def from_parameters(
        cls, parameters: SeparationParameters, observation_age: float = 0.0, margin: float = 0.0
    ) -> PersonMotionModel:
        """Return the assumptions of separation parameters."""
        return cls(
            parameters.reaction_time,
            parameters.constant_distance,
            parameters.person_speed,
            parameters.person_acceleration,
            observation_age,
            margin,
        )


_EXAMPLE_MODEL = PersonMotionModel(0.1, 0.0, 1.6, 8.0, 0.1, 0.0)
"""Example argument of kernels."""


def evaluate_separation(
    distances: CapsuleDistances, parameters: SeparationParameters, stop_time: float
) -> SeparationStatus:
    """Compare the distances of one state with `protective_distance` at the present speeds.

    Args:
        distances: Distances and speeds of k = 1 state.
        parameters: Parameters of the protective distance.
        stop_time: How long the robot takes to stop [s].
    """
    n, b = distances.distance.shape[1:]
    protective_distance, is_approaching, min_distance = np.empty((n, b)), np.empty((n, b), np.bool_), np.empty(b)
    i, j, is_violated = evaluate_separation_kernel(
        distances,
        PersonMotionModel.from_parameters(parameters),
        stop_time,
        protective_distance,
        is_approaching,
        min_distance,
    )
    return SeparationStatus(protective_distance, is_approaching, min_distance, (i, j), is_violated)


def _separation_examples() -> Iterable[tuple[Any, ...]]:
    several = np.zeros((1, 1, 1))
    distances = CapsuleDistances(several, several, several, np.zeros((1, 1)))
    yield distances, _EXAMPLE_MODEL, 0.2, np.zeros((1, 1)), np.zeros((1, 1), np.bool_), np.zeros(1)


@kernel(examples=_separation_examples)
def evaluate_separation_kernel(
    distances: CapsuleDistances,
    motion_model: PersonMotionModel,
    stop_time: float,
    protective_distance: Array,
    is_approaching: NDArray[np.bool_],
    min_distance: Array,
) -> tuple[int, int, bool]:
    """Compare the distances of the first state with the protective distances.

    Args:
        distances: Distances and speeds of n robot capsules and b person capsules.
        motion_model: Assumptions about people's motion.
        stop_time: How long the robot takes to stop [s].
        protective_distance: (n, b) is filled: distance that should be kept [m].
        is_approaching: (n, b) is filled: whether the robot capsule approaches faster than `STANDSTILL_SPEED`.
        min_distance: (b,) is filled: distance of each person capsule from the nearest robot capsule [m].

    Returns:
        Indices of the robot capsule and the person capsule with the smallest distance, and whether a robot capsule that
        moves is nearer than it should be.
    """
    reaction_time, person_speed = motion_model.reaction_time, motion_model.assumed_speed
    robot_index, person_index, nearest_distance, is_violated = 0, 0, np.inf, False
    min_distance[:] = np.inf
    for i in range(distances.distance.shape[1]):
        is_moving = distances.max_speed[0, i] > STANDSTILL_SPEED
        for j in range(distances.distance.shape[2]):
            distance, robot_approach_speed = distances.distance[0, i, j], distances.robot_approach_speed[0, i, j]
            person = person_speed if person_speed > 0.0 else max(distances.person_approach_speed[0, i, j], 0.0)
            robot = max(robot_approach_speed, 0.0)
            required_distance = (
                person * (reaction_time + stop_time)
                + robot * reaction_time
                + 0.5 * robot * stop_time
                + motion_model.constant_distance
            )
            protective_distance[i, j] = required_distance
            is_approaching[i, j] = robot_approach_speed > STANDSTILL_SPEED
            is_violated = is_violated or (is_moving and distance < required_distance)
            min_distance[j] = min(min_distance[j], distance)
            if distance < nearest_distance:
                robot_index, person_index, nearest_distance = i, j, distance
    return robot_index, person_index, is_violated


class PartSelection(NamedTuple):
    """Selection of the person capsules that are monitored, b of them.

    Attributes:
        is_counted: (b,) whether the capsule is monitored.
        allows_contact: (b,) whether contacts are allowed, at most at ``max_contact_speed``.
        swing_margin: (b,) distance by which the part may swing ahead of a walking person [m].
        max_contact_speed: (n, b) largest relative speed of a contact with each robot capsule [m/s].
    """

    is_counted: Flags
    allows_contact: Flags
    swing_margin: Array
    max_contact_speed: Array


class JointMotionArrays(NamedTuple):
    """A planned motion of a chain, sampled at k moments.

    Attributes:
        q: (k, dof) joint positions.
        velocity: (k, dof) joint velocities at full speed.
        stop_times: (k,) how long the robot takes to stop from these velocities [s].
    """

    q: Array
    velocity: Array
    stop_times: Array


class SpeedScalings(NamedTuple):
    """Largest speed scalings of k states.

    Attributes:
        scaling: (k,) scaling that the limiting pair allows, from 0 to 1.
        pair: (k, 2) indices of its robot capsule and its person capsule; 0, 0 where every pair allows full speed.
        distance: (k,) distance between them [m]; infinite where every pair allows full speed.
    """

    scaling: Array
    pair: NDArray[np.int64]
    distance: Array


def compute_speed_scalings(
    chain: Chain,
    capsules: LinkCapsules,
    q: Array,
    velocity: Array,
    stop_times: Array,
    people: PersonCapsules,
    motion_model: PersonMotionModel,
    selection: PartSelection,
) -> SpeedScalings:
    """Return the largest speed scaling at each of k states that keeps the protective distance of every pair.

    Pairs whose contact is allowed only keep their contact speed, if that allows more.

    Args:
        chain: The robot's joints.
        capsules: Capsules on the robot's links.
        q: (k, dof) joint positions.
        velocity: (k, dof) joint velocities at full speed.
        stop_times: (k,) how long the robot takes to stop from these velocities [s].
        people: Capsules of people.
        motion_model: Assumptions about people's motion.
        selection: Which of their capsules are monitored.
    """
    k = len(q)
    motion = JointMotionArrays(np.ascontiguousarray(q), np.ascontiguousarray(velocity), stop_times)
    scalings = SpeedScalings(np.ones(k), np.zeros((k, 2), np.int64), np.full(k, np.inf))
    compute_speed_scalings_kernel(
        chain.arrays, motion, capsules.arrays, people.arrays, motion_model, selection, scalings
    )
    return scalings


def find_critical_pair(
    chain: Chain,
    capsules: LinkCapsules,
    q: Array,
    velocity: Array,
    stop_time: float,
    people: PersonCapsules,
    motion_model: PersonMotionModel,
) -> tuple[int, int, float, float]:
    """Return the pair of capsules whose distance exceeds its protective distance least.

    Args:
        chain: The robot's joints.
        capsules: Capsules on the robot's links.
        q: (dof,) joint positions.
        velocity: (dof,) joint velocities.
        stop_time: How long the robot takes to stop [s].
        people: Capsules of people, at least one.
        motion_model: Assumptions about people's motion.

    Returns:
        Indices of the robot capsule and the person capsule, their distance and their protective distance [m].
    """
    i, j, distance, required_distance = find_critical_pair_kernel(
        chain.arrays, q, velocity, stop_time, capsules.arrays, people.arrays, motion_model
    )
    return int(i), int(j), distance, required_distance


@kernel(no_refcount=True, forceinline=True, examples=lambda: [(example_person_capsules(), np.zeros((1, 5)))])
def compute_bounding_spheres(people: PersonCapsuleArrays, out: Array) -> None:
    """Compute (b, 5) of each person capsule: center and radius of its bounding sphere [m], and the speed of its faster
    end [m/s]."""
    ends, velocities = people.ends, people.velocities
    for j in range(people.radii.shape[0]):
        squared_length, squared_speed, other_squared_speed = 0.0, 0.0, 0.0
        for x in range(3):
            out[j, x] = 0.5 * (ends[j, 0, x] + ends[j, 1, x])
            squared_length += (ends[j, 1, x] - ends[j, 0, x]) ** 2
            squared_speed += velocities[j, 0, x] ** 2
            other_squared_speed += velocities[j, 1, x] ** 2
        out[j, 3] = 0.5 * math.sqrt(squared_length) + people.radii[j]
        out[j, 4] = math.sqrt(max(squared_speed, other_squared_speed))


@kernel(inline="always", examples=lambda: [(np.zeros((2, 3)), 0.1, np.zeros((1, 5)), 0, 1.0)])
def is_farther_than(segment: Array, sphere_radius: float, spheres: Array, j: int, distance: float) -> bool:
    """Return whether a capsule with an axis (2, 3) and the bounding sphere ``j`` are at least ``distance`` apart [m].

    ``sphere_radius`` is that of the bounding sphere of the capsule [m].
    """
    squared_distance = 0.0
    for x in range(3):
        squared_distance += (0.5 * (segment[0, x] + segment[1, x]) - spheres[j, x]) ** 2
    min_center_distance = sphere_radius + spheres[j, 3] + distance
    return bool(min_center_distance <= 0.0 or squared_distance >= min_center_distance * min_center_distance)


@kernel(inline="always", examples=lambda: [(1.0, 1.0, 0.5)])
def assumed_approach_speed(measured: float, speed: float, speed_gain: float) -> float:
    """Return the approach speed of a person: the assumed one, or the measured one plus ``speed_gain``, but not below
    0."""
    return speed if speed > 0.0 else max(measured + speed_gain, 0.0)


@kernel(inline="always", examples=lambda: [(1.0, 1.6, 1.0, 0.5, 0.1)])
def speed_scaling_for_gap(
    available_distance: float, person_speed: float, robot_speed: float, stop_time: float, reaction_time: float
) -> float:
    """Return `max_speed_scaling` for a distance less all terms that do not depend on the speed scaling [m].

    ``robot_speed`` is 0 or more [m/s].
    """
    if available_distance < 0.0:
        return 0.0
    a, b = 0.5 * robot_speed * stop_time, person_speed * stop_time + robot_speed * reaction_time
    denominator = b + math.sqrt(b * b + 4.0 * a * available_distance)
    if denominator > 1e-12:
        return min(2.0 * available_distance / denominator, 1.0)
    return 0.0 if a > 1e-12 else 1.0


def _scaling_examples() -> Iterable[tuple[Any, ...]]:
    one, yes = np.zeros((1, 1)), np.ones(1, np.bool_)
    yield (
        example_chain_arrays(),
        JointMotionArrays(one, one, np.zeros(1)),
        example_link_capsules(),
        example_person_capsules(),
        _EXAMPLE_MODEL,
        PartSelection(yes, yes, np.zeros(1), one),
        SpeedScalings(np.ones(1), np.zeros((1, 2), np.int64), np.zeros(1)),
    )


@kernel(examples=_scaling_examples)
def compute_speed_scalings_kernel(
    chain: ChainArrays,
    motion: JointMotionArrays,
    capsules: LinkCapsuleArrays,
    people: PersonCapsuleArrays,
    model: PersonMotionModel,
    selection: PartSelection,
    out: SpeedScalings,
) -> None:
    """Compute the largest allowed speed scaling of each state, see `compute_speed_scalings`.

    Args:
        chain: The robot's joints.
        motion: The states.
        capsules: Capsules on the robot's links.
        people: Capsules of people.
        model: Assumptions about people's motion.
        selection: Which parts of people count, and how.
        out: Arrays of the result, which are filled; the scalings are 1 and the pairs 0 before.
    """
    q, velocity, stop_times = motion
    frame_indices, ends, radii = capsules
    person_ends, person_radii, person_velocities = people
    reaction_time, constant_distance, person_speed, acceleration, observation_age, margin = model
    is_counted, allows_contact, swing_margin, max_contact_speed = selection
    scalings, pair, distances = out
    n, b, m = radii.shape[0], person_radii.shape[0], chain.rotation_per_unit.shape[0]
    frames, twists = np.empty((m + 1, 4, 4)), np.empty((m + 1, 6))
    segment, segment_velocities, parameters, normal = np.empty((2, 3)), np.empty((2, 3)), np.empty(2), np.empty(3)
    speed_gain, spheres = acceleration * observation_age, np.empty((b, 5))
    compute_bounding_spheres(people, spheres)
    # the largest approach speed of each person capsule, and the distance that it may have covered and must keep
    max_approach_speeds, reserved_distances = np.empty(b), np.empty(b)
    for j in range(b):
        max_approach_speeds[j] = assumed_approach_speed(spheres[j, 4], person_speed, speed_gain)
        reserved_distances[j] = (
            swing_margin[j] + margin + constant_distance + max(max_approach_speeds[j], spheres[j, 4]) * observation_age
        )
    sphere_radii = np.empty(n)
    for i in range(n):
        squared_length = 0.0
        for x in range(3):
            squared_length += (ends[i, 1, x] - ends[i, 0, x]) ** 2
        sphere_radii[i] = 0.5 * math.sqrt(squared_length) + radii[i]
    for k in range(q.shape[0]):
        compute_frames(chain, q[k], frames)
        compute_frame_twists(chain, frames, velocity[k], twists)
        stop_time = stop_times[k]
        for i in range(n):
            frame = frame_indices[i]
            max_speed = move_capsule(frames[frame], twists[frame], ends[i], segment, segment_velocities)
            if max_speed <= MIN_MONITORED_SPEED:
                continue
            for j in range(b):
                min_scaling = scalings[k]
                if min_scaling <= 0.0:
                    break
                influence_distance = (
                    reserved_distances[j]
                    + max_approach_speeds[j] * (reaction_time + min_scaling * stop_time)
                    + min_scaling * max_speed * (reaction_time + 0.5 * min_scaling * stop_time)
                )
                if not is_counted[j] or is_farther_than(segment, sphere_radii[i], spheres, j, influence_distance):
                    continue
                distance, robot_approach_speed, person_approach_speed = axis_distance(
                    segment, segment_velocities, max_speed, person_ends[j], person_velocities[j], parameters, normal
                )
                distance = distance - radii[i] - person_radii[j]
                assumed_speed = assumed_approach_speed(person_approach_speed, person_speed, speed_gain)
                available_distance = (
                    distance
                    - max(assumed_speed, max(person_approach_speed, 0.0)) * observation_age
                    - swing_margin[j]
                    - margin
                )
                scaling = speed_scaling_for_gap(
                    available_distance - assumed_speed * reaction_time - constant_distance,
                    assumed_speed,
                    max(robot_approach_speed, 0.0),
                    stop_time,
                    reaction_time,
                )
                if allows_contact[j] and scaling < 1.0:
                    contact_speed = max(max_contact_speed[i, j] - max(person_approach_speed, 0.0), 0.0)
                    contact_scaling = (
                        min(contact_speed / robot_approach_speed, 1.0) if robot_approach_speed > 1e-9 else 1.0
                    )
                    scaling = max(scaling, contact_scaling)
                if scaling < min_scaling:
                    scalings[k], distances[k], pair[k, 0], pair[k, 1] = scaling, distance, i, j


def _critical_pair_examples() -> Iterable[tuple[Any, ...]]:
    one = np.zeros(1)
    yield (
        example_chain_arrays(),
        one,
        one,
        0.0,
        example_link_capsules(),
        example_person_capsules(),
        _EXAMPLE_MODEL,
    )


@kernel(examples=_critical_pair_examples)
def find_critical_pair_kernel(
    chain: ChainArrays,
    q: Array,
    velocity: Array,
    stop_time: float,
    capsules: LinkCapsuleArrays,
    people: PersonCapsuleArrays,
    model: PersonMotionModel,
) -> tuple[int, int, float, float]:
    """Find the pair of capsules whose distance exceeds its protective distance least, see `find_critical_pair`.

    Args:
        chain: The robot's joints.
        q: (dof,) joint positions.
        velocity: (dof,) joint velocities.
        stop_time: How long the robot takes to stop [s].
        capsules: Capsules on the robot's links.
        people: Capsules of people.
        model: Assumptions about people's motion.

    Returns:
        Indices of the robot capsule and the person capsule, their distance and their protective distance [m].
    """
    frame_indices, ends, radii = capsules
    person_ends, person_radii, person_velocities = people
    reaction_time, constant_distance, person_speed, acceleration, observation_age, margin = model
    m = chain.rotation_per_unit.shape[0]
    frames, twists = np.empty((m + 1, 4, 4)), np.empty((m + 1, 6))
    segment, segment_velocities, parameters, normal = np.empty((2, 3)), np.empty((2, 3)), np.empty(2), np.empty(3)
    speed_gain, spheres = acceleration * observation_age, np.empty((person_radii.shape[0], 5))
    compute_bounding_spheres(people, spheres)
    compute_frames(chain, q, frames)
    compute_frame_twists(chain, frames, velocity, twists)
    min_margin, robot_index, person_index, pair_distance, pair_protective_distance = np.inf, 0, 0, np.inf, 0.0
    for i in range(radii.shape[0]):
        frame = frame_indices[i]
        max_speed = move_capsule(frames[frame], twists[frame], ends[i], segment, segment_velocities)
        squared_length = 0.0
        for x in range(3):
            squared_length += (segment[1, x] - segment[0, x]) ** 2
        sphere_radius = 0.5 * math.sqrt(squared_length) + radii[i]
        for j in range(person_radii.shape[0]):
            max_person_distance = (
                assumed_approach_speed(spheres[j, 4], person_speed, speed_gain) * (reaction_time + stop_time)
                + constant_distance
                + margin
            )
            if is_farther_than(
                segment,
                sphere_radius,
                spheres,
                j,
                min_margin + max_person_distance + max_speed * (reaction_time + 0.5 * stop_time),
            ):
                continue
            distance, robot_approach_speed, person_approach_speed = axis_distance(
                segment, segment_velocities, max_speed, person_ends[j], person_velocities[j], parameters, normal
            )
            distance = distance - radii[i] - person_radii[j]
            protective_distance = (
                assumed_approach_speed(person_approach_speed, person_speed, speed_gain) * (reaction_time + stop_time)
                + max(robot_approach_speed, 0.0) * (reaction_time + 0.5 * stop_time)
                + constant_distance
                + margin
            )
            if distance - protective_distance < min_margin:
                min_margin, robot_index, person_index = distance - protective_distance, i, j
                pair_distance, pair_protective_distance = distance, protective_distance
    return robot_index, person_index, pair_distance, pair_protective_distance
