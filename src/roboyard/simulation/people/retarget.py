"""Recorded motion brought onto our skeleton.

Only where joints are counts, not how a file names its axes, scales its bones or stands at rest: each of our parts is
turned to where the recorded bone points, by the shortest turn from what it hangs on; hips and shoulders tell how the
trunk is turned.  Names are those of the CMU database, of Mixamo, of Blender's rigs and the like; see `find_joints`.
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
from roboyard.simulation.people.clip import BALL, UNIT, Clip, grounded, identity_turns, resting
from roboyard.simulation.people.motion import END, Motion
from roboyard.simulation.people.skeleton import INDEX, PARENTS, PARTS

# Words that joints are known by, the likeliest first; sides, prefixes and separators are taken off before.
_WORDS: dict[str, tuple[str, ...]] = {
    "thigh": ("upleg", "thigh", "upperleg", "hip", "femur"),
    "shank": ("leg", "shank", "knee", "shin", "calf", "lowerleg", "lowleg", "tibia"),
    "foot": ("foot", "ankle"),
    "toe": ("toebase", "toe", "toes", "ball"),
    "upper_arm": ("arm", "upperarm", "uparm", "humerus", "shoulder"),
    "forearm": ("forearm", "elbow", "lowerarm", "lowarm", "radius"),
    "hand": ("hand", "wrist"),
    "fingers": ("fingerbase", "handmiddle1", "handindex1", "handend", "fingers", "middle1", "middle01"),
}
_TRUNK: dict[str, tuple[str, ...]] = {"neck": ("neck", "lowerneck", "neck1", "neck01"), "head": ("head",)}
LIMBS = (("thigh", "shank", "foot"), ("upper_arm", "forearm", "hand"))
NEEDED = (*(f"{side}_{part}" for side in ("left", "right") for limb in LIMBS for part in limb), "neck", "head")
SEAM = 0.15
"""Share of a round over which a loop's end runs into its beginning."""
_TRAVELS = 0.25
"""A clip that ends so far from its beginning travels [statures]."""


def find_joints(motion: Motion, names: Mapping[str, str] | None = None) -> dict[str, int]:
    """Number of the joint for each of our parts, and for toes and fingers where there are any.

    Args:
        motion: With its names.
        names: Of joints by part, where they have names of their own.

    Raises:
        DescriptionError: a joint is missing, or two parts share one; tells what is there.
    """
    known = {name: k for k, name in enumerate(motion.names)}
    cleaned = {name: _clean(name) for name in motion.names if not name.endswith(END)}
    found: dict[str, int] = {}
    for part, name in (names or {}).items():
        if name not in known:
            raise DescriptionError(f"no joint {name!r} for {part}", location=motion.source, valid=_there(motion))
        found[part] = known[name]
    for part in NEEDED + tuple(f"{side}_{end}" for side in ("left", "right") for end in ("toe", "fingers")):
        if part in found:
            continue
        side, _, limb = part.partition("_") if part not in _TRUNK else ("", "", part)
        words = _WORDS.get(limb, ()) + _TRUNK.get(part, ())
        for word in words:
            hits = [known[name] for name, clean in cleaned.items() if clean == (side, word)]
            free = [k for k in hits if k not in found.values()]
            if free:
                found[part] = free[0]
                break
        else:
            if part in NEEDED:
                raise DescriptionError(
                    f"no joint for the {part.replace('_', ' ')}", location=motion.source,
                    valid=f"one called like {', '.join(words)}; there are {_there(motion)}",
                )  # fmt: skip
    _check_chains(motion, found)
    return found


def _there(motion: Motion) -> str:
    names = [name for name in motion.names if not name.endswith(END)]
    return ", ".join(names[:40]) + (", …" if len(names) > 40 else "")


def _clean(name: str) -> tuple[str, str]:
    """Side ("left", "right" or none) and the rest of a joint's name, in small letters."""
    text = name.rpartition(":")[2].replace("mixamorig", "").replace("Bip01", "").replace("Bip001", "")
    text = re.sub(r"[\s_.\-]+", " ", text).strip().lower()
    for side in ("left", "right"):
        short = side[0]
        for pattern in (rf"^{side} ?(.+)$", rf"^(.+?) ?{side}$", rf"^{short} (.+)$", rf"^(.+) {short}$"):
            match = re.match(pattern, text)
            if match:
                return side, match[1].replace(" ", "")
    return "", text.replace(" ", "")


