"""The skeleton: seventeen parts, how they hang together, and where they are in a pose; compiled.

At rest somebody stands upright with hanging arms, and the frames of all parts are turned like the world: x forward, y
left, z up.  Each lies in the joint at the part's upper end.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from roboyard.compute import kernel
from roboyard.geometry.arrays import Array
from roboyard.geometry.quaternion_kernels import multiply, rotate_vector
from roboyard.simulation.people import anthropometry as a
from roboyard.simulation.people.anthropometry import Physique

PARTS = (
    "pelvis", "abdomen", "chest", "neck", "head",
    "left_upper_arm", "left_forearm", "left_hand",
    "right_upper_arm", "right_forearm", "right_hand",
    "left_thigh", "left_shank", "left_foot",
    "right_thigh", "right_shank", "right_foot",
)  # fmt: skip
"""Their names, each after what it hangs on."""
PARENTS = np.array([-1, 0, 1, 2, 3, 2, 5, 6, 2, 8, 9, 0, 11, 12, 0, 14, 15], np.int64)
REST = np.tile([1.0, 0.0, 0.0, 0.0], (len(PARTS), 1))
"""Rotations of the pose of rest."""
REST.flags.writeable = False
INDEX = {name: index for index, name in enumerate(PARTS)}


def segment(part: str) -> str:
    """A part's name without its side."""
    return part.removeprefix("left_").removeprefix("right_")


@dataclass(frozen=True, slots=True)
class Skeleton:
    """Somebody's skeleton.

    Attributes:
        physique: Whose it is.
        offsets: (17, 3) of each part's joint in the frame of what it hangs on; of the pelvis, above the ground [m].
    """

    physique: Physique
    offsets: Array

    @classmethod
    def of(cls, physique: Physique) -> Skeleton:
        """The skeleton of somebody so large."""
        joints = {
            "pelvis": (0.0, 0.0, a.HIP),
            "abdomen": (0.0, 0.0, 0.055),
            "chest": (0.0, 0.0, 0.105),
            "neck": (0.0, 0.0, 0.135),
            "head": (0.012, 0.0, 0.060),
            "upper_arm": (0.0, a.SHOULDER_ASIDE, a.SHOULDER - a.HIP - 0.160),
            "forearm": (0.0, 0.0, -a.UPPER_ARM),
            "hand": (0.0, 0.0, -a.FOREARM),
            "thigh": (0.0, a.HIP_ASIDE, 0.0),
            "shank": (0.0, 0.0, a.KNEE - a.HIP),
            "foot": (0.0, 0.0, a.ANKLE - a.KNEE),
        }
        sides = [(joints[segment(part)], -1.0 if part.startswith("right_") else 1.0) for part in PARTS]
        offsets = np.array([(x, side * y, z) for (x, y, z), side in sides]) * physique.height
        offsets.flags.writeable = False
        return cls(physique, offsets)

    @property
    def hip_height(self) -> float:
        """Of somebody who stands upright [m]."""
        return float(self.offsets[0, 2])

    @property
    def leg(self) -> tuple[float, float]:
        """Lengths of thigh and shank [m]."""
        return float(-self.offsets[INDEX["left_shank"], 2]), float(-self.offsets[INDEX["left_foot"], 2])

    @property
    def arm(self) -> tuple[float, float]:
        """Lengths of upper arm and forearm [m]."""
        return float(-self.offsets[INDEX["left_forearm"], 2]), float(-self.offsets[INDEX["left_hand"], 2])

    def forward(self, root: Array, rotations: Array) -> tuple[Array, Array]:
        """Where the parts are: see `place_parts`."""
        return place_parts(self.offsets, PARENTS, root, rotations)


def _example() -> Iterable[tuple[Any, ...]]:
    fixed = np.zeros((17, 3))
    fixed.flags.writeable = False
    yield (fixed, PARENTS, np.zeros(3), np.zeros((17, 4)))
    yield (fixed, PARENTS, fixed[0], REST)


@kernel(examples=_example)
def place_parts(offsets: Array, parents: NDArray[np.int64], root: Array, rotations: Array) -> tuple[Array, Array]:
    """Forward kinematics.

    Args:
        offsets: (n, 3) of the joints, each in the frame of the part it hangs on [m].
        parents: (n,) of the parts, each before those that hang on it; -1 of the root.
        root: (3,) place of the root [m].
        rotations: (n, 4) of each part against what it hangs on, of the root against the world.

    Returns:
        (n, 3) places [m] and (n, 4) orientations of the parts in the frame that ``root`` is in.
    """
    n = len(parents)
    places, turns = np.empty((n, 3)), np.empty((n, 4))
    for k in range(n):
        p = parents[k]
        a, b, c, d = rotations[k, 0], rotations[k, 1], rotations[k, 2], rotations[k, 3]
        if p < 0:
            places[k], turns[k] = root, rotations[k]
            continue
        w, x, y, z = turns[p, 0], turns[p, 1], turns[p, 2], turns[p, 3]
        turns[k, 0] = w * a - x * b - y * c - z * d
        turns[k, 1] = w * b + x * a + y * d - z * c
        turns[k, 2] = w * c - x * d + y * a + z * b
        turns[k, 3] = w * d + x * c - y * b + z * a
        ox, oy, oz = offsets[k, 0], offsets[k, 1], offsets[k, 2]
        tx, ty, tz = 2.0 * (y * oz - z * oy), 2.0 * (z * ox - x * oz), 2.0 * (x * oy - y * ox)
        places[k, 0] = places[p, 0] + ox + w * tx + y * tz - z * ty
        places[k, 1] = places[p, 1] + oy + w * ty + z * tx - x * tz
        places[k, 2] = places[p, 2] + oz + w * tz + x * ty - y * tx
    return places, turns


def _example_combined() -> Iterable[tuple[Any, ...]]:
    yield (np.zeros((17, 3)), np.zeros((17, 4)), np.zeros((17, 3)), np.zeros((17, 4)))


@kernel(examples=_example_combined)
def combined(places: Array, turns: Array, inner: Array, inner_turns: Array) -> tuple[Array, Array]:
    """(n, 3) places and (n, 4) orientations of what lies in frames: ``T_world_frame @ T_frame_thing`` for each."""
    out, rotations = np.empty(places.shape), np.empty(turns.shape)
    for k in range(len(places)):
        q = (turns[k, 0], turns[k, 1], turns[k, 2], turns[k, 3])
        there = rotate_vector(q, (inner[k, 0], inner[k, 1], inner[k, 2]))
        both = multiply(q, (inner_turns[k, 0], inner_turns[k, 1], inner_turns[k, 2], inner_turns[k, 3]))
        for i in range(3):
            out[k, i] = places[k, i] + there[i]
        for i in range(4):
            rotations[k, i] = both[i]
    return out, rotations
