"""The cheapest plan for a goal, and explanations of plans and of their absence.

A domain, a state and a desired state are grounded to sets of facts: integers in which a bit is a fact. Only actions
that can be of use are grounded, backwards from the desired state. Facts that are never true together are found
forwards, as by the pairs of Graphplan and h2 (Haslum and Geffner 2000), so the backward search has no
unreachable states.
"""

from __future__ import annotations

import re
from collections import deque
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from itertools import product
from pathlib import Path
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from roboyard.errors import InputError, RoboyardError
from roboyard.task_planning.domain import (
    VARIABLE,
    Fact,
    NoPlanError,
    PlanningAction,
    PlanningDomain,
    PlanningGoal,
    Value,
    WorldState,
    is_satisfied,
    substitute,
    substitute_text,
    variable_name,
    variable_names,
)
from roboyard.task_planning.search import GroundActions, max_precondition_cost, search_backward
from roboyard.task_planning.task_file import PathLength, TaskFile, load_tasks
from roboyard.task_planning.transport_costs import no_transport_costs


@dataclass(frozen=True)
class PlanStep:
    """An action with values of its variables.

    Attributes:
        action: The action.
        binding: Values of its variables.
        preconditions, effects: Conditions and values, without variables.
        cost: Its cost.
    """

    action: PlanningAction
    binding: Mapping[str, Any]
    preconditions: Mapping[str, Value]
    effects: Mapping[str, Value]
    cost: float

    @property
    def name(self) -> str:
        """Return the name of the action with the values of its variables."""
        binding_text = ", ".join(f"{name} {value}" for name, value in self.binding.items())
        return f"{self.action.name} ({binding_text})" if binding_text else self.action.name


