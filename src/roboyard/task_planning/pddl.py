"""PDDL: written for other planners, read from their files, and plans of engines of unified-planning (an extra, `pip
install 'roboyard[planning]'`).

STRIPS with types, negative preconditions and action costs is read and written. Written texts have no variables: a
fact is a predicate, and each step that can be of use is an action.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass
from itertools import product
from pathlib import Path
from typing import Any, Final

from roboyard.errors import InputError, MissingExtraError
from roboyard.task_planning.domain import (
    NoPlanError,
    PlanningAction,
    PlanningDomain,
    PlanningGoal,
    Value,
    WorldState,
    is_satisfied,
    substitute,
)
from roboyard.task_planning.planner import GroundedProblem, PlanStep, TaskPlan, bits

_TOKEN: Final = re.compile(r"[()]|[^\s()]+")
_COST: Final = "total-cost"
_ACTION_SECTIONS: Final = (":parameters", ":precondition", ":effect")
_RESERVED_WORDS: Final = ("and", "or", "not", "forall", "exists", "imply", "when", "=")
_SUPPORTED_REQUIREMENTS: Final = (":strips", ":typing", ":negative-preconditions", ":action-costs")

PddlExpression = str | list[Any]


@dataclass(frozen=True)
class PddlTexts:
    """A domain and a problem as texts, and the step of each action.

    Attributes:
        domain, problem: PDDL.
        steps: Names of steps, as in plans, by names of actions.
    """

    domain: str
    problem: str
    steps: Mapping[str, str]


def write_pddl(
    domain: PlanningDomain, world: WorldState, goal: PlanningGoal, *, costs: bool = True, cost_scale: int | None = None
) -> PddlTexts:  # fmt: skip
    """Write a domain and a problem for a goal, without variables.

    Args:
        domain, world, goal: As `make_plan` takes them.
        costs: Write what steps cost, for planners that know costs.
        cost_scale: Write costs so many times as large, as whole numbers, for planners that know no others.
    """
    problem = GroundedProblem(domain, world, goal.desired_state)
    facts = _unique_names([f"{name} {value}" for name, value in problem.facts])
    actions = _unique_names([step.name for step in problem.steps])
    blocks = []
    for name, step, (preconditions, adds, changed_facts) in zip(actions, problem.steps, problem.masks, strict=True):
        deleted = changed_facts & problem.compatible_facts(
            preconditions
        )  # what never holds before needs no end: planners take it for a condition
        effects = [f"({facts[n]})" for n in bits(adds)] + [f"(not ({facts[n]}))" for n in bits(deleted)]
        cost_text = f"{step.cost:.9g}" if cost_scale is None else str(round(step.cost * cost_scale))
        effects += [f"(increase ({_COST}) {cost_text})"] if costs else []
        precondition_text = " ".join(f"({facts[n]})" for n in bits(preconditions))
        blocks.append(
            f"  (:action {name}\n    :parameters ()\n    :precondition (and {precondition_text})\n"
            f"    :effect (and {' '.join(effects)}))"
        )
    desired_text = " ".join(f"({facts[n]})" for n in bits(problem.desired_facts))
    initial_text = " ".join(f"({facts[n]})" for n in bits(problem.initial_facts))
    head = ["(define (domain tasks)", f"  (:requirements :strips{' :action-costs' if costs else ''})"]
    head += [f"  (:predicates {' '.join(f'({name})' for name in facts)})"]
    head += [f"  (:functions ({_COST}) - number)"] if costs else []
    zero, metric = (f" (= ({_COST}) 0)", f"\n  (:metric minimize ({_COST}))") if costs else ("", "")
    return PddlTexts(
        "\n".join([*head, *blocks, ")", ""]),
        f"(define (problem one)\n  (:domain tasks)\n  (:init {initial_text}{zero})\n  (:goal (and "
        f"{desired_text})){metric}\n)\n",
        dict(zip(actions, (step.name for step in problem.steps), strict=True)),
    )


def _unique_names(texts: list[str]) -> list[str]:
    """Return different names that PDDL allows."""
    found: dict[str, None] = {}
    for text in texts:
        plain = "f-" + re.sub(r"[^a-z0-9]+", "-", text.lower()).strip("-")
        number, name = 1, plain
        while name in found:
            number += 1
            name = f"{plain}-{number}"
        found[name] = None
    return list(found)


def read_pddl(domain: str, problem: str) -> tuple[PlanningDomain, dict[str, Value], PlanningGoal]:
    """Read a domain, a state and a goal from PDDL; an atom is a condition that is true or false.

    Args:
        domain, problem: The texts.

    Raises:
        InputError: they are no PDDL, or ask for what is not known here; says what.
    """
    domain_sections, problem_sections = (
        _parse_definition(domain, "the domain"),
        _parse_definition(problem, "the problem"),
    )
    for requirement in _section(domain_sections, ":requirements"):
        if requirement not in _SUPPORTED_REQUIREMENTS:
            raise InputError(
                f"{requirement} is not known", location="the domain", valid=", ".join(_SUPPORTED_REQUIREMENTS)
            )
    parents = dict(_parse_typed_list(_section(domain_sections, ":types")))
    object_types = dict(
        _parse_typed_list(_section(domain_sections, ":constants"))
        + _parse_typed_list(_section(problem_sections, ":objects"))
    )
    world: dict[str, Value] = {}
    function_values: dict[str, float] = {}
    for fact in _section(problem_sections, ":init"):
        if not isinstance(fact, list) or not fact:
            raise InputError(
                f"{_expression_text(fact)} is no fact", location="the problem, :init", valid="(at truck home)"
            )
        if fact[0] == "=":
            function_values.update([_initial_function_value(fact)])
        else:
            world[_expression_text(fact)[1:-1]] = True
    goal_section = _section(problem_sections, ":goal")
    if len(goal_section) != 1 or not isinstance(goal_section[0], list):
        raise InputError("there is no goal", location="the problem", valid="(:goal (and (at truck home)))")
    actions = [
        _parse_action(one[1:], object_types, parents, function_values) for one in domain_sections if one[0] == ":action"
    ]
    goal = PlanningGoal("goal", _parse_literals(goal_section[0], {}, "the goal"))
    planning_domain = PlanningDomain(tuple(actions))
    for name in {
        name
        for desired_state in (goal.desired_state, *_negative_preconditions(actions, object_types))
        for name, value in desired_state.items()
        if not value
    }:
        world.setdefault(name, False)  # what is not said does not hold
    return planning_domain, world, goal


def load_pddl(domain: str | Path, problem: str | Path) -> tuple[PlanningDomain, dict[str, Value], PlanningGoal]:
    """Load a domain, a state and a goal from two files.

    Raises:
        InputError: see `read_pddl`; or a file cannot be read.
    """
    texts = []
    for path in (domain, problem):
        try:
            texts.append(Path(path).read_text(encoding="utf-8"))
        except (OSError, UnicodeDecodeError) as error:
            reason = error.strerror if isinstance(error, OSError) else "it is no text"
            raise InputError(f"cannot be read: {reason}", location=str(path), valid="a file in PDDL") from None
    try:
        return read_pddl(*texts)
    except InputError as error:
        raise InputError(error.message, location=f"{domain}, {problem}: {error.location}", valid=error.valid) from None


def _negative_preconditions(actions: list[PlanningAction], object_types: Mapping[str, str]) -> list[dict[str, Value]]:
    """Return the negative preconditions of actions for all values of their variables."""
    found = []
    for action in actions:
        negative = {name: value for name, value in action.preconditions.items() if not value}
        if negative:
            values = product(*action.parameters.values())
            found += [substitute(negative, dict(zip(action.parameters, one, strict=True))) for one in values]
    return found


def _parse_definition(text: str, location: str) -> list[Any]:
    """Parse the parts of a ``(define …)``."""
    stack: list[list[Any]] = [[]]
    for word in _TOKEN.findall(re.sub(r";[^\n]*", "", text).lower()):
        if word == "(":
            stack.append([])
        elif word == ")":
            if len(stack) == 1:
                raise InputError("there is a ) without (", location=location)
            stack[-2].append(stack.pop())
        else:
            stack[-1].append(word)
    if len(stack) > 1 or len(stack[0]) != 1 or stack[0][0][:1] != ["define"]:
        raise InputError(
            "this is no PDDL", location=location, valid="one (define …), with as many closing as opening parentheses"
        )
    return [part for part in stack[0][0][1:] if isinstance(part, list) and part]


def _section(parts: list[Any], name: str) -> list[Any]:
    return next((part[1:] for part in parts if part[0] == name), [])


def _parse_typed_list(words: list[str]) -> list[tuple[str, str]]:
    """Parse ``a b - c`` as pairs; a name without a type is an object."""
    found: list[tuple[str, str]] = []
    untyped: list[str] = []
    remaining = iter(words)
    for word in remaining:
        if not isinstance(word, str):
            raise InputError(f"{_expression_text(word)} is no name", valid="names, and their types after a -")
        if word == "-":
            kind = next(remaining, "object")
            if not isinstance(kind, str):
                raise InputError(f"{_expression_text(kind)} is no type", valid="the name of a type")
            found += [(one, kind) for one in untyped]
            untyped = []
        else:
            untyped.append(word)
    return found + [(one, "object") for one in untyped]


def _initial_function_value(fact: list[Any]) -> tuple[str, float]:
    """Parse the initial value of a function: ``(= (far a b) 3)``."""
    if len(fact) == 3 and isinstance(fact[1], list):
        with suppress(TypeError, ValueError):
            return _expression_text(fact[1])[1:-1], float(fact[2])
    raise InputError(f"{_expression_text(fact)} is no value", location="the problem, :init", valid="(= (far a b) 3)")


def _parse_action(
    parts: list[Any], object_types: Mapping[str, str], parents: Mapping[str, str], function_values: Mapping[str, float]
) -> PlanningAction:
    if not parts or not isinstance(parts[0], str):
        raise InputError("an action without a name", location="the domain", valid="(:action drive …)")
    name, location = parts[0], f"action {parts[0]}"
    keys = [_expression_text(one) for one in parts[1::2]]
    sections = dict(zip(keys, parts[2::2], strict=False))
    if len(sections) != len(keys) or not all(
        key in _ACTION_SECTIONS and isinstance(part, list) for key, part in sections.items()
    ):
        raise InputError(
            f"{' '.join(keys)} do not make an action",
            location=location,
            valid=f"{', '.join(_ACTION_SECTIONS)}, each (…)",
        )

    def is_a(kind: str, desired_type: str) -> bool:
        visited: set[str] = set()
        while kind != desired_type and kind in parents and kind not in visited:
            visited.add(kind)
            kind = parents[kind]
        return kind == desired_type or desired_type == "object"

    typed_parameters = _parse_typed_list(sections.get(":parameters", []))
    parameters = {
        one.removeprefix("?"): tuple(
            object_name for object_name, kind in object_types.items() if is_a(kind, desired_type)
        )
        for one, desired_type in typed_parameters
    }
    variables = {one: f"${one.removeprefix('?')}" for one, _ in typed_parameters}
    effect = sections.get(":effect", [])
    effects = effect[1:] if effect[:1] == ["and"] else [effect]
    if not all(isinstance(one, list) for one in effects):
        raise InputError(
            f"{_expression_text(effect)} is no effect", location=location, valid="atoms, (not …), (increase …), (and …)"
        )
    increases = [one for one in effects if one[:1] == ["increase"]]
    logical_effects = ["and", *(one for one in effects if one[:1] != ["increase"])]
    preconditions = _parse_literals(sections.get(":precondition", ["and"]), variables, location)
    return PlanningAction(
        name,
        _parse_literals(logical_effects, variables, location),
        preconditions,
        parameters,
        _parse_cost(increases, variables, function_values),
    )


def _parse_cost(increases: list[list[Any]], variables: Mapping[str, str], function_values: Mapping[str, float]) -> Any:
    """Parse a cost: a number, or a function of the values of variables."""
    if not increases:
        return 1.0
    expression = increases[0][2] if len(increases[0]) == 3 else None
    if isinstance(expression, str):
        with suppress(ValueError):
            return float(expression)
    if not isinstance(expression, list) or not all(isinstance(word, str) for word in expression):
        raise InputError(
            f"{_expression_text(increases[0])} is no cost", valid=f"(increase ({_COST}) …): a number, or a function"
        )
    words = [variables.get(word, word) for word in expression]

    def cost(binding: Mapping[str, Any]) -> float:
        key = " ".join(str(binding[word[1:]]) if word[:1] == "$" else word for word in words)
        if key not in function_values:
            raise NoPlanError(f"({key}) has no value")
        return function_values[key]

    return cost


def _parse_literals(expression: list[Any], variables: Mapping[str, str], location: str) -> dict[str, Value]:
    """Parse literals: atoms with true or false; an effect that is both is true."""
    found: dict[str, Value] = {}
    for one in expression[1:] if expression[:1] == ["and"] else [expression] if expression else []:
        inner, value = (one[1], False) if one[:1] == ["not"] and len(one) == 2 else (one, True)
        if (
            not inner
            or not isinstance(inner, list)
            or not all(isinstance(word, str) for word in inner)
            or inner[0] in _RESERVED_WORDS
        ):
            raise InputError(
                f"{_expression_text(one)} is not known", location=location, valid="atoms, (not …), (and …)"
            )
        name = " ".join(variables.get(word, word) for word in inner)
        found[name] = value or bool(found.get(name, False))
    return found


def _expression_text(expression: PddlExpression) -> str:
    return expression if isinstance(expression, str) else f"({' '.join(map(_expression_text, expression))})"


OPTIMAL_ENGINE: Final = "fast-downward-opt"
"""An engine whose plans are the cheapest."""
INTEGER_COST_SCALE: Final = 1000
"""Factor of the costs in PDDL, since engines expect integers."""
_ENGINE_LOCATION: Final = "another planner"


def solve_with(domain: PlanningDomain, world: WorldState, goal: PlanningGoal, engine: str = OPTIMAL_ENGINE) -> TaskPlan:
    """Return a plan of one of the engines of unified-planning; costs are rounded to 0.001 for each step.

    Args:
        domain, world, goal: As `make_plan` takes them.
        engine: Its name, as unified-planning has it.

    Raises:
        NoPlanError: The engine reports that there is no plan.
        InputError: unified-planning or the engine is not installed, the engine gave up, or its plan is none.
    """
    if goal.is_satisfied(world):
        return TaskPlan(goal, (), (), 0.0)
    pddl = write_pddl(domain, world, goal, cost_scale=INTEGER_COST_SCALE)
    # unified-planning cannot read a domain without actions
    names = _run_engine(pddl.domain, pddl.problem, engine) if pddl.steps else None
    if names is None:
        raise NoPlanError(f"{goal.name} is impossible according to {engine}")
    steps_by_name = {step.name: step for step in GroundedProblem(domain, world, goal.desired_state).steps}
    steps = tuple(steps_by_name[pddl.steps[name]] for name in names)
    plan = TaskPlan(goal, steps, _find_purposes(steps, goal), sum(step.cost for step in steps))
    try:
        end = plan.world_states(world)[-1]
    except NoPlanError as error:
        raise InputError(f"{engine} returned an invalid plan: {error.message}", location=_ENGINE_LOCATION) from None
    if not goal.is_satisfied(end):
        raise InputError(f"{engine} returned a plan that does not reach the goal", location=_ENGINE_LOCATION)
    return plan


def _run_engine(domain: str, problem: str, engine: str) -> list[str] | None:
    """Return the names of the actions of the engine's plan; None if there is no plan."""
    try:
        from unified_planning.engines import PlanGenerationResultStatus as Status
        from unified_planning.environment import get_environment
        from unified_planning.exceptions import UPException
        from unified_planning.io import PDDLReader
    except ImportError:
        raise MissingExtraError(f"the planner {engine!r}", "planning", location=_ENGINE_LOCATION) from None
    environment = get_environment()
    environment.credits_stream = None
    if engine not in environment.factory.engines:
        raise InputError(
            f"no engine {engine!r}", location=_ENGINE_LOCATION, valid=", ".join(environment.factory.engines)
        )
    try:
        task = PDDLReader(environment).parse_problem_string(domain, problem)
        with environment.factory.OneshotPlanner(name=engine) as planner:
            result: Any = planner.solve(task)
    except UPException as error:
        raise InputError(f"{engine} cannot do it: {error}", location=_ENGINE_LOCATION, valid=OPTIMAL_ENGINE) from None
    if result.plan is not None:
        return [str(one.action.name) for one in result.plan.actions]
    if result.status in (Status.UNSOLVABLE_PROVEN, Status.UNSOLVABLE_INCOMPLETELY):
        return None
    raise InputError(
        f"{engine} gave up: {result.status.name.lower()}", location=_ENGINE_LOCATION, valid="another engine"
    )


def _find_purposes(steps: tuple[PlanStep, ...], goal: PlanningGoal) -> tuple[dict[str, Value], ...]:
    """Return for each step the effects that a later step or the goal requires."""
    desired: dict[str, Value] = dict(goal.desired_state)
    found: list[dict[str, Value]] = []
    for step in reversed(steps):
        purpose = {
            name: value
            for name, value in step.effects.items()
            if name in desired and is_satisfied({name: value}, desired)
        }
        found.append(purpose)
        desired = {name: value for name, value in desired.items() if name not in purpose} | dict(step.preconditions)
    return tuple(reversed(found))
