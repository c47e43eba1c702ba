"""Inverse kinematics: joints for a tool's pose, or its place and direction; the way is chosen by the chain."""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import lru_cache
from itertools import product

import numpy as np
from numpy.typing import ArrayLike, NDArray

from roboyard.chains.chain import Chain
from roboyard.chains.rows import Rows, place_frames, place_tips
from roboyard.compute import expect_kernels, read_only
from roboyard.config import check
from roboyard.errors import InputError
from roboyard.geometry import SE3
from roboyard.manipulation.kinematics.branches import MOST, OUT_OF_LIMITS, all_parallel, all_spherical, error_at
from roboyard.manipulation.kinematics.goals import (
    Aim,
    Cause,
    IkBatch,
    IkSettings,
    IkSolution,
    Nearest,
    matrix_of,
    poses,
    unit,
)
from roboyard.manipulation.kinematics.refine import Wish
from roboyard.manipulation.kinematics.search import nearest, search
from roboyard.manipulation.kinematics.structure import Form, form_of

Array = NDArray[np.float64]
_POSE = np.zeros(3)
"""The direction in a `Wish` for a whole pose."""
_TURNS = 4096
"""Solutions that differ by whole turns are listed up to this number."""
_SLIDE = 1.0
"""Where a sliding joint without limits is looked for: as far to both sides [m]."""
_DEFAULT = IkSettings()


def expect_ik(chain: Chain) -> None:
    """Have the kernels compiled ahead that `solve_ik` is going to call for a chain."""
    expect_kernels(place_frames, place_tips, error_at)
    form = form_of(chain)
    if form is None:
        expect_kernels(search)
    else:
        expect_kernels(all_parallel if form.code else all_spherical)


def solve_ik(
    chain: Chain, goal: SE3 | Aim | ArrayLike, near: ArrayLike | None = None, settings: IkSettings = _DEFAULT
) -> IkSolution:
    """Joints that put the tool where it is wanted; all that there are where a closed form is known.

    A closed form is known of six turning joints with a wrist whose axes meet, or with three parallel axes and two that
    meet, from either end; and of five with three parallel ones.  Other chains are searched.

    Args:
        chain: To the tool.
        goal: Pose of the tool in the chain's base, as ``SE3`` or (4, 4), or an `Aim`.
        near: (n,) joints to which solutions shall be near, as the present ones; else the middles of their ranges.
        settings: Tolerances, and how hard to search.

    Returns:
        Solutions, the nearest first, those that differ by whole turns within the limits among them.  Of an `Aim` that
        can be met in endlessly many ways, a sample.  If there are none: why, and what comes nearest to the wish.

    Raises:
        InputError: goal or joints are not finite or of the wrong shape.
        ConfigError: a setting is out of range.
    """
    check(settings, "settings")
    T, around = matrix_of(goal), _near(chain, near)
    tool_axis = unit(goal.tool_axis, "tool_axis") if isinstance(goal, Aim) else _POSE
    wish = Wish(T, tool_axis, np.array([1.0, settings.metres_per_radian]))
    tolerance = np.array([settings.tolerance, settings.turn_tolerance])
    form = form_of(chain)
    free_roll = isinstance(goal, Aim) and _rolls_last(chain, tool_axis)
    if form is not None and (not isinstance(goal, Aim) or free_roll or chain.dof == 6):
        goals = _rolled(T, tool_axis, settings.rolls) if isinstance(goal, Aim) else T[None]
        method = form.name
        branches, counts, states = _closed(chain, form, goals, around, wish, tolerance)
        found = np.concatenate([rows[:count] for rows, count in zip(branches, counts, strict=True)])
        beyond = bool((states == OUT_OF_LIMITS).any())
        if free_roll:
            found[:, -1] = np.clip(around[-1], chain.lower[-1], chain.upper[-1])
    else:
        method, beyond = "search", False
        out = np.empty((settings.solutions, chain.dof))
        seeds = _seeds(chain, around, settings.seed, settings.restarts)
        count, _ = search(chain.rows, wish, tolerance, seeds, settings.solutions, settings.steps, out)
        found = out[:count]
    if len(found) > 0:
        found = _with_turns(chain, found, around)
        return IkSolution(found, np.array([_errors(chain.rows, wish, q) for q in found]), method)
    cause = _cause(chain, wish, tolerance, settings, beyond=beyond)
    return IkSolution(found, np.empty((0, 2)), method, cause, _nearest(chain, wish, around, settings))


