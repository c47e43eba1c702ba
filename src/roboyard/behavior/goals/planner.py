"""The cheapest way to what is wanted: A* backwards, from what is wanted to what is there."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from heapq import heappop, heappush
from typing import Final

from roboyard.behavior.goals.domain import Domain, Goal, Impossible, Value, World, holds
from roboyard.behavior.goals.problem import Problem, Step, bits
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
    way, looked_at = _search(problem, budget)
    if way is None:
        raise Impossible(f"{goal.name} is impossible, because {because(problem)}")
    open_facts = [(problem.steps[op], problem.pairs(served)) for op, served in way]
    steps = tuple(step for step, _ in open_facts)
    return Plan(goal, steps, tuple(served for _, served in open_facts), sum(step.cost for step in steps), looked_at)


def _search(problem: Problem, budget: int) -> tuple[list[tuple[int, int]] | None, int]:
    """Steps and what each serves, from the first to the last; None if there is no way; and how many were looked at."""
    wanted, start, together = problem.wanted, problem.start, problem.together
    if not problem.can_be(wanted):
        return None, 0
    achievers: list[list[int]] = [[] for _ in problem.facts]
    for op, (needs, effects, _) in enumerate(problem.ops):
        if problem.can_be(needs):
            for bit in bits(effects):
                achievers[bit].append(op)
    needs_of = [needs for needs, _, _ in problem.ops]
    gives = [effects for _, effects, _ in problem.ops]
    spoils = [mask for _, _, mask in problem.ops]
    costs = [step.cost for step in problem.steps]
    need_bits = [tuple(bits(needs)) for needs in needs_of]
    best = {wanted: 0.0}
    came: dict[int, tuple[int, int]] = {}
    least_of = _bound(problem)
    heap = [(least_of(wanted), 0.0, 0, wanted)]
    count = looked_at = 0
    while heap:
        _, least, _, state = heappop(heap)
        so_far = -least
        if so_far > best[state]:
            continue
        if not state & ~start:
            return _way(state, came, problem), looked_at
        looked_at += 1
        if looked_at > budget:
            raise Undecided(f"no plan was found among {budget} sets of wants", valid="a larger budget, or less at once")
        tried = 0
        for bit in bits(state):
            for op in achievers[bit]:
                if tried >> op & 1:
                    continue
                tried |= 1 << op
                if state & spoils[op]:
                    continue
                before = state & ~gives[op] | needs_of[op]
                cost = so_far + costs[op]
                if best.get(before, float("inf")) <= cost:
                    continue
                for need in need_bits[op]:
                    if before & ~together[need]:
                        break
                else:
                    best[before] = cost
                    came[before] = (op, state)
                    count += 1
                    heappush(heap, (cost + least_of(before), -cost, count, before))
    return None, looked_at


def _bound(problem: Problem) -> Callable[[int], float]:
    """At least so much it costs to get to a set of wants."""
    dearest = problem.dearest
    bound = None if problem.domain.bound is None else problem.domain.bound(problem.world)

    def least(mask: int) -> float:
        facts = list(bits(mask))
        floor = max((dearest[bit] for bit in facts), default=0.0)
        return floor if bound is None else max(floor, bound(dict([problem.facts[bit] for bit in facts])))

    return least


def _way(state: int, came: dict[int, tuple[int, int]], problem: Problem) -> list[tuple[int, int]]:
    found = []
    while state in came:
        op, state = came[state]
        found.append((op, state & problem.ops[op][1]))
    return found
