"""Conformance test of step planners, of this package and of others: `check_step_planner`.

It tests what `StepPlanner` promises, with the independent checker of plans, on level ground and before a wall.
"""

from __future__ import annotations

import math
from concurrent.futures import ThreadPoolExecutor
from typing import Any, Final, NoReturn

import numpy as np

from roboyard.errors import InputError, RoboyardError
from roboyard.geometry.arrays import Array
from roboyard.walking.errors import NoStepPlanError
from roboyard.walking.free_gait.foothold_map import CELL_SIZE, FootholdMap
from roboyard.walking.free_gait.plan_analysis import compute_plan_cost
from roboyard.walking.free_gait.plan_checker import PlanCheckLimits, check_plan
from roboyard.walking.free_gait.planners.planner import StepPlanner, StepSearch
from roboyard.walking.free_gait.planning import EVENTS_PER_PART, plan_steps
from roboyard.walking.free_gait.problem import StepPlanningProblem
from roboyard.walking.free_gait.replanning import committed_events
from roboyard.walking.free_gait.robot_model import FreeGaitModel
from roboyard.walking.free_gait.step_plan import StepPlan

_KEY, _OTHER_KEY = 12_345, 2**63 + 1
_EVENTS_PER_CALL: Final = 500
_COST_TOLERANCE: Final = 0.05
"""Relative difference between a plan's cost and the cost that samples of the plan yield."""
_TAKEOVER_FRACTION: Final = 0.4
"""Fraction of a plan after which another plan takes over."""


def check_step_planner(planner: StepPlanner, robot_model: FreeGaitModel, *, max_events: int = 20_000) -> None:
    """Test a planner against the contract of `StepPlanner`.

    It plans on level ground, around nothing and from the middle of another plan, and to a goal behind a wall.  Checked
    are, with `check_plan`, each plan; the cost of a plan against that of `compute_plan_cost`; that cost, statistics and
    best plan of a search fit together and never get worse; that the same key gives the same plan while other searches
    run, in the same thread and in others; that the problem stays as it is; and what happens where there is no plan, and
    when a search is stopped.

    Args:
        planner: The planner.
        robot_model: The robot.
        max_events: Number of events within which the planner finds a plan over level ground.

    Raises:
        InputError: The planner breaks its contract; the message says how.
    """
    _StepPlannerCheck(planner, robot_model, max_events).run_all()


