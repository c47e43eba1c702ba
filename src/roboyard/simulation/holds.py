"""Things that led bodies hold: who holds what, where it is to be, and how hard the hold pulls."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import mujoco
import numpy as np

from roboyard.errors import InputError, UnknownNameError
from roboyard.geometry.arrays import Array
from roboyard.simulation import holds_loop as h
from roboyard.simulation.carrying import free_base

if TYPE_CHECKING:
    from roboyard.simulation.engine import Simulation

STRENGTH = 60.0
"""Of a hand that holds a thing between fingers and thumb [N]: a third of what people can (Mathiowetz et al., Grip and
Pinch Strength: Normative Data for Adults, 1985, find 100 to 110 N with the palm and more than 300 N with the fist)."""


@dataclass(frozen=True, slots=True)
class Hold:
    """A thing in a hand.

    Attributes:
        model: Who holds it.
        link: With which part.
        thing: What.
        point: Of the part that holds, in its frame [m].
        strength: The hold gives in to more [N].
    """

    model: str
    link: str
    thing: str
    point: tuple[float, float, float]
    strength: float = STRENGTH


@dataclass(slots=True)
class Holds:
    """All holds of a simulation.

    Attributes:
        table: (n, `holds_loop.WIDTH`), which the step loop reads and writes.
    """

    _simulation: Simulation
    table: Array = field(default_factory=lambda: np.zeros((0, h.WIDTH)))
    _holds: list[Hold] = field(default_factory=list)

    def of(self, model: str) -> dict[str, str]:
        """What somebody holds, by the part."""
        if not self._holds:  # every person asks at every step
            return {}
        return {
            one.link: one.thing
            for one, row in zip(self._holds, self.table, strict=True)
            if one.model == model and row[h.STRENGTH] > 0.0
        }

    def near(self, model: str) -> dict[str, str]:
        """What somebody's parts are at, held or not."""
        return {one.link: one.thing for one in self._holds if one.model == model}

    def about(self, hold: Hold) -> None:
        """From now on somebody's body does not push a thing away, since a hand closes round it.

        Raises:
            UnknownNameError: nobody or nothing is called so.
            InputError: the part has something else to do with, somebody else has with the thing, or it cannot be
                carried.
        """
        for one in self._holds:
            if (one.model, one.link) == (hold.model, hold.link) and one.thing != hold.thing:
                raise InputError(f"{hold.link} of {hold.model} is at {one.thing}", valid="one thing a hand")
            if one.thing == hold.thing and (one.model, one.link) != (hold.model, hold.link):
                raise InputError(f"{one.model} has {hold.thing} in hand", valid="something that is free")
        if hold not in self._holds:
            row = self._row(hold)
            self._holds.append(hold)
            self.table = np.concatenate([self.table, row[None]])

    def take(self, hold: Hold, offset: Array, turn: Array) -> None:
        """Hold a thing from now on.

        Args:
            hold: Who, and what.
            offset: (3,) from the point that holds to the thing's origin, in the world [m].
            turn: (4,) how the thing is to be turned.

        Raises:
            UnknownNameError, InputError: as `about`.
        """
        self.about(hold)
        row = self.table[self._holds.index(hold)]
        row[h.OFFSET : h.OFFSET + 3], row[h.TURN : h.TURN + 4] = offset, turn
        row[h.BEFORE : h.BEFORE + 3] = self._point(row) + offset
        row[h.STRENGTH] = hold.strength

    def lead(self, model: str, link: str, offset: Array, turn: Array) -> None:
        """Have a thing that is held be elsewhere in the hand: see `take`. Raises UnknownNameError."""
        row = self.table[self._number(model, link)]
        row[h.OFFSET : h.OFFSET + 3], row[h.TURN : h.TURN + 4] = offset, turn

    def let_go(self, model: str, link: str) -> None:
        """Hold it no longer; it is not pushed away until it is forgotten. Raises UnknownNameError."""
        row = self.table[self._number(model, link)]
        self._simulation.data.xfrc_applied[int(row[h.BODY])] = 0.0
        row[h.STRENGTH] = 0.0
        row[h.FORCE : h.FORCE + 3] = 0.0

    def forget(self, model: str, link: str) -> None:
        """A part that holds nothing has nothing to do with a thing any more. Raises UnknownNameError."""
        number = self._number(model, link)
        self.let_go(model, link)
        self.table = np.delete(self.table, number, axis=0)
        del self._holds[number]

    def force(self, model: str, link: str) -> Array:
        """(3,) with which it pulls at the thing, without its weight [N]. Raises UnknownNameError."""
        return self.table[self._number(model, link), h.FORCE : h.FORCE + 3].copy()

    def rebind(self) -> None:
        """Find all addresses anew after models came or went; what is gone is held no longer."""
        kept, rows = [], []
        for hold, before in zip(self._holds, self.table, strict=True):
            if hold.model in self._simulation.models and hold.thing in self._simulation.models:
                row = self._row(hold)
                row[h.OFFSET : h.MASS], row[h.STRENGTH :] = before[h.OFFSET : h.MASS], before[h.STRENGTH :]
                kept.append(hold)
                rows.append(row)
        self._holds, self.table = kept, np.array(rows).reshape(-1, h.WIDTH)

    def _number(self, model: str, link: str) -> int:
        for number, one in enumerate(self._holds):
            if (one.model, one.link) == (model, link):
                return number
        known = ", ".join(f"{one.link} of {one.model}" for one in self._holds)
        raise UnknownNameError(f"{link} of {model} holds nothing", valid=known or "nobody does")

    def _row(self, hold: Hold) -> Array:
        simulation = self._simulation
        rows = simulation.flesh.rows.get(hold.model, {})
        if hold.link not in rows:
            raise UnknownNameError(
                f"no led part {hold.link!r} of {hold.model!r}", valid=", ".join(rows) or "none is led"
            )
        position, velocity = free_base(simulation, hold.thing)
        place = simulation.placement(hold.thing)
        body, model = place.links[place.root].body, simulation.model
        row = np.zeros(h.WIDTH)
        row[[h.PART, h.FIRST, h.LAST]] = rows[hold.link], min(rows.values()), max(rows.values()) + 1
        row[[h.BODY, h.POSITION, h.VELOCITY]] = body, position, velocity
        row[h.POINT : h.POINT + 3] = hold.point
        row[h.MASS] = model.body_subtreemass[body]
        matrix = np.zeros(9)
        mujoco.mju_quat2Mat(matrix, model.body_iquat[body])
        axes = matrix.reshape(3, 3)
        row[h.MOMENTS : h.MOMENTS + 3] = np.diag(axes @ np.diag(model.body_inertia[body]) @ axes.T)
        row[h.CENTRE : h.CENTRE + 3] = model.body_ipos[body]
        return row

    def _point(self, row: Array) -> Array:
        flesh, part = self._simulation.flesh, int(row[h.PART])
        matrix = np.zeros(9)
        mujoco.mju_quat2Mat(matrix, flesh.turns[part])
        return np.asarray(flesh.places[part] + matrix.reshape(3, 3) @ row[h.POINT : h.POINT + 3])

    # -- state ---------------------------------------------------------------------------------------------------------
    def save_state(self) -> dict[str, Any]:
        """Everything that decides what comes next."""
        return {
            "holds": [[one.model, one.link, one.thing, list(one.point), one.strength] for one in self._holds],
            "table": self.table.tolist(),
        }

    def load_state(self, saved: dict[str, Any]) -> None:
        """Continue from `save`."""
        self._holds = [
            Hold(model, link, thing, (x, y, z), strength) for model, link, thing, (x, y, z), strength in saved["holds"]
        ]
        self.table = np.array(saved["table"], float).reshape(-1, h.WIDTH)
