"""Task planning (GOAP): conditions, actions and goals, the cheapest plan, its explanation and its execution."""

from typing import TYPE_CHECKING

from roboyard.config.lazy import lazy_exports

if TYPE_CHECKING:
    from roboyard.task_planning.domain import NoPlanError, PlanningAction, PlanningDomain, PlanningGoal
    from roboyard.task_planning.plan_tree import plan_to_xml
    from roboyard.task_planning.planner import (
        PlanningBudgetExceededError,
        PlanStep,
        TaskPlan,
        alternatives_without_steps,
        explain_steps,
        helpful_changes,
        make_plan,
    )
    from roboyard.task_planning.task_executor import RetryConfig, TaskExecutor
    from roboyard.task_planning.task_file import TaskFile, load_tasks
    from roboyard.task_planning.transport import EMPTY_HAND, TransportModel

__all__ = [
    "EMPTY_HAND",
    "NoPlanError",
    "PlanStep",
    "PlanningAction",
    "PlanningBudgetExceededError",
    "PlanningDomain",
    "PlanningGoal",
    "RetryConfig",
    "TaskExecutor",
    "TaskFile",
    "TaskPlan",
    "TransportModel",
    "alternatives_without_steps",
    "explain_steps",
    "helpful_changes",
    "load_tasks",
    "make_plan",
    "plan_to_xml",
]

__getattr__, __dir__ = lazy_exports(
    __name__,
    {
        "domain": (
            "NoPlanError",
            "PlanningAction",
            "PlanningDomain",
            "PlanningGoal",
        ),
        "plan_tree": ("plan_to_xml",),
        "planner": (
            "PlanStep",
            "PlanningBudgetExceededError",
            "TaskPlan",
            "alternatives_without_steps",
            "explain_steps",
            "helpful_changes",
            "make_plan",
        ),
        "task_executor": (
            "RetryConfig",
            "TaskExecutor",
        ),
        "task_file": (
            "TaskFile",
            "load_tasks",
        ),
        "transport": (
            "EMPTY_HAND",
            "TransportModel",
        ),
    },
)
