"""Hardware interface: joint states, joint commands, and bases that take a body velocity.

Simulated and real robots implement it.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Literal, Protocol, runtime_checkable

import numpy as np
from numpy.typing import NDArray

from roboyard.description.model import CommandMode
from roboyard.errors import ConfigError, UnknownNameError
from roboyard.geometry.arrays import Vec3


@dataclass(frozen=True, slots=True)
class JointStates:
    """Measured joint states, in the order of `Hardware.joint_names`.

    Attributes:
        time_ns: Time of the measurement [ns of the run's clock].
        position: (n,) positions [rad or m] as the encoders report them (quantized, noisy).
        velocity: (n,) velocities [rad/s or m/s].
        effort: (n,) actuator efforts [N m or N].
    """

    time_ns: int
    position: NDArray[np.float64]
    velocity: NDArray[np.float64]
    effort: NDArray[np.float64]


@dataclass(frozen=True, slots=True)
class JointCommand:
    """Set-points for some joints; other joints keep their last command.

    Attributes:
        mode: Kind of the set-points: position, velocity or effort.
        joints: Joint names; the hardware must accept commands for them in this mode.
        setpoints: (len(joints),) [rad, rad/s or N m; m, m/s or N for prismatic joints].
        max_effort: (len(joints),) maximum efforts of position commands [N m or N]; None for the joints' own limits.  A
            joint with a maximum effort presses with at most this effort against an obstacle.
    """

    mode: CommandMode
    joints: tuple[str, ...]
    setpoints: NDArray[np.float64] = field(repr=False)
    max_effort: NDArray[np.float64] | None = field(default=None, repr=False)


@runtime_checkable
class Hardware(Protocol):
    """Interface of a set of joints that can be read and commanded."""

    @property
    def joint_names(self) -> tuple[str, ...]:
        """Names of all readable joints."""
        ...

    def command_modes(self, joint: str) -> tuple[CommandMode, ...]:
        """Return the command modes of `joint` (empty: passive). Raises UnknownNameError."""
        ...

    def read(self) -> JointStates:
        """Return the newest joint states."""
        ...

    def write(self, command: JointCommand) -> None:
        """Apply new set-points immediately.

        Raises:
            UnknownNameError: A joint is unknown or does not support this mode.
            InputError: A value is not finite, or a maximum effort is negative or not for position commands.
        """
        ...


BaseMotion = Literal["planar", "free"]
"""Commanded components of a body velocity: forward, sideways and yaw; or all six."""


@runtime_checkable
class VelocityBase(Protocol):
    """Interface of a mobile base with a built-in velocity controller, real or simulated."""

    @property
    def kind(self) -> BaseMotion:
        """Commanded velocity components; gravity and contacts determine the others."""
        ...

    def set_velocity(self, linear: Vec3, angular: Vec3) -> None:
        """Set the commanded velocity, expressed in the body frame, immediately.

        Args:
            linear: (3,) linear velocity of the body's origin [m/s].
            angular: (3,) angular velocity [rad/s].

        Raises:
            InputError: A value is not finite.
        """
        ...

    def release(self) -> None:
        """Release the base: no velocity is commanded."""
        ...


def joint_indices(hardware: Hardware, joints: Sequence[str]) -> NDArray[np.int64]:
    """Return the indices of joints (n,) in the arrays of a hardware's joint states.

    Raises:
        UnknownNameError: There is no such joint.
    """
    names = hardware.joint_names
    unknown = next((joint for joint in joints if joint not in names), None)
    if unknown is not None:
        raise UnknownNameError(f"no joint '{unknown}'", valid=", ".join(names))
    return np.array([names.index(joint) for joint in joints], dtype=np.int64)


def check_command_mode(hardware: Hardware, joints: tuple[str, ...], mode: CommandMode, location: str) -> None:
    """Check that all joints take commands of a mode.

    Raises:
        ConfigError: One does not.
        UnknownNameError: There is no such joint.
    """
    for joint in joints:
        modes = hardware.command_modes(joint)
        if mode not in modes:
            raise ConfigError(
                f"joint '{joint}' takes no {mode} commands",
                location=location,
                valid=f"it takes: {', '.join(modes) or 'none'}",
            )
