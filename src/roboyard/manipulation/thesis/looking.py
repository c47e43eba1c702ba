"""The thesis's LadeCheck, PosMinDis, PosAufnehmen and VorIk; listings G, I, P, Q and R."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Final

from roboyard.manipulation.skills import Cause, Outcome, Point, Sighting, Skill, Wait
from roboyard.manipulation.skills.asking import Mode
from roboyard.manipulation.skills.memory import EMPTY, FULL, UNSEEN_BAY
from roboyard.manipulation.skills.skill import Request
from roboyard.manipulation.thesis.asking import Glance, Reach, Stand, ThesisNow
from roboyard.manipulation.thesis.driving import AlignControl

PAUSE: Final = 0.1
"""Between looks that saw nothing [s]."""
_CONTROL: Final = AlignControl()
_END_SPEED: Final = 0.05
"""Of the first joint, when it is ahead [rad/s]."""
_MOST_GLANCES: Final = 450
"""While aligning: half a minute of pictures. The thesis would go on for ever."""


def nearest(seen: Sequence[Sighting]) -> Sighting | None:
    """The one nearest to the first joint's axis; None: there is none."""
    return min(seen, key=lambda one: math.hypot(*one.position[:2]), default=None)


def on_places(seen: Sequence[Sighting], places: Sequence[Sighting], within: float) -> tuple[Sighting, ...]:
    """The last of what lies within so much [m] of the nearest place in x and in y, or nothing (PosAufnehmen)."""
    place = nearest(places)
    if place is None:
        return ()
    x, y, _ = place.position
    found = [one for one in seen if abs(one.position[0] - x) < within and abs(one.position[1] - y) < within]
    return tuple(found[-1:])


def near_median(found: Sequence[Point], within: float) -> Point | None:
    """Mean of the places within so much [m] of their median in x and in y; None: there is none (PosMinDis)."""
    if not found:
        return None
    middle = len(found) // 2
    x, y = (sorted(one[axis] for one in found)[middle] for axis in (0, 1))
    kept = [one for one in found if abs(one[0] - x) < within and abs(one[1] - y) < within]
    if not kept:
        return None
    x, y, z = (sum(one[axis] for one in kept) / len(kept) for axis in range(3))
    return x, y, z


@dataclass
class CheckLoad(Skill):
    """LadeCheck: black discs where empty bays are seen, white ones where full ones are.

    Attributes:
        tried: Looks so far.
        black: What was seen in the last one.
    """

    name = "check_load"
    tried: int = 0
    black: tuple[Sighting, ...] = ()

    def _begin(self, now: ThesisNow, came: Outcome) -> Request | Outcome:
        now.memory.load = [UNSEEN_BAY] * len(now.thesis.bay_turns)
        return self.then("moved", Reach(now.thesis.view(now.thesis.load_check)))

    def _moved(self, now: ThesisNow, came: Outcome) -> Request | Outcome:
        return self.then("black_seen", Glance("black", "single")) if came.done else came

    def _black_seen(self, now: ThesisNow, came: Outcome) -> Request | Outcome:
        if not came.done:
            return came
        self.black = came.seen
        return self.then("white_seen", Glance("white", "single", shown=True))

    def _white_seen(self, now: ThesisNow, came: Outcome) -> Request | Outcome:
        if not came.done:
            return came
        told = self._tell(now, self.black, EMPTY) + self._tell(now, came.seen, FULL)
        self.tried += 1
        load = now.memory.load
        if told == len(load) or self.tried >= now.thesis.load_tries:
            unseen = [str(number) for number, state in enumerate(load, 1) if state == UNSEEN_BAY]
            if len(unseen) == len(load):
                return Outcome(Cause.VIEW_EMPTY, f"no bay is seen in {self.tried} looks")
            return Outcome(text=f"bays {', '.join(unseen)} are not seen" if unseen else "")
        return self.then("moved", Wait(PAUSE))

    def _tell(self, now: ThesisNow, seen: Sequence[Sighting], state: int) -> int:
        """How many discs lie where bays are seen; their state is remembered."""
        thesis, count = now.thesis, 0
        for x, y, _ in (one.position for one in seen):
            for bay, (u, v) in enumerate(zip(thesis.load_x, thesis.load_y, strict=True)):
                if max(abs(1e3 * x - u), abs(1e3 * y - v)) < thesis.load_window:
                    now.memory.load[bay] = state
                    count += 1
        return count


