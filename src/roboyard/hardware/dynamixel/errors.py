"""What can go wrong with servos on a bus."""

from __future__ import annotations

from roboyard.errors import RunError


class ServoFaultError(RunError):
    """A servo or its bus failed, and motion was stopped; says which servo, which joint, and why.

    Attributes:
        servo: Its id; None where the bus itself failed.
        joint: Its joint; None likewise.
    """

    def __init__(
        self, message: str, *, port: str, servo: int | None = None, joint: str | None = None, action: str
    ) -> None:
        self.servo, self.joint = servo, joint
        location = port if servo is None else f"{port}, servo {servo} (joint {joint})"
        super().__init__(message, location=location, valid=action)


class PortLostError(RunError):
    """The port itself is gone: the cable was unplugged, or its driver gave up."""
