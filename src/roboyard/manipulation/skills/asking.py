"""What skills ask for, one thing at a time, and what comes back: plain data."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Literal

from roboyard.manipulation.skills.causes import Cause

Point = tuple[float, float, float]
"""In the frame of the robot's root link [m]."""
Polarity = Literal["white", "black"]
Mode = Literal["single", "pair"]


@dataclass(frozen=True, slots=True)
class Sighting:
    """A disc, or the middle of a pair.

    Attributes:
        position: Where it is.
        diameter: Of the disc, or of both on average [m].
        distance: Between the discs of a pair [m]; 0: a single one.
        velocity: Where it goes, level and straight on [m/s].
        time_ns: When it was where it is said to be.
    """

    position: Point
    diameter: float = 0.0
    distance: float = 0.0
    velocity: tuple[float, float] = (0.0, 0.0)
    time_ns: int = 0

    @property
    def speed(self) -> float:
        """[m/s]."""
        return math.hypot(*self.velocity)

    def at(self, time_ns: int) -> Point:
        """Where it is at another moment."""
        (x, y, z), (u, v) = self.position, self.velocity
        seconds = 1e-9 * (time_ns - self.time_ns)
        return x + u * seconds, y + v * seconds, z


@dataclass(frozen=True, slots=True)
class Outcome:
    """How something ended.

    Attributes:
        cause: Why it was not done; DONE: it was.
        text: The same in a sentence.
        seen: What was seen, nearest to the robot's root first.
        position: Of what it dealt with.
        bay: It dealt with, from 1 on; 0: none.
        recoveries: What went wrong on the way and was mended.
    """

    cause: Cause = Cause.DONE
    text: str = ""
    seen: tuple[Sighting, ...] = ()
    position: Point | None = None
    bay: int = 0
    recoveries: int = 0

    @property
    def done(self) -> bool:
        """Whether it was done."""
        return self.cause is Cause.DONE

    @property
    def view_empty(self) -> bool:
        """Whether there was nothing to be seen."""
        return self.cause is Cause.VIEW_EMPTY


DONE = Outcome()


@dataclass(frozen=True, slots=True)
class Ask:
    """Something that a skill wants to be done."""


@dataclass(frozen=True, slots=True)
class Look(Ask):
    """Look for marked discs, several times; those that move are told with where they go."""

    polarity: Polarity = "white"
    mode: Mode = "single"
    looks: int = 5
    moving: bool = False


@dataclass(frozen=True, slots=True)
class Joints:
    """Where the joints shall be (n,) [rad]."""

    values: tuple[float, ...]


@dataclass(frozen=True, slots=True)
class Named:
    """A named pose of the arm."""

    name: str


@dataclass(frozen=True, slots=True)
class Tip:
    """The tool's tip at a place, pointing down, its x axis turned by ``yaw`` about z [rad]."""

    position: Point
    yaw: float


Target = Joints | Named | Tip


@dataclass(frozen=True, slots=True)
class Move(Ask):
    """Bring the arm to the first of some targets that can be had; with something in the hand, see that it stays there.

    Attributes:
        targets: In order of preference.
        holding: Whether something is held.
        straight: The tool goes straight to the only target, a `Tip`.
        guarded: The arm stops when something presses on the fingers along them.
        field: On whose belt stands what it goes for; the arm stops when that begins to move.  Empty: no belt's.
        speed: Share of the joints' speeds.
    """

    targets: tuple[Target, ...]
    holding: bool = False
    straight: bool = False
    guarded: bool = False
    field: str = ""
    speed: float = 1.0


@dataclass(frozen=True, slots=True)
class Grip(Ask):
    """Move the fingers until they are ``opening`` apart [m], or press on something."""

    opening: float
    force: float = 0.0


@dataclass(frozen=True, slots=True)
class Stage:
    """Where the tool's tip shall be at a moment, pointing down.

    Attributes:
        time_ns: The moment.
        tip: See there.
        velocity: [m/s].
    """

    time_ns: int
    tip: Tip
    velocity: tuple[float, float] = (0.0, 0.0)


@dataclass(frozen=True, slots=True)
class Ride(Ask):
    """Bring the arm, at rest until it begins, through stages at their moments, and move the fingers at one of them.

    Attributes:
        begin_ns: When it sets out.
        stages: In the order of their moments.
        grip: What the fingers do.
        grip_ns: When.
        field: On whose belt.
        holding: Whether something is held until then.
    """

    begin_ns: int
    stages: tuple[Stage, ...]
    grip: Grip
    grip_ns: int
    field: str
    holding: bool = False


@dataclass(frozen=True, slots=True)
class Show(Ask):
    """Tell who plans what stands around and whether something is held; done at once.

    Attributes:
        things: Upper ends of what stands around.
        held: Height of the held thing above the tool's tip and below it [m]; None: nothing is held.
    """

    things: tuple[Point, ...] = ()
    held: tuple[float, float] | None = None


@dataclass(frozen=True, slots=True)
class Wait(Ask):
    """Let time pass [s]."""

    seconds: float


@dataclass(frozen=True, slots=True)
class Go(Ask):
    """Bring the whole robot to a place; where it stands fast this is done at once.

    Attributes:
        place: Its name; empty: where the robot is.
        aside: How far ahead of it and to its left [m], as a robot there looks.
    """

    place: str = ""
    aside: tuple[float, float] = (0.0, 0.0)
