"""Goals in PDDL: plans of other planners are valid and equally short, and written files are read back."""

import contextlib
import logging
import re
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from roboyard.errors import InputError
from roboyard.task_planning import (
    EMPTY_HAND,
    NoPlanError,
    PlanningAction,
    PlanningDomain,
    PlanningGoal,
    TransportModel,
    make_plan,
)
from roboyard.task_planning.pddl import read_pddl, solve_with, write_pddl
from roboyard.task_planning.planner import GroundedProblem


def random_problem(seed: int, *, unit: bool) -> tuple[PlanningDomain, dict[str, Any], PlanningGoal]:
    """Some actions over four conditions with three values; whether the goal is possible is not known."""
    rng = np.random.default_rng(seed)

    def some(limit: int) -> dict[str, Any]:
        return {f"c{k}": f"v{rng.integers(3)}" for k in rng.choice(4, rng.integers(1, limit + 1), replace=False)}

    actions = tuple(PlanningAction(f"do it {k}", some(2), some(2), cost=1.0 if unit else k + 1.0) for k in range(10))
    world = {f"c{k}": "v0" for k in range(4)}
    return PlanningDomain(actions), world, PlanningGoal("g", some(3))


@pytest.mark.parametrize("seed", range(25))
def test_written_pddl_is_read_back_with_the_same_plan_cost(seed: int) -> None:
    domain, world, goal = random_problem(seed, unit=False)
    written = write_pddl(domain, world, goal)
    other, other_world, other_goal = read_pddl(written.domain, written.problem)
    try:
        cost = make_plan(domain, world, goal).cost
    except NoPlanError:
        with pytest.raises(NoPlanError):
            make_plan(other, other_world, other_goal)
        return
    assert make_plan(other, other_world, other_goal).cost == pytest.approx(cost)


def test_pyperplans_shortest_plans_have_the_same_length(tmp_path: Path) -> None:
    planner = pytest.importorskip("pyperplan.planner")
    search = pytest.importorskip("pyperplan.search")
    logging.disable(logging.INFO)
    found = 0
    for seed in range(100):
        domain, world, goal = random_problem(seed, unit=True)
        written = write_pddl(domain, world, goal, costs=False)
        (tmp_path / "d.pddl").write_text(written.domain)
        (tmp_path / "p.pddl").write_text(written.problem)
        try:
            plan = make_plan(domain, world, goal)
        except NoPlanError:
            continue
        if not plan.steps:
            continue
        operators = planner.search_plan(
            str(tmp_path / "d.pddl"), str(tmp_path / "p.pddl"), search.breadth_first_search, None
        )
        assert len(operators) == len(plan.steps)
        steps = {step.name: step for step in GroundedProblem(domain, world, goal.desired_state).steps}
        now = dict(world)
        for operator in operators:
            step = steps[written.steps[operator.name.strip("()")]]
            assert all(now[name] == value for name, value in step.preconditions.items())
            now.update(step.effects)
        assert goal.is_satisfied(now)
        found += 1
    logging.disable(logging.NOTSET)
    assert found >= 8


def swap_problem(seed: int) -> tuple[PlanningDomain, dict[str, Any], PlanningGoal]:
    """Two objects that exchange their places by way of a third place."""
    xy = np.random.default_rng(seed).uniform(0.0, 10.0, (3, 2))
    places, objects = ("p0", "p1", "p2"), ("t0", "t1")
    carrying = TransportModel(
        places, objects, lambda a, b: float(np.hypot(*(xy[int(a[1])] - xy[int(b[1])]))), handling_cost=0.7
    )
    world = {"robot": "p2", "hand": EMPTY_HAND, "on p0": "t0", "on p1": "t1", "on p2": EMPTY_HAND}
    return carrying.domain(), world, PlanningGoal("swap", {"on p0": "t1", "on p1": "t0"})


@pytest.mark.parametrize("seed", range(3))
def test_unified_plannings_optimal_plans_cost_the_same(seed: int) -> None:
    pytest.importorskip("unified_planning", reason="unified-planning is missing: pip install 'roboyard[planning]'")
    domain, world, goal = swap_problem(seed)
    plan = solve_with(domain, world, goal)
    assert plan.cost == pytest.approx(make_plan(domain, world, goal).cost, abs=1e-3 * len(plan.steps))
    assert goal.is_satisfied(plan.world_states(world)[-1])
    with pytest.raises(NoPlanError):
        solve_with(domain, world, PlanningGoal("both", {"on p0": "t0", "on p1": "t0"}))


def test_missing_unified_planning_names_the_extra(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "unified_planning.environment", None)
    monkeypatch.setitem(sys.modules, "unified_planning", None)
    domain = PlanningDomain((PlanningAction("go", {"at": "b"}, {"at": "a"}),))
    with pytest.raises(InputError, match=r"needs the extra 'planning'.*roboyard\[planning\]"):
        solve_with(domain, {"at": "a"}, PlanningGoal("g", {"at": "b"}))


GRIPPER = """(define (domain trips) ; a comment
  (:requirements :strips :typing :negative-preconditions :action-costs)
  (:types truck car - vehicle place)
  (:predicates (at ?v - vehicle ?p - place) (broken ?v - vehicle))
  (:functions (total-cost) - number (far ?a ?b - place) - number)
  (:action drive :parameters (?v - vehicle ?a ?b - place)
    :precondition (and (at ?v ?a) (not (broken ?v)))
    :effect (and (not (at ?v ?a)) (at ?v ?b) (increase (total-cost) (far ?a ?b)))))"""
TRIP = """(define (problem trip) (:domain trips)
  (:objects t - truck c - car x y z - place)
  (:init (at t x) (at c x) (broken c) (= (total-cost) 0) (= (far x y) 2) (= (far y z) 3) (= (far x z) 9))
  (:goal (and {goal})) (:metric minimize (total-cost)))"""


def test_pddl_variables_types_and_costs_are_read() -> None:
    plan = make_plan(*read_pddl(GRIPPER, TRIP.format(goal="(at t z)")))
    assert plan.cost == 5.0
    assert [step.binding["b"] for step in plan.steps] == ["y", "z"]
    with pytest.raises(NoPlanError):
        make_plan(*read_pddl(GRIPPER, TRIP.format(goal="(at c y)")))


@pytest.mark.parametrize(
    ("domain", "goal", "error"),
    [
        (GRIPPER + ")", "(at t z)", "the domain: there is a . without"),
        (GRIPPER[:-1], "(at t z)", "no PDDL"),
        (GRIPPER.replace(":typing", ":fluents"), "(at t z)", ":fluents is not known .*:typing"),
        (GRIPPER, "(or (at t z) (at t y))", r"the goal: \(or .*\) is not known"),
    ],
    ids=["closing_bracket", "missing_bracket", "requirement", "goal"],
)
def test_invalid_pddl_is_refused_with_the_cause(domain: str, goal: str, error: str) -> None:
    with pytest.raises(InputError, match=error):
        read_pddl(domain, TRIP.format(goal=goal))


@given(st.integers(0, 1), st.integers(0, 200), st.sampled_from(["", "(", ")", "x", "(x)", "-", "3", "not", "and"]))
def test_mutated_pddl_raises_only_documented_errors(index: int, place: int, instead: str) -> None:
    texts = [GRIPPER, TRIP.format(goal="(at t z)")]
    words = re.findall(r"[()]|[^\s()]+", re.sub(";.*", "", texts[index]))
    words[place % len(words)] = instead
    texts[index] = " ".join(words)
    with contextlib.suppress(InputError, NoPlanError):
        make_plan(*read_pddl(*texts))
