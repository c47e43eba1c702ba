"""Skills of the hand: take hold of what stands somewhere, and set down what is held."""

from __future__ import annotations

import math
from dataclasses import dataclass, field, replace
from typing import Final

from roboyard.manipulation.skills.asking import DONE, Grip, Joints, Move, Outcome, Point, Show, Tip, Wait
from roboyard.manipulation.skills.causes import Cause
from roboyard.manipulation.skills.memory import Held
from roboyard.manipulation.skills.moving import belt_here, started
from roboyard.manipulation.skills.room import hand_turns
from roboyard.manipulation.skills.skill import Now, Request, Skill


def above(point: Point, height: float) -> Point:
    """A place over or under another [m]."""
    return point[0], point[1], point[2] + height


def without(things: list[Point], point: Point, near: float) -> list[Point]:
    """Things that stand elsewhere than at a place."""
    return [one for one in things if max(abs(one[0] - point[0]), abs(one[1] - point[1])) > near]


def apart(now: Now, point: Point) -> list[Point]:
    """Things that stand around, but not at a place."""
    return without(now.memory.around(), point, now.config.thing_radius)


@dataclass
class Down(Skill):
    """What goes straight down, and comes up again whatever happened there.

    Attributes:
        over: Where the joints were before the hand went down.
        outcome: How it will end, once the arm is out of the way.
    """

    over: tuple[float, ...] = field(default=(), kw_only=True)
    outcome: Outcome = field(default=DONE, kw_only=True)

    def _up_or_back(self, now: Now, came: Outcome) -> Request | Outcome:
        """End where a straight line led up; else go to where the joints were before.

        An arm that something has pressed aside may find no straight line: a tool with less than six joints cannot be
        turned back to pointing down while it follows one.
        """
        if came.done or not self.over:
            return self._went_back(now, came)
        back = Move((Joints(self.over),), holding=now.memory.held is not None, speed=_BACK)
        return self.then("went_back", back)

    def _went_back(self, now: Now, came: Outcome) -> Request | Outcome:
        now.memory.down = not came.done
        return self.outcome


