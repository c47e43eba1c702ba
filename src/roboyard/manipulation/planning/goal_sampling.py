"""Random goals and joint jogs of an arm that are known to be feasible."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from roboyard.errors import InputError
from roboyard.geometry import SE3
from roboyard.geometry.arrays import Array
from roboyard.manipulation.collision import CoalChecker
from roboyard.manipulation.collision.planning_scene import PlanningScene

_BATCH_SIZE = 200
_MAX_BATCHES = 4000
"""Number of batches after which sampling is given up."""
_MAX_CHECKED_STATES = 10_000
"""Number of checked states after which sampling is given up."""
_MAX_JOG_ATTEMPTS = 1000
_MAX_JOG_SPEED = 1.0
"""Maximum speed of a joint [rad/s or m/s]."""
_TIME_MARGIN = 0.1
"""Margin of the duration of a jog, since messages arrive at a rate [s]."""


@dataclass(frozen=True, eq=False)
class SampledGoal:
    """A goal.

    Attributes:
        q: (n,) joint positions of the sampled state.
        T_world_tool: Pose of the tool in this state.
    """

    q: Array
    T_world_tool: SE3


def sample_goal(
    scene: PlanningScene,
    checker: CoalChecker,
    rng: np.random.Generator,
    *,
    region: Array | None = None,
    clearance: float = 0.01,
) -> SampledGoal:
    """Return the pose of the tool in a random collision-free state.

    States are sampled uniformly within the joint limits, and accepted if coal measures enough clearance of the exact
    shapes: neither inverse kinematics nor the planner's own checks influence the goals.

    Args:
        scene: The scene.
        checker: Exact checker of that scene.
        rng: Generator of the states.
        region: (2, 3) minimum and maximum corner of a box in the world that contains the tool [m]; None: anywhere.
        clearance: Minimum distance to collision [m].

    Raises:
        InputError: none of 800,000 states, or of 10,000 with the tool in the region, is accepted; names the most
            frequent
            obstacle.
    """
    chain = scene.chain
    near_pairs: Counter[tuple[str, str]] = Counter()
    for _ in range(_MAX_BATCHES):
        states = chain.sample_positions(rng, _BATCH_SIZE)
        candidates = np.arange(_BATCH_SIZE)
        if region is not None:
            tool_positions = scene.T_world_base @ chain.forward(states)[:, :3, 3]
            candidates = np.flatnonzero(((tool_positions >= region[0]) & (tool_positions <= region[1])).all(axis=1))
        for k in candidates.tolist():
            _, near_pair = checker.signed_distance(states[k], clearance)
            if near_pair is None:
                T = SE3.from_matrix(chain.forward(states[k]))
                return SampledGoal(states[k], scene.T_world_base @ T)
            near_pairs[near_pair] += 1
        if near_pairs.total() >= _MAX_CHECKED_STATES:
            break
    raise InputError(
        "no free state with the tool in "
        f"{'the region' if region is not None else 'space'}{_describe_main_obstacle(near_pairs)}",
        location=scene.semantics.model.name, valid="a region within the arm's reach",
    )  # fmt: skip


def _describe_main_obstacle(near_pairs: Counter[tuple[str, str]]) -> str:
    """Return a text that names the most frequent obstacle; "" if no state was checked."""
    if not near_pairs:
        return ""
    (one, other), count = near_pairs.most_common(1)[0]
    return f": in {count} of {near_pairs.total()} states {one} is at {other}"


@dataclass(frozen=True, slots=True)
class SampledJog:
    """A joint that moves at a speed for a duration.

    Attributes:
        joint_index: Index of the joint in the group.
        speed: [rad/s or m/s].
        duration: Duration [s].
    """

    joint_index: int
    speed: float
    duration: float


def sample_jog(scene: PlanningScene, q: ArrayLike, rng: np.random.Generator, *, stop_delay: float = 0.5) -> SampledJog:
    """Return a random joint, speed and duration with which the joint stays within its limits and the motion is
    collision-free.

    Args:
        scene: The scene.
        q: (n,) joint positions.
        rng: Generator of the jogs.
        stop_delay: Time for which a joint continues after the last command [s].

    Raises:
        InputError: none was found among 1,000.
    """
    chain, positions = scene.chain, scene.chain.as_positions(q)
    for _ in range(_MAX_JOG_ATTEMPTS):
        joint_index = int(rng.integers(chain.dof))
        max_speed = min(float(chain.max_velocity[joint_index]), _MAX_JOG_SPEED)
        jog = SampledJog(
            joint_index,
            float(rng.uniform(0.3, 0.9) * max_speed * rng.choice((-1.0, 1.0))),
            float(rng.uniform(1.0, 2.0)),
        )
        end = positions.copy()
        end[joint_index] += jog.speed * (jog.duration + stop_delay + _TIME_MARGIN)
        if chain.is_within_limits(end) and scene.is_line_free(positions, end):
            return jog
    raise InputError(
        "no joint can be jogged without a collision",
        location=scene.semantics.model.name,
        valid="an arm with free space",
    )
