"""A simulated body that takes its velocity as a command.

A servo for each component acts on the root link in its own axes, force = gain · (wanted - present), which the engine
takes implicitly: it is stable at any gain and no velocity is ever overwritten, so contacts, gravity and other bodies
still act on it.  A planar base pushes no harder than three times its weight, enough to drag its wheels over the ground
but not through a wall; a free one has no limit.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import mujoco
import numpy as np

from roboyard.errors import DescriptionError, InputError
from roboyard.geometry.arrays import Vec3
from roboyard.geometry.constants import GRAVITY
from roboyard.hardware.interface import BaseMotion
from roboyard.simulation.naming import scoped

if TYPE_CHECKING:
    from roboyard.simulation.engine import Simulation

_AXES: dict[BaseMotion, tuple[int, ...]] = {"planar": (0, 1, 5), "free": (0, 1, 2, 3, 4, 5)}
_TIME = 0.001
"""Within which a servo closes the gap to its command [s]; full friction takes this times gravity off the speed."""
_GRIP = 3.0
"""Largest force of a planar base over its weight."""
_ENGAGED = 1.0
"""Stands in the position input of an engaged servo, which has no position gain: so that saved controls say it too."""


def add_base(spec: mujoco.MjSpec, body: mujoco.MjsBody, model: str, kind: BaseMotion) -> None:
    """Give ``body`` a servo for each component that ``kind`` names; without force until it is commanded."""
    site = body.add_site(name=scoped(model, "base"), group=5)
    for axis in _AXES[kind]:
        servo = spec.add_actuator(name=scoped(model, f"base/{axis}"))
        servo.trntype = mujoco.mjtTrn.mjTRN_SITE
        servo.target = site.name
        gear = np.zeros(6)
        gear[axis] = 1.0
        servo.gear = gear
        servo.set_to_pid(
            kp=0.0, kv=0.0, ctrlspec=int(mujoco.mjtCtrlInput.mjINPUT_POS | mujoco.mjtCtrlInput.mjINPUT_VEL)
        )


class SimulatedBase:
    """The root link of one model, which was added with ``base=…``.

    Args:
        simulation: Where the model is.
        name: The model.
        kind: What it was added as.
    """

    def __init__(self, simulation: Simulation, name: str, kind: BaseMotion) -> None:
        self._simulation, self._name, self._kind = simulation, name, kind
        self.bind()

    @property
    def kind(self) -> BaseMotion:
        """Which components it takes."""
        return self._kind

    def bind(self) -> None:
        """Find the servos anew, and go on as before (called whenever models come or go, or a state is loaded)."""
        model = self._simulation.model
        names = [scoped(self._name, f"base/{axis}") for axis in _AXES[self._kind]]
        found = [mujoco.mj_name2id(model, mujoco.mjtObj.mjOBJ_ACTUATOR, name) for name in names]
        if min(found) < 0:
            raise DescriptionError(f"model {self._name} has no body that flies", valid="a root link that is not fixed")
        self._servos, self._ctrl = found, [int(model.actuator_ctrladr[servo]) for servo in found]
        body = int(model.site(scoped(self._name, "base")).bodyid[0])
        weight = float(model.body_subtreemass[body]) * GRAVITY
        arm = math.sqrt(self._inertia(body) / float(model.body_subtreemass[body]))
        for servo, axis in zip(found, _AXES[self._kind], strict=True):
            if self._kind == "planar":
                limit = _GRIP * weight * (arm if axis > 2 else 1.0)
                model.actuator_forcelimited[servo] = 1
                model.actuator_forcerange[servo] = -limit, limit
        self._gains = [
            (self._inertia(body) if axis > 2 else float(model.body_subtreemass[body])) / _TIME
            for axis in _AXES[self._kind]
        ]
        self._engage()

    def set_velocity(self, linear: Vec3, angular: Vec3) -> None:
        """Take new velocities at once, in the root link's own axes.

        Raises:
            InputError: a value is not finite.
        """
        wanted = (*linear, *angular)
        if not all(map(math.isfinite, wanted)):
            raise InputError(f"velocities {wanted}", location=self._name, valid="finite numbers")
        ctrl = self._simulation.data.ctrl
        for place, axis in zip(self._ctrl, _AXES[self._kind], strict=True):
            ctrl[place], ctrl[place + 1] = _ENGAGED, wanted[axis]
        self._engage()
        self._simulation.instant.moved()

    def release(self) -> None:
        """Hold no velocity any more."""
        for place in self._ctrl:
            self._simulation.data.ctrl[place : place + 2] = 0.0
        self._engage()
        self._simulation.instant.moved()

    def _engage(self) -> None:
        model, ctrl = self._simulation.model, self._simulation.data.ctrl
        for servo, place, gain in zip(self._servos, self._ctrl, self._gains, strict=True):
            model.actuator_biasprm[servo, 2] = -gain if ctrl[place] == _ENGAGED else 0.0

    def _inertia(self, body: int) -> float:
        """About the vertical through its middle, as if all its parts were one box as wide as they lie apart [kg m²]."""
        model = self._simulation.model
        parts = [part for part in range(model.nbody) if model.body_rootid[part] == model.body_rootid[body]]
        own = float(sum(max(model.body_inertia[part]) for part in parts))
        places = [self._simulation.data.xipos[part, :2] - self._simulation.data.subtree_com[body, :2] for part in parts]
        away = sum(float(model.body_mass[p]) * float(at @ at) for p, at in zip(parts, places, strict=True))
        return own + away
