"""What shall hold all along a motion: an axis of the tool keeps a direction, as a glass stays upright."""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any, Final, NamedTuple

import numpy as np

from roboyard.compute import kernel
from roboyard.errors import InputError
from roboyard.geometry.arrays import Array
from roboyard.kinematics.chain import Chain
from roboyard.kinematics.chain_kernels import compute_frames, compute_jacobian, multiply_transforms
from roboyard.manipulation.collision.bodies import Bodies, Work, make_work, sample_bodies
from roboyard.manipulation.collision.clearance import free_line
from roboyard.manipulation.planning.trees import FULL, JOINED, SEARCHING, Trees, make_trees, nearest

_STEPS: Final = 25
"""Of a projection."""
_TIGHT: Final = 0.5
"""A projection goes on until this share of the tolerance, so that there is room between states."""


@dataclass(frozen=True)
class KeepAxis:
    """An axis of the tool keeps a direction.

    Attributes:
        axis: In the tool's frame.
        direction: In the chain's base.
        tolerance: It may lean by so much [rad].
    """

    axis: tuple[float, float, float] = (0.0, 0.0, 1.0)
    direction: tuple[float, float, float] = (0.0, 0.0, 1.0)
    tolerance: float = 0.1

    def __post_init__(self) -> None:
        for name, value in (("axis", self.axis), ("direction", self.direction)):
            length = math.hypot(*value) if len(value) == 3 else 0.0
            if not (length > 1e-9 and math.isfinite(length)):
                raise InputError(f"{name} {value}", location="KeepAxis", valid="three finite numbers, not all zero")
        if not 0.001 <= self.tolerance <= math.pi:
            raise InputError(f"a tolerance of {self.tolerance} rad", location="KeepAxis", valid="0.001 to pi")

    def lean(self, chain: Chain, q: Array) -> Array:
        """By how much the axis leans in states (k, n) [rad]. Raises InputError."""
        axes = chain.forward(np.atleast_2d(q))[:, :3, :3] @ np.array(self.axis) / math.hypot(*self.axis)
        wanted = np.array(self.direction) / math.hypot(*self.direction)
        sines = np.linalg.norm(np.cross(axes, wanted), axis=1)
        return np.asarray(np.arctan2(sines, axes @ wanted))

    def arrays(self) -> Kept:
        """For the kernels."""
        return Kept(
            np.array(self.axis) / math.hypot(*self.axis),
            np.array(self.direction) / math.hypot(*self.direction),
            self.tolerance,
        )


class Kept(NamedTuple):
    """A `KeepAxis` as kernels take it, its directions of length one."""

    axis: Array
    direction: Array
    tolerance: float


def _examples() -> Iterable[tuple[Any, ...]]:
    bodies = sample_bodies()
    one = np.ones(1)
    kept = Kept(np.ones(3), np.ones(3), 0.1)
    trees = make_trees(one, one[None], 2)
    yield bodies, make_work(bodies), kept, trees, np.random.default_rng(0), one, one, one, 0.1, 0.1, 1


@kernel
def _lean(bodies: Bodies, kept: Kept, q: Array, work: Work, T: Array, e: Array) -> float:
    """By how much the axis leans; ``e`` (3,) is the turn about which [rad], ``T`` (4, 4) becomes the tool's pose."""
    compute_frames(bodies.rows, q, work.frames)
    multiply_transforms(work.frames[-1], bodies.rows.T_tip, T)
    a = np.zeros(3)
    for i in range(3):
        for j in range(3):
            a[i] += T[i, j] * kept.axis[j]
    d = kept.direction
    e[0] = a[1] * d[2] - a[2] * d[1]
    e[1] = a[2] * d[0] - a[0] * d[2]
    e[2] = a[0] * d[1] - a[1] * d[0]
    sine = math.sqrt(e[0] ** 2 + e[1] ** 2 + e[2] ** 2)
    angle = math.atan2(sine, a[0] * d[0] + a[1] * d[1] + a[2] * d[2])
    scale = angle / sine if sine > 1e-12 else 1.0
    for i in range(3):
        e[i] *= scale
    return angle


@kernel
def _project(bodies: Bodies, kept: Kept, q: Array, work: Work) -> bool:
    """Move a state (dof,) until the axis leans by less than half of the tolerance; whether that is possible.

    Least squares with a little damping, clipped to the limits (D. Berenson et al., "Manipulation planning on constraint
    manifolds", ICRA 2009).
    """
    dof = q.shape[0]
    T, e, J = np.empty((4, 4)), np.empty(3), np.empty((6, dof))
    A = np.empty((3, 3))
    for _ in range(_STEPS):
        if _lean(bodies, kept, q, work, T, e) <= _TIGHT * kept.tolerance:
            return True
        compute_jacobian(bodies.rows, work.frames, T[:3, 3], J)
        for i in range(3):
            for j in range(3):
                A[i, j] = 1e-4 if i == j else 0.0
                for k in range(dof):
                    A[i, j] += J[3 + i, k] * J[3 + j, k]
        c00, c01 = A[1, 1] * A[2, 2] - A[1, 2] * A[2, 1], A[1, 2] * A[2, 0] - A[1, 0] * A[2, 2]
        c02 = A[1, 0] * A[2, 1] - A[1, 1] * A[2, 0]
        whole = A[0, 0] * c00 + A[0, 1] * c01 + A[0, 2] * c02
        x = (
            c00 * e[0] + (A[0, 2] * A[2, 1] - A[0, 1] * A[2, 2]) * e[1] + (A[0, 1] * A[1, 2] - A[0, 2] * A[1, 1]) * e[2]
        ) / whole
        y = (
            c01 * e[0] + (A[0, 0] * A[2, 2] - A[0, 2] * A[2, 0]) * e[1] + (A[0, 2] * A[1, 0] - A[0, 0] * A[1, 2]) * e[2]
        ) / whole
        z = (
            c02 * e[0] + (A[0, 1] * A[2, 0] - A[0, 0] * A[2, 1]) * e[1] + (A[0, 0] * A[1, 1] - A[0, 1] * A[1, 0]) * e[2]
        ) / whole
        for k in range(dof):
            q[k] += J[3, k] * x + J[4, k] * y + J[5, k] * z
            q[k] = min(max(q[k], bodies.rows.lower[k]), bodies.rows.upper[k])
    return False


