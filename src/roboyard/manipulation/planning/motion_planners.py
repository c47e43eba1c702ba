"""Motion planners by name: those of Roboyard and of OMPL, and those that installed packages register.

`MOTION_PLANNERS` holds classes that fulfill the contract `MotionPlanner`.  A package adds its own as entry points of
the group ``roboyard.motion_planners``.  The reference page shows the docstring of each class: what the planner is, when
to take it, and its name in OMPL and MoveIt.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import is_dataclass
from typing import Any, ClassVar, Final

import numpy as np

from roboyard.config import Config, load, parameter
from roboyard.config.registry import Registry
from roboyard.errors import ConfigError
from roboyard.manipulation.errors import MotionBudgetExceededError, PlanningCancelledError
from roboyard.manipulation.planning.constrained_rrt import plan_constrained_path
from roboyard.manipulation.planning.planner import (
    STATES_PER_POLL,
    MotionPlanner,
    MotionPlanningProblem,
    PlannedPath,
    StopCallback,
)
from roboyard.manipulation.planning.rrt_connect import (
    CONNECTED,
    TREE_FULL,
    RrtParameters,
    connect_straight,
    extract_path,
    grow_trees,
    make_trees,
)

MOTION_PLANNERS: Registry[type[MotionPlanner]] = Registry("planner", group="roboyard.motion_planners")

DEFAULT_PLANNER: Final = "rrt_connect"
"""Name of the planner that is used unless another one is named."""


def make_planner(name: str, settings: Mapping[str, Any] | None = None) -> MotionPlanner:
    """Return the planner of a name.

    Args:
        name: Name in `MOTION_PLANNERS`.
        settings: Settings of the planner by name; None: the defaults.

    Raises:
        UnknownNameError: There is no planner of that name.
        ConfigError: A setting is unknown, of the wrong type or out of its bounds.
    """
    planner_class: Any = MOTION_PLANNERS[name]
    planner: Any
    if is_dataclass(planner_class):
        planner = load(planner_class, settings or {}, source_name=f"planner {name}")  # type: ignore[arg-type]
    elif settings:
        raise ConfigError("takes no settings", location=f"planner {name}", valid="no settings")
    else:
        planner = planner_class()
    motion_planner: MotionPlanner = planner
    return motion_planner


class RrtConnectPlanner(Config):
    """RRT-Connect in compiled kernels: a tree from the start and one from all goals grow towards each other.

    Take it for every problem; it is the default, the fastest, and the only one that keeps an axis constraint.

    OMPL: geometric::RRTConnect; with a constraint ompl::base::ProjectedStateSpace; MoveIt: RRTConnectkConfigDefault
    """

    supports_axis_constraint: ClassVar[bool] = True

    step: float = parameter(
        1.3,
        low=0.001,
        high=100.0,
        aliases=("range",),
        doc="Maximum length of an extension, in joint space with the slowest joint weighted 1 [rad or m].",
    )

    def solve(
        self, problem: MotionPlanningProblem, rng: np.random.Generator, max_states: int, should_stop: StopCallback
    ) -> PlannedPath:
        """Find a path as `MotionPlanner.solve` states: the straight line if it is collision-free, else by the trees."""
        if problem.constraint is not None:
            return plan_constrained_path(problem, problem.constraint, rng, max_states, should_stop)
        collision, workspace = problem.scene.collision_arrays, problem.workspace
        parameters = RrtParameters(*problem.sampling_bounds, problem.weights, self.step, 0.0)
        trees = make_trees(problem.start, problem.goals, 4 * max_states + 16)
        status = connect_straight(collision, workspace, trees, problem.weights)
        n_remaining = max_states
        while status != CONNECTED and status != TREE_FULL and n_remaining > 0:
            if should_stop():
                raise PlanningCancelledError("the search was cancelled", valid="another start")
            n_samples = min(n_remaining, STATES_PER_POLL)
            status = grow_trees(collision, workspace, trees, rng, parameters, n_samples)
            n_remaining -= n_samples
        if status != CONNECTED:
            raise MotionBudgetExceededError(
                f"no path was found with {max_states} sampled states", valid="more states, or a reachable goal"
            )
        return PlannedPath(extract_path(trees), int(trees.n_nodes.sum()))
