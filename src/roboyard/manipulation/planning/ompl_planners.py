"""The planners of the library OMPL, on our collision kernels.

Only those that search on one thread: a PRM of OMPL's looks for ways on a second one, so that its answer would depend
on who is quicker.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Final

import numpy as np

from roboyard.errors import RunError
from roboyard.geometry.arrays import Array
from roboyard.manipulation.collision.clearance import free_line, look
from roboyard.manipulation.planning.errors import BudgetSpent, Cancelled
from roboyard.manipulation.planning.problem import CHUNK, Found, Problem, Stop

NAMES: Final = (
    "RRTConnect", "RRT", "RRTstar", "InformedRRTstar", "BITstar", "KPIECE1", "BKPIECE1", "LBKPIECE1", "FMT", "BFMT"
)  # fmt: skip
"""As OMPL calls them."""


@dataclass(frozen=True)
class OmplPlanner:
    """A planner of OMPL's.

    Those that go on improving a way (RRTstar, InformedRRTstar, BITstar) use their whole budget.

    Attributes:
        name: One of `NAMES`.
    """

    name: str

    def solve(self, problem: Problem, rng: np.random.Generator, budget: int, stop: Stop) -> Found:
        """See `Planner`; the budget counts how often the planner asks whether to go on."""
        from ompl import base, geometric, util

        util.setLogLevel(util.LOG_NONE)
        # Generators that are made from now on draw from this seed.
        util.RNG.setSeed(int(rng.integers(1, 2**31)))
        dof = len(problem.start)
        space = base.RealVectorStateSpace(dof)
        bounds = base.RealVectorBounds(dof)
        for k, (low, high) in enumerate(zip(*problem.ranges, strict=True)):
            bounds.setLow(k, float(low))
            bounds.setHigh(k, float(high))
        space.setBounds(bounds)
        setup = geometric.SimpleSetup(space)
        information = setup.getSpaceInformation()
        setup.setStateValidityChecker(_validity(problem))
        information.setMotionValidator(_motions(base, information, problem))
        setup.setStartState(_state(space, problem.start))
        goal = base.GoalStates(information)
        for state in problem.goals:
            goal.addState(_state(space, state))
        setup.setGoal(goal)
        planner = getattr(geometric, self.name)(information)
        setup.setPlanner(planner)
        counter = _Counter(setup, budget, stop)
        setup.solve(base.PlannerTerminationCondition(counter))
        if counter.failure is not None:
            raise RunError(f"OMPL's {self.name}: {counter.failure}")
        if counter.cancelled:
            raise Cancelled("the search was ended", valid="another start")
        if not setup.haveExactSolutionPath():
            raise BudgetSpent(
                f"{self.name} found no way in {counter.asked} rounds",
                valid="a larger budget, or a goal that can be reached",
            )
        states = setup.getSolutionPath().getStates()
        points = np.array([[state[k] for k in range(dof)] for state in states])
        return Found(points, counter.asked)


class _Counter:
    """Ends the search after so many questions, when a way is known, or when somebody says so."""

    def __init__(self, setup: Any, budget: int, stop: Stop) -> None:
        self._setup, self._budget, self._stop = setup, budget, stop
        self.asked, self.cancelled = 0, False
        self.failure: str | None = None

    def __call__(self) -> bool:
        self.asked += 1
        if self.asked % CHUNK == 0 and self._stop():
            self.cancelled = True
        return self.cancelled or self.asked > self._budget or bool(self._setup.haveExactSolutionPath())


def _state(space: Any, values: Array) -> Any:
    state = space.allocState()
    for k, value in enumerate(values.tolist()):
        state[k] = value
    return state


def _validity(problem: Problem) -> Callable[[Any], bool]:
    bodies, work, dof = problem.scene.bodies, problem.work, len(problem.start)
    q = np.empty(dof)

    def valid(state: Any) -> bool:
        for k in range(dof):
            q[k] = state[k]
        work.pace[:] = 0.0
        work.pair_pace[:] = 0.0
        return bool(look(bodies, q, 0.0, work) >= 0.0)

    return valid


def _motions(base: Any, information: Any, problem: Problem) -> Any:
    """Ways are judged as ours are: free everywhere or not."""
    bodies, work, dof = problem.scene.bodies, problem.work, len(problem.start)
    a, b = np.empty(dof), np.empty(dof)

    class Motions(base.MotionValidator):  # type: ignore[misc]
        def checkMotion(self, first: Any, last: Any, *_: Any) -> bool:  # OMPL's name
            for k in range(dof):
                a[k], b[k] = first[k], last[k]
            return bool(free_line(bodies, work, a, b))

    return Motions(information)
