"""Clips of walking and of turning on the spot, generated from a model of gait.

During stance a foot rolls over heel and ball without slip: in the body's frame it moves back as the body moves forward.
The legs follow by two-bone inverse kinematics; the trunk sways and rotates against the arms.
"""

from __future__ import annotations

import math
from functools import lru_cache

import numpy as np

from roboyard.geometry import quaternions
from roboyard.geometry.arrays import Array
from roboyard.people.anthropometry import ANKLE_HEIGHT, HALF_HIP_WIDTH, HIP_HEIGHT
from roboyard.people.clip import (
    BALL,
    BALL_DOWN,
    FEET,
    HEEL,
    HEEL_DOWN,
    LIFTED,
    UNIT_SKELETON,
    AnimationClip,
    identity_rotations,
)
from roboyard.people.skeleton import LEFT_LEG, PARENTS, PART_INDEX, RIGHT_LEG, compute_part_poses, solve_two_bone_ik

STANCE_FRACTION = 0.62
"""Fraction of the period in which a foot is in stance."""
HEEL_STRIKE_PITCH, TOE_OFF_PITCH = math.radians(-20.0), math.radians(48.0)
"""Pitch of the foot at heel strike and at toe-off, in brisk walking [rad]."""
FOOT_FLAT_PHASE, HEEL_OFF_PHASE = 0.16, 0.58
"""Fractions of the stance at which the foot becomes flat and the heel rises."""
SWING_HEIGHT = 0.030
"""Height of a foot in the middle of its swing [statures]."""
BRISK_STRIDE = 0.78
"""Stride of brisk walking [statures]."""
NUM_FRAMES = 96


@lru_cache(maxsize=64)
def make_walk_clip(stride: float = 0.72, period: float = 1.05) -> AnimationClip:
    """Return a clip of walking straight forward.

    Args:
        stride: Length of two steps, as a fraction of the stature.
        period: Duration of two steps [s].
    """
    return _make_gait_cycle("walk", stride, 0.0, period, "Walking straight ahead, two steps a round")


@lru_cache(maxsize=64)
def make_turning_clip(angle: float = 1.0, period: float = 1.1) -> AnimationClip:
    """Return a clip of turning on the spot by small steps.

    Args:
        angle: Rotation by two steps, counterclockwise [rad].
        period: Duration of two steps [s].
    """
    return _make_gait_cycle("turn", 0.0, angle, period, "Turning on the spot, two steps a round")


def _make_gait_cycle(name: str, stride: float, angle: float, period: float, summary: str) -> AnimationClip:
    phases = np.arange(NUM_FRAMES) / NUM_FRAMES
    briskness = min(stride / BRISK_STRIDE, 1.0)
    left = [
        _compute_foot_pose((phase + 0.5 * STANCE_FRACTION) % 1.0, 1.0, stride, angle, briskness) for phase in phases
    ]
    right = [
        _compute_foot_pose((phase + 0.5 * STANCE_FRACTION + 0.5) % 1.0, -1.0, stride, angle, briskness)
        for phase in phases
    ]
    rotations = _compute_upper_body_rotations(phases, briskness, bool(angle))
    root = np.zeros((NUM_FRAMES, 3))
    root[:, 1] = 0.010 * np.cos(2.0 * math.pi * phases)  # over the stance foot: the left one at phase 0
    ankles = np.array([[foot[0] for foot in side] for side in (left, right)])
    root[:, 2] = _compute_pelvis_heights(root, ankles, rotations)
    foot_contacts = np.stack([[foot[2] for foot in side] for side in (left, right)], axis=1).astype(np.int8)
    for n in range(NUM_FRAMES):
        positions, orientations = compute_part_poses(UNIT_SKELETON.offsets, PARENTS, root[n], rotations[n])
        for leg, side, foot in ((LEFT_LEG, left[n], FEET[0]), (RIGHT_LEG, right[n], FEET[1])):
            orientations[foot] = side[1]
            solve_two_bone_ik(UNIT_SKELETON.offsets, positions, orientations, leg, tuple(side[0].tolist()))
            for part in (leg, leg + 1, leg + 2):
                rotations[n, part] = quaternions.multiply(
                    quaternions.conjugate(orientations[PARENTS[part]]), orientations[part]
                )
    return AnimationClip(name, root, rotations, foot_contacts, period, True, stride, angle, summary=summary)


def _compute_foot_pose(
    phase: float, side: float, stride: float, angle: float, briskness: float
) -> tuple[Array, Array, int]:
    """Return the ankle in the body's frame, the orientation and the contact of a foot at a phase of its own period."""
    if phase < STANCE_FRACTION:
        u = phase / STANCE_FRACTION
        pitch, contact = _compute_foot_roll(u, briskness)
        return *_compute_stance_foot_pose(pitch, contact, STANCE_FRACTION * (0.5 - u), side, stride, angle), contact
    u = (phase - STANCE_FRACTION) / (1.0 - STANCE_FRACTION)
    (start, _), (end, _) = (
        _compute_stance_foot_pose(TOE_OFF_PITCH * briskness, BALL_DOWN, -0.5 * STANCE_FRACTION, side, stride, angle),
        _compute_stance_foot_pose(HEEL_STRIKE_PITCH * briskness, HEEL_DOWN, 0.5 * STANCE_FRACTION, side, stride, angle),
    )
    # The foot leaves and meets the ground with its speed in stance, relative to the body.
    duration = 1.0 - STANCE_FRACTION
    fraction = u**3 * (10.0 - 15.0 * u + 6.0 * u**2)
    end_velocity_term = u * (1.0 - u) ** 3 - u**3 * (1.0 - u)
    ankle = start + fraction * (end - start)
    ankle[0] -= end_velocity_term * duration * stride
    ankle[2] += (SWING_HEIGHT if stride else 1.6 * SWING_HEIGHT) * math.sin(math.pi * u) ** 2
    pitch = briskness * (TOE_OFF_PITCH + (HEEL_STRIKE_PITCH - TOE_OFF_PITCH) * (u * u * (3.0 - 2.0 * u)))
    yaw = angle * STANCE_FRACTION * (fraction - 0.5)
    return ankle, quaternions.from_rpy([0.0, pitch, yaw]), LIFTED