@dataclass
class Grasp(Down):
    """From straight above: go down, close, feel, lift.

    What the fingers do not feel was not there: they open again and the arm goes up.  What the arm cannot lift is put
    down again where it stood.

    Attributes:
        top: Disc on the thing.
        bay: It stands in, from 1 on; 0: in a field.
        across: The fingers shall close across this turn of the hand, which set it down; None: as is nearest.
        yaws: Turns of the hand that are left to be tried.
        efforts: Of the joints over it, before.
    """

    name = "grasp"
    top: Point
    bay: int = 0
    across: float | None = None
    yaws: tuple[float, ...] = ()
    efforts: tuple[float, ...] = ()

    def about(self) -> Outcome:
        """What it deals with."""
        return Outcome(position=self.top, bay=self.bay)

    def _begin(self, now: Now, came: Outcome) -> Request | Outcome:
        config, around = now.config, apart(now, self.top)
        self.yaws = tuple(hand_turns(self.top, now.body.azimuth(self.top), around, config))
        if not self.yaws:
            return Outcome(Cause.TOO_CLOSE, "the fingers find no room beside what stands around it")
        if (last := self.across) is not None:
            self.yaws = tuple(sorted(self.yaws, key=lambda yaw: abs(math.cos(yaw - last))))
        return self.then("shown", Show(tuple(around)))

    def _shown(self, now: Now, came: Outcome) -> Request | Outcome:
        return self.then("opened", Grip(now.config.opening))

    def _opened(self, now: Now, came: Outcome) -> Request | Outcome:
        if not came.done:
            return came
        over = ways_down(now, above(self.top, -now.config.depth), now.config.approach, self.yaws)
        if not over:
            return Outcome(Cause.NOT_REACHABLE, "no joints from which the hand goes straight down to it")
        return self.then("above", Move(over, speed=now.config.speed))

    def _above(self, now: Now, came: Outcome) -> Request | Outcome:
        if not came.done:
            return came
        self.yaws = (now.body.yaw(now.joints) if now.joints else self.yaws[0],)
        belt = "" if self.bay else belt_here(now)
        if (why := started(now, belt)) is not None:
            return why
        self.efforts, self.over, now.memory.down = now.efforts, now.joints, True
        down = self._line(now, -now.config.depth, holding=False)
        return self.then("low", replace(down, guarded=True, field=belt, speed=now.config.touch_speed))

    def _low(self, now: Now, came: Outcome) -> Request | Outcome:
        if not came.done:
            return self._leave(now, came)
        now.memory.held = Held(self.top, self.bay)  # unless the fingers feel nothing
        return self.then("closed", Grip(now.config.closed, now.config.force))

    def _closed(self, now: Now, came: Outcome) -> Request | Outcome:
        if not came.done or not now.holding:
            return self._free(now, Outcome(Cause.NOT_GRASPED, came.text or "the fingers closed on nothing"))
        return self.then("attached", Show(tuple(apart(now, self.top)), held_size(now, standing=True)))

    def _attached(self, now: Now, came: Outcome) -> Request | Outcome:
        return self.then("lifted", self._line(now, now.config.approach - now.config.depth, holding=True))

    def _lifted(self, now: Now, came: Outcome) -> Request | Outcome:
        if came.done and self.efforts and now.efforts:
            mass = now.body.weigh(now.joints, self.efforts, now.efforts)
            if mass > now.config.payload:
                came = Outcome(Cause.TOO_HEAVY, f"it seems to weigh {mass:.1f} kg")
        if came.done:
            now.memory.things = without(now.memory.things, self.top, now.config.thing_radius)
            now.memory.down = False
            return self.then("up", Show(tuple(apart(now, self.top)), held_size(now)))
        self.outcome = came
        down = self._line(now, now.config.release_gap - now.config.depth, holding=came.cause is not Cause.LOST)
        return self.then("put_down", replace(down, guarded=came.cause is Cause.LOST))

    def _up(self, now: Now, came: Outcome) -> Request | Outcome:
        return DONE

    def _put_down(self, now: Now, came: Outcome) -> Request | Outcome:
        """It was never higher than it is lifted here: it stands again, or nothing better can be done.

        What is said to be lost may still hang between the fingers; if it lies under them they stop there.
        """
        if came.done or self.outcome.cause is Cause.LOST:
            return self._free(now, self.outcome)
        return self.then("rested", Wait(_RECOVERS))

    def _rested(self, now: Now, came: Outcome) -> Request | Outcome:
        down = self._line(now, now.config.release_gap - now.config.depth, holding=True)
        return self.then("put_down_again", down)

    def _put_down_again(self, now: Now, came: Outcome) -> Request | Outcome:
        return self._free(now, self.outcome)

    def _free(self, now: Now, outcome: Outcome) -> Request:
        """Let go of it, or of nothing."""
        self.outcome, now.memory.held = outcome, None
        if outcome.cause is Cause.TOO_HEAVY:  # it may have swung aside
            here = above(now.body.tip(now.joints), now.config.depth) if now.joints else self.top
            now.memory.shunned += [self.top, here]
        return self.then("freed", Show(tuple(apart(now, self.top))))

    def _freed(self, now: Now, came: Outcome) -> Request:
        return self.then("reopened", Grip(now.config.opening))

    def _reopened(self, now: Now, came: Outcome) -> Request | Outcome:
        return self._leave(now, self.outcome) if came.done else came

    def _leave(self, now: Now, outcome: Outcome) -> Request:
        self.outcome = outcome
        return self.then("left", self._line(now, now.config.approach - now.config.depth, holding=False))

    def _left(self, now: Now, came: Outcome) -> Request | Outcome:
        return self._up_or_back(now, came)

    def _line(self, now: Now, height: float, *, holding: bool) -> Move:
        target = Tip(above(self.top, height), self.yaws[0])
        return Move((target,), holding=holding, straight=True, speed=now.config.line_speed)


def held_size(now: Now, *, standing: bool = False) -> tuple[float, float]:
    """How far what is held reaches over and under the tool's tip [m]; a little less below, where it stands or stood."""
    return now.config.depth, now.config.thing_height - now.config.depth - (_STANDS if standing else 0.0)


def ways_down(now: Now, low: Point, height: float, yaws: tuple[float, ...]) -> tuple[Joints, ...]:
    """Joints over a place from each of which the tip goes straight down to it, in the order of the hand's turns."""
    return tuple(Joints(q) for q in now.body.over(low, height, yaws, now.joints))


_RECOVERS: Final = 1.0
"""Joints that could not follow are told anew where they are, and come to rest, within this time [s]."""
_BACK: Final = 0.3
"""Of the joints' speeds, on the way back from something that was come upon."""
_STANDS: Final = 0.012
"""So much of the lower end is not looked at for collisions, since it stands on something before and after [m]."""


