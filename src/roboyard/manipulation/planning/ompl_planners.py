"""Planners of OMPL over Roboyard's collision kernels.

I. Sucan, M. Moll, L. Kavraki, "The Open Motion Planning Library", IEEE Robotics & Automation Magazine 19(4), 2012.
Only planners that search on one thread are included: OMPL's PRM uses a second one, so that its result would depend on
timing.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import fields
from typing import Any, ClassVar

import numpy as np

from roboyard.config import Config, parameter
from roboyard.geometry.arrays import Array
from roboyard.manipulation.collision.motion_check import certified_free_range, is_line_free
from roboyard.manipulation.errors import MotionBudgetExceededError, PlanningCancelledError
from roboyard.manipulation.planning.planner import STATES_PER_POLL, MotionPlanningProblem, PlannedPath, StopCallback


def _range_parameter() -> Any:
    return parameter(
        0.0,
        low=0.0,
        high=100.0,
        aliases=("range",),
        doc="Maximum length of a motion that is added to the tree, in joint space [rad or m]; 0: OMPL's default, a "
        "fifth of the diameter of the joint space.",
    )


def _goal_bias_parameter() -> Any:
    return parameter(
        0.05, low=0.0, high=1.0, aliases=("goal_bias",), doc="Probability that a goal is sampled instead of a state."
    )


def _border_fraction_parameter() -> Any:
    return parameter(
        0.9,
        low=0.0,
        high=1.0,
        aliases=("border_fraction",),
        doc="Fraction of the time in which cells at the border of the explored space are chosen.",
    )


def _failed_expansion_parameter() -> Any:
    return parameter(
        0.5,
        low=0.001,
        high=1.0,
        aliases=("failed_expansion_score_factor",),
        doc="Factor of the score of a cell in which an expansion failed.",
    )


def _min_valid_path_fraction_parameter(default: float) -> Any:
    return parameter(
        default,
        low=0.0,
        high=1.0,
        aliases=("min_valid_path_fraction",),
        doc="Smallest fraction of a motion that must be collision-free for the motion to be kept in part.",
    )


def _rewire_factor_parameter() -> Any:
    return parameter(
        1.1,
        low=1.0,
        high=10.0,
        aliases=("rewire_factor",),
        doc="Factor of the neighborhood in which paths are improved; more than 1 keeps the planner optimal.",
    )


class OmplPlanner(Config):
    """Base of the planners of OMPL; a subclass names the planner and declares its parameters as OMPL names them.

    ``max_states`` counts how often OMPL polls the termination condition, which is once for each sampled state or
    expanded motion.
    """

    ompl_name: ClassVar[str] = ""

    def solve(
        self, problem: MotionPlanningProblem, rng: np.random.Generator, max_states: int, should_stop: StopCallback
    ) -> PlannedPath:
        """Find a path as `MotionPlanner.solve` states."""
        if (problem.goals == problem.start).all(axis=1).any():  # InformedRRTstar fails on a path of length 0
            return PlannedPath(problem.start[None].copy(), 1)
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
        planner = getattr(geometric, self.ompl_name)(space_information)
        for field in fields(self):
            setter = "set" + "".join(word.capitalize() for word in field.name.split("_"))
            getattr(planner, setter)(getattr(self, field.name))
        setup.setPlanner(planner)
        counter = _TerminationCondition(setup, max_states, should_stop)
        setup.solve(base.PlannerTerminationCondition(counter))
        if counter.is_cancelled:
            raise PlanningCancelledError("the search was cancelled", valid="another start")
        if not setup.haveExactSolutionPath():
            raise MotionBudgetExceededError(
                f"{self.ompl_name} found no path in {counter.n_calls} iterations",
                valid="more states, or a reachable goal",
            )
        states = setup.getSolutionPath().getStates()
        points = np.array([[state[k] for k in range(dof)] for state in states])
        return PlannedPath(points, counter.n_calls)


class OmplRrtConnectPlanner(OmplPlanner):
    """RRT-Connect of OMPL: two trees that grow towards each other.

    Take it to compare with MoveIt, whose default it is.

    OMPL: geometric::RRTConnect; MoveIt: RRTConnectkConfigDefault
    """

    ompl_name = "RRTConnect"
    range: float = _range_parameter()


class OmplRrtPlanner(OmplPlanner):
    """RRT: one tree of random motions from the start, which a goal attracts now and then.

    Take it as the textbook's baseline for other planners.

    OMPL: geometric::RRT; MoveIt: RRTkConfigDefault
    """

    ompl_name = "RRT"
    range: float = _range_parameter()
    goal_bias: float = _goal_bias_parameter()


class OmplRrtStarPlanner(OmplPlanner):
    """RRT*: an RRT that keeps shortening its paths; it uses the whole budget and approaches the shortest path.

    Take it where the length of the path counts more than the time of the search.

    OMPL: geometric::RRTstar; MoveIt: RRTstarkConfigDefault
    """

    ompl_name = "RRTstar"
    range: float = _range_parameter()
    goal_bias: float = _goal_bias_parameter()
    rewire_factor: float = _rewire_factor_parameter()


class OmplInformedRrtStarPlanner(OmplPlanner):
    """Informed RRT*: RRT* that, once it has a path, only samples states that can shorten it.

    Take it instead of `ompl:RRTstar` where a first path is found early; it uses the whole budget, too.

    OMPL: geometric::InformedRRTstar; MoveIt: none in its default file
    """

    ompl_name = "InformedRRTstar"
    range: float = _range_parameter()
    goal_bias: float = _goal_bias_parameter()
    rewire_factor: float = _rewire_factor_parameter()


class OmplBitStarPlanner(OmplPlanner):
    """BIT*: batches of states whose graph is searched in the order of the path length (as A*), and refined.

    Take it for short paths in spaces with few obstacles; it uses the whole budget.

    OMPL: geometric::BITstar; MoveIt: BITstarkConfigDefault
    """

    ompl_name = "BITstar"
    samples_per_batch: int = parameter(
        100, low=1, high=100_000, aliases=("samples_per_batch",), doc="Number of states in each batch."
    )
    rewire_factor: float = _rewire_factor_parameter()


class OmplKpiece1Planner(OmplPlanner):
    """KPIECE: one tree whose growth is guided by a grid of cells over a projection of the joint space.

    Take it for arms with many joints whose free space is a narrow passage.

    OMPL: geometric::KPIECE1; MoveIt: KPIECEkConfigDefault
    """

    ompl_name = "KPIECE1"
    range: float = _range_parameter()
    goal_bias: float = _goal_bias_parameter()
    border_fraction: float = _border_fraction_parameter()
    failed_expansion_cell_score_factor: float = _failed_expansion_parameter()
    min_valid_path_fraction: float = _min_valid_path_fraction_parameter(0.2)


class OmplBkpiece1Planner(OmplPlanner):
    """Bidirectional KPIECE: a tree from the start and one from the goals, each guided as that of KPIECE.

    Take it instead of `ompl:KPIECE1` where the goal lies in a narrow place, too.

    OMPL: geometric::BKPIECE1; MoveIt: BKPIECEkConfigDefault
    """

    ompl_name = "BKPIECE1"
    range: float = _range_parameter()
    border_fraction: float = _border_fraction_parameter()
    failed_expansion_cell_score_factor: float = _failed_expansion_parameter()
    min_valid_path_fraction: float = _min_valid_path_fraction_parameter(0.5)


class OmplLbkpiece1Planner(OmplPlanner):
    """Lazy bidirectional KPIECE: motions are checked for collisions only when they are part of a path.

    Take it where collision checks take most of the time, as with many obstacles.

    OMPL: geometric::LBKPIECE1; MoveIt: LBKPIECEkConfigDefault
    """

    ompl_name = "LBKPIECE1"
    range: float = _range_parameter()
    border_fraction: float = _border_fraction_parameter()
    min_valid_path_fraction: float = _min_valid_path_fraction_parameter(0.5)


class OmplFmtPlanner(OmplPlanner):
    """FMT*: a fixed number of states is connected from the start outwards, in the order of the path length.

    Take it for short paths where the number of states that the free space needs is known.

    OMPL: geometric::FMT; MoveIt: FMTkConfigDefault
    """

    ompl_name = "FMT"
    num_samples: int = parameter(1000, low=1, high=1_000_000, aliases=("num_samples",), doc="Number of states.")
    radius_multiplier: float = parameter(
        1.1, low=0.1, high=50.0, aliases=("radius_multiplier",), doc="Factor of the neighborhood of a state."
    )


class OmplBfmtPlanner(OmplPlanner):
    """Bidirectional FMT*: as `ompl:FMT`, from the start and from the goal at the same time.

    Take it instead of `ompl:FMT` for long paths.

    OMPL: geometric::BFMT; MoveIt: BFMTkConfigDefault
    """

    ompl_name = "BFMT"
    num_samples: int = parameter(1000, low=1, high=1_000_000, aliases=("num_samples",), doc="Number of states.")
    radius_multiplier: float = parameter(
        1.0, low=0.1, high=50.0, aliases=("radius_multiplier",), doc="Factor of the neighborhood of a state."
    )


class _TerminationCondition:
    """Ends the search after a number of polls, when a path is found, or when it is cancelled."""

    def __init__(self, setup: Any, max_calls: int, should_stop: StopCallback) -> None:
        self._setup, self._max_calls, self._should_stop = setup, max_calls, should_stop
        self.n_calls, self.is_cancelled = 0, False

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
