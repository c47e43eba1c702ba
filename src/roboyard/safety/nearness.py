"""How near a robot's capsules are to people's, and how fast each comes towards the other."""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from roboyard.compute import kernel
from roboyard.geometry.arrays import Array
from roboyard.kinematics import Chain, ChainArrays
from roboyard.kinematics.chain_kernels import compute_frames, example_chain_arrays
from roboyard.people.skeleton import segment_name
from roboyard.safety.capsules import LinkCapsules
from roboyard.safety.separation import STANDSTILL, SeparationRules

_FLAT = 1e-24
"""Squared length below which a line is a point [m²]: points of it are as near as each other, to 1e-12 m."""
_PARALLEL = 1e-24
"""Squared sine of an angle between lines below which points of one are as near as each other, to 1e-12 of a length."""
SWINGING = ("shank", "foot")
"""Parts of a leg that swing ahead of who walks."""


@dataclass(frozen=True, eq=False)
class BodyCapsules:
    """Capsules of people, b of them, in the base of the robot's chain.

    Attributes:
        people: (b) whose each is.
        parts: (b) of the body.
        ends: (b, 2, 3) ends of its middle line [m].
        radii: (b,) [m].
        velocities: (b, 2, 3) of its ends [m/s].
    """

    people: tuple[str, ...]
    parts: tuple[str, ...]
    ends: Array
    radii: Array
    velocities: Array

    @classmethod
    def joined(cls, several: Iterable[BodyCapsules]) -> BodyCapsules:
        """Of several people as one."""
        every = list(several)
        if len(every) == 1:
            return every[0]
        return cls(
            tuple(name for one in every for name in one.people),
            tuple(name for one in every for name in one.parts),
            np.concatenate([np.zeros((0, 2, 3)), *(one.ends for one in every)]),
            np.concatenate([np.zeros(0), *(one.radii for one in every)]),
            np.concatenate([np.zeros((0, 2, 3)), *(one.velocities for one in every)]),
        )

    def striding(self) -> BodyCapsules:
        """With shanks and feet that go as their pelvis does.

        A foot that swings is three times as fast as who walks, but for a stride only: as a speed that goes on it
        would tell of somebody who runs.
        """
        swinging, hips = _legs(self.people, self.parts)
        velocities = self.velocities.copy()
        velocities[swinging] = self.velocities[hips].mean(axis=1)[:, None]
        return BodyCapsules(self.people, self.parts, self.ends, self.radii, velocities)


