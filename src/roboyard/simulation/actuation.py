"""Servo state: which joint follows what, with which gains, and how far its integral has grown."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import mujoco
import numpy as np
from numpy.typing import NDArray

from roboyard.compute import expect_kernels
from roboyard.description.joint_interfaces import command_modes, command_range, safety_controller_parameters
from roboyard.description.model import CommandMode
from roboyard.errors import InputError
from roboyard.simulation import servo_loop as s
from roboyard.simulation.assembly import Assembled, JointPlace
from roboyard.simulation.assembly.exactness import reckon_exactly
from roboyard.simulation.loads import beyond, least
from roboyard.simulation.servos import (
    GIVE,
    GIVE_SLIDE,
    Gains,
    default_gains,
    effort_limit,
    no_load_speed,
    overridden,
    pressing_gains,
)

_STABLE = 2.0
"""Damping that takes so many times its speed from a joint in a step throws it to and fro."""
_CODES: dict[CommandMode, int] = {"position": s.POSITION, "velocity": s.VELOCITY, "effort": s.EFFORT}


@dataclass(slots=True)
class Servo:
    """One commandable joint: its place, its modes with their gains and ranges, and its row in the tables.

    ``pressing`` are the gains of position commands that say how hard to press, ``no_load`` the speed at which its
    motor has no effort left (0: it always has all), ``least`` the least inertia that it ever moves [kg m² or kg].
    """

    model: str
    place: JointPlace
    gains: dict[CommandMode, Gains]
    ranges: dict[CommandMode, tuple[float, float]]
    row: int
    pressing: Gains
    no_load: float
    least: float

    def is_strong(self, gains: Gains, model: Any) -> bool:
        """Whether the engine would reckon wrongly with its damping, see `run_servos`.

        It moves little with what joints at zero carry; or, once its effort is cut off, with what they carry at least.
        """
        damped = gains.d * float(model.opt.timestep)
        return damped > float(model.dof_M0[self.place.dof]) or damped > _STABLE * self.least


@dataclass(frozen=True, slots=True, eq=False)
class Group:
    """Servos that are commanded together: their mode's code, their (n) rows, least and greatest set-points."""

    code: int
    rows: NDArray[np.int64]
    low: NDArray[np.float64]
    high: NDArray[np.float64]


