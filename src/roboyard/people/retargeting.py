"""Transfers recorded motion to the skeleton.

Only the positions of joints are used, not how a file names its axes, scales its bones or defines its rest pose: each
body part is rotated to the direction of the recorded bone by the shortest rotation from its parent; hips and
shoulders give the rotation of the trunk. Joint names are those of the CMU database, of Mixamo, of Blender's rigs and
similar ones; see `match_joints_to_parts`.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from itertools import pairwise

import numpy as np

from roboyard.errors import DescriptionError, InputError
from roboyard.geometry import quaternions
from roboyard.geometry.arrays import Array
from roboyard.people.clip import (
    BALL,
    UNIT_SKELETON,
    AnimationClip,
    find_foot_contacts,
    identity_rotations,
    put_on_ground,
)
from roboyard.people.motion_files import END_SUFFIX, RecordedMotion
from roboyard.people.skeleton import PARENTS, PART_INDEX, PARTS

# Words in names of joints, the most probable first; sides, prefixes and separators are removed before.
_LIMB_WORDS: dict[str, tuple[str, ...]] = {
    "thigh": ("upleg", "thigh", "upperleg", "hip", "femur"),
    "shank": ("leg", "shank", "knee", "shin", "calf", "lowerleg", "lowleg", "tibia"),
    "foot": ("foot", "ankle"),
    "toe": ("toebase", "toe", "toes", "ball"),
    "upper_arm": ("arm", "upperarm", "uparm", "humerus", "shoulder"),
    "forearm": ("forearm", "elbow", "lowerarm", "lowarm", "radius"),
    "hand": ("hand", "wrist"),
    "fingers": ("fingerbase", "handmiddle1", "handindex1", "handend", "fingers", "middle1", "middle01"),
}
_TRUNK_WORDS: dict[str, tuple[str, ...]] = {"neck": ("neck", "lowerneck", "neck1", "neck01"), "head": ("head",)}
LIMBS = (("thigh", "shank", "foot"), ("upper_arm", "forearm", "hand"))
REQUIRED_PARTS = (*(f"{side}_{part}" for side in ("left", "right") for limb in LIMBS for part in limb), "neck", "head")
SEAM_FRACTION = 0.15
"""Fraction of a cycle over which the end of a loop is blended into its start."""
_MIN_TRAVEL = 0.25
"""Distance between start and end above which a clip travels [statures]."""


def match_joints_to_parts(motion: RecordedMotion, joint_names: Mapping[str, str] | None = None) -> dict[str, int]:
    """Return the index of the joint for each part of the skeleton, and for toes and fingers if the file has them.

    Args:
        motion: Motion with the names of its joints.
        joint_names: Names of joints by part, where they differ from the known ones.

    Raises:
        DescriptionError: A joint is missing, or two parts share one; the message lists the joints.
    """
    joint_indices = {name: k for k, name in enumerate(motion.names)}
    normalized_names = {name: _normalize_joint_name(name) for name in motion.names if not name.endswith(END_SUFFIX)}
    found: dict[str, int] = {}
    for part, name in (joint_names or {}).items():
        if name not in joint_indices:
            raise DescriptionError(
                f"no joint {name!r} for {part}", location=motion.source, valid=_list_joint_names(motion)
            )
        found[part] = joint_indices[name]
    for part in REQUIRED_PARTS + tuple(f"{side}_{end}" for side in ("left", "right") for end in ("toe", "fingers")):
        if part in found:
            continue
        side, _, limb = part.partition("_") if part not in _TRUNK_WORDS else ("", "", part)
        words = _LIMB_WORDS.get(limb, ()) + _TRUNK_WORDS.get(part, ())
        for word in words:
            matches = [
                joint_indices[name]
                for name, normalized_name in normalized_names.items()
                if normalized_name == (side, word)
            ]
            unused = [k for k in matches if k not in found.values()]
            if unused:
                found[part] = unused[0]
                break
        else:
            if part in REQUIRED_PARTS:
                raise DescriptionError(
                    f"no joint for the {part.replace('_', ' ')}", location=motion.source,
                    valid=f"a joint named like {', '.join(words)}; the file has {_list_joint_names(motion)}",
                )  # fmt: skip
    _check_chains(motion, found)
    return found


def _list_joint_names(motion: RecordedMotion) -> str:
    names = [name for name in motion.names if not name.endswith(END_SUFFIX)]
    return ", ".join(names[:40]) + (", …" if len(names) > 40 else "")


def _normalize_joint_name(name: str) -> tuple[str, str]:
    """Return the side ("left", "right" or empty) and the rest of a joint's name in lower case."""
    text = name.rpartition(":")[2].replace("mixamorig", "").replace("Bip01", "").replace("Bip001", "")
    text = re.sub(r"[\s_.\-]+", " ", text).strip().lower()
    for side in ("left", "right"):
        short = side[0]
        for pattern in (rf"^{side} ?(.+)$", rf"^(.+?) ?{side}$", rf"^{short} (.+)$", rf"^(.+) {short}$"):
            match = re.match(pattern, text)
            if match:
                return side, match[1].replace(" ", "")
    return "", text.replace(" ", "")


