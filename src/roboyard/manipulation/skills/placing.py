"""Skills that set down what is held: on a free place, or where it came from."""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from typing import Final

from roboyard.manipulation.skills.asking import DONE, Look, Outcome, Point, Sighting, Wait
from roboyard.manipulation.skills.causes import BARRED, MOVED_ON, UNSEEN, Cause
from roboyard.manipulation.skills.handling import Ready, Release, above
from roboyard.manipulation.skills.loading import Stow
from roboyard.manipulation.skills.memory import FULL
from roboyard.manipulation.skills.moving import Meeting, meeting, moves, on_belt, silent
from roboyard.manipulation.skills.picking import in_field, within_reach
from roboyard.manipulation.skills.riding import Along, standing
from roboyard.manipulation.skills.seeing import Align, LookAround
from roboyard.manipulation.skills.skill import Now, Request, Skill

_BETWEEN: Final = 1.0
"""Looks for a place on a belt are so far apart [s]."""
GENTLE: Final = 0.3
"""Of the speeds, where something went wrong before."""


@dataclass
class FindPlaces(Skill):
    """Look for pairs of black discs on which nothing stands; the nearest comes first.

    Attributes:
        where: Where; empty: where the robot is.
        things: What was seen standing there, or moving.
        waited: For a belt to bring one [s].
    """

    name = "find_places"
    where: str = ""
    things: tuple[Sighting, ...] = ()
    waited: float = 0.0

    def _begin(self, now: Now, came: Outcome) -> Request | Outcome:
        where = self.where or now.memory.at
        if (why := silent(now, where)) is not None:
            return why
        view = LookAround("white", "single", now.config.glances, where, where in now.config.moving)
        return self.then("things_seen", view)

    def _things_seen(self, now: Now, came: Outcome) -> Request | Outcome:
        if not came.done and came.cause not in UNSEEN:
            return came
        self.things, config = came.seen, now.config
        now.memory.things = in_field(standing(came.seen, now), now)
        moving = (self.where or now.memory.at) in config.moving
        looks = config.moving_looks if moving else config.glances
        return self.then("places_seen", Look("black", "pair", looks, moving))

    def _places_seen(self, now: Now, came: Outcome) -> Request | Outcome:
        memory = now.memory
        memory.free = []
        if (self.where or memory.at) in now.config.moving and any(moves(one, now.config) for one in came.seen):
            return self._meet(now, on_belt(came.seen, now.config, self.where or memory.at))
        if not came.done:
            return self._wait(now, came) if came.cause in UNSEEN else came
        free = [one for one in came.seen if not covered(now, one.position)]
        near = [one for one in free if within_reach(now, one.position)]
        memory.free = [one.position for one in near]
        if not free:
            return Outcome(Cause.COVERED, f"something stands on all {len(came.seen)} places")
        if not near:
            text = f"{len(free)} free places are seen, all too far or too near"
            return Outcome(Cause.NOT_REACHABLE, text, position=free[0].position)
        return Outcome(seen=tuple(near), position=near[0].position)

    # -- on a belt -----------------------------------------------------------------------------------------------------
    def _meet(self, now: Now, seen: tuple[Sighting, ...]) -> Request | Outcome:
        """Places on a belt that the hand can meet, the first one first."""
        near = now.config.covered
        empty = [
            one for one in seen
            if all(math.dist(other.at(one.time_ns)[:2], one.position[:2]) > near for other in self.things)
        ]  # fmt: skip
        if not empty:
            return self._wait(now, Outcome(Cause.COVERED, f"something stands on all {len(seen)} places"))
        met = [(one, meeting(now, one, now.config.ahead)) for one in empty if moves(one, now.config)]
        can = sorted(((found.begin_ns, one) for one, found in met if isinstance(found, Meeting)), key=lambda it: it[0])
        if can:
            return Outcome(seen=tuple(one for _, one in can), position=can[0][1].position)
        why = [found for _, found in met if isinstance(found, Outcome)]
        fast = next((one for one in why if one.cause is Cause.TOO_FAST), None)
        return fast or self._wait(now, why[0])

    def _wait(self, now: Now, came: Outcome) -> Request | Outcome:
        if (self.where or now.memory.at) not in now.config.moving or self.waited >= now.config.patience:
            return came
        self.waited += _BETWEEN
        return self.then("waited_for", Wait(_BETWEEN))

    def _waited_for(self, now: Now, came: Outcome) -> Request | Outcome:
        return self._begin(now, DONE)


def covered(now: Now, place: Point) -> bool:
    """Whether something stands on a place."""
    return any(math.dist(one[:2], place[:2]) <= now.config.covered for one in now.memory.things)