@lru_cache(maxsize=64)
def _legs(people: tuple[str, ...], parts: tuple[str, ...]) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Which parts swing, and the pelvis of each; those whose pelvis is not there are left out."""
    hips = {who: k for k, who in enumerate(people) if parts[k] == "pelvis"}
    found = [
        (k, hips[people[k]]) for k, part in enumerate(parts) if segment_name(part) in SWINGING and people[k] in hips
    ]
    rows = np.array(found, dtype=np.int64).reshape(-1, 2)
    return rows[:, 0], rows[:, 1]


class Nearness(NamedTuple):
    """Of n capsules of a robot in k states against b of people; speeds along the shortest line between them.

    Attributes:
        gap: (k, n, b) distance between the surfaces; negative where they overlap [m].
        toward: (k, n, b) how fast the robot's part moves towards the person's, at its faster end [m/s].
        coming: (k, n, b) how fast the person's part moves towards the robot's, likewise [m/s].
        speed: (k, n) how fast the robot's parts are at their faster ends [m/s].
    """

    gap: Array
    toward: Array
    coming: Array
    speed: Array


def nearness(chain: Chain, capsules: LinkCapsules, q: Array, velocity: Array, people: BodyCapsules) -> Nearness:
    """How near and how fast.

    Args:
        chain: The robot's joints.
        capsules: What rides on them.
        q: (k, dof) positions of its joints.
        velocity: (k, dof) their speeds.
        people: Where they are.

    Raises:
        InputError: as `Chain.positions`.
    """
    at, rates = np.atleast_2d(chain.as_positions(q)), np.atleast_2d(chain.as_positions(velocity))
    k, n, b = len(at), len(capsules.radii), len(people.radii)
    found = Nearness(np.empty((k, n, b)), np.empty((k, n, b)), np.empty((k, n, b)), np.empty((k, n)))
    robot = (capsules.frame, capsules.ends, capsules.radii)
    fill_nearness(chain.arrays, at, rates, *robot, people.ends, people.radii, people.velocities, *found)
    return found


@kernel(inline="always", examples=lambda: [(np.zeros((2, 3)), np.ones((2, 3)), np.zeros(2))])
def nearest_shares(a: Array, b: Array, out: Array) -> None:
    """Where on two segments (2, 3) the points are that are nearest to each other: shares of their lengths.

    C. Ericson, Real-Time Collision Detection, 2005, 5.1.9, with cross products where differences of products would tell
    nothing of lines that are all but parallel.
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
    if aa <= _FLAT and bb <= _FLAT:
        pass
    elif aa <= _FLAT:
        t = min(max(br / bb, 0.0), 1.0)
    elif bb <= _FLAT:
        s = min(max(-ar / aa, 0.0), 1.0)
    else:
        across, ahead = 0.0, 0.0
        for i in range(3):
            j, k = (i + 1) % 3, (i + 2) % 3
            uj, uk, vj, vk = a[1, j] - a[0, j], a[1, k] - a[0, k], b[1, j] - b[0, j], b[1, k] - b[0, k]
            turn = uj * vk - uk * vj
            across += turn * turn
            ahead += turn * (vj * (a[0, k] - b[0, k]) - vk * (a[0, j] - b[0, j]))
        if across > _PARALLEL * aa * bb:
            s = min(max(ahead / across, 0.0), 1.0)
        t = (ab * s + br) / bb
        if t < 0.0:
            t = 0.0
            s = min(max(-ar / aa, 0.0), 1.0)
        elif t > 1.0:
            t = 1.0
            s = min(max((ab - ar) / aa, 0.0), 1.0)
    out[0], out[1] = s, t


@kernel(
    no_refcount=True,
    forceinline=True,
    examples=lambda: [(example_chain_arrays(), np.zeros((2, 4, 4)), np.zeros(1), np.zeros((2, 6)))],
)
def fill_twists(rows: ChainArrays, frames: Array, rates: Array, out: Array) -> None:
    """How the frames of a chain move, in the axes of its base.

    Args:
        rows: The chain.
        frames: (m + 1, 4, 4) as `place_frames` leaves them.
        rates: (n,) speeds of its free joints.
        out: (m + 1, 6) is filled: linear velocity of the frame's origin, then angular.
    """
    out[0] = 0.0
    for k in range(rows.rotation_per_unit.shape[0]):
        T, before = frames[k + 1], frames[k]
        rate = rows.multiplier[k] * rates[rows.driving_joint[k]]
        x, y, z = T[0, 3] - before[0, 3], T[1, 3] - before[1, 3], T[2, 3] - before[2, 3]
        wx, wy, wz = out[k, 3], out[k, 4], out[k, 5]
        slide = rows.translation_per_unit[k] * rate
        out[k + 1, 0] = out[k, 0] + wy * z - wz * y + slide * T[0, 2]
        out[k + 1, 1] = out[k, 1] + wz * x - wx * z + slide * T[1, 2]
        out[k + 1, 2] = out[k, 2] + wx * y - wy * x + slide * T[2, 2]
        for i in range(3):
            out[k + 1, 3 + i] = out[k, 3 + i] + rows.rotation_per_unit[k] * rate * T[i, 2]