def _check_chains(motion: Motion, found: Mapping[str, int]) -> None:
    """Raises DescriptionError where a joint hangs on no joint of its own limb."""
    for side in ("left", "right"):
        for limb in LIMBS:
            for upper, lower in pairwise(limb):
                above, k = found[f"{side}_{upper}"], found[f"{side}_{lower}"]
                while k not in (-1, above):
                    k = motion.parents[k]
                if k != above:
                    raise DescriptionError(
                        f"joint {motion.names[found[f'{side}_{lower}']]!r} does not hang on "
                        f"{motion.names[above]!r}", location=motion.source, valid="a hierarchy of limbs",
                    )  # fmt: skip


@dataclass(frozen=True, slots=True)
class _Bones:
    """(n, 3) places by part in our axes: z up, x ahead at the beginning; lengths in legs."""

    places: dict[str, Array]

    def way(self, start: str, end: str) -> Array:
        """(n, 3) unit vectors."""
        return _unit(self.places[end] - self.places[start])


def retarget(
    motion: Motion,
    name: str,
    *,
    loop: bool | None = None,
    part: tuple[float, float] | None = None,
    names: Mapping[str, str] | None = None,
) -> Clip:
    """The clip that a recorded motion makes.

    Args:
        motion: As recorded.
        name: Of the clip.
        loop: Whether it goes round; None: if it ends in nearly the pose that it begins in.
        part: (from, to) that is taken of it [s]; None: all.
        names: Of joints by part, where they have names of their own.

    Raises:
        DescriptionError: joints are missing, or bones have no length.
        InputError: the part is none.
    """
    found = find_joints(motion, names)
    first, last = _taken(motion, part)
    bones = _upright(motion, found, first, last)
    n = last - first
    turns = _turns(bones)
    root = bones.places["hips"] * sum(UNIT.leg)
    root[:, 2] += 1.0 - root[:, 2].min()
    root = grounded(root, turns, every=False)
    period = (n - 1) * motion.frame_time
    if loop is None:
        loop = n > 2 and _distance(turns[0], turns[-1]) < 0.35
    travel = float(root[-1, 0] - root[0, 0])
    travel = travel if loop and abs(travel) > _TRAVELS else 0.0
    if loop:
        root, turns = _closed(root, turns, travel)
    if travel:
        root[:, 0] -= travel * np.arange(len(root)) / len(root)
    root[:, :2] -= root[:, :2].mean(axis=0) if loop else root[0, :2]
    rests = resting(root, turns, period, loop, travel)
    summary = f"From {motion.source.rpartition('/')[2]}"
    return Clip(name, root, turns, rests, period, loop, travel, summary=summary)


def _taken(motion: Motion, part: tuple[float, float] | None) -> tuple[int, int]:
    n = len(motion.places)
    start, end = part or (0.0, n * motion.frame_time)
    first, last = max(round(start / motion.frame_time), 0), min(round(end / motion.frame_time), n)
    if last - first < 2:
        length = (n - 1) * motion.frame_time
        raise InputError(
            f"a clip from {start:g} to {end:g} s of {motion.source}", valid=f"a part of 0 to {length:.2f} s"
        )
    return first, last


