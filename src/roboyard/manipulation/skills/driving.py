"""Skills of a robot that drives with its arm: change the place, and come nearer to what is out of reach."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Final

from roboyard.manipulation.skills.asking import DONE, Go, Move, Named, Outcome, Point, Show
from roboyard.manipulation.skills.causes import Cause
from roboyard.manipulation.skills.handling import held_size
from roboyard.manipulation.skills.skill import Now, Request, Skill

_WORTH: Final = 0.01
"""Nearer than this to where it should stand, driving changes nothing [m]."""


@dataclass
class ChangePlace(Skill):
    """Go to another place; where the robot drives, with the arm at rest.

    Things and places lie before the robot where no laser sees them: it backs off before it turns, and comes straight to
    a field from ``retreat`` before it.  When a drive fails it backs off and tries again.

    Attributes:
        place: Which.
        tried: Drives that failed.
    """

    name = "change_place"
    place: str = ""
    tried: int = 0

    def _begin(self, now: Now, came: Outcome) -> Request | Outcome:
        if not now.config.drives:
            return self.then("there", Go(self.place))
        return self.then("folded", Move((Named(now.config.rest),), holding=now.memory.held is not None))

    def _folded(self, now: Now, came: Outcome) -> Request | Outcome:
        if not came.done:
            return came
        if now.memory.at not in now.config.fields:
            return self._backed(now, DONE)
        return self._back(now)

    def _back(self, now: Now) -> Request:
        now.memory.at = ""
        return self.then("backed", Go(aside=(-now.config.retreat, 0.0)))

    def _backed(self, now: Now, came: Outcome) -> Request | Outcome:
        if not came.done:
            now.mended(came.cause, came.text)  # something is behind it: the way may lead elsewhere
        now.memory.at = ""
        if self.place not in now.config.fields:
            return self._before(now, DONE)
        return self.then("before", Go(self.place, (-now.config.retreat, 0.0)))

    def _before(self, now: Now, came: Outcome) -> Request | Outcome:
        return self.then("there", Go(self.place)) if came.done else self._again(now, came)

    def _there(self, now: Now, came: Outcome) -> Request | Outcome:
        if not came.done:
            return self._again(now, came)
        now.memory.at = self.place
        now.memory.barred.clear()
        return _begin_anew(self, now)

    def _again(self, now: Now, came: Outcome) -> Request | Outcome:
        self.tried += 1
        if self.tried > now.config.tries or not now.config.drives:
            return came
        now.mended(came.cause, came.text)
        return self._back(now)

    def _shown(self, now: Now, came: Outcome) -> Request | Outcome:
        return DONE


@dataclass
class DrawNear(Skill):
    """Drive straight until a point is as far from the first joint as the hand gets to best.

    Attributes:
        point: Seen where the robot is.
        way: To drive, ahead and to the left [m].
    """

    name = "draw_near"
    point: Point
    way: tuple[float, float] = (0.0, 0.0)

    def about(self) -> Outcome:
        """What it deals with."""
        return Outcome(position=self.point)

    def _begin(self, now: Now, came: Outcome) -> Request | Outcome:
        away, bearing = now.body.distance(self.point), now.body.azimuth(self.point)
        left = away - sum(now.config.reach) / 2.0
        if abs(left) < _WORTH:
            return Outcome(Cause.NOT_REACHABLE, "driving nearer does not help")
        self.way = (left * math.cos(bearing), left * math.sin(bearing))
        return self.then("there", Go(aside=self.way))

    def _there(self, now: Now, came: Outcome) -> Request | Outcome:
        if not came.done:
            return came
        x, y = self.way
        now.memory.shunned = [(u - x, v - y, w) for u, v, w in now.memory.shunned]
        return _begin_anew(self, now)

    def _shown(self, now: Now, came: Outcome) -> Request | Outcome:
        return DONE


def _begin_anew(skill: Skill, now: Now) -> Request:
    """What was seen lies elsewhere now."""
    memory = now.memory
    memory.things, memory.free = [], []
    held = held_size(now) if memory.held is not None else None
    return skill.then("shown", Show(tuple(memory.around()), held))
