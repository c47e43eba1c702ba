"""Joints moved by Dynamixel servos, behind the same interface as simulated ones."""

from __future__ import annotations

from collections.abc import Callable, Iterable

import numpy as np
from numpy.typing import NDArray

from roboyard.errors import InputError, UnknownNameError
from roboyard.hardware.dynamixel.approach import SoftStartRamp
from roboyard.hardware.dynamixel.control_table import (
    GOAL_POSITION,
    MOVING_SPEED,
    TORQUE_ENABLE,
    ServoState,
    to_speed_units,
)
from roboyard.hardware.dynamixel.errors import PortLostError, ServoFaultError
from roboyard.hardware.dynamixel.port import ServoPort
from roboyard.hardware.dynamixel.settings import ServoMap, ServosConfig
from roboyard.hardware.dynamixel.starting import enable_servos, find_servos
from roboyard.hardware.dynamixel.watch import ServoFaultCause, ServoMonitor
from roboyard.hardware.interface import CommandMode, JointCommand, JointStates

_MAX_EXTRAPOLATION = 0.1
"""Speeds are believed for so long [s]."""
_STOP_REPEATS = 3
"""How often a stop is sent, since nobody answers to it."""


class DynamixelHardware:
    """Servos of protocol 1.0 on a port.

    ``start`` finds them and takes their present positions as goals; then the caller runs ``run_cycle`` at the rate of
    the settings.  Each cycle sends all goals in one packet and reads the state of some servos, in turn.  A fault stops
    the motion: the present positions become the goals, or torque is switched off, as the settings say; from then on
    ``read`` and ``write`` raise the fault.  A robot whose cable is disconnected stays at the last goals sent to it.

    Args:
        port: Open.
        settings: The file of the servos.
        servos: The joints' servos.
        clock: Of readings [ns].

    Attributes:
        fault: Why it stopped; None while all is well.
        states: What each servo said last, by its id.
        clamped_commands: Commands so far that were beyond limits, and were cut off there.
    """

    def __init__(
        self, port: ServoPort, settings: ServosConfig, servos: ServoMap, clock: Callable[[], int] = lambda: 0
    ) -> None:
        self.port, self.settings, self.servos, self._clock = port, settings, servos, clock
        self.fault: ServoFaultError | None = None
        self.states: dict[int, ServoState] = {}
        self.clamped_commands = 0
        self._state_times: dict[int, float] = {}
        self._monitor = ServoMonitor(settings.watch)
        self._joint_of_servo = dict(zip(servos.ids, servos.joints, strict=True))
        self._joint_index = {joint: k for k, joint in enumerate(servos.joints)}
        self._speeds = [to_speed_units(speed) for speed in servos.max_velocity]
        self._next, self._unanswered = 0, list[int]()
        self._setpoints: NDArray[np.float64] | None = None
        self._soft_start: SoftStartRamp | None = None
        self._time: float | None = None

    # -- the interface -------------------------------------------------------------------------------------------------
    @property
    def joint_names(self) -> tuple[str, ...]:
        """All joints that have a servo."""
        return self.servos.joints

    def command_modes(self, joint: str) -> tuple[CommandMode, ...]:
        """Positions. Raises UnknownNameError."""
        if joint not in self._joint_index:
            raise UnknownNameError(f"no servo for joint {joint!r}", valid=f"joints: {', '.join(self.joint_names)}")
        return ("position",)

    def read(self) -> JointStates:
        """What the servos said last, gone on at their speeds until now.

        Positions come in steps of 0.29°, speeds of 0.7°/s; efforts are the loads that servos tell.

        Raises:
            ServoFaultError: motion was stopped.
        """
        self.check()
        states = [self.states[servo] for servo in self.servos.ids]
        direction, effort = self.servos.direction, self.servos.max_effort
        velocity = direction * np.array([state.speed for state in states])
        now = self._time or 0.0
        age = np.array([min(now - self._state_times.get(servo, now), _MAX_EXTRAPOLATION) for servo in self.servos.ids])
        position = self.servos.to_angles([state.ticks for state in states]) + velocity * age
        return JointStates(self._clock(), position, velocity, direction * effort * [state.load for state in states])

    def write(self, command: JointCommand) -> None:
        """Take new set-points; the next cycle sends them.  Those beyond limits are cut off there, and counted.

        Raises:
            UnknownNameError: a joint has no servo, or it is no command of positions.
            InputError: a value is not finite, or an effort is given, which servos cannot keep to.
            ServoFaultError: motion was stopped.
        """
        self.check()
        for joint in command.joints:
            if command.mode not in self.command_modes(joint):
                raise UnknownNameError(f"joint {joint!r} takes no {command.mode} commands", valid="modes: position")
        values = np.asarray(command.setpoints, float)
        if values.shape != (len(command.joints),) or not np.isfinite(values).all():
            raise InputError(
                f"set-points {values.tolist()}", location=self.port.path, valid="a finite number each joint"
            )
        if command.max_effort is not None:
            raise InputError("efforts of servos", location=self.port.path, valid="positions alone")
        setpoints = self.servos.to_angles([self.states[servo].ticks for servo in self.servos.ids])
        setpoints = setpoints if self._setpoints is None else self._setpoints.copy()
        indices = [self._joint_index[joint] for joint in command.joints]
        setpoints[indices] = np.clip(values, self.servos.min_position[indices], self.servos.max_position[indices])
        self.clamped_commands += int((np.abs(setpoints[indices] - values) > 1e-9).sum())
        self._setpoints = setpoints  # at once, for another thread takes it

    def check(self) -> None:
        """Raise what stopped it, if anything did. Raises ServoFaultError."""
        if self.fault is not None:
            raise self.fault

    # -- life ----------------------------------------------------------------------------------------------------------
    def start(self) -> None:
        """Find the servos, and hold each where it is.

        Raises:
            ServoFaultError: one does not answer, is of another kind, or is not well; nothing moves.
        """
        self.states = find_servos(self.port, self.settings, self.servos)
        enable_servos(self.port, self.settings, self.servos, self.states)
        position = self.servos.to_angles([self.states[servo].ticks for servo in self.servos.ids])
        self._soft_start = SoftStartRamp(position, self.servos.max_velocity, self.settings.start_speed)

    def run_cycle(self, time: float) -> None:
        """Send goals, ask some servos, and look at what they say.  After a fault nothing more is done.

        Args:
            time: On the wall [s].
        """
        if self.fault is not None or self._soft_start is None:
            return
        period = 1.0 / self.settings.rate
        dt = period if self._time is None else min(max(time - self._time, 0.0), 2.0 * period)
        self._time = time
        try:
            if self._setpoints is not None:
                goals = self.servos.to_ticks(self._soft_start.advance(dt, self._setpoints))
                self._send_goals(zip(self.servos.ids, goals.tolist(), self._speeds, strict=True))
            for servo in self._servos_to_poll():
                state = self.port.read_state(servo)
                cause = (
                    self._monitor.on_missed_reply(servo, state, time)
                    if isinstance(state, str)
                    else self._monitor.on_state(servo, state, time)
                )
                if isinstance(state, str):
                    self._unanswered.append(servo)
                else:
                    self.states[servo], self._state_times[servo] = state, time
                if cause is not None:
                    self._stop(cause)
                    return
        except PortLostError as error:
            self.fault = ServoFaultError(
                error.message, port=self.port.path, action="the servos stay at the goals that they were sent last"
            )

    def release(self) -> None:
        """Let go of all torque. Raises PortLostError."""
        for _ in range(_STOP_REPEATS):
            self.port.sync_write([TORQUE_ENABLE], dict.fromkeys(self.servos.ids, (0,)))

    def hold_position(self) -> None:
        """Make the present positions the goals; as far as servos answer, those of now. Raises PortLostError."""
        for servo in self.servos.ids:
            if servo not in self._unanswered and isinstance(state := self.port.read_state(servo), ServoState):
                self.states[servo] = state
        ticks = [self.states[servo].ticks for servo in self.servos.ids]
        for _ in range(_STOP_REPEATS):
            self._send_goals(zip(self.servos.ids, ticks, self._speeds, strict=True))

    # -- parts of it ---------------------------------------------------------------------------------------------------
    def _send_goals(self, rows: Iterable[tuple[int, int, int]]) -> None:
        self.port.sync_write([GOAL_POSITION, MOVING_SPEED], {servo: (goal, speed) for servo, goal, speed in rows})

    def _servos_to_poll(self) -> list[int]:
        """Whom to ask now: those that gave no answer last time, then the next ones in turn."""
        ids, unanswered = self.servos.ids, self._unanswered
        polled, self._unanswered = unanswered[: self.settings.asked], []
        while len(polled) < min(self.settings.asked, len(ids)):
            servo = ids[self._next % len(ids)]
            self._next += 1
            if servo not in polled:
                polled.append(servo)
        return polled

    def _stop(self, cause: ServoFaultCause) -> None:
        """End all motion."""
        is_torque_on = self.settings.watch.then == "hold"
        action = "all servos hold their positions" if is_torque_on else "all servos were let go"
        try:
            if is_torque_on:
                self.hold_position()
            else:
                self.release()
        except PortLostError:
            action = "the port is gone too: the servos stay at the goals that they were sent last"
        self.fault = self._error(cause.servo, cause.reason, action)

    def _error(self, servo: int, message: str, action: str) -> ServoFaultError:
        return ServoFaultError(
            message, port=self.port.path, servo=servo, joint=self._joint_of_servo[servo], action=action
        )
