"""The joints of a simulated model behind the same interface that real drivers have."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import numpy as np

from roboyard.description.joint_interfaces import command_modes
from roboyard.description.model import CommandMode
from roboyard.errors import InputError, UnknownNameError
from roboyard.hardware.interface import JointCommand, JointStates
from roboyard.simulation.actuation import Group
from roboyard.simulation.sensors.encoder import Encoder

if TYPE_CHECKING:
    from roboyard.simulation.engine import Simulation
    from roboyard.simulation.instant import Instant


class SimulatedHardware:
    """Joints of one model.

    Readings come from the model's encoders where it has some (quantised, noisy), and are exact elsewhere.  Turns of
    absolute encoders are counted, as a driver does.  Commands
    reach the servos inside the physics step.

    Args:
        simulation: Where the model is.
        name: The model.
    """

    def __init__(self, simulation: Simulation, name: str) -> None:
        self._simulation, self._name = simulation, name
        self.bind()

    def bind(self) -> None:
        """Find the joints anew (called whenever models come or go)."""
        placement = self._simulation.placement(self._name)
        self._places = placement.joints
        self._names = tuple(place.name for place in placement.joints)
        self._qpos = np.array([place.qpos for place in placement.joints], int)
        self._dof = np.array([place.dof for place in placement.joints], int)
        self._modes = {name: command_modes(placement.entry.model, name) for name in self._names}
        self._groups: dict[tuple[CommandMode, tuple[str, ...]], Group] = {}
        self._last: tuple[Instant, int, JointStates] | None = None  # readings hold until something changes
        encoders = [sensor for sensor in self._simulation.sensors(self._name) if isinstance(sensor, Encoder)]
        self._encoders = [
            (encoder, np.array([self._names.index(joint) for joint in encoder.joints])) for encoder in encoders
        ]

    @property
    def joint_names(self) -> tuple[str, ...]:
        """All scalar joints, in file order."""
        return self._names

    def command_modes(self, joint: str) -> tuple[CommandMode, ...]:
        """Modes in which ``joint`` takes commands (empty: passive). Raises UnknownNameError."""
        if joint not in self._modes:
            raise UnknownNameError(
                f"{self._name} has no joint {joint!r}", valid=f"joints: {', '.join(self._names) or 'none'}"
            )
        return self._modes[joint]

    def read(self) -> JointStates:
        """The joints at this instant."""
        simulation = self._simulation
        instant, last = simulation.instant, self._last
        if last is not None and last[0] is instant and last[1] == instant.count and not self._encoders:
            return last[2]
        data = simulation.data
        instant.accelerations()
        position, velocity = data.qpos[self._qpos], data.qvel[self._dof]
        for encoder, where in self._encoders:
            reading = simulation.faults.sensed(encoder, hold=True)
            position[where], velocity[where] = reading.position + reading.turned, reading.velocity
        readings = JointStates(simulation.time_ns, position, velocity, data.qfrc_actuator[self._dof])
        for array in (readings.position, readings.velocity, readings.effort):
            array.flags.writeable = False
        self._last = instant, instant.count, readings
        return readings

    def write(self, command: JointCommand) -> None:
        """Take new set-points at once.

        Raises:
            UnknownNameError: a joint is not known or does not take this mode.
            InputError: a value is not finite, an effort is negative or not for positions, or there are more or fewer of
                them than joints.
        """
        if len(command.joints) != len(command.setpoints):
            raise InputError(f"{len(command.setpoints)} values for {len(command.joints)} joints", location=self._name)
        asked = (command.mode, tuple(command.joints))
        servos, simulation = self._simulation.servos, self._simulation
        if asked not in self._groups:  # control loops ask for the same again and again
            self._check_modes(command)
            self._groups[asked] = servos.group(self._name, *asked)
        given = np.asarray(command.setpoints, float)
        # what goes on counts from the next step on: forces of the present moment are what they were
        goes_on = command.max_effort is None and servos.go_on(self._groups[asked], given)
        if not goes_on:
            if not np.isfinite(given).all():
                raise InputError(f"set-points {given.tolist()}", location=self._name, valid="finite numbers")
            press = [math.inf] * len(given) if command.max_effort is None else self._efforts(command)
            model, data = simulation.model, simulation.data
            for joint, value, most in zip(command.joints, given.tolist(), press, strict=True):
                servos.command(servos.servos[(self._name, joint)], command.mode, value, model, data, most)
        if servos.stale:
            simulation.running.evaluate(simulation.holds.table)
            servos.stale = False
        if not goes_on:
            simulation.instant.moved()

    def _efforts(self, command: JointCommand) -> list[float]:
        """How hard each joint may press, checked."""
        efforts: list[float] = np.asarray(command.max_effort, float).tolist()
        if command.mode != "position":
            raise InputError(f"efforts of {command.mode} commands", location=self._name, valid="of position commands")
        if len(efforts) != len(command.joints):
            raise InputError(f"{len(efforts)} efforts for {len(command.joints)} joints", location=self._name)
        if not all(effort >= 0.0 and math.isfinite(effort) for effort in efforts):
            raise InputError(f"efforts {efforts}", location=self._name, valid="finite numbers, 0 or more")
        return efforts

    def _check_modes(self, command: JointCommand) -> None:
        for joint in command.joints:
            modes = self.command_modes(joint)
            if command.mode not in modes:
                raise UnknownNameError(
                    f"joint {joint!r} of {self._name} takes no {command.mode} commands",
                    valid=f"modes: {', '.join(modes) or 'none, it is passive'}",
                )
