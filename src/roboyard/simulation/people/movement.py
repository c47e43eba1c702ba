"""What somebody is asked to do, checked before they begin."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass

from roboyard.errors import RoboyardError
from roboyard.simulation.people.clip import Clip
from roboyard.simulation.people.gait import walk_clip
from roboyard.simulation.people.route import Route

ACCELERATION = 1.6
"""Of walking [m/s²]."""
_FASTEST = 4.0
"""That somebody can be told to walk or run [m/s]."""
_SHORTEST, _LONGEST = 0.25, 0.90
"""Strides that walking is made for [statures]."""


class RefusedError(RoboyardError):
    """A goal that is not taken on; ``cause`` in one word: busy, unknown, unreachable or invalid."""

    def __init__(self, what: str, cause: str, valid: str | None = None) -> None:
        super().__init__(what, valid=valid)
        self.cause = cause


@dataclass(frozen=True, slots=True)
class Asked:
    """A movement as it was asked for.

    Attributes:
        animation: The clip to walk by.
        distance: One of its rounds covers [m]; 0: as much as it does by itself.
        target: x and y [m].
        yaw: Direction at the end [rad]; None: whichever.
        velocity: Of walking [m/s]; 0: as the clip goes, and their pace.
    """

    animation: str
    distance: float
    target: tuple[float, float]
    yaw: float | None
    velocity: float


@dataclass(slots=True)
class Movement:
    """Somebody's way to a target: first they *aim*, then *walk*, and turn to the *final* direction.

    Attributes:
        asked: What was asked for.
        clip: By which they walk.
        distance: That one of its rounds covers [m].
        usual: How fast they walk where nothing keeps them [m/s].
        route: The way; None: they are there.
        stage: See above.
        speed: Of walking or turning now [m/s or rad/s].
        gone: So much of the way [m].
    """

    asked: Asked
    clip: Clip
    distance: float
    usual: float
    route: Route | None = None
    stage: str = "aim"
    speed: float = 0.0
    gone: float = 0.0

    @classmethod
    def of(cls, asked: Asked, known: Callable[[str], Clip], height: float, pace: float) -> Movement:
        """Of somebody of that stature [m] and pace; without a route. Raises RefusedError."""
        clip, distance, velocity = known(asked.animation), asked.distance, asked.velocity
        if not all(map(math.isfinite, (*asked.target, distance, asked.yaw or 0.0))):
            raise RefusedError(
                f"a movement to {asked.target}, {asked.yaw}, {distance} m a round", "invalid", "finite numbers"
            )
        if velocity != 0.0 and not 0.05 <= velocity <= _FASTEST:
            raise RefusedError(f"a velocity of {velocity:g} m/s", "invalid", f"0.05 to {_FASTEST:g} m/s, or 0")
        if not clip.loop or not clip.travel > 0.0:
            raise RefusedError(
                f"animation {asked.animation!r} goes nowhere", "invalid", "one that walks, as 'walk' or 'carry'"
            )
        if distance == 0.0:
            distance = clip.travel * height
        low, high = 0.05 * height, 2.0 * height
        if not low <= distance <= high:
            raise RefusedError(
                f"{distance:g} m a round of {asked.animation!r}", "invalid", f"{low:.2f} to {high:.2f} m, or 0"
            )
        stride = round(distance / height, 3)
        if clip.name == "walk" and _SHORTEST <= stride <= _LONGEST:
            clip = walk_clip(stride)
        return cls(asked, clip, distance, velocity or pace * distance / clip.period)
