"""A compiled world with its state: engine data, servos, contact watch."""

from __future__ import annotations

from dataclasses import dataclass
from threading import RLock

import mujoco
import numpy as np
from numpy.typing import NDArray

from roboyard.simulation import friction, stepping, transfer
from roboyard.simulation.actuation import Servos
from roboyard.simulation.assembly import Assembled
from roboyard.simulation.contacts import ContactWatch
from roboyard.simulation.flesh import FleshTables
from roboyard.simulation.holds_loop import NOTHING_HELD
from roboyard.simulation.instant import Instant
from roboyard.simulation.settings import PhysicsSettings
from roboyard.simulation.surface_tables import SurfaceTables
from roboyard.simulation.turning import turning_trees


@dataclass(frozen=True, slots=True)
class Running:
    """Everything that belongs to one compilation; adding or removing a model makes a new one.

    ``views`` are the data's positions, velocities and controls; ``trees`` see `turning_trees`.
    """

    assembled: Assembled
    data: mujoco.MjData
    servos: Servos
    watch: ContactWatch
    instant: Instant
    surfaces: SurfaceTables
    flesh: FleshTables
    views: tuple[NDArray[np.float64], NDArray[np.float64], NDArray[np.float64]]
    trees: NDArray[np.int32]

    @property
    def model(self) -> mujoco.MjModel:
        """The engine's model."""
        return self.assembled.model

    def evaluate(self, holds: NDArray[np.float64] = NOTHING_HELD) -> None:
        """Evaluate positions, velocities and contacts after the state was set from outside.

        ``holds``: see `hold_on`.
        """
        tables = self.surfaces
        with self.instant.lock:
            friction.evaluate_on(
                self.model._address, self.data._address, self.watch.layout,
                tables.patches, tables.belts, tables.friction, tables.grain, self.watch.ground,
                self.flesh.part_of, self.flesh.parts, self.flesh.turns, self.flesh.body_of,
                holds,
            )  # fmt: skip
            self.instant.moved()

    def advance(self, steps: int, taken: int, dt: float, holds: NDArray[np.float64]) -> tuple[int, int]:
        """Take physics steps in one tight loop.

        Args:
            steps: How many are wanted.
            taken: How many were taken since the start.
            dt: Step [s].
            holds: See `hold_on`.

        Returns:
            How many were taken, and why it ended (see `stepping.run`).
        """
        done, self.watch.count, why = stepping.run(
            self.model._address,
            self.data._address,
            steps,
            self.servos.ints,
            self.servos.floats,
            *self.views,
            dt,
            self.watch.layout,
            self.watch.owner,
            self.watch.ground,
            self.watch.aloft,
            self.watch.robots,
            self.watch.latest,
            self.watch.table,
            self.watch.pairs,
            self.watch.count,
            taken,
            self.watch.gap,
            self.surfaces.patches,
            self.surfaces.belts,
            self.surfaces.friction,
            self.surfaces.grain,
            self.data.qfrc_bias,
            self.data.qacc,
            self.trees,
            self.flesh.part_of,
            self.flesh.parts,
            self.flesh.places,
            self.flesh.turns,
            self.flesh.body_of,
            holds,
            self.data.xfrc_applied,
        )
        if why == stepping.NO_ROOM:
            self.watch.make_room()
        return done, why


def start(
    assembled: Assembled, settings: PhysicsSettings, time_ns: int, lock: RLock, before: Running | None = None
) -> Running:
    """Run ``assembled`` from now on, with the state of what ``before`` held too; ``lock``: see `Instant`."""
    data = mujoco.MjData(assembled.model)
    servos = Servos.of(assembled)
    transfer.set_initial(assembled, data)
    flesh = FleshTables.of(assembled, data)
    if before is not None:
        flesh.adopt(before.flesh)
        transfer.carry_over(before.assembled, before.data, assembled, data)
        servos.adopt(before.servos, assembled.model)
    watch = ContactWatch(assembled, settings.timestep_ns, before.watch if before is not None else None)
    data.time = time_ns * 1e-9
    views = (data.qpos, data.qvel, data.ctrl)
    instant = Instant(assembled.model, data, watch.layout, lock)
    trees = turning_trees(assembled.model)
    running = Running(assembled, data, servos, watch, instant, SurfaceTables.of(assembled), flesh, views, trees)
    running.evaluate()
    return running
