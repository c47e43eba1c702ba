"""What pace everywhere on a way allows, in one go: `nearness` and `separation` together, far pairs left out.

Pairs whose bounding balls are so far apart that they allow at least the pace that was found already, however both move,
are passed over, and whole people likewise; what is found is what `separation_pace` says of all pairs.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from roboyard.compute import kernel
from roboyard.geometry.arrays import Array, Flags
from roboyard.kinematics import Chain, ChainArrays
from roboyard.kinematics.chain_kernels import compute_frames, example_chain_arrays
from roboyard.safety.capsules import LinkCapsules
from roboyard.safety.nearness import BodyCapsules, fill_twists, meet, move_part
from roboyard.safety.separation import CREEP, SeparationRules


class Seen(NamedTuple):
    """How people are reckoned with; speeds in m/s, distances in m.

    Attributes:
        reaction: From when somebody is somewhere until the robot begins to brake [s].
        constant: C + Zd + Zr.
        speed: At which people are supposed to come; 0: as they were measured.
        acceleration: By which they may have become faster since [m/s²].
        since: They were seen [s].
        margin: Kept in addition.
    """

    reaction: float
    constant: float
    speed: float
    acceleration: float
    since: float
    margin: float

    @classmethod
    def of(cls, rules: SeparationRules, since: float = 0.0, margin: float = 0.0) -> Seen:
        """By the rules."""
        return cls(rules.reaction_time, rules.constant, rules.person_speed, rules.person_acceleration, since, margin)


class Heeded(NamedTuple):
    """Which parts of people count, b of them, and how.

    Attributes:
        counted: (b,) whether they do.
        gentle: (b,) whether they may be touched, at most as fast as ``touch`` says.
        swing: (b,) how far each may swing ahead of who walks [m].
        touch: (n, b) how fast it and each part of the robot may meet [m/s].
    """

    counted: Flags
    gentle: Flags
    swing: Array
    touch: Array


class Paces(NamedTuple):
    """Of k states.

    Attributes:
        least: (k,) the pace that the strictest pair allows, from 0 to 1.
        pair: (k, 2) its parts: the robot's and the person's; 0, 0 where every pair allows full pace.
        gap: (k,) between them [m]; infinite there.
    """

    least: Array
    pair: NDArray[np.int64]
    gap: Array


def paces_on(
    chain: Chain, capsules: LinkCapsules, q: Array, velocity: Array, stopping: Array, people: BodyCapsules, seen: Seen,
    heeded: Heeded,
) -> Paces:  # fmt: skip
    """The largest pace at each of k states that keeps the protective distance of every pair, or touches gently.

    Args:
        chain: The robot's joints.
        capsules: What rides on them.
        q: (k, dof) positions of its joints.
        velocity: (k, dof) their speeds at full pace.
        stopping: (k,) how long it takes to stop from them [s].
        people: Where they are.
        seen: How they are reckoned with.
        heeded: Which of them.
    """
    k = len(q)
    found = Paces(np.ones(k), np.zeros((k, 2), np.int64), np.full(k, np.inf))
    fill_paces(
        chain.arrays, np.ascontiguousarray(q), np.ascontiguousarray(velocity), stopping,
        capsules.frame, capsules.ends, capsules.radii, people.ends, people.radii, people.velocities,
        *seen, *heeded, *found,
    )  # fmt: skip
    return found


def least_spare(
    chain: Chain, capsules: LinkCapsules, q: Array, velocity: Array, stopping: float, people: BodyCapsules, seen: Seen
) -> tuple[int, int, float, float]:
    """The pair of parts that has least to spare: robot's, person's, their gap, and what it should be [m].

    Args:
        chain: The robot's joints.
        capsules: What rides on them.
        q: (dof,) where they are.
        velocity: (dof,) how fast.
        stopping: How long it takes to stop [s].
        people: Where they are, at least one part.
        seen: How they are reckoned with.
    """
    i, j, gap, protective = find_spare(
        chain.arrays, q, velocity, stopping, capsules.frame, capsules.ends, capsules.radii,
        people.ends, people.radii, people.velocities, *seen,
    )  # fmt: skip
    return int(i), int(j), gap, protective


@kernel(
    no_refcount=True,
    forceinline=True,
    examples=lambda: [(np.zeros((1, 2, 3)), np.zeros(1), np.zeros((1, 2, 3)), np.zeros((1, 5)))],
)
def fill_balls(ends: Array, radii: Array, velocities: Array, out: Array) -> None:
    """(b, 5) of each part: its middle, how far it reaches from there [m], and the speed of its faster end [m/s]."""
    for j in range(radii.shape[0]):
        length, fast, other = 0.0, 0.0, 0.0
        for x in range(3):
            out[j, x] = 0.5 * (ends[j, 0, x] + ends[j, 1, x])
            length += (ends[j, 1, x] - ends[j, 0, x]) ** 2
            fast += velocities[j, 0, x] ** 2
            other += velocities[j, 1, x] ** 2
        out[j, 3] = 0.5 * math.sqrt(length) + radii[j]
        out[j, 4] = math.sqrt(max(fast, other))


@kernel(inline="always", examples=lambda: [(np.zeros((2, 3)), 0.1, np.zeros((1, 5)), 0, 1.0)])
def beyond(line: Array, reach: float, balls: Array, j: int, far: float) -> bool:
    """Whether a capsule on a line (2, 3), whose ball reaches so far, and ball ``j`` are at least ``far`` apart."""
    square = 0.0
    for x in range(3):
        square += (0.5 * (line[0, x] + line[1, x]) - balls[j, x]) ** 2
    least = reach + balls[j, 3] + far
    return bool(least <= 0.0 or square >= least * least)


@kernel(inline="always", examples=lambda: [(1.0, 1.0, 0.5)])
def supposed(measured: float, speed: float, gain: float) -> float:
    """How fast somebody comes: as it is supposed, or as measured and ``gain`` faster, but not away."""
    return speed if speed > 0.0 else max(measured + gain, 0.0)


@kernel(inline="always", examples=lambda: [(1.0, 1.6, 1.0, 0.5, 0.1)])
def pace_for(spare: float, person: float, robot: float, stopping: float, reaction: float) -> float:
    """`separation_pace` of a gap less all that does not depend on the pace; ``robot`` is 0 or more."""
    if spare < 0.0:
        return 0.0
    a, b = 0.5 * robot * stopping, person * stopping + robot * reaction
    bottom = b + math.sqrt(b * b + 4.0 * a * spare)
    if bottom > 1e-12:
        return min(2.0 * spare / bottom, 1.0)
    return 0.0 if a > 1e-12 else 1.0


def _examples() -> Iterable[tuple[Any, ...]]:
    one, ends, yes = np.zeros((1, 1)), np.zeros((1, 2, 3)), np.ones(1, np.bool_)
    yield (
        example_chain_arrays(), one, one, np.zeros(1), np.zeros(1, np.int64), ends, np.zeros(1), ends, np.zeros(1),
        ends, 0.1, 0.0, 1.6, 8.0, 0.1, 0.0, yes, yes, np.zeros(1), one.copy(), np.ones(1), np.zeros((1, 2), np.int64),
        np.zeros(1),
    )  # fmt: skip


@kernel(examples=_examples)
def fill_paces(
    rows: ChainArrays, q: Array, rates: Array, stopping: Array, frame: NDArray[np.int64], ends: Array, radii: Array,
    body_ends: Array, body_radii: Array, body_velocities: Array,
    reaction: float, constant: float, person_speed: float, acceleration: float, since: float, margin: float,
    counted: Flags, gentle: Flags, swing: Array, touch: Array,
    least: Array, pair: NDArray[np.int64], gaps: Array,
) -> None:  # fmt: skip
    """See `paces_on`, whose arrays are filled."""
    m = rows.rotation_per_unit.shape[0]
    frames, twists = np.empty((m + 1, 4, 4)), np.empty((m + 1, 6))
    line, moving, shares, normal = np.empty((2, 3)), np.empty((2, 3)), np.empty(2), np.empty(3)
    gain, balls = acceleration * since, np.empty((body_radii.shape[0], 5))
    fill_balls(body_ends, body_radii, body_velocities, balls)
    # of each part how fast it may come, and how far it may have come and must stay in any case
    most, kept = np.empty(body_radii.shape[0]), np.empty(body_radii.shape[0])
    for j in range(body_radii.shape[0]):
        most[j] = supposed(balls[j, 4], person_speed, gain)
        kept[j] = swing[j] + margin + constant + max(most[j], balls[j, 4]) * since
    reach = np.empty(frame.shape[0])
    for i in range(frame.shape[0]):
        length = 0.0
        for x in range(3):
            length += (ends[i, 1, x] - ends[i, 0, x]) ** 2
        reach[i] = 0.5 * math.sqrt(length) + radii[i]
    for k in range(q.shape[0]):
        compute_frames(rows, q[k], frames)
        fill_twists(rows, frames, rates[k], twists)
        T = stopping[k]
        for i in range(frame.shape[0]):
            fast = move_part(frames[frame[i]], twists[frame[i]], ends[i], line, moving)
            if fast <= CREEP:
                continue
            for j in range(body_radii.shape[0]):
                s = least[k]
                if s <= 0.0:
                    break
                far = kept[j] + most[j] * (reaction + s * T) + s * fast * (reaction + 0.5 * s * T)
                if not counted[j] or beyond(line, reach[i], balls, j, far):
                    continue
                gap, toward, coming = meet(
                    line, moving, fast, radii[i], body_ends[j], body_velocities[j], body_radii[j], shares, normal
                )
                person = supposed(coming, person_speed, gain)
                left = gap - max(person, max(coming, 0.0)) * since - swing[j] - margin
                pace = pace_for(left - person * reaction - constant, person, max(toward, 0.0), T, reaction)
                if gentle[j] and pace < 1.0:
                    room = max(touch[i, j] - max(coming, 0.0), 0.0)
                    pace = max(pace, min(room / toward, 1.0) if toward > 1e-9 else 1.0)
                if pace < s:
                    least[k], gaps[k], pair[k, 0], pair[k, 1] = pace, gap, i, j


def _spare_examples() -> Iterable[tuple[Any, ...]]:
    one, ends = np.zeros(1), np.zeros((1, 2, 3))
    yield (
        example_chain_arrays(), one, one, 0.0, np.zeros(1, np.int64), ends, one, ends, one, ends,
        0.1, 0.0, 1.6, 8.0, 0.0, 0.0,
    )  # fmt: skip


@kernel(examples=_spare_examples)
def find_spare(
    rows: ChainArrays, q: Array, rates: Array, stopping: float, frame: NDArray[np.int64], ends: Array, radii: Array,
    body_ends: Array, body_radii: Array, body_velocities: Array,
    reaction: float, constant: float, person_speed: float, acceleration: float, since: float, margin: float,
) -> tuple[int, int, float, float]:  # fmt: skip
    """See `least_spare`."""
    m = rows.rotation_per_unit.shape[0]
    frames, twists = np.empty((m + 1, 4, 4)), np.empty((m + 1, 6))
    line, moving, shares, normal = np.empty((2, 3)), np.empty((2, 3)), np.empty(2), np.empty(3)
    gain, balls = acceleration * since, np.empty((body_radii.shape[0], 5))
    fill_balls(body_ends, body_radii, body_velocities, balls)
    compute_frames(rows, q, frames)
    fill_twists(rows, frames, rates, twists)
    best, one, other, between, protective = np.inf, 0, 0, np.inf, 0.0
    for i in range(frame.shape[0]):
        fast = move_part(frames[frame[i]], twists[frame[i]], ends[i], line, moving)
        length = 0.0
        for x in range(3):
            length += (line[1, x] - line[0, x]) ** 2
        reach = 0.5 * math.sqrt(length) + radii[i]
        for j in range(body_radii.shape[0]):
            most = supposed(balls[j, 4], person_speed, gain) * (reaction + stopping) + constant + margin
            if beyond(line, reach, balls, j, best + most + fast * (reaction + 0.5 * stopping)):
                continue
            gap, toward, coming = meet(
                line, moving, fast, radii[i], body_ends[j], body_velocities[j], body_radii[j], shares, normal
            )
            person, robot = supposed(coming, person_speed, gain), max(toward, 0.0)
            wanted = person * (reaction + stopping) + robot * (reaction + 0.5 * stopping) + constant + margin
            if gap - wanted < best:
                best, one, other, between, protective = gap - wanted, i, j, gap, wanted
    return one, other, between, protective
