"""The cheapest plan for a goal."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from roboyard.behavior.goals.domain import Domain, Goal, Impossible, Value, World, holds
from roboyard.behavior.goals.legs import no_legs
from roboyard.behavior.goals.problem import Problem, Step
from roboyard.behavior.goals.search import dearest_need, search
from roboyard.behavior.goals.why import because
from roboyard.errors import RoboyardError

BUDGET: Final = 200_000
"""Sets of wants that are looked at before a search is given up."""


class Undecided(RoboyardError):  # noqa: N818 - named by the cause
    """The search was given up before it was known whether there is a plan."""


@dataclass(frozen=True)
class Plan:
    """What to do, one after the other.

    Attributes:
        goal: What for.
        steps: The actions.
        serves: For each step what it brings about that somebody wants: a later step, or the goal.
        cost: Of all steps.
        looked_at: How many sets of wants the search looked at.
    """

    goal: Goal
    steps: tuple[Step, ...]
    serves: tuple[dict[str, Value], ...]
    cost: float
    looked_at: int = 0

    def worlds(self, world: World) -> list[dict[str, Value]]:
        """The world before each step and after the last.

        Raises:
            Impossible: a step's needs do not hold; says which.
        """
        now = dict(world)
        found = [dict(now)]
        for number, step in enumerate(self.steps, 1):
            for name, value in step.needs.items():
                if not holds({name: value}, now):
                    raise Impossible(f"step {number}, {step.name}, needs {name} = {value}, and it is {now.get(name)}")
            now.update(step.effects)
            found.append(dict(now))
        return found


def make_plan(
    domain: Domain, world: World, goal: Goal, *, blocked: frozenset[str] = frozenset(), budget: int = BUDGET
) -> Plan:
    """The cheapest plan.

    Args:
        domain: What the robot can do.
        world: Conditions as they are.
        goal: What is wanted.
        blocked: Names of steps that shall not be taken.
        budget: Sets of wants that are looked at at most.

    Raises:
        Impossible: there is none; says why.
        Undecided: the budget is spent.
    """
    problem = Problem(domain, world, goal.wants, blocked)
    if not problem.can_be(problem.wanted):
        raise Impossible(f"{goal.name} is impossible, because {because(problem)}")
    ops = problem.ops()
    legs = no_legs(len(problem.facts)) if domain.bound is None else domain.bound(world, problem.facts)
    way, wanted, looked_at, found = search(ops, dearest_need(ops), legs, problem.row(problem.wanted), budget)
    if found < 0:
        raise Undecided(f"no plan was found among {budget} sets of wants", valid="a larger budget, or less at once")
    if not found:
        raise Impossible(f"{goal.name} is impossible, because {because(problem)}")
    steps = tuple(problem.steps[op] for op in way)
    serves = tuple(
        {
            name: value
            for name, value in (problem.facts[fact] for fact in wants if fact >= 0)
            if step.effects.get(name, _OTHER) == value
        }
        for step, wants in zip(steps, wanted.tolist(), strict=True)
    )
    return Plan(goal, steps, serves, sum(step.cost for step in steps), looked_at)


_OTHER = object()
