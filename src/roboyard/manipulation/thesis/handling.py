"""The thesis's Aufheben and Ablegen, with what each of them does in the bays apart; listings L and M.

Nothing is felt and nothing is looked out for: a skill is done when its motions are.
"""

from __future__ import annotations

from dataclasses import dataclass

from roboyard.manipulation.planning.errors import GoalUnreachable
from roboyard.manipulation.skills import DONE, Cause, Outcome, Point, Skill
from roboyard.manipulation.skills.memory import EMPTY, FULL, UNSEEN_BAY, Held
from roboyard.manipulation.skills.skill import Now, Request
from roboyard.manipulation.thesis.asking import LEFT, Fingers, Reach, ThesisNow
from roboyard.manipulation.thesis.inverse import point_down
from roboyard.manipulation.thesis.looking import Align, Locate


@dataclass
class Hand(Skill):
    """A skill that ends where the arm gets to no more, or a joint does not come; subclasses bring the rest.

    Attributes:
        symbol: In the arm's frame [m].
        place: The same in the root's frame.
        bay: It deals with, from 1 on; 0: none.
    """

    symbol: Point | None = None
    place: Point | None = None
    bay: int = 0

    def about(self) -> Outcome:
        """What it deals with."""
        return Outcome(position=self.place, bay=self.bay)

    def step(self, now: Now, came: Outcome) -> Request | Outcome:
        """Go on; what was not done, or cannot be reached, ends it."""
        if not came.done:
            return came
        try:
            return super().step(now, came)
        except GoalUnreachable as error:
            return Outcome(Cause.NOT_REACHABLE, str(error))

    def _remember(self, now: ThesisNow, state: int) -> None:
        memory = now.memory
        memory.load = memory.load or [UNSEEN_BAY] * len(now.thesis.bay_turns)
        memory.load[self.bay - 1] = state

    def _over(self, now: ThesisNow, height: float) -> Reach:
        """Pointing down over the symbol, or below its height [mm]."""
        _, y, z = self.symbol or (0.0, 0.0, 0.0)
        down = point_down(1e3 * y, 1e3 * z + height, as_programmed=now.thesis.as_programmed)
        return Reach((LEFT, *down, LEFT))

    def _take_symbol(self, came: Outcome) -> None:
        if came.seen:
            self.symbol, self.place = came.seen[0].position, came.position


@dataclass
class Pick(Hand):
    """Aufheben, until the thing is up.

    Attributes:
        where: Field.
    """

    name = "pick"
    where: str = ""

    def _begin(self, now: ThesisNow, came: Outcome) -> Request | Outcome:
        return self.then("moved", look_at(now, self.where))

    def _moved(self, now: ThesisNow, came: Outcome) -> Request | Outcome:
        return self.then("aligned", Align("single"))

    def _aligned(self, now: ThesisNow, came: Outcome) -> Request | Outcome:
        return self.then("located", Locate("single"))

    def _located(self, now: ThesisNow, came: Outcome) -> Request | Outcome:
        self._take_symbol(came)
        return self.then("grasped", Grasp(self.symbol, self.place))

    def _grasped(self, now: ThesisNow, came: Outcome) -> Request | Outcome:
        return self.then("up", Reach((LEFT, *now.thesis.upright)))

    def _up(self, now: ThesisNow, came: Outcome) -> Request | Outcome:
        return Outcome(position=self.place)


@dataclass
class Grasp(Hand):
    """Over the symbol, open, down, close, up."""

    name = "grasp"

    def _begin(self, now: ThesisNow, came: Outcome) -> Request | Outcome:
        return self.then("above", self._over(now, now.thesis.pick_heights[0]))

    def _above(self, now: ThesisNow, came: Outcome) -> Request | Outcome:
        return self.then("opened", Fingers(now.thesis.gripper[0]))

    def _opened(self, now: ThesisNow, came: Outcome) -> Request | Outcome:
        return self.then("low", self._over(now, now.thesis.pick_heights[1]))

    def _low(self, now: ThesisNow, came: Outcome) -> Request | Outcome:
        now.memory.held = Held(self.place or (0.0, 0.0, 0.0))
        return self.then("closed", Fingers(now.thesis.gripper[1]))

    def _closed(self, now: ThesisNow, came: Outcome) -> Request | Outcome:
        return self.then("lifted", self._over(now, now.thesis.pick_heights[0]))

    def _lifted(self, now: ThesisNow, came: Outcome) -> Request | Outcome:
        return Outcome(position=self.place)


@dataclass
class Stow(Hand):
    """The second half of Aufheben: into a bay."""

    name = "stow"

    def _begin(self, now: ThesisNow, came: Outcome) -> Request | Outcome:
        return self.then("turned", over_head(now, self.bay))

    def _turned(self, now: ThesisNow, came: Outcome) -> Request | Outcome:
        return self.then("above", Reach(now.thesis.over_bay(self.bay, now.thesis.stow_over)))

    def _above(self, now: ThesisNow, came: Outcome) -> Request | Outcome:
        return self.then("low", Reach(now.thesis.over_bay(self.bay, now.thesis.stow_at)))

    def _low(self, now: ThesisNow, came: Outcome) -> Request | Outcome:
        return self.then("opened", Fingers(now.thesis.gripper[0]))

    def _opened(self, now: ThesisNow, came: Outcome) -> Request | Outcome:
        now.memory.held = None
        self._remember(now, FULL)
        if not now.thesis.stow_leaves:
            return self._left(now, DONE)
        return self.then("left", Reach(now.thesis.over_bay(self.bay, now.thesis.take_over)))

    def _left(self, now: ThesisNow, came: Outcome) -> Request | Outcome:
        return self.then("up", Reach((LEFT, *now.thesis.upright)))

    def _up(self, now: ThesisNow, came: Outcome) -> Request | Outcome:
        return Outcome(bay=self.bay)


