"""The hand's skill on belts: take hold of what moves along, or set something down on a place that does."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Final

from roboyard.geometry import wrap_angle
from roboyard.manipulation.skills.asking import Grip, Joints, Move, Outcome, Point, Ride, Show, Sighting, Tip
from roboyard.manipulation.skills.causes import Cause
from roboyard.manipulation.skills.handling import held_size
from roboyard.manipulation.skills.memory import Held
from roboyard.manipulation.skills.moving import PLANS, changed, duration, meeting, moves, stages
from roboyard.manipulation.skills.room import hand_turns
from roboyard.manipulation.skills.skill import Now, Request, Skill

_PLACES: Final = 4
"""Of a ride, that are looked at beforehand for whether joints get there."""


@dataclass
class Along(Skill):
    """Wait over its way, go along with it and down, move the fingers, go up, all in one motion that is planned before.

    Attributes:
        target: Disc on the thing, or the place on which what is held shall stand.
        others: Discs on things that move with it, where they were when it was seen.
        put: Whether something is set down.
        place: Where the hand waits.
        yaws: Turns of the hand that are left to be tried.
        aside: How far what is held is off the tool's middle, in x and y [m].
        begin_ns: When the ride begins.
        outcome: How it will end.
    """

    name = "along"
    target: Sighting
    others: tuple[Point, ...] = ()
    put: bool = False
    place: Point = (0.0, 0.0, 0.0)
    yaws: tuple[float, ...] = ()
    aside: tuple[float, float] = (0.0, 0.0)
    begin_ns: int = 0
    outcome: Outcome = Outcome()  # noqa: RUF009 - frozen

    def about(self) -> Outcome:
        """What it deals with: where it was seen."""
        return Outcome(position=self.target.position)

    def _begin(self, now: Now, came: Outcome) -> Request | Outcome:
        config, one = now.config, self.target
        if self.put and now.memory.held is None:
            return Outcome(Cause.HAND_EMPTY, "nothing is held")
        met = changed(now, one) or meeting(now, one, config.ahead)
        if isinstance(met, Outcome):
            return met
        self.place = met.place
        middle = one.at(met.begin_ns + round(1e9 * (config.join + config.down)))
        self.yaws = tuple(hand_turns(one.position, now.body.azimuth(middle), self.others, config))
        if not self.yaws:
            return Outcome(Cause.TOO_CLOSE, "the fingers find no room beside what moves around it")
        return self.then("shown", self._show(now, keep_out=True))

    def _shown(self, now: Now, came: Outcome) -> Request | Outcome:
        return self._hover(now) if self.put else self.then("opened", Grip(now.config.opening))

    def _opened(self, now: Now, came: Outcome) -> Request | Outcome:
        return self._hover(now) if came.done else came

    def _hover(self, now: Now) -> Request | Outcome:
        """Wait in a position of the joints from which the whole ride can be done."""
        found = []
        for yaw in self.yaws:
            tips = self._tips(now, yaw)
            if (joints := now.body.along(tips, now.joints or None)) is not None:
                found.append(Joints(joints))
        if not found:
            text = "no position of the joints reaches all of the way along which the hand would go with it"
            return Outcome(Cause.NOT_REACHABLE, text)
        return self.then("above", Move(tuple(found), holding=self.put, speed=now.config.speed))

    def _tips(self, now: Now, yaw: float) -> list[Tip]:
        """From over the waiting place along the ride, as far as it goes."""
        over, low = self._heights(now)
        x, y, z = self.place
        u, v = self.target.velocity
        found = [Tip((x, y, z + over), yaw)]
        for k in range(_PLACES + 1):
            s = duration(now.config) * k / _PLACES
            found += [
                Tip((x + u * s, y + v * s, z + height), yaw) for height in ((low, over) if k % 2 else (over, low))
            ]
        return found

    def _above(self, now: Now, came: Outcome) -> Request | Outcome:
        if not came.done:
            if came.cause is Cause.LOST:
                now.memory.held = None
            return came
        met = changed(now, self.target) or meeting(now, self.target, PLANS, self.place)
        if isinstance(met, Outcome):
            return met
        yaw = now.body.yaw(now.joints) if now.joints else self.yaws[0]
        # the nearest of those that were wanted: what is measured leans by a little
        self.yaws = (min(self.yaws, key=lambda one: abs(wrap_angle(one - yaw))),)
        if self.put:
            self.aside = now.shift * math.sin(yaw), -now.shift * math.cos(yaw)
        self.begin_ns, now.memory.down = met.begin_ns, True
        return self.then("cleared", self._show(now, keep_out=False))

    def _cleared(self, now: Now, came: Outcome) -> Request | Outcome:
        config, (over, low) = now.config, self._heights(now)
        found = stages(self.target, self.begin_ns, over, low, self.yaws[0], config, self.aside)
        grip = Grip(config.opening) if self.put else Grip(config.closed, config.force)
        if not self.put:
            now.memory.held = Held(self.target.position)  # unless the fingers feel nothing
        return self.then("rode", Ride(self.begin_ns, found, grip, found[1].time_ns, now.memory.at, self.put))

    def _rode(self, now: Now, came: Outcome) -> Request | Outcome:
        memory = now.memory
        memory.down = not came.done
        if self.put:
            gone = now.time_ns > self.begin_ns + round(1e9 * (now.config.join + now.config.down + now.config.close))
            if gone or not now.holding:
                memory.held = None
            self.outcome = came if not gone else Outcome(position=self.target.at(now.time_ns))
        elif now.holding:
            memory.held = Held(self.target.at(now.time_ns))
            self.outcome = Outcome(position=self.target.at(now.time_ns))
        else:
            memory.held = None
            self.outcome = came if not came.done else Outcome(Cause.NOT_GRASPED, "the fingers closed on nothing")
        return self.then("told", self._show(now, keep_out=True))

    def _told(self, now: Now, came: Outcome) -> Request | Outcome:
        if not self.put and now.memory.held is None and not now.memory.down:
            return self.then("reopened", Grip(now.config.opening))
        return self.outcome

    def _reopened(self, now: Now, came: Outcome) -> Request | Outcome:
        return self.outcome

    def _heights(self, now: Now) -> tuple[float, float]:
        """Of the tip over the target, before the ride and in its lowest part [m]."""
        config = now.config
        over = max(config.approach, config.thing_height + 1.5 * config.room)  # what is held clears what moves along
        if self.put:
            tip = config.thing_height - config.depth
            return tip + over, tip + config.release_gap
        return over - config.depth, -config.depth

    def _show(self, now: Now, *, keep_out: bool) -> Show:
        """Whether the belt is kept out of, as it is but for the ride itself."""
        memory, name = now.memory, now.memory.at
        others = [lane for lane in memory.lanes if lane[0] != name]
        top = self.target.position[2] + (now.config.thing_height if self.put else 0.0)
        memory.lanes = [*others, (name, top)] if keep_out else others
        held = held_size(now, standing=not keep_out) if memory.held is not None else None
        return Show(tuple(memory.around()), held)


def standing(seen: tuple[Sighting, ...], now: Now) -> tuple[Sighting, ...]:
    """What does not move; where nothing moves its belt need not be kept out of."""
    found = tuple(one for one in seen if not moves(one, now.config))
    if len(found) == len(seen):
        now.memory.lanes = [lane for lane in now.memory.lanes if lane[0] != now.memory.at]
    return found
