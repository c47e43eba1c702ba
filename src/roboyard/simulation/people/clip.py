"""A clip: how a body moves for a while, for people of any size."""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from roboyard.compute import kernel
from roboyard.geometry.arrays import Array
from roboyard.geometry.quaternion_kernels import multiply
from roboyard.simulation.people import anthropometry as a
from roboyard.simulation.people.anthropometry import Physique
from roboyard.simulation.people.skeleton import INDEX, PARENTS, PARTS, Skeleton, place_parts

Hand = Literal["left", "right"]

UNIT = Skeleton.of(Physique(1.0, a.BODY_MASS_INDEX))
"""A skeleton of stature 1: lengths of clips are shares of the stature."""
FEET = (INDEX["left_foot"], INDEX["right_foot"])
HEEL, BALL, TOE = (-0.030, 0.0, -a.ANKLE), (0.085, 0.0, -a.ANKLE), (0.110, 0.0, -a.ANKLE)
"""Points of the sole in the foot's frame."""
LIFTED, HEEL_DOWN, BALL_DOWN = -1, 0, 1
"""What of a foot rests on the ground."""
_NEAR = 0.03
"""Below this height a point of the sole may rest on the ground [statures]."""
_SLOW, _SLOWEST, _FASTEST = 0.2, 0.06, 0.45
"""Slower than this share of the feet's quickest moves, within these bounds, it rests [statures/s]."""


@dataclass(frozen=True, slots=True, eq=False)
class Clip:
    """A motion, sampled evenly.

    Lengths are shares of the stature.  The clip's frame lies on the ground below the person, x ahead; where the motion
    travels or turns, it moves on evenly with it.

    Attributes:
        name: Of it.
        root: (n, 3) place of the pelvis' joint.
        turns: (n, 17, 4) rotation of each part against what it hangs on, of the pelvis against the clip's frame.
        rests: (n, 2) what of the left and the right foot rests on the ground: `LIFTED`, `HEEL_DOWN`, `BALL_DOWN`.
        period: Of one round [s].
        loop: Whether it may go on with its beginning after its end.
        travel: How far one round goes, straight ahead.
        turning: How far one round turns, counterclockwise [rad].
        hand: Which hand it brings to a place, if it is one that reaches.
        reach: (from, to) shares of the period between which the hand is at that place.
        summary: One line on it.
    """

    name: str
    root: Array
    turns: Array
    rests: NDArray[np.int8]
    period: float
    loop: bool
    travel: float = 0.0
    turning: float = 0.0
    hand: Hand | None = None
    reach: tuple[float, float] = (0.5, 0.5)
    summary: str = ""

    @property
    def frames(self) -> int:
        """Number of samples; of a loop the first follows the last one."""
        return len(self.root)

    def at(self, phase: float) -> tuple[Array, Array]:
        """(3,) root and (17, 4) rotations at a share of the period; beyond its ends a loop goes on, others stay."""
        return sample(self.root, self.turns, phase, self.loop)

    def rests_at(self, phase: float) -> tuple[int, int]:
        """What of the two feet rests on the ground."""
        if self.loop:
            n = int((phase % 1.0) * self.frames) % self.frames
        else:
            n = int(min(max(phase, 0.0), 1.0) * (self.frames - 1))
        left, right = self.rests[n].tolist()
        return left, right


def _example() -> Iterable[tuple[Any, ...]]:
    yield (np.zeros((2, 3)), np.zeros((2, 17, 4)), 0.0, True)


@kernel(examples=_example)
def sample(root: Array, turns: Array, phase: float, loop: bool) -> tuple[Array, Array]:
    """(3,) root and (17, 4) rotations of a clip at a share of its period, between two of its samples."""
    n = root.shape[0]
    if loop:
        x = (phase - math.floor(phase)) * n
        first = min(int(x), n - 1)
        second = (first + 1) % n
    else:
        x = min(max(phase, 0.0), 1.0) * (n - 1)
        first = min(int(x), n - 1)
        second = min(first + 1, n - 1)
    return blend(root[first], turns[first], root[second], turns[second], x - first)


def _example_blend() -> Iterable[tuple[Any, ...]]:
    yield (np.zeros(3), np.zeros((17, 4)), np.zeros(3), np.zeros((17, 4)), 0.5)


@kernel(examples=_example_blend)
def blend(root: Array, turns: Array, other: Array, others: Array, share: float) -> tuple[Array, Array]:
    """A pose between two: (3,) root and (17, 4) rotations, each turned by its share of the shorter way."""
    out, rotations = np.empty(3), np.empty(turns.shape)
    for i in range(3):
        out[i] = (1.0 - share) * root[i] + share * other[i]
    for k in range(turns.shape[0]):
        sign = 0.0
        for i in range(4):
            sign += turns[k, i] * others[k, i]
        sign = 1.0 if sign >= 0.0 else -1.0
        length = 0.0
        for i in range(4):
            rotations[k, i] = (1.0 - share) * turns[k, i] + share * sign * others[k, i]
            length += rotations[k, i] * rotations[k, i]
        length = math.sqrt(length)
        for i in range(4):
            rotations[k, i] /= length
    return out, rotations


