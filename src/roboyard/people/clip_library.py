"""Finds animation clips by name or file: the built-in clips, keyframes in YAML, BVH and COLLADA.

A file with keyframes:

```yaml
summary: Waving with the right hand
period: 2.4 s
keyframes:
  - {phase: 0.0}
  - phase: 0.3
    pose: {right_upper_arm: [-150, -20, 0], right_forearm: [0, -30, 0]}
  - {phase: 1.0}
```

The three numbers of a part are its roll, pitch and yaw in degrees about x (forward), y (left) and z (up), relative to
its parent part; with all angles 0 a person stands upright with hanging arms.  A pitch of -90 raises an arm forward, a
roll of 90 raises the left arm sideways.  Parts that a keyframe does not name are in the rest pose, or move as in the
clip ``base_clip``.  Between keyframes the rotations are interpolated smoothly.  The lower foot is on the ground.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cache
from itertools import pairwise
from pathlib import Path
from typing import Annotated

import numpy as np
from numpy.typing import NDArray

from roboyard.config import ValueConstraint, load, parameter
from roboyard.errors import ConfigError, InputError, UnknownNameError
from roboyard.geometry import quaternions
from roboyard.geometry.arrays import Array
from roboyard.people.anthropometry import HIP_HEIGHT
from roboyard.people.clip import AnimationClip, Hand, find_foot_contacts, identity_rotations, put_on_ground
from roboyard.people.procedural_gait import make_turning_clip, make_walk_clip
from roboyard.people.skeleton import PART_INDEX, PARTS

CLIP_FOLDER = Path(__file__).with_name("clips")
CLIP_SUFFIXES = (".yaml", ".yml", ".bvh", ".dae")
_PROCEDURAL_CLIPS = {"walk": make_walk_clip, "turn": make_turning_clip}


def builtin_clip_names() -> tuple[str, ...]:
    """Return the names of the built-in clips."""
    return tuple(sorted([*_PROCEDURAL_CLIPS, *(path.stem for path in CLIP_FOLDER.glob("*.yaml"))]))


@cache
def load_builtin_clip(name: str) -> AnimationClip:
    """Return a built-in clip. Raises UnknownNameError."""
    if name in _PROCEDURAL_CLIPS:
        return _PROCEDURAL_CLIPS[name]()
    if name not in builtin_clip_names():
        raise UnknownNameError(
            f"no clip {name!r}", valid=f"{', '.join(builtin_clip_names())}, or a file {'|'.join(CLIP_SUFFIXES)}"
        )
    return read_clip(CLIP_FOLDER / f"{name}.yaml")


def read_clip(path: Path) -> AnimationClip:
    """Read the clip of a file: keyframes in YAML, BVH, or COLLADA; the clip has the name of the file.

    Raises:
        InputError and its kinds: The file does not exist, is of another kind, or is damaged.
    """
    suffix = path.suffix.lower()
    if suffix not in CLIP_SUFFIXES:
        raise InputError(
            f"{path.name!r} is not the file of a clip", valid=f"a name that ends in {', '.join(CLIP_SUFFIXES)}"
        )
    if not path.is_file():
        raise InputError(f"there is no file {path}", valid="the file of a clip")
    if suffix in (".yaml", ".yml"):
        return read_keyframe_clip(path, {name: make() for name, make in _PROCEDURAL_CLIPS.items()})
    from roboyard.people.retargeting import retarget_motion

    if suffix == ".bvh":
        from roboyard.people.motion_files import read_bvh

        return retarget_motion(read_bvh(path), path.stem)
    from roboyard.people.motion_files import read_collada_motion

    return retarget_motion(read_collada_motion(path), path.stem)


def find_clip(name: str, base: Path | None = None) -> AnimationClip:
    """Return a clip by its name or the path of its file.

    Args:
        name: One of `builtin_clip_names`, or a path.
        base: Folder in which relative paths are searched first.

    Raises:
        InputError and its kinds: There is no such clip, or its file is damaged.
    """
    if Path(name).suffix.lower() in CLIP_SUFFIXES:
        local = (base or Path()) / name
        return read_clip(local if local.is_file() else Path(name))
    return load_builtin_clip(name)


SAMPLE_RATE = 50.0
"""Sample rate of clips from keyframes [Hz]."""
_Angles = Annotated[tuple[float, float, float], ValueConstraint(low=-360.0, high=360.0)]
_PhaseInterval = Annotated[tuple[float, float], ValueConstraint(low=0.0, high=1.0)]


@dataclass(frozen=True)
class Keyframe:
    """A pose at a phase of a clip."""

    phase: float = parameter(low=0.0, high=1.0, doc="fraction of the period")
    pose: dict[str, _Angles] = parameter({}, doc="roll, pitch and yaw of parts [deg]")
    pelvis_offset: tuple[float, float] = parameter(
        (0.0, 0.0), low=-1.0, high=1.0, doc="offset of the pelvis forward and to the left [statures]"
    )


@dataclass(frozen=True)
class KeyframeClip:
    """A file of keyframes."""

    period: float = parameter(unit="s", low=0.1, high=120.0, doc="duration of one cycle")
    keyframes: tuple[Keyframe, ...] = parameter(
        doc="keyframes in the order of time; the first at phase 0, the last at 1"
    )
    loop: bool = parameter(False, doc="whether the clip repeats")
    base_clip: str | None = parameter(
        None, doc="clip for the parts without keyframes: walk or turn; its period is used"
    )
    reaching_hand: Hand | None = parameter(None, doc="hand that reaches for a target")
    reach_interval: _PhaseInterval = parameter((0.5, 0.5), doc="phases between which the hand is at the target")
    summary: str = parameter("", doc="one line")

    def __post_init__(self) -> None:
        phases = [keyframe.phase for keyframe in self.keyframes]
        if len(phases) < 2 or phases[0] != 0.0 or phases[-1] != 1.0 or any(b <= a for a, b in pairwise(phases)):
            raise ConfigError(
                f"the phases of the keyframes are {phases}", valid="at least two phases, increasing from 0 to 1"
            )
        for keyframe in self.keyframes:
            for part in keyframe.pose:
                if part not in PART_INDEX:
                    raise ConfigError(f"no part {part!r} of the body", valid=", ".join(PARTS))
        if self.reach_interval[0] > self.reach_interval[1]:
            raise ConfigError(
                f"reach_interval from {self.reach_interval[0]:g} to {self.reach_interval[1]:g}",
                valid="the smaller phase first",
            )


def read_keyframe_clip(path: Path, base_clips: dict[str, AnimationClip]) -> AnimationClip:
    """Read a clip of keyframes; its name is that of the file.

    Args:
        path: The file.
        base_clips: Clips that `base_clip` may name.

    Raises:
        ConfigError: The file is invalid; with file and line.
    """
    keyframe_clip = load(KeyframeClip, path)
    if keyframe_clip.base_clip is not None and keyframe_clip.base_clip not in base_clips:
        raise ConfigError(
            f"{keyframe_clip.base_clip!r} is not a base clip",
            location=f"{path}, base_clip",
            valid=", ".join(base_clips),
        )
    return make_keyframe_clip(
        path.stem, keyframe_clip, base_clips[keyframe_clip.base_clip] if keyframe_clip.base_clip else None
    )


def make_keyframe_clip(name: str, keyframe_clip: KeyframeClip, base_clip: AnimationClip | None = None) -> AnimationClip:
    """Return the clip that keyframes describe."""
    period = keyframe_clip.period if base_clip is None else base_clip.period
    n = base_clip.num_frames if base_clip else max(round(period * SAMPLE_RATE), 2)
    phases = np.arange(n) / (n if keyframe_clip.loop or base_clip else n - 1)
    rotations = identity_rotations(n) if base_clip is None else base_clip.rotations.copy()
    root = np.tile([0.0, 0.0, HIP_HEIGHT], (n, 1)) if base_clip is None else base_clip.root.copy()
    animated_parts = list(dict.fromkeys(part for keyframe in keyframe_clip.keyframes for part in keyframe.pose))
    keyframe_phases = np.array([keyframe.phase for keyframe in keyframe_clip.keyframes])
    for part in animated_parts:
        angles = np.radians([keyframe.pose.get(part, (0.0, 0.0, 0.0)) for keyframe in keyframe_clip.keyframes])
        rotations[:, PART_INDEX[part]] = _interpolate_rotations(keyframe_phases, quaternions.from_rpy(angles), phases)
    if base_clip is not None:
        return replace(base_clip, name=name, rotations=rotations, summary=keyframe_clip.summary)
    k, u = _locate_phases(keyframe_phases, phases)
    pelvis_offsets = np.array([keyframe.pelvis_offset for keyframe in keyframe_clip.keyframes])
    root[:, :2] = pelvis_offsets[k] + u[:, None] * (pelvis_offsets[k + 1] - pelvis_offsets[k])
    root = put_on_ground(root, rotations, in_each_frame=True)
    foot_contacts = find_foot_contacts(root, rotations, period, keyframe_clip.loop)
    return AnimationClip(
        name,
        root,
        rotations,
        foot_contacts,
        period,
        keyframe_clip.loop,
        reaching_hand=keyframe_clip.reaching_hand,
        reach_interval=keyframe_clip.reach_interval,
        summary=keyframe_clip.summary,
    )


def _locate_phases(keyframe_phases: Array, phases: Array) -> tuple[NDArray[np.intp], Array]:
    """Return the index of the keyframe before each phase, and the smoothed fraction of the interval to the next."""
    k = np.clip(np.searchsorted(keyframe_phases, phases, side="right") - 1, 0, len(keyframe_phases) - 2)
    u = np.clip((phases - keyframe_phases[k]) / (keyframe_phases[k + 1] - keyframe_phases[k]), 0.0, 1.0)
    return k, u**3 * (10.0 - 15.0 * u + 6.0 * u**2)


def _interpolate_rotations(keyframe_phases: Array, keyframe_rotations: Array, phases: Array) -> Array:
    """Return rotations (n, 4) interpolated between the keyframes."""
    k, u = _locate_phases(keyframe_phases, phases)
    return quaternions.slerp(keyframe_rotations[k], keyframe_rotations[k + 1], u)
