"""Every registered step planner keeps its contract; planners that break one of its promises are found."""

from __future__ import annotations

from dataclasses import dataclass, fields, replace
from typing import Any

import numpy as np
import pytest
from tests.walking.free_gait.step_planning_problems import level_terrain, problem_on, robot_model_named

from roboyard.errors import ConfigError, InputError, UnknownNameError
from roboyard.walking.errors import NoStepPlanError
from roboyard.walking.free_gait.conformance import check_step_planner
from roboyard.walking.free_gait.planners.planner import (
    STEP_PLANNERS,
    KernelStepPlanner,
    StepPlanner,
    StepSearch,
    make_step_planner,
)
from roboyard.walking.free_gait.planners.sampling import RandomSamplingPlanner
from roboyard.walking.free_gait.planners.splitting import SplittingPlanner
from roboyard.walking.free_gait.planning import EVENTS_PER_PART, plan_steps
from roboyard.walking.free_gait.problem import StepPlanningProblem
from roboyard.walking.free_gait.step_plan import SearchStatistics, StepPlan

NAMES = [
    "annealing", "ara-star", "branch-and-bound", "genetic", "greedy", "local-search", "mcts", "random-sampling",
    "splitting", "tabu",
]  # fmt: skip


@pytest.mark.parametrize("name", STEP_PLANNERS.names())
def test_registered_step_planners_conform(name: str) -> None:
    max_events = 150_000 if name == "ara-star" else 20_000  # it expands many stances on level ground
    check_step_planner(make_step_planner(name), robot_model_named("akrobat"), max_events=max_events)


def test_step_planner_conforms_with_another_robot() -> None:
    check_step_planner(make_step_planner("random-sampling"), robot_model_named("lauron"))


def test_registry_holds_the_planners_of_the_package() -> None:
    assert set(STEP_PLANNERS.names()) >= set(NAMES)
    with pytest.raises(UnknownNameError, match="splitting"):
        make_step_planner("spliting")


@pytest.mark.parametrize("name", NAMES)
def test_planners_declare_themselves(name: str) -> None:
    planner = make_step_planner(name)
    assert planner.traits.idea != StepPlanner.traits.idea
    assert planner.traits.references
    assert isinstance(planner, KernelStepPlanner)
    if planner.parameters_type is not None:
        names: tuple[str, ...] = planner.parameters_type._fields  # type: ignore[attr-defined]
        assert set(names) <= {field.name for field in fields(planner)}  # type: ignore[arg-type]


def test_parameters_are_checked() -> None:
    assert make_step_planner("splitting", {"square_size": "80 mm"}) == SplittingPlanner(square_size=0.08)
    for settings in ({"square_size": 0.0}, {"square_sise": 0.08}, {"max_plans": 4, "n_initial_plans": 4}):
        with pytest.raises(ConfigError):
            make_step_planner("splitting", settings)
    with pytest.raises(ConfigError, match="detour_probability"):
        SplittingPlanner(detour_probability=2.0)


def test_parameters_change_the_plan_and_keep_it_valid() -> None:
    problem = problem_on(level_terrain(), (0.5, 0.0))
    planners = (SplittingPlanner(), SplittingPlanner(n_initial_plans=1, events_per_round=3, square_size=0.1))
    costs = [plan_steps(problem, planner, budget=3_000, seed=2).cost for planner in planners]
    assert costs[0] != costs[1]
    check_step_planner(planners[1], robot_model_named("akrobat"))


@pytest.mark.parametrize("name", ["branch-and-bound", "greedy", "mcts", "splitting", "tabu", "genetic", "ara-star"])
def test_smallest_memory_of_each_planner_suffices(name: str) -> None:
    settings: dict[str, dict[str, Any]] = {
        "branch-and-bound": {"n_branches": 16, "events_per_branch": 100}, "greedy": {"n_samples": 1},
        "mcts": {"max_nodes": 3}, "splitting": {"max_plans": 2, "n_initial_plans": 1},
        "tabu": {"n_neighbors": 1, "tabu_tenure": 1000}, "genetic": {"population_size": 2, "tournament_size": 8},
        "ara-star": {"max_nodes": 100, "initial_max_nodes": 1_000_000},
    }  # fmt: skip
    problem = problem_on(level_terrain(), (0.5, 0.0))
    try:
        plan = plan_steps(problem, make_step_planner(name, settings[name]), budget=3_000)
    except NoStepPlanError:
        return
    assert plan.duration > 0.0


