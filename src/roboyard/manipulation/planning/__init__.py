"""Planning an arm's motion: `plan` in a `PlanningScene` to a goal; every failure is an error with its cause."""

from typing import TYPE_CHECKING

from roboyard.config.lazy import lazy_exports

if TYPE_CHECKING:
    from roboyard.manipulation.planning.choice import planner_named, planner_names
    from roboyard.manipulation.planning.constraints import KeepAxis
    from roboyard.manipulation.planning.errors import (
        BudgetSpent,
        Cancelled,
        ConstraintBroken,
        EffortError,
        GoalInCollision,
        GoalOutsideLimits,
        GoalUnreachable,
        LineBlocked,
        PlanningError,
        StartInCollision,
        StartOutsideLimits,
    )
    from roboyard.manipulation.planning.goals import AimGoal, Goal, JointGoal, NamedGoal, PoseGoal, goal_states
    from roboyard.manipulation.planning.lines import plan_line
    from roboyard.manipulation.planning.plan import Plan, PlanSettings, plan
    from roboyard.manipulation.planning.problem import Found, Planner, Problem
    from roboyard.manipulation.planning.pursuit import Station, plan_pursuit
    from roboyard.manipulation.planning.rechecking import Recheck, recheck

__all__ = [
    "AimGoal", "BudgetSpent", "Cancelled", "ConstraintBroken", "EffortError", "Found", "Goal", "GoalInCollision",
    "GoalOutsideLimits", "GoalUnreachable", "JointGoal", "KeepAxis", "LineBlocked", "NamedGoal", "Plan",
    "PlanSettings", "Planner", "PlanningError", "PoseGoal", "Problem", "Recheck", "StartInCollision",
    "StartOutsideLimits", "Station", "goal_states", "plan", "plan_line", "plan_pursuit", "planner_named",
    "planner_names", "recheck",
]  # fmt: skip

__getattr__, __dir__ = lazy_exports(__name__, {
    "choice": ("planner_named", "planner_names"),
    "constraints": ("KeepAxis",),
    "errors": ("BudgetSpent", "Cancelled", "ConstraintBroken", "EffortError", "GoalInCollision", "GoalOutsideLimits",
        "GoalUnreachable", "LineBlocked", "PlanningError", "StartInCollision", "StartOutsideLimits"),
    "goals": ("AimGoal", "Goal", "JointGoal", "NamedGoal", "PoseGoal", "goal_states"),
    "lines": ("plan_line",),
    "plan": ("Plan", "PlanSettings", "plan"),
    "problem": ("Found", "Planner", "Problem"),
    "pursuit": ("Station", "plan_pursuit"),
    "rechecking": ("Recheck", "recheck"),
})  # fmt: skip