@dataclass
class Release(Down):
    """Set down what is held: from straight above, open, go up.

    Until the fingers open it stays held, whatever happens.  On the way there both fingers may have gone aside with it:
    their joints tell how far, and that is made up for.

    Attributes:
        floor: Where it shall stand.
        bay: In which, from 1 on; 0: in a field.
        yaws: Turns of the hand that are left to be tried.
        speed: Share of the joints' speeds on the way.
        aside: How far the thing is off the tool's middle, in x and y [m].
    """

    name = "release"
    floor: Point
    bay: int = 0
    yaws: tuple[float, ...] = ()
    speed: float = 1.0
    aside: tuple[float, float] = (0.0, 0.0)

    def about(self) -> Outcome:
        """What it deals with."""
        return Outcome(position=self.floor, bay=self.bay)

    def _begin(self, now: Now, came: Outcome) -> Request | Outcome:
        if now.memory.held is None:
            return Outcome(Cause.HAND_EMPTY, "nothing is held")
        around = apart(now, self.floor)
        self.yaws = tuple(hand_turns(self.floor, now.body.azimuth(self.floor), around, now.config))
        if not self.yaws:
            return Outcome(Cause.TOO_CLOSE, "the fingers find no room beside what stands around")
        return self.then("shown", Show(tuple(around), held_size(now)))

    def _shown(self, now: Now, came: Outcome) -> Request | Outcome:
        over = ways_down(now, self._tip(now, 0.0), now.config.approach, self.yaws)
        if not over:
            return Outcome(Cause.NOT_REACHABLE, "no joints from which the hand goes straight down there")
        return self.then("above", Move(over, holding=True, speed=now.config.speed))

    def _above(self, now: Now, came: Outcome) -> Request | Outcome:
        if not came.done:
            return _unless_lost(now, came)
        yaw = now.body.yaw(now.joints) if now.joints else self.yaws[0]
        self.yaws, self.over = (yaw,), now.joints
        self.aside = now.shift * math.sin(yaw), -now.shift * math.cos(yaw)
        return self.then("over", Show(tuple(apart(now, self.floor)), held_size(now, standing=True)))

    def _over(self, now: Now, came: Outcome) -> Request | Outcome:
        belt = "" if self.bay else belt_here(now)
        if (why := started(now, belt)) is not None:
            return why
        now.memory.down = True
        down = self._line(now, now.config.release_gap, holding=True)
        return self.then("low", replace(down, guarded=True, field=belt))

    def _low(self, now: Now, came: Outcome) -> Request | Outcome:
        if not came.done:
            self.outcome = _unless_lost(now, came)
            return self.then("backed", self._line(now, now.config.approach, holding=now.memory.held is not None))
        memory = now.memory
        memory.held = None
        if self.bay:
            memory.turns[self.bay - 1] = self.yaws[0]
        else:
            others = without(memory.things, self.floor, now.config.thing_radius)
            memory.things = [*others, above(self.floor, now.config.thing_height)]
        return self.then("opened", Grip(now.config.opening))

    def _opened(self, now: Now, came: Outcome) -> Request | Outcome:
        if not came.done:
            return came
        return self.then("freed", Show(tuple(apart(now, self.floor))))

    def _freed(self, now: Now, came: Outcome) -> Request | Outcome:
        return self.then("left", self._line(now, now.config.approach, holding=False))

    def _left(self, now: Now, came: Outcome) -> Request | Outcome:
        now.memory.down = not came.done
        return DONE  # it stands there, wherever the arm got to

    def _backed(self, now: Now, came: Outcome) -> Request | Outcome:
        return self._up_or_back(now, came)

    def _tip(self, now: Now, height: float) -> Point:
        """The tool's tip with the thing's lower end so high over the floor."""
        x, y, z = above(self.floor, now.config.thing_height - now.config.depth + height)
        return x - self.aside[0], y - self.aside[1], z

    def _line(self, now: Now, height: float, *, holding: bool) -> Move:
        target = Tip(self._tip(now, height), self.yaws[0])
        return Move((target,), holding=holding, straight=True, speed=now.config.line_speed)


def _unless_lost(now: Now, came: Outcome) -> Outcome:
    """An outcome, with what is lost forgotten."""
    if came.cause is Cause.LOST:
        now.memory.held = None
    return came


@dataclass
class Ready(Skill):
    """Come to a state in which anything can begin: the hand empty and up, or known to hold something."""

    name = "ready"

    def _begin(self, now: Now, came: Outcome) -> Request | Outcome:
        memory = now.memory
        if memory.held is not None and not now.holding:
            now.mended(Cause.LOST, "what was held is no longer there", memory.held.origin)
            memory.held = None
        if not memory.down or not now.joints:
            return self._up(now, DONE)
        if memory.held is not None:
            return self.then("up", self._line(now))
        return self.then("freed", Show())

    def _freed(self, now: Now, came: Outcome) -> Request | Outcome:
        """The fingers may still stand around something: they open before the arm goes up."""
        return self.then("opened", Grip(now.config.opening))

    def _opened(self, now: Now, came: Outcome) -> Request | Outcome:
        return self.then("up", self._line(now)) if came.done else came

    def _up(self, now: Now, came: Outcome) -> Request | Outcome:
        memory = now.memory
        memory.down = False  # or nothing better can be done
        held = held_size(now) if memory.held is not None else None
        return self.then("shown", Show(tuple(memory.around()), held))

    def _shown(self, now: Now, came: Outcome) -> Request | Outcome:
        return DONE

    def _line(self, now: Now) -> Move:
        up = Tip(above(now.body.tip(now.joints), now.config.approach), now.body.yaw(now.joints))
        return Move((up,), holding=now.memory.held is not None, straight=True, speed=now.config.line_speed)
