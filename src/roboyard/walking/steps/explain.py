"""Why there is no plan: what the body would have to cross, and cannot, whatever its feet do."""

from __future__ import annotations

from typing import Final

import numpy as np
from scipy.ndimage import binary_dilation, label

from roboyard.walking.steps.guide import passable
from roboyard.walking.steps.problem import Problem

_NAMED: Final = 8


def barrier(problem: Problem) -> list[tuple[int, int]] | None:
    """Cells, the nearest to the goal first, at which all that can be reached from the start ends; None if none does."""
    free = passable(problem.rig, problem.ground)
    ground = problem.ground
    start, goal = (ground.cell_at(float(x), float(y)) for x, y in (problem.start, problem.goal))
    parts, _ = label(free, structure=np.ones((3, 3)))
    if parts[start] == parts[goal] != 0:
        return None
    mine = parts == parts[start] if parts[start] else np.zeros(free.shape, np.bool_)
    mine[start] = True
    rim = np.argwhere(binary_dilation(mine, structure=np.ones((3, 3), np.bool_)) & ~mine)
    order = np.argsort(np.hypot(*(rim - goal).T), kind="stable")
    return [(int(r), int(c)) for r, c in rim[order[:_NAMED]]]
