"""What the thesis's skills ask for: its functions KreisErkennung, GelenkPos and GreiferPos, and what they know."""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from typing import Final

from roboyard.manipulation.skills import Ask, Now, Point
from roboyard.manipulation.skills.asking import Mode, Polarity
from roboyard.manipulation.thesis.config import ThesisConfig

LEFT: Final = math.nan
"""A joint that stays where it is."""


@dataclass(frozen=True, slots=True)
class Glance(Ask):
    """Look at one picture, while the first joint turns; what comes back lies in the arm's frame [m].

    That frame turns with the first joint: x to the right, y ahead of its axis, z up from the ground.

    Attributes:
        polarity: Of discs.
        mode: single or pair.
        speed: Of the first joint meanwhile [rad/s].
        on_places: Only what lies so near to the nearest pair's middle, in x and in y [m]; 0: all (PosAufnehmen).
        shown: Whether the picture is kept for people, with what was found drawn in.
    """

    polarity: Polarity
    mode: Mode
    speed: float = 0.0
    on_places: float = 0.0
    shown: bool = False


@dataclass(frozen=True, slots=True)
class Stand(Ask):
    """Let all joints stand; done at once."""


@dataclass(frozen=True, slots=True)
class Reach(Ask):
    """Bring the joints to angles on the thesis's scale (5,) [degrees]; NaN leaves one."""

    degrees: tuple[float, ...]


@dataclass(frozen=True, slots=True)
class Fingers(Ask):
    """Bring both fingers together as far apart as this [the thesis's mm]."""

    opening: float


@dataclass
class ThesisNow(Now):
    """What a skill knows when it is asked.

    Attributes:
        thesis: Its constants.
        ground: Height of the ground in the frame of the robot's root [m].
        turning: Speed of the first joint [rad/s].
    """

    thesis: ThesisConfig = field(default_factory=ThesisConfig)
    ground: float = 0.0
    turning: float = 0.0

    def in_root(self, place: Point) -> Point | None:
        """A place in the arm's frame, in that of the robot's root [m]; None: nobody says where the joints are."""
        if not self.joints:
            return None
        first, second = self.body.chain.frames(self.joints)[1:3, :3, 3]
        ahead = self.body.T_root_base.rotation_matrix()[:2] @ (second - first)
        u, v = (ahead / math.hypot(*ahead)).tolist()
        x, y, _ = (self.body.T_root_base @ first).tolist()
        aside, along, up = place
        return x + along * u + aside * v, y + along * v - aside * u, self.ground + up
