"""What a planner is asked, what it answers, and who can be asked."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Protocol

import numpy as np

from roboyard.geometry.arrays import Array
from roboyard.manipulation.collision.bodies import Work
from roboyard.manipulation.planning.errors import BudgetSpent, Cancelled
from roboyard.manipulation.planning.trees import FULL, JOINED, grow, joined_path, make_trees, try_straight
from roboyard.manipulation.scene import PlanningScene

Stop = Callable[[], bool]
"""Asked now and then; true ends the search."""
CHUNK = 200
"""States that are drawn between two questions whether to stop."""


@dataclass(frozen=True, eq=False)
class Problem:
    """From a state to one of several.

    Attributes:
        scene: What must not be touched.
        work: Memory of the kernels.
        start: (n,) free.
        goals: (k, n) free, each as good as the others.
        weights: (n,) of the joints in distances.
    """

    scene: PlanningScene
    work: Work
    start: Array
    goals: Array
    weights: Array

    @property
    def ranges(self) -> tuple[Array, Array]:
        """(n,) least and greatest positions that states are drawn from; half a turn more where there is no limit."""
        chain = self.scene.chain
        ends = np.concatenate([self.start[None], self.goals])
        low = np.where(np.isfinite(chain.lower), chain.lower, ends.min(axis=0) - math.pi)
        high = np.where(np.isfinite(chain.upper), chain.upper, ends.max(axis=0) + math.pi)
        return np.ascontiguousarray(low), np.ascontiguousarray(high)


@dataclass(frozen=True, eq=False)
class Found:
    """A way.

    Attributes:
        points: (k, n) states joined by straight lines.
        states: How many states the search kept.
    """

    points: Array
    states: int


class Planner(Protocol):
    """Finds ways.  It has a budget of states to draw, never of seconds."""

    def solve(self, problem: Problem, rng: np.random.Generator, budget: int, stop: Stop) -> Found:
        """A way that touches nothing.

        Raises:
            BudgetSpent: none was found with this budget.
            Cancelled: ``stop`` said so.
        """
        ...


@dataclass(frozen=True)
class Connect:
    """Two trees that grow towards each other, in compiled code; straight to the goal where nothing is in the way.

    Attributes:
        step: A tree grows by so much at once, in the weighted space of the joints.
    """

    step: float = 1.3

    def solve(self, problem: Problem, rng: np.random.Generator, budget: int, stop: Stop) -> Found:
        """See `Planner`."""
        bodies, work = problem.scene.bodies, problem.work
        low, high = problem.ranges
        trees = make_trees(problem.start, problem.goals, 4 * budget + 16)
        status = try_straight(bodies, work, trees, problem.weights)
        left = budget
        while status != JOINED and status != FULL and left > 0:
            if stop():
                raise Cancelled("the search was ended", valid="another start")
            some = min(left, CHUNK)
            status = grow(bodies, work, trees, rng, low, high, problem.weights, self.step, some)
            left -= some
        if status != JOINED:
            raise BudgetSpent(
                f"no way was found with {budget} states drawn", valid="a larger budget, or a goal that can be reached"
            )
        return Found(joined_path(trees), int(trees.grown.sum()))
