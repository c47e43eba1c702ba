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

from roboyard.behavior.goals import (
    NOTHING,
    Action,
    Carrying,
    Domain,
    Goal,
    Impossible,
    Plan,
    make_plan,
    why,
    without,
    would_help,
)
from roboyard.behavior.goals.carrying import joined_ways
from roboyard.behavior.goals.legs import assigned, least_cost, no_legs, room
from roboyard.errors import InputError

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


def apply_plan(plan: Plan, world: Mapping[str, Any]) -> dict[str, Any]:
    """The world after a plan; fails if a step is not possible."""
    current = dict(world)
    for step in plan.steps:
        for name, value in step.needs.items():
            assert current.get(name) == value, f"{step.name} needs {name} = {value}"
        current.update(step.effects)
    return current


def carrying_problem(count: int, places: int, seed: int) -> tuple[Carrying, dict[str, Any], Goal]:
    """Objects at random places, and a goal that assigns each another place."""
    rng = np.random.default_rng(seed)
    xy = rng.uniform(0.0, 10.0, (places, 2))
    names = tuple(f"p{index}" for index in range(places))
    objects = tuple(f"t{index}" for index in range(count))
    distances = {(a, b): float(np.hypot(*(xy[int(a[1:])] - xy[int(b[1:])]))) for a in names for b in names}
    carrying = Carrying(names, objects, lambda a, b: distances[a, b], handle=0.7)
    start, end = rng.permutation(places), rng.permutation(places)
    world: dict[str, Any] = {"robot": "p0", "hand": NOTHING} | {f"on {name}": NOTHING for name in names}
    world |= {f"on {names[start[index]]}": item for index, item in enumerate(objects)}
    return carrying, world, Goal("tidy", {f"on {names[end[index]]}": item for index, item in enumerate(objects)})


def ground_actions(carrying: Carrying) -> list[Ground]:
    """All ground actions of the carrying domain, written independently."""
    steps: list[Ground] = []
    for a, b in product(carrying.places, repeat=2):
        if a != b:
            steps.append(({"robot": a}, {"robot": b}, carrying.distance(a, b)))
    for item, place in product(carrying.things, carrying.places):
        full, empty = {"hand": item, f"on {place}": NOTHING}, {"hand": NOTHING, f"on {place}": item}
        steps += [({"robot": place, **full}, empty, 0.7), ({"robot": place, **empty}, full, 0.7)]
    return steps


@pytest.mark.parametrize("seed", range(12))
def test_carrying_plans_are_optimal_by_forward_search(seed: int) -> None:
    carrying, world, goal = carrying_problem(3, 4, seed)
    plan = make_plan(carrying.domain(), world, goal)
    after = apply_plan(plan, world)
    assert all(after[name] == value for name, value in goal.wants.items())
    assert plan.cost == pytest.approx(sum(step.cost for step in plan.steps))
    assert plan.cost == pytest.approx(optimal_cost(ground_actions(carrying), world, goal.wants))


@pytest.mark.parametrize("seed", range(6))
def test_plans_cost_the_same_without_the_lower_bound(seed: int) -> None:
    carrying, world, goal = carrying_problem(4, 6, seed)
    domain = carrying.domain()
    plan, other = make_plan(domain, world, goal), make_plan(replace(domain, bound=None), world, goal)
    assert plan.cost == pytest.approx(other.cost)
    assert plan.looked_at <= other.looked_at


@pytest.mark.parametrize("seed", range(6))
def test_lower_bound_never_exceeds_the_optimal_cost(seed: int) -> None:
    carrying, world, goal = carrying_problem(3, 4, seed)
    plan = make_plan(carrying.domain(), world, goal)
    assert lower_bound(carrying, world, goal.wants) <= plan.cost + 1e-9
    left = plan.cost
    for current, step in zip(plan.worlds(world), plan.steps, strict=False):
        assert lower_bound(carrying, current, goal.wants) <= left + 1e-9
        left -= step.cost
    for end in ({"robot": "p1"}, {"robot": "p2", "hand": "t0"}, {"robot": "p3", "on p1": "t1"}):
        minimum = optimal_cost(ground_actions(carrying), world, end)
        assert minimum is None or lower_bound(carrying, world, end) <= minimum + 1e-9


def lower_bound(carrying: Carrying, world: Mapping[str, Any], desired: Mapping[str, Any]) -> float:
    """The lower bound of the cost."""
    facts = list(desired.items())
    return least_cost(joined_ways(carrying, world, facts), np.arange(len(facts)))


@settings(max_examples=200, deadline=None)
@given(st.integers(1, 6).flatmap(lambda n: st.tuples(st.just(n), st.integers(n, 8), st.integers(0, 10**6))))
def test_assignment_costs_as_much_as_scipys(sample: tuple[int, int, int]) -> None:
    rows, columns, seed = sample
    costs = np.random.default_rng(seed).uniform(0.0, 9.0, (rows, columns))
    _, _, table, prices, matches = room(8)
    table[:rows, :columns] = costs
    legs = no_legs(0)._replace(costs=table, prices=prices, matches=matches)
    assert assigned(legs, rows, columns) == pytest.approx(costs[linear_sum_assignment(costs)].sum())


