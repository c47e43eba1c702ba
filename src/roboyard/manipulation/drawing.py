"""Goals for an arm, drawn at random: poses of states that are free, so that each can be reached."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from roboyard.errors import InputError
from roboyard.geometry import SE3
from roboyard.manipulation.collision import ExactChecker
from roboyard.manipulation.collision.obstacles import Array
from roboyard.manipulation.scene import PlanningScene

_CHUNK = 200
_MOST = 4000
"""Chunks that are drawn before giving up."""


@dataclass(frozen=True, eq=False)
class Drawn:
    """A goal.

    Attributes:
        q: (n,) joints of the state it was drawn from.
        T_world_tool: The tool's pose there.
    """

    q: Array
    T_world_tool: SE3


def draw_goal(
    scene: PlanningScene,
    checker: ExactChecker,
    rng: np.random.Generator,
    *,
    region: Array | None = None,
    clearance: float = 0.01,
) -> Drawn:
    """A pose of the tool that some free state of the joints has.

    States are drawn uniformly within the joints' limits, and kept where the exact shapes are clear of everything, as
    coal measures it: neither inverse kinematics nor the planner's own checks have a say in what is asked of them.

    Args:
        scene: The arm and what must not be touched.
        checker: Of that scene.
        rng: Draws.
        region: (2, 3) least and greatest corner of a box in the world where the tool shall be [m]; None: anywhere.
        clearance: Everything is at least so far apart [m].

    Raises:
        InputError: no such state was found among 800,000.
    """
    chain = scene.chain
    for _ in range(_MOST):
        states = chain.random(rng, _CHUNK)
        kept = np.arange(_CHUNK)
        if region is not None:
            places = scene.T_world_base @ chain.forward(states)[:, :3, 3]
            kept = np.flatnonzero(((places >= region[0]) & (places <= region[1])).all(axis=1))
        for k in kept.tolist():
            if checker.distance(states[k], clearance)[0] >= clearance:
                T = SE3.from_matrix(chain.forward(states[k]))
                return Drawn(states[k], scene.T_world_base @ T)
    raise InputError(
        f"no free state with the tool in {'the region' if region is not None else 'space'}",
        where=scene.groups.model.name, valid="a region that the arm reaches",
    )  # fmt: skip