@kernel(
    inline="always",
    examples=lambda: [(np.eye(4), np.zeros(6), np.zeros((2, 3)), np.zeros((2, 3)), np.zeros((2, 3)))],
)
def move_part(T: Array, twist: Array, ends: Array, line: Array, moving: Array) -> float:
    """Where the ends of a capsule are in the base and how they move, by its frame's pose and twist.

    Args:
        T: (4, 4) pose of the frame.
        twist: (6,) how it moves.
        ends: (2, 3) in the frame [m].
        line: (2, 3) is filled: in the base.
        moving: (2, 3) is filled: velocities [m/s].

    Returns:
        The speed of the faster end [m/s].
    """
    fastest = 0.0
    for e in range(2):
        total = 0.0
        for x in range(3):
            line[e, x] = T[x, 3] + T[x, 0] * ends[e, 0] + T[x, 1] * ends[e, 1] + T[x, 2] * ends[e, 2]
        rx, ry, rz = line[e, 0] - T[0, 3], line[e, 1] - T[1, 3], line[e, 2] - T[2, 3]
        moving[e, 0] = twist[0] + twist[4] * rz - twist[5] * ry
        moving[e, 1] = twist[1] + twist[5] * rx - twist[3] * rz
        moving[e, 2] = twist[2] + twist[3] * ry - twist[4] * rx
        for x in range(3):
            total += moving[e, x] ** 2
        fastest = max(fastest, math.sqrt(total))
    return fastest


@kernel(
    inline="always",
    examples=lambda: [
        (
            np.zeros((2, 3)), np.zeros((2, 3)), 0.0, 0.1, np.ones((2, 3)), np.zeros((2, 3)), 0.1, np.zeros(2),
            np.zeros(3),
        )
    ],
)  # fmt: skip
def meet(
    line: Array, moving: Array, speed: float, radius: float, other: Array, velocities: Array, other_radius: float,
    shares: Array, normal: Array,
) -> tuple[float, float, float]:  # fmt: skip
    """How near two capsules are, and how fast each moves towards the other: see `Nearness`.

    The directed speed of a rigid part along a line is greatest at one of its ends.  Where the middle lines cross there
    is no such line: then each part counts with its whole speed.

    Args:
        line: (2, 3) ends of the robot's [m].
        moving: (2, 3) how they move [m/s].
        speed: Of the faster one [m/s].
        radius: Of the robot's [m].
        other: (2, 3) ends of the person's [m].
        velocities: (2, 3) how those move [m/s].
        other_radius: Of the person's [m].
        shares: (2,) to work with.
        normal: (3,) to work with.
    """
    nearest_shares(line, other, shares)
    length = 0.0
    for x in range(3):
        here = line[0, x] + shares[0] * (line[1, x] - line[0, x])
        there = other[0, x] + shares[1] * (other[1, x] - other[0, x])
        normal[x] = there - here
        length += normal[x] ** 2
    length = math.sqrt(length)
    toward, coming = -math.inf, -math.inf
    for e in range(2):
        one, two, fast = 0.0, 0.0, 0.0
        for x in range(3):
            one += normal[x] * moving[e, x]
            two -= normal[x] * velocities[e, x]
            fast += velocities[e, x] ** 2
        if length > 1e-6:
            toward, coming = max(toward, one / length), max(coming, two / length)
        else:
            toward, coming = speed, max(coming, math.sqrt(fast))
    return length - radius - other_radius, toward, coming


class Closeness(NamedTuple):
    """What a moment comes to, of n parts of a robot and b of people.

    Attributes:
        protective: (n, b) distance that should be kept [m].
        nearing: (n, b) whether the robot's part moves towards the person's, faster than what counts as standing.
        least: (b,) gap between each part of people and the nearest of the robot [m].
        nearest: Parts with the least gap: the robot's, and the person's.
        intruding: Whether a part of the robot that moves is nearer than it should be.
    """

    protective: Array
    nearing: NDArray[np.bool_]
    least: Array
    nearest: tuple[int, int]
    intruding: bool


