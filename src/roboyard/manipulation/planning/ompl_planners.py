"""Planners of OMPL over Roboyard's collision kernels.

Only planners that search on one thread are included: OMPL's PRM uses a second one, so that its result would depend on
timing.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Final

import numpy as np

from roboyard.errors import RunError
from roboyard.geometry.arrays import Array
from roboyard.manipulation.collision.motion_check import certified_free_range, is_line_free
from roboyard.manipulation.errors import MotionBudgetExceededError, PlanningCancelledError
from roboyard.manipulation.planning.planner import STATES_PER_POLL, MotionPlanningProblem, PlannedPath, StopCallback

OMPL_PLANNER_NAMES: Final = (
    "RRTConnect", "RRT", "RRTstar", "InformedRRTstar", "BITstar", "KPIECE1", "BKPIECE1", "LBKPIECE1", "FMT", "BFMT"
)  # fmt: skip
"""Names as in OMPL."""


@dataclass(frozen=True)
class OmplPlanner:
    """A planner of OMPL.

    Planners that keep improving a path (RRTstar, InformedRRTstar, BITstar) use their whole budget.

    Attributes:
        name: One of `OMPL_PLANNER_NAMES`.
    """

    name: str

    def solve(
        self, problem: MotionPlanningProblem, rng: np.random.Generator, max_states: int, should_stop: StopCallback
    ) -> PlannedPath:
        """See `MotionPlanner`; ``max_states`` counts how often OMPL polls the termination condition."""
        from ompl import base, geometric, util

        util.setLogLevel(util.LOG_NONE)
        # Generators that are created from now on use this seed.
        util.RNG.setSeed(int(rng.integers(1, 2**31)))
        dof = len(problem.start)
        space = base.RealVectorStateSpace(dof)
        bounds = base.RealVectorBounds(dof)
        for k, (low, high) in enumerate(zip(*problem.sampling_bounds, strict=True)):
            bounds.setLow(k, float(low))
            bounds.setHigh(k, float(high))
        space.setBounds(bounds)
        setup = geometric.SimpleSetup(space)
        space_information = setup.getSpaceInformation()
        setup.setStateValidityChecker(_make_validity_checker(problem))
        space_information.setMotionValidator(_make_motion_validator(base, space_information, problem))
        setup.setStartState(_make_state(space, problem.start))
        goal = base.GoalStates(space_information)
        for state in problem.goals:
            goal.addState(_make_state(space, state))
        setup.setGoal(goal)
        planner = getattr(geometric, self.name)(space_information)
        setup.setPlanner(planner)
        counter = _TerminationCondition(setup, max_states, should_stop)
        setup.solve(base.PlannerTerminationCondition(counter))
        if counter.failure is not None:
            raise RunError(f"OMPL's {self.name}: {counter.failure}")
        if counter.is_cancelled:
            raise PlanningCancelledError("the search was cancelled", valid="another start")
        if not setup.haveExactSolutionPath():
            raise MotionBudgetExceededError(
                f"{self.name} found no path in {counter.n_calls} iterations",
                valid="more states, or a reachable goal",
            )
        states = setup.getSolutionPath().getStates()
        points = np.array([[state[k] for k in range(dof)] for state in states])
        return PlannedPath(points, counter.n_calls)


class _TerminationCondition:
    """Ends the search after a number of polls, when a path is found, or when it is cancelled."""

    def __init__(self, setup: Any, max_calls: int, should_stop: StopCallback) -> None:
        self._setup, self._max_calls, self._should_stop = setup, max_calls, should_stop
        self.n_calls, self.is_cancelled = 0, False
        self.failure: str | None = None

    def __call__(self) -> bool:
        self.n_calls += 1
        if self.n_calls % STATES_PER_POLL == 0 and self._should_stop():
            self.is_cancelled = True
        return self.is_cancelled or self.n_calls > self._max_calls or bool(self._setup.haveExactSolutionPath())


def _make_state(space: Any, values: Array) -> Any:
    state = space.allocState()
    for k, value in enumerate(values.tolist()):
        state[k] = value
    return state


def _make_validity_checker(problem: MotionPlanningProblem) -> Callable[[Any], bool]:
    collision, workspace, dof = problem.scene.collision_arrays, problem.workspace, len(problem.start)
    q = np.empty(dof)

    def is_valid(state: Any) -> bool:
        for k in range(dof):
            q[k] = state[k]
        workspace.motion_rates[:] = 0.0
        workspace.pair_rates[:] = 0.0
        return bool(certified_free_range(collision, q, 0.0, workspace) >= 0.0)

    return is_valid


def _make_motion_validator(base: Any, space_information: Any, problem: MotionPlanningProblem) -> Any:
    """Return a validator that certifies motions as the other planners do."""
    collision, workspace, dof = problem.scene.collision_arrays, problem.workspace, len(problem.start)
    a, b = np.empty(dof), np.empty(dof)

    class Motions(base.MotionValidator):  # type: ignore[misc]
        def checkMotion(self, first: Any, last: Any, *_: Any) -> bool:  # OMPL's name
            for k in range(dof):
                a[k], b[k] = first[k], last[k]
            return bool(is_line_free(collision, workspace, a, b))

    return Motions(space_information)
