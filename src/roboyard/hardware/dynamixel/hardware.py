"""Joints on Dynamixel servos behind the `Hardware` interface.

Covers start-up with health checks, soft start, command cycle, and stop on faults.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable
from functools import partial
from typing import TypeVar

import numpy as np
from numpy.typing import NDArray

from roboyard.description.model import CommandMode
from roboyard.errors import InputError, UnknownNameError
from roboyard.geometry.arrays import Array
from roboyard.hardware.dynamixel.config import ServoMap, ServosConfig
from roboyard.hardware.dynamixel.control_table import (
    CCW_COMPLIANCE_MARGIN,
    CCW_COMPLIANCE_SLOPE,
    CW_COMPLIANCE_MARGIN,
    CW_COMPLIANCE_SLOPE,
    GOAL_POSITION,
    MODEL,
    MOVING_SPEED,
    PUNCH,
    TORQUE_ENABLE,
    ServoState,
    describe_errors,
    to_speed_units,
)
from roboyard.hardware.dynamixel.monitor import ServoFaultCause, ServoFaultError, ServoMonitor
from roboyard.hardware.dynamixel.port import REPLY_FAILURE_TEXT, PortLostError, ReplyFailure, ServoPort
from roboyard.hardware.interface import JointCommand, JointStates

_MAX_EXTRAPOLATION = 0.1
"""Maximum time for which positions are extrapolated with the last speeds [s]."""
_STOP_REPEATS = 3
"""Number of repetitions of a stop packet, which servos do not acknowledge."""


class DynamixelHardware:
    """Servos of protocol 1.0 on a port.

    `start` finds the servos and makes their present positions the goals; then the caller runs `run_cycle` at the
    configured rate.  Each cycle sends all goals in one packet and reads the state of some servos, in turn.  A fault
    stops the motion: the present positions become the goals, or torque is switched off, as configured; from then on
    `read` and `write` raise the fault.  Servos whose cable is disconnected hold the last goals sent to them.

    Args:
        port: Open serial port.
        settings: Servo configuration.
        servos: Mapping between joints and servos.
        clock: Time of the readings [ns].

    Attributes:
        fault: Fault that stopped the motion; None without a fault.
        states: Last state of each servo, by its id.
        clamped_commands: Number of commands so far that were clamped to the limits.
    """

    def __init__(
        self, port: ServoPort, settings: ServosConfig, servos: ServoMap, clock: Callable[[], int] = lambda: 0
    ) -> None:
        self.port, self.settings, self.servos, self._clock = port, settings, servos, clock
        self.fault: ServoFaultError | None = None
        self.states: dict[int, ServoState] = {}
        self.clamped_commands = 0
        self._state_times: dict[int, float] = {}
        self._monitor = ServoMonitor(settings.fault_limits)
        self._joint_of_servo = dict(zip(servos.ids, servos.joints, strict=True))
        self._joint_index = {joint: k for k, joint in enumerate(servos.joints)}
        self._speeds = [to_speed_units(speed) for speed in servos.max_velocity]
        self._next, self._unanswered = 0, list[int]()
        self._setpoints: NDArray[np.float64] | None = None
        self._soft_start: SoftStartRamp | None = None
        self._time: float | None = None

    # -- Hardware interface
    # -------------------------------------------------------------------------------------------------
    @property
    def joint_names(self) -> tuple[str, ...]:
        """Names of all joints that have a servo."""
        return self.servos.joints

    def command_modes(self, joint: str) -> tuple[CommandMode, ...]:
        """Return the command modes: position only. Raises UnknownNameError."""
        if joint not in self._joint_index:
            raise UnknownNameError(f"joint {joint!r} has no servo", valid=f"joints: {', '.join(self.joint_names)}")
        return ("position",)

    def read(self) -> JointStates:
        """Return the last states of the servos, extrapolated with their speeds to the present time.

        Positions have a resolution of 0.29°, speeds of 0.7°/s; efforts are the loads that the servos report.

        Raises:
            ServoFaultError: The motion was stopped.
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
        """Set new set-points; the next cycle sends them.  Set-points beyond the limits are clamped and counted.

        Raises:
            UnknownNameError: A joint has no servo, or the command mode is not position.
            InputError: A value is not finite, or a maximum effort is given, which servos do not support.
            ServoFaultError: The motion was stopped.
        """
        self.check()
        for joint in command.joints:
            if command.mode not in self.command_modes(joint):
                raise UnknownNameError(
                    f"joint {joint!r} does not support {command.mode} commands", valid="modes: position"
                )
        values = np.asarray(command.setpoints, float)
        if values.shape != (len(command.joints),) or not np.isfinite(values).all():
            raise InputError(
                f"set-points must be finite, got {values.tolist()}",
                location=self.port.path,
                valid="a finite number for each joint",
            )
        if command.max_effort is not None:
            raise InputError(
                "max_effort is not supported by Dynamixel servos",
                location=self.port.path,
                valid="positions without max_effort",
            )
        setpoints = self.servos.to_angles([self.states[servo].ticks for servo in self.servos.ids])
        setpoints = setpoints if self._setpoints is None else self._setpoints.copy()
        indices = [self._joint_index[joint] for joint in command.joints]
        setpoints[indices] = np.clip(values, self.servos.min_position[indices], self.servos.max_position[indices])
        self.clamped_commands += int((np.abs(setpoints[indices] - values) > 1e-9).sum())
        self._setpoints = setpoints  # in one assignment, because another thread reads it

    def check(self) -> None:
        """Raise ServoFaultError if a fault has stopped the motion."""
        if self.fault is not None:
            raise self.fault

    # -- lifecycle
    # ----------------------------------------------------------------------------------------------------------
    def start(self) -> None:
        """Find the servos and enable torque at their present positions.

        Raises:
            ServoFaultError: A servo does not answer, has another model, or reports a problem; no servo moves.
        """
        self.states = find_servos(self.port, self.settings, self.servos)
        enable_servos(self.port, self.settings, self.servos, self.states)
        position = self.servos.to_angles([self.states[servo].ticks for servo in self.servos.ids])
        self._soft_start = SoftStartRamp(position, self.servos.max_velocity, self.settings.start_speed)

    def run_cycle(self, time: float) -> None:
        """Send the goals, read the state of some servos, and check for faults.  After a fault, do nothing.

        Args:
            time: Wall time [s].
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
                error.message, port=self.port.path, action="the servos hold the last goals sent to them"
            )

    def release(self) -> None:
        """Switch off the torque of all servos. Raises PortLostError."""
        for _ in range(_STOP_REPEATS):
            self.port.sync_write([TORQUE_ENABLE], dict.fromkeys(self.servos.ids, (0,)))

    def hold_position(self) -> None:
        """Make the present positions the goals, read again from servos that answer. Raises PortLostError."""
        for servo in self.servos.ids:
            if servo not in self._unanswered and isinstance(state := self.port.read_state(servo), ServoState):
                self.states[servo] = state
        ticks = [self.states[servo].ticks for servo in self.servos.ids]
        for _ in range(_STOP_REPEATS):
            self._send_goals(zip(self.servos.ids, ticks, self._speeds, strict=True))

    # -- internals -----------------------------------------------------------------------------------------------------
    def _send_goals(self, rows: Iterable[tuple[int, int, int]]) -> None:
        self.port.sync_write([GOAL_POSITION, MOVING_SPEED], {servo: (goal, speed) for servo, goal, speed in rows})

    def _servos_to_poll(self) -> list[int]:
        """Return the servos to poll now: those that did not answer last time, then the next ones in turn."""
        ids, unanswered = self.servos.ids, self._unanswered
        polled, self._unanswered = unanswered[: self.settings.servos_polled_per_cycle], []
        while len(polled) < min(self.settings.servos_polled_per_cycle, len(ids)):
            servo = ids[self._next % len(ids)]
            self._next += 1
            if servo not in polled:
                polled.append(servo)
        return polled

    def _stop(self, cause: ServoFaultCause) -> None:
        """Stop all motion because of a fault."""
        is_torque_on = self.settings.fault_limits.on_fault == "hold"
        action = "all servos hold their positions" if is_torque_on else "the torque of all servos is off"
        try:
            if is_torque_on:
                self.hold_position()
            else:
                self.release()
        except PortLostError:
            action = "the port is lost too: the servos hold the last goals sent to them"
        self.fault = self._error(cause.servo, cause.reason, action)

    def _error(self, servo: int, message: str, action: str) -> ServoFaultError:
        return ServoFaultError(
            message, port=self.port.path, servo=servo, joint=self._joint_of_servo[servo], action=action
        )


ReplyT = TypeVar("ReplyT", ServoState, int)

_MAX_ATTEMPTS = 3
_NO_MOTION = "no servo was moved"


def find_servos(port: ServoPort, settings: ServosConfig, servos: ServoMap) -> dict[int, ServoState]:
    """Read the states of all servos, by id.

    Raises:
        ServoFaultError: A servo does not answer, has another model, or reports a problem.
    """
    joints = dict(zip(servos.ids, servos.joints, strict=True))
    try:
        models = {servo: _retry(partial(port.ping, servo)) for servo in servos.ids}
        unanswered = [servo for servo, model in models.items() if isinstance(model, str)]
        if len(unanswered) == len(models):
            raise ServoFaultError(
                f"no servo answers at {settings.baud} baud", port=port.path,
                action="check the power, the cable and the baud rate",
            )  # fmt: skip
        if unanswered:
            names = ", ".join(f"{servo} (joint {joints[servo]})" for servo in unanswered)
            raise ServoFaultError(
                f"no answer from servo{'s' * (len(unanswered) > 1)} {names}", port=port.path,
                action="check cables and ids; --check lists the servos that answer",
            )  # fmt: skip
        for servo, model in models.items():
            if model != MODEL.initial:
                raise _fault(
                    port, servo, joints[servo], f"model {model} is not supported, expected RX-64 ({MODEL.initial})"
                )
        return {servo: _require_healthy(port, settings, servo, joint) for servo, joint in joints.items()}
    except PortLostError as error:
        raise ServoFaultError(error.message, port=port.path, action=_NO_MOTION) from error


def enable_servos(port: ServoPort, settings: ServosConfig, servos: ServoMap, states: dict[int, ServoState]) -> None:
    """Configure each servo, set its goal to its present position, and enable its torque.

    Raises:
        ServoFaultError: A servo does not accept a setting.
    """
    try:
        for servo, joint in zip(servos.ids, servos.joints, strict=True):
            for item, value in (
                (CW_COMPLIANCE_MARGIN, settings.compliance_margin), (CCW_COMPLIANCE_MARGIN, settings.compliance_margin),
                (CW_COMPLIANCE_SLOPE, settings.compliance_slope), (CCW_COMPLIANCE_SLOPE, settings.compliance_slope),
                (PUNCH, settings.punch),
                (MOVING_SPEED, to_speed_units(settings.start_speed)), (GOAL_POSITION, states[servo].ticks),
                (TORQUE_ENABLE, 1),
            ):  # fmt: skip
                errors = _retry(partial(port.write, servo, item, value))
                if isinstance(errors, str):
                    raise _fault(port, servo, joint, REPLY_FAILURE_TEXT[errors])
                if errors:
                    raise _fault(port, servo, joint, describe_errors(errors))
    except PortLostError as error:
        raise ServoFaultError(error.message, port=port.path, action=_NO_MOTION) from error


def _require_healthy(port: ServoPort, settings: ServosConfig, servo: int, joint: str) -> ServoState:
    monitor = ServoMonitor(settings.fault_limits)
    state: ServoState | ReplyFailure = "timeout"
    for _ in range(_MAX_ATTEMPTS):  # a low voltage must be confirmed by several readings
        state = _retry(partial(port.read_state, servo))
        if isinstance(state, str):
            break
        if cause := monitor.on_state(servo, state, 0.0):
            raise _fault(port, servo, joint, cause.reason)
    if isinstance(state, str):
        raise _fault(port, servo, joint, REPLY_FAILURE_TEXT[state])
    return state


def _retry(call: Callable[[], ReplyT | ReplyFailure]) -> ReplyT | ReplyFailure:
    """Repeat a request until it is answered or the attempts are used up; return the last result."""
    reply = call()
    for _ in range(_MAX_ATTEMPTS - 1):
        if not isinstance(reply, str):
            break
        reply = call()
    return reply


def _fault(port: ServoPort, servo: int, joint: str, message: str) -> ServoFaultError:
    return ServoFaultError(message, port=port.path, servo=servo, joint=joint, action=_NO_MOTION)


class SoftStartRamp:
    """Soft start: set-points that move from the present joint positions to the commanded ones along a cosine ramp.

    The first commanded positions determine the duration; they may change meanwhile.  After the ramp, each set-point
    remains limited to the speed of its joint.

    Args:
        start: (n,) present joint positions [rad].
        speed: (n,) maximum speeds [rad/s].
        start_speed: Maximum speed during the ramp, in addition to the joints' own limits [rad/s].
    """

    def __init__(self, start: Array, speed: Array, start_speed: float) -> None:
        self._start, self._speed, self._start_speed = start, speed, start_speed
        self._duration = -1.0
        self._elapsed = 0.0
        self.setpoints = start.copy()

    @property
    def is_finished(self) -> bool:
        """Whether the ramp has reached the commanded positions."""
        return 0.0 <= self._duration <= self._elapsed

    def advance(self, dt: float, target: Array) -> Array:
        """Return the set-points (n,) [rad] after a step of `dt` [s] towards `target` (n,) [rad]."""
        if self._duration < 0.0:
            self._duration = 0.5 * math.pi * float(np.abs(target - self._start).max()) / self._start_speed
        self._elapsed += dt
        fraction = 1.0 if self.is_finished else 0.5 - 0.5 * math.cos(math.pi * self._elapsed / self._duration)
        ramped = self._start + fraction * (target - self._start)
        max_change = (self._speed if self.is_finished else self._speed + self._start_speed) * dt
        self.setpoints = self.setpoints + np.clip(ramped - self.setpoints, -max_change, max_change)
        return self.setpoints
