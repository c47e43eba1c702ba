"""Joints moved by Dynamixel servos, behind the same interface as simulated ones."""

from __future__ import annotations

from collections.abc import Callable, Iterable

import numpy as np
from numpy.typing import NDArray

from roboyard.errors import InputError, UnknownNameError
from roboyard.hardware.dynamixel.approach import Approach
from roboyard.hardware.dynamixel.control_table import (
    GOAL_POSITION,
    MOVING_SPEED,
    TORQUE_ENABLE,
    ServoState,
    speed_steps,
)
from roboyard.hardware.dynamixel.errors import BusGoneError, ServoFaultError
from roboyard.hardware.dynamixel.port import ServoPort
from roboyard.hardware.dynamixel.settings import ServoMap, ServosFile
from roboyard.hardware.dynamixel.starting import find_servos, take_servos
from roboyard.hardware.dynamixel.watch import Cause, ServoWatch
from roboyard.hardware.interface import CommandMode, JointCommand, JointReadings

_OLDEST = 0.1
"""Speeds are believed for so long [s]."""
_SENT = 3
"""How often a stop is sent, since nobody answers to it."""


class DynamixelHardware:
    """Servos of protocol 1.0 on a port.

    ``start`` finds them and takes them where they are; then somebody calls ``cycle`` at the rate of the settings.  Each
    cycle sends all goals with one packet and asks some servos for their state, in turn.  What goes wrong stops motion:
    the goals become the present positions, or torque is let go, as the settings say; from then on ``read`` and
    ``write`` raise what it was.  A robot whose cable is gone stays at the goals that it was sent last.

    Args:
        port: Open.
        settings: The file of the servos.
        servos: The joints' servos.
        clock: Of readings [ns].

    Attributes:
        fault: Why it stopped; None while all is well.
        states: What each servo said last, by its id.
        clipped: Commands so far that were beyond limits, and were cut off there.
    """

    def __init__(
        self, port: ServoPort, settings: ServosFile, servos: ServoMap, clock: Callable[[], int] = lambda: 0
    ) -> None:
        self.port, self.settings, self.servos, self._clock = port, settings, servos, clock
        self.fault: ServoFaultError | None = None
        self.states: dict[int, ServoState] = {}
        self.clipped = 0
        self._asked_at: dict[int, float] = {}
        self._watch = ServoWatch(settings.watch)
        self._joint = dict(zip(servos.ids, servos.joints, strict=True))
        self._place = {joint: k for k, joint in enumerate(servos.joints)}
        self._speeds = [speed_steps(speed) for speed in servos.speed]
        self._next, self._again = 0, list[int]()
        self._wanted: NDArray[np.float64] | None = None
        self._approach: Approach | None = None
        self._time: float | None = None

    # -- the interface -------------------------------------------------------------------------------------------------
    @property
    def joint_names(self) -> tuple[str, ...]:
        """All joints that have a servo."""
        return self.servos.joints

    def command_modes(self, joint: str) -> tuple[CommandMode, ...]:
        """Positions. Raises UnknownNameError."""
        if joint not in self._place:
            raise UnknownNameError(f"no servo for joint {joint!r}", valid=f"joints: {', '.join(self.joint_names)}")
        return ("position",)

    def read(self) -> JointReadings:
        """What the servos said last, gone on at their speeds until now.

        Positions come in steps of 0.29°, speeds of 0.7°/s; efforts are the loads that servos tell.

        Raises:
            ServoFaultError: motion was stopped.
        """
        self.check()
        states = [self.states[servo] for servo in self.servos.ids]
        turn, effort = self.servos.direction, self.servos.effort
        velocity = turn * np.array([state.speed for state in states])
        now = self._time or 0.0
        age = np.array([min(now - self._asked_at.get(servo, now), _OLDEST) for servo in self.servos.ids])
        position = self.servos.angles([state.ticks for state in states]) + velocity * age
        return JointReadings(self._clock(), position, velocity, turn * effort * [state.load for state in states])

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
        values = np.asarray(command.values, float)
        if values.shape != (len(command.joints),) or not np.isfinite(values).all():
            raise InputError(f"set-points {values.tolist()}", where=self.port.path, valid="a finite number each joint")
        if command.max_effort is not None:
            raise InputError("efforts of servos", where=self.port.path, valid="positions alone")
        wanted = self.servos.angles([self.states[servo].ticks for servo in self.servos.ids])
        wanted = wanted if self._wanted is None else self._wanted.copy()
        where = [self._place[joint] for joint in command.joints]
        wanted[where] = np.clip(values, self.servos.low[where], self.servos.high[where])
        self.clipped += int((np.abs(wanted[where] - values) > 1e-9).sum())
        self._wanted = wanted  # at once, for another thread takes it

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
        take_servos(self.port, self.settings, self.servos, self.states)
        here = self.servos.angles([self.states[servo].ticks for servo in self.servos.ids])
        self._approach = Approach(here, self.servos.speed, self.settings.start_speed)

    def cycle(self, time: float) -> None:
        """Send goals, ask some servos, and look at what they say.  After a fault nothing more is done.

        Args:
            time: On the wall [s].
        """
        if self.fault is not None or self._approach is None:
            return
        period = 1.0 / self.settings.rate
        dt = period if self._time is None else min(max(time - self._time, 0.0), 2.0 * period)
        self._time = time
        try:
            if self._wanted is not None:
                goals = self.servos.ticks(self._approach.advance(dt, self._wanted))
                self._send(zip(self.servos.ids, goals.tolist(), self._speeds, strict=True))
            for servo in self._turn():
                state = self.port.state(servo)
                cause = (
                    self._watch.missed(servo, state, time)
                    if isinstance(state, str)
                    else self._watch.heard(servo, state, time)
                )
                if isinstance(state, str):
                    self._again.append(servo)
                else:
                    self.states[servo], self._asked_at[servo] = state, time
                if cause is not None:
                    self._stop(cause)
                    return
        except BusGoneError as error:
            self.fault = ServoFaultError(
                error.what, port=self.port.path, done="the servos stay at the goals that they were sent last"
            )

    def release(self) -> None:
        """Let go of all torque. Raises BusGoneError."""
        for _ in range(_SENT):
            self.port.write_all([TORQUE_ENABLE], dict.fromkeys(self.servos.ids, (0,)))

    def hold(self) -> None:
        """Make the present positions the goals; as far as servos answer, those of now. Raises BusGoneError."""
        for servo in self.servos.ids:
            if servo not in self._again and isinstance(state := self.port.state(servo), ServoState):
                self.states[servo] = state
        here = [self.states[servo].ticks for servo in self.servos.ids]
        for _ in range(_SENT):
            self._send(zip(self.servos.ids, here, self._speeds, strict=True))

    # -- parts of it ---------------------------------------------------------------------------------------------------
    def _send(self, rows: Iterable[tuple[int, int, int]]) -> None:
        self.port.write_all([GOAL_POSITION, MOVING_SPEED], {servo: (goal, speed) for servo, goal, speed in rows})

    def _turn(self) -> list[int]:
        """Whom to ask now: those that gave no answer last time, then the next ones in turn."""
        ids, again = self.servos.ids, self._again
        asked, self._again = again[: self.settings.asked], []
        while len(asked) < min(self.settings.asked, len(ids)):
            servo = ids[self._next % len(ids)]
            self._next += 1
            if servo not in asked:
                asked.append(servo)
        return asked

    def _stop(self, cause: Cause) -> None:
        """End all motion."""
        held = self.settings.watch.then == "hold"
        done = "all servos hold their positions" if held else "all servos were let go"
        try:
            if held:
                self.hold()
            else:
                self.release()
        except BusGoneError:
            done = "the port is gone too: the servos stay at the goals that they were sent last"
        self.fault = self._error(cause.servo, cause.what, done)

    def _error(self, servo: int, what: str, done: str) -> ServoFaultError:
        return ServoFaultError(what, port=self.port.path, servo=servo, joint=self._joint[servo], done=done)
