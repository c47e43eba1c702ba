"""Skills of the bays: what is in them, put something in, take something out."""

from __future__ import annotations

from dataclasses import dataclass

from roboyard.manipulation.skills.asking import DONE, Look, Move, Named, Outcome, Point, Sighting, Wait
from roboyard.manipulation.skills.causes import BARRED, UNSEEN, Cause
from roboyard.manipulation.skills.handling import Grasp, Ready, Release, above
from roboyard.manipulation.skills.memory import EMPTY, FULL, UNSEEN_BAY
from roboyard.manipulation.skills.skill import Now, Request, Skill


def in_window(seen: tuple[Sighting, ...], middle: Point, window: float) -> Point | None:
    """The first disc in a bay's window; None: there is none."""
    for one in seen:
        if abs(one.position[0] - middle[0]) <= window and abs(one.position[1] - middle[1]) <= window:
            return one.position
    return None


@dataclass
class CheckLoad(Skill):
    """Look at the bays: a white disc stands for a full one, a black one for an empty one.

    Attributes:
        tried: Looks so far.
        white: Discs on things in bays.
    """

    name = "check_load"
    tried: int = 0
    white: tuple[Sighting, ...] = ()

    def _begin(self, now: Now, came: Outcome) -> Request | Outcome:
        count = len(now.body.bays)
        now.memory.load, now.memory.tops = [UNSEEN_BAY] * count, [None] * count
        now.memory.turns = now.memory.turns or [None] * count
        if not count:
            return DONE
        return self.then("moved", Move((Named(now.config.load_view),), holding=now.memory.held is not None))

    def _moved(self, now: Now, came: Outcome) -> Request | Outcome:
        if not came.done:
            return came
        return self.then("settled", Wait(now.config.settle))

    def _settled(self, now: Now, came: Outcome) -> Request | Outcome:
        return self.then("white_seen", Look("white", "single", now.config.glances))

    def _white_seen(self, now: Now, came: Outcome) -> Request | Outcome:
        if not came.done and came.cause not in UNSEEN:
            return came
        self.white = came.seen
        return self.then("black_seen", Look("black", "single", now.config.glances))

    def _black_seen(self, now: Now, came: Outcome) -> Request | Outcome:
        if not came.done and came.cause not in UNSEEN:
            return came
        memory, config = now.memory, now.config
        for k in range(len(now.body.bays)):
            middle = now.body.bay(k + 1)
            for seen, state in ((self.white, FULL), (came.seen, EMPTY)):
                found = in_window(seen, middle, config.bay_window)
                if found is not None and memory.load[k] == UNSEEN_BAY:
                    memory.load[k], memory.tops[k] = state, found
        self.tried += 1
        unseen = [k for k, state in enumerate(memory.load, 1) if state == UNSEEN_BAY]
        if unseen and self.tried < config.tries:
            return self._settled(now, DONE)
        if len(unseen) == len(now.body.bays):
            return Outcome(Cause.VIEW_EMPTY, f"no bay is seen in {self.tried} looks")
        return Outcome(text=f"bays {', '.join(map(str, unseen))} are not seen" if unseen else "")


def _chosen(bay: int, asked: int, wanted: int, now: Now, came: Outcome) -> tuple[int, Outcome | None]:
    """The bay asked for, or the first in the wanted state (`EMPTY` or `FULL`), and why it will not do."""
    load = now.memory.load
    if asked > len(load):
        return bay, Outcome(Cause.BAD_GOAL, f"there are {len(load)} bays", bay=asked)
    bay = asked or now.memory.first(wanted)
    if bay and (load[bay - 1] == FULL) == (wanted == FULL):
        return bay, None
    if not asked and not came.done:
        return bay, came
    cause, is_, none = (Cause.NOTHING_LOADED, "empty", "full") if wanted == FULL else (Cause.BAY_FULL, "full", "empty")
    return bay, Outcome(cause, f"bay {bay} is {is_}" if asked else f"no bay is {none} and within reach", bay=bay)


