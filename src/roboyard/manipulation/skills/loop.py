"""The loop: pick until the bays are full, place until they are empty, change the place, for ever."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Final, Literal

from roboyard.manipulation.skills.asking import DONE, Move, Named, Outcome, Wait
from roboyard.manipulation.skills.causes import BARRED, BEYOND, BLIND, BURDENED, MOVED_ON, UNSEEN, Cause
from roboyard.manipulation.skills.driving import ChangePlace, DrawNear
from roboyard.manipulation.skills.handling import Ready
from roboyard.manipulation.skills.loading import CheckLoad, Stow, Unstow
from roboyard.manipulation.skills.memory import EMPTY, FULL
from roboyard.manipulation.skills.picking import Pick
from roboyard.manipulation.skills.placing import FindPlaces, Place, PutBack
from roboyard.manipulation.skills.skill import Now, Request, Skill

Order = Literal["pick", "place"]
HOME: Final = "start_end"
"""Where the robot goes when it is over."""
_BETWEEN: Final = 2.0
"""Looks for a free place are so far apart [s]."""
_DRAWS: Final = 3
"""So often in a row the robot drives nearer to what it sees."""
_NOWHERE: Final = Outcome(Cause.NOT_REACHABLE, "no bay is within reach")


@dataclass
class Finish(Skill):
    """End well: nothing in the hand, the robot at its home place, the arm at rest.

    Attributes:
        outcome: How that ends which it finishes.
    """

    name = "finish"
    outcome: Outcome = DONE

    def _begin(self, now: Now, came: Outcome) -> Request | Outcome:
        return self.then("ready", Ready())

    def _ready(self, now: Now, came: Outcome) -> Request | Outcome:
        if not came.done:  # the arm stays
            return replace(self.outcome, text=came.text)
        if now.memory.held is None:
            return self._emptied(now, DONE)
        return self.then("put", PutBack())

    def _put(self, now: Now, came: Outcome) -> Request | Outcome:
        return self._emptied(now, came)

    def _emptied(self, now: Now, came: Outcome) -> Request | Outcome:
        return self.then("rested", Move((Named(now.config.rest),), holding=now.memory.held is not None))

    def _rested(self, now: Now, came: Outcome) -> Request | Outcome:
        return self.then("home", ChangePlace(HOME))

    def _home(self, now: Now, came: Outcome) -> Request | Outcome:
        return self.outcome


@dataclass
class Rounds(Skill):
    """What any loop tells of itself, whatever its method.

    Attributes:
        objects: To be placed; 0: no end.
        order: What it is at.
        picked: Stowed so far.
        placed: So far.
        text: What it waits for.
    """

    name = "loop"
    objects: int = 0
    order: Order = "pick"
    picked: int = 0
    placed: int = 0
    text: str = ""


@dataclass
class Loop(Rounds):
    """The thesis's main loop, with patience.

    What is loaded is placed first; else things are picked until the bays are full or nothing is in view.  With a full
    load and no free place it waits, looks again for ``patience``, then changes the place; where nothing could be moved
    at any place twice over, it rests for ``idle``.  It ends after ``objects`` were placed, or when nothing can be seen
    for want of pictures, the fingers do not open, or the arm does not even come to rest, time after time; somebody who
    cancels it gets the arm to rest.

    Attributes:
        changes: Of place since anything was moved.
        waited: For a free place [s].
        helpless: Times in a row that it could but wait: for pictures, for fingers or joints to move.
        failures: In a row.
        drawn: Drives nearer to what is seen, since anything was moved.
    """

    changes: int = 0
    waited: float = 0.0
    helpless: int = 0
    failures: int = 0
    drawn: int = 0

    def _begin(self, now: Now, came: Outcome) -> Request | Outcome:
        if not len(now.body.bays):
            return Outcome(Cause.BAD_GOAL, "there are no bays")
        return self.then("ready", Ready())

    def _ready(self, now: Now, came: Outcome) -> Request | Outcome:
        if not came.done:
            return self._failed(now, came)
        self.text = ""
        return self.then("checked", CheckLoad())

    def _checked(self, now: Now, came: Outcome) -> Request | Outcome:
        if came.cause in (*BLIND, *BEYOND):
            return self._cannot_see(now, came)
        if not came.done and not came.view_empty:
            return self._failed(now, came)
        if now.memory.held is not None:
            return self.then("stowed", Stow())
        full = FULL in now.memory.load
        if not full and not now.memory.first(EMPTY):
            return self._failed(now, came if not came.done else _NOWHERE)
        self.order = "place" if full else "pick"
        return self._go(now)

    # -- which place -----------------------------------------------------------------------------------------------
    def _go(self, now: Now) -> Request:
        """Do what the order says, where it says so."""
        wanted = now.config.pick_at if self.order == "pick" else now.config.place_at
        wanted = wanted or now.memory.at or now.config.fields[0]
        if wanted != now.memory.at:
            return self.then("arrived", ChangePlace(wanted))
        return self._act(now)

    def _change(self, now: Now, order: Order) -> Request:
        """Another place, another order; after two rounds in vain, rest."""
        self.order, self.waited = order, 0.0
        self.changes += 1
        fields = now.config.fields
        if self.changes > 2 * len(fields):
            self.changes = 0
            self.text = "nothing can be moved at any place"
            return self.then("resting", Move((Named(now.config.rest),)))
        wanted = now.config.pick_at if order == "pick" else now.config.place_at
        at = fields.index(now.memory.at) if now.memory.at in fields else -1
        return self.then("arrived", ChangePlace(wanted or fields[(at + 1) % len(fields)]))

    def _arrived(self, now: Now, came: Outcome) -> Request | Outcome:
        if not came.done:
            return self._failed(now, came)
        self.drawn = 0
        return self._act(now)

    def _nearer(self, now: Now, came: Outcome) -> Request | Outcome:
        return self._act(now) if came.done else self._failed(now, came)

    def _act(self, now: Now) -> Request:
        memory = now.memory
        if self.order == "pick":
            return self.then("picked_up", Pick(memory.at))
        if memory.free or memory.at in now.config.moving:  # what a belt brings is looked for with a thing in the hand
            return self._take(now)
        return self.then("found", FindPlaces(memory.at))

    def _resting(self, now: Now, came: Outcome) -> Request | Outcome:
        if came.cause is Cause.NOT_FOLLOWED and self._gives_up(now):  # the arm does not even come to rest
            return came
        return self.then("ready", Wait(now.config.idle))

    def _draw_near(self, now: Now, came: Outcome) -> Request | None:
        """Drive nearer to what is seen and out of reach, where the robot can."""
        if came.cause is not Cause.NOT_REACHABLE or came.position is None:
            return None
        if not now.config.drives or self.drawn >= _DRAWS:
            return None
        self.drawn += 1
        return self.then("nearer", DrawNear(came.position))

    # -- picking ---------------------------------------------------------------------------------------------------
    def _picked_up(self, now: Now, came: Outcome) -> Request | Outcome:
        if came.done:
            return self.then("stowed", Stow())
        if came.cause in (*BLIND, *BEYOND):
            return self._cannot_see(now, came)
        if (nearer := self._draw_near(now, came)) is not None:
            return nearer
        if came.cause in (*UNSEEN, *BARRED, *MOVED_ON, Cause.TOO_CLOSE, Cause.TOO_HEAVY):
            return self._change(now, "place" if now.memory.first(FULL) else "pick")
        return self._failed(now, came)

    def _stowed(self, now: Now, came: Outcome) -> Request | Outcome:
        if came.done:
            self.picked += 1
            self._moved()
            return self._act(now) if now.memory.first(EMPTY) else self._change(now, "place")
        if now.memory.held is not None:
            now.mended(came.cause, came.text, came.position)
            return self.then("put_back", PutBack(came.cause in BURDENED))
        return self._failed(now, came)

    def _put_back(self, now: Now, came: Outcome) -> Request | Outcome:
        if not came.done:
            return self._failed(now, came)
        if not now.memory.first(FULL) and not now.memory.first(EMPTY):
            return self._failed(now, _NOWHERE)
        return self._change(now, "place" if now.memory.first(FULL) else "pick")

    # -- placing ---------------------------------------------------------------------------------------------------
    def _found(self, now: Now, came: Outcome) -> Request | Outcome:
        if came.done:
            return self._take(now)
        if came.cause in (*BLIND, *BEYOND):
            return self._cannot_see(now, came)
        if (nearer := self._draw_near(now, came)) is not None:
            return nearer
        if came.cause in (*UNSEEN, Cause.COVERED, Cause.NOT_REACHABLE):
            return self._no_place(now, came)
        return self._failed(now, came)

    def _take(self, now: Now) -> Request:
        self.text = ""
        if not now.memory.first(FULL):
            return self._change(now, "pick")
        return self.then("taken", Unstow())

    def _no_place(self, now: Now, came: Outcome) -> Request:
        """Wait for one if the load is full; else pick meanwhile."""
        now.memory.free = []
        if now.memory.first(EMPTY) or self.waited >= now.config.patience:
            return self._change(now, "pick" if now.memory.first(EMPTY) else "place")
        self.waited += _BETWEEN
        self.text = f"a free place: {came.text}"
        return self.then("waited_for", Wait(_BETWEEN))

    def _waited_for(self, now: Now, came: Outcome) -> Request:
        return self.then("found", FindPlaces(now.memory.at))

    def _taken(self, now: Now, came: Outcome) -> Request | Outcome:
        if came.done:
            return self.then("set_down", Place(now.memory.at))
        if came.cause in (*BLIND, *BEYOND):
            return self._cannot_see(now, came)
        return self._failed(now, came)

    def _set_down(self, now: Now, came: Outcome) -> Request | Outcome:
        if came.done:
            self.placed += 1
            self._moved()
            if self.objects and self.placed >= self.objects:
                return self.then("finished", Finish())
            return self._go(now) if now.memory.first(FULL) else self._change(now, "pick")
        if now.memory.held is None:
            return self._failed(now, came)
        now.mended(came.cause, came.text, came.position)
        self.text = came.text
        return self.then("back_again", PutBack(came.cause in BURDENED))

    def _back_again(self, now: Now, came: Outcome) -> Request | Outcome:
        if not came.done:
            return self._failed(now, came)
        return self._no_place(now, Outcome(Cause.COVERED, self.text))

    def _finished(self, now: Now, came: Outcome) -> Request | Outcome:
        return came

    # -- trouble ---------------------------------------------------------------------------------------------------
    def _moved(self) -> None:
        self.changes = self.failures = self.helpless = self.drawn = 0
        self.waited = 0.0

    def _failed(self, now: Now, came: Outcome) -> Request | Outcome:
        """Begin anew with a look at the bays; rest first if that keeps happening.

        While the fingers do not open the arm stays: what is between them would go wherever it goes.
        """
        if came.cause is Cause.HAND_STUCK:
            return self._stuck(now, came)
        now.mended(came.cause, came.text, came.position)
        self.failures += 1
        if self.failures <= now.config.tries:
            return self.then("ready", Ready())
        self.failures = 0
        self.text = came.text
        return self.then("resting", Move((Named(now.config.rest),), holding=now.memory.held is not None))

    def _gives_up(self, now: Now) -> bool:
        """Whether it could but wait too often in a row."""
        self.helpless += 1
        return self.helpless > now.config.tries

    def _stuck(self, now: Now, came: Outcome) -> Request | Outcome:
        """Wait for the fingers to open, then give up."""
        if self._gives_up(now):
            return came
        now.mended(came.cause, came.text, came.position)
        self.text = came.text
        return self.then("stayed", Wait(now.config.patience))

    def _stayed(self, now: Now, came: Outcome) -> Request | Outcome:
        return self.then("ready", Ready())

    def _cannot_see(self, now: Now, came: Outcome) -> Request | Outcome:
        """Wait at rest for the camera, then give up."""
        if self._gives_up(now):
            return self.then("finished", Finish(came))
        now.mended(came.cause, came.text)
        self.text = came.text
        return self.then("blinded", Move((Named(now.config.rest),), holding=now.memory.held is not None))

    def _blinded(self, now: Now, came: Outcome) -> Request | Outcome:
        return self.then("ready", Wait(now.config.patience))
