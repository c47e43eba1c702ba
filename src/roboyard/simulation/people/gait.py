"""Walking and turning on the spot, made by rule.

While a foot stands, it rolls over heel and ball, and neither slides: in the body's frame it goes back as the body goes
on.  Legs follow by their two bones; the trunk sways and turns against the arms.
"""

from __future__ import annotations

import math
from functools import lru_cache

import numpy as np

from roboyard.geometry import quaternions
from roboyard.geometry.arrays import Array
from roboyard.simulation.people import anthropometry as a
from roboyard.simulation.people.clip import (
    BALL,
    BALL_DOWN,
    FEET,
    HEEL,
    HEEL_DOWN,
    LIFTED,
    UNIT,
    Clip,
    identity_turns,
)
from roboyard.simulation.people.limbs import LEFT_LEG, RIGHT_LEG, stretch
from roboyard.simulation.people.skeleton import INDEX, PARENTS, place_parts

STANDS = 0.62
"""Share of the period in which a foot stands."""
STRIKE, LIFT = math.radians(-20.0), math.radians(48.0)
"""Pitch of the foot as its heel touches, and as its ball leaves the ground, of somebody who walks briskly."""
FLAT, HEEL_OFF = 0.16, 0.58
"""Shares of its stand at which a foot comes to lie flat, and begins to rise."""
CLEARANCE = 0.030
"""How high a foot is lifted in the middle of its swing [statures]."""
BRISK = 0.78
"""Stride of somebody who walks briskly [statures]."""
FRAMES = 96


@lru_cache(maxsize=64)
def walk_clip(stride: float = 0.72, period: float = 1.05) -> Clip:
    """Walking straight ahead.

    Args:
        stride: Of two steps, as share of the stature.
        period: Of two steps [s].
    """
    return _cycle("walk", stride, 0.0, period, "Walking straight ahead, two steps a round")


@lru_cache(maxsize=64)
def turn_clip(angle: float = 1.0, period: float = 1.1) -> Clip:
    """Turning on the spot by small steps.

    Args:
        angle: Of two steps, counterclockwise [rad].
        period: Of two steps [s].
    """
    return _cycle("turn", 0.0, angle, period, "Turning on the spot, two steps a round")


def _cycle(name: str, stride: float, angle: float, period: float, summary: str) -> Clip:
    phases = np.arange(FRAMES) / FRAMES
    effort = min(stride / BRISK, 1.0)
    left = [_foot((phase + 0.5 * STANDS) % 1.0, 1.0, stride, angle, effort) for phase in phases]
    right = [_foot((phase + 0.5 * STANDS + 0.5) % 1.0, -1.0, stride, angle, effort) for phase in phases]
    turns = _upper_body(phases, effort, bool(angle))
    root = np.zeros((FRAMES, 3))
    root[:, 1] = 0.010 * np.cos(2.0 * math.pi * phases)  # over the foot that stands: the left one at 0
    ankles = np.array([[foot[0] for foot in side] for side in (left, right)])
    root[:, 2] = _height(root, ankles, turns)
    rests = np.stack([[foot[2] for foot in side] for side in (left, right)], axis=1).astype(np.int8)
    for n in range(FRAMES):
        places, world = place_parts(UNIT.offsets, PARENTS, root[n], turns[n])
        for leg, side, foot in ((LEFT_LEG, left[n], FEET[0]), (RIGHT_LEG, right[n], FEET[1])):
            world[foot] = side[1]
            stretch(UNIT.offsets, places, world, leg, tuple(side[0].tolist()))
            for part in (leg, leg + 1, leg + 2):
                turns[n, part] = quaternions.multiply(quaternions.conjugate(world[PARENTS[part]]), world[part])
    return Clip(name, root, turns, rests, period, True, stride, angle, summary=summary)


def _foot(phase: float, side: float, stride: float, angle: float, effort: float) -> tuple[Array, Array, int]:
    """Ankle in the body's frame, the foot's orientation, and what rests on the ground, at a share of its own period."""
    if phase < STANDS:
        u = phase / STANDS
        pitch, rests = _roll(u, effort)
        return *_standing(pitch, rests, STANDS * (0.5 - u), side, stride, angle), rests
    u = (phase - STANDS) / (1.0 - STANDS)
    (start, _), (end, _) = (
        _standing(LIFT * effort, BALL_DOWN, -0.5 * STANDS, side, stride, angle),
        _standing(STRIKE * effort, HEEL_DOWN, 0.5 * STANDS, side, stride, angle),
    )
    # The foot leaves and meets the ground with the speed that it has while it stands.
    duration = 1.0 - STANDS
    share = u**3 * (10.0 - 15.0 * u + 6.0 * u**2)
    drift = u * (1.0 - u) ** 3 - u**3 * (1.0 - u)
    ankle = start + share * (end - start)
    ankle[0] -= drift * duration * stride
    ankle[2] += (CLEARANCE if stride else 1.6 * CLEARANCE) * math.sin(math.pi * u) ** 2
    pitch = effort * (LIFT + (STRIKE - LIFT) * (u * u * (3.0 - 2.0 * u)))
    yaw = angle * STANDS * (share - 0.5)
    return ankle, quaternions.from_rpy([0.0, pitch, yaw]), LIFTED


