"""Goals for an arm and ways of single joints, drawn at random so that each can be done."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from roboyard.errors import InputError
from roboyard.geometry import SE3
from roboyard.geometry.arrays import Array
from roboyard.manipulation.collision import ExactChecker
from roboyard.manipulation.scene import PlanningScene

_CHUNK = 200
_MOST = 4000
"""Chunks that are drawn before giving up."""
_MOST_LOOKS = 10_000
"""States that are looked at for contacts before giving up."""
_MOST_JOGS = 1000
_FAST = 1.0
"""No joint is driven faster [rad/s or m/s]."""
_SPARE = 0.1
"""Beyond the time that a joint is driven for: messages come at a rate [s]."""


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
        InputError: no such state was found among 800,000, or 10,000 with the tool in the region; with what was in the
            way most often.
    """
    chain = scene.chain
    near: Counter[tuple[str, str]] = Counter()
    for _ in range(_MOST):
        states = chain.sample_positions(rng, _CHUNK)
        kept = np.arange(_CHUNK)
        if region is not None:
            places = scene.T_world_base @ chain.forward(states)[:, :3, 3]
            kept = np.flatnonzero(((places >= region[0]) & (places <= region[1])).all(axis=1))
        for k in kept.tolist():
            _, who = checker.distance(states[k], clearance)
            if who is None:
                T = SE3.from_matrix(chain.forward(states[k]))
                return Drawn(states[k], scene.T_world_base @ T)
            near[who] += 1
        if near.total() >= _MOST_LOOKS:
            break
    raise InputError(
        f"no free state with the tool in {'the region' if region is not None else 'space'}{_blame(near)}",
        location=scene.groups.model.name, valid="a region that the arm reaches",
    )  # fmt: skip


def _blame(near: Counter[tuple[str, str]]) -> str:
    """What was in the way most often, in words; nothing where no state was looked at."""
    if not near:
        return ""
    (one, other), count = near.most_common(1)[0]
    return f": in {count} of {near.total()} states {one} is at {other}"


@dataclass(frozen=True, slots=True)
class Jog:
    """A joint that is driven at a speed for a while.

    Attributes:
        joint: Its place in the group.
        speed: [rad/s or m/s].
        seconds: How long.
    """

    joint: int
    speed: float
    seconds: float


def draw_jog(scene: PlanningScene, q: ArrayLike, rng: np.random.Generator, *, after: float = 0.5) -> Jog:
    """A joint, a speed and a time, such that the joint stays within its range and nothing comes too near on its way.

    Args:
        scene: The arm and what must not be touched, by its margin.
        q: (n,) where the joints stand.
        rng: Draws.
        after: So long a joint goes on when nobody commands it any more [s].

    Raises:
        InputError: none was found among 1,000.
    """
    chain, here = scene.chain, scene.chain.as_positions(q)
    for _ in range(_MOST_JOGS):
        joint = int(rng.integers(chain.dof))
        most = min(float(chain.max_velocity[joint]), _FAST)
        jog = Jog(joint, float(rng.uniform(0.3, 0.9) * most * rng.choice((-1.0, 1.0))), float(rng.uniform(1.0, 2.0)))
        end = here.copy()
        end[joint] += jog.speed * (jog.seconds + after + _SPARE)
        if chain.is_within_limits(end) and scene.free_line(here, end):
            return jog
    raise InputError("no joint can be driven anywhere", location=scene.groups.model.name, valid="an arm with room")
