"""Feet that stay where they stand: what a clip asks of a foot is put right so that its sole keeps still; compiled.

A foot's state is a row of numbers: what of it rests on the ground (see `clip`); how much of a step of its own is done,
negative without one; where the point that rests stands; how far the foot is beside its pose; and how far it was when
its step began.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from typing import Any

import numpy as np

from roboyard.compute import kernel
from roboyard.geometry.arrays import Array, Vec3
from roboyard.geometry.quaternion_kernels import Quaternion, add_scaled, rotate_vector
from roboyard.simulation.people.clip import BALL, HEEL, LIFTED
from roboyard.simulation.people.limbs import LEFT_LEG, RIGHT_LEG, STRETCHED, stretch

STRAY = 0.10
"""So far from where its pose has it a foot may stand while somebody walks [statures]; farther off it makes a step."""
SETTLED = 0.03
"""The same of somebody who stands."""
STEP_TIME, STEP_HEIGHT = 0.36, 0.025
"""Of such a step [s, statures]."""
_RETURN = 0.08
"""Time constant with which a foot in the air comes back to its pose [s]."""
_LOWER = 0.9
"""How fast a foot is put down that its pose has in the air [m/s]."""

RESTS, STEPPING, ANCHOR, SHIFT, BEGAN = 0, 1, 2, 5, 8
WIDTH = 11


def new_feet() -> Array:
    """(2, `WIDTH`) state of two feet that nobody has put down yet."""
    feet = np.zeros((2, WIDTH))
    feet[:, RESTS], feet[:, STEPPING] = LIFTED, -1.0
    return feet


@kernel(inline="always")
def _above(ankle: Vec3, turn: Quaternion, height: float) -> Vec3:
    """The ankle, raised where its sole would be below the ground."""
    heel, ball = (
        add_scaled(ankle, height, rotate_vector(turn, HEEL)),
        add_scaled(ankle, height, rotate_vector(turn, BALL)),
    )
    return (ankle[0], ankle[1], ankle[2] - min(heel[2], ball[2], 0.0))


def _example() -> Iterable[tuple[Any, ...]]:
    yield (np.zeros(WIDTH), (0.0, 0.0, 0.0), (1.0, 0.0, 0.0, 0.0), 0, 0.02, 1.75, 0.1, True)


@kernel(examples=_example)
def follow(
    foot: Array, ankle: Vec3, turn: Quaternion, rests: int, dt: float, height: float, stray: float, may_step: bool
) -> Vec3:
    """Where the ankle goes [m].

    Args:
        foot: (`WIDTH`,) its state; written.
        ankle: Where the pose has it, in the world; the ground is at 0 [m].
        turn: How the pose turns the foot.
        rests: What of it is on the ground in the clip.
        dt: Since the last call [s].
        height: Stature [m].
        stray: How far it may stand from its pose [m].
        may_step: Whether it may make a step of its own, the other foot standing.
    """
    if foot[STEPPING] >= 0.0:
        u = foot[STEPPING] = min(foot[STEPPING] + dt / STEP_TIME, 1.0)
        left = 1.0 - u**3 * (10.0 - 15.0 * u + 6.0 * u * u)
        for i in range(3):
            foot[SHIFT + i] = left * foot[BEGAN + i]
        arc = STEP_HEIGHT * height * math.sin(math.pi * u) ** 2
        if u >= 1.0:
            foot[STEPPING] = -1.0
        x, y, z = ankle[0] + foot[SHIFT], ankle[1] + foot[SHIFT + 1], ankle[2] + foot[SHIFT + 2] + arc
        return _above((x, y, z), turn, height)
    if rests == LIFTED:
        foot[RESTS] = LIFTED
        for i in range(3):
            foot[SHIFT + i] *= math.exp(-dt / _RETURN)
    else:
        point = add_scaled(ankle, height, rotate_vector(turn, HEEL if rests == 0 else BALL))
        if rests != foot[RESTS]:
            foot[RESTS] = rests
            for i in range(3):
                foot[ANCHOR + i] = point[i] + foot[SHIFT + i]
        foot[ANCHOR + 2] = max(foot[ANCHOR + 2] - _LOWER * dt, 0.0)
        for i in range(3):
            foot[SHIFT + i] = foot[ANCHOR + i] - point[i]
        if may_step and math.sqrt(foot[SHIFT] ** 2 + foot[SHIFT + 1] ** 2) > stray:
            foot[STEPPING], foot[RESTS] = 0.0, LIFTED
            for i in range(3):
                foot[BEGAN + i] = foot[SHIFT + i]
    return _above((ankle[0] + foot[SHIFT], ankle[1] + foot[SHIFT + 1], ankle[2] + foot[SHIFT + 2]), turn, height)


def _example_stand() -> Iterable[tuple[Any, ...]]:
    fixed = np.zeros((17, 3))
    fixed.flags.writeable = False
    feet = np.zeros((2, WIDTH))
    yield (fixed, np.zeros((17, 3)), np.zeros((17, 4)), np.zeros((2, 3)), feet, 0, 0, True, True, 0.02, 1.75, 0.1)


@kernel(examples=_example_stand)
def stand(
    offsets: Array, places: Array, world: Array, ankles: Array, feet: Array, left: int, right: int, heard: bool,
    faded: bool, dt: float, height: float, stray: float,
) -> None:  # fmt: skip
    """Put both feet where they stand, lower the body where a leg is too short, and bend the knees.

    Args:
        offsets: (17, 3) of the skeleton [m].
        places: (17, 3) of the parts in the world [m]; written.
        world: (17, 4) of the parts in the world; written.
        ankles: (2, 3) where the clip has the ankles, left and right [m].
        feet: (2, `WIDTH`) their state; written.
        left: What of the left foot is on the ground in the clip.
        right: Of the right foot.
        heard: Whether the clip decides; while it fades in, a foot that stands goes on standing.
        faded: Whether it has faded in: only then a foot may step by itself.
        dt: Since the last call [s].
        height: Stature [m].
        stray: How far a foot may stand from its pose [m].
    """
    goals = np.empty((2, 3))
    longest = STRETCHED * (-offsets[LEFT_LEG + 1, 2] - offsets[LEFT_LEG + 2, 2])
    sink = 0.0
    for k in range(2):
        foot, other = feet[k], feet[1 - k]
        leg = LEFT_LEG if k == 0 else RIGHT_LEG
        asked = left if k == 0 else right
        if not heard and foot[RESTS] != LIFTED:
            asked = int(foot[RESTS])
        may_step = faded and other[STEPPING] < 0.0 and other[RESTS] != LIFTED
        turn = (world[leg + 2, 0], world[leg + 2, 1], world[leg + 2, 2], world[leg + 2, 3])
        goal = follow(foot, (ankles[k, 0], ankles[k, 1], ankles[k, 2]), turn, asked, dt, height, stray, may_step)
        across = (goal[0] - places[leg, 0]) ** 2 + (goal[1] - places[leg, 1]) ** 2
        if across < longest * longest:
            sink = max(sink, places[leg, 2] - goal[2] - math.sqrt(longest * longest - across))
        for i in range(3):
            goals[k, i] = goal[i]
    if sink > 0.0:
        places[:, 2] -= sink
    stretch(offsets, places, world, LEFT_LEG, (goals[0, 0], goals[0, 1], goals[0, 2]))
    stretch(offsets, places, world, RIGHT_LEG, (goals[1, 0], goals[1, 1], goals[1, 2]))
