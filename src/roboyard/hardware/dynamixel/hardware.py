"""Joints on Dynamixel servos behind the `Hardware` interface.

Start-up with health checks, soft start, command cycle, stop on faults.
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
        self._monitor = ServoMonitor(settings.fault_limits)
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
        polled, self._unanswered = unanswered[: self.settings.servos_polled_per_cycle], []
        while len(polled) < min(self.settings.servos_polled_per_cycle, len(ids)):
            servo = ids[self._next % len(ids)]
            self._next += 1
            if servo not in polled:
                polled.append(servo)
        return polled

    def _stop(self, cause: ServoFaultCause) -> None:
        """End all motion."""
        is_torque_on = self.settings.fault_limits.on_fault == "hold"
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


ReplyT = TypeVar("ReplyT", ServoState, int)

_MAX_ATTEMPTS = 3
_NO_MOTION = "nothing was moved"


def find_servos(port: ServoPort, settings: ServosConfig, servos: ServoMap) -> dict[int, ServoState]:
    """What all servos say of themselves, by id.

    Raises:
        ServoFaultError: one does not answer, is of another kind, or is not well.
    """
    joints = dict(zip(servos.ids, servos.joints, strict=True))
    try:
        models = {servo: _retry(partial(port.ping, servo)) for servo in servos.ids}
        unanswered = [servo for servo, model in models.items() if isinstance(model, str)]
        if len(unanswered) == len(models):
            raise ServoFaultError(
                f"no servo answers at {settings.baud} baud", port=port.path,
                action="is the power on, the cable plugged in, the baud rate right?",
            )  # fmt: skip
        if unanswered:
            names = ", ".join(f"{servo} (joint {joints[servo]})" for servo in unanswered)
            raise ServoFaultError(
                f"no answer from servo{'s' * (len(unanswered) > 1)} {names}", port=port.path,
                action="look at cables and ids; --check lists what answers",
            )  # fmt: skip
        for servo, model in models.items():
            if model != MODEL.initial:
                raise _fault(port, servo, joints[servo], f"model {model} is no RX-64, {MODEL.initial}")
        return {servo: _require_healthy(port, settings, servo, joint) for servo, joint in joints.items()}
    except PortLostError as error:
        raise ServoFaultError(error.message, port=port.path, action=_NO_MOTION) from error


def enable_servos(port: ServoPort, settings: ServosConfig, servos: ServoMap, states: dict[int, ServoState]) -> None:
    """Set each servo up, its goal where it is, and let it hold that.

    Raises:
        ServoFaultError: one does not take what it is told.
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
    for _ in range(_MAX_ATTEMPTS):  # low voltage is believed only after some readings
        state = _retry(partial(port.read_state, servo))
        if isinstance(state, str):
            break
        if cause := monitor.on_state(servo, state, 0.0):
            raise _fault(port, servo, joint, cause.reason)
    if isinstance(state, str):
        raise _fault(port, servo, joint, REPLY_FAILURE_TEXT[state])
    return state


def _retry(call: Callable[[], ReplyT | ReplyFailure]) -> ReplyT | ReplyFailure:
    """What comes of a request that is repeated if it is not answered."""
    reply = call()
    for _ in range(_MAX_ATTEMPTS - 1):
        if not isinstance(reply, str):
            break
        reply = call()
    return reply


def _fault(port: ServoPort, servo: int, joint: str, message: str) -> ServoFaultError:
    return ServoFaultError(message, port=port.path, servo=servo, joint=joint, action=_NO_MOTION)


class SoftStartRamp:
    """Set-points that begin where the joints are and come to the wanted ones on a cosine.

    The first wanted positions say how long that takes; they may move meanwhile.  Later no joint's set-point goes
    faster than its speed.

    Args:
        start: (n) where the joints are [rad].
        speed: (n) greatest speeds [rad/s].
        start_speed: Greatest speed on the way to the first wanted positions, beside theirs [rad/s].
    """

    def __init__(self, start: Array, speed: Array, start_speed: float) -> None:
        self._start, self._speed, self._start_speed = start, speed, start_speed
        self._duration = -1.0
        self._elapsed = 0.0
        self.setpoints = start.copy()

    @property
    def is_finished(self) -> bool:
        """Whether it has come to what is wanted."""
        return 0.0 <= self._duration <= self._elapsed

    def advance(self, dt: float, target: Array) -> Array:
        """(n) the set-points ``dt`` seconds later, towards ``target`` (n) [rad]."""
        if self._duration < 0.0:
            self._duration = 0.5 * math.pi * float(np.abs(target - self._start).max()) / self._start_speed
        self._elapsed += dt
        fraction = 1.0 if self.is_finished else 0.5 - 0.5 * math.cos(math.pi * self._elapsed / self._duration)
        ramped = self._start + fraction * (target - self._start)
        max_change = (self._speed if self.is_finished else self._speed + self._start_speed) * dt
        self.setpoints = self.setpoints + np.clip(ramped - self.setpoints, -max_change, max_change)
        return self.setpoints