def _upright(motion: Motion, found: Mapping[str, int], first: int, last: int) -> _Bones:
    """Joints of the frames taken, in our axes."""
    raw = motion.places[first:last]
    hips = 0.5 * (raw[:, found["left_thigh"]] + raw[:, found["right_thigh"]])
    up = (raw[:, found["head"]] - 0.5 * (raw[:, found["left_foot"]] + raw[:, found["right_foot"]])).mean(axis=0)
    axis = int(np.abs(up).argmax())
    if up[axis] <= 0.0:
        raise DescriptionError("the head is below the feet", location=motion.source, valid="an axis that points up")
    turned = np.roll(raw, 2 - axis, axis=2)  # cyclic: still right-handed
    hips = np.roll(hips, 2 - axis, axis=1)
    leg = np.mean([
        np.linalg.norm(raw[:, found[f"{side}_{b}"]] - raw[:, found[f"{side}_{a}"]], axis=1).mean()
        for side in ("left", "right") for a, b in (("thigh", "shank"), ("shank", "foot"))
    ]) * 2.0  # fmt: skip
    if not leg > 1e-6:
        raise DescriptionError("the legs have no length", location=motion.source, valid="offsets between joints")
    aside = turned[0, found["left_thigh"]] - turned[0, found["right_thigh"]]
    ahead = np.array([aside[1], -aside[0]])
    way = (hips[-1] - hips[0])[:2]
    if np.linalg.norm(way) > leg and way @ ahead > 0.0:
        ahead = way
    ahead = ahead / max(float(np.linalg.norm(ahead)), 1e-12)
    R = np.array([[ahead[0], ahead[1], 0.0], [-ahead[1], ahead[0], 0.0], [0.0, 0.0, 1.0]])
    origin = np.array([hips[0, 0], hips[0, 1], 0.0])

    def place(points: Array) -> Array:
        return np.asarray((points - origin) @ R.T / leg)

    places = {part: place(turned[:, k]) for part, k in found.items()}
    places["hips"] = place(hips)
    for k, joint in enumerate(motion.names):  # ends of bones stand in for toes, fingers and the crown
        above = motion.parents[k]
        if joint.endswith(END) or (above == found["head"]):
            for part in ("head", "left_foot", "right_foot", "left_hand", "right_hand"):
                if above == found[part] and f"{part} end" not in places:
                    places[f"{part} end"] = place(turned[:, k])
    return _Bones(places)


def _unit(v: Array) -> Array:
    return np.asarray(v / np.maximum(np.linalg.norm(v, axis=-1, keepdims=True), 1e-12))


def _frame(aside: Array, up: Array) -> Array:
    """(n, 4) orientations whose y is ``aside`` as far as it is across ``up``, their z."""
    z = _unit(up)
    x = _unit(np.cross(aside, z))
    return quaternions.from_matrix(np.stack([x, np.cross(z, x), z], axis=-1))


def _swung(turns: Array, rest: Array, way: Array) -> Array:
    """(n, 4) orientations ``turns``, turned the shortest way so that ``rest`` in their frames points along ``way``."""
    there = quaternions.rotate(turns, rest)
    w = 1.0 + (there * way).sum(axis=1, keepdims=True)
    axis = np.cross(there, way)
    across = np.cross(there, np.where(np.abs(there[:, :1]) < 0.9, [1.0, 0.0, 0.0], [0.0, 1.0, 0.0]))
    opposite = w < 1e-9
    q = np.concatenate([np.where(opposite, 0.0, w), np.where(opposite, across, axis)], axis=1)
    return quaternions.multiply(_unit(q), turns)


