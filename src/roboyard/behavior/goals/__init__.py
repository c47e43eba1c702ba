"""Goals: what a robot may want and can do, the cheapest plan for it, why that one, and its carrying out by a tree."""

from roboyard.behavior.goals.as_tree import as_xml
from roboyard.behavior.goals.carrying import NOTHING, Carrying
from roboyard.behavior.goals.domain import Action, Domain, Goal, Impossible
from roboyard.behavior.goals.file import Tasks, load_tasks
from roboyard.behavior.goals.planner import Plan, Undecided, make_plan
from roboyard.behavior.goals.problem import Step
from roboyard.behavior.goals.pursuit import Patience, Pursuit
from roboyard.behavior.goals.why import why, without, would_help

__all__ = [
    "NOTHING",
    "Action",
    "Carrying",
    "Domain",
    "Goal",
    "Impossible",
    "Patience",
    "Plan",
    "Pursuit",
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