def _check_chains(motion: RecordedMotion, found: Mapping[str, int]) -> None:
    """Raise DescriptionError if the parent of a joint does not belong to its limb."""
    for side in ("left", "right"):
        for limb in LIMBS:
            for upper, lower in pairwise(limb):
                upper_joint, k = found[f"{side}_{upper}"], found[f"{side}_{lower}"]
                while k not in (-1, upper_joint):
                    k = motion.parents[k]
                if k != upper_joint:
                    raise DescriptionError(
                        f"joint {motion.names[found[f'{side}_{lower}']]!r} is not below "
                        f"{motion.names[upper_joint]!r}", location=motion.source, valid="limbs as chains of joints",
                    )  # fmt: skip


@dataclass(frozen=True, slots=True)
class _JointPositions:
    """Positions (n, 3) by part: z up, x forward at the start, lengths in leg lengths."""

    positions: dict[str, Array]

    def direction(self, start: str, end: str) -> Array:
        """Return unit vectors (n, 3) from one part to another."""
        return _normalize(self.positions[end] - self.positions[start])


def retarget_motion(
    motion: RecordedMotion,
    name: str,
    *,
    loop: bool | None = None,
    time_range: tuple[float, float] | None = None,
    joint_names: Mapping[str, str] | None = None,
) -> AnimationClip:
    """Convert a recorded motion into a clip.

    Args:
        motion: The recorded motion.
        name: Name of the clip.
        loop: Whether the clip repeats; None: if it ends in nearly the pose in which it starts.
        time_range: Range (from, to) of the motion [s]; None: all.
        joint_names: Names of joints by part, where they differ from the known ones.

    Raises:
        DescriptionError: Joints are missing, or bones have no length.
        InputError: The time range is empty.
    """
    found = match_joints_to_parts(motion, joint_names)
    first, last = _select_frames(motion, time_range)
    joint_positions = _align_joint_positions(motion, found, first, last)
    n = last - first
    rotations = _compute_rotations(joint_positions)
    root = joint_positions.positions["hips"] * sum(UNIT_SKELETON.leg_lengths)
    root[:, 2] += 1.0 - root[:, 2].min()
    root = put_on_ground(root, rotations, in_each_frame=False)
    period = (n - 1) * motion.frame_time
    if loop is None:
        loop = n > 2 and _mean_angle(rotations[0], rotations[-1]) < 0.35
    travel_per_period = float(root[-1, 0] - root[0, 0])
    travel_per_period = travel_per_period if loop and abs(travel_per_period) > _MIN_TRAVEL else 0.0
    if loop:
        root, rotations = _close_loop(root, rotations, travel_per_period)
    if travel_per_period:
        root[:, 0] -= travel_per_period * np.arange(len(root)) / len(root)
    root[:, :2] -= root[:, :2].mean(axis=0) if loop else root[0, :2]
    foot_contacts = find_foot_contacts(root, rotations, period, loop, travel_per_period)
    summary = f"From {motion.source.rpartition('/')[2]}"
    return AnimationClip(name, root, rotations, foot_contacts, period, loop, travel_per_period, summary=summary)


def _select_frames(motion: RecordedMotion, time_range: tuple[float, float] | None) -> tuple[int, int]:
    n = len(motion.positions)
    start, end = time_range or (0.0, n * motion.frame_time)
    first, last = max(round(start / motion.frame_time), 0), min(round(end / motion.frame_time), n)
    if last - first < 2:
        length = (n - 1) * motion.frame_time
        raise InputError(
            f"a clip from {start:g} to {end:g} s of {motion.source}", valid=f"a part of 0 to {length:.2f} s"
        )
    return first, last