@dataclass
class Unstow(Hand):
    """The first half of Ablegen: out of a bay."""

    name = "unstow"

    def _begin(self, now: ThesisNow, came: Outcome) -> Request | Outcome:
        return self.then("turned", over_head(now, self.bay))

    def _turned(self, now: ThesisNow, came: Outcome) -> Request | Outcome:
        return self.then("above", Reach(now.thesis.over_bay(self.bay, now.thesis.take_over)))

    def _above(self, now: ThesisNow, came: Outcome) -> Request | Outcome:
        return self.then("opened", Fingers(now.thesis.gripper[0]))

    def _opened(self, now: ThesisNow, came: Outcome) -> Request | Outcome:
        return self.then("low", Reach(now.thesis.over_bay(self.bay)))

    def _low(self, now: ThesisNow, came: Outcome) -> Request | Outcome:
        now.memory.held = Held((0.0, 0.0, 0.0), self.bay)
        return self.then("closed", Fingers(now.thesis.gripper[1]))

    def _closed(self, now: ThesisNow, came: Outcome) -> Request | Outcome:
        return self.then("lifted", Reach(now.thesis.over_bay(self.bay, now.thesis.take_over)))

    def _lifted(self, now: ThesisNow, came: Outcome) -> Request | Outcome:
        self._remember(now, EMPTY)
        return Outcome(bay=self.bay)


@dataclass
class Place(Hand):
    """The second half of Ablegen: midway between two black discs.

    Attributes:
        where: Field.
    """

    name = "place"
    where: str = ""

    def _begin(self, now: ThesisNow, came: Outcome) -> Request | Outcome:
        return self.then("moved", look_at(now, self.where))

    def _moved(self, now: ThesisNow, came: Outcome) -> Request | Outcome:
        return self.then("aligned", Align("pair"))

    def _aligned(self, now: ThesisNow, came: Outcome) -> Request | Outcome:
        return self.then("located", Locate("pair"))

    def _located(self, now: ThesisNow, came: Outcome) -> Request | Outcome:
        self._take_symbol(came)
        return self.then("released", Release(self.symbol, self.place))

    def _released(self, now: ThesisNow, came: Outcome) -> Request | Outcome:
        return self.then("up", Reach((LEFT, *now.thesis.upright)))

    def _up(self, now: ThesisNow, came: Outcome) -> Request | Outcome:
        return Outcome(position=self.place)


@dataclass
class Release(Hand):
    """Over the place, down, open, up."""

    name = "release"

    def _begin(self, now: ThesisNow, came: Outcome) -> Request | Outcome:
        return self.then("above", self._over(now, now.thesis.place_heights[0]))

    def _above(self, now: ThesisNow, came: Outcome) -> Request | Outcome:
        return self.then("low", self._over(now, now.thesis.place_heights[1]))

    def _low(self, now: ThesisNow, came: Outcome) -> Request | Outcome:
        return self.then("opened", Fingers(now.thesis.gripper[0]))

    def _opened(self, now: ThesisNow, came: Outcome) -> Request | Outcome:
        now.memory.held = None
        return self.then("left", self._over(now, now.thesis.place_heights[0]))

    def _left(self, now: ThesisNow, came: Outcome) -> Request | Outcome:
        return Outcome(position=self.place)


@dataclass
class PutBack(Hand):
    """AblegenSimpel: back into the bay that it was taken from."""

    name = "put_back"

    def _begin(self, now: ThesisNow, came: Outcome) -> Request | Outcome:
        return self.then("turned", over_head(now, self.bay))

    def _turned(self, now: ThesisNow, came: Outcome) -> Request | Outcome:
        return self.then("above", Reach(now.thesis.over_bay(self.bay, now.thesis.take_over)))

    def _above(self, now: ThesisNow, came: Outcome) -> Request | Outcome:
        return self.then("low", Reach(now.thesis.over_bay(self.bay)))

    def _low(self, now: ThesisNow, came: Outcome) -> Request | Outcome:
        return self.then("opened", Fingers(now.thesis.gripper[0]))

    def _opened(self, now: ThesisNow, came: Outcome) -> Request | Outcome:
        now.memory.held = None
        self._remember(now, FULL)
        return self.then("lifted", Reach(now.thesis.over_bay(self.bay, now.thesis.take_over)))

    def _lifted(self, now: ThesisNow, came: Outcome) -> Request | Outcome:
        return self.then("up", Reach(now.thesis.view(now.thesis.bay_turns[self.bay - 1])))

    def _up(self, now: ThesisNow, came: Outcome) -> Request | Outcome:
        return Outcome(bay=self.bay)


def look_at(now: ThesisNow, field: str) -> Reach:
    """Upright, towards a field."""
    fields = now.config.fields
    turn = now.thesis.bearings[fields.index(field) if field in fields else 0]
    return Reach(now.thesis.view(turn))


def over_head(now: ThesisNow, bay: int) -> Reach:
    """Upright, turned so that the arm bends back into a bay."""
    return Reach((now.thesis.bay_turns[bay - 1], 0.0, 0.0, 0.0, now.thesis.bay_pose[3]))