def _roll(u: float, effort: float) -> tuple[float, int]:
    """Pitch of a foot that stands, and what of it rests on the ground."""
    if u < FLAT:
        return effort * STRIKE * (1.0 - u / FLAT) ** 2, HEEL_DOWN
    if u > HEEL_OFF:
        return effort * LIFT * ((u - HEEL_OFF) / (1.0 - HEEL_OFF)) ** 2, BALL_DOWN
    return 0.0, BALL_DOWN


def _standing(pitch: float, rests: int, ahead: float, side: float, stride: float, angle: float) -> tuple[Array, Array]:
    """Ankle and orientation of a foot that rolls over heel or ball, ``ahead`` periods before it is below the hip."""
    pivot = np.array(HEEL if rests == HEEL_DOWN else BALL)
    rolled = pivot - quaternions.rotate(quaternions.from_rpy([0.0, pitch, 0.0]), pivot)
    home = np.array([-0.012 + ahead * stride, side * 0.9 * a.HIP_ASIDE, a.ANKLE])
    yaw = ahead * angle
    turn = quaternions.from_rpy([0.0, 0.0, yaw])
    flat = quaternions.rotate(turn, home) if angle else home
    return flat + quaternions.rotate(turn, rolled), quaternions.from_rpy([0.0, pitch, yaw])


def _upper_body(phases: Array, effort: float, turning: bool) -> Array:
    """Rotations of all but the legs: the pelvis goes with the leg that swings ahead, chest and arms against it."""
    turns = identity_turns(len(phases))
    swing = np.sin(2.0 * math.pi * phases)  # the right leg ahead where it is positive
    zero = np.zeros_like(swing)
    amount = effort if not turning else 0.25

    def put(part: str, roll: Array, pitch: Array, yaw: Array) -> None:
        turns[:, INDEX[part]] = quaternions.from_rpy(np.stack([roll, pitch, yaw], axis=-1))

    put("pelvis", zero, zero + 0.02 * effort, 0.07 * amount * swing)
    put("abdomen", zero, zero + 0.02 * effort, -0.05 * amount * swing)
    put("chest", zero, zero, -0.10 * amount * swing)
    put("neck", zero, zero, 0.05 * amount * swing)
    put("head", zero, zero - 0.04 * effort, 0.03 * amount * swing)
    for side, sign in (("left", 1.0), ("right", -1.0)):
        ahead = sign * swing  # the left arm goes with the right leg
        put(f"{side}_upper_arm", zero + sign * 0.08, -0.04 - 0.42 * amount * ahead, zero)
        put(f"{side}_forearm", zero, -0.22 - 0.18 * amount * (1.0 + ahead), zero)
        put(f"{side}_hand", zero, zero, zero)
    return turns


def _height(root: Array, ankles: Array, turns: Array) -> Array:
    """(n,) heights of the pelvis: as high as both legs reach, and smooth."""
    leg = 0.992 * sum(UNIT.leg)
    reach = np.full(len(root), a.HIP - 0.006)
    for k, side in enumerate((1.0, -1.0)):
        hip = root + quaternions.rotate(turns[:, 0], np.array([0.0, side * a.HIP_ASIDE, 0.0]))
        across = np.linalg.norm((ankles[k] - hip)[:, :2], axis=1)
        reach = np.minimum(reach, ankles[k][:, 2] + np.sqrt(np.maximum(leg**2 - across**2, 0.0)))
    lowest = reach
    for _ in range(4):  # the running minimum, smoothed, stays below what the legs reach
        lowest = np.minimum(lowest, np.minimum(np.roll(lowest, 1), np.roll(lowest, -1)))
    weights = np.hanning(2 * 4 + 3)[1:-1]
    weights /= weights.sum()
    return np.asarray(sum(w * np.roll(lowest, k - 4) for k, w in enumerate(weights)))