def _turns(bones: _Bones) -> Array:
    """(n, 17, 4) rotations of our parts against what they hang on."""
    p = bones.places
    n = len(p["hips"])
    world = identity_turns(n)
    up = _unit(p["neck"] - p["hips"])
    pelvis = _frame(p["left_thigh"] - p["right_thigh"], up)
    chest = _frame(p["left_upper_arm"] - p["right_upper_arm"], up)
    world[:, INDEX["pelvis"]], world[:, INDEX["chest"]] = pelvis, chest
    world[:, INDEX["abdomen"]] = quaternions.slerp(pelvis, chest, np.full(n, 0.5))
    world[:, INDEX["neck"]] = _swung(chest, _unit(UNIT.offsets[INDEX["head"]]), bones.way("neck", "head"))
    crown = bones.way("head", "head end") if "head end" in p else None
    rest = np.array([0.0, 0.0, 1.0])
    world[:, INDEX["head"]] = world[:, INDEX["neck"]] if crown is None else _level(_swung(chest, rest, crown), chest)
    down = np.array([0.0, 0.0, -1.0])
    for side in ("left", "right"):
        thigh = _swung(pelvis, down, bones.way(f"{side}_thigh", f"{side}_shank"))
        shank = _swung(thigh, down, bones.way(f"{side}_shank", f"{side}_foot"))
        arm = _swung(chest, down, bones.way(f"{side}_upper_arm", f"{side}_forearm"))
        forearm = _swung(arm, down, bones.way(f"{side}_forearm", f"{side}_hand"))
        world[:, INDEX[f"{side}_thigh"]], world[:, INDEX[f"{side}_shank"]] = thigh, shank
        world[:, INDEX[f"{side}_upper_arm"]], world[:, INDEX[f"{side}_forearm"]] = arm, forearm
        world[:, INDEX[f"{side}_foot"]] = _foot(p, side, shank)
        fingers = next((key for key in (f"{side}_fingers", f"{side}_hand end") if key in p), None)
        tip = _unit(p[fingers] - p[f"{side}_hand"]) if fingers else None
        real = tip is not None and np.linalg.norm(p[str(fingers)] - p[f"{side}_hand"], axis=1).min() > 1e-6
        world[:, INDEX[f"{side}_hand"]] = _swung(forearm, down, tip) if real and tip is not None else forearm
    local = world.copy()
    for k in range(1, len(PARTS)):
        local[:, k] = quaternions.multiply(quaternions.conjugate(world[:, PARENTS[k]]), world[:, k])
    return local


def _level(head: Array, chest: Array) -> Array:
    """The head as it is turned, but for a constant tilt against the chest that only tells where the crown's mark is."""
    against = quaternions.multiply(quaternions.conjugate(chest), head)
    usual = quaternions.normalize(np.median(against * np.sign(against[:, :1]), axis=0))
    return quaternions.multiply(head, np.broadcast_to(quaternions.conjugate(usual), head.shape))


def _foot(p: Mapping[str, Array], side: str, shank: Array) -> Array:
    """(n, 4) orientations of a foot: ankle and toes point down as much as ours where it lies flat."""
    toe = next((p[key] for key in (f"{side}_toe", f"{side}_foot end") if key in p), None)
    if toe is None:
        return shank
    way = _unit(toe - p[f"{side}_foot"])
    height = p[f"{side}_foot"][:, 2] + toe[:, 2]
    flat = height <= np.quantile(height, 0.2)
    slope = float(np.median(np.arcsin(np.clip(way[flat, 2], -1.0, 1.0))))
    ours = np.arctan2(BALL[2], BALL[0])
    rest = np.array([np.cos(slope), 0.0, np.sin(slope)])
    if abs(slope - ours) > 1.3:  # it never lay flat: ours as it is
        rest = _unit(np.array(BALL))
    return _swung(shank, rest, way)


def _distance(one: Array, other: Array) -> float:
    """Mean angle between two poses, as shares of a radian."""
    cosines = np.abs((one * other).sum(axis=-1))
    return float(np.mean(2.0 * np.arccos(np.clip(cosines, 0.0, 1.0))))


def _closed(root: Array, turns: Array, travel: float) -> tuple[Array, Array]:
    """Without the last sample, which is the first one again; the difference is spread over the end."""
    n = len(root)
    k = max(round(SEAM * n), 1)
    share = np.zeros(n)
    share[n - k :] = np.linspace(0.0, 1.0, k + 1)[1:]
    share = share * share * (3.0 - 2.0 * share)
    gap = root[0] - root[-1] + np.array([travel, 0.0, 0.0])
    root = root + share[:, None] * gap
    first = np.broadcast_to(turns[0], turns.shape)
    delta = quaternions.multiply(quaternions.conjugate(turns[-1]), turns[0])
    late = quaternions.slerp(identity_turns(1)[0], delta, np.ones(len(PARTS)))
    shares = np.broadcast_to(share[:, None], turns.shape[:2])
    spread = quaternions.slerp(
        np.broadcast_to(identity_turns(1), first.shape), np.broadcast_to(late, first.shape), shares
    )
    turns = quaternions.multiply(turns, spread)
    return root[:-1], turns[:-1]
