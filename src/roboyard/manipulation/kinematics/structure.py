"""Which closed form a chain has: by its axes, which meet or are parallel whatever the joints do."""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

from roboyard.chains.chain import Chain
from roboyard.chains.rows import ChainArrays, compute_frames, compute_tip_poses
from roboyard.compute import expect_kernels
from roboyard.manipulation.kinematics.parallel import ParallelAxesArm, solve_parallel_axes
from roboyard.manipulation.kinematics.spherical import SphericalWristArm, solve_spherical_wrist

Array = NDArray[np.float64]
_AXIS_TOLERANCE = 1e-5
"""How far axes may miss each other [m], and be turned against each other [rad]: descriptions are rounded."""
_N_VERIFIED = 25
"""Random positions that a closed form must find again before it is believed."""


@dataclass(frozen=True, slots=True)
class ClosedForm:
    """A chain's closed form.

    Attributes:
        name: For people.
        parameters: What its kernel takes.
        is_reversed: Whether it is that of the chain from the tip to the base.
    """

    name: str
    parameters: SphericalWristArm | ParallelAxesArm
    is_reversed: bool

    @property
    def kernel_id(self) -> int:
        """Which kernel: 0 `solve_spherical_wrist`, 1 `solve_parallel_axes`."""
        return 0 if isinstance(self.parameters, SphericalWristArm) else 1


@lru_cache(maxsize=64)
def find_closed_form(chain: Chain) -> ClosedForm | None:
    """The closed form of a chain, or None where none is known."""
    arrays = chain.arrays
    has_no_mimics = (
        (arrays.multiplier == 1.0).all() and (arrays.offset == 0.0).all() and len(chain.moving_joints) == chain.dof
    )
    if (
        not has_no_mimics
        or not chain.is_revolute.all()
        or (arrays.translation_per_unit != 0.0).any()
        or chain.dof not in (5, 6)
    ):
        return None
    for is_reversed in (False, True):
        oriented = reverse_chain(arrays) if is_reversed else arrays
        for name, build in (("wrist", _find_spherical_wrist), ("parallel", _find_parallel_axes)):
            if is_reversed and chain.dof == 5:
                continue
            arm = build(oriented)
            if arm is not None and _is_verified(arm, oriented):
                description = {"wrist": "spherical wrist", "parallel": "three parallel axes"}[name]
                return ClosedForm(f"{description}, from the tip" if is_reversed else description, arm, is_reversed)
    return None


def reverse_chain(chain: ChainArrays) -> ChainArrays:
    """The chain from the tip to the base: its pose is the inverse one, its joints are those in reverse, negated."""
    inverses = [np.linalg.inv(T) for T in (*chain.origins, chain.T_tip)][::-1]
    return chain._replace(
        origins=np.stack(inverses[:-1]), T_tip=inverses[-1], lower=-chain.upper[::-1], upper=-chain.lower[::-1]
    )


def _joint_axes(chain: ChainArrays) -> tuple[Array, Array]:
    """Points (m, 3) and directions (m, 3) of the axes at a position that is nothing special."""
    frames = np.empty((len(chain.rotation_per_unit) + 1, 4, 4))
    compute_frames(chain, np.array([0.3, -0.8, 1.1, 0.7, -1.3, 0.5][: len(chain.lower)]), frames)
    return frames[1:, :3, 3], frames[1:, :3, 2]


def _intersection(points: Array, axes: Array) -> Array | None:
    """How far along each of the lines (k, 3) they meet, or None if they do not."""
    # the point with the least squared distance from all of them
    projectors = np.eye(3) - axes[:, :, None] * axes[:, None, :]
    total = projectors.sum(axis=0)
    if np.linalg.cond(total) > 1e6:
        return None
    point = np.linalg.solve(total, (projectors @ points[:, :, None]).sum(axis=0)[:, 0])
    distances = np.linalg.norm((projectors @ (point - points)[:, :, None])[:, :, 0], axis=1)
    return None if distances.max() > _AXIS_TOLERANCE else ((point - points) * axes).sum(axis=1)


