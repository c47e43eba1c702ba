"""The skill that picks a thing from a field."""

from __future__ import annotations

import math
from dataclasses import dataclass, field

from roboyard.manipulation.skills.asking import DONE, Look, Outcome, Point, Sighting, Wait
from roboyard.manipulation.skills.causes import BARRED, MOVED_ON, UNSEEN, Cause
from roboyard.manipulation.skills.handling import Grasp, Ready
from roboyard.manipulation.skills.loading import in_window
from roboyard.manipulation.skills.moving import Meeting, meeting, moves, on_belt, silent
from roboyard.manipulation.skills.riding import Along, standing
from roboyard.manipulation.skills.room import hand_turns, touching
from roboyard.manipulation.skills.seeing import Align, LookAround
from roboyard.manipulation.skills.skill import Now, Request, Skill


def in_field(seen: tuple[Sighting, ...], now: Now) -> list[Point]:
    """What was seen of a field: not what stands in bays."""
    config = now.config
    return [
        one.position for one in seen if all(in_window((one,), bay, config.bay_window) is None for bay in now.body.bays)
    ]


def within_reach(now: Now, point: Point) -> bool:
    """Whether the hand gets there as far as the ground plan tells."""
    low, high = now.config.reach
    return low <= now.body.distance(point) <= high


