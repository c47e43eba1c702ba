"""Reaching for places: how far somebody leans and bends the knees so that a hand gets there, and whether it does."""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

import numpy as np

from roboyard.compute import kernel
from roboyard.geometry import quaternions
from roboyard.geometry.arrays import Array
from roboyard.geometry.quaternion_kernels import multiply, rotate_vector
from roboyard.simulation.people.limbs import LEFT_ARM, LEFT_LEG, RIGHT_ARM, RIGHT_LEG, STRETCHED
from roboyard.simulation.people.skeleton import Skeleton

GRIP = 0.055
"""Where a hand grips, from the wrist along the hand [statures]."""
REACHED = 0.02
"""A hand that comes so near has reached its place [m]."""


@dataclass(frozen=True, slots=True)
class Lean:
    """How the trunk goes along with a hand.

    Attributes:
        pitch: Forward [rad].
        yaw: To the left [rad].
        drop: Of the pelvis, by bending the knees [statures].
    """

    pitch: float = 0.0
    yaw: float = 0.0
    drop: float = 0.0

    def applied(self, root: Array, turns: Array, height: float, share: float) -> tuple[Array, Array]:
        """(3,) root and (17, 4) rotations, in the world, with a share of the lean."""
        return bend(root, turns, share * self.pitch, share * self.yaw, share * self.drop * height, height)


def _example() -> Iterable[tuple[Any, ...]]:
    yield (np.zeros(3), np.zeros((17, 4)), 0.1, 0.1, 0.1, 1.75)


@kernel(examples=_example)
def bend(root: Array, turns: Array, pitch: float, yaw: float, drop: float, height: float) -> tuple[Array, Array]:
    """(3,) root and (17, 4) rotations of somebody who leans.

    Args:
        root: (3,) of the pelvis in the world [m].
        turns: (17, 4) rotations, of the pelvis against the world; the legs stay as they were.
        pitch: Forward [rad].
        yaw: To the left [rad].
        drop: Of the pelvis [m].
        height: Stature [m].
    """
    out, rotations = root.copy(), turns.copy()
    back = 0.10 * height * math.sin(pitch) + 0.3 * drop  # so that nobody falls over
    ahead = rotate_vector((turns[0, 0], turns[0, 1], turns[0, 2], turns[0, 3]), (1.0, 0.0, 0.0))
    flat = max(math.sqrt(ahead[0] * ahead[0] + ahead[1] * ahead[1]), 1e-9)
    out[0] -= back * ahead[0] / flat
    out[1] -= back * ahead[1] / flat
    out[2] -= drop
    for part in range(3):
        p = 0.5 * (0.4 if part == 1 else 0.3) * pitch
        y = 0.0 if part == 0 else 0.5 * (4.0 if part == 1 else 3.0) / 7.0 * yaw
        lean = multiply((math.cos(y), 0.0, 0.0, math.sin(y)), (math.cos(p), 0.0, math.sin(p), 0.0))
        now = multiply((turns[part, 0], turns[part, 1], turns[part, 2], turns[part, 3]), lean)
        for i in range(4):
            rotations[part, i] = now[i]
    level = (math.cos(0.15 * pitch), 0.0, -math.sin(0.15 * pitch), 0.0)
    for leg in (LEFT_LEG, RIGHT_LEG):
        now = multiply(level, (turns[leg, 0], turns[leg, 1], turns[leg, 2], turns[leg, 3]))
        for i in range(4):
            rotations[leg, i] = now[i]
    return out, rotations


def _effort(lean: Lean) -> float:
    return (lean.pitch / 0.6) ** 2 + (lean.yaw / 0.6) ** 2 + (lean.drop / 0.12) ** 2


_LEANS = sorted(
    (
        Lean(math.radians(pitch), math.radians(yaw), drop)
        for pitch in range(0, 81, 10)
        for yaw in (-50, -30, -15, 0, 15, 30, 50)
        for drop in (0.0, 0.05, 0.10, 0.15, 0.20, 0.25)
    ),
    key=_effort,
)
"""The slightest first."""
_DEEPEST = 0.25


def wrist_for(target: Array, turn: Array, height: float) -> Array:
    """(3,) where the wrist is when a hand that is turned so grips at ``target`` [m]."""
    return np.asarray(target - quaternions.rotate(turn, np.array([0.0, 0.0, -GRIP * height])))


def grip_of(place: Array, turn: Array, height: float) -> Array:
    """(3,) where a hand at ``place`` that is turned so grips [m]."""
    return np.asarray(place + quaternions.rotate(turn, np.array([0.0, 0.0, -GRIP * height])))


def find_lean(skeleton: Skeleton, root: Array, turns: Array, target: Array, hand: str) -> tuple[Lean, float]:
    """The slightest lean with which a hand gets to a place, and how far it stays away [m].

    Args:
        skeleton: Whose.
        root: (3,) of the clip's pose in the world, at the moment it reaches [m].
        turns: (17, 4) of that pose, the first against the world.
        target: (3,) where the hand is to grip, in the world [m].
        hand: "left" or "right".
    """
    limb = LEFT_ARM if hand == "left" else RIGHT_ARM
    length, height = STRETCHED * sum(skeleton.arm), skeleton.physique.height
    trunk = float(np.linalg.norm(skeleton.offsets[limb] + skeleton.offsets[1] + skeleton.offsets[2]))
    beyond = float(np.linalg.norm(target - root)) - (trunk + length + (GRIP + _DEEPEST + 0.1) * height)
    if beyond > 0.0:
        return Lean(), beyond
    best = (Lean(), math.inf)
    for lean in _LEANS:
        places, world = skeleton.forward(*lean.applied(root, turns, height, 1.0))
        away = float(np.linalg.norm(wrist_for(target, world[limb + 2], height) - places[limb]))
        missed = max(away - length, 1.05 * abs(skeleton.arm[0] - skeleton.arm[1]) - away, 0.0)
        if missed < best[1]:
            best = lean, missed
        if missed <= 0.0:
            break
    return best
