"""Plans for goals: valid in an independent simulation, optimal, and missing only where the goal is impossible."""

from __future__ import annotations

import heapq
from collections.abc import Mapping
from dataclasses import replace
from itertools import product
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.optimize import linear_sum_assignment

from roboyard.errors import InputError
from roboyard.task_planning import (
    EMPTY_HAND,
    NoPlanError,
    PlanningAction,
    PlanningDomain,
    PlanningGoal,
    TaskPlan,
    TransportModel,
    alternatives_without_steps,
    explain_steps,
    helpful_changes,
    make_plan,
)
from roboyard.task_planning.transport import transport_costs
from roboyard.task_planning.transport_costs import (
    allocate_workspace,
    assignment_cost,
    no_transport_costs,
    transport_lower_bound,
)

State = tuple[tuple[str, Any], ...]
Ground = tuple[dict[str, Any], dict[str, Any], float]


def optimal_cost(steps: list[Ground], world: Mapping[str, Any], desired: Mapping[str, Any]) -> float | None:
    """The cost of reaching ``wants``, by forward search over all states; None: it is impossible."""
    start: State = tuple(sorted(world.items()))
    best, heap = {start: 0.0}, [(0.0, start)]
    while heap:
        cost, state = heapq.heappop(heap)
        if cost > best[state]:
            continue
        current = dict(state)
        if all(current.get(name) == value for name, value in desired.items()):
            return cost
        for needs, effects, step_cost in steps:
            if all(current.get(name) == value for name, value in needs.items()):
                after = tuple(sorted({**current, **effects}.items()))
                if cost + step_cost < best.get(after, float("inf")) - 1e-12:
                    best[after] = cost + step_cost
                    heapq.heappush(heap, (cost + step_cost, after))
    return None


def apply_plan(plan: TaskPlan, world: Mapping[str, Any]) -> dict[str, Any]:
    """The world after a plan; fails if a step is not possible."""
    current = dict(world)
    for step in plan.steps:
        for name, value in step.preconditions.items():
            assert current.get(name) == value, f"{step.name} needs {name} = {value}"
        current.update(step.effects)
    return current


def transport_problem(count: int, places: int, seed: int) -> tuple[TransportModel, dict[str, Any], PlanningGoal]:
    """Objects at random places, and a goal that assigns each another place."""
    rng = np.random.default_rng(seed)
    xy = rng.uniform(0.0, 10.0, (places, 2))
    names = tuple(f"p{index}" for index in range(places))
    objects = tuple(f"t{index}" for index in range(count))
    distances = {(a, b): float(np.hypot(*(xy[int(a[1:])] - xy[int(b[1:])]))) for a in names for b in names}
    model = TransportModel(names, objects, lambda a, b: distances[a, b], handling_cost=0.7)
    start, end = rng.permutation(places), rng.permutation(places)
    world: dict[str, Any] = {"robot": "p0", "hand": EMPTY_HAND} | {f"on {name}": EMPTY_HAND for name in names}
    world |= {f"on {names[start[index]]}": item for index, item in enumerate(objects)}
    return model, world, PlanningGoal("tidy", {f"on {names[end[index]]}": item for index, item in enumerate(objects)})


def ground_actions(model: TransportModel) -> list[Ground]:
    """All ground actions of the carrying domain, written independently."""
    steps: list[Ground] = []
    for a, b in product(model.places, repeat=2):
        if a != b:
            steps.append(({"robot": a}, {"robot": b}, model.distance(a, b)))
    for item, place in product(model.objects, model.places):
        full, empty = {"hand": item, f"on {place}": EMPTY_HAND}, {"hand": EMPTY_HAND, f"on {place}": item}
        steps += [({"robot": place, **full}, empty, 0.7), ({"robot": place, **empty}, full, 0.7)]
    return steps


@pytest.mark.parametrize("seed", range(12))
def test_transport_plans_are_optimal_by_forward_search(seed: int) -> None:
    model, world, goal = transport_problem(3, 4, seed)
    plan = make_plan(model.domain(), world, goal)
    after = apply_plan(plan, world)
    assert all(after[name] == value for name, value in goal.desired_state.items())
    assert plan.cost == pytest.approx(sum(step.cost for step in plan.steps))
    assert plan.cost == pytest.approx(optimal_cost(ground_actions(model), world, goal.desired_state))


