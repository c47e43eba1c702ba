"""The hardware interface: joint states, joint commands, and bases that take a body velocity.

Implemented by simulated and real robots.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Literal, Protocol, runtime_checkable

import numpy as np
from numpy.typing import NDArray

from roboyard.description.model import CommandMode
from roboyard.geometry.arrays import Vec3


@dataclass(frozen=True, slots=True)
class JointStates:
    """What the joints' own sensors say, in the order of ``Hardware.joint_names``.

    Attributes:
        time_ns: Moment of the measurement [ns of the run's clock].
        position: (n,) [rad or m], as the encoders report it (quantised, noisy).
        velocity: (n,) [rad/s or m/s].
        effort: (n,) actuator effort [N m or N].
    """

    time_ns: int
    position: NDArray[np.float64]
    velocity: NDArray[np.float64]
    effort: NDArray[np.float64]


@dataclass(frozen=True, slots=True)
class JointCommand:
    """Set-points for some joints; joints not named keep their last command.

    Attributes:
        mode: What ``setpoints`` are.
        joints: Names, all known to the hardware and commandable in this mode.
        setpoints: (len(joints),) [rad, rad/s or N m; m, m/s or N for prismatic joints].
        max_effort: (len(joints),) what the joints may press with on their way to positions and there [N m or N]; None:
            all they can.  A joint that is given one presses on what stops it until it reaches it.
    """

    mode: CommandMode
    joints: tuple[str, ...]
    setpoints: NDArray[np.float64] = field(repr=False)
    max_effort: NDArray[np.float64] | None = field(default=None, repr=False)


@runtime_checkable
class Hardware(Protocol):
    """Joints that can be read and commanded."""

    @property
    def joint_names(self) -> tuple[str, ...]:
        """All readable joints."""
        ...

    def command_modes(self, joint: str) -> tuple[CommandMode, ...]:
        """Modes in which ``joint`` takes commands (empty: passive). Raises UnknownNameError."""
        ...

    def read(self) -> JointStates:
        """The newest readings."""
        ...

    def write(self, command: JointCommand) -> None:
        """Take new set-points at once.

        Raises:
            UnknownNameError: a joint is not known or does not take this mode.
            InputError: a value is not finite, or an effort is negative or not for positions.
        """
        ...


BaseMotion = Literal["planar", "free"]
"""What of a body's velocity is commanded: forward, sideways and turning; or all six components."""


@runtime_checkable
class VelocityBase(Protocol):
    """A body that moves as it is told: a bought base with a drive of its own, or a simulated one."""

    @property
    def kind(self) -> BaseMotion:
        """Which components it takes; the others are left to gravity and contacts."""
        ...

    def set_velocity(self, linear: Vec3, angular: Vec3) -> None:
        """Take new velocities at once, in the body's own axes.

        Args:
            linear: Of the body's origin [m/s].
            angular: [rad/s].

        Raises:
            InputError: a value is not finite.
        """
        ...

    def release(self) -> None:
        """Hold no velocity any more."""
        ...