def _slide_frame(origins: list[Array], k: int, distance: float) -> None:
    """Move frame k along its own z; the one after the last is the tip."""
    origins[k] = origins[k] @ _translation_z(distance)
    origins[k + 1] = _translation_z(-distance) @ origins[k + 1]


def _translation_z(distance: float) -> Array:
    T = np.eye(4)
    T[2, 3] = distance
    return T


def _find_spherical_wrist(chain: ChainArrays) -> SphericalWristArm | None:
    if len(chain.rotation_per_unit) != 6:
        return None
    points, axes = _joint_axes(chain)
    distances = _intersection(points[3:], axes[3:])
    if distances is None:
        return None
    origins = [T.copy() for T in (*chain.origins, chain.T_tip)]
    for k, distance in zip((3, 4, 5), distances, strict=True):
        _slide_frame(origins, k, float(distance))
    for k in (4, 5):
        origins[k][:3, 3] = 0.0
    return SphericalWristArm(np.stack(origins[:-1]), origins[-1])


def _find_parallel_axes(chain: ChainArrays) -> ParallelAxesArm | None:
    count = len(chain.rotation_per_unit)
    points, axes = _joint_axes(chain)
    if any(np.linalg.norm(np.cross(axes[1], axes[k])) > _AXIS_TOLERANCE for k in (2, 3)):
        return None
    if abs(axes[0] @ axes[1]) > 1.0 - 1e-6 or np.linalg.norm(np.cross(axes[3], axes[4])) < 1e-3:
        return None
    origins = [T.copy() for T in (*chain.origins, chain.T_tip)]
    sign, offset = np.ones(count), np.zeros(count)
    flip_yz = np.diag([1.0, -1.0, -1.0, 1.0])
    for k in (2, 3):
        if axes[1] @ axes[k] < 0.0:
            origins[k], origins[k + 1], sign[k] = origins[k] @ flip_yz, flip_yz @ origins[k + 1], -1.0
    for k in (2, 3):
        _slide_frame(origins, k, -float(origins[k][2, 3]))
        offset[k] = math.atan2(origins[k][1, 0], origins[k][0, 0])
    if count == 6:
        distances = _intersection(points[4:], axes[4:])
        if distances is None:
            return None
        _slide_frame(origins, 4, float(distances[0]))
        _slide_frame(origins, 5, float(distances[1]))
        origins[5][:3, 3] = 0.0
        sixth = origins[5]
    else:
        axis_xy, origin_xy = origins[4][:2, 2], origins[4][:2, 3]
        _slide_frame(origins, 4, -float(axis_xy @ origin_xy) / float(axis_xy @ axis_xy))
        sixth = np.eye(4)
    return ParallelAxesArm(
        origins[0], origins[1], origins[2][:2, 3].copy(), origins[3][:2, 3].copy(), origins[4], sixth, count == 6,
        origins[-1], sign, offset,
    )  # fmt: skip


def _is_verified(arm: SphericalWristArm | ParallelAxesArm, chain: ChainArrays) -> bool:
    """Whether it finds random positions again."""
    expect_kernels(solve_spherical_wrist if isinstance(arm, SphericalWristArm) else solve_parallel_axes)
    count = len(chain.lower)
    q = np.random.default_rng(0).uniform(-math.pi, math.pi, (_N_VERIFIED, count))
    poses, out, seed = np.empty((_N_VERIFIED, 4, 4)), np.empty((8, count)), np.zeros(count)
    compute_tip_poses(chain, q, poses)
    n_missed = 0
    for expected, T in zip(q, poses, strict=True):
        n_found = (
            solve_spherical_wrist(arm, T, seed, out)
            if isinstance(arm, SphericalWristArm)
            else solve_parallel_axes(arm, T, seed, out)
        )
        differences = np.abs(np.remainder(out[:n_found] - expected + math.pi, 2.0 * math.pi) - math.pi)
        n_missed += not (differences.max(axis=1, initial=0.0) < 1e-2).any()
    return n_missed == 0