@pytest.mark.parametrize("seed", range(6))
def test_plans_cost_the_same_without_the_lower_bound(seed: int) -> None:
    model, world, goal = transport_problem(4, 6, seed)
    domain = model.domain()
    plan, other = make_plan(domain, world, goal), make_plan(replace(domain, heuristic=None), world, goal)
    assert plan.cost == pytest.approx(other.cost)
    assert plan.expanded_nodes <= other.expanded_nodes


@pytest.mark.parametrize("seed", range(6))
def test_lower_bound_never_exceeds_the_optimal_cost(seed: int) -> None:
    model, world, goal = transport_problem(3, 4, seed)
    plan = make_plan(model.domain(), world, goal)
    assert lower_bound(model, world, goal.desired_state) <= plan.cost + 1e-9
    left = plan.cost
    for current, step in zip(plan.world_states(world), plan.steps, strict=False):
        assert lower_bound(model, current, goal.desired_state) <= left + 1e-9
        left -= step.cost
    for end in ({"robot": "p1"}, {"robot": "p2", "hand": "t0"}, {"robot": "p3", "on p1": "t1"}):
        minimum = optimal_cost(ground_actions(model), world, end)
        assert minimum is None or lower_bound(model, world, end) <= minimum + 1e-9


def lower_bound(model: TransportModel, world: Mapping[str, Any], desired: Mapping[str, Any]) -> float:
    """The lower bound of the cost."""
    facts = list(desired.items())
    return transport_lower_bound(transport_costs(model, world, facts), np.arange(len(facts)))


@settings(max_examples=200, deadline=None)
@given(st.integers(1, 6).flatmap(lambda n: st.tuples(st.just(n), st.integers(n, 8), st.integers(0, 10**6))))
def test_assignment_costs_as_much_as_scipys(sample: tuple[int, int, int]) -> None:
    rows, columns, seed = sample
    costs = np.random.default_rng(seed).uniform(0.0, 9.0, (rows, columns))
    _, _, table, potentials, assignment = allocate_workspace(8)
    table[:rows, :columns] = costs
    transport = no_transport_costs(0)._replace(empty_drive_costs=table, potentials=potentials, assignment=assignment)
    assert assignment_cost(transport, rows, columns) == pytest.approx(costs[linear_sum_assignment(costs)].sum())


@st.composite
def domains(draw: st.DrawFn) -> tuple[list[Ground], dict[str, int], dict[str, int]]:
    names = "abcd"
    facts = st.dictionaries(st.sampled_from(names), st.integers(0, 2), max_size=2)
    effects = st.dictionaries(st.sampled_from(names), st.integers(0, 2), min_size=1, max_size=2)
    steps = draw(st.lists(st.tuples(facts, effects, st.integers(1, 5).map(float)), min_size=1, max_size=8))
    world = {name: draw(st.integers(0, 2)) for name in names}
    return steps, world, draw(st.dictionaries(st.sampled_from(names), st.integers(0, 2), min_size=1, max_size=3))


def as_domain(steps: list[Ground]) -> PlanningDomain:
    return PlanningDomain(
        tuple(PlanningAction(f"step{n}", e, preconditions=p, cost=c) for n, (p, e, c) in enumerate(steps))
    )


@settings(max_examples=200, deadline=None)
@given(domains())
def test_plans_are_optimal_and_missing_only_if_impossible(sample: Any) -> None:
    steps, world, desired = sample
    minimum = optimal_cost(steps, world, desired)
    goal = PlanningGoal("wish", desired)
    try:
        plan = make_plan(as_domain(steps), world, goal)
    except NoPlanError as error:
        assert minimum is None
        assert "because" in error.message
        for name, value in helpful_changes(as_domain(steps), world, goal):
            assert optimal_cost(steps, {**world, name: value}, desired) is not None
        return
    assert plan.cost == pytest.approx(minimum)
    after = apply_plan(plan, world)
    assert all(after[name] == value for name, value in desired.items())
    assert len(explain_steps(plan)) == len(plan.steps)
    for step, served in zip(plan.steps, plan.purposes, strict=True):
        assert served, f"{step.name} is for nothing"
        assert served.items() <= step.effects.items()


