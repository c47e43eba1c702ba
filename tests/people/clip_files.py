"""Writes clips as BVH and COLLADA files, as other programs do, for tests that read them again."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from roboyard.geometry import quaternions
from roboyard.people.clip import UNIT_SKELETON, AnimationClip
from roboyard.people.skeleton import PARENTS, PART_INDEX, PARTS

Array = NDArray[np.float64]
CMU = {
    "pelvis": "Hips", "abdomen": "LowerBack", "chest": "Spine", "neck": "Neck", "head": "Head",
    "left_upper_arm": "LeftArm", "left_forearm": "LeftForeArm", "left_hand": "LeftHand",
    "right_upper_arm": "RightArm", "right_forearm": "RightForeArm", "right_hand": "RightHand",
    "left_thigh": "LeftUpLeg", "left_shank": "LeftLeg", "left_foot": "LeftFoot",
    "right_thigh": "RightUpLeg", "right_shank": "RightLeg", "right_foot": "RightFoot",
}  # fmt: skip
MIXAMO = {part: f"mixamorig:{name}" for part, name in CMU.items()}
BLENDER = {part: part for part in PARTS}
for _side in ("left", "right"):
    BLENDER |= {
        part: f"{part.removeprefix(_side + '_')}.{_side[0].upper()}" for part in PARTS if part.startswith(_side)
    }
ENDS = {"left_foot": (0.11, 0.0, -0.035), "right_foot": (0.11, 0.0, -0.035), "left_hand": (0.0, 0.0, -0.1),
        "right_hand": (0.0, 0.0, -0.1), "head": (0.0, 0.0, 0.1)}  # fmt: skip
# y up, z ahead, x left: the axes of most motion capture
R_FILE_WORLD = np.array([[0.0, 1.0, 0.0], [0.0, 0.0, 1.0], [1.0, 0.0, 0.0]])


def write_bvh(clip: AnimationClip, names: dict[str, str] = CMU, scale: float = 17.0) -> str:
    """Return a clip as BVH in another unit; after the last frame of a loop the first one follows, displaced."""
    lines = ["HIERARCHY"]

    def write(part: int, depth: int) -> None:
        tab = "  " * depth
        x, y, z = R_FILE_WORLD @ UNIT_SKELETON.offsets[part] * scale if part else np.zeros(3)
        lines.append(f"{tab}{'JOINT' if part else 'ROOT'} {names[PARTS[part]]}")
        lines.append(tab + "{")
        lines.append(f"{tab}  OFFSET {x:.6f} {y:.6f} {z:.6f}")
        move = "" if part else "Xposition Yposition Zposition "
        lines.append(f"{tab}  CHANNELS {3 if part else 6} {move}Zrotation Xrotation Yrotation")
        for child in np.flatnonzero(part == PARENTS):
            write(int(child), depth + 1)
        if PARTS[part] in ENDS:
            x, y, z = R_FILE_WORLD @ ENDS[PARTS[part]] * scale
            lines.extend([f"{tab}  End Site", tab + "  {", f"{tab}    OFFSET {x:.6f} {y:.6f} {z:.6f}", tab + "  }"])
        lines.append(tab + "}")

    write(0, 0)
    order = _order()
    frames = clip.num_frames + 1 if clip.loop else clip.num_frames
    step = clip.period / (frames - 1)
    lines += ["MOTION", f"Frames: {frames}", f"Frame Time: {step:.8f}"]
    for root, rotations in _frames(clip):
        numbers = list(R_FILE_WORLD @ root * scale)
        for part in order:
            numbers += _zxy(R_FILE_WORLD @ quaternions.to_matrix(rotations[part]) @ R_FILE_WORLD.T)
        lines.append(" ".join(f"{number:.6f}" for number in numbers))
    return "\n".join(lines) + "\n"


def write_collada(clip: AnimationClip, names: dict[str, str] = CMU) -> str:
    """Return a clip as COLLADA with a matrix for each joint and key, z up, in meters."""
    frames = _frames(clip)
    times = np.linspace(0.0, clip.period, len(frames))
    animations, by_part = [], {}
    for part in range(len(PARTS)):
        matrices = np.tile(np.eye(4), (len(frames), 1, 1))
        for n, (root, rotations) in enumerate(frames):
            matrices[n, :3, :3] = quaternions.to_matrix(rotations[part])
            matrices[n, :3, 3] = root * 1.8 if part == 0 else UNIT_SKELETON.offsets[part] * 1.8
        name = names[PARTS[part]]
        by_part[part] = " ".join(f"{value:.7g}" for value in matrices[0].ravel())
        animations.append(
            f'<animation><source id="{name}-in"><float_array id="{name}-ia" count="{len(times)}">'
            f'{" ".join(f"{t:.6f}" for t in times)}</float_array><technique_common><accessor source="#{name}-ia" '
            f'count="{len(times)}" stride="1"/></technique_common></source><source id="{name}-out"><float_array '
            f'id="{name}-oa" count="{16 * len(times)}">{" ".join(f"{v:.7g}" for v in matrices.ravel())}</float_array>'
            f'<technique_common><accessor source="#{name}-oa" count="{len(times)}" stride="16"/></technique_common>'
            f'</source><sampler id="{name}-s"><input semantic="INPUT" source="#{name}-in"/><input semantic="OUTPUT" '
            f'source="#{name}-out"/></sampler><channel source="#{name}-s" target="{name}/transform"/></animation>'
        )

    def node(part: int) -> str:
        name = names[PARTS[part]]
        inner = "".join(node(int(child)) for child in np.flatnonzero(part == PARENTS))
        if PARTS[part].endswith("foot"):
            x, y, z = np.array(ENDS[PARTS[part]]) * 1.8
            toe = name.replace("Foot", "ToeBase")
            inner += f'<node id="{toe}" name="{toe}" type="JOINT"><translate>{x} {y} {z}</translate></node>'
        matrix = f'<matrix sid="transform">{by_part[part]}</matrix>'
        return f'<node id="{name}" name="{name}" sid="{name}" type="JOINT">{matrix}{inner}</node>'

    return (
        '<?xml version="1.0"?><COLLADA xmlns="http://www.collada.org/2005/11/COLLADASchema" version="1.4.1">'
        f"<library_animations>{''.join(animations)}</library_animations><library_visual_scenes><visual_scene>"
        f"{node(0)}</visual_scene></library_visual_scenes></COLLADA>"
    )


def _frames(clip: AnimationClip) -> list[tuple[Array, Array]]:
    frames = clip.num_frames + 1 if clip.loop else clip.num_frames
    poses = []
    for n in range(frames):
        root = clip.root[n % clip.num_frames].copy()
        root[0] += clip.travel_per_period * n / (frames - 1)
        poses.append((root, clip.rotations[n % clip.num_frames]))
    return poses


def _order() -> list[int]:
    order, stack = [], [PART_INDEX["pelvis"]]
    while stack:
        part = stack.pop()
        order.append(part)
        stack += [int(child) for child in reversed(np.flatnonzero(part == PARENTS))]
    return order


def _zxy(R: Array) -> list[float]:
    """Return the angles about z, then the new x, then the new y [deg]."""
    x = np.arcsin(np.clip(R[2, 1], -1.0, 1.0))
    return np.degrees([np.arctan2(-R[0, 1], R[1, 1]), x, np.arctan2(-R[2, 0], R[2, 2])]).tolist()
