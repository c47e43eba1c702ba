"""Task planning: conditions, actions and goals, the cheapest plan for a goal, and its execution with replanning (GOAP).

The names that most users need: `plan`, `load_tasks`, `TaskFile`, `TaskPlan`, `NoPlanError`, `PlanningDomain`,
`PlanningAction`, `PlanningGoal`, `explain_steps`, `load_pddl`.

    print([step.name for step in ry.task_planning.plan("tasks.yaml", "cup on the desk").steps])
"""

from typing import TYPE_CHECKING

from roboyard.config.lazy import lazy_exports

if TYPE_CHECKING:
    from roboyard.task_planning.domain import NoPlanError, PlanningAction, PlanningDomain, PlanningGoal
    from roboyard.task_planning.pddl import load_pddl, read_pddl, solve_with, write_pddl
    from roboyard.task_planning.plan_tree import plan_to_xml
    from roboyard.task_planning.planner import (
        PlanningBudgetExceededError,
        PlanStep,
        TaskPlan,
        alternatives_without_steps,
        explain_steps,
        helpful_changes,
        make_plan,
        plan,
    )
    from roboyard.task_planning.task_executor import RetryConfig, TaskExecutor
    from roboyard.task_planning.task_file import TaskFile, load_tasks
    from roboyard.task_planning.transport import EMPTY_HAND, TransportModel

# The names that most users need come first.
__all__ = [  # noqa: RUF022
    "plan",
    "load_tasks",
    "TaskFile",
    "TaskPlan",
    "NoPlanError",
    "PlanningDomain",
    "PlanningAction",
    "PlanningGoal",
    "explain_steps",
    "load_pddl",
    "EMPTY_HAND",
    "PlanStep",
    "PlanningBudgetExceededError",
    "RetryConfig",
    "TaskExecutor",
    "TransportModel",
    "alternatives_without_steps",
    "helpful_changes",
    "make_plan",
    "plan_to_xml",
    "read_pddl",
    "solve_with",
    "write_pddl",
]

__getattr__, __dir__ = lazy_exports(__name__, {
    "domain": ("NoPlanError", "PlanningAction", "PlanningDomain", "PlanningGoal"),
    "pddl": ("load_pddl", "read_pddl", "solve_with", "write_pddl"),
    "plan_tree": ("plan_to_xml",),
    "planner": (
        "PlanStep", "PlanningBudgetExceededError", "TaskPlan", "alternatives_without_steps", "explain_steps",
        "helpful_changes", "make_plan", "plan",
    ),
    "task_executor": ("RetryConfig", "TaskExecutor"),
    "task_file": ("TaskFile", "load_tasks"),
    "transport": ("EMPTY_HAND", "TransportModel"),
})  # fmt: skip