def closeness(near: Nearness, rules: SeparationRules, stopping: float) -> Closeness:
    """Of one state: `protective_distance` at the present speeds, and who is nearer.

    Args:
        near: Of k = 1 state.
        rules: Of the distance.
        stopping: How long the robot takes to stop [s].
    """
    n, b = near.gap.shape[1:]
    protective, nearing, least = np.empty((n, b)), np.empty((n, b), np.bool_), np.empty(b)
    i, j, intruding = fill_closeness(
        near.gap[0], near.toward[0], near.coming[0], near.speed[0], rules.reaction_time, rules.constant,
        rules.person_speed, stopping, protective, nearing, least,
    )  # fmt: skip
    return Closeness(protective, nearing, least, (i, j), intruding)


def _close_examples() -> Iterable[tuple[Any, ...]]:
    one = np.zeros((1, 1))
    yield one, one, one, np.zeros(1), 0.1, 0.04, 1.6, 0.2, one.copy(), np.zeros((1, 1), np.bool_), np.zeros(1)


@kernel(examples=_close_examples)
def fill_closeness(
    gap: Array, toward: Array, coming: Array, speed: Array, reaction: float, constant: float, person_speed: float,
    stopping: float, protective: Array, nearing: NDArray[np.bool_], least: Array,
) -> tuple[int, int, bool]:  # fmt: skip
    """See `closeness`."""
    one, other, nearest, intruding = 0, 0, np.inf, False
    least[:] = np.inf
    for i in range(gap.shape[0]):
        for j in range(gap.shape[1]):
            person = person_speed if person_speed > 0.0 else max(coming[i, j], 0.0)
            robot = max(toward[i, j], 0.0)
            kept = person * (reaction + stopping) + robot * reaction + 0.5 * robot * stopping + constant
            protective[i, j] = kept
            nearing[i, j] = toward[i, j] > STANDSTILL
            intruding = intruding or (speed[i] > STANDSTILL and gap[i, j] < kept)
            least[j] = min(least[j], gap[i, j])
            if gap[i, j] < nearest:
                one, other, nearest = i, j, gap[i, j]
    return one, other, intruding


def _examples() -> Iterable[tuple[Any, ...]]:
    one, several = np.zeros((1, 1)), np.zeros((1, 1, 1))
    ends = np.zeros((1, 2, 3))
    yield (
        example_chain_arrays(), one, one, np.zeros(1, np.int64), ends, np.zeros(1), ends, np.zeros(1), ends,
        several, several.copy(), several.copy(), one.copy(),
    )  # fmt: skip


@kernel(examples=_examples)
def fill_nearness(
    rows: ChainArrays,
    q: Array,
    rates: Array,
    frame: NDArray[np.int64],
    ends: Array,
    radii: Array,
    body_ends: Array,
    body_radii: Array,
    body_velocities: Array,
    gap: Array,
    toward: Array,
    coming: Array,
    speed: Array,
) -> None:
    """See `Nearness` and `nearness`, whose arrays are filled."""
    m = rows.rotation_per_unit.shape[0]
    frames, twists = np.empty((m + 1, 4, 4)), np.empty((m + 1, 6))
    line, moving, shares, normal = np.empty((2, 3)), np.empty((2, 3)), np.empty(2), np.empty(3)
    for k in range(q.shape[0]):
        compute_frames(rows, q[k], frames)
        fill_twists(rows, frames, rates[k], twists)
        for i in range(frame.shape[0]):
            speed[k, i] = move_part(frames[frame[i]], twists[frame[i]], ends[i], line, moving)
            for j in range(body_radii.shape[0]):
                gap[k, i, j], toward[k, i, j], coming[k, i, j] = meet(
                    line, moving, speed[k, i], radii[i], body_ends[j], body_velocities[j], body_radii[j], shares, normal
                )