@dataclass(slots=True)
class Servos:
    """All servos of an assembly.

    ``ints`` and ``floats`` are the tables `stepping.run_servos` works on; ``servos`` maps (model, joint) to rows.
    ``stale`` says that a gain changed what the engine has evaluated of the present: evaluate it anew.
    """

    servos: dict[tuple[str, str], Servo] = field(default_factory=dict)
    stale: bool = False
    ints: NDArray[np.int64] = field(default_factory=lambda: np.zeros((0, 4), np.int64))
    floats: NDArray[np.float64] = field(default_factory=lambda: np.zeros((0, s.WIDTH)))

    @classmethod
    def of(cls, assembled: Assembled) -> Servos:
        """Servos of a freshly compiled world, all off.

        Raises:
            DescriptionError: a gain in a description is no number.
        """
        made = cls()
        step = float(assembled.model.opt.timestep)
        rests, lightest = beyond(assembled.model), least(assembled.model)
        for name, placement in assembled.placements.items():
            model = placement.entry.model
            for place in placement.joints:
                if place.actuator < 0:
                    continue
                interface = next((i for i in model.interfaces if i.joint == place.name), None)
                inertia, limit = float(assembled.model.dof_M0[place.dof]), effort_limit(place.axis)
                rest, give = rests[place.dof], GIVE_SLIDE if place.prismatic else GIVE
                gains = {
                    mode: overridden(
                        default_gains(mode, inertia, limit, model.mass, step, rest, give), mode, interface, name
                    )
                    for mode in command_modes(model, place.name)
                }
                ranges = {mode: command_range(mode, place.axis, interface) for mode in gains}
                press = pressing_gains(inertia, limit, model.mass, step, place.axis.limits.velocity)
                press = overridden(press, "position", interface, name, pressing=True)
                no_load = no_load_speed(interface, limit, name)
                if no_load:
                    reckon_exactly(assembled.model)
                servo = Servo(name, place, gains, ranges, len(made.servos), press, no_load, float(lightest[place.dof]))
                if "position" in gains and servo.is_strong(gains["position"], assembled.model):
                    # The engine's guess of how joints give way under contacts would not know of the inertia added.
                    reckon_exactly(assembled.model)
                made.servos[(name, place.name)] = servo
        made.ints = np.zeros((len(made.servos), 4), np.int64)
        made.floats = np.zeros((len(made.servos), s.WIDTH))
        for servo in made.servos.values():
            made.ints[servo.row, : s.MODE] = servo.place.qpos, servo.place.dof, servo.place.ctrl
            made.floats[servo.row, [s.LIMIT, s.OWN]] = effort_limit(servo.place.axis)
            made.floats[servo.row, s.ASKED] = math.inf
            made.floats[servo.row, s.NO_LOAD] = servo.no_load
            joints = {joint.name: joint for joint in assembled.placements[servo.model].entry.model.joints}
            if servo.place.name in joints:
                made.floats[servo.row, s.SOFT_LOW : s.CYCLE] = safety_controller_parameters(
                    joints[servo.place.name], step
                )
        return made

    def command(
        self, servo: Servo, mode: CommandMode, value: float, model: Any, data: Any, press: float = math.inf
    ) -> None:
        """Give ``servo`` a new set-point; a change of mode starts it from the joint's present state.

        ``press``: the effort that it may press with on its way to a position [N m or N]; infinite: all it can.

        Raises:
            InputError: ``value`` is not finite.
        """
        if not math.isfinite(value):
            raise InputError(
                f"set-point {value} for joint {servo.place.name}", location=servo.model, valid="a finite number"
            )
        row, code = servo.row, _CODES[mode]
        before, self.floats[row, s.ASKED] = float(self.floats[row, s.ASKED]), press
        if self.ints[row, s.MODE] != code or math.isinf(before) != math.isinf(press):
            self._switch(servo, mode, model, data)
        elif before != press:
            self.limit(servo, model)
        low, high = servo.ranges[mode]
        self.floats[row, s.TARGET] = min(max(value, low), high)
        self.floats[row, s.LEFT] = self.floats[row, s.CYCLE]
        if math.isfinite(press):
            here = float(data.qpos[servo.place.qpos])
            gain, ahead, grown = self.floats[row, [s.P, s.SETPOINT, s.INTEGRAL]]
            if (self.floats[row, s.TARGET] - here) * (gain * (ahead - here) + grown) < 0.0:  # it lets go at once
                self.floats[row, [s.SETPOINT, s.INTEGRAL]] = here, 0.0

    def group(self, model: str, mode: CommandMode, joints: Sequence[str]) -> Group:
        """Servos of some joints, for `go_on`; all of them take the mode."""
        expect_kernels(s.take_setpoints)
        servos = [self.servos[(model, joint)] for joint in joints]
        ranges = np.array([servo.ranges[mode] for servo in servos]).reshape(-1, 2)
        low, high = np.ascontiguousarray(ranges.T)
        return Group(_CODES[mode], np.array([servo.row for servo in servos], np.int64), low, high)

    def go_on(self, group: Group, values: NDArray[np.float64]) -> bool:
        """Give servos that all are in their mode already, with all their effort, new set-points (n) at once.

        Returns:
            False if they are not, or a value is not finite; nothing is changed then, and each needs `command`.
        """
        return s.take_setpoints(self.ints, self.floats, group.code, group.rows, group.low, group.high, values)

    def _switch(self, servo: Servo, mode: CommandMode, model: Any, data: Any) -> None:
        place = servo.place
        gains = servo.gains[mode] if math.isinf(self.floats[servo.row, s.ASKED]) else servo.pressing
        start = {
            "position": float(data.qpos[place.qpos]),
            "velocity": float(data.qvel[place.dof]),
            "effort": 0.0,
        }[mode]
        self.ints[servo.row, s.MODE] = _CODES[mode]
        self.floats[servo.row, : s.LIMIT] = gains.p, gains.i, gains.d, gains.windup, gains.ramp
        self.floats[servo.row, s.SETPOINT : s.EASED] = start, 0.0
        dynamics = place.axis.dynamics
        self.floats[servo.row, s.CYCLE : s.OWN] = gains.cycle, 0.0, dynamics.damping, dynamics.friction
        strong = mode == "position" and servo.is_strong(gains, model)
        eased = strong or (mode != "effort" and servo.no_load > 0.0)
        self.floats[servo.row, s.EASED] = float(eased)
        data.ctrl[place.ctrl : place.ctrl + 3] = 0.0
        self.engage(servo, model)

    def engage(self, servo: Servo, model: Any) -> None:
        """Write the gains of the servo's mode and its bounds into the engine's model."""
        place = servo.place
        mode, (p, d) = self.ints[servo.row, s.MODE], self.floats[servo.row, [s.P, s.D]]
        kp, kv = {s.POSITION: (p, d), s.VELOCITY: (0.0, p)}.get(int(mode), (0.0, 0.0))
        armature = max(place.axis.dynamics.armature, 0.0)
        if self.floats[servo.row, s.EASED] > 0.0:  # see `run_servos`
            armature += float(model.opt.timestep) * kv
            kp = kv = 0.0
        self.stale |= float(model.dof_armature[place.dof]) != armature
        model.dof_armature[place.dof] = armature
        model.actuator_biasprm[place.actuator, 1:3] = -kp, -kv
        self.limit(servo, model)

    def limit(self, servo: Servo, model: Any) -> None:
        """Bound the servo's effort by what the joint can and what was asked for."""
        most = min(float(self.floats[servo.row, s.OWN]), float(self.floats[servo.row, s.ASKED]))
        self.floats[servo.row, s.LIMIT] = most
        if math.isfinite(most):
            model.actuator_forcerange[servo.place.actuator] = -most, most
        model.actuator_forcelimited[servo.place.actuator] = math.isfinite(most)

    def efforts(self, places: list[JointPlace], data: Any) -> NDArray[np.float64]:
        """Actuator efforts of joints at the last evaluated accelerations [N m or N]."""
        return np.array([data.qfrc_actuator[place.dof] for place in places])

    def adopt(self, older: Servos, model: mujoco.MjModel) -> None:
        """Take over the state of servos that existed before the world was compiled anew."""
        for key, servo in self.servos.items():
            before = older.servos.get(key)
            if before is not None:
                self.ints[servo.row, s.MODE] = older.ints[before.row, s.MODE]
                self.floats[servo.row] = older.floats[before.row]
                self.engage(servo, model)
