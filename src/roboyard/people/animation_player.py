"""Plays animation clips on a skeleton: blends clips, locks the feet to the ground, and moves a hand to a target.

The state of a foot is a row of numbers: its contact (see `clip`); the progress of a corrective step, negative without
one; the position of the point in contact; the offset of the foot from the clip; and that offset at the start of the
step.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from roboyard.compute import expect_kernels, kernel
from roboyard.geometry import quaternions
from roboyard.geometry.arrays import Array, Vec3
from roboyard.geometry.quaternion_kernels import Quaternion, add_scaled, multiply, rotate_vector
from roboyard.people.clip import BALL, FEET, HEEL, LIFTED, AnimationClip, blend_poses, place_in_world, sample_clip
from roboyard.people.skeleton import (
    LEFT_ARM,
    LEFT_LEG,
    MAX_EXTENSION,
    RIGHT_ARM,
    RIGHT_LEG,
    Skeleton,
    compute_part_poses,
    solve_two_bone_ik,
)

GRIP_DISTANCE = 0.055
"""Where a hand grips, from the wrist along the hand [statures]."""
REACH_TOLERANCE = 0.02
"""Distance from the target within which a hand has reached it [m]."""


@dataclass(frozen=True, slots=True)
class TrunkLean:
    """Lean of the trunk with which a hand reaches farther.

    Attributes:
        pitch: Forward [rad].
        yaw: To the left [rad].
        pelvis_drop: How far the pelvis is lowered by bending the knees [statures].
    """

    pitch: float = 0.0
    yaw: float = 0.0
    pelvis_drop: float = 0.0

    def apply(self, root: Array, rotations: Array, height: float, fraction: float) -> tuple[Array, Array]:
        """Return root (3,) and rotations (17, 4) in the world with a fraction of the lean."""
        return lean_trunk(
            root, rotations, fraction * self.pitch, fraction * self.yaw, fraction * self.pelvis_drop * height, height
        )


def _example_lean_trunk() -> Iterable[tuple[Any, ...]]:
    yield (np.zeros(3), np.zeros((17, 4)), 0.1, 0.1, 0.1, 1.75)


@kernel(examples=_example_lean_trunk)
def lean_trunk(
    root: Array, rotations: Array, pitch: float, yaw: float, pelvis_drop: float, height: float
) -> tuple[Array, Array]:
    """Return root (3,) and rotations (17, 4) of a person who leans.

    Args:
        root: Position (3,) of the pelvis in the world [m].
        rotations: Rotations (17, 4) relative to the parent parts, of the pelvis relative to the world; the legs keep
            their orientation.
        pitch: Forward [rad].
        yaw: To the left [rad].
        pelvis_drop: How far the pelvis is lowered [m].
        height: Stature [m].
    """
    leaning_root, leaning_rotations = root.copy(), rotations.copy()
    backward_shift = 0.10 * height * math.sin(pitch) + 0.3 * pelvis_drop  # keeps the center of mass above the feet
    forward = rotate_vector((rotations[0, 0], rotations[0, 1], rotations[0, 2], rotations[0, 3]), (1.0, 0.0, 0.0))
    horizontal_length = max(math.sqrt(forward[0] * forward[0] + forward[1] * forward[1]), 1e-9)
    leaning_root[0] -= backward_shift * forward[0] / horizontal_length
    leaning_root[1] -= backward_shift * forward[1] / horizontal_length
    leaning_root[2] -= pelvis_drop
    for part in range(3):
        p = 0.5 * (0.4 if part == 1 else 0.3) * pitch
        y = 0.0 if part == 0 else 0.5 * (4.0 if part == 1 else 3.0) / 7.0 * yaw
        lean = multiply((math.cos(y), 0.0, 0.0, math.sin(y)), (math.cos(p), 0.0, math.sin(p), 0.0))
        rotation = multiply((rotations[part, 0], rotations[part, 1], rotations[part, 2], rotations[part, 3]), lean)
        for i in range(4):
            leaning_rotations[part, i] = rotation[i]
    hip_rotation = (math.cos(0.15 * pitch), 0.0, -math.sin(0.15 * pitch), 0.0)
    for leg in (LEFT_LEG, RIGHT_LEG):
        rotation = multiply(hip_rotation, (rotations[leg, 0], rotations[leg, 1], rotations[leg, 2], rotations[leg, 3]))
        for i in range(4):
            leaning_rotations[leg, i] = rotation[i]
    return leaning_root, leaning_rotations


def _lean_effort(lean: TrunkLean) -> float:
    return (lean.pitch / 0.6) ** 2 + (lean.yaw / 0.6) ** 2 + (lean.pelvis_drop / 0.12) ** 2


_LEANS_BY_EFFORT = sorted(
    (
        TrunkLean(math.radians(pitch), math.radians(yaw), drop)
        for pitch in range(0, 81, 10)
        for yaw in (-50, -30, -15, 0, 15, 30, 50)
        for drop in (0.0, 0.05, 0.10, 0.15, 0.20, 0.25)
    ),
    key=_lean_effort,
)
"""Leans to try, the smallest effort first."""
_MAX_PELVIS_DROP = 0.25


def compute_wrist_position(target: Array, orientation: Array, height: float) -> Array:
    """Return the position (3,) of the wrist with which a hand of this orientation grips at ``target`` [m]."""
    return np.asarray(target - quaternions.rotate(orientation, np.array([0.0, 0.0, -GRIP_DISTANCE * height])))


def compute_grip_position(wrist_position: Array, orientation: Array, height: float) -> Array:
    """Return the grip position (3,) of a hand with this wrist position and orientation [m]."""
    return np.asarray(wrist_position + quaternions.rotate(orientation, np.array([0.0, 0.0, -GRIP_DISTANCE * height])))


def find_trunk_lean(
    skeleton: Skeleton, root: Array, rotations: Array, target: Array, hand: str
) -> tuple[TrunkLean, float]:
    """Find the smallest lean with which a hand reaches a target, and the remaining distance [m].

    Args:
        skeleton: Of the person.
        root: Root (3,) of the clip's pose in the world, at the phase of the reach [m].
        rotations: Rotations (17, 4) of that pose, the first relative to the world.
        target: Position (3,) in the world at which the hand is to grip [m].
        hand: "left" or "right".
    """
    limb = LEFT_ARM if hand == "left" else RIGHT_ARM
    arm_length, height = MAX_EXTENSION * sum(skeleton.arm_lengths), skeleton.dimensions.height
    trunk = float(np.linalg.norm(skeleton.offsets[limb] + skeleton.offsets[1] + skeleton.offsets[2]))
    missing_distance = float(np.linalg.norm(target - root)) - (
        trunk + arm_length + (GRIP_DISTANCE + _MAX_PELVIS_DROP + 0.1) * height
    )
    if missing_distance > 0.0:
        return TrunkLean(), missing_distance
    best = (TrunkLean(), math.inf)
    for lean in _LEANS_BY_EFFORT:
        positions, orientations = skeleton.compute_part_poses(*lean.apply(root, rotations, height, 1.0))
        wrist_distance = float(
            np.linalg.norm(compute_wrist_position(target, orientations[limb + 2], height) - positions[limb])
        )
        position_error = max(
            wrist_distance - arm_length,
            1.05 * abs(skeleton.arm_lengths[0] - skeleton.arm_lengths[1]) - wrist_distance,
            0.0,
        )
        if position_error < best[1]:
            best = lean, position_error
        if position_error <= 0.0:
            break
    return best


MAX_FOOT_OFFSET_WALKING = 0.10
"""Maximum offset of a foot on the ground from the clip while walking [statures]; beyond it the foot makes a step."""
MAX_FOOT_OFFSET_STANDING = 0.03
"""The same while standing."""
STEP_DURATION, STEP_HEIGHT = 0.36, 0.025
"""Duration and height of a corrective step [s, statures]."""
_RETURN_TIME = 0.08
"""Time constant with which a foot in the air returns to the pose of the clip [s]."""
_LOWERING_SPEED = 0.9
"""Speed at which a contact point above the ground is lowered [m/s]."""

FOOT_CONTACT, STEP_PROGRESS, FOOT_ANCHOR, FOOT_OFFSET, STEP_START_OFFSET = 0, 1, 2, 5, 8
FOOT_STATE_SIZE = 11


def make_foot_states() -> Array:
    """Return the initial states (2, `FOOT_STATE_SIZE`) of two feet in the air."""
    foot_states = np.zeros((2, FOOT_STATE_SIZE))
    foot_states[:, FOOT_CONTACT], foot_states[:, STEP_PROGRESS] = LIFTED, -1.0
    return foot_states


class FootLockParameters(NamedTuple):
    """Lengths of a person for foot locking.

    Attributes:
        height: Stature [m].
        max_offset: Maximum offset of a foot on the ground from the clip; beyond it the foot makes a step [m].
    """

    height: float
    max_offset: float


class FootContacts(NamedTuple):
    """What the clip says about the contacts of both feet with the ground.

    Attributes:
        left: Contact of the left foot in the clip (see `clip`).
        right: Contact of the right foot.
        follows_clip: Whether the clip decides about contacts; while it fades in, a foot on the ground stays there.
        may_step: Whether feet may make corrective steps: only after the clip has faded in.
    """

    left: int
    right: int
    follows_clip: bool
    may_step: bool


@kernel(inline="always")
def _raise_above_ground(ankle: Vec3, orientation: Quaternion, height: float) -> Vec3:
    """Return the ankle, raised if the sole would be below the ground."""
    heel, ball = (
        add_scaled(ankle, height, rotate_vector(orientation, HEEL)),
        add_scaled(ankle, height, rotate_vector(orientation, BALL)),
    )
    return (ankle[0], ankle[1], ankle[2] - min(heel[2], ball[2], 0.0))


def _example_track_foot() -> Iterable[tuple[Any, ...]]:
    foot_pose = ((0.0, 0.0, 0.0), (1.0, 0.0, 0.0, 0.0))
    yield (np.zeros(FOOT_STATE_SIZE), *foot_pose, 0, True, FootLockParameters(1.75, 0.1), 0.02)


@kernel(examples=_example_track_foot)
def track_foot(
    foot_state: Array,
    ankle: Vec3,
    orientation: Quaternion,
    contact: int,
    may_step: bool,
    parameters: FootLockParameters,
    dt: float,
) -> Vec3:
    """Compute the position of an ankle whose foot is held on the ground, follows the clip, or makes a step [m].

    Args:
        foot_state: (`FOOT_STATE_SIZE`,) state of the foot; updated.
        ankle: Position of the ankle in the clip's pose, in the world; the ground is at height 0 [m].
        orientation: Orientation of the foot in the clip's pose.
        contact: Contact of the foot with the ground in the clip.
        may_step: Whether the foot may make a corrective step, because the other foot is on the ground.
        parameters: Of the person.
        dt: Time since the last call [s].
    """
    height, max_offset = parameters
    if foot_state[STEP_PROGRESS] >= 0.0:
        u = foot_state[STEP_PROGRESS] = min(foot_state[STEP_PROGRESS] + dt / STEP_DURATION, 1.0)
        remaining = 1.0 - u**3 * (10.0 - 15.0 * u + 6.0 * u * u)
        for i in range(3):
            foot_state[FOOT_OFFSET + i] = remaining * foot_state[STEP_START_OFFSET + i]
        arc = STEP_HEIGHT * height * math.sin(math.pi * u) ** 2
        if u >= 1.0:
            foot_state[STEP_PROGRESS] = -1.0
        x, y, z = (
            ankle[0] + foot_state[FOOT_OFFSET],
            ankle[1] + foot_state[FOOT_OFFSET + 1],
            ankle[2] + foot_state[FOOT_OFFSET + 2] + arc,
        )
        return _raise_above_ground((x, y, z), orientation, height)
    if contact == LIFTED:
        foot_state[FOOT_CONTACT] = LIFTED
        for i in range(3):
            foot_state[FOOT_OFFSET + i] *= math.exp(-dt / _RETURN_TIME)
    else:
        point = add_scaled(ankle, height, rotate_vector(orientation, HEEL if contact == 0 else BALL))
        if contact != foot_state[FOOT_CONTACT]:
            foot_state[FOOT_CONTACT] = contact
            for i in range(3):
                foot_state[FOOT_ANCHOR + i] = point[i] + foot_state[FOOT_OFFSET + i]
        foot_state[FOOT_ANCHOR + 2] = max(foot_state[FOOT_ANCHOR + 2] - _LOWERING_SPEED * dt, 0.0)
        for i in range(3):
            foot_state[FOOT_OFFSET + i] = foot_state[FOOT_ANCHOR + i] - point[i]
        if may_step and math.sqrt(foot_state[FOOT_OFFSET] ** 2 + foot_state[FOOT_OFFSET + 1] ** 2) > max_offset:
            foot_state[STEP_PROGRESS], foot_state[FOOT_CONTACT] = 0.0, LIFTED
            for i in range(3):
                foot_state[STEP_START_OFFSET + i] = foot_state[FOOT_OFFSET + i]
    return _raise_above_ground(
        (
            ankle[0] + foot_state[FOOT_OFFSET],
            ankle[1] + foot_state[FOOT_OFFSET + 1],
            ankle[2] + foot_state[FOOT_OFFSET + 2],
        ),
        orientation,
        height,
    )


def _example_lock_feet() -> Iterable[tuple[Any, ...]]:
    read_only = np.zeros((17, 3))
    read_only.flags.writeable = False
    poses, foot_states = (np.zeros((17, 3)), np.zeros((17, 4))), np.zeros((2, FOOT_STATE_SIZE))
    contacts = FootContacts(0, 0, follows_clip=True, may_step=True)
    yield (read_only, *poses, np.zeros((2, 3)), foot_states, contacts, FootLockParameters(1.75, 0.1), 0.02)


@kernel(examples=_example_lock_feet)
def lock_feet(
    offsets: Array,
    positions: Array,
    orientations: Array,
    ankles: Array,
    foot_states: Array,
    contacts: FootContacts,
    parameters: FootLockParameters,
    dt: float,
) -> None:
    """Hold both feet at their contact points, lower the pelvis where a leg is too short, and bend the knees.

    Args:
        offsets: Joint offsets (17, 3) of the skeleton [m].
        positions: Positions (17, 3) of the parts in the world [m]; updated.
        orientations: Orientations (17, 4) of the parts in the world; updated.
        ankles: (2, 3) positions of the left and the right ankle in the clip's pose [m].
        foot_states: (2, `FOOT_STATE_SIZE`) states of the feet; updated.
        contacts: Of the feet in the clip.
        parameters: Of the person.
        dt: Time since the last call [s].
    """
    goals = np.empty((2, 3))
    max_leg_length = MAX_EXTENSION * (-offsets[LEFT_LEG + 1, 2] - offsets[LEFT_LEG + 2, 2])
    pelvis_drop = 0.0
    for k in range(2):
        foot, other = foot_states[k], foot_states[1 - k]
        leg = LEFT_LEG if k == 0 else RIGHT_LEG
        contact = contacts.left if k == 0 else contacts.right
        if not contacts.follows_clip and foot[FOOT_CONTACT] != LIFTED:
            contact = int(foot[FOOT_CONTACT])
        may_step = contacts.may_step and other[STEP_PROGRESS] < 0.0 and other[FOOT_CONTACT] != LIFTED
        orientation = (
            orientations[leg + 2, 0],
            orientations[leg + 2, 1],
            orientations[leg + 2, 2],
            orientations[leg + 2, 3],
        )
        ankle = (ankles[k, 0], ankles[k, 1], ankles[k, 2])
        goal = track_foot(foot, ankle, orientation, contact, may_step, parameters, dt)
        squared_distance = (goal[0] - positions[leg, 0]) ** 2 + (goal[1] - positions[leg, 1]) ** 2
        if squared_distance < max_leg_length * max_leg_length:
            pelvis_drop = max(
                pelvis_drop, positions[leg, 2] - goal[2] - math.sqrt(max_leg_length * max_leg_length - squared_distance)
            )
        for i in range(3):
            goals[k, i] = goal[i]
    if pelvis_drop > 0.0:
        positions[:, 2] -= pelvis_drop
    solve_two_bone_ik(offsets, positions, orientations, LEFT_LEG, (goals[0, 0], goals[0, 1], goals[0, 2]))
    solve_two_bone_ik(offsets, positions, orientations, RIGHT_LEG, (goals[1, 0], goals[1, 1], goals[1, 2]))


_ANKLES = np.array(FEET)
FADE_DURATION = 0.35
"""Duration of the blend from one clip to another [s]."""


@dataclass(frozen=True, slots=True)
class HandReach:
    """Target of a hand.

    Attributes:
        hand: "left" or "right".
        target: Position (3,) in the world [m].
        lean: Lean of the trunk with which the hand reaches it.
    """

    hand: str
    target: Array
    lean: TrunkLean


class AnimationPlayer:
    """Animates a skeleton by clips.

    Args:
        skeleton: Of the person.
        clip: First clip.
        pose: Initial x, y and yaw of the point between the feet [m, rad].

    Attributes:
        clip: The present clip.
        phase: Phase of the clip [periods]; the owner advances it.
        pose: x, y and yaw [m, rad]; the owner changes it.
        reach: Target of a hand during the clip; None without one.
    """

    def __init__(self, skeleton: Skeleton, clip: AnimationClip, pose: tuple[float, float, float]) -> None:
        expect_kernels(blend_poses, place_in_world, sample_clip, lock_feet, solve_two_bone_ik, compute_part_poses)
        self.skeleton, self.clip, self.phase = skeleton, clip, 0.0
        self.pose = pose
        self.reach: HandReach | None = None
        self._fade_progress = 1.0
        self._fade_start_pose = clip.pose_at(0.0)
        self._foot_states = make_foot_states()
        self._foot_lock_walking = FootLockParameters(self.height, MAX_FOOT_OFFSET_WALKING * self.height)
        self._foot_lock_standing = FootLockParameters(self.height, MAX_FOOT_OFFSET_STANDING * self.height)

    @property
    def height(self) -> float:
        """Stature [m]."""
        return self.skeleton.dimensions.height

    def play(self, clip: AnimationClip, phase: float = 0.0) -> None:
        """Start to blend into another clip."""
        self._fade_start_pose = self._blend_clips()
        self._fade_progress, self.clip, self.phase, self.reach = 0.0, clip, phase, None

    def play_from_end(self, clip: AnimationClip) -> None:
        """Start to blend into another clip at the end of one; its displacement becomes part of the pose."""
        x, y, yaw = self.pose
        displacement = np.array([self.clip.root[-1, 0], self.clip.root[-1, 1], 0.0])
        forward, leftward = self.height * float(displacement[0]), self.height * float(displacement[1])
        c, s = math.cos(yaw), math.sin(yaw)
        self.play(clip)
        self._fade_start_pose = (self._fade_start_pose[0] - displacement, self._fade_start_pose[1])
        self.pose = (x + c * forward - s * leftward, y + s * forward + c * leftward, yaw)

    def set_pose(self, pose: tuple[float, float, float]) -> None:
        """Move to another pose instantly, without a blend; the feet are free."""
        self.pose, self._fade_progress = pose, 1.0
        self._foot_states = make_foot_states()

    def plan_reach(self, clip: AnimationClip, target: Array, hand: str) -> tuple[HandReach, float]:
        """Return how a clip reaches a target from the present pose, and the remaining distance [m]."""
        reach_phase = 0.5 * (clip.reach_interval[0] + clip.reach_interval[1])
        root, rotations = self._place_in_world(*clip.pose_at(reach_phase))
        lean, position_error = find_trunk_lean(self.skeleton, root, rotations, target, hand)
        return HandReach(hand, target, lean), position_error

    def update(self, dt: float) -> tuple[Array, Array]:
        """Advance by ``dt`` [s]; return positions (17, 3) [m] and orientations (17, 4) of the parts in the world."""
        self._fade_progress = min(self._fade_progress + dt / FADE_DURATION, 1.0)
        root, rotations = self._place_in_world(*self._blend_clips())
        positions, orientations = self.skeleton.compute_part_poses(root, rotations)
        ankles = positions[_ANKLES]
        reach_progress = self._compute_reach_progress()
        if self.reach is not None and reach_progress > 0.0:
            foot_orientations = [orientations[foot].copy() for foot in FEET]
            positions, orientations = self.skeleton.compute_part_poses(
                *self.reach.lean.apply(root, rotations, self.height, reach_progress)
            )
            for foot, orientation in zip(FEET, foot_orientations, strict=True):
                orientations[foot] = orientation
        left_contact, right_contact = self.clip.foot_contacts_at(self.phase)
        is_moving = bool(self.clip.travel_per_period or self.clip.yaw_per_period)
        lock_feet(
            self.skeleton.offsets,
            positions,
            orientations,
            ankles,
            self._foot_states,
            FootContacts(left_contact, right_contact, self._fade_progress > 0.5, self._fade_progress >= 1.0),
            self._foot_lock_walking if is_moving else self._foot_lock_standing,
            dt,
        )
        if self.reach is not None and reach_progress > 0.0:
            limb = LEFT_ARM if self.reach.hand == "left" else RIGHT_ARM
            wrist_target = compute_wrist_position(self.reach.target, orientations[limb + 2], self.height)
            wrist_position = positions[limb + 2]
            solve_two_bone_ik(
                self.skeleton.offsets,
                positions,
                orientations,
                limb,
                _to_tuple(wrist_position + reach_progress * (wrist_target - wrist_position)),
            )
        return positions, orientations

    def grip_position(self, positions: Array, orientations: Array, hand: str) -> Array:
        """Return the grip position (3,) of a hand in a pose of the parts [m]."""
        hand_index = (LEFT_ARM if hand == "left" else RIGHT_ARM) + 2
        return compute_grip_position(positions[hand_index], orientations[hand_index], self.height)

    def foot_contacts(self) -> tuple[int, int]:
        """Return the contacts of the left and the right foot with the ground (see `clip`)."""
        left, right = self._foot_states[:, FOOT_CONTACT].tolist()
        return int(left), int(right)

    # -- inside --------------------------------------------------------------------------------------------------------
    def _blend_clips(self) -> tuple[Array, Array]:
        """Return the clip's pose, blended with the last clip's while it fades in."""
        root, rotations = self.clip.pose_at(self.phase)
        if self._fade_progress >= 1.0:
            return root, rotations
        u = self._fade_progress
        return blend_poses(*self._fade_start_pose, root, rotations, u * u * (3.0 - 2.0 * u))

    def _place_in_world(self, root: Array, rotations: Array) -> tuple[Array, Array]:
        """Transform a pose of stature 1 from the clip's frame into the world."""
        return place_in_world(root, rotations, *self.pose, self.height)

    def _compute_reach_progress(self) -> float:
        """Return the fraction of the reach at the present phase, 1 at the target."""
        if self.reach is None:
            return 0.0
        start, end = self.clip.reach_interval
        u = self.phase / start if self.phase < start else (1.0 - self.phase) / max(1.0 - end, 1e-9)
        u = min(max(u, 0.0), 1.0)
        return u**3 * (10.0 - 15.0 * u + 6.0 * u**2)

    # -- state ---------------------------------------------------------------------------------------------------------
    def save_state(self) -> dict[str, Any]:
        """Return the state as plain data, without the clip, which the owner stores by name."""
        reach = self.reach
        return {
            "phase": self.phase, "pose": list(self.pose), "fade_progress": self._fade_progress,
            "fade_start_pose": [self._fade_start_pose[0].tolist(), self._fade_start_pose[1].tolist()],
            "foot_states": self._foot_states.tolist(),
            "reach": None if reach is None else
            [reach.hand, reach.target.tolist(), reach.lean.pitch, reach.lean.yaw, reach.lean.pelvis_drop],
        }  # fmt: skip

    def load_state(self, saved: dict[str, Any], clip: AnimationClip) -> None:
        """Restore the state that `save_state` returned."""
        self.clip, self.phase, self._fade_progress = clip, float(saved["phase"]), float(saved["fade_progress"])
        x, y, yaw = saved["pose"]
        self.pose = (x, y, yaw)
        self._fade_start_pose = (
            np.array(saved["fade_start_pose"][0], float),
            np.array(saved["fade_start_pose"][1], float),
        )
        self._foot_states[:] = saved["foot_states"]
        self.reach = None
        if saved["reach"] is not None:
            hand, target, pitch, yaw, drop = saved["reach"]
            self.reach = HandReach(hand, np.array(target, float), TrunkLean(pitch, yaw, drop))


def _to_tuple(v: Array) -> tuple[float, float, float]:
    x, y, z = v.tolist()
    return x, y, z