@dataclass
class Stow(Skill):
    """Put what is held into a bay.

    Attributes:
        bay: From 1 on; 0: the first empty one.
        tried: Times that it came upon something in a bay.
    """

    name = "stow"
    bay: int = 0
    tried: int = 0
    asked: int = 0

    def about(self) -> Outcome:
        """What it deals with."""
        return Outcome(bay=self.bay)

    def _begin(self, now: Now, came: Outcome) -> Request | Outcome:
        memory = now.memory
        if memory.held is None:
            return Outcome(Cause.HAND_EMPTY, "nothing is held")
        self.asked = self.bay
        if not memory.load:
            return self.then("checked", CheckLoad())
        return self._choose(now, DONE)

    def _checked(self, now: Now, came: Outcome) -> Request | Outcome:
        return self._choose(now, came) if came.done else came

    def _choose(self, now: Now, came: Outcome) -> Request | Outcome:
        self.bay, why = _chosen(self.bay, self.asked, EMPTY, now, came)
        if why is not None:
            return why
        return self.then("stowed", Release(self._floor(now), self.bay))

    def _floor(self, now: Now) -> Point:
        seen = now.memory.tops[self.bay - 1] if now.memory.load[self.bay - 1] == EMPTY else None
        return seen or now.body.bay(self.bay)

    def _stowed(self, now: Now, came: Outcome) -> Request | Outcome:
        memory = now.memory
        if came.done:
            memory.load[self.bay - 1] = FULL
            memory.tops[self.bay - 1] = above(came.position or now.body.bay(self.bay), now.config.thing_height)
            return Outcome(bay=self.bay, position=came.position)
        if came.cause in BARRED and not self.asked:
            memory.barred.append(self.bay)
            now.mended(came.cause, f"bay {self.bay}: {came.text}", came.position)
            return self._choose(now, came)
        self.tried += 1
        if came.cause is Cause.BLOCKED and not self.asked and self.tried < now.config.tries:
            now.mended(came.cause, f"bay {self.bay}: {came.text}", came.position)
            return self.then("checked", CheckLoad())
        return came


@dataclass
class Unstow(Skill):
    """Take something out of a bay.

    Attributes:
        bay: From 1 on; 0: the first full one.
        tried: Grasps so far.
    """

    name = "unstow"
    bay: int = 0
    tried: int = 0
    asked: int = 0

    def about(self) -> Outcome:
        """What it deals with."""
        return Outcome(bay=self.bay)

    def _begin(self, now: Now, came: Outcome) -> Request | Outcome:
        self.asked = self.bay
        return self.then("ready", Ready())

    def _ready(self, now: Now, came: Outcome) -> Request | Outcome:
        if not came.done:
            return came
        if now.memory.held is not None:
            return Outcome(Cause.HAND_FULL, "something is held already")
        if not now.memory.load:
            return self.then("checked", CheckLoad())
        return self._choose(now, DONE)

    def _checked(self, now: Now, came: Outcome) -> Request | Outcome:
        return self._choose(now, came) if came.done else came

    def _choose(self, now: Now, came: Outcome) -> Request | Outcome:
        self.bay, why = _chosen(self.bay, self.asked, FULL, now, came)
        if why is not None:
            return why
        memory = now.memory
        top = memory.tops[self.bay - 1] or above(now.body.bay(self.bay), now.config.thing_height)
        return self.then("taken", Grasp(top, self.bay, memory.turns[self.bay - 1]))

    def _taken(self, now: Now, came: Outcome) -> Request | Outcome:
        memory, self.tried = now.memory, self.tried + 1
        if came.done:
            memory.load[self.bay - 1], memory.tops[self.bay - 1] = EMPTY, None
            return Outcome(bay=self.bay, position=came.position)
        if came.cause in BARRED and not self.asked:
            memory.barred.append(self.bay)
            now.mended(came.cause, f"bay {self.bay}: {came.text}", came.position)
            return self._choose(now, came)
        if came.cause in (Cause.NOT_GRASPED, Cause.BLOCKED, Cause.LOST) and self.tried < now.config.tries:
            now.mended(came.cause, f"bay {self.bay}: {came.text}", came.position)
            return self.then("checked", CheckLoad())
        return came
