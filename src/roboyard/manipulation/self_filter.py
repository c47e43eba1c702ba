"""Points of a cloud that are on something known: the robot itself, what it holds, walls of a map."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from roboyard.compute import kernel
from roboyard.description import Model
from roboyard.errors import InputError
from roboyard.geometry import SE3
from roboyard.geometry.arrays import Array
from roboyard.manipulation.collision.gjk import sample_solids, separation
from roboyard.manipulation.collision.obstacles import Obstacle
from roboyard.manipulation.collision.solids import BOX, Solid, Solids, gathered, solids_of


def _examples() -> Iterable[tuple[Any, ...]]:
    one = sample_solids()
    yield np.zeros((1, 3)), one, one, np.eye(4)[None].copy(), 0.1, np.zeros(1, np.bool_)


@kernel(examples=_examples)
def _mark(points: Array, dot: Solids, solids: Solids, placed: Array, margin: float, out: NDArray[np.bool_]) -> None:
    """Marks points (k, 3) that are at most ``margin`` from a solid; ``dot`` is a solid without size."""
    T = np.eye(4)
    W = np.zeros((5, 3))
    for k in range(points.shape[0]):
        x, y, z = points[k, 0], points[k, 1], points[k, 2]
        T[0, 3], T[1, 3], T[2, 3] = x, y, z
        for j in range(placed.shape[0]):
            P = placed[j]
            far = solids.outer[j] + margin
            dx, dy, dz = x - P[0, 3], y - P[1, 3], z - P[2, 3]
            if dx * dx + dy * dy + dz * dz > far * far:
                continue
            reach = solids.radius[j] + margin
            if abs(P[0, 0] * dx + P[1, 0] * dy + P[2, 0] * dz) > solids.size[j, 0] + reach:
                continue
            if abs(P[0, 1] * dx + P[1, 1] * dy + P[2, 1] * dz) > solids.size[j, 1] + reach:
                continue
            if abs(P[0, 2] * dx + P[1, 2] * dy + P[2, 2] * dz) > solids.size[j, 2] + reach:
                continue
            if separation(dot, 0, T, solids, j, P, margin, 0.0, W) <= margin:
                out[k] = True
                break


_DOT = gathered([Solid(BOX, np.zeros(3), 0.0, SE3.identity(), np.zeros((0, 3)))])


@dataclass(frozen=True, eq=False)
class Shapes:
    """Solids that ride on frames.

    Attributes:
        frames: Names of those that have any.
        owner: (n,) number of the frame that each solid rides on.
        solids: They themselves.
        local: (n, 4, 4) their poses there.
    """

    frames: tuple[str, ...]
    owner: NDArray[np.int64]
    solids: Solids
    local: Array

    @classmethod
    def of_model(cls, model: Model) -> Shapes:
        """Collision shapes of all links; meshes are taken for their hulls. Raises DescriptionError."""
        found = [
            (link.name, solid)
            for link in model.links
            for shape in link.collisions
            if shape.surface.collide
            for solid in solids_of(shape.geometry, shape.T_link_geom, f"{model.name}, {link.name}", hull=True)
        ]
        return cls._of(found)

    @classmethod
    def of_obstacles(cls, obstacles: Iterable[Obstacle]) -> Shapes:
        """Shapes that stand in the world: all ride on one frame, the world's. Raises DescriptionError."""
        return cls._of(
            [("world", solid) for one in obstacles for solid in solids_of(one.geometry, one.T_world, one.name)]
        )

    @classmethod
    def _of(cls, found: Sequence[tuple[str, Solid]]) -> Shapes:
        frames = tuple(dict.fromkeys(name for name, _ in found))
        owner = np.array([frames.index(name) for name, _ in found], dtype=np.int64)
        local = np.array([solid.T.matrix() for _, solid in found]).reshape(-1, 4, 4)
        return cls(frames, owner, gathered([solid for _, solid in found]), local)

    def on(self, points: Array, poses: Sequence[SE3], margin: float) -> NDArray[np.bool_]:
        """Which points are on a shape, or at most so far from it.

        Args:
            points: (k, 3), finite [m].
            poses: Of the frames, where the points are seen from.
            margin: [m].

        Returns:
            (k,).

        Raises:
            InputError: another number of poses, or a margin that is none.
        """
        if len(poses) != len(self.frames) or not 0.0 <= margin < 10.0:
            raise InputError(
                f"{len(poses)} poses, a margin of {margin} m", valid=f"{len(self.frames)} poses, a margin of 0 to 10 m"
            )
        out = np.zeros(len(points), dtype=np.bool_)
        if len(self.owner):
            matrices = np.array([pose.matrix() for pose in poses]).reshape(-1, 4, 4)
            placed = np.ascontiguousarray(matrices[self.owner] @ self.local)
            _mark(np.ascontiguousarray(points, dtype=np.float64), _DOT, self.solids, placed, margin, out)
        return out
