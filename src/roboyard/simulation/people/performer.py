"""Shows clips with a body: fades from one into the other, walks by distance, keeps feet where they stand, reaches."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np

from roboyard.compute import expect_kernels
from roboyard.geometry.arrays import Array
from roboyard.simulation.people.clip import FEET, Clip, blend, placed, sample
from roboyard.simulation.people.feet import RESTS, SETTLED, STRAY, new_feet, stand
from roboyard.simulation.people.limbs import LEFT_ARM, RIGHT_ARM, stretch
from roboyard.simulation.people.reaching import Lean, find_lean, grip_of, wrist_for
from roboyard.simulation.people.skeleton import Skeleton, place_parts

_ANKLES = np.array(FEET)
FADE = 0.35
"""How long one clip fades into another [s]."""


@dataclass(frozen=True, slots=True)
class Reach:
    """A place that a hand goes to.

    Attributes:
        hand: "left" or "right".
        target: (3,) in the world [m].
        lean: How the trunk goes along.
    """

    hand: str
    target: Array
    lean: Lean


class Performer:
    """A body that moves as clips say.

    Args:
        skeleton: Whose.
        clip: What it begins with.
        place: x, y and yaw of where it stands [m, rad].

    Attributes:
        clip: What it shows.
        phase: Where in the clip it is: rounds.
        place: x, y, yaw [m, rad]; moved from outside.
        reach: What a hand goes to during the clip.
    """

    def __init__(self, skeleton: Skeleton, clip: Clip, place: tuple[float, float, float]) -> None:
        expect_kernels(blend, placed, sample, stand, stretch, place_parts)
        self.skeleton, self.clip, self.phase = skeleton, clip, 0.0
        self.place = place
        self.reach: Reach | None = None
        self._fade = 1.0
        self._from = clip.at(0.0)
        self._feet = new_feet()

    @property
    def height(self) -> float:
        """Stature [m]."""
        return self.skeleton.physique.height

    def show(self, clip: Clip, phase: float = 0.0) -> None:
        """Go over to another clip."""
        self._from = self._pose()
        self._fade, self.clip, self.phase, self.reach = 0.0, clip, phase, None

    def leave(self, clip: Clip) -> None:
        """Go over to another clip from one that has ended: where that one has moved to is the new place."""
        x, y, yaw = self.place
        moved = np.array([self.clip.root[-1, 0], self.clip.root[-1, 1], 0.0])
        ahead, aside = self.height * float(moved[0]), self.height * float(moved[1])
        c, s = math.cos(yaw), math.sin(yaw)
        self.show(clip)
        self._from = (self._from[0] - moved, self._from[1])
        self.place = (x + c * ahead - s * aside, y + s * ahead + c * aside, yaw)

    def put(self, place: tuple[float, float, float]) -> None:
        """Stand somewhere else at once, as if one had never been where one was."""
        self.place, self._fade = place, 1.0
        self._feet = new_feet()

    def reaches(self, clip: Clip, target: Array, hand: str) -> tuple[Reach, float]:
        """How a clip would reach for a place from here, and how far it would stay away [m]."""
        middle = 0.5 * (clip.reach[0] + clip.reach[1])
        root, turns = self._placed(*clip.at(middle))
        lean, missed = find_lean(self.skeleton, root, turns, target, hand)
        return Reach(hand, target, lean), missed

    def pose(self, dt: float) -> tuple[Array, Array]:
        """(17, 3) places [m] and (17, 4) orientations of the parts in the world, ``dt`` after the last call [s]."""
        self._fade = min(self._fade + dt / FADE, 1.0)
        root, turns = self._placed(*self._pose())
        places, world = self.skeleton.forward(root, turns)
        ankles = places[_ANKLES]
        shares = self._reaching()
        if self.reach is not None and shares > 0.0:
            feet = [world[foot].copy() for foot in FEET]
            places, world = self.skeleton.forward(*self.reach.lean.applied(root, turns, self.height, shares))
            for foot, turn in zip(FEET, feet, strict=True):
                world[foot] = turn
        left, right = self.clip.rests_at(self.phase)
        stray = (STRAY if self.clip.travel or self.clip.turning else SETTLED) * self.height
        heard, faded = self._fade > 0.5, self._fade >= 1.0
        stand(
            self.skeleton.offsets, places, world, ankles, self._feet, left, right, heard, faded, dt, self.height, stray
        )
        if self.reach is not None and shares > 0.0:
            limb = LEFT_ARM if self.reach.hand == "left" else RIGHT_ARM
            goal = wrist_for(self.reach.target, world[limb + 2], self.height)
            here = places[limb + 2]
            stretch(self.skeleton.offsets, places, world, limb, _vector(here + shares * (goal - here)))
        return places, world

    def grip(self, places: Array, world: Array, hand: str) -> Array:
        """(3,) where a hand grips in a pose [m]."""
        end = (LEFT_ARM if hand == "left" else RIGHT_ARM) + 2
        return grip_of(places[end], world[end], self.height)

    def resting(self) -> tuple[int, int]:
        """What of the left and the right foot rests on the ground: see `clip`."""
        left, right = self._feet[:, RESTS].tolist()
        return int(left), int(right)

    # -- inside --------------------------------------------------------------------------------------------------------
    def _pose(self) -> tuple[Array, Array]:
        """The clip's pose, or one between the last clip's and its own."""
        root, turns = self.clip.at(self.phase)
        if self._fade >= 1.0:
            return root, turns
        u = self._fade
        return blend(*self._from, root, turns, u * u * (3.0 - 2.0 * u))

    def _placed(self, root: Array, turns: Array) -> tuple[Array, Array]:
        """A pose of stature 1 in the clip's frame, as it is in the world."""
        return placed(root, turns, *self.place, self.height)

    def _reaching(self) -> float:
        """How much of a reach is done at this phase."""
        if self.reach is None:
            return 0.0
        start, end = self.clip.reach
        u = self.phase / start if self.phase < start else (1.0 - self.phase) / max(1.0 - end, 1e-9)
        u = min(max(u, 0.0), 1.0)
        return u**3 * (10.0 - 15.0 * u + 6.0 * u**2)

    # -- state ---------------------------------------------------------------------------------------------------------
    def save_state(self) -> dict[str, Any]:
        """Plain data, without the clip, which has a name."""
        reach = self.reach
        return {
            "phase": self.phase, "place": list(self.place), "fade": self._fade,
            "from": [self._from[0].tolist(), self._from[1].tolist()],
            "feet": self._feet.tolist(),
            "reach": None if reach is None else
            [reach.hand, reach.target.tolist(), reach.lean.pitch, reach.lean.yaw, reach.lean.drop],
        }  # fmt: skip

    def load_state(self, saved: dict[str, Any], clip: Clip) -> None:
        """Counterpart of `save`."""
        self.clip, self.phase, self._fade = clip, float(saved["phase"]), float(saved["fade"])
        x, y, yaw = saved["place"]
        self.place = (x, y, yaw)
        self._from = (np.array(saved["from"][0], float), np.array(saved["from"][1], float))
        self._feet[:] = saved["feet"]
        self.reach = None
        if saved["reach"] is not None:
            hand, target, pitch, yaw, drop = saved["reach"]
            self.reach = Reach(hand, np.array(target, float), Lean(pitch, yaw, drop))


def _vector(v: Array) -> tuple[float, float, float]:
    x, y, z = v.tolist()
    return x, y, z
