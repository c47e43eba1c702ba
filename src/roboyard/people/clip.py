"""Animation clips: a sampled motion of the skeleton, for people of any stature."""

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
from roboyard.people.anthropometry import ANKLE_HEIGHT, BODY_MASS_INDEX, BodyDimensions
from roboyard.people.skeleton import PARENTS, PART_INDEX, PARTS, Skeleton, compute_part_poses

Hand = Literal["left", "right"]

UNIT_SKELETON = Skeleton.from_dimensions(BodyDimensions(1.0, BODY_MASS_INDEX))
"""A skeleton of stature 1: lengths of clips are fractions of the stature."""
FEET = (PART_INDEX["left_foot"], PART_INDEX["right_foot"])
HEEL, BALL, TOE = (-0.030, 0.0, -ANKLE_HEIGHT), (0.085, 0.0, -ANKLE_HEIGHT), (0.110, 0.0, -ANKLE_HEIGHT)
"""Points of the sole in the foot's frame."""
LIFTED, HEEL_DOWN, BALL_DOWN = -1, 0, 1
"""Contact of a foot with the ground: none, by the heel, by the ball."""
_MAX_CONTACT_HEIGHT = 0.03
"""Height below which a point of the sole may be in contact with the ground [statures]."""
_CONTACT_SPEED_FRACTION, _MIN_CONTACT_SPEED, _MAX_CONTACT_SPEED = 0.2, 0.06, 0.45
"""A point in contact is slower than this fraction of the feet's fast motion, within these bounds [statures/s]."""


@dataclass(frozen=True, slots=True, eq=False)
class AnimationClip:
    """A motion, sampled evenly.

    Lengths are fractions of the stature.  The origin of the clip's frame is on the ground below the person, x points
    forward; if the motion travels or turns, the frame moves with it at constant velocity.

    Attributes:
        name: Name of the clip.
        root: Position (n, 3) of the pelvis joint.
        rotations: Rotations (n, 17, 4) of the parts relative to their parents, of the pelvis relative to the clip's
            frame.
        foot_contacts: (n, 2) contact of the left and the right foot: `LIFTED`, `HEEL_DOWN`, `BALL_DOWN`.
        period: Duration of one cycle [s].
        loop: Whether the clip repeats without a jump.
        travel_per_period: Distance traveled forward in one cycle.
        yaw_per_period: Rotation in one cycle, counterclockwise [rad].
        reaching_hand: Hand that the clip moves to a target; None if it does not reach.
        reach_interval: Phases (from, to) between which the hand is at the target.
        summary: One line that describes the motion.
    """

    name: str
    root: Array
    rotations: Array
    foot_contacts: NDArray[np.int8]
    period: float
    loop: bool
    travel_per_period: float = 0.0
    yaw_per_period: float = 0.0
    reaching_hand: Hand | None = None
    reach_interval: tuple[float, float] = (0.5, 0.5)
    summary: str = ""

    @property
    def num_frames(self) -> int:
        """Number of samples; in a loop the first sample follows the last."""
        return len(self.root)

    def pose_at(self, phase: float) -> tuple[Array, Array]:
        """Return root (3,) and rotations (17, 4) at a phase; a loop repeats, other clips stay at their ends."""
        return sample_clip(self.root, self.rotations, phase, self.loop)

    def foot_contacts_at(self, phase: float) -> tuple[int, int]:
        """Return the contacts of the left and the right foot at a phase."""
        if self.loop:
            n = int((phase % 1.0) * self.num_frames) % self.num_frames
        else:
            n = int(min(max(phase, 0.0), 1.0) * (self.num_frames - 1))
        left, right = self.foot_contacts[n].tolist()
        return left, right


def _example_sample_clip() -> Iterable[tuple[Any, ...]]:
    yield (np.zeros((2, 3)), np.zeros((2, 17, 4)), 0.0, True)


@kernel(examples=_example_sample_clip)
def sample_clip(root: Array, rotations: Array, phase: float, loop: bool) -> tuple[Array, Array]:
    """Return root (3,) and rotations (17, 4) of a clip at a phase, interpolated between two samples."""
    n = root.shape[0]
    if loop:
        x = (phase - math.floor(phase)) * n
        first = min(int(x), n - 1)
        second = (first + 1) % n
    else:
        x = min(max(phase, 0.0), 1.0) * (n - 1)
        first = min(int(x), n - 1)
        second = min(first + 1, n - 1)
    return blend_poses(root[first], rotations[first], root[second], rotations[second], x - first)


def _example_blend_poses() -> Iterable[tuple[Any, ...]]:
    yield (np.zeros(3), np.zeros((17, 4)), np.zeros(3), np.zeros((17, 4)), 0.5)


@kernel(examples=_example_blend_poses)
def blend_poses(
    root: Array, rotations: Array, other_root: Array, other_rotations: Array, fraction: float
) -> tuple[Array, Array]:
    """Return a pose between two, root (3,) and rotations (17, 4), by normalized linear interpolation."""
    blended_root, blended_rotations = np.empty(3), np.empty(rotations.shape)
    for i in range(3):
        blended_root[i] = (1.0 - fraction) * root[i] + fraction * other_root[i]
    for k in range(rotations.shape[0]):
        sign = 0.0
        for i in range(4):
            sign += rotations[k, i] * other_rotations[k, i]
        sign = 1.0 if sign >= 0.0 else -1.0
        length = 0.0
        for i in range(4):
            blended_rotations[k, i] = (1.0 - fraction) * rotations[k, i] + fraction * sign * other_rotations[k, i]
            length += blended_rotations[k, i] * blended_rotations[k, i]
        length = math.sqrt(length)
        for i in range(4):
            blended_rotations[k, i] /= length
    return blended_root, blended_rotations