@st.composite
def domains(draw: st.DrawFn) -> tuple[list[Ground], dict[str, int], dict[str, int]]:
    names = "abcd"
    facts = st.dictionaries(st.sampled_from(names), st.integers(0, 2), max_size=2)
    effects = st.dictionaries(st.sampled_from(names), st.integers(0, 2), min_size=1, max_size=2)
    steps = draw(st.lists(st.tuples(facts, effects, st.integers(1, 5).map(float)), min_size=1, max_size=8))
    world = {name: draw(st.integers(0, 2)) for name in names}
    return steps, world, draw(st.dictionaries(st.sampled_from(names), st.integers(0, 2), min_size=1, max_size=3))


def as_domain(steps: list[Ground]) -> Domain:
    return Domain(tuple(Action(f"step{n}", e, needs=p, cost=c) for n, (p, e, c) in enumerate(steps)))


@settings(max_examples=200, deadline=None)
@given(domains())
def test_plans_are_optimal_and_missing_only_if_impossible(sample: Any) -> None:
    steps, world, desired = sample
    minimum = optimal_cost(steps, world, desired)
    goal = Goal("wish", desired)
    try:
        plan = make_plan(as_domain(steps), world, goal)
    except Impossible as error:
        assert minimum is None
        assert "because" in error.message
        for name, value in would_help(as_domain(steps), world, goal):
            assert optimal_cost(steps, {**world, name: value}, desired) is not None
        return
    assert plan.cost == pytest.approx(minimum)
    after = apply_plan(plan, world)
    assert all(after[name] == value for name, value in desired.items())
    assert len(why(plan)) == len(plan.steps)
    for step, served in zip(plan.steps, plan.serves, strict=True):
        assert served, f"{step.name} is for nothing"
        assert served.items() <= step.effects.items()


@settings(max_examples=60, deadline=None)
@given(domains())
def test_would_help_lists_every_helpful_single_change(sample: Any) -> None:
    steps, world, desired = sample
    if optimal_cost(steps, world, desired) is not None:
        return
    helpful = set(would_help(as_domain(steps), world, Goal("wish", desired)))
    for name, value in product("abcd", range(3)):
        if (
            name not in desired
            and world[name] != value
            and optimal_cost(steps, {**world, name: value}, desired) is not None
        ):
            assert (name, value) in helpful


HOUSE = Domain(
    (
        Action("move arm", {"arm": "$pose"}, cost=4.0),
        Action("drive", {"robot": "$to"}, {"robot": "$from", "arm": "folded"}, {"to": ("dock", "desk", "attic")},
               cost=lambda b: _driving_cost(b["from"], b["to"])),
        Action("look", {"seen $place": True}, {"robot": "$place", "arm": "view"}, {"place": ("desk",)}, cost=1.0),
    ),
)  # fmt: skip


def _driving_cost(a: str, b: str) -> float:
    if "attic" in (a, b):
        raise Impossible("there are only stairs")
    return 10.0


START = {"robot": "dock", "arm": "up"}


def test_open_effect_takes_any_required_value() -> None:
    plan = make_plan(HOUSE, START, Goal("look", {"seen desk": True, "arm": "wave"}))
    names = [step.name for step in plan.steps]
    assert names == [
        "move arm (pose folded)", "drive (to desk, from dock)", "move arm (pose view)", "look (place desk)",
        "move arm (pose wave)",
    ]  # fmt: skip
    assert why(plan)[1] == "2. drive (to desk, from dock), 10: robot = desk for look (place desk)"


def test_impossible_goal_is_explained_with_helpful_changes() -> None:
    goal = Goal("attic", {"robot": "attic"})
    with pytest.raises(Impossible, match="no action makes robot = attic.*there are only stairs"):
        make_plan(HOUSE, START, goal)
    only = Domain(HOUSE.actions[1:])
    goal = Goal("desk", {"robot": "desk"})
    with pytest.raises(Impossible, match="no action makes arm = folded, which is up, and drive .* needs it"):
        make_plan(only, START, goal)
    assert would_help(only, START, goal) == [("arm", "folded")]


def test_without_gives_the_cost_of_alternative_plans() -> None:
    door = Domain(
        (
            Action("walk", {"robot": "desk"}, {"robot": "dock"}, cost=9.0),
            Action("ride", {"robot": "desk"}, {"robot": "dock"}, cost=2.0),
        )
    )
    plan = make_plan(door, {"robot": "dock"}, Goal("desk", {"robot": "desk"}))
    assert without(door, {"robot": "dock"}, plan) == ["without ride: 9, walk"]
    blocked = frozenset({"ride", "walk"})
    with pytest.raises(Impossible, match="no action that may be taken makes robot = desk"):
        make_plan(door, {"robot": "dock"}, plan.goal, blocked=blocked)


@pytest.mark.parametrize(
    ("make", "error"),
    [
        (lambda: Domain((Action("a", {"x": 1}), Action("a", {"x": 2}))), "two actions are called"),
        (lambda: Domain((Action("a", {}),)), "brings nothing about"),
        (lambda: Domain((Action("a", {"on $place": 1}),)), r"not known what \$place may be"),
        (lambda: Domain((Action("a", {"x": 1}, does="<Go to='$to'/>"),)), r"\$to stands for nothing"),
        (lambda: make_plan(Domain((Action("a", {"x": 1}, cost=0.0),)), {}, Goal("g", {"x": 1})), "costs 0"),
    ],
    ids=["equal_names", "no_effect", "unknown_variable", "unbound_text", "zero_cost"],
)
def test_invalid_domains_are_refused(make: Any, error: str) -> None:
    with pytest.raises(InputError, match=error):
        make()
