"""Straight lines of the tool through space."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np
from numpy.typing import ArrayLike

from roboyard.errors import InputError
from roboyard.geometry import SE3
from roboyard.geometry.arrays import Array
from roboyard.kinematics.ik.numeric_ik import IkTarget, search_from_seeds
from roboyard.manipulation.collision.bodies import make_work
from roboyard.manipulation.collision.clearance import free_line
from roboyard.manipulation.planning.errors import LineBlocked
from roboyard.manipulation.planning.goals import T_base_frame
from roboyard.manipulation.planning.plan import Plan, PlanSettings, rounded, weights_of
from roboyard.manipulation.planning.problem import Problem
from roboyard.manipulation.planning.starting import free_start
from roboyard.manipulation.scene import PlanningScene
from roboyard.manipulation.timing import EffortLimits, JointLimits

_TOLERANCE = np.array([1e-6, 1e-5])
_STEPS = 60


def plan_line(
    scene: PlanningScene,
    start: ArrayLike,
    poses: Sequence[SE3],
    settings: PlanSettings | None = None,
    *,
    frame: str = "base",
    spacing: float = 0.005,
    turn: float = 0.02,
    jump: float = 0.2,
    limits: JointLimits | None = None,
) -> Plan:
    """The tool goes straight from where it is to poses, one after the other, and turns evenly on the way.

    An arm of fewer than six joints keeps the place and the direction of its group's axis; its roll is what it must be.

    Args:
        scene: The arm and what must not be touched.
        start: (n,) where it stands.
        poses: Of the tool.
        settings: Shares of the limits, and the seed.
        frame: Of the poses: base, world, or a link that the group does not move.
        spacing: Between places on the line that are looked at [m].
        turn: Between turns [rad].
        jump: No joint changes by more between two places: else it would have to turn about on the line [rad or m].
        limits: Of the joints; those of the scene's chain unless given.

    Raises:
        LineBlocked: something touches, a joint would jump or comes to its limit, with the share that can be followed.
        StartInCollision, StartOutsideLimits: the start cannot be used.
        EffortError: a joint cannot be moved somewhere on the line.
        InputError: there are no poses, or a spacing is none.
        UnknownNameError: there is no such frame.
    """
    if not poses:
        raise InputError("a line without poses", valid="at least one")
    for name, value in (("spacing", spacing), ("turn", turn), ("jump", jump)):
        if not (value > 0.0 and math.isfinite(value)):
            raise InputError(f"{name} {value}", location="plan_line", valid="more than 0")
    asked, chain = settings or PlanSettings(), scene.chain
    kept = limits or JointLimits.of(chain, speed=asked.speed, acceleration=asked.acceleration)
    begin, _ = free_start(scene, start, 0.0, np.random.default_rng(asked.seed))
    T_base = T_base_frame(scene, frame)
    stations = _stations(SE3.from_matrix(chain.forward(begin)), [T_base @ pose for pose in poses], spacing, turn)
    bodies = scene.bodies
    work = make_work(bodies)
    direction = np.zeros(3)
    if chain.dof < 6:
        direction = np.array(scene.group.axis) / math.hypot(*scene.group.axis)
    states = [begin]
    out = np.empty((1, chain.dof))
    for k, pose in enumerate(stations, 1):
        before, share = states[-1], (k - 1) / len(stations)
        T = pose.matrix()
        if chain.dof < 6:
            T[:3, :3] = _third_column(T[:3, :3] @ direction)
        wish = IkTarget(T, direction, np.array([1.0, 0.1]))
        count, _ = search_from_seeds(chain.arrays, wish, _TOLERANCE, before[None], 1, _STEPS, out)
        if not count:
            raise LineBlocked(
                f"the tool can follow the line for {100 * share:.0f} % of it, then joints end or lose a direction",
                valid="a line within reach", share=share,
            )  # fmt: skip
        q = out[0].copy()
        if float(np.abs(q - before).max()) > jump:
            name = chain.joints[int(np.argmax(np.abs(q - before)))]
            raise LineBlocked(
                f"after {100 * share:.0f} % of the line {name} would jump", valid="another start, or a shorter line",
                share=share,
            )  # fmt: skip
        if not free_line(bodies, work, before, q):
            pair = scene.named(work.who) or ("", "")
            raise LineBlocked(
                f"after {100 * share:.0f} % of the line {pair[0]} touches {pair[1]}", valid="a line that is free",
                share=share,
            )  # fmt: skip
        if float(np.abs(q - before).max()) > 1e-9:
            states.append(q)
    points = np.array(states)
    path = rounded(Problem(scene, work, begin, points[-1:], weights_of(kept)), points)
    length = float(np.linalg.norm(np.diff(points, axis=0), axis=1).sum())
    return Plan(
        path.timed(kept, EffortLimits(scene.dynamics, asked.effort)),
        points,
        0.0,
        length,
        len(points),
        int(work.looks[0]),
        "line",
    )


def _stations(first: SE3, poses: Sequence[SE3], spacing: float, turn: float) -> list[SE3]:
    found, at = [], first
    for pose in poses:
        count = max(1, math.ceil(max(at.distance(pose) / spacing, at.angle_to(pose) / turn)))
        found += [at.interpolate(pose, k / count) for k in range(1, count + 1)]
        at = pose
    return found


def _third_column(axis: Array) -> Array:
    """A rotation whose third column is a direction, as a `IkTarget` for a place and a direction wants it."""
    x = np.cross((0.0, 1.0, 0.0) if abs(axis[1]) < 0.9 else (1.0, 0.0, 0.0), axis)
    x /= np.linalg.norm(x)
    return np.stack([x, np.cross(axis, x), axis], axis=1)