@settings(max_examples=60, deadline=None)
@given(domains())
def test_helpful_changes_lists_every_single_change(sample: Any) -> None:
    steps, world, desired = sample
    if optimal_cost(steps, world, desired) is not None:
        return
    helpful = set(helpful_changes(as_domain(steps), world, PlanningGoal("wish", desired)))
    for name, value in product("abcd", range(3)):
        if (
            name not in desired
            and world[name] != value
            and optimal_cost(steps, {**world, name: value}, desired) is not None
        ):
            assert (name, value) in helpful


HOUSE = PlanningDomain(
    (
        PlanningAction("move arm", {"arm": "$pose"}, cost=4.0),
        PlanningAction(
            "drive",
            {"robot": "$to"},
            {"robot": "$from", "arm": "folded"},
            {"to": ("dock", "desk", "attic")},
            cost=lambda b: _driving_cost(b["from"], b["to"]),
        ),
        PlanningAction(
            "look", {"seen $place": True}, {"robot": "$place", "arm": "view"}, {"place": ("desk",)}, cost=1.0
        ),
    ),
)


def _driving_cost(a: str, b: str) -> float:
    if "attic" in (a, b):
        raise NoPlanError("there are only stairs")
    return 10.0


START = {"robot": "dock", "arm": "up"}


def test_open_effect_takes_any_required_value() -> None:
    plan = make_plan(HOUSE, START, PlanningGoal("look", {"seen desk": True, "arm": "wave"}))
    names = [step.name for step in plan.steps]
    assert names == [
        "move arm (pose folded)", "drive (to desk, from dock)", "move arm (pose view)", "look (place desk)",
        "move arm (pose wave)",
    ]  # fmt: skip
    assert explain_steps(plan)[1] == "2. drive (to desk, from dock), 10: robot = desk for look (place desk)"


def test_impossible_goal_is_explained_with_helpful_changes() -> None:
    goal = PlanningGoal("attic", {"robot": "attic"})
    with pytest.raises(NoPlanError, match="no action makes robot = attic.*there are only stairs"):
        make_plan(HOUSE, START, goal)
    only = PlanningDomain(HOUSE.actions[1:])
    goal = PlanningGoal("desk", {"robot": "desk"})
    with pytest.raises(NoPlanError, match="no action makes arm = folded, which is up, and drive .* needs it"):
        make_plan(only, START, goal)
    assert helpful_changes(only, START, goal) == [("arm", "folded")]


def test_alternatives_without_steps_give_costs() -> None:
    door = PlanningDomain(
        (
            PlanningAction("walk", {"robot": "desk"}, {"robot": "dock"}, cost=9.0),
            PlanningAction("ride", {"robot": "desk"}, {"robot": "dock"}, cost=2.0),
        )
    )
    plan = make_plan(door, {"robot": "dock"}, PlanningGoal("desk", {"robot": "desk"}))
    assert alternatives_without_steps(door, {"robot": "dock"}, plan) == ["without ride: 9, walk"]
    blocked = frozenset({"ride", "walk"})
    with pytest.raises(NoPlanError, match="no action that may be taken makes robot = desk"):
        make_plan(door, {"robot": "dock"}, plan.goal, blocked=blocked)


@pytest.mark.parametrize(
    ("make", "error"),
    [
        (
            lambda: PlanningDomain((PlanningAction("a", {"x": 1}), PlanningAction("a", {"x": 2}))),
            "two actions have the name",
        ),
        (lambda: PlanningDomain((PlanningAction("a", {}),)), "there are no effects"),
        (lambda: PlanningDomain((PlanningAction("a", {"on $place": 1}),)), r"the values of \$place are not known"),
        (
            lambda: PlanningDomain((PlanningAction("a", {"x": 1}, behavior="<Go to='$to'/>"),)),
            r"\$to is no variable",
        ),
        (
            lambda: make_plan(
                PlanningDomain((PlanningAction("a", {"x": 1}, cost=0.0),)), {}, PlanningGoal("g", {"x": 1})
            ),
            "the cost is 0",
        ),
    ],
    ids=["equal_names", "no_effect", "unknown_variable", "unbound_text", "zero_cost"],
)
def test_invalid_domains_are_refused(make: Any, error: str) -> None:
    with pytest.raises(InputError, match=error):
        make()