def _example_placed() -> Iterable[tuple[Any, ...]]:
    yield (np.zeros(3), np.zeros((17, 4)), 0.0, 0.0, 0.0, 1.75)


@kernel(examples=_example_placed)
def placed(root: Array, turns: Array, x: float, y: float, yaw: float, height: float) -> tuple[Array, Array]:
    """A pose of stature 1 as it is in the world, of somebody of that height at (x, y, yaw) [m, rad]."""
    c, s = math.cos(yaw), math.sin(yaw)
    there, rotations = np.empty(3), turns.copy()
    there[0] = x + height * (c * root[0] - s * root[1])
    there[1] = y + height * (s * root[0] + c * root[1])
    there[2] = height * root[2]
    upright = (math.cos(0.5 * yaw), 0.0, 0.0, math.sin(0.5 * yaw))
    rotations[0] = multiply(upright, (turns[0, 0], turns[0, 1], turns[0, 2], turns[0, 3]))
    return there, rotations


def soles(root: Array, turns: Array) -> Array:
    """(n, 2, 2, 3) heel and ball of both feet in every sample, for stature 1."""
    from roboyard.geometry import quaternions

    points = np.empty((len(root), 2, 2, 3))
    for n in range(len(root)):
        places, world = place_parts(UNIT.offsets, PARENTS, root[n], turns[n])
        for f, foot in enumerate(FEET):
            points[n, f] = places[foot] + quaternions.rotate(world[foot], np.array([HEEL, BALL]))
    return points


def grounded(root: Array, turns: Array, *, every: bool) -> Array:
    """The roots, raised or lowered so that the soles stand on the ground.

    Args:
        root: (n, 3).
        turns: (n, 17, 4).
        every: In every sample the lower foot stands; otherwise the lowest of all samples does, and others may jump.
    """
    lowest = soles(root, turns)[..., 2].min(axis=(1, 2))
    raised = root.copy()
    raised[:, 2] -= lowest if every else lowest.min()
    return raised


def resting(root: Array, turns: Array, period: float, loop: bool, travel: float = 0.0) -> NDArray[np.int8]:
    """(n, 2) what of each foot rests on the ground: the slower of those points of the sole that are near it.

    Args:
        root: (n, 3) in the clip's frame.
        turns: (n, 17, 4).
        period: Of the clip [s].
        loop: Whether the first sample follows the last.
        travel: How far the clip's frame moves on in a period.
    """
    n = len(root)
    points = soles(root, turns)
    step = period / (n if loop else max(n - 1, 1))
    points[..., 0] += (travel * np.arange(n) / (n if loop else max(n - 1, 1)))[:, None, None]
    if loop:
        ahead, behind = np.roll(points, -1, axis=0), np.roll(points, 1, axis=0)
        ahead[-1, ..., 0] += travel
        behind[0, ..., 0] -= travel
        speed = np.linalg.norm(ahead - behind, axis=-1) / (2.0 * step)
    else:
        speed = np.linalg.norm(np.gradient(points, axis=0), axis=-1) / step if n > 1 else np.zeros(points.shape[:-1])
    slow = min(max(_SLOW * float(np.quantile(speed, 0.95)), _SLOWEST), _FASTEST)
    near = (points[..., 2] < _NEAR) & (speed < slow)
    rests = np.full((n, 2), LIFTED, np.int8)
    slower = speed.argmin(axis=-1)
    for f in range(2):
        for k in range(n):
            choices = np.flatnonzero(near[k, f])
            if len(choices):
                rests[k, f] = slower[k, f] if near[k, f, slower[k, f]] else choices[0]
    return rests


def steps_of(clip: Clip) -> list[float]:
    """How far each point of a sole slides while it rests on the ground, in the order of the stands [statures]."""
    points = soles(clip.root, clip.turns)
    share = np.arange(clip.frames) / (clip.frames if clip.loop else max(clip.frames - 1, 1))
    c, s = np.cos(clip.turning * share)[:, None, None], np.sin(clip.turning * share)[:, None, None]
    x = c * points[..., 0] - s * points[..., 1] + (clip.travel * share)[:, None, None]
    y = s * points[..., 0] + c * points[..., 1]
    ways = np.stack([x, y], axis=-1)
    found = []
    for f in range(2):
        ends = np.flatnonzero(np.diff(clip.rests[:, f])) + 1
        for stand in np.split(np.arange(clip.frames), ends):
            rests = clip.rests[stand[0], f]
            if rests != LIFTED:
                way = ways[stand, f, rests]
                found.append((int(stand[0]), float(np.linalg.norm(way - way[0], axis=1).max())))
    return [slid for _, slid in sorted(found)]


def identity_turns(n: int) -> Array:
    """(n, 17, 4) of the pose of rest."""
    turns = np.zeros((n, len(PARTS), 4))
    turns[..., 0] = 1.0
    return turns
