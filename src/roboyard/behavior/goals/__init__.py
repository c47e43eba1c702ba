"""Goals: what a robot may want and can do, the cheapest plan for it, why that one, and its carrying out by a tree."""

from typing import TYPE_CHECKING

from roboyard.config.lazy import lazy_exports

if TYPE_CHECKING:
    from roboyard.behavior.goals.as_tree import as_xml
    from roboyard.behavior.goals.carrying import NOTHING, Carrying
    from roboyard.behavior.goals.domain import Action, Domain, Goal, Impossible
    from roboyard.behavior.goals.file import Tasks, load_tasks
    from roboyard.behavior.goals.planner import Plan, Undecided, make_plan
    from roboyard.behavior.goals.problem import Step
    from roboyard.behavior.goals.pursuit import Pursuit, RetryConfig
    from roboyard.behavior.goals.why import why, without, would_help

__all__ = [
    "NOTHING",
    "Action",
    "Carrying",
    "Domain",
    "Goal",
    "Impossible",
    "Plan",
    "Pursuit",
    "RetryConfig",
    "Step",
    "Tasks",
    "Undecided",
    "as_xml",
    "load_tasks",
    "make_plan",
    "why",
    "without",
    "would_help",
]

__getattr__, __dir__ = lazy_exports(__name__, {
    "as_tree": ("as_xml",),
    "carrying": ("NOTHING", "Carrying"),
    "domain": ("Action", "Domain", "Goal", "Impossible"),
    "file": ("Tasks", "load_tasks"),
    "planner": ("Plan", "Undecided", "make_plan"),
    "problem": ("Step",),
    "pursuit": ("Pursuit", "RetryConfig"),
    "why": ("why", "without", "would_help"),
})  # fmt: skip