def solve_ik_batch(
    chain: Chain, goals: ArrayLike, near: ArrayLike | None = None, settings: IkSettings = _DEFAULT
) -> IkBatch:
    """Joints for many poses: of each all branches of a closed form, or as many as ``settings.solutions`` searched for.

    Of joints that can turn by more than a turn only the nearest angle is given.

    Args:
        chain: To the tool.
        goals: (k, 4, 4) poses of the tool in the chain's base.
        near: (n,), or (k, n) for each its own.
        settings: As for `solve_ik`.

    Raises:
        InputError, ConfigError: as `solve_ik`.
    """
    check(settings, "settings")
    T = poses(goals, 3)
    around = np.broadcast_to(_near(chain, near, len(T)), (len(T), chain.dof))
    tolerance = np.array([settings.tolerance, settings.turn_tolerance])
    weights = np.array([1.0, settings.metres_per_radian])
    form = form_of(chain)
    if form is not None:
        branches, counts, states = _closed(chain, form, T, around, Wish(T[:1], _POSE, weights), tolerance)
        branches[np.arange(branches.shape[1]) >= counts[:, None]] = np.nan
        return IkBatch(branches, counts, states == OUT_OF_LIMITS, form.name)
    branches = np.full((len(T), settings.solutions, chain.dof), np.nan)
    counts = np.zeros(len(T), dtype=np.int64)
    seeds = np.array(_seeds(chain, around[0] if len(T) else _near(chain, None), settings.seed, settings.restarts))
    for k, goal in enumerate(T):
        seeds[0] = np.clip(around[k], chain.lower, chain.upper)
        wish = Wish(goal, _POSE, weights)
        counts[k], _ = search(chain.rows, wish, tolerance, seeds, settings.solutions, settings.steps, branches[k])
        order = np.argsort(np.square(branches[k, : counts[k]] - around[k]).sum(axis=1), kind="stable")
        branches[k, : counts[k]] = branches[k, order]
    return IkBatch(branches, counts, np.zeros(len(T), dtype=np.bool_), "search")


def _closed(
    chain: Chain, form: Form, goals: Array, near: Array, wish: Wish, tolerance: Array
) -> tuple[Array, NDArray[np.int64], NDArray[np.int64]]:
    """Branches (k, 8, n), how many of each count, and what became of the goals."""
    solve: Callable[..., None] = all_parallel if form.code else all_spherical
    out = np.empty((len(goals), MOST, chain.dof))
    counts, states = np.empty(len(goals), dtype=np.int64), np.empty(len(goals), dtype=np.int64)
    around = read_only(np.ascontiguousarray(np.broadcast_to(near, (len(goals), chain.dof))))
    solve(
        form.arm,
        form.backwards,
        chain.rows,
        goals,
        around,
        wish.direction,
        wish.weights,
        tolerance,
        out,
        counts,
        states,
    )
    return out, counts, states


def _near(chain: Chain, near: ArrayLike | None, count: int | None = None) -> Array:
    """Joints (n,), or where ``count`` goals are asked for also (count, n). Raises InputError."""
    if near is None:
        low, high = _range(chain)
        return 0.5 * (low + high)
    values = chain.positions(near)
    if values.ndim == 2 and len(values) != count:
        raise InputError(
            f"near of shape {values.shape}",
            where=chain.robot,
            valid=f"({chain.dof},)" if count is None else f"({chain.dof},) or ({count}, {chain.dof})",
        )
    return values


def _range(chain: Chain) -> tuple[Array, Array]:
    """Finite bounds in which to look."""
    wide = np.where(chain.turning, math.pi, _SLIDE)
    low = np.where(np.isfinite(chain.lower), chain.lower, np.minimum(-wide, chain.upper - 2.0 * wide))
    high = np.where(np.isfinite(chain.upper), chain.upper, np.maximum(wide, low + 2.0 * wide))
    return low, high


@lru_cache(maxsize=32)
def _samples(chain: Chain, seed: int, count: int) -> Array:
    low, high = _range(chain)
    drawn = np.random.default_rng(seed).uniform(low, high, (count, chain.dof))
    drawn.flags.writeable = False
    return drawn


def _seeds(chain: Chain, near: Array, seed: int, count: int) -> Array:
    drawn = _samples(chain, seed, count).copy()
    drawn[0] = np.clip(near, chain.lower, chain.upper)
    return drawn


