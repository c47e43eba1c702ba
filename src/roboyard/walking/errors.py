"""Errors of legged robots: one class for each cause."""

from __future__ import annotations

from roboyard.errors import InputError, RoboyardError


class FootOutOfReachError(RoboyardError):
    """The requested foot position is outside the leg's workspace."""


class LegJointLimitError(RoboyardError):
    """A leg reaches the requested foot position only with a joint outside its limits.

    Args:
        message: What is wrong.
        location: Leg and robot, or file, where it is wrong.
        valid: What would be right.
        joint: Name of the joint.
        value: Value that the joint would need [rad].
    """

    def __init__(self, message: str, *, location: str, valid: str, joint: str, value: float) -> None:
        super().__init__(message, location=location, valid=valid)
        self.joint = joint
        self.value = value


class InvalidStepStartError(InputError):
    """A step plan cannot start at the given pose or stance."""


class InvalidStepGoalError(InputError):
    """A step plan cannot end at the given position."""


class NoStepPlanError(RoboyardError):
    """No step plan to the goal was found.

    Args:
        message: What is wrong.
        valid: What would be right.
        barrier_cells: Rows and columns of the map's cells that bound the region reachable from the start.
    """

    def __init__(self, message: str, *, valid: str, barrier_cells: tuple[tuple[int, int], ...] = ()) -> None:
        super().__init__(message, valid=valid)
        self.barrier_cells = barrier_cells