@dataclass
class GroundedProblem:
    """A domain, a state and a desired state as bits.

    Attributes:
        domain, world, desired_state: The problem.
        facts: All facts, by the index of their bit.
        steps: All ground actions that can be of use.
        inapplicable: Ground actions that do not exist, and the reason.
        blocked: Names of steps that must not be used.
    """

    domain: PlanningDomain
    world: WorldState
    desired_state: Mapping[str, Value]
    blocked: frozenset[str] = frozenset()
    facts: list[Fact] = field(default_factory=list)
    steps: list[PlanStep] = field(default_factory=list)
    inapplicable: dict[str, str] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self._index_of_fact: dict[Fact, int] = {}
        self._facts_of_condition: dict[str, int] = {}
        self._ground()
        for step in self.steps:
            for pair in step.effects.items():
                self._index_fact(pair)
        for name in [name for name in self._facts_of_condition if name in self.world]:
            self._index_fact((name, self.world[name]))
        self.initial_facts = sum(
            1 << n for fact, n in self._index_of_fact.items() if self.world.get(fact[0], _NO_VALUE) == fact[1]
        )
        self.desired_facts = self._mask(self.desired_state)
        self.masks = [
            (self._mask(step.preconditions), self._mask(step.effects), self._changed_facts(step)) for step in self.steps
        ]
        self.compatible_with = self._find_compatible_facts()

    def _index_fact(self, fact: Fact) -> int:
        if fact not in self._index_of_fact:
            number = self._index_of_fact[fact] = len(self.facts)
            self.facts.append(fact)
            self._facts_of_condition[fact[0]] = self._facts_of_condition.get(fact[0], 0) | 1 << number
        return self._index_of_fact[fact]

    def _mask(self, pairs: Mapping[str, Value]) -> int:
        return sum(1 << self._index_fact(pair) for pair in pairs.items())

    def _changed_facts(self, step: PlanStep) -> int:
        """Return the facts that a step makes false: other values of the conditions that it changes."""
        mask = 0
        for name, value in step.effects.items():
            mask |= self._facts_of_condition[name] & ~(1 << self._index_of_fact[name, value])
        return mask

    # -- which actions can be of use -----------------------------------------------------------------------------------
    def _ground(self) -> None:
        known_values = self._known_values()
        templates = [
            (
                action,
                variable_names(action),
                [(_condition_pattern(name), value) for name, value in action.effects.items()],
            )
            for action in self.domain.actions
        ]
        grounded: set[tuple[str, tuple[Any, ...]]] = set()
        queue: deque[Fact] = deque()

        def add_desired(fact: Fact) -> None:
            if fact not in self._index_of_fact:
                self._index_fact(fact)
                queue.append(fact)

        for pair in self.desired_state.items():
            add_desired(pair)
        while queue:
            fact = queue.popleft()
            for action, names, effects in templates:
                for pattern, value in effects:
                    fixed_values = _match_fact(pattern, value, fact)
                    if fixed_values is None or any(
                        v not in action.parameters.get(n, (v,)) for n, v in fixed_values.items()
                    ):
                        continue
                    for binding in _all_bindings(action, names, fixed_values, known_values):
                        key = (action.name, tuple(binding.values()))
                        if key not in grounded:
                            grounded.add(key)
                            step = self._ground_action(action, binding)
                            if step is not None:
                                self.steps.append(step)
                                for pair in step.preconditions.items():
                                    add_desired(pair)

    def _ground_action(self, action: PlanningAction, binding: dict[str, Any]) -> PlanStep | None:
        preconditions, effects = substitute(action.preconditions, binding), substitute(action.effects, binding)
        if all(preconditions.get(name, _NO_VALUE) == value for name, value in effects.items()):
            return None  # it changes nothing
        try:
            step = PlanStep(action, binding, preconditions, effects, action.cost_of(binding))
        except NoPlanError as error:
            self.inapplicable[PlanStep(action, binding, preconditions, effects, 0.0).name] = error.message
            return None
        return None if step.name in self.blocked else step

    def _known_values(self) -> dict[str, list[Value]]:
        """Return the known values of conditions without variables in their names."""
        values_by_condition: dict[str, dict[Value, None]] = {}
        for pairs in (self.world, self.desired_state):
            for name, value in pairs.items():
                values_by_condition.setdefault(name, {})[value] = None
        for name, values in self.domain.value_domains.items():
            values_by_condition.setdefault(name, {}).update(dict.fromkeys(values))
        for action in self.domain.actions:
            for pairs in (action.preconditions, action.effects):
                for name, value in pairs.items():
                    name_in_value = variable_name(value)
                    values = (value,) if name_in_value is None else action.parameters.get(name_in_value, ())
                    values_by_condition.setdefault(name, {}).update(dict.fromkeys(values))
        return {name: list(values) for name, values in values_by_condition.items()}

    # -- what can hold together ----------------------------------------------------------------------------------------
    def _find_compatible_facts(self) -> list[int]:
        """Return for each fact those that may be true at the same time, itself included; none if unreachable."""
        compatible_with = [0] * len(self.facts)
        reachable = self.initial_facts
        for bit in bits(reachable):
            compatible_with[bit] = reachable
        changed = True
        while changed:
            changed = False
            for preconditions, effects, changed_facts in self.masks:
                compatible = reachable
                for bit in bits(preconditions):
                    compatible &= compatible_with[bit]
                if preconditions & ~compatible:
                    continue  # the preconditions are never true together
                after = effects | compatible & ~changed_facts
                for bit in bits(effects):
                    new = after & ~compatible_with[bit]
                    if new:
                        changed = True
                        compatible_with[bit] |= new
                        for other in bits(new):
                            compatible_with[other] |= 1 << bit
                reachable |= effects
        return compatible_with

    def compatible_facts(self, mask: int) -> int:
        """Return the facts that may be true together with each of some facts."""
        found = (1 << len(self.facts)) - 1
        for bit in bits(mask):
            found &= self.compatible_with[bit]
        return found

    # -- for the search ------------------------------------------------------------------------------------------------
    def fact_row(self, mask: int) -> NDArray[np.int64]:
        """Return for each condition the fact of a set that gives its value, or -1."""
        found = np.full(len(self._facts_of_condition), -1, np.int64)
        order = {name: number for number, name in enumerate(self._facts_of_condition)}
        for bit in bits(mask):
            found[order[self.facts[bit][0]]] = bit
        return found

    def ground_actions(self) -> GroundActions:
        """Return the useful actions as arrays."""
        count = len(self.facts)
        all_facts = (1 << count) - 1
        achievers: list[list[int]] = [[] for _ in self.facts]
        for number, (preconditions, effects, _) in enumerate(self.masks):
            if self.is_consistent(preconditions):
                for bit in bits(effects):
                    achievers[bit].append(number)
        order = {name: number for number, name in enumerate(self._facts_of_condition)}
        n_words = -(-count // 64)
        excluded_facts = b"".join(
            (changed_facts | ~self.compatible_facts(preconditions) & all_facts & ~effects).to_bytes(
                8 * n_words, "little"
            )
            for preconditions, effects, changed_facts in self.masks
        )
        return GroundActions(
            _index_table([list(bits(preconditions)) for preconditions, _, _ in self.masks]),
            _index_table([list(bits(effects)) for _, effects, _ in self.masks]),
            np.array([step.cost for step in self.steps], np.float64),
            np.concatenate(([0], np.cumsum([len(actions) for actions in achievers], dtype=np.int64))),
            np.array([number for actions in achievers for number in actions], np.int64),
            np.array([order[name] for name, _ in self.facts], np.int64),
            np.frombuffer(excluded_facts, np.uint64).reshape(-1, n_words),
            np.array([self.initial_facts >> bit & 1 for bit in range(count)], np.bool_),
        )  # fmt: skip

    def is_consistent(self, mask: int) -> bool:
        """Return whether each two of the facts may be true together."""
        return all(not mask & ~self.compatible_with[bit] for bit in bits(mask))


_NO_VALUE = object()


def _index_table(rows: list[list[int]]) -> NDArray[np.int64]:
    """Return lists of numbers as rows of an array, padded with -1."""
    found = np.full((len(rows), max(map(len, rows), default=0)), -1, np.int64)
    for row, numbers in zip(found, rows, strict=True):
        row[: len(numbers)] = numbers
    return found


def bits(mask: int) -> Iterator[int]:
    """Yield the indices of the set bits, in order."""
    while mask:
        low = mask & -mask
        yield low.bit_length() - 1
        mask ^= low


def _condition_pattern(name: str) -> str | re.Pattern[str]:
    if not VARIABLE.search(name):
        return name
    parts = VARIABLE.split(name)
    text = "".join(f"(?P<{part}>.+)" if index % 2 else re.escape(part) for index, part in enumerate(parts))
    return re.compile(text)


def _match_fact(pattern: str | re.Pattern[str], value: Value, fact: Fact) -> dict[str, Value] | None:
    """Return the values of variables with which an effect is a fact; None without any."""
    name, desired_value = fact
    bound_values: dict[str, Value] = {}
    if isinstance(pattern, str):
        if pattern != name:
            return None
    else:
        found = pattern.fullmatch(name)
        if found is None:
            return None
        bound_values.update(found.groupdict())
    name_in_value = variable_name(value)
    if name_in_value is None:
        return bound_values if value == desired_value else None
    return (
        None
        if bound_values.get(name_in_value, desired_value) != desired_value
        else bound_values | {name_in_value: desired_value}
    )


def _all_bindings(
    action: PlanningAction,
    names: tuple[str, ...],
    fixed_values: Mapping[str, Value],
    known_values: Mapping[str, list[Value]],
) -> Iterator[dict[str, Value]]:
    """Yield all values of the variables of an action, where some are given."""
    candidates = []
    for name in names:
        if name in fixed_values:
            candidates.append([fixed_values[name]])
        elif name in action.parameters:
            candidates.append(list(action.parameters[name]))
        else:
            conditions = [
                key
                for pairs in (action.preconditions, action.effects)
                for key, v in pairs.items()
                if variable_name(v) == name
            ]
            found = dict.fromkeys(
                value for key in conditions for value in known_values.get(substitute_text(key, fixed_values), ())
            )
            candidates.append(list(found))
    for values in product(*candidates):
        yield dict(zip(names, values, strict=True))


MAX_EXPANSIONS: Final = 200_000
"""Largest number of expanded states of a search."""


class PlanningBudgetExceededError(RoboyardError):
    """The search exceeded its budget without a plan, and without the proof that there is none."""


@dataclass(frozen=True)
class TaskPlan:
    """The steps that reach a goal.

    Attributes:
        goal: The goal.
        steps: The actions, in order.
        purposes: For each step the effects that a later step or the goal requires.
        cost: Sum of the steps.
        expanded_nodes: Number of nodes that the search has expanded.
    """

    goal: PlanningGoal
    steps: tuple[PlanStep, ...]
    purposes: tuple[dict[str, Value], ...]
    cost: float
    expanded_nodes: int = 0

    def world_states(self, world: WorldState) -> list[dict[str, Value]]:
        """Return the state of the world before each step and after the last one.

        Raises:
            NoPlanError: A precondition of a step is not satisfied; the message names it.
        """
        current = dict(world)
        found = [dict(current)]
        for number, step in enumerate(self.steps, 1):
            for name, value in step.preconditions.items():
                if not is_satisfied({name: value}, current):
                    raise NoPlanError(
                        f"step {number}, {step.name}, requires {name} = {value}, but it is {current.get(name)}"
                    )
            current.update(step.effects)
            found.append(dict(current))
        return found


def make_plan(
    domain: PlanningDomain,
    world: WorldState,
    goal: PlanningGoal,
    *,
    blocked: frozenset[str] = frozenset(),
    max_expansions: int = MAX_EXPANSIONS,
) -> TaskPlan:
    """Return the cheapest plan.

    Args:
        domain: What the robot can do.
        world: Present values of conditions.
        goal: The goal.
        blocked: Names of steps that must not be used.
        max_expansions: Largest number of expanded states.

    Raises:
        NoPlanError: There is none; the message gives the reason.
        PlanningBudgetExceededError: The budget is exceeded.
    """
    problem = GroundedProblem(domain, world, goal.desired_state, blocked)
    if not problem.is_consistent(problem.desired_facts):
        raise NoPlanError(f"{goal.name} is impossible, because {explain_infeasibility(problem)}")
    actions = problem.ground_actions()
    transport = (
        no_transport_costs(len(problem.facts)) if domain.heuristic is None else domain.heuristic(world, problem.facts)
    )
    plan_actions, desired_after, n_expanded, outcome = search_backward(
        actions, max_precondition_cost(actions), transport, problem.fact_row(problem.desired_facts), max_expansions
    )
    if outcome < 0:
        raise PlanningBudgetExceededError(
            f"no plan was found among {max_expansions} states", valid="a larger budget, or fewer desired values"
        )
    if not outcome:
        raise NoPlanError(f"{goal.name} is impossible, because {explain_infeasibility(problem)}")
    steps = tuple(problem.steps[action] for action in plan_actions)
    purposes = tuple(
        {
            name: value
            for name, value in (problem.facts[fact] for fact in desired_facts if fact >= 0)
            if step.effects.get(name, _NO_EFFECT) == value
        }
        for step, desired_facts in zip(steps, desired_after.tolist(), strict=True)
    )
    return TaskPlan(goal, steps, purposes, sum(step.cost for step in steps), n_expanded)


_NO_EFFECT = object()


def plan(
    tasks: TaskFile | str | Path,
    goal: str | Mapping[str, Value],
    initial_state: Mapping[str, Value] | None = None,
    *,
    path_length: PathLength | None = None,
) -> TaskPlan:
    """Return the cheapest plan for a goal of a task file.

    Args:
        tasks: A task file, or its path.
        goal: Name of a goal of the file, or the desired values of conditions.
        initial_state: Conditions that differ from the initial state of the file.
        path_length: Length of the path between two places [m]; by default the straight-line distance.

    Raises:
        NoPlanError: There is no plan; the message gives the reason.
        PlanningBudgetExceededError: The search exceeds its budget.
        InputError: The file, the goal or the state is not valid.
    """
    if isinstance(tasks, str | Path):
        tasks = load_tasks(tasks)
    if not isinstance(tasks, TaskFile):
        raise InputError(
            f"tasks: an object of type {type(tasks).__name__} is no task file", valid="a path, or a TaskFile"
        )
    for name, value in (("goal", goal), ("initial_state", initial_state)):
        if not isinstance(value, Mapping) and not (isinstance(value, str) if name == "goal" else value is None):
            valid = "values of conditions, as {'door': 'open'}"
            raise InputError(
                f"{name}: an object of type {type(value).__name__} is no {'goal' if name == 'goal' else 'state'}",
                valid=f"the name of a goal, or {valid}" if name == "goal" else valid,
            )
    desired = tasks.goal(goal) if isinstance(goal, str) else PlanningGoal("the goal", dict(goal))
    if not desired.desired_state:
        raise InputError("goal: the desired state is empty", valid="values of conditions, as {'door': 'open'}")
    state = {**tasks.initial_world_state(), **(initial_state or {})}
    return make_plan(tasks.domain(path_length), state, desired)


_MAX_REASONS = 3
"""Largest number of reasons that an explanation of one fact gives."""


def explain_infeasibility(problem: GroundedProblem) -> str:
    """Explain why there is no plan, in words that follow "because"."""
    unreachable = [problem.facts[bit] for bit in bits(problem.desired_facts) if not problem.compatible_with[bit]]
    if unreachable:
        roots: dict[str, None] = {}
        for fact in unreachable:
            roots.update(dict.fromkeys(_root_causes(problem, fact)))
        return "; ".join(roots)
    for bit in bits(problem.desired_facts):
        incompatible = problem.desired_facts & ~problem.compatible_with[bit]
        if incompatible:
            other = problem.facts[next(bits(incompatible))]
            return f"{_fact_text(problem.facts[bit])} and {_fact_text(other)} never hold together"
    desired_text = " and ".join(_fact_text(pair) for pair in problem.desired_state.items())
    return f"no order of the actions brings about {desired_text} together"


def _root_causes(problem: GroundedProblem, fact: Fact) -> list[str]:
    """Return the reasons why a fact is unreachable: facts that no action can make true."""
    found: dict[str, None] = {}
    visited: set[Fact] = set()
    stack: list[tuple[Fact, str]] = [(fact, "")]
    while stack:
        current, needed_by = stack.pop()
        if current in visited:
            continue
        visited.add(current)
        achievers = [
            (step, op)
            for step, op in zip(problem.steps, problem.masks, strict=True)
            if step.effects.get(current[0], _NOT_SET) == current[1] and current[0] in step.effects
        ]
        inapplicable = [
            f"{name}: {reason}" for name, reason in problem.inapplicable.items() if _mentions_value(name, current)
        ]
        if not achievers:
            is_now = problem.world.get(current[0], "not known")
            blocked = "" if not problem.blocked else " that may be taken"
            words = f"no action{blocked} makes {_fact_text(current)}, which is {is_now}{needed_by}"
            found[words + (f" ({'; '.join(inapplicable[:_MAX_REASONS])})" if inapplicable else "")] = None
            continue
        has_missing = False
        for step, (preconditions, _, _) in achievers:
            missing = [problem.facts[bit] for bit in bits(preconditions) if not problem.compatible_with[bit]]
            has_missing = has_missing or bool(missing)
            stack.extend((pair, f", and {step.name} needs it") for pair in missing)
        if not has_missing:
            step, (preconditions, _, _) = achievers[0]
            words = " and ".join(_fact_text(problem.facts[bit]) for bit in bits(preconditions))
            found[f"{words} never hold together, and {step.name} needs them"] = None
    if not found:  # facts whose achievers require each other
        others = ", ".join(sorted(_fact_text(pair) for pair in visited if pair != fact)[:_MAX_REASONS])
        found[
            f"{_fact_text(fact)} is brought about only by way of what needs it, and nothing of that holds ({others})"
        ] = None
    return list(found)


_NOT_SET = object()


def _mentions_value(step_name: str, fact: Fact) -> bool:
    return str(fact[1]) in step_name


def _fact_text(fact: tuple[str, Value]) -> str:
    return f"{fact[0]} = {fact[1]}"


def helpful_changes(
    domain: PlanningDomain,
    world: WorldState,
    goal: PlanningGoal,
    *,
    blocked: frozenset[str] = frozenset(),
    max_expansions: int = 20_000,
) -> list[Fact]:
    """Return single conditions whose change would make an infeasible goal feasible.

    Desired conditions themselves are not among them, unless one is all that is missing.
    """
    problem = GroundedProblem(domain, world, goal.desired_state, blocked)
    found = []
    for name, value in sorted(problem.facts, key=str):
        if world.get(name, _NOT_SET) == value or name in goal.desired_state:
            continue
        try:
            make_plan(domain, {**world, name: value}, goal, blocked=blocked, max_expansions=max_expansions)
        except (NoPlanError, PlanningBudgetExceededError):
            continue
        found.append((name, value))
    return found


def explain_steps(plan: TaskPlan) -> list[str]:
    """Return the purpose of each step of a plan."""
    lines = []
    for number, (step, purpose) in enumerate(zip(plan.steps, plan.purposes, strict=True)):
        reasons = []
        for pair in purpose.items():
            user = next(
                (later.name for later in plan.steps[number + 1 :] if pair in later.preconditions.items()),
                f"the goal {plan.goal.name}",
            )
            reasons.append(f"{_fact_text(pair)} for {user}")
        lines.append(f"{number + 1}. {step.name}, {step.cost:.4g}: {', '.join(reasons)}")
    return lines


def alternatives_without_steps(
    domain: PlanningDomain, world: WorldState, plan: TaskPlan, *, blocked: frozenset[str] = frozenset()
) -> list[str]:
    """Return the cost and the steps of the plan without each of the steps."""
    lines = []
    for name in dict.fromkeys(step.name for step in plan.steps):
        try:
            other = make_plan(domain, world, plan.goal, blocked=blocked | {name})
            lines.append(f"without {name}: {other.cost:.4g}, {' · '.join(step.name for step in other.steps)}")
        except (NoPlanError, PlanningBudgetExceededError) as error:
            lines.append(f"without {name}: {error.message}")
    return lines