@kernel(examples=lambda: [(*example[:3], np.zeros(1), np.zeros(1), 0.1) for example in _examples()])
def kept_line(bodies: Bodies, work: Work, kept: Kept, a: Array, b: Array, spacing: float) -> bool:
    """Whether a straight way between states (dof,), looked at every ``spacing``, keeps the axis and touches nothing."""
    square = 0.0
    for k in range(a.shape[0]):
        square += (b[k] - a[k]) ** 2
    count = math.ceil(math.sqrt(square) / spacing)
    q, T, e = np.empty_like(a), np.empty((4, 4)), np.empty(3)
    for i in range(count + 1):
        share = i / count if count > 0 else 0.0
        for k in range(a.shape[0]):
            q[k] = a[k] + share * (b[k] - a[k])
        if _lean(bodies, kept, q, work, T, e) > kept.tolerance:
            return False
    return free_line(bodies, work, a, b)


@kernel
def _reach(
    bodies: Bodies, work: Work, kept: Kept, trees: Trees, tree: int, target: Array, weights: Array, step: float,
    spacing: float
) -> int:  # fmt: skip
    """Grow a tree along what is kept towards a state: the last node, which may be the state itself."""
    dof = target.shape[0]
    at = nearest(trees.q[tree], trees.grown[tree], target, weights)
    new = np.empty(dof)
    before = math.inf
    while trees.grown[tree] < trees.q.shape[1]:
        square = 0.0
        for k in range(dof):
            square += (target[k] - trees.q[tree, at, k]) ** 2
        length = math.sqrt(square)
        if length < 1e-9 or length >= before - 1e-3 * step:
            break
        before = length
        share = min(1.0, step / length)
        for k in range(dof):
            new[k] = trees.q[tree, at, k] + share * (target[k] - trees.q[tree, at, k])
        if share < 1.0 and not _project(bodies, kept, new, work):
            break
        if not kept_line(bodies, work, kept, trees.q[tree, at], new, spacing):
            break
        number = int(trees.grown[tree])
        trees.q[tree, number] = new
        trees.parent[tree, number] = at
        trees.grown[tree] = number + 1
        at = number
    return at


@kernel(examples=_examples)
def grow_kept(
    bodies: Bodies, work: Work, kept: Kept, trees: Trees, rng: np.random.Generator, lower: Array, upper: Array,
    weights: Array, step: float, spacing: float, samples: int
) -> int:  # fmt: skip
    """As `trees.grow`, while an axis keeps its direction: states are drawn anywhere and moved to where it does.

    Args:
        bodies: Who may touch whom.
        work: Memory.
        kept: What is kept.
        trees: That grow.
        rng: Draws states.
        lower: (dof,) least positions that are drawn.
        upper: (dof,) greatest ones.
        weights: (dof,) of the joints in distances.
        step: Between states that are moved to where the axis keeps its direction.
        spacing: Between states at which it is looked whether it does.
        samples: How many states to draw.

    Returns:
        As `trees.grow`.
    """
    dof = lower.shape[0]
    target = np.empty(dof)
    for _ in range(samples):
        tree = trees.turn[0]
        other = 1 - tree
        if trees.grown[tree] >= trees.q.shape[1] or trees.grown[other] >= trees.q.shape[1]:
            return FULL
        for k in range(dof):
            target[k] = lower[k] + rng.random() * (upper[k] - lower[k])
        if _project(bodies, kept, target, work):
            at = _reach(bodies, work, kept, trees, tree, target, weights, step, spacing)
            met = _reach(bodies, work, kept, trees, other, trees.q[tree, at], weights, step, spacing)
            apart = 0.0
            for k in range(dof):
                apart = max(apart, abs(trees.q[tree, at, k] - trees.q[other, met, k]))
            if apart < 1e-9:
                trees.joined[tree], trees.joined[other] = at, met
                return JOINED
        trees.turn[0] = other
    return SEARCHING


@kernel(
    examples=lambda: [(*example[:3], np.zeros((4, 1)), 2, np.random.default_rng(0), 2, 0.1) for example in _examples()]
)
def shorten_kept(
    bodies: Bodies,
    work: Work,
    kept: Kept,
    path: Array,
    count: int,
    rng: np.random.Generator,
    tries: int,
    spacing: float,
) -> int:
    """Leave out states of a way (room, dof) between two random ones where that keeps the axis; how many are left."""
    for _ in range(tries):
        if count < 3:
            break
        i, j = int(rng.random() * count), int(rng.random() * count)
        low, high = min(i, j), max(i, j)
        if high - low < 2 or not kept_line(bodies, work, kept, path[low], path[high], spacing):
            continue
        for k in range(high, count):
            path[low + 1 + k - high] = path[k]
        count -= high - low - 1
    return count
