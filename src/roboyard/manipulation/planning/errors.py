"""Why there is no plan: one error for each cause."""

from __future__ import annotations

from roboyard.manipulation.failure import PlanningError
from roboyard.manipulation.timing import EffortError

__all__ = ["BudgetSpent", "Cancelled", "ConstraintBroken", "EffortError", "GoalInCollision", "GoalOutsideLimits",
           "GoalUnreachable", "LineBlocked", "PlanningError", "StartInCollision", "StartOutsideLimits"]  # fmt: skip


class _Touching(PlanningError):
    """Something touches.

    Args:
        what: See ``RoboyardError``.
        valid: See there.
        pair: What touches.
    """

    def __init__(self, what: str, *, valid: str | None = None, pair: tuple[str, str] | None = None) -> None:
        super().__init__(what, valid=valid)
        self.pair = pair


class StartInCollision(_Touching):
    """Something touches where the arm stands, and nothing near it is free."""

    cause = "start_in_collision"


class StartOutsideLimits(PlanningError):
    """A joint stands farther beyond its limits than can be repaired."""

    cause = "start_outside_limits"


class GoalInCollision(_Touching):
    """Something touches where the arm shall go, in every way in which it could stand there; the pair of the nearest."""

    cause = "goal_in_collision"


class GoalOutsideLimits(PlanningError):
    """The goal asks a joint to be beyond its limits."""

    cause = "goal_outside_limits"


class GoalUnreachable(PlanningError):
    """No position of the joints puts the tool there."""

    cause = "goal_unreachable"


class ConstraintBroken(PlanningError):
    """Start or goal do not keep what shall be kept on the way."""

    cause = "constraint_broken"


class LineBlocked(PlanningError):
    """The straight line cannot be followed to its end.

    Args:
        what: See ``RoboyardError``.
        valid: See there.
        share: Of the line that can be followed.
    """

    cause = "line_blocked"

    def __init__(self, what: str, *, valid: str | None = None, share: float = 0.0) -> None:
        super().__init__(what, valid=valid)
        self.share = share


class BudgetSpent(PlanningError):
    """The search drew as many states as it was allowed to, and had not arrived."""

    cause = "budget_spent"


class Cancelled(PlanningError):
    """Somebody ended the search."""

    cause = "cancelled"