class _StepPlannerCheck:
    def __init__(self, planner: StepPlanner, robot_model: FreeGaitModel, max_events: int) -> None:
        self._planner, self._robot_model, self._max_events = planner, robot_model, max_events
        scale = robot_model.scale
        self._corner = (-0.9 * scale, -0.9 * scale)
        size = round(2.4 * scale / CELL_SIZE)
        self._level = np.zeros((round(1.8 * scale / CELL_SIZE), size))
        self._walled = self._level.copy()
        wall = round((0.7 * scale - self._corner[0]) / CELL_SIZE)
        self._walled[:, wall : wall + max(round(0.1 * scale / CELL_SIZE), 2)] = 0.6 * scale
        self._goal = (0.45 * scale, 0.05 * scale)

    def run_all(self) -> None:
        """Check every promise in turn."""
        problem = self._make_problem(self._level, self._goal)
        plan = self._check_search(problem)
        self._check_plan(plan, problem)
        cost = compute_plan_cost(plan, problem)
        if not math.isclose(plan.cost, cost, rel_tol=_COST_TOLERANCE):
            self._report(f"reports a cost of {plan.cost:.2f} s for a plan that costs {cost:.2f} s")
        self._check_determinism(problem, plan)
        self._check_no_plan()
        self._check_cancellation(problem)
        self._check_committed_events(problem, plan)

    def _make_problem(self, heights: Array, goal: tuple[float, float]) -> StepPlanningProblem:
        foothold_map = FootholdMap.from_heights(heights, self._corner, self._robot_model, start=(0.0, 0.0))
        return StepPlanningProblem.create(self._robot_model, foothold_map, (0.0, 0.0), goal)

    def _start(self, problem: StepPlanningProblem, key: int) -> StepSearch:
        search: object = self._planner.start_search(problem, key)
        if not isinstance(search, StepSearch):
            self._report(f"starts a search of type {type(search).__name__} instead of StepSearch")
        return search

    def _check_search(self, problem: StepPlanningProblem) -> StepPlan:
        """Advance a search through the budget, and check that it never gets worse; return its plan."""
        before = _snapshot(problem)
        search = self._start(problem, _KEY)
        if search.best_plan() is not None or math.isfinite(search.best_cost) or search.statistics.events != 0:
            self._report("has tried events, or has a plan, before its first call")
        n_events, best_cost = 0, math.inf
        while n_events < self._max_events:
            search.advance(_EVENTS_PER_CALL)
            statistics, plan = search.statistics, search.best_plan()
            if search.best_cost > best_cost:
                self._report(f"has a worse plan after more events: {search.best_cost:.2f} s after {best_cost:.2f} s")
            if (plan is None) != math.isinf(search.best_cost) or (plan is not None and plan.cost != search.best_cost):
                self._report("has a best plan whose cost is not the best cost of the search")
            if statistics.events > n_events + _EVENTS_PER_CALL + EVENTS_PER_PART:
                self._report(f"tries {statistics.events - n_events} events where {_EVENTS_PER_CALL} are asked for")
            if not statistics.rejected <= statistics.evaluated or statistics.events < n_events:
                self._report("counts events or evaluations wrong")
            if statistics.events == n_events:
                break
            n_events, best_cost = statistics.events, search.best_cost
        if _snapshot(problem) != before:
            self._report("changes the problem")
        found = search.best_plan()
        if found is None:
            self._report(f"finds no plan over level ground within {self._max_events} events")
        return found

    def _check_plan(self, plan: object, problem: StepPlanningProblem, max_speed_fraction: float = 1.0) -> None:
        if not isinstance(plan, StepPlan):
            self._report(f"returns {type(plan).__name__} instead of StepPlan")
        if np.abs(plan.body_track[0, 1:3] - problem.start).max() > 1e-9:
            self._report("returns a plan that does not begin at the start")
        if plan.start_feet.shape != problem.feet.shape or np.abs(plan.start_feet - problem.feet).max() > 1e-9:
            self._report("returns a plan that does not begin with the feet of the problem")
        x, y = problem.goal.tolist()
        limits = PlanCheckLimits(
            min_stability_margin=self._robot_model.min_stability_margin, max_speed_fraction=max_speed_fraction
        )
        model = self._robot_model
        report = check_plan(plan, model.legged_robot, model.body_box, _level_heights, (x, y), limits)
        if report.faults:
            fault = report.faults[0]
            self._report(f"returns a plan with a fault, {fault.kind} at {fault.time:.2f} s: {fault.description}")

    def _check_determinism(self, problem: StepPlanningProblem, plan: StepPlan) -> None:
        first, other = self._start(problem, _KEY), self._start(problem, _OTHER_KEY)
        while first.statistics.events < self._max_events:
            n_events = first.statistics.events
            first.advance(_EVENTS_PER_CALL)
            other.advance(_EVENTS_PER_CALL)
            if first.statistics.events == n_events:
                break
        if not _are_equal(first.best_plan(), plan):
            self._report("returns another plan for the same key while another search runs")
        with ThreadPoolExecutor(2) as pool:
            plans = list(pool.map(lambda key: self._search(problem, key), (_KEY, _OTHER_KEY, _KEY)))
        if not (_are_equal(plans[0], plan) and _are_equal(plans[2], plan)):
            self._report("returns another plan for the same key in another thread")

    def _search(self, problem: StepPlanningProblem, key: int) -> StepPlan | None:
        """Return the plan of a whole search."""
        search, n_events = self._start(problem, key), -1
        while n_events < search.statistics.events < self._max_events:
            n_events = search.statistics.events
            search.advance(_EVENTS_PER_CALL)
        return search.best_plan()

    def _check_no_plan(self) -> None:
        problem = self._make_problem(self._walled, (1.2 * self._robot_model.scale, 0.0))
        try:
            plan_steps(problem, self._planner, budget=4 * _EVENTS_PER_CALL)
        except NoStepPlanError as error:
            if not error.barrier_cells:
                self._report("hides the cells that cut the goal off")
        except RoboyardError as error:
            self._report(f"raises {type(error).__name__} where there is no plan")
        else:
            self._report("returns a plan where there is none")

    def _check_cancellation(self, problem: StepPlanningProblem) -> None:
        try:
            plan_steps(problem, self._planner, budget=self._max_events, should_stop=lambda: True)
        except NoStepPlanError:
            pass
        else:
            self._report("returns a plan without having tried an event")
        n_found = 0

        def count(_events: int, plan: StepPlan | None) -> None:
            nonlocal n_found
            n_found += plan is not None

        plan = plan_steps(
            problem, self._planner, budget=EVENTS_PER_PART, should_stop=lambda: n_found > 0, on_progress=count
        )
        self._check_plan(plan, problem)

    def _check_committed_events(self, problem: StepPlanningProblem, plan: StepPlan) -> None:
        takeover_time = _TAKEOVER_FRACTION * plan.duration
        committed = committed_events(plan, takeover_time)
        foothold_map = problem.foothold_map.with_body_at(committed[1][-1])
        replanning = StepPlanningProblem(
            self._robot_model, foothold_map, problem.start, problem.goal, problem.feet, committed=committed
        )
        found = self._search(replanning, _OTHER_KEY)
        if found is None:
            self._report(f"finds no plan from the middle of another one within {self._max_events} events")
        completed_swings = [swing for swing in plan.swings if swing.touch_down_time <= takeover_time]
        for swing in completed_swings:
            if not any(
                one.leg == swing.leg
                and math.dist(one.target, swing.target) < 1e-9
                and abs(one.touch_down_time - swing.touch_down_time) < 1e-6
                for one in found.swings
            ):
                self._report("returns a plan that does not begin with the committed events")
        self._check_plan(found, replanning, max_speed_fraction=1.1)

    def _report(self, violation: str) -> NoReturn:
        raise InputError(violation, location=type(self._planner).__name__, valid="the contract of StepPlanner")


def _level_heights(positions: Array) -> Array:
    heights: Array = np.zeros(positions.shape[:-1])
    return heights


def _snapshot(problem: StepPlanningProblem) -> list[bytes]:
    """Return the contents of all arrays of a problem."""
    contents: list[bytes] = []

    def add(value: Any) -> None:
        if isinstance(value, np.ndarray):
            contents.append(value.tobytes())
        elif isinstance(value, tuple):
            for part in value:
                add(part)

    add((problem.context, problem.leg_arrays, problem.start, problem.goal, problem.feet, problem.foothold_map.arrays))
    return contents


def _are_equal(plan: StepPlan | None, other: StepPlan | None) -> bool:
    if plan is None or other is None:
        return plan is other
    tracks_are_equal = plan.body_track.tobytes() == other.body_track.tobytes()
    return bool(tracks_are_equal and plan.swings == other.swings and plan.cost == other.cost)