@dataclass
class Pick(Skill):
    """Look, choose the nearest thing that can be taken, turn towards it, look again, take it.

    What cannot be taken is left alone and the next one is chosen; where something went wrong it looks again.

    Attributes:
        where: Where; empty: where the robot is.
        target: The thing that is chosen.
        tried: Grasps and looks that failed so far.
        skipped: Things that are left alone this time.
        last: Why the last one was not taken.
        waited: For something on a belt [s].
    """

    name = "pick"
    where: str = ""
    target: Point | None = None
    tried: int = 0
    skipped: list[Point] = field(default_factory=list)
    last: Outcome = DONE
    waited: float = 0.0

    def about(self) -> Outcome:
        """What it deals with."""
        return Outcome(position=self.target)

    def _begin(self, now: Now, came: Outcome) -> Request | Outcome:
        return self.then("ready", Ready())

    def _ready(self, now: Now, came: Outcome) -> Request | Outcome:
        if not came.done:
            return came
        if now.memory.held is not None:
            return Outcome(Cause.HAND_FULL, "something is held already")
        return self._look(now)

    def _look(self, now: Now) -> Request | Outcome:
        self.target = None
        config, where = now.config, self.where or now.memory.at
        if (why := silent(now, where)) is not None:
            return why
        moving = where in config.moving
        looks = config.moving_looks if moving else config.glances
        return self.then("seen", LookAround("white", "single", looks, where, moving))

    def _seen(self, now: Now, came: Outcome) -> Request | Outcome:
        belt = (self.where or now.memory.at) in now.config.moving
        if belt and came.cause in UNSEEN:
            return self._wait(now, came)
        if not came.done:
            return came
        stands = standing(came.seen, now)
        now.memory.things = in_field(stands, now)
        if belt and len(stands) < len(came.seen):
            return self._meet(now, on_belt(came.seen, now.config, self.where or now.memory.at))
        if now.config.only_on_places > 0.0:
            return self.then("places_seen", Look("black", "pair", now.config.glances))
        return self._choose(now, now.memory.things)

    def _places_seen(self, now: Now, came: Outcome) -> Request | Outcome:
        if not came.done and came.cause not in UNSEEN:
            return came
        near = now.config.only_on_places
        places = [one.position for one in came.seen]
        placed = [one for one in now.memory.things if any(math.dist(one[:2], place[:2]) <= near for place in places)]
        return self._choose(now, placed)

    def _choose(self, now: Now, things: list[Point]) -> Request | Outcome:
        config, memory = now.config, now.memory
        left = [one for one in things if not self._left_alone(now, one)]
        if not left:
            return self.last if not self.last.done else Outcome(Cause.VIEW_EMPTY, "there is nothing to be taken")
        near = [one for one in left if within_reach(now, one)]
        if not near:
            return Outcome(
                Cause.NOT_REACHABLE, f"{len(left)} things are seen, all too far or too near", position=left[0]
            )
        others = {one: [other for other in memory.things if other != one] for one in near}
        free = [one for one in near if hand_turns(one, now.body.azimuth(one), others[one], config)]
        if not free:
            return Outcome(Cause.TOO_CLOSE, f"fingers find no room beside any of {len(near)} things", position=near[0])
        self.target = min(free, key=lambda one: touching(one, others[one], config))  # the nearest of those
        return self.then("aligned", Align("white", "single", self.target))

    # -- on a belt -----------------------------------------------------------------------------------------------------
    def _meet(self, now: Now, seen: tuple[Sighting, ...]) -> Request | Outcome:
        """Go along with what can be met first."""
        moving = [one for one in seen if moves(one, now.config)]
        met = [(one, meeting(now, one, now.config.ahead)) for one in moving]
        can = [(found.begin_ns, one) for one, found in met if isinstance(found, Meeting)]
        if not can:
            why = [found for _, found in met if isinstance(found, Outcome)]
            fast = next((one for one in why if one.cause is Cause.TOO_FAST), None)
            return fast or self._wait(now, why[0] if why else Outcome(Cause.VIEW_EMPTY, "there is nothing on the belt"))
        _, one = min(can, key=lambda pair: pair[0])
        self.target = one.position
        others = tuple(other.at(one.time_ns) for other in moving if other is not one)
        return self.then("rode", Along(one, others))

    def _wait(self, now: Now, came: Outcome) -> Request | Outcome:
        """For the belt to bring something."""
        if self.waited >= now.config.patience:
            return came
        self.waited += _BETWEEN
        return self.then("waited_for", Wait(_BETWEEN))

    def _waited_for(self, now: Now, came: Outcome) -> Request | Outcome:
        return self._look(now)

    def _rode(self, now: Now, came: Outcome) -> Request | Outcome:
        if came.done:
            return Outcome(position=came.position)
        if came.cause not in (Cause.NOT_GRASPED, Cause.LOST, Cause.TOO_CLOSE, *MOVED_ON, *BARRED):
            return came
        self.tried += 1
        if self.tried > now.config.tries:
            return Outcome(came.cause, came.text, position=self.target)
        now.mended(came.cause, came.text, self.target)
        return self.then("ready", Ready())

    # -- what is left alone --------------------------------------------------------------------------------------------
    def _left_alone(self, now: Now, point: Point) -> bool:
        known = [*self.skipped, *now.memory.shunned]
        return any(math.dist(point[:2], one[:2]) <= now.config.match for one in known)

    def _aligned(self, now: Now, came: Outcome) -> Request | Outcome:
        if came.view_empty:
            return self._again(now, came, "it is no longer seen: fallen or taken away")
        if came.cause in BARRED:
            return self._skip(now, came)
        if not came.done or came.position is None:
            return came
        self.target, now.memory.things = came.position, in_field(came.seen, now)
        return self.then("grasped", Grasp(self.target))

    def _grasped(self, now: Now, came: Outcome) -> Request | Outcome:
        if came.done:
            return Outcome(position=self.target)
        if came.cause in (Cause.NOT_GRASPED, Cause.BLOCKED, Cause.LOST, *MOVED_ON):
            return self._again(now, came, came.text)
        if came.cause in (*BARRED, Cause.TOO_CLOSE, Cause.TOO_HEAVY):
            return self._skip(now, came)
        return came

    def _skip(self, now: Now, came: Outcome) -> Request | Outcome:
        """Leave it alone, take another."""
        if self.target is not None:
            self.skipped.append(self.target)
        self.last = came
        return self._again(now, came, came.text) if len(self.skipped) <= _MOST_SKIPPED else came

    def _again(self, now: Now, came: Outcome, text: str) -> Request | Outcome:
        self.tried += came.cause not in BARRED
        if self.tried > now.config.tries:
            return Outcome(came.cause, text, position=self.target)
        now.mended(came.cause, text, self.target)
        return self._look(now)


_MOST_SKIPPED = 20
_BETWEEN = 1.0
"""Looks for something on a belt are so far apart [s]."""
