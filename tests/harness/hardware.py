"""Joints without physics or wires: they follow their commands as a first-order system, and fail as a test says."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from roboyard.description.model import CommandMode
from roboyard.errors import InputError, UnknownNameError
from roboyard.hardware.interface import JointCommand, JointStates


class WrittenCommand(NamedTuple):
    """One command as the hardware took it."""

    time_ns: int
    mode: CommandMode
    joints: tuple[str, ...]
    setpoints: NDArray[np.float64]


class FakeHardware:
    """Joints behind the `Hardware` protocol.

    A joint in position mode approaches its set-point q_d with dq/dt = (q_d - q) / time_constant, one in velocity mode
    does the same with its speed; with the time constant 0 it is there at once.  Efforts are kept and move nothing.

    Args:
        joints: Their names.
        clock: Gives the time [ns], e.g. ``lambda: bus.now_ns``.
        modes: Modes that every joint takes, or those of each joint by name (a joint that is not named is passive).
        position: Initial positions [rad or m]; None: zeros.
        time_constant: Of the response [s].

    Attributes:
        stuck: Joints that take commands and do not move.
        offset: What the encoders of joints report too much [rad or m].
        read_error: Raised by the next reads, if any.
        write_error: Raised by the next writes, if any.
        written: Every command, in order.
        history: True positions at the beginning and after each command.
    """

    def __init__(
        self,
        joints: Sequence[str],
        clock: Callable[[], int],
        *,
        modes: Sequence[CommandMode] | Mapping[str, Sequence[CommandMode]] = ("position", "velocity", "effort"),
        position: Sequence[float] | None = None,
        time_constant: float = 0.0,
    ) -> None:
        self.joint_names = tuple(joints)
        self._clock = clock
        self._modes: dict[str, tuple[CommandMode, ...]] = (
            {joint: tuple(modes.get(joint, ())) for joint in joints}
            if isinstance(modes, Mapping)
            else dict.fromkeys(joints, tuple(modes))
        )
        n = len(self.joint_names)
        self._position = np.zeros(n) if position is None else np.array(position, dtype=np.float64)
        self._velocity = np.zeros(n)
        self._effort = np.zeros(n)
        self._target = self._position.copy()
        self._mode: list[CommandMode] = ["position"] * n
        self._time_constant = time_constant
        self._time_ns = clock()
        self.stuck: set[str] = set()
        self.offset: dict[str, float] = {}
        self.read_error: Exception | None = None
        self.write_error: Exception | None = None
        self.written: list[WrittenCommand] = []
        self.history: list[NDArray[np.float64]] = [self._position.copy()]

    # -- what tests look at ----------------------------------------------------------------------------------------
    @property
    def position(self) -> NDArray[np.float64]:
        """True positions now [rad or m]."""
        self._advance()
        return self._position.copy()

    @property
    def velocity(self) -> NDArray[np.float64]:
        """True speeds now [rad/s or m/s]."""
        self._advance()
        return self._velocity.copy()

    @property
    def set_points(self) -> dict[str, float]:
        """The newest set-point of each joint that was commanded."""
        return {
            joint: float(value)
            for item in self.written
            for joint, value in zip(item.joints, item.setpoints, strict=True)
        }

    def place(self, joint: str, position: float) -> None:
        """Put a joint somewhere by hand; it keeps its set-point there [rad or m]."""
        self._advance()
        index = self._index(joint)
        self._position[index] = self._target[index] = position
        self._velocity[index] = 0.0

    # -- Hardware --------------------------------------------------------------------------------------------------
    def command_modes(self, joint: str) -> tuple[CommandMode, ...]:
        """Modes in which ``joint`` takes commands."""
        self._index(joint)
        return self._modes[joint]

    def read(self) -> JointStates:
        """True positions with the encoders' offsets."""
        if self.read_error is not None:
            raise self.read_error
        self._advance()
        position = self._position + [self.offset.get(joint, 0.0) for joint in self.joint_names]
        return JointStates(self._clock(), position, self._velocity.copy(), self._effort.copy())

    def write(self, command: JointCommand) -> None:
        """Take new set-points; refuses unknown joints, other modes and values that are not finite."""
        if self.write_error is not None:
            raise self.write_error
        for joint in command.joints:
            if command.mode not in self.command_modes(joint):
                raise UnknownNameError(f"joint '{joint}' takes no {command.mode} commands")
        if not np.isfinite(command.setpoints).all():
            raise InputError(f"set-points {command.setpoints} are not finite")
        self._advance()
        values = np.array(command.setpoints, dtype=np.float64)
        self.written.append(WrittenCommand(self._clock(), command.mode, tuple(command.joints), values))
        for joint, value in zip(command.joints, values, strict=True):
            index = self._index(joint)
            self._mode[index], self._target[index] = command.mode, value
            if command.mode == "effort":
                self._effort[index] = value
        self._settle()
        self.history.append(self._position.copy())

    # -- motion ----------------------------------------------------------------------------------------------------
    def _index(self, joint: str) -> int:
        if joint not in self.joint_names:
            raise UnknownNameError(f"no joint '{joint}'", valid=", ".join(self.joint_names))
        return self.joint_names.index(joint)

    def _settle(self) -> None:
        """Joints without a time constant are where they should be at once."""
        if self._time_constant > 0.0:
            return
        for index, joint in enumerate(self.joint_names):
            if joint in self.stuck:
                self._velocity[index] = 0.0
            elif self._mode[index] == "position":
                self._position[index], self._velocity[index] = self._target[index], 0.0
            elif self._mode[index] == "velocity":
                self._velocity[index] = self._target[index]

    def _advance(self) -> None:
        """Move every joint up to now, by the exact solution of its equation."""
        now_ns = self._clock()
        dt, self._time_ns = (now_ns - self._time_ns) * 1e-9, now_ns
        if dt <= 0.0:
            return
        tau = self._time_constant
        decay = math.exp(-dt / tau) if tau > 0.0 else 0.0
        for index, joint in enumerate(self.joint_names):
            target = self._target[index]
            if joint in self.stuck:
                self._velocity[index] = 0.0
            elif self._mode[index] == "position":
                gap = self._position[index] - target
                self._position[index] = target + gap * decay
                self._velocity[index] = -gap * decay / tau if tau > 0.0 else 0.0
            elif self._mode[index] == "velocity":
                gap = self._velocity[index] - target
                self._position[index] += target * dt + gap * tau * (1.0 - decay)
                self._velocity[index] = target + gap * decay
