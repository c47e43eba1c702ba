"""The present moment, evaluated as far as somebody has asked for it."""

from __future__ import annotations

from threading import RLock

import mujoco
import numpy as np
from numpy.typing import NDArray

from roboyard.simulation.friction import look_ahead


class Instant:
    """Evaluates accelerations and forces for the present state, once, when first needed.

    The step loop leaves the state with positions and velocities evaluated.  Accelerations, contact forces and actuator
    efforts of that same state are found as the next step would, without integrating; the solver's starting point is put
    back afterwards, so whether anybody looked makes no difference to the next step.  Only one thread does so at a time:
    the engine has one workspace.

    Attributes:
        count: How often the state or a command has changed.
        lock: Held by whoever changes the state, or wants all of it from one moment.
    """

    def __init__(self, model: mujoco.MjModel, data: mujoco.MjData, layout: NDArray[np.int64], lock: RLock) -> None:
        self._model, self._data, self._layout, self.lock = model, data, layout, lock
        self._fresh, self.count = False, 0
        self._warm, self._kept = data.qacc_warmstart, np.zeros(model.nv)

    def moved(self) -> None:
        """The state or a command changed."""
        with self.lock:
            self._fresh = False
            self.count += 1

    def accelerations(self) -> None:
        """Make ``qacc``, ``cacc``, contact forces and actuator forces those of the present state."""
        with self.lock:
            if not self._fresh:
                look_ahead(self._model._address, self._data._address, self._layout, self._warm, self._kept)
                self._fresh = True
