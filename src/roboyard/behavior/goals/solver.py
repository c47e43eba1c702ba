"""Plans by other people's planners, asked through unified-planning: an extra, `pip install 'roboyard[planning]'`."""

from __future__ import annotations

from typing import Any, Final

from roboyard.behavior.goals.domain import Domain, Goal, Impossible, Value, World, holds
from roboyard.behavior.goals.pddl import as_pddl
from roboyard.behavior.goals.planner import Plan
from roboyard.behavior.goals.problem import Problem, Step
from roboyard.errors import InputError, MissingExtraError

CHEAPEST: Final = "fast-downward-opt"
"""A planner whose plans are the cheapest."""
WHOLE: Final = 1000
"""Costs are told in thousandths: planners want whole numbers."""
_WHERE: Final = "another planner"


def plan_by(domain: Domain, world: World, goal: Goal, engine: str = CHEAPEST) -> Plan:
    """A plan by one of unified-planning's engines; as cheap as that engine promises, to a thousandth a step.

    Args:
        domain, world, goal: As `make_plan` takes them.
        engine: Its name, as unified-planning has it.

    Raises:
        Impossible: the engine says that there is no plan.
        InputError: unified-planning or the engine is not installed, the engine gave up, or its plan is none.
    """
    if goal.holds(world):
        return Plan(goal, (), (), 0.0)
    written = as_pddl(domain, world, goal, whole=WHOLE)
    # unified-planning cannot read a domain without actions
    names = _asked(written.domain, written.problem, engine) if written.steps else None
    if names is None:
        raise Impossible(f"{goal.name} is impossible, says {engine}")
    known = {step.name: step for step in Problem(domain, world, goal.wants).steps}
    steps = tuple(known[written.steps[name]] for name in names)
    plan = Plan(goal, steps, _serving(steps, goal), sum(step.cost for step in steps))
    try:
        end = plan.worlds(world)[-1]
    except Impossible as error:
        raise InputError(f"{engine} found a plan that is none: {error.message}", location=_WHERE) from None
    if not goal.holds(end):
        raise InputError(f"{engine} found a plan that does not get there", location=_WHERE)
    return plan


def _asked(domain: str, problem: str, engine: str) -> list[str] | None:
    """Names of the actions that the engine found; None if there is no plan."""
    try:
        from unified_planning.engines import PlanGenerationResultStatus as Status
        from unified_planning.environment import get_environment
        from unified_planning.exceptions import UPException
        from unified_planning.io import PDDLReader
    except ImportError:
        raise MissingExtraError(f"the planner {engine!r}", "planning", location=_WHERE) from None
    environment = get_environment()
    environment.credits_stream = None
    if engine not in environment.factory.engines:
        raise InputError(f"no engine {engine!r}", location=_WHERE, valid=", ".join(environment.factory.engines))
    try:
        task = PDDLReader(environment).parse_problem_string(domain, problem)
        with environment.factory.OneshotPlanner(name=engine) as planner:
            result: Any = planner.solve(task)
    except UPException as error:
        raise InputError(f"{engine} cannot do it: {error}", location=_WHERE, valid=CHEAPEST) from None
    if result.plan is not None:
        return [str(one.action.name) for one in result.plan.actions]
    if result.status in (Status.UNSOLVABLE_PROVEN, Status.UNSOLVABLE_INCOMPLETELY):
        return None
    raise InputError(f"{engine} gave up: {result.status.name.lower()}", location=_WHERE, valid="another engine")


def _serving(steps: tuple[Step, ...], goal: Goal) -> tuple[dict[str, Value], ...]:
    """For each step what it brings about that a later one or the goal wants."""
    wanted: dict[str, Value] = dict(goal.wants)
    found: list[dict[str, Value]] = []
    for step in reversed(steps):
        served = {
            name: value for name, value in step.effects.items() if name in wanted and holds({name: value}, wanted)
        }
        found.append(served)
        wanted = {name: value for name, value in wanted.items() if name not in served} | dict(step.needs)
    return tuple(reversed(found))