def _rolls_last(chain: Chain, tool_axis: Array) -> bool:
    """Whether the last joint turns the tool about its direction, and moves nothing else."""
    rows = chain.rows
    along = rows.T_tip[:3, :3].T @ (0.0, 0.0, 1.0)
    alone = rows.source[-1] == chain.dof - 1 and (rows.source[:-1] != chain.dof - 1).all() and rows.turn[-1] == 1.0
    on_axis = np.hypot(*rows.T_tip[:2, 3]) < 1e-9
    return bool(alone and on_axis and rows.slide[-1] == 0.0 and np.linalg.norm(np.cross(along, tool_axis)) < 1e-9)


def _rolled(T: Array, tool_axis: Array, count: int) -> Array:
    """Poses (count, 4, 4) at which the tool's direction is the third column of T, each rolled another way."""
    axis = np.cross(tool_axis, (0.0, 0.0, 1.0))
    if np.linalg.norm(axis) < 1e-12:
        least = np.eye(3) if tool_axis[2] > 0.0 else np.diag([1.0, -1.0, -1.0])
    else:
        angle = math.acos(min(1.0, max(-1.0, float(tool_axis[2]))))
        least = SE3.exp([0.0, 0.0, 0.0, *(axis / np.linalg.norm(axis) * angle)]).rotation_matrix()
    goals = np.repeat(T[None], count, axis=0)
    for k in range(count):
        goals[k, :3, :3] = (
            T[:3, :3] @ SE3.exp([0.0, 0.0, 0.0, 0.0, 0.0, 2.0 * math.pi * k / count]).rotation_matrix() @ least
        )
    return goals


def _with_turns(chain: Chain, found: Array, near: Array) -> Array:
    """Also what differs by whole turns within the limits; each once, the nearest first."""
    every: list[tuple[float, ...]] = []
    for q in found:
        choices = []
        for i, value in enumerate(q):
            low, high = chain.lower[i], chain.upper[i]
            if not chain.turning[i] or not math.isfinite(low) or not math.isfinite(high):
                choices.append([float(value)])
                continue
            least, most = math.ceil((low - value) / (2 * math.pi)), math.floor((high - value) / (2 * math.pi))
            choices.append([float(value + 2 * math.pi * k) for k in range(min(least, 0), max(most, 0) + 1)])
        if len(every) < _TURNS:
            every += product(*choices)
    solutions = np.array(every)
    solutions = solutions[np.argsort(np.square(solutions - near).sum(axis=1), kind="stable")]
    fresh = [
        k for k in range(len(solutions)) if k == 0 or np.abs(solutions[:k] - solutions[k]).max(axis=1).min() > 1e-6
    ]
    return solutions[fresh]


def _errors(rows: Rows, wish: Wish, q: Array) -> tuple[float, float]:
    """Metres and radians from the goal."""
    error = np.empty(6)
    error_at(rows, wish, np.ascontiguousarray(q), np.empty((len(rows.turn) + 1, 4, 4)), np.empty((4, 4)), error)
    return float(np.linalg.norm(error[:3])), float(np.linalg.norm(error[3:]))


def _cause(chain: Chain, wish: Wish, tolerance: Array, settings: IkSettings, *, beyond: bool) -> Cause:
    """Why nothing was found: by what would be if less were asked."""
    if beyond:
        return Cause.JOINT_LIMITS
    endless = np.full(chain.dof, math.inf)
    unlimited = chain.rows._replace(
        lower=np.where(chain.turning, -endless, chain.lower), upper=np.where(chain.turning, endless, chain.upper)
    )
    place = wish._replace(weights=np.array([1.0, 0.0]))
    anyhow = np.array([tolerance[0], math.inf])
    seeds, out = _samples(chain, settings.seed, settings.restarts), np.empty((1, chain.dof))

    def reached(rows: Rows, asked: Wish, allowed: Array) -> bool:
        return search(rows, asked, allowed, seeds, 1, settings.steps, out)[0] > 0

    if not reached(chain.rows, place, anyhow):
        return Cause.JOINT_LIMITS if reached(unlimited, place, anyhow) else Cause.OUT_OF_REACH
    if form_of(chain) is None and reached(unlimited, wish, tolerance):
        return Cause.JOINT_LIMITS
    return Cause.ORIENTATION if chain.dof < 6 or form_of(chain) is not None else Cause.NOT_FOUND


def _nearest(chain: Chain, wish: Wish, near: Array, settings: IkSettings) -> Nearest:
    samples, q = _seeds(chain, near, settings.seed, settings.samples), np.empty(chain.dof)
    nearest(chain.rows, wish, samples, settings.starts, 4 * settings.steps, q)
    distance, angle = _errors(chain.rows, wish, q)
    return Nearest(q, chain.forward(q), distance, angle, math.hypot(distance, settings.metres_per_radian * angle))
