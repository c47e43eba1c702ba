"""Motion planners: their interface, the RRT-Connect planner, and repair of the start state."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Protocol

import numpy as np
from numpy.typing import ArrayLike

from roboyard.errors import InputError
from roboyard.geometry.arrays import Array
from roboyard.manipulation.collision.collision_model import CollisionWorkspace
from roboyard.manipulation.collision.planning_scene import PlanningScene
from roboyard.manipulation.errors import (
    MotionBudgetExceededError,
    PlanningCancelledError,
    StartInCollisionError,
    StartOutsideLimitsError,
)
from roboyard.manipulation.planning.rrt_connect import (
    CONNECTED,
    TREE_FULL,
    connect_straight,
    extract_path,
    grow_trees,
    make_trees,
)

StopCallback = Callable[[], bool]
"""Polled during the search; True ends it."""
STATES_PER_POLL = 200
"""Number of states that are sampled between two polls of the stop callback."""


@dataclass(frozen=True, eq=False)
class MotionPlanningProblem:
    """A start state and several goal states in a scene.

    Attributes:
        scene: The scene.
        workspace: Workspace of the collision kernels.
        start: (n,) collision-free start state.
        goals: (k, n) collision-free goal states; each is equally good.
        weights: (n,) weights of the joints in distances.
    """

    scene: PlanningScene
    workspace: CollisionWorkspace
    start: Array
    goals: Array
    weights: Array

    @property
    def sampling_bounds(self) -> tuple[Array, Array]:
        """(n,) minimum and maximum positions of sampled states; joints without limits get half a turn beyond start and
        goals.
        """
        chain = self.scene.chain
        ends = np.concatenate([self.start[None], self.goals])
        low = np.where(np.isfinite(chain.lower), chain.lower, ends.min(axis=0) - math.pi)
        high = np.where(np.isfinite(chain.upper), chain.upper, ends.max(axis=0) + math.pi)
        return np.ascontiguousarray(low), np.ascontiguousarray(high)


@dataclass(frozen=True, eq=False)
class PlannedPath:
    """A collision-free path.

    Attributes:
        points: (k, n) states joined by straight lines.
        n_states: Number of states in the search trees.
    """

    points: Array
    n_states: int


class MotionPlanner(Protocol):
    """A planner that finds collision-free paths. Its budget is a number of states, never a time."""

    def solve(
        self, problem: MotionPlanningProblem, rng: np.random.Generator, max_states: int, should_stop: StopCallback
    ) -> PlannedPath:
        """Find a collision-free path.

        Raises:
            MotionBudgetExceededError: no path was found with this number of states.
            PlanningCancelledError: the search was cancelled.
        """
        ...


@dataclass(frozen=True)
class RrtConnectPlanner:
    """RRT-Connect: two trees that grow towards each other, or a straight path if that is collision-free.

    Attributes:
        step: Maximum length of an extension, in the weighted joint space.
    """

    step: float = 1.3

    def solve(
        self, problem: MotionPlanningProblem, rng: np.random.Generator, max_states: int, should_stop: StopCallback
    ) -> PlannedPath:
        """See `MotionPlanner`."""
        collision, workspace = problem.scene.collision_arrays, problem.workspace
        low, high = problem.sampling_bounds
        trees = make_trees(problem.start, problem.goals, 4 * max_states + 16)
        status = connect_straight(collision, workspace, trees, problem.weights)
        n_remaining = max_states
        while status != CONNECTED and status != TREE_FULL and n_remaining > 0:
            if should_stop():
                raise PlanningCancelledError("the search was cancelled", valid="another start")
            n_samples = min(n_remaining, STATES_PER_POLL)
            status = grow_trees(collision, workspace, trees, rng, low, high, problem.weights, self.step, n_samples)
            n_remaining -= n_samples
        if status != CONNECTED:
            raise MotionBudgetExceededError(
                f"no path was found with {max_states} sampled states", valid="more states, or a reachable goal"
            )
        return PlannedPath(extract_path(trees), int(trees.n_nodes.sum()))


_N_SHELLS = 10
"""Number of shells around the start that are searched, from near to far."""
_SAMPLES_PER_SHELL = 200
"""Number of states that are sampled in each shell."""
_MEASUREMENT_NOISE = 1e-3
"""Measured positions may exceed a joint's limit by this much [rad or m]."""


def find_free_start(
    scene: PlanningScene, start: ArrayLike, max_repair: float, rng: np.random.Generator
) -> tuple[Array, float]:
    """Return a collision-free state within the limits, and the maximum change of a joint from the start.

    Args:
        scene: The scene.
        start: (n,) start state.
        max_repair: Maximum change of a joint [rad or m].
        rng: Generator of the sampled states.

    Raises:
        StartOutsideLimitsError: a joint is farther outside its limits.
        StartInCollisionError: no collision-free state was found so near.
        InputError: the start is not a state of the chain.
    """
    chain = scene.chain
    q = chain.as_positions(start)
    if q.ndim != 1:
        raise InputError(f"a start of shape {q.shape}", valid=f"({chain.dof},)")
    clipped = np.clip(q, chain.lower, chain.upper)
    excess = np.abs(q - clipped)
    if excess.max() > max(max_repair, _MEASUREMENT_NOISE):
        k = int(np.argmax(excess))
        raise StartOutsideLimitsError(
            f"the start has {chain.joints[k]} at {q[k]:g}", valid=f"{chain.lower[k]:g} to {chain.upper[k]:g}"
        )
    pair = scene.find_contact(clipped)
    if pair is None:
        return clipped, float(excess.max())
    for shell in range(1, _N_SHELLS + 1) if max_repair > 0.0 else ():
        samples = clipped + max_repair * shell / _N_SHELLS * rng.uniform(-1.0, 1.0, (_SAMPLES_PER_SHELL, chain.dof))
        samples = np.clip(samples, chain.lower, chain.upper)
        changes = np.abs(samples - q).max(axis=1)
        free = [k for k, found in enumerate(scene.find_contacts(samples)) if found is None and changes[k] <= max_repair]
        if free:
            best = min(free, key=lambda k: float(changes[k]))
            return samples[best], float(changes[best])
    raise StartInCollisionError(
        f"at the start {pair[0]} touches {pair[1]}",
        valid=f"a collision-free start, or a start repair of more than {max_repair:g}",
        pair=pair,
    )
