"""What gives way when it is touched: the parts of people's bodies, as tables that the step loop reads."""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from typing import Any

import mujoco
import numpy as np
from numpy.typing import NDArray

from roboyard.errors import ConfigError, InputError, UnknownNameError
from roboyard.geometry.arrays import Array
from roboyard.simulation import flesh_loop as f
from roboyard.simulation.assembly import Assembled


@dataclass(slots=True)
class FleshTables:
    """All yielding bodies of one compiled world.

    Attributes:
        parts: (n, 32) see `flesh_loop`; n is zero where nobody is.
        part_of: (geoms,) row of the part that each geom belongs to, -1 for none.
        body_of: (geoms,) the engine's body of each geom.
        places: (n, 3) where the parts are in the world [m], a view of the engine's data.
        turns: (n, 4) how they are turned, likewise.
        rows: By model, row of each of its links.
    """

    parts: Array
    part_of: NDArray[np.int32]
    body_of: NDArray[np.int32]
    places: Array
    turns: Array
    rows: dict[str, dict[str, int]]
    _numbers: dict[str, NDArray[np.int64]] = field(init=False)

    def __post_init__(self) -> None:
        self._numbers = {name: np.array(list(rows.values()), np.int64) for name, rows in self.rows.items()}

    @classmethod
    def of(cls, assembled: Assembled, data: mujoco.MjData) -> FleshTables:
        """Of a world whose yielding bodies all stand where its assembly has put them."""
        model = assembled.model
        parts, rows = np.zeros((model.nmocap, f.WIDTH)), {}
        parts[:, f.MASS], parts[:, f.SHARE] = 1.0, 1.0
        for name, placement in assembled.placements.items():
            if not placement.entry.flesh:
                continue
            rows[name] = {link: int(model.body_mocapid[place.body]) for link, place in placement.links.items()}
            for link, flesh in placement.entry.flesh.items():
                row = parts[rows[name][link]]
                row[[f.MASS, f.FRONT, f.BEHIND, f.HOLD]] = flesh.mass, flesh.front, flesh.behind, flesh.hold
        for at in (f.FROM, f.TO):
            parts[:, at : at + 3] = data.mocap_pos
        for at in (f.FROM_TURN, f.TO_TURN):
            parts[:, at : at + 4] = data.mocap_quat
        part_of = np.ascontiguousarray(model.body_mocapid[model.geom_bodyid], np.int32)
        body_of = np.ascontiguousarray(model.geom_bodyid, np.int32)
        return cls(parts, part_of, body_of, data.mocap_pos, data.mocap_quat, rows)

    def adopt(self, older: FleshTables) -> None:
        """Go on with what ``older`` had of the same models."""
        for name, rows in self.rows.items():
            before = older.rows.get(name, {})
            for link, row in rows.items():
                if link in before:
                    self.parts[row] = older.parts[before[link]]
                    self.places[row], self.turns[row] = older.places[before[link]], older.turns[before[link]]

    def lead(self, name: str, places: Array, turns: Array, seconds: float) -> None:
        """Have the links of a model move on, each on a straight line.

        Args:
            name: The model, added with ``flesh``.
            places: (links, 3) where they are to be, in the world [m].
            turns: (links, 4) how they are to be turned.
            seconds: When they are to be there [s]; they then stay, until they are led on.

        Raises:
            UnknownNameError: no such model is led; InputError, ConfigError: the arrays or the time cannot be.
        """
        rows = self._known(name)
        if seconds <= 0.0:
            raise ConfigError(f"{name!r} led within {seconds} s", valid="a positive time")
        if places.shape != (len(rows), 3) or turns.shape != (len(rows), 4):
            raise InputError(
                f"{places.shape} places and {turns.shape} turns for {name!r}",
                valid=f"one for each of {len(rows)} links",
            )
        if not math.isfinite(places.sum() + turns.sum()):
            raise InputError(f"{name!r} led to what is no number", valid="finite places and turns")
        f.lead_on(self.parts, self.turns, self._numbers[name], places, turns, seconds)

    def forces(self, name: str) -> dict[str, Array]:
        """(3,) contact force on each link of a model in the last step, in the world [N]. Raises UnknownNameError."""
        return {link: self.parts[row, f.FORCE : f.FORCE + 3].copy() for link, row in self._known(name).items()}

    def take_peaks(self, name: str) -> Array:
        """(links, 3) the largest force on each link since the last call, in the world [N]. Raises UnknownNameError."""
        rows = list(self._known(name).values())
        peaks = self.parts[rows, f.PEAK : f.PEAK + 3]
        self.parts[rows, f.PEAK : f.PEAK + 3] = 0.0
        return peaks

    def _known(self, name: str) -> dict[str, int]:
        if name not in self.rows:
            raise UnknownNameError(f"model {name!r} is not led", valid=", ".join(self.rows) or "none is")
        return self.rows[name]

    def save_state(self) -> dict[str, Any]:
        """Everything that decides what comes next."""
        return {"parts": self.parts.tolist(), "places": self.places.tolist(), "turns": self.turns.tolist()}

    def load_state(self, saved: dict[str, Any]) -> None:
        """Continue from `save`. Raises ValueError where the models are others."""
        for table, key in ((self.parts, "parts"), (self.places, "places"), (self.turns, "turns")):
            table[:] = np.array(saved[key], float).reshape(table.shape)
