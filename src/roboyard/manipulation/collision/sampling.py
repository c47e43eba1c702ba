"""Which pairs of a robot's links need no looking at: found by looking at many random states."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from roboyard.compute import kernel
from roboyard.errors import InputError
from roboyard.geometry.arrays import Array
from roboyard.kinematics.chain_kernels import compute_frames, multiply_transforms
from roboyard.manipulation.collision.bodies import Bodies, Work, make_work, sample_bodies
from roboyard.manipulation.collision.gjk import separation
from roboyard.manipulation.groups import Groups
from roboyard.manipulation.groups.guessing import pair as ordered
from roboyard.manipulation.groups.model import Reason

_ALWAYS = 0.95
"""Links that touch in so many of the states do so by the shapes they were given."""
_NEAR = 0.01
"""Links that have been nearer than this are not called never near [m]."""
_NEAR_BY_ONE = 0.001
"""The same of links that one joint moves against each other: the states lie so close that hardly any is missed [m]."""
_ROUND = 1000
Pair = tuple[str, str]


def found_pairs(
    groups: Groups,
    rng: np.random.Generator,
    states: int = 10_000,
    cancelled: Callable[[], bool] = lambda: False,
) -> dict[Pair, Reason]:
    """Pairs of links, in alphabetical order, that need not be looked at, and why.

    Links that the groups know to be adjacent stay so.  Of the others those that touch in nearly every state of a
    group's joints, grippers closed and open, are "always", those that are never near each other "never": the more
    states, the surer that is.  Pairs that nothing moves against each other are left out, and so are pairs that several
    groups move, as the hands of two arms, unless they always touch.

    Args:
        groups: Of the robot; what they allow beside adjacent pairs does not count.
        rng: Draws the states.
        states: How many of each group.
        cancelled: Ends the search, which then tells what it knows so far.

    Raises:
        InputError: no states.
    """
    if states < 1:
        raise InputError(f"{states} states", valid="1 or more")
    adjacent = {pair: reason for pair, reason in groups.allowed.items() if reason == "adjacent"}
    bare = replace(groups, allowed=adjacent)
    counts: dict[Pair, NDArray[np.int64]] = {}
    movers: dict[Pair, set[tuple[str, ...]]] = {}
    for name, group in groups.groups.items():
        for held in _stands(groups, group.joints):
            for pair, found in _counted(bare, name, held, rng, states, cancelled):
                counts[pair] = counts.get(pair, np.zeros(3, np.int64)) + found
                movers.setdefault(pair, set()).add(group.joints)
    result: dict[Pair, Reason] = dict(adjacent)
    for pair, (touches, near, looks) in counts.items():
        if looks and touches >= _ALWAYS * looks:
            result[pair] = "always"
        elif looks and not near and len(movers[pair]) == 1:
            result[pair] = "never"
    return dict(sorted(result.items()))


def _stands(groups: Groups, joints: tuple[str, ...]) -> list[Mapping[str, float]]:
    """Grippers closed and open, as far as their joints are not the group's."""
    found: list[Mapping[str, float]] = []
    for positions in ("closed", "open"):
        held = {
            joint: value
            for gripper in groups.grippers.values()
            for joint, value in zip(gripper.joints, getattr(gripper, positions), strict=True)
            if joint not in joints
        }
        if held not in found:
            found.append(held)
    return found


def _counted(
    groups: Groups,
    name: str,
    held: Mapping[str, float],
    rng: np.random.Generator,
    states: int,
    cancelled: Callable[[], bool],
) -> Iterator[tuple[Pair, NDArray[np.int64]]]:
    """Each pair with how often it touched, was near, and was looked at."""
    from roboyard.manipulation.scene import PlanningScene

    scene = PlanningScene.of(groups, name, held=held)
    bodies, parts = scene.bodies, scene.parts
    work, done = make_work(bodies), 0
    pairs = [ordered(parts[i].name, parts[j].name) for i, j in bodies.pairs]
    numbers = {pair: k for k, pair in enumerate(dict.fromkeys(pairs))}
    which = np.array([numbers[pair] for pair in pairs], dtype=np.int64)
    between = np.zeros(len(numbers), np.int64)
    np.maximum.at(between, which, np.abs(np.diff(bodies.frame[bodies.pairs], axis=1)).ravel())
    near = np.where(between > 1, _NEAR, _NEAR_BY_ONE)
    found = np.zeros((len(numbers), 2), np.int64)
    while done < states and not cancelled():
        some = min(states - done, _ROUND)
        count_touches(bodies, work, scene.chain.sample_positions(rng, some), which, near, found)
        done += some
    for pair, k in numbers.items():
        yield pair, np.array([*found[k], done])


def _examples() -> list[tuple[Bodies, Work, Array, NDArray[np.int64], Array, NDArray[np.int64]]]:
    bodies, none = sample_bodies(), np.zeros(1, np.int64)
    return [(bodies, make_work(bodies), np.zeros((2, 1)), none, np.full(1, 0.1), np.zeros((1, 2), np.int64))]


@kernel(examples=_examples)
def count_touches(
    bodies: Bodies, work: Work, states: Array, which: NDArray[np.int64], near: Array, found: NDArray[np.int64]
) -> None:
    """Count in how many states (k, dof) links touch, and are near each other.

    Args:
        bodies: The robot.
        work: Memory.
        states: To look at.
        which: (p,) the pair of links that each pair of solids belongs to.
        near: (pairs of links,) distances that count as near [m].
        found: (pairs of links, 2) touching and near; is added to.
    """
    links, frame = bodies.links, bodies.frame
    least = np.empty(found.shape[0])
    for s in range(states.shape[0]):
        compute_frames(bodies.rows, states[s], work.frames)
        for i in range(frame.shape[0]):
            multiply_transforms(work.frames[frame[i]], bodies.local[i], work.poses[i])
        least[:] = near
        for p in range(bodies.pairs.shape[0]):
            i, j, k = bodies.pairs[p, 0], bodies.pairs[p, 1], which[p]
            A, B = work.poses[i], work.poses[j]
            square = (A[0, 3] - B[0, 3]) ** 2 + (A[1, 3] - B[1, 3]) ** 2 + (A[2, 3] - B[2, 3]) ** 2
            far = links.outer[i] + links.outer[j] + least[k]
            if square < far * far:
                off = separation(links, i, A, links, j, B, least[k], 0.0, work.simplex)
                least[k] = min(least[k], off)
        for k in range(least.shape[0]):
            found[k, 0] += least[k] < bodies.margin
            found[k, 1] += least[k] < near[k]
