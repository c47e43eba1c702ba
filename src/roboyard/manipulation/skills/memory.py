"""What is remembered from skill to skill: plain data, part of a saved state."""

from __future__ import annotations

from dataclasses import dataclass, field

from roboyard.manipulation.skills.asking import Point

FULL, EMPTY, UNSEEN_BAY = 1, 0, -1


@dataclass(frozen=True, slots=True)
class Held:
    """What is in the hand.

    Attributes:
        origin: Where the disc on top was before it was taken.
        bay: It was taken from, from 1 on; 0: from a field.
    """

    origin: Point
    bay: int = 0


@dataclass(slots=True)
class Memory:
    """What is known beside what is measured.

    Attributes:
        at: Where the robot is: a field, or another place.
        held: In the hand; None: nothing.
        down: Whether the hand may be among things.
        load: State of each bay: 1 full, 0 empty, -1 not seen.
        tops: Disc of each bay as it was seen or left: on the thing in it, or on its floor.
        turns: How the hand was turned when it put something into each bay; None: nobody knows.
        barred: Bays that the arm did not get to.
        shunned: Things that are left alone.
        things: Discs on things in the field, as seen or set down last.
        free: Middles of free places that were seen last, nearest first.
        lanes: Fields on which things move, and how high they reach there [m].
        serial: Skills that were begun.
        recoveries: What went wrong and was mended.
    """

    at: str
    held: Held | None = None
    down: bool = False
    load: list[int] = field(default_factory=list)
    tops: list[Point | None] = field(default_factory=list)
    turns: list[float | None] = field(default_factory=list)
    barred: list[int] = field(default_factory=list)
    shunned: list[Point] = field(default_factory=list)
    things: list[Point] = field(default_factory=list)
    free: list[Point] = field(default_factory=list)
    lanes: list[tuple[str, float]] = field(default_factory=list)
    serial: int = 0
    recoveries: int = 0

    def around(self) -> list[Point]:
        """Discs on all things that stand around: in the field and in bays."""
        loaded = [top for top, state in zip(self.tops, self.load, strict=True) if top is not None and state == FULL]
        return [*self.things, *loaded]

    def first(self, state: int) -> int:
        """The first bay in a state that the arm gets to, from 1 on; 0: none."""
        return next((k for k, one in enumerate(self.load, 1) if one == state and k not in self.barred), 0)