def _align_joint_positions(motion: RecordedMotion, found: Mapping[str, int], first: int, last: int) -> _JointPositions:
    """Return the positions of the joints in the selected frames, in the axes of the skeleton."""
    raw = motion.positions[first:last]
    hips = 0.5 * (raw[:, found["left_thigh"]] + raw[:, found["right_thigh"]])
    up = (raw[:, found["head"]] - 0.5 * (raw[:, found["left_foot"]] + raw[:, found["right_foot"]])).mean(axis=0)
    axis = int(np.abs(up).argmax())
    if up[axis] <= 0.0:
        raise DescriptionError("the head is below the feet", location=motion.source, valid="an axis that points up")
    upright = np.roll(raw, 2 - axis, axis=2)  # cyclic: still right-handed
    hips = np.roll(hips, 2 - axis, axis=1)
    leg_length = np.mean([
        np.linalg.norm(raw[:, found[f"{side}_{b}"]] - raw[:, found[f"{side}_{a}"]], axis=1).mean()
        for side in ("left", "right") for a, b in (("thigh", "shank"), ("shank", "foot"))
    ]) * 2.0  # fmt: skip
    if not leg_length > 1e-6:
        raise DescriptionError("the legs have no length", location=motion.source, valid="offsets between joints")
    leftward = upright[0, found["left_thigh"]] - upright[0, found["right_thigh"]]
    forward = np.array([leftward[1], -leftward[0]])
    displacement = (hips[-1] - hips[0])[:2]
    if np.linalg.norm(displacement) > leg_length and displacement @ forward > 0.0:
        forward = displacement
    forward = forward / max(float(np.linalg.norm(forward)), 1e-12)
    R = np.array([[forward[0], forward[1], 0.0], [-forward[1], forward[0], 0.0], [0.0, 0.0, 1.0]])
    origin = np.array([hips[0, 0], hips[0, 1], 0.0])

    def transform_points(points: Array) -> Array:
        return np.asarray((points - origin) @ R.T / leg_length)

    positions = {part: transform_points(upright[:, k]) for part, k in found.items()}
    positions["hips"] = transform_points(hips)
    for k, joint in enumerate(motion.names):  # ends of bones replace missing toes, fingers and crown
        parent = motion.parents[k]
        if joint.endswith(END_SUFFIX) or (parent == found["head"]):
            for part in ("head", "left_foot", "right_foot", "left_hand", "right_hand"):
                if parent == found[part] and f"{part} end" not in positions:
                    positions[f"{part} end"] = transform_points(upright[:, k])
    return _JointPositions(positions)


def _normalize(v: Array) -> Array:
    return np.asarray(v / np.maximum(np.linalg.norm(v, axis=-1, keepdims=True), 1e-12))


def _make_orientations(leftward: Array, up: Array) -> Array:
    """Return orientations (n, 4) with z along ``up``, and y along the part of ``leftward`` perpendicular to it."""
    z = _normalize(up)
    x = _normalize(np.cross(leftward, z))
    return quaternions.from_matrix(np.stack([x, np.cross(z, x), z], axis=-1))


def _rotate_to_direction(orientations: Array, local_direction: Array, direction: Array) -> Array:
    """Rotate ``orientations`` (n, 4) by the smallest angle so that ``local_direction`` points along ``direction``."""
    current_direction = quaternions.rotate(orientations, local_direction)
    w = 1.0 + (current_direction * direction).sum(axis=1, keepdims=True)
    axis = np.cross(current_direction, direction)
    perpendicular = np.cross(
        current_direction, np.where(np.abs(current_direction[:, :1]) < 0.9, [1.0, 0.0, 0.0], [0.0, 1.0, 0.0])
    )
    is_opposite = w < 1e-9
    q = np.concatenate([np.where(is_opposite, 0.0, w), np.where(is_opposite, perpendicular, axis)], axis=1)
    return quaternions.multiply(_normalize(q), orientations)