@dataclass
class Place(Skill):
    """Set down what is held: at a given place, or midway between two black discs.

    Attributes:
        where: Where; empty: where the robot is.
        at: Where it shall stand; None: on the nearest free place.
        target: The place that is chosen.
        skipped: Places that did not do.
        tried: Places on a belt that did not.
        last: Why the last one did not.
    """

    name = "place"
    where: str = ""
    at: Point | None = None
    target: Point | None = None
    skipped: list[Point] = field(default_factory=list)
    tried: int = 0
    last: Outcome = DONE

    def about(self) -> Outcome:
        """What it deals with."""
        return Outcome(position=self.target)

    def _begin(self, now: Now, came: Outcome) -> Request | Outcome:
        return self.then("ready", Ready())

    def _ready(self, now: Now, came: Outcome) -> Request | Outcome:
        if not came.done:
            return came
        if now.memory.held is None:
            return Outcome(Cause.HAND_EMPTY, "nothing is held")
        if self.at is not None:
            self.target = self.at
            return self.then("released", Release(self.at))
        return self._look(now)

    def _look(self, now: Now) -> Request:
        self.target = None
        return self.then("found", FindPlaces(self.where))

    def _found(self, now: Now, came: Outcome) -> Request | Outcome:
        if not came.done:
            return came
        near = now.config.match
        free = [one.position for one in came.seen]
        left = [one for one in free if all(math.dist(one, other) > near for other in self.skipped)]
        if not left:
            return Outcome(self.last.cause, self.last.text, position=self.last.position)
        self.target = left[0]
        chosen = next(one for one in came.seen if one.position == self.target)
        if moves(chosen, now.config):
            return self.then("rode", Along(chosen, put=True))
        return self.then("aligned", Align("black", "pair", self.target))

    def _rode(self, now: Now, came: Outcome) -> Request | Outcome:
        if came.done:
            return Outcome(position=came.position)
        if now.memory.held is None or came.cause not in (Cause.TOO_CLOSE, *MOVED_ON, *BARRED):
            return came
        return self._met_again(now, came)

    def _met_again(self, now: Now, came: Outcome) -> Request | Outcome:
        """It is elsewhere now: look again."""
        self.tried += 1
        if self.tried > now.config.tries:
            return Outcome(came.cause, came.text, position=self.target)
        now.mended(came.cause, came.text, self.target)
        return self.then("ready", Ready())

    def _aligned(self, now: Now, came: Outcome) -> Request | Outcome:
        if came.view_empty:
            return self._skip(now, Outcome(Cause.COVERED, "the place is no longer seen", position=self.target))
        if came.cause in BARRED:
            return self._skip(now, came)
        if not came.done or came.position is None:
            return came
        self.target = came.position
        return self.then("seen_again", Look("white", "single", now.config.glances))

    def _seen_again(self, now: Now, came: Outcome) -> Request | Outcome:
        if self.target is None or (not came.done and came.cause not in UNSEEN):
            return came
        now.memory.things = in_field(came.seen, now)
        if covered(now, self.target):
            return self._skip(now, Outcome(Cause.COVERED, "something stands there now", position=self.target))
        return self.then("released", Release(self.target))

    def _released(self, now: Now, came: Outcome) -> Request | Outcome:
        if came.done:
            here = now.config.match
            now.memory.free = [one for one in now.memory.free if math.dist(one, self.target or one) > here]
            return Outcome(position=self.target)
        if self.at is None and (came.cause in (*BARRED, Cause.BLOCKED, Cause.TOO_CLOSE)):
            return self._skip(now, came)
        return self._met_again(now, came) if self.at is None and came.cause in MOVED_ON else came

    def _skip(self, now: Now, came: Outcome) -> Request | Outcome:
        """Choose another place."""
        if self.target is not None:
            self.skipped.append(self.target)
        self.last = came
        if len(self.skipped) > now.config.tries:
            return came
        now.mended(came.cause, came.text, self.target)
        return self._look(now)


@dataclass
class PutBack(Skill):
    """Put what is held back to where it came from; where that cannot be, into a bay.

    Attributes:
        heavy: It cannot be carried: it is left alone from then on.
        origin: Where the disc on top was.
    """

    name = "put_back"
    heavy: bool = False
    origin: Point | None = None

    def about(self) -> Outcome:
        """What it deals with."""
        return Outcome(position=self.origin)

    def _begin(self, now: Now, came: Outcome) -> Request | Outcome:
        return self.then("ready", Ready())

    def _ready(self, now: Now, came: Outcome) -> Request | Outcome:
        if not came.done:
            return came
        held = now.memory.held
        if held is None:
            return DONE
        if self.heavy:
            now.memory.shunned.append(held.origin)
        self.origin = held.origin
        bay = held.bay
        if not bay and now.memory.at in now.config.moving:
            return self.then("stowed", Stow())
        return self.then("back", Release(above(held.origin, -now.config.thing_height), bay, speed=GENTLE))

    def _back(self, now: Now, came: Outcome) -> Request | Outcome:
        memory = now.memory
        if came.done:
            if came.bay and came.bay <= len(memory.load):
                memory.load[came.bay - 1], memory.tops[came.bay - 1] = FULL, self.origin
            return Outcome(position=self.origin, bay=came.bay)
        if memory.held is None or came.cause not in (*BARRED, Cause.BLOCKED, Cause.TOO_CLOSE):
            return came
        now.mended(came.cause, came.text, self.origin)
        return self.then("stowed", Stow())

    def _stowed(self, now: Now, came: Outcome) -> Request | Outcome:
        return came
