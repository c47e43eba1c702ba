"""The present moment, evaluated as far as somebody has asked for it."""

from __future__ import annotations

import mujoco
import numpy as np


class Instant:
    """Evaluates accelerations and forces for the present state, once, when first needed.

    The step loop leaves the state with positions and velocities evaluated.  Accelerations, contact forces and actuator
    efforts of that same state are found by the engine's forward pass without integrating; the solver's warm start is
    put back afterwards, so whether anybody looked makes no difference to the next step.
    """

    def __init__(self, model: mujoco.MjModel, data: mujoco.MjData) -> None:
        self._model, self._data = model, data
        self._fresh = False
        self._warm = np.zeros(model.nv)

    def moved(self) -> None:
        """The state or a command changed."""
        self._fresh = False

    def accelerations(self) -> None:
        """Make ``qacc``, ``cacc``, contact forces and actuator forces those of the present state."""
        if self._fresh:
            return
        self._warm[:] = self._data.qacc_warmstart
        mujoco.mj_forwardSkip(self._model, self._data, int(mujoco.mjtStage.mjSTAGE_VEL), 1)
        mujoco.mj_rnePostConstraint(self._model, self._data)
        self._data.qacc_warmstart[:] = self._warm
        self._fresh = True