def _compute_rotations(joint_positions: _JointPositions) -> Array:
    """Return the rotations (n, 17, 4) of the parts relative to their parents."""
    p = joint_positions.positions
    n = len(p["hips"])
    orientations = identity_rotations(n)
    up = _normalize(p["neck"] - p["hips"])
    pelvis = _make_orientations(p["left_thigh"] - p["right_thigh"], up)
    chest = _make_orientations(p["left_upper_arm"] - p["right_upper_arm"], up)
    orientations[:, PART_INDEX["pelvis"]], orientations[:, PART_INDEX["chest"]] = pelvis, chest
    orientations[:, PART_INDEX["abdomen"]] = quaternions.slerp(pelvis, chest, np.full(n, 0.5))
    orientations[:, PART_INDEX["neck"]] = _rotate_to_direction(
        chest, _normalize(UNIT_SKELETON.offsets[PART_INDEX["head"]]), joint_positions.direction("neck", "head")
    )
    crown = joint_positions.direction("head", "head end") if "head end" in p else None
    local_up = np.array([0.0, 0.0, 1.0])
    orientations[:, PART_INDEX["head"]] = (
        orientations[:, PART_INDEX["neck"]]
        if crown is None
        else _remove_head_tilt(_rotate_to_direction(chest, local_up, crown), chest)
    )
    down = np.array([0.0, 0.0, -1.0])
    for side in ("left", "right"):
        thigh = _rotate_to_direction(pelvis, down, joint_positions.direction(f"{side}_thigh", f"{side}_shank"))
        shank = _rotate_to_direction(thigh, down, joint_positions.direction(f"{side}_shank", f"{side}_foot"))
        arm = _rotate_to_direction(chest, down, joint_positions.direction(f"{side}_upper_arm", f"{side}_forearm"))
        forearm = _rotate_to_direction(arm, down, joint_positions.direction(f"{side}_forearm", f"{side}_hand"))
        orientations[:, PART_INDEX[f"{side}_thigh"]], orientations[:, PART_INDEX[f"{side}_shank"]] = thigh, shank
        orientations[:, PART_INDEX[f"{side}_upper_arm"]], orientations[:, PART_INDEX[f"{side}_forearm"]] = arm, forearm
        orientations[:, PART_INDEX[f"{side}_foot"]] = _foot_orientations(p, side, shank)
        fingers = next((key for key in (f"{side}_fingers", f"{side}_hand end") if key in p), None)
        tip = _normalize(p[fingers] - p[f"{side}_hand"]) if fingers else None
        has_direction = tip is not None and np.linalg.norm(p[str(fingers)] - p[f"{side}_hand"], axis=1).min() > 1e-6
        orientations[:, PART_INDEX[f"{side}_hand"]] = (
            _rotate_to_direction(forearm, down, tip) if has_direction and tip is not None else forearm
        )
    rotations = orientations.copy()
    for k in range(1, len(PARTS)):
        rotations[:, k] = quaternions.multiply(quaternions.conjugate(orientations[:, PARENTS[k]]), orientations[:, k])
    return rotations


def _remove_head_tilt(head: Array, chest: Array) -> Array:
    """Remove the constant tilt of the head relative to the chest, which depends on the position of the crown marker."""
    relative = quaternions.multiply(quaternions.conjugate(chest), head)
    median_tilt = quaternions.normalize(np.median(relative * np.sign(relative[:, :1]), axis=0))
    return quaternions.multiply(head, np.broadcast_to(quaternions.conjugate(median_tilt), head.shape))


def _foot_orientations(p: Mapping[str, Array], side: str, shank: Array) -> Array:
    """Return orientations (n, 4) of a foot; while the foot is flat, its slope is that of the skeleton's foot."""
    toe = next((p[key] for key in (f"{side}_toe", f"{side}_foot end") if key in p), None)
    if toe is None:
        return shank
    direction = _normalize(toe - p[f"{side}_foot"])
    height = p[f"{side}_foot"][:, 2] + toe[:, 2]
    is_flat = height <= np.quantile(height, 0.2)
    slope = float(np.median(np.arcsin(np.clip(direction[is_flat, 2], -1.0, 1.0))))
    skeleton_slope = np.arctan2(BALL[2], BALL[0])
    local_direction = np.array([np.cos(slope), 0.0, np.sin(slope)])
    if abs(slope - skeleton_slope) > 1.3:  # the foot is never flat: the slope of the skeleton's foot
        local_direction = _normalize(np.array(BALL))
    return _rotate_to_direction(shank, local_direction, direction)


def _mean_angle(one: Array, other: Array) -> float:
    """Return the mean angle between the parts of two poses [rad]."""
    cosines = np.abs((one * other).sum(axis=-1))
    return float(np.mean(2.0 * np.arccos(np.clip(cosines, 0.0, 1.0))))


def _close_loop(root: Array, rotations: Array, travel_per_period: float) -> tuple[Array, Array]:
    """Remove the last sample, which repeats the first; their difference is distributed over the end."""
    n = len(root)
    k = max(round(SEAM_FRACTION * n), 1)
    weights = np.zeros(n)
    weights[n - k :] = np.linspace(0.0, 1.0, k + 1)[1:]
    weights = weights * weights * (3.0 - 2.0 * weights)
    gap = root[0] - root[-1] + np.array([travel_per_period, 0.0, 0.0])
    root = root + weights[:, None] * gap
    first = np.broadcast_to(rotations[0], rotations.shape)
    delta = quaternions.multiply(quaternions.conjugate(rotations[-1]), rotations[0])
    correction = quaternions.slerp(identity_rotations(1)[0], delta, np.ones(len(PARTS)))
    part_weights = np.broadcast_to(weights[:, None], rotations.shape[:2])
    weighted_correction = quaternions.slerp(
        np.broadcast_to(identity_rotations(1), first.shape), np.broadcast_to(correction, first.shape), part_weights
    )
    rotations = quaternions.multiply(rotations, weighted_correction)
    return root[:-1], rotations[:-1]
