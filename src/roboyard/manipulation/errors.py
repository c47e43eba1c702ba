"""Errors of motion planning: one class for each cause."""

from __future__ import annotations

from roboyard.errors import RoboyardError


class PlanningError(RoboyardError):
    """A motion cannot be planned; ``cause`` names the reason in one word, for results and metrics."""

    cause = "failed"


class EffortLimitError(PlanningError):
    """A joint cannot hold or move its load."""

    cause = "effort_exceeded"


class VelocityLimitError(EffortLimitError):
    """A joint would have to move or accelerate faster than it can."""

    cause = "too_fast"


class _CollisionError(PlanningError):
    """Two bodies are in collision.

    Args:
        message: What is wrong, as a short clause.
        valid: What would be right.
        pair: Names of the two bodies.
    """

    def __init__(self, message: str, *, valid: str | None = None, pair: tuple[str, str] | None = None) -> None:
        super().__init__(message, valid=valid)
        self.pair = pair


class StartInCollisionError(_CollisionError):
    """The start state is in collision, and no collision-free state is near it."""

    cause = "start_in_collision"


class StartOutsideLimitsError(PlanningError):
    """A joint of the start state is outside its limits by more than the start repair permits."""

    cause = "start_outside_limits"


class GoalInCollisionError(_CollisionError):
    """All joint positions that reach the goal are in collision; ``pair`` is that of the nearest ones."""

    cause = "goal_in_collision"


class GoalOutsideLimitsError(PlanningError):
    """The goal requires a joint outside its limits."""

    cause = "goal_outside_limits"


class GoalUnreachableError(PlanningError):
    """No joint positions put the tool at the goal."""

    cause = "goal_unreachable"


class ConstraintViolatedError(PlanningError):
    """Start or goal violates the path constraint."""

    cause = "constraint_broken"


class CartesianPathBlockedError(PlanningError):
    """The tool cannot follow its path to the end.

    Args:
        message: What is wrong, as a short clause.
        valid: What would be right.
        fraction: Fraction of the path that the tool can follow.
    """

    cause = "line_blocked"

    def __init__(self, message: str, *, valid: str | None = None, fraction: float = 0.0) -> None:
        super().__init__(message, valid=valid)
        self.fraction = fraction


class MotionBudgetExceededError(PlanningError):
    """The planner sampled as many states as it was permitted, and found no path."""

    cause = "budget_spent"


class PlanningCancelledError(PlanningError):
    """The search was cancelled."""

    cause = "cancelled"
