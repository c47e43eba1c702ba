"""Bases that take their velocity as a command, instead of speeds of their wheels."""

from __future__ import annotations

from typing import Literal, Protocol, runtime_checkable

BaseMotion = Literal["planar", "free"]
"""What of a body's velocity is commanded: forward, sideways and turning; or all six components."""
Vector = tuple[float, float, float]


@runtime_checkable
class VelocityBase(Protocol):
    """A body that moves as it is told: a bought base with a drive of its own, or a simulated one."""

    @property
    def kind(self) -> BaseMotion:
        """Which components it takes; the others are left to gravity and contacts."""
        ...

    def set_velocity(self, linear: Vector, angular: Vector) -> None:
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
