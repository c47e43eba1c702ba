"""What a person's hand does while an animation reaches: take a thing, or leave it, in their own time or with others."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any

import numpy as np

from roboyard.errors import RoboyardError
from roboyard.geometry.arrays import Array
from roboyard.simulation.people.hands import Hands
from roboyard.simulation.people.movement import RefusedError
from roboyard.simulation.people.person import Person


@dataclass
class Deed:
    """A hand's deed.

    Attributes:
        hand: "left" or "right".
        take: What it takes; empty: it leaves what it holds.
        patience: So long it waits for others [s].
        done: Whether it has.
        why: Why it cannot.
        waited: How long it has waited [s].
    """

    hand: str
    take: str = ""
    patience: float = 0.0
    done: bool = False
    why: str = ""
    waited: float = 0.0


class Deeds:
    """Has a person's hands do what goals of their animations ask for.

    Args:
        person: Who.
        hands: Theirs.
    """

    def __init__(self, person: Person, hands: Hands) -> None:
        self._person, self._hands = person, hands
        self.deed: Deed | None = None

    def target(self, goal: Any, hand: str) -> Array | None:
        """(3,) where the hand is to grip for a roboyard_msgs/ActorAnimation goal, or None.

        Raises:
            RefusedError: it makes no sense.
        """
        if not (0.0 <= goal.hold_timeout < 1e6):
            raise RefusedError(f"a hold_timeout of {goal.hold_timeout:g} s", "invalid", "0 or more")
        if goal.grasp_object and goal.release:
            raise RefusedError("grasp_object and release at once", "invalid", "one of them")
        if (goal.grasp_object or goal.release) and not hand:
            raise RefusedError(f"animation {goal.animation_name!r} reaches for nothing", "invalid", "one that does")
        holds = self._hands.things
        if goal.release and hand not in holds:
            raise RefusedError(f"the {hand} hand holds nothing", "invalid", "take something first")
        if goal.grasp_object and hand in holds:
            raise RefusedError(f"the {hand} hand holds {holds[hand]} already", "invalid", "leave it first")
        if not goal.has_target:
            return None
        place = np.array([goal.target.x, goal.target.y, goal.target.z])
        return self._hands.grip_for(hand, place, self._person.place) if goal.release else place

    def begin(self, goal: Any, hand: str) -> None:
        """A goal's animation begins. Raises RefusedError where what it takes cannot be held."""
        if goal.grasp_object:
            try:
                self._hands.about(hand, goal.grasp_object)
            except RoboyardError as error:
                raise RefusedError(str(error), "invalid") from None
        self.deed = Deed(hand, goal.grasp_object, goal.hold_timeout) if goal.grasp_object or goal.release else None

    def step(self, dt: float) -> None:
        """Go on by ``dt`` [s], after the person has."""
        deed = self.deed
        self._hands.follow(self._person.place, deed.hand if deed is not None and self._person.lingers else "")
        if deed is None or not self._person.lingers or not self._person.has_reached:
            return
        deed.waited += dt
        if deed.take and not deed.done:
            self._take(deed)
        if deed.why or (self._is_free(deed) if deed.take else self._is_wanted(deed)):
            self._person.lingers = False
        elif deed.waited > deed.patience:
            deed.why = f"nobody {'let go of it' if deed.take else 'took it'} within {deed.patience:g} s"
            self._person.lingers = False
            if deed.take and deed.done:
                self._hands.let_go(deed.hand)
                deed.done = False

    def end(self) -> str:
        """The animation has ended: why its deed was not done, or nothing."""
        deed, self.deed = self.deed, None
        return "" if deed is None or deed.done else deed.why or "the hand did not get there"

    def _take(self, deed: Deed) -> None:
        try:
            deed.why = self._hands.take(deed.hand, deed.take, self._person.place)
        except RoboyardError as error:
            deed.why = str(error)
        deed.done = not deed.why
        if deed.done and deed.patience:
            self._hands.tug(deed.hand)

    def _is_free(self, deed: Deed) -> bool:
        """Whether what was taken can be carried off: without patience at once."""
        return not deed.patience or self._hands.is_free(deed.hand)

    def _is_wanted(self, deed: Deed) -> bool:
        """Whether what is left may be let go: without patience at once."""
        if deed.hand not in self._hands.things:
            deed.why = "it is gone"
        elif not deed.patience or self._hands.is_pulled(deed.hand):
            self._hands.let_go(deed.hand)
            deed.done = True
        return deed.done

    # -- state ---------------------------------------------------------------------------------------------------------
    def save_state(self) -> dict[str, Any]:
        """Plain data."""
        return {"deed": None if self.deed is None else asdict(self.deed), "hands": self._hands.save_state()}

    def load_state(self, saved: dict[str, Any]) -> None:
        """Counterpart of `save`."""
        self.deed = None if saved["deed"] is None else Deed(**saved["deed"])
        self._hands.load_state(saved["hands"])
