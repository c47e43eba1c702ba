"""Ways along which an axis of the tool keeps its direction."""

from __future__ import annotations

import numpy as np

from roboyard.geometry.arrays import Array
from roboyard.manipulation.planning.constraints import KeepAxis, grow_kept, kept_line, shorten_kept
from roboyard.manipulation.planning.errors import BudgetSpent, Cancelled, ConstraintBroken
from roboyard.manipulation.planning.problem import CHUNK, Found, Problem, Stop
from roboyard.manipulation.planning.shortening import round_corners
from roboyard.manipulation.planning.trees import JOINED, SEARCHING, joined_path, make_trees
from roboyard.manipulation.timing import Path

STEP = 0.15
"""Between states that are moved to where the axis keeps its direction, in the space of the joints."""
SPACING = 0.02
"""Between states at which it is looked whether it does."""
_ARCS = (0.2, 0.05, 0.01, 0.0)


def keeping_goals(problem: Problem, keep: KeepAxis) -> Problem:
    """The problem with those goals at which the axis has its direction. Raises ConstraintBroken."""
    chain = problem.scene.chain
    lean = float(keep.lean(chain, problem.start)[0])
    if lean > keep.tolerance:
        raise ConstraintBroken(
            f"at the start the tool leans by {lean:.3g} rad", valid=f"at most {keep.tolerance:g} rad"
        )
    leans = keep.lean(chain, problem.goals)
    kept = leans <= keep.tolerance
    if not kept.any():
        raise ConstraintBroken(
            f"at the goal the tool leans by {leans.min():.3g} rad", valid=f"at most {keep.tolerance:g} rad"
        )
    return Problem(problem.scene, problem.work, problem.start, problem.goals[kept], problem.weights)


def keeping_way(problem: Problem, keep: KeepAxis, rng: np.random.Generator, budget: int, stop: Stop) -> Found:
    """A way that touches nothing and keeps the axis: short lines between states.

    Raises:
        BudgetSpent: none was found with so many states drawn.
        Cancelled: ``stop`` said so.
    """
    bodies, work, kept = problem.scene.bodies, problem.work, keep.arrays()
    low, high = problem.ranges
    for goal in problem.goals:
        if kept_line(bodies, work, kept, problem.start, goal, SPACING):
            return Found(np.stack([problem.start, goal]), 2)
    trees = make_trees(problem.start, problem.goals, 20 * budget + 16)
    status, left = SEARCHING, budget
    while status == SEARCHING and left > 0:
        if stop():
            raise Cancelled("the search was ended", valid="another start")
        some = min(left, CHUNK)
        status = grow_kept(bodies, work, kept, trees, rng, low, high, problem.weights, STEP, SPACING, some)
        left -= some
    if status != JOINED:
        raise BudgetSpent(
            f"no way that keeps the tool's axis was found with {budget} states drawn",
            valid="a larger budget or tolerance",
        )
    return Found(joined_path(trees), int(trees.grown.sum()))


def keeping_shortened(problem: Problem, keep: KeepAxis, points: Array, rng: np.random.Generator, tries: int) -> Array:
    """A way (k, n) with detours left out."""
    path = points.copy()
    bodies, work = problem.scene.bodies, problem.work
    count = shorten_kept(bodies, work, keep.arrays(), path, len(path), rng, 5 * tries, SPACING)
    return path[:count].copy()


def keeping_rounded(problem: Problem, keep: KeepAxis, points: Array) -> Path:
    """The way with arcs in its corners that keep the axis too, as large as that allows."""
    chain = problem.scene.chain
    for largest in _ARCS:
        pieces, lengths = round_corners(problem.scene.bodies, problem.work, np.ascontiguousarray(points), largest)
        path = Path.of_pieces(chain.joints, pieces, lengths)
        if float(keep.lean(chain, path.points(SPACING / 2.0)).max()) <= keep.tolerance:
            break
    return path