def glance_for(now: ThesisNow, mode: Mode, speed: float = 0.0, *, shown: bool = False) -> Glance:
    """Look for things (single) or places (pair)."""
    if mode == "single":
        return Glance("white", "single", speed, 1e-3 * now.thesis.only_on_places, shown)
    return Glance("black", "pair", speed, shown=shown)


def _unseen(mode: Mode, looks: int) -> Outcome:
    what = "no disc" if mode == "single" else "no pair of discs"
    return Outcome(Cause.VIEW_EMPTY, f"{what} in {looks} looks")


@dataclass
class Align(Skill):
    """VorIk: turn the first joint at a speed that falls with the angle to the nearest symbol, until that is ahead.

    Attributes:
        mode: single for things, pair for places.
        glances: So far.
        empty: Of them without a symbol.
        place: Of the symbol, in the root's frame.
    """

    name = "align"
    mode: Mode = "single"
    glances: int = 0
    empty: int = 0
    place: Point | None = None

    def about(self) -> Outcome:
        """What it deals with."""
        return Outcome(position=self.place)

    def _begin(self, now: ThesisNow, came: Outcome) -> Request | Outcome:
        return self._glance(now, 0.0)

    def _glance(self, now: ThesisNow, speed: float) -> Request:
        self.glances += 1
        return self.then("seen", glance_for(now, self.mode, speed))

    def _seen(self, now: ThesisNow, came: Outcome) -> Request | Outcome:
        if not came.done:
            return came
        symbol = nearest(came.seen)
        if symbol is None:
            self.empty += 1
            if self.empty > now.thesis.empty_looks:
                return _unseen(self.mode, self.empty)
            return self.then("missed", Stand())
        self.place = now.in_root(symbol.position)
        x, y, _ = symbol.position
        if y <= 0.0:
            return Outcome(Cause.NOT_REACHABLE, "the nearest symbol is behind the arm")
        speed = _CONTROL.speed(x, y)
        if speed == 0.0 and abs(now.turning) < _END_SPEED:
            return self.then("stands", Stand())
        if self.glances > _MOST_GLANCES:
            return Outcome(Cause.NOT_FOLLOWED, f"not ahead after {self.glances} looks")
        return self._glance(now, speed)

    def _missed(self, now: ThesisNow, came: Outcome) -> Request | Outcome:
        return self.then("waited", Wait(PAUSE))

    def _waited(self, now: ThesisNow, came: Outcome) -> Request | Outcome:
        return self._glance(now, 0.0)

    def _stands(self, now: ThesisNow, came: Outcome) -> Request | Outcome:
        return Outcome(position=self.place)


@dataclass
class Locate(Skill):
    """PosMinDis, as often as the thesis's Aufheben and Ablegen call it.

    What comes back is the nearest symbol's place in the arm's frame, alone in ``seen``, and where that is.

    Attributes:
        mode: single for things, pair for places.
        found: Of the nearest symbol in each look that saw one [m].
        glances: Of this round.
        rounds: Without a symbol.
    """

    name = "look"
    mode: Mode = "single"
    found: list[Point] = field(default_factory=list)
    glances: int = 0
    rounds: int = 0

    def _begin(self, now: ThesisNow, came: Outcome) -> Request | Outcome:
        self.found, self.glances = [], 0
        return self._glance(now)

    def _glance(self, now: ThesisNow) -> Request:
        last = self.glances + 1 == now.thesis.looks
        return self.then("seen", glance_for(now, self.mode, shown=last))

    def _seen(self, now: ThesisNow, came: Outcome) -> Request | Outcome:
        if not came.done:
            return came
        self.glances += 1
        symbol = nearest(came.seen)
        if symbol is not None:
            self.found = [*self.found, symbol.position]
        if self.glances < now.thesis.looks:
            return self._glance(now)
        place = near_median(self.found, 1e-3 * now.thesis.near_median)
        if place is not None:
            return Outcome(seen=(Sighting(place),), position=now.in_root(place))
        self.rounds += 1
        if self.rounds > now.thesis.empty_looks:
            return _unseen(self.mode, self.rounds * self.glances)
        return self.then("begin", Wait(PAUSE))
