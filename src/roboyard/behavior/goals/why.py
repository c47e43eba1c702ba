"""Why a plan is as it is, why there is none, and what would have made one possible."""

from __future__ import annotations

from typing import TYPE_CHECKING

from roboyard.behavior.goals.domain import Domain, Fact, Goal, Impossible, Value, World
from roboyard.behavior.goals.problem import Problem, bits

if TYPE_CHECKING:
    from roboyard.behavior.goals.planner import Plan

_SAID = 3
"""Reasons that are told of one fact."""


def because(problem: Problem) -> str:
    """Why there is no plan, in words that go on after "because"."""
    never = [problem.facts[bit] for bit in bits(problem.wanted) if not problem.together[bit]]
    if never:
        roots: dict[str, None] = {}
        for fact in never:
            roots.update(dict.fromkeys(_roots(problem, fact)))
        return "; ".join(roots)
    for bit in bits(problem.wanted):
        apart = problem.wanted & ~problem.together[bit]
        if apart:
            other = problem.facts[next(bits(apart))]
            return f"{_said(problem.facts[bit])} and {_said(other)} never hold together"
    wants = " and ".join(_said(pair) for pair in problem.wants.items())
    return f"no order of the actions brings about {wants} together"


def _roots(problem: Problem, fact: Fact) -> list[str]:
    """What a fact that never holds fails at in the end: facts that nothing brings about."""
    found: dict[str, None] = {}
    seen: set[Fact] = set()
    stack: list[tuple[Fact, str]] = [(fact, "")]
    while stack:
        at, needed = stack.pop()
        if at in seen:
            continue
        seen.add(at)
        makers = [
            (step, op)
            for step, op in zip(problem.steps, problem.masks, strict=True)
            if step.effects.get(at[0], _NONE) == at[1] and at[0] in step.effects
        ]
        refused = [f"{name}: {why}" for name, why in problem.refused.items() if _about(name, at)]
        if not makers:
            is_now = problem.world.get(at[0], "not known")
            blocked = "" if not problem.blocked else " that may be taken"
            words = f"no action{blocked} makes {_said(at)}, which is {is_now}{needed}"
            found[words + (f" ({'; '.join(refused[:_SAID])})" if refused else "")] = None
            continue
        deeper = False
        for step, (needs, _, _) in makers:
            missing = [problem.facts[bit] for bit in bits(needs) if not problem.together[bit]]
            deeper = deeper or bool(missing)
            stack.extend((pair, f", and {step.name} needs it") for pair in missing)
        if not deeper:
            step, (needs, _, _) = makers[0]
            words = " and ".join(_said(problem.facts[bit]) for bit in bits(needs))
            found[f"{words} never hold together, and {step.name} needs them"] = None
    if not found:  # facts that only bring about one another
        others = ", ".join(sorted(_said(pair) for pair in seen if pair != fact)[:_SAID])
        found[f"{_said(fact)} is brought about only by way of what needs it, and nothing of that holds ({others})"] = (
            None
        )
    return list(found)


_NONE = object()


def _about(refused: str, fact: Fact) -> bool:
    return str(fact[1]) in refused


def _said(fact: tuple[str, Value]) -> str:
    return f"{fact[0]} = {fact[1]}"


def would_help(
    domain: Domain, world: World, goal: Goal, *, blocked: frozenset[str] = frozenset(), budget: int = 20_000
) -> list[Fact]:
    """Single conditions that, if they had another value, would make a goal possible that is not.

    What is wanted itself is not among them, unless it is all that is missing.
    """
    from roboyard.behavior.goals.planner import Undecided, make_plan

    problem = Problem(domain, world, goal.wants, blocked)
    found = []
    for name, value in sorted(problem.facts, key=str):
        if world.get(name, _NONE) == value or name in goal.wants:
            continue
        try:
            make_plan(domain, {**world, name: value}, goal, blocked=blocked, budget=budget)
        except (Impossible, Undecided):
            continue
        found.append((name, value))
    return found


def why(plan: Plan) -> list[str]:
    """For each step of a plan what it is for."""
    lines = []
    for number, (step, served) in enumerate(zip(plan.steps, plan.serves, strict=True)):
        reasons = []
        for pair in served.items():
            user = next(
                (later.name for later in plan.steps[number + 1 :] if pair in later.needs.items()),
                f"the goal {plan.goal.name}",
            )
            reasons.append(f"{_said(pair)} for {user}")
        lines.append(f"{number + 1}. {step.name}, {step.cost:.4g}: {', '.join(reasons)}")
    return lines


def without(domain: Domain, world: World, plan: Plan, *, blocked: frozenset[str] = frozenset()) -> list[str]:
    """For each step what the goal would cost if it could not be taken."""
    from roboyard.behavior.goals.planner import Undecided, make_plan

    lines = []
    for name in dict.fromkeys(step.name for step in plan.steps):
        try:
            other = make_plan(domain, world, plan.goal, blocked=blocked | {name})
            lines.append(f"without {name}: {other.cost:.4g}, {' · '.join(step.name for step in other.steps)}")
        except (Impossible, Undecided) as error:
            lines.append(f"without {name}: {error.message}")
    return lines
