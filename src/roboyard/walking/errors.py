"""What legs cannot do: one error for each cause."""

from __future__ import annotations

from roboyard.errors import InputError, RoboyardError


class FootOutOfReach(RoboyardError):
    """A foot is wanted where its leg cannot put it."""


class LegBeyondLimits(RoboyardError):
    """A leg reaches a place only with a joint beyond its limits.

    Args:
        what: See ``RoboyardError``.
        where: See there.
        valid: See there.
        joint: Which.
        value: What it would take [rad].
    """

    def __init__(self, what: str, *, where: str, valid: str, joint: str, value: float) -> None:
        super().__init__(what, location=where, valid=valid)
        self.joint = joint
        self.value = value


class BadStart(InputError):
    """A plan cannot begin there."""


class BadGoal(InputError):
    """A plan cannot end there."""


class NoPlan(RoboyardError):
    """No steps were found that lead to a goal.

    Args:
        what: See ``RoboyardError``.
        valid: See there.
        cells: Rows and columns of the map where it ends.
    """

    def __init__(self, what: str, *, valid: str, cells: tuple[tuple[int, int], ...] = ()) -> None:
        super().__init__(what, valid=valid)
        self.cells = cells
