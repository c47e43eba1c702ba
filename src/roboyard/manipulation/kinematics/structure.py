"""Which closed form a chain has: by its axes, which meet or are parallel whatever the joints do."""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

from roboyard.chains.chain import Chain
from roboyard.chains.rows import Rows, place_frames, place_tips
from roboyard.compute import expect_kernels
from roboyard.manipulation.kinematics.parallel import Parallel, solve_parallel
from roboyard.manipulation.kinematics.spherical import Spherical, solve_spherical

Array = NDArray[np.float64]
_MEETING = 1e-5
"""How far axes may miss each other [m], and be turned against each other [rad]: descriptions are rounded."""
_PROOFS = 25
"""Random positions that a closed form must find again before it is believed."""


@dataclass(frozen=True, slots=True)
class Form:
    """A chain's closed form.

    Attributes:
        name: For people.
        arm: What its kernel takes.
        backwards: Whether it is that of the chain from the tip to the base.
    """

    name: str
    arm: Spherical | Parallel
    backwards: bool

    @property
    def code(self) -> int:
        """Which kernel: 0 `solve_spherical`, 1 `solve_parallel`."""
        return 0 if isinstance(self.arm, Spherical) else 1


@lru_cache(maxsize=64)
def form_of(chain: Chain) -> Form | None:
    """The closed form of a chain, or None where none is known."""
    rows = chain.rows
    simple = (rows.multiplier == 1.0).all() and (rows.offset == 0.0).all() and len(chain.moving) == chain.dof
    if not simple or not chain.turning.all() or (rows.slide != 0.0).any() or chain.dof not in (5, 6):
        return None
    for backwards in (False, True):
        seen = reversed_rows(rows) if backwards else rows
        for name, build in (("wrist", _spherical), ("parallel", _parallel)):
            if backwards and chain.dof == 5:
                continue
            arm = build(seen)
            if arm is not None and _proven(arm, seen):
                words = {"wrist": "spherical wrist", "parallel": "three parallel axes"}[name]
                return Form(f"{words}, from the tip" if backwards else words, arm, backwards)
    return None


def reversed_rows(rows: Rows) -> Rows:
    """The chain from the tip to the base: its pose is the inverse one, its joints are those in reverse, negated."""
    inverses = [np.linalg.inv(T) for T in (*rows.origins, rows.T_tip)][::-1]
    return rows._replace(
        origins=np.stack(inverses[:-1]), T_tip=inverses[-1], lower=-rows.upper[::-1], upper=-rows.lower[::-1]
    )


def _axes(rows: Rows) -> tuple[Array, Array]:
    """Points (m, 3) and directions (m, 3) of the axes at a position that is nothing special."""
    frames = np.empty((len(rows.turn) + 1, 4, 4))
    place_frames(rows, np.array([0.3, -0.8, 1.1, 0.7, -1.3, 0.5][: len(rows.lower)]), frames)
    return frames[1:, :3, 3], frames[1:, :3, 2]


def _meeting(points: Array, axes: Array) -> Array | None:
    """How far along each of the lines (k, 3) they meet, or None if they do not."""
    # the point with the least squared distance from all of them
    across = np.eye(3) - axes[:, :, None] * axes[:, None, :]
    total = across.sum(axis=0)
    if np.linalg.cond(total) > 1e6:
        return None
    place = np.linalg.solve(total, (across @ points[:, :, None]).sum(axis=0)[:, 0])
    away = np.linalg.norm((across @ (place - points)[:, :, None])[:, :, 0], axis=1)
    return None if away.max() > _MEETING else ((place - points) * axes).sum(axis=1)


def _slid(origins: list[Array], k: int, way: float) -> None:
    """Move frame k along its own z; the one after the last is the tip."""
    origins[k] = origins[k] @ _along(way)
    origins[k + 1] = _along(-way) @ origins[k + 1]


def _along(way: float) -> Array:
    T = np.eye(4)
    T[2, 3] = way
    return T


def _spherical(rows: Rows) -> Spherical | None:
    if len(rows.turn) != 6:
        return None
    points, axes = _axes(rows)
    ways = _meeting(points[3:], axes[3:])
    if ways is None:
        return None
    origins = [T.copy() for T in (*rows.origins, rows.T_tip)]
    for k, way in zip((3, 4, 5), ways, strict=True):
        _slid(origins, k, float(way))
    for k in (4, 5):
        origins[k][:3, 3] = 0.0
    return Spherical(np.stack(origins[:-1]), origins[-1])


def _parallel(rows: Rows) -> Parallel | None:
    count = len(rows.turn)
    points, axes = _axes(rows)
    if any(np.linalg.norm(np.cross(axes[1], axes[k])) > _MEETING for k in (2, 3)):
        return None
    if abs(axes[0] @ axes[1]) > 1.0 - 1e-6 or np.linalg.norm(np.cross(axes[3], axes[4])) < 1e-3:
        return None
    origins = [T.copy() for T in (*rows.origins, rows.T_tip)]
    sign, offset = np.ones(count), np.zeros(count)
    over = np.diag([1.0, -1.0, -1.0, 1.0])
    for k in (2, 3):
        if axes[1] @ axes[k] < 0.0:
            origins[k], origins[k + 1], sign[k] = origins[k] @ over, over @ origins[k + 1], -1.0
    for k in (2, 3):
        _slid(origins, k, -float(origins[k][2, 3]))
        offset[k] = math.atan2(origins[k][1, 0], origins[k][0, 0])
    if count == 6:
        ways = _meeting(points[4:], axes[4:])
        if ways is None:
            return None
        _slid(origins, 4, float(ways[0]))
        _slid(origins, 5, float(ways[1]))
        origins[5][:3, 3] = 0.0
        sixth = origins[5]
    else:
        across, place = origins[4][:2, 2], origins[4][:2, 3]
        _slid(origins, 4, -float(across @ place) / float(across @ across))
        sixth = np.eye(4)
    return Parallel(
        origins[0], origins[1], origins[2][:2, 3].copy(), origins[3][:2, 3].copy(), origins[4], sixth, count == 6,
        origins[-1], sign, offset,
    )  # fmt: skip


def _proven(arm: Spherical | Parallel, rows: Rows) -> bool:
    """Whether it finds random positions again."""
    expect_kernels(solve_spherical if isinstance(arm, Spherical) else solve_parallel)
    count = len(rows.lower)
    q = np.random.default_rng(0).uniform(-math.pi, math.pi, (_PROOFS, count))
    poses, out, near = np.empty((_PROOFS, 4, 4)), np.empty((8, count)), np.zeros(count)
    place_tips(rows, q, poses)
    missed = 0
    for wanted, T in zip(q, poses, strict=True):
        found = solve_spherical(arm, T, near, out) if isinstance(arm, Spherical) else solve_parallel(arm, T, near, out)
        apart = np.abs(np.remainder(out[:found] - wanted + math.pi, 2.0 * math.pi) - math.pi)
        missed += not (apart.max(axis=1, initial=0.0) < 1e-2).any()
    return missed == 0
