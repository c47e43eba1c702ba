"""The thesis's main program: pick until the bays are full, place until they are empty, change the place; listing A."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from roboyard.manipulation.skills import DONE, Cause, Outcome, Rounds, Skill
from roboyard.manipulation.skills.memory import EMPTY, FULL
from roboyard.manipulation.skills.skill import Request
from roboyard.manipulation.thesis.asking import Reach, ThesisNow
from roboyard.manipulation.thesis.handling import Pick, Place, PutBack, Stow, Unstow
from roboyard.manipulation.thesis.inverse import REST
from roboyard.manipulation.thesis.looking import CheckLoad

_NO_SYMBOL: Final = (Cause.VIEW_EMPTY, Cause.NOT_REACHABLE)
"""The view is as good as empty."""
_MOST_FAILURES: Final = 3
"""In a row, such as a camera that is silent: the thesis would wait for ever."""


@dataclass
class Finish(Skill):
    """The arm comes to rest.

    Attributes:
        outcome: How that ends which it finishes.
    """

    name = "finish"
    outcome: Outcome = DONE

    def _begin(self, now: ThesisNow, came: Outcome) -> Request | Outcome:
        return self.then("rested", Reach(REST))

    def _rested(self, now: ThesisNow, came: Outcome) -> Request | Outcome:
        return self.outcome


@dataclass
class ThesisLoop(Rounds):
    """Ablauf.  The last bay that is full or empty is taken first.

    With a full load and no place in view it stays where it is and looks on, as the program does; where nothing is to
    be had at either place it goes to and fro.  It ends after ``objects``, when somebody cancels it, when it knows of
    no bay, or when the same thing fails again and again.

    Attributes:
        bay: It deals with.
        failures: In a row.
    """

    bay: int = 0
    failures: int = 0

    def _begin(self, now: ThesisNow, came: Outcome) -> Request | Outcome:
        return self.then("checked", CheckLoad())

    def _checked(self, now: ThesisNow, came: Outcome) -> Request | Outcome:
        if not came.done:
            return self.then("finished", Finish(came))
        return self._go(now, "place" if FULL in now.memory.load else "pick")

    def _go(self, now: ThesisNow, order: str) -> Request:
        """Fahrt: the arm at rest, then the other field."""
        self.order = "place" if order == "place" else "pick"
        wanted = now.config.place_at if self.order == "place" else now.config.pick_at
        now.memory.at = wanted or now.config.fields[self.order == "place"]
        return self.then("arrived", Reach(REST))

    def _arrived(self, now: ThesisNow, came: Outcome) -> Request | Outcome:
        return self._act(now) if came.done else self._failed(now, came)

    def _act(self, now: ThesisNow) -> Request | Outcome:
        wanted = FULL if self.order == "place" else EMPTY
        self.bay = max((number for number, state in enumerate(now.memory.load, 1) if state == wanted), default=0)
        if not self.bay:
            return self._go(now, "pick" if self.order == "place" else "place")
        if self.order == "place":
            return self.then("taken", Unstow(bay=self.bay))
        return self.then("picked_up", Pick(where=now.memory.at))

    # -- picking -------------------------------------------------------------------------------------------------------
    def _picked_up(self, now: ThesisNow, came: Outcome) -> Request | Outcome:
        if came.done:
            return self.then("stowed", Stow(bay=self.bay))
        return self._go(now, "place") if came.cause in _NO_SYMBOL else self._failed(now, came)

    def _stowed(self, now: ThesisNow, came: Outcome) -> Request | Outcome:
        if not came.done:
            return self._failed(now, came)
        self.picked, self.failures = self.picked + 1, 0
        return self._go(now, "place") if EMPTY not in now.memory.load else self._act(now)

    # -- placing -------------------------------------------------------------------------------------------------------
    def _taken(self, now: ThesisNow, came: Outcome) -> Request | Outcome:
        return self.then("set_down", Place(where=now.memory.at)) if came.done else self._failed(now, came)

    def _set_down(self, now: ThesisNow, came: Outcome) -> Request | Outcome:
        if came.done:
            self.placed, self.failures = self.placed + 1, 0
            if self.objects and self.placed >= self.objects:
                return self.then("finished", Finish())
            return self._act(now) if FULL in now.memory.load else self._go(now, "pick")
        if came.cause not in _NO_SYMBOL:
            return self._failed(now, came)
        self.text = came.text
        return self.then("put_back", PutBack(bay=self.bay))

    def _put_back(self, now: ThesisNow, came: Outcome) -> Request | Outcome:
        if not came.done:
            return self._failed(now, came)
        return self._go(now, "pick") if EMPTY in now.memory.load else self._act(now)

    # -- trouble -------------------------------------------------------------------------------------------------------
    def _failed(self, now: ThesisNow, came: Outcome) -> Request | Outcome:
        self.failures, self.text = self.failures + 1, came.text
        if self.failures >= _MOST_FAILURES:
            return self.then("finished", Finish(came))
        now.mended(came.cause, came.text, came.position)
        return self._go(now, self.order)

    def _finished(self, now: ThesisNow, came: Outcome) -> Request | Outcome:
        return came
