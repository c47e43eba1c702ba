"""Compliant kinematic bodies (people's body parts): the tables that the physics step reads and writes."""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from typing import Any

import mujoco
import numpy as np
from numpy.typing import NDArray

from roboyard.errors import ConfigError, InputError, UnknownNameError
from roboyard.geometry.arrays import Array
from roboyard.physics.compiled_world import CompiledWorld
from roboyard.physics.kernels import compliant_bodies as body_kernels


@dataclass(slots=True)
class CompliantBodyTable:
    """All compliant bodies of one compiled world.

    Attributes:
        parts: (n, 32) see `roboyard.physics.kernels.compliant_bodies`; n is zero in a world without people.
        part_of: (geoms,) row of the part that each geom belongs to, -1 for none.
        body_of: (geoms,) MuJoCo's body of each geom.
        positions: (n, 3) positions of the parts in the world [m], a view of MuJoCo's data.
        orientations: (n, 4) their orientations, likewise.
        rows: By model, row of each of its links.
        arrays: The arrays as the physics step takes them.
    """

    parts: Array
    part_of: NDArray[np.int32]
    body_of: NDArray[np.int32]
    positions: Array
    orientations: Array
    rows: dict[str, dict[str, int]]
    arrays: body_kernels.CompliantArrays = field(init=False)
    _row_arrays: dict[str, NDArray[np.int64]] = field(init=False)

    def __post_init__(self) -> None:
        self.arrays = body_kernels.CompliantArrays(
            self.part_of, self.parts, self.positions, self.orientations, self.body_of
        )
        self._row_arrays = {name: np.array(list(rows.values()), np.int64) for name, rows in self.rows.items()}

    @classmethod
    def from_compiled(cls, compiled: CompiledWorld, data: mujoco.MjData) -> CompliantBodyTable:
        """Those of a world whose compliant bodies are all at the poses that the compiler gave them."""
        model = compiled.model
        parts, rows = np.zeros((model.nmocap, body_kernels.PART_COLUMNS)), {}
        parts[:, body_kernels.MASS], parts[:, body_kernels.PROGRESS] = 1.0, 1.0
        for name, addresses in compiled.addresses.items():
            if not addresses.entry.compliant_parts:
                continue
            rows[name] = {link: int(model.body_mocapid[address.body]) for link, address in addresses.links.items()}
            for link, compliant_part in addresses.entry.compliant_parts.items():
                row = parts[rows[name][link]]
                row[
                    [
                        body_kernels.MASS,
                        body_kernels.STIFFNESS_FRONT,
                        body_kernels.STIFFNESS_REAR,
                        body_kernels.RETURN_FREQUENCY,
                    ]
                ] = (
                    compliant_part.mass,
                    compliant_part.stiffness_front,
                    compliant_part.stiffness_rear,
                    compliant_part.return_frequency,
                )
        for column in (body_kernels.START_POSITION, body_kernels.TARGET_POSITION):
            parts[:, column : column + 3] = data.mocap_pos
        for column in (body_kernels.START_ORIENTATION, body_kernels.TARGET_ORIENTATION):
            parts[:, column : column + 4] = data.mocap_quat
        part_of = np.ascontiguousarray(model.body_mocapid[model.geom_bodyid], np.int32)
        body_of = np.ascontiguousarray(model.geom_bodyid, np.int32)
        return cls(parts, part_of, body_of, data.mocap_pos, data.mocap_quat, rows)

    def copy_from(self, previous: CompliantBodyTable) -> None:
        """Copy the state of the same models from ``previous``."""
        for name, rows in self.rows.items():
            previous_rows = previous.rows.get(name, {})
            for link, row in rows.items():
                if link in previous_rows:
                    self.parts[row] = previous.parts[previous_rows[link]]
                    self.positions[row], self.orientations[row] = (
                        previous.positions[previous_rows[link]],
                        previous.orientations[previous_rows[link]],
                    )

    def move_to(self, name: str, positions: Array, orientations: Array, duration: float) -> None:
        """Move the links of a model to target poses, each on a straight line.

        Args:
            name: The model, added with ``compliant_parts``.
            positions: (links, 3) target positions in the world [m].
            orientations: (links, 4) target orientations.
            duration: Time until they are there [s]; then they stay there.

        Raises:
            UnknownNameError: no such model has compliant bodies.
            InputError: the arrays have other shapes, or are not finite.
            ConfigError: the duration is not positive.
        """
        rows = self._rows_of(name)
        if duration <= 0.0:
            raise ConfigError(f"motion of {name!r} within {duration} s", valid="a positive time")
        if positions.shape != (len(rows), 3) or orientations.shape != (len(rows), 4):
            raise InputError(
                f"{positions.shape} positions and {orientations.shape} orientations for {name!r}",
                valid=f"one for each of {len(rows)} links",
            )
        if not math.isfinite(positions.sum() + orientations.sum()):
            raise InputError(f"target pose of {name!r} is not finite", valid="finite positions and orientations")
        body_kernels.start_motion(
            self.parts, self.orientations, self._row_arrays[name], positions, orientations, duration
        )

    def forces(self, name: str) -> dict[str, Array]:
        """(3,) contact force on each link of a model in the last step, in the world [N]. Raises UnknownNameError."""
        return {
            link: self.parts[row, body_kernels.FORCE : body_kernels.FORCE + 3].copy()
            for link, row in self._rows_of(name).items()
        }

    def pop_peak_forces(self, name: str) -> Array:
        """(links, 3) the largest force on each link since the last call, in the world [N]. Raises UnknownNameError."""
        rows = list(self._rows_of(name).values())
        peaks = self.parts[rows, body_kernels.PEAK_FORCE : body_kernels.PEAK_FORCE + 3]
        self.parts[rows, body_kernels.PEAK_FORCE : body_kernels.PEAK_FORCE + 3] = 0.0
        return peaks

    def _rows_of(self, name: str) -> dict[str, int]:
        if name not in self.rows:
            raise UnknownNameError(
                f"model {name!r} has no compliant bodies", valid=", ".join(self.rows) or "no model has"
            )
        return self.rows[name]

    def save_state(self) -> dict[str, Any]:
        """Return the state from which `load_state` continues."""
        return {
            "parts": self.parts.tolist(),
            "positions": self.positions.tolist(),
            "orientations": self.orientations.tolist(),
        }

    def load_state(self, saved: dict[str, Any]) -> None:
        """Continue from a state of `save_state`. Raises ValueError where the models are others."""
        for table, key in ((self.parts, "parts"), (self.positions, "positions"), (self.orientations, "orientations")):
            table[:] = np.array(saved[key], float).reshape(table.shape)