def _compute_foot_roll(u: float, briskness: float) -> tuple[float, int]:
    """Return the pitch and the contact of a foot in stance."""
    if u < FOOT_FLAT_PHASE:
        return briskness * HEEL_STRIKE_PITCH * (1.0 - u / FOOT_FLAT_PHASE) ** 2, HEEL_DOWN
    if u > HEEL_OFF_PHASE:
        return briskness * TOE_OFF_PITCH * ((u - HEEL_OFF_PHASE) / (1.0 - HEEL_OFF_PHASE)) ** 2, BALL_DOWN
    return 0.0, BALL_DOWN


def _compute_stance_foot_pose(
    pitch: float, contact: int, periods_to_midstance: float, side: float, stride: float, angle: float
) -> tuple[Array, Array]:
    """Return ankle and orientation of a foot in stance, ``periods_to_midstance`` periods before it is below the hip."""
    pivot = np.array(HEEL if contact == HEEL_DOWN else BALL)
    roll_offset = pivot - quaternions.rotate(quaternions.from_rpy([0.0, pitch, 0.0]), pivot)
    ankle = np.array([-0.012 + periods_to_midstance * stride, side * 0.9 * HALF_HIP_WIDTH, ANKLE_HEIGHT])
    yaw = periods_to_midstance * angle
    yaw_rotation = quaternions.from_rpy([0.0, 0.0, yaw])
    rotated_ankle = quaternions.rotate(yaw_rotation, ankle) if angle else ankle
    return rotated_ankle + quaternions.rotate(yaw_rotation, roll_offset), quaternions.from_rpy([0.0, pitch, yaw])


def _compute_upper_body_rotations(phases: Array, briskness: float, is_turning: bool) -> Array:
    """Return the rotations without the legs: the pelvis follows the swing leg, chest and arms move against it."""
    rotations = identity_rotations(len(phases))
    swing = np.sin(2.0 * math.pi * phases)  # positive: the right leg is in front
    zero = np.zeros_like(swing)
    amount = briskness if not is_turning else 0.25

    def set_rotation(part: str, roll: Array, pitch: Array, yaw: Array) -> None:
        rotations[:, PART_INDEX[part]] = quaternions.from_rpy(np.stack([roll, pitch, yaw], axis=-1))

    set_rotation("pelvis", zero, zero + 0.02 * briskness, 0.07 * amount * swing)
    set_rotation("abdomen", zero, zero + 0.02 * briskness, -0.05 * amount * swing)
    set_rotation("chest", zero, zero, -0.10 * amount * swing)
    set_rotation("neck", zero, zero, 0.05 * amount * swing)
    set_rotation("head", zero, zero - 0.04 * briskness, 0.03 * amount * swing)
    for side, sign in (("left", 1.0), ("right", -1.0)):
        forward_swing = sign * swing  # the left arm moves with the right leg
        set_rotation(f"{side}_upper_arm", zero + sign * 0.08, -0.04 - 0.42 * amount * forward_swing, zero)
        set_rotation(f"{side}_forearm", zero, -0.22 - 0.18 * amount * (1.0 + forward_swing), zero)
        set_rotation(f"{side}_hand", zero, zero, zero)
    return rotations


def _compute_pelvis_heights(root: Array, ankles: Array, rotations: Array) -> Array:
    """Return the heights (n,) of the pelvis: as high as both legs permit, and smooth."""
    max_leg_length = 0.992 * sum(UNIT_SKELETON.leg_lengths)
    max_heights = np.full(len(root), HIP_HEIGHT - 0.006)
    for k, side in enumerate((1.0, -1.0)):
        hip = root + quaternions.rotate(rotations[:, 0], np.array([0.0, side * HALF_HIP_WIDTH, 0.0]))
        horizontal_distance = np.linalg.norm((ankles[k] - hip)[:, :2], axis=1)
        max_heights = np.minimum(
            max_heights, ankles[k][:, 2] + np.sqrt(np.maximum(max_leg_length**2 - horizontal_distance**2, 0.0))
        )
    min_heights = max_heights
    for _ in range(4):  # the smoothed running minimum stays within the reach of the legs
        min_heights = np.minimum(min_heights, np.minimum(np.roll(min_heights, 1), np.roll(min_heights, -1)))
    weights = np.hanning(2 * 4 + 3)[1:-1]
    weights /= weights.sum()
    return np.asarray(sum(w * np.roll(min_heights, k - 4) for k, w in enumerate(weights)))