class BrokenSearch(StepSearch):
    """A search of random sampling that breaks one promise."""

    def __init__(self, planner: BrokenPlanner, problem: StepPlanningProblem, key: int) -> None:
        self.violation, self.problem = planner.violation, problem
        planner.calls.append(key)
        if self.violation == "another thread":
            key += len(planner.calls) > 3
        elif self.violation == "another search runs":
            key += len(planner.calls) > 1
        self.inner = RandomSamplingPlanner().start_search(problem, key)
        if self.violation == "before its first call":
            self.advance(100)

    def advance(self, max_events: int) -> None:
        if self.violation == "no plan over level ground":
            return
        if self.violation == "changes the problem":
            self.problem.feet[0, 2] += 1e-3
        self.inner.advance(400_000 if self.violation == "asked for" else max_events)

    @property
    def statistics(self) -> SearchStatistics:
        found = self.inner.statistics
        if self.violation == "counts events":
            return replace(found, rejected=found.evaluated + 1)
        return found

    @property
    def best_cost(self) -> float:
        plan = self.best_plan()
        if self.violation == "not the best cost":
            return self.inner.best_cost
        return np.inf if plan is None else plan.cost

    def best_plan(self) -> StepPlan | None:
        plan = self.inner.best_plan()
        if plan is None or not self.violation:
            return plan
        track = plan.body_track.copy()
        match self.violation:
            case "not the best cost":
                return replace(plan, cost=plan.cost + 1.0)
            case "has a worse plan after more events":
                return replace(plan, cost=plan.cost + 1e-3 * self.inner.statistics.events)
            case "reports a cost":
                return replace(plan, cost=0.5 * plan.cost)
            case "not begin at the start":
                track[:, 1] += 0.02
            case "feet of the problem":
                return replace(plan, start_feet=plan.start_feet + np.array([0.0, 0.01, 0.0]))
            case "with a fault, speed":
                track[:, 0] *= 0.5
                swings = (
                    replace(one, lift_off_time=0.5 * one.lift_off_time, touch_down_time=0.5 * one.touch_down_time)
                    for one in plan.swings
                )
                return replace(plan, body_track=track, swings=tuple(swings), cost=0.5 * plan.cost)
            case "with a fault, goal":
                short = replace(plan, body_track=track[track[:, 0] <= 0.7 * plan.duration])
                return replace(short, cost=0.7 * plan.cost)
        return replace(plan, body_track=track)


@dataclass(frozen=True)
class BrokenPlanner(StepPlanner):
    """A planner whose searches break one promise."""

    violation: str
    calls: list[int]

    def start_search(self, problem: StepPlanningProblem, key: int) -> StepSearch:
        if self.violation == "instead of StepSearch":
            return object()  # type: ignore[return-value]
        if self.violation == "committed events":
            problem = replace(problem, committed=None)
        if self.violation == "where there is none" and problem.goal[0] > 0.7:
            problem = problem_on(level_terrain(), (0.5, 0.0))
        return BrokenSearch(self, problem, key)


@pytest.mark.parametrize(
    "violation",
    [
        "instead of StepSearch", "before its first call", "has a worse plan after more events", "not the best cost",
        "asked for", "counts events", "changes the problem", "no plan over level ground", "not begin at the start",
        "feet of the problem", "with a fault, speed", "with a fault, goal", "reports a cost", "another search runs",
        "another thread", "where there is none", "committed events",
    ],
)  # fmt: skip
def test_step_planner_check_finds_each_violation(violation: str) -> None:
    planner = BrokenPlanner(violation, [])
    with pytest.raises(InputError) as caught:
        check_step_planner(planner, robot_model_named("akrobat"), max_events=3_000)
    assert violation in str(caught.value)
    assert "the contract of StepPlanner" in str(caught.value)


def test_step_planner_check_passes_a_search_in_python() -> None:
    check_step_planner(BrokenPlanner("", []), robot_model_named("akrobat"), max_events=3_000)


class ExhaustedPlanner(StepPlanner):
    """A planner that has nothing to try."""

    def start_search(self, problem: StepPlanningProblem, key: int) -> StepSearch:
        return BrokenSearch(BrokenPlanner("no plan over level ground", []), problem, key)


def test_search_that_has_nothing_left_to_try_ends() -> None:
    with pytest.raises(NoStepPlanError, match="ExhaustedPlanner found no plan among 0 events"):
        plan_steps(problem_on(level_terrain(), (0.5, 0.0)), ExhaustedPlanner(), budget=10 * EVENTS_PER_PART)