def _example_place_in_world() -> Iterable[tuple[Any, ...]]:
    yield (np.zeros(3), np.zeros((17, 4)), 0.0, 0.0, 0.0, 1.75)


@kernel(examples=_example_place_in_world)
def place_in_world(root: Array, rotations: Array, x: float, y: float, yaw: float, height: float) -> tuple[Array, Array]:
    """Transform a pose of stature 1 into the world, for a person of that height at (x, y, yaw) [m, rad]."""
    c, s = math.cos(yaw), math.sin(yaw)
    world_root, world_rotations = np.empty(3), rotations.copy()
    world_root[0] = x + height * (c * root[0] - s * root[1])
    world_root[1] = y + height * (s * root[0] + c * root[1])
    world_root[2] = height * root[2]
    yaw_rotation = (math.cos(0.5 * yaw), 0.0, 0.0, math.sin(0.5 * yaw))
    world_rotations[0] = multiply(yaw_rotation, (rotations[0, 0], rotations[0, 1], rotations[0, 2], rotations[0, 3]))
    return world_root, world_rotations


def sole_points(root: Array, rotations: Array) -> Array:
    """Return the positions (n, 2, 2, 3) of heel and ball of both feet in each sample, for stature 1."""
    from roboyard.geometry import quaternions

    points = np.empty((len(root), 2, 2, 3))
    for n in range(len(root)):
        positions, orientations = compute_part_poses(UNIT_SKELETON.offsets, PARENTS, root[n], rotations[n])
        for f, foot in enumerate(FEET):
            points[n, f] = positions[foot] + quaternions.rotate(orientations[foot], np.array([HEEL, BALL]))
    return points


def put_on_ground(root: Array, rotations: Array, *, in_each_frame: bool) -> Array:
    """Return the roots (n, 3), raised or lowered so that the soles are on the ground.

    Args:
        root: (n, 3).
        rotations: (n, 17, 4).
        in_each_frame: In each sample the lower foot is on the ground; otherwise only in the lowest sample.
    """
    min_heights = sole_points(root, rotations)[..., 2].min(axis=(1, 2))
    raised = root.copy()
    raised[:, 2] -= min_heights if in_each_frame else min_heights.min()
    return raised


def find_foot_contacts(
    root: Array, rotations: Array, period: float, loop: bool, travel_per_period: float = 0.0
) -> NDArray[np.int8]:
    """Find the contacts (n, 2) of the feet: the slower of the points of the sole that are near the ground.

    Args:
        root: (n, 3) in the clip's frame.
        rotations: (n, 17, 4).
        period: Period of the clip [s].
        loop: Whether the first sample follows the last.
        travel_per_period: Distance that the clip's frame travels in a period.
    """
    n = len(root)
    points = sole_points(root, rotations)
    step = period / (n if loop else max(n - 1, 1))
    points[..., 0] += (travel_per_period * np.arange(n) / (n if loop else max(n - 1, 1)))[:, None, None]
    if loop:
        next_points, previous_points = np.roll(points, -1, axis=0), np.roll(points, 1, axis=0)
        next_points[-1, ..., 0] += travel_per_period
        previous_points[0, ..., 0] -= travel_per_period
        speed = np.linalg.norm(next_points - previous_points, axis=-1) / (2.0 * step)
    else:
        speed = np.linalg.norm(np.gradient(points, axis=0), axis=-1) / step if n > 1 else np.zeros(points.shape[:-1])
    max_speed = min(
        max(_CONTACT_SPEED_FRACTION * float(np.quantile(speed, 0.95)), _MIN_CONTACT_SPEED), _MAX_CONTACT_SPEED
    )
    is_candidate = (points[..., 2] < _MAX_CONTACT_HEIGHT) & (speed < max_speed)
    foot_contacts = np.full((n, 2), LIFTED, np.int8)
    min_speed_point = speed.argmin(axis=-1)
    for f in range(2):
        for k in range(n):
            choices = np.flatnonzero(is_candidate[k, f])
            if len(choices):
                foot_contacts[k, f] = min_speed_point[k, f] if is_candidate[k, f, min_speed_point[k, f]] else choices[0]
    return foot_contacts


def measure_foot_slip(clip: AnimationClip) -> list[float]:
    """Return how far the sole slides in each stance, in the order of the stances [statures]."""
    points = sole_points(clip.root, clip.rotations)
    phases = np.arange(clip.num_frames) / (clip.num_frames if clip.loop else max(clip.num_frames - 1, 1))
    c, s = np.cos(clip.yaw_per_period * phases)[:, None, None], np.sin(clip.yaw_per_period * phases)[:, None, None]
    x = c * points[..., 0] - s * points[..., 1] + (clip.travel_per_period * phases)[:, None, None]
    y = s * points[..., 0] + c * points[..., 1]
    ground_points = np.stack([x, y], axis=-1)
    slips = []
    for f in range(2):
        ends = np.flatnonzero(np.diff(clip.foot_contacts[:, f])) + 1
        for stance_frames in np.split(np.arange(clip.num_frames), ends):
            contact = clip.foot_contacts[stance_frames[0], f]
            if contact != LIFTED:
                contact_points = ground_points[stance_frames, f, contact]
                slips.append(
                    (int(stance_frames[0]), float(np.linalg.norm(contact_points - contact_points[0], axis=1).max()))
                )
    return [slip for _, slip in sorted(slips)]


def identity_rotations(n: int) -> Array:
    """Return the rotations (n, 17, 4) of the rest pose."""
    rotations = np.zeros((n, len(PARTS), 4))
    rotations[..., 0] = 1.0
    return rotations
