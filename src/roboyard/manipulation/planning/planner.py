"""Contract of motion planners: `MotionPlanner`, with the problem that it gets and the path that it returns."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Protocol

import numpy as np

from roboyard.geometry.arrays import Array
from roboyard.manipulation.collision.collision_model import CollisionWorkspace
from roboyard.manipulation.collision.planning_scene import PlanningScene
from roboyard.manipulation.planning.axis_constraint import AxisConstraint

StopCallback = Callable[[], bool]
"""Function that a planner polls during the search; it returns True when the search shall end."""
STATES_PER_POLL = 200
"""Largest number of states that a planner samples between two polls of the stop callback."""


@dataclass(frozen=True, eq=False)
class MotionPlanningProblem:
    """A start state and goal states of a planning group in a scene (OMPL's ProblemDefinition).

    A state is an array (n,) of the positions of the group's joints, in the order of ``scene.chain.joints`` [rad or m].

    Attributes:
        scene: The planning scene; ``scene.collision_arrays`` is its collision model for the kernels of
            `roboyard.manipulation.collision.motion_check`, ``scene.is_line_free`` checks single motions.
        workspace: Memory that the collision kernels write to; a planner may use it.
        start: (n,) start state, collision-free and within the joint limits.
        goals: (k, n) goal states, at least one, all collision-free and within the joint limits; the planner may choose
            any of them.
        weights: (n,) weights of the joints in distances between states.
        constraint: Axis constraint of the whole path; None: there is none.  Only planners whose
            ``supports_axis_constraint`` is true get problems with a constraint; start and goals fulfill it.
    """

    scene: PlanningScene
    workspace: CollisionWorkspace
    start: Array
    goals: Array
    weights: Array
    constraint: AxisConstraint | None = None

    @property
    def sampling_bounds(self) -> tuple[Array, Array]:
        """(n,) minimum and maximum positions of sampled states: the joint limits.

        A joint without limits may move by half a revolution beyond start and goals.
        """
        chain = self.scene.chain
        ends = np.concatenate([self.start[None], self.goals])
        low = np.where(np.isfinite(chain.lower), chain.lower, ends.min(axis=0) - math.pi)
        high = np.where(np.isfinite(chain.upper), chain.upper, ends.max(axis=0) + math.pi)
        return np.ascontiguousarray(low), np.ascontiguousarray(high)


@dataclass(frozen=True, eq=False)
class PlannedPath:
    """A collision-free path of straight lines in joint space.

    Attributes:
        points: (k, n) states from the start to a goal; the lines between them are collision-free.  One state suffices
            if the start is a goal.
        n_states: Number of states that the planner sampled or stored, for statistics.
    """

    points: Array
    n_states: int


class MotionPlanner(Protocol):
    """Contract of a planner of collision-free paths, as ompl::base::Planner behind MoveIt's planning interface.

    `plan_motion` repairs the start state, computes the goal states from poses, calls `solve`, and then shortens,
    blends and times the path.  So a planner only searches: it gets states and returns a path of straight lines.

    A planner computes each path from its arguments and its own settings alone.  It keeps no state between calls that
    changes a result, takes all random numbers from ``rng``, and starts no thread: the same problem and the same state
    of the generator give the same path to the last bit.  It changes neither the scene nor the arrays of the problem,
    except ``problem.workspace``.

    A planner whose class attribute ``supports_axis_constraint`` is true also solves problems with a constraint: each
    state of its path, sampled every `CHECK_SPACING`, fulfills it.  The attribute may be missing; then it is false.

    The entry points of the group ``roboyard.motion_planners`` name classes that fulfill this contract.  A class that
    derives from `roboyard.config.Config` declares its settings with `roboyard.config.parameter`.
    `roboyard.manipulation.check_motion_planner` tests a planner against this contract.
    """

    def solve(
        self, problem: MotionPlanningProblem, rng: np.random.Generator, max_states: int, should_stop: StopCallback
    ) -> PlannedPath:
        """Find a collision-free path from the start to one of the goals.

        Args:
            problem: Start and goals.
            rng: Generator of all random numbers of the search.
            max_states: Budget of the search: the number of states that it may sample, at least 1.  The budget is never
                a time, so that the result does not depend on the speed of the computer.
            should_stop: Polled at least once for every `STATES_PER_POLL` sampled states; when it returns True, the
                planner ends at once.

        Returns:
            The path.  Its first state is the start, its last one a goal, both to the last bit.  All states are within
            the sampling bounds of the problem.  Every motion between successive states keeps half of the scene's
            margin from all obstacles, as the kernel `is_line_free` certifies.

        Raises:
            MotionBudgetExceededError: No path was found within the budget (cause ``budget_spent``).  A planner never
                returns an approximate path instead.
            PlanningCancelledError: ``should_stop`` returned True (cause ``cancelled``).
        """
        ...


def supports_axis_constraint(planner: MotionPlanner) -> bool:
    """Return whether a planner solves problems with an axis constraint."""
    return bool(getattr(planner, "supports_axis_constraint", False))
