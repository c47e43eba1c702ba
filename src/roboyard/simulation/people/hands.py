"""Hands that take things, carry them level, and let go of them, as somebody does who hands something over."""

from __future__ import annotations

from typing import Any

import numpy as np

from roboyard.geometry import SE2, SE3
from roboyard.geometry.arrays import Array
from roboyard.simulation.engine import Simulation
from roboyard.simulation.holds import Hold
from roboyard.simulation.people.reaching import GRIP

HANDS = ("left", "right")
SPAN = 0.15
"""A hand takes hold of a thing whose middle is as near to where it grips [m]."""
TUG = 0.01
"""So far somebody draws near what they have taken while another one holds it still [m]."""
PULL = 5.0
"""Somebody who holds a thing out lets go of it when it is pulled at by as much [N]."""


class Hands:
    """What somebody's hands hold.  A thing keeps its turn against where the person faces: it is carried level.

    Args:
        simulation: Where they are.
        model: Name of the person's body.
        height: Their stature [m].
    """

    def __init__(self, simulation: Simulation, model: str, height: float) -> None:
        self._simulation, self._model = simulation, model
        self._point = (0.0, 0.0, -GRIP * height)
        self._held: dict[str, SE3] = {}

    @property
    def things(self) -> dict[str, str]:
        """What they hold, by hand: "left", "right"."""
        held = self._simulation.holds.of(self._model)
        return {link.partition("_")[0]: thing for link, thing in held.items()}

    def about(self, hand: str, thing: str) -> None:
        """A hand is going to take a thing: nobody pushes away what they grip. Raises InputError and its kinds."""
        self._simulation.holds.about(self._hold(hand, thing))

    def take(self, hand: str, thing: str, place: tuple[float, float, float]) -> str:
        """Take hold of a thing where the hand is; why not, or nothing if it does.

        Args:
            hand: "left" or "right".
            thing: Which.
            place: x, y and yaw of the person [m, rad].

        Raises:
            InputError and its kinds: there is no such thing, or it cannot be held.
        """
        T_world_thing = self._simulation.truth(thing).T_world_base
        grip = self._grip(hand)
        far = float(np.linalg.norm(T_world_thing.translation - grip))
        if far > SPAN:
            return f"{thing} is {far:.2f} m from the {hand} hand"
        T = _facing(place).inverse() @ SE3(T_world_thing.rotation, T_world_thing.translation - grip)
        self._simulation.holds.take(self._hold(hand, thing), T_world_thing.translation - grip, T_world_thing.rotation)
        self._held[hand] = T
        return ""

    def let_go(self, hand: str) -> None:
        """Let go of what a hand holds. Raises UnknownNameError."""
        self._simulation.holds.let_go(self._model, f"{hand}_hand")
        self._held.pop(hand, None)

    def part(self, hand: str) -> bool:
        """Have nothing more to do with what the hand has let go of, once they do not touch; whether it is so."""
        thing = self._simulation.holds.near(self._model).get(f"{hand}_hand", "")
        if not thing:
            return True
        touches = self._simulation.truth(thing).contacts
        if any(touch.against.startswith(f"{self._model}::") for touch in touches):
            return False
        self._simulation.holds.forget(self._model, f"{hand}_hand")
        return True

    def _hold(self, hand: str, thing: str) -> Hold:
        return Hold(self._model, f"{hand}_hand", thing, self._point)

    def follow(self, place: tuple[float, float, float], busy: str = "") -> None:
        """Carry what they hold along, with the person at x, y and yaw [m, rad]; the hand ``busy`` is at something."""
        for hand in HANDS:
            if hand not in self._held and hand != busy:
                self.part(hand)
        for hand in self.things:
            T = _facing(place) @ self._held[hand]
            self._simulation.holds.lead(self._model, f"{hand}_hand", T.translation, T.rotation)

    def tug(self, hand: str) -> None:
        """Pull a little at what a hand has taken, so that who else holds it feels that. Raises UnknownNameError."""
        T = self._held[hand]
        self._held[hand] = SE3(T.rotation, T.translation + np.array([-TUG, 0.0, 0.0]))

    def grip_for(self, hand: str, target: Array, place: tuple[float, float, float]) -> Array:
        """(3,) where a hand has to grip so that what it holds is at ``target`` (3,), in the world [m]."""
        return np.asarray(target - (_facing(place) @ self._held[hand]).translation)

    def is_pulled(self, hand: str) -> bool:
        """Whether somebody pulls at what a hand holds. Raises UnknownNameError."""
        return float(np.linalg.norm(self._simulation.holds.force(self._model, f"{hand}_hand"))) > PULL

    def is_free(self, hand: str) -> bool:
        """Whether nothing else touches what a hand holds."""
        touches = self._simulation.truth(self.things[hand]).contacts
        return all(touch.against.startswith(f"{self._model}::") for touch in touches)

    def _grip(self, hand: str) -> Array:
        """(3,) where a hand grips now, in the world [m]."""
        flesh = self._simulation.flesh
        row = flesh.rows[self._model][f"{hand}_hand"]
        return SE3(flesh.turns[row], flesh.places[row]) @ np.array(self._point)

    # -- state ---------------------------------------------------------------------------------------------------------
    def save_state(self) -> dict[str, Any]:
        """Plain data; that they hold it is the simulation's."""
        return {hand: [T.rotation.tolist(), T.translation.tolist()] for hand, T in self._held.items()}

    def load_state(self, saved: dict[str, Any]) -> None:
        """Counterpart of `save`."""
        self._held = {hand: SE3(rotation, translation) for hand, (rotation, translation) in saved.items()}


def _facing(place: tuple[float, float, float]) -> SE3:
    return SE2(0.0, 0.0, place[2]).to_se3()
