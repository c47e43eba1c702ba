"""Self filter: points of a cloud on the robot, on the object that it holds, or on known obstacles."""

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
from roboyard.manipulation.collision.convex_shapes import (
    BOX,
    ConvexShape,
    ConvexShapeArrays,
    shapes_of_geometry,
    stack_shapes,
)
from roboyard.manipulation.collision.gjk import DistanceThresholds, distance_lower_bound, example_shapes
from roboyard.manipulation.collision.obstacles import Obstacle


def _examples() -> Iterable[tuple[Any, ...]]:
    one = example_shapes()
    yield np.zeros((1, 3)), one, one, np.eye(4)[None].copy(), 0.1, np.zeros(1, np.bool_)


@kernel(examples=_examples)
def _mark_near_points(
    points: Array,
    point_shape: ConvexShapeArrays,
    shapes: ConvexShapeArrays,
    poses: Array,
    margin: float,
    out: NDArray[np.bool_],
) -> None:
    """Mark points (k, 3) within ``margin`` of a shape; ``point_shape`` is a shape of size zero."""
    T = np.eye(4)
    W = np.zeros((5, 3))
    for k in range(points.shape[0]):
        x, y, z = points[k, 0], points[k, 1], points[k, 2]
        T[0, 3], T[1, 3], T[2, 3] = x, y, z
        for j in range(poses.shape[0]):
            P = poses[j]
            max_center_distance = shapes.bounding_radius[j] + margin
            dx, dy, dz = x - P[0, 3], y - P[1, 3], z - P[2, 3]
            if dx * dx + dy * dy + dz * dz > max_center_distance * max_center_distance:
                continue
            max_offset = shapes.radius[j] + margin
            if abs(P[0, 0] * dx + P[1, 0] * dy + P[2, 0] * dz) > shapes.half_size[j, 0] + max_offset:
                continue
            if abs(P[0, 1] * dx + P[1, 1] * dy + P[2, 1] * dz) > shapes.half_size[j, 1] + max_offset:
                continue
            if abs(P[0, 2] * dx + P[1, 2] * dy + P[2, 2] * dz) > shapes.half_size[j, 2] + max_offset:
                continue
            if distance_lower_bound(point_shape, 0, T, shapes, j, P, DistanceThresholds(margin, 0.0), W) <= margin:
                out[k] = True
                break


_POINT_SHAPE = stack_shapes([ConvexShape(BOX, np.zeros(3), 0.0, SE3.identity(), np.zeros((0, 3)))])


@dataclass(frozen=True, eq=False)
class FilterShapes:
    """Convex shapes that move with frames.

    Attributes:
        frame_names: Names of the frames with shapes.
        frame_index: (n,) frame of each shape.
        shapes: The shapes.
        T_frame_shape: (n, 4, 4) pose of each shape in its frame.
    """

    frame_names: tuple[str, ...]
    frame_index: NDArray[np.int64]
    shapes: ConvexShapeArrays
    T_frame_shape: Array

    @classmethod
    def from_model(cls, model: Model) -> FilterShapes:
        """Create them from the collision shapes of all links, with meshes as their convex hulls. Raises
        DescriptionError.
        """
        found = [
            (link.name, convex_shape)
            for link in model.links
            for shape in link.collisions
            if shape.surface.collide
            for convex_shape in shapes_of_geometry(
                shape.geometry, shape.T_link_geom, f"{model.name}, {link.name}", hull=True
            )
        ]
        return cls._from_shapes(found)

    @classmethod
    def from_obstacles(cls, obstacles: Iterable[Obstacle]) -> FilterShapes:
        """Create them from obstacles, all in the frame of the world. Raises DescriptionError."""
        return cls._from_shapes(
            [
                ("world", convex_shape)
                for obstacle in obstacles
                for convex_shape in shapes_of_geometry(obstacle.geometry, obstacle.T_world, obstacle.name)
            ]
        )

    @classmethod
    def _from_shapes(cls, found: Sequence[tuple[str, ConvexShape]]) -> FilterShapes:
        frame_names = tuple(dict.fromkeys(name for name, _ in found))
        frame_index = np.array([frame_names.index(name) for name, _ in found], dtype=np.int64)
        T_frame_shape = np.array([convex_shape.T_frame_shape.matrix() for _, convex_shape in found]).reshape(-1, 4, 4)
        return cls(frame_names, frame_index, stack_shapes([convex_shape for _, convex_shape in found]), T_frame_shape)

    def contains(self, points: Array, frame_poses: Sequence[SE3], margin: float) -> NDArray[np.bool_]:
        """Return which points are within a margin of a shape.

        Args:
            points: (k, 3), finite [m].
            frame_poses: Poses of the frames, in the frame of the points.
            margin: [m].

        Returns:
            (k,).

        Raises:
            InputError: another number of poses, or an invalid margin.
        """
        if len(frame_poses) != len(self.frame_names) or not 0.0 <= margin < 10.0:
            raise InputError(
                f"{len(frame_poses)} poses, a margin of {margin} m",
                valid=f"{len(self.frame_names)} poses, a margin of 0 to 10 m",
            )
        out = np.zeros(len(points), dtype=np.bool_)
        if len(self.frame_index):
            matrices = np.array([pose.matrix() for pose in frame_poses]).reshape(-1, 4, 4)
            shape_poses = np.ascontiguousarray(matrices[self.frame_index] @ self.T_frame_shape)
            _mark_near_points(
                np.ascontiguousarray(points, dtype=np.float64), _POINT_SHAPE, self.shapes, shape_poses, margin, out
            )
        return out
