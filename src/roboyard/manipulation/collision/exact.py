"""The second opinion on collisions: the library coal on the shapes themselves, meshes triangle by triangle.

Slower than the kernels by two orders of magnitude, and with signed distances.
What is planned is looked at once more by it.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from roboyard.description import (
    Box,
    Capsule,
    Cone,
    Cylinder,
    Ellipsoid,
    Geometry,
    Mesh,
    Plane,
    Polyline,
    Sphere,
)
from roboyard.errors import DescriptionError
from roboyard.geometry import SE3
from roboyard.geometry.arrays import Array
from roboyard.manipulation.collision.building import allowed_pairs, may_touch
from roboyard.manipulation.collision.obstacles import Voxels

if TYPE_CHECKING:
    from roboyard.manipulation.scene import PlanningScene


@dataclass(frozen=True, slots=True, eq=False)
class _Shape:
    """A shape of coal's: whose it is, the chain's frame that it rides on (-1: the world's), where it is in that frame,
    and a ball about that place that holds it."""

    name: str
    frame: int
    solid: Any
    T: Array
    outer: float


class ExactChecker:
    """Collisions and signed distances of a scene's states, by coal.

    Args:
        scene: Robot, obstacles, what is attached, and which pairs may touch; its margin does not count.

    Raises:
        DescriptionError: a shape cannot be used.
    """

    def __init__(self, scene: PlanningScene) -> None:
        import coal

        self._coal = coal
        self.chain = scene.chain
        links = [
            self._shape(link.name, frame, shape.geometry, SE3.from_matrix(T) @ shape.T_link_geom)
            for link in scene.groups.model.links
            for frame, T in [scene.chain.link_mounts[link.name]]
            for shape in link.collisions
            if shape.surface.collide
        ]
        for thing in scene.attached.values():
            frame, T = scene.chain.link_mounts[thing.link]
            links.append(self._shape(thing.name, frame, thing.geometry, SE3.from_matrix(T) @ thing.T_link))
        world = []
        T_base_world = scene.T_world_base.inverse()
        for one in scene.obstacles.values():
            if isinstance(one, Voxels):
                cube = Box((one.size,) * 3)
                world += [
                    self._shape(one.name, -1, cube, T_base_world @ SE3(translation=middle)) for middle in one.middles
                ]
            else:
                world.append(self._shape(one.name, -1, one.geometry, T_base_world @ one.T_world))
        allowed = allowed_pairs(scene.groups, scene.attached, scene.allowed, scene.chain)
        self._shapes = [*links, *world]
        self._pairs = np.array(
            [
                (i, j)
                for i, one in enumerate(links)
                for j, other in enumerate(self._shapes)
                if (j > i or other.frame == -1)
                and one.name != other.name
                and (one.frame != other.frame)
                and not (other.frame == -1 and one.frame == 0)
                and not may_touch(allowed, one.name, other.name)
            ],
            dtype=np.int64,
        ).reshape(-1, 2)
        self._outer = np.array([shape.outer for shape in self._shapes])
        self._frames = np.array([shape.frame for shape in self._shapes])
        self._local = np.array([shape.T for shape in self._shapes]).reshape(-1, 4, 4)

    def contact(self, q: ArrayLike, depth: float = 0.0) -> tuple[str, str] | None:
        """Two names that overlap by more than ``depth`` [m] in a state (n,), or None. Raises InputError."""
        coal = self._coal
        poses, near = self._near(q, 0.0)
        request = coal.CollisionRequest()
        for i, j in near:
            result = coal.CollisionResult()
            one, other = self._shapes[i], self._shapes[j]
            if coal.collide(one.solid, poses[i], other.solid, poses[j], request, result) and (
                depth <= 0.0 or self._signed(i, j, poses) < -depth
            ):
                return one.name, other.name
        return None

    def distance(self, q: ArrayLike, limit: float = 1.0) -> tuple[float, tuple[str, str] | None]:
        """The least distance in a state (n,), negative by the depth where shapes overlap, and between whom.

        Args:
            q: Joints.
            limit: What is farther apart is not looked at [m].

        Returns:
            At most ``limit`` [m], and then None.  Triangles that cross tell 0 instead of a depth.

        Raises:
            InputError: as `Chain.positions`.
        """
        poses, near = self._near(q, limit)
        best, who = limit, None
        for i, j in near:
            found = self._signed(i, j, poses)
            if found < best:
                best, who = found, (self._shapes[i].name, self._shapes[j].name)
        return best, who

    def _signed(self, i: int, j: int, poses: list[Any]) -> float:
        request = self._coal.DistanceRequest()
        request.enable_signed_distance = True
        return float(
            self._coal.distance(
                self._shapes[i].solid, poses[i], self._shapes[j].solid, poses[j], request, self._coal.DistanceResult()
            )
        )

    def _near(self, q: ArrayLike, limit: float) -> tuple[list[Any], list[tuple[int, int]]]:
        """Poses of all shapes, and pairs whose balls are nearer than the limit."""
        frames = np.concatenate([self.chain.frames(self.chain.as_positions(q)), np.eye(4)[None]])
        poses = frames[self._frames] @ self._local
        middles = poses[:, :3, 3]
        a, b = self._pairs.T
        gaps = np.linalg.norm(middles[a] - middles[b], axis=1) - self._outer[a] - self._outer[b]
        near = [(int(i), int(j)) for i, j in self._pairs[gaps <= limit]]
        placed: list[Any] = [None] * len(poses)
        for k in {number for pair in near for number in pair}:
            placed[k] = self._coal.Transform3s(poses[k, :3, :3].copy(), middles[k].copy())
        return placed, near

    def _shape(self, name: str, frame: int, geometry: Geometry, T: SE3) -> _Shape:
        solid, outer = made(geometry, name)
        return _Shape(name, frame, solid, T.matrix(), outer)


def made(geometry: Geometry, where: str) -> tuple[Any, float]:
    """A shape of coal's, and the radius of a ball about its frame that holds it [m].

    Raises:
        DescriptionError: the shape cannot be used.
    """
    import coal

    match geometry:
        case Box(size):
            return coal.Box(*size), 0.5 * math.hypot(*size)
        case Sphere(radius):
            return coal.Sphere(radius), radius
        case Capsule(radius, length):
            return coal.Capsule(radius, length), radius + length / 2.0
        case Cylinder(radius, length):
            return coal.Cylinder(radius, length), math.hypot(radius, length / 2.0)
        case Cone(radius, length):
            return coal.Cone(radius, length), math.hypot(radius, length / 2.0)
        case Ellipsoid(radii):
            return coal.Ellipsoid(*radii), max(radii)
        case Plane(normal):
            return coal.Halfspace(np.array(normal, float), 0.0), math.inf
        case Polyline(outlines, height):
            flat = np.array([point for outline in outlines for point in outline])
            points = np.concatenate([np.column_stack([flat, np.full(len(flat), z)]) for z in (0.0, height)])
            return _hull(points), float(np.linalg.norm(points, axis=1).max())
        case Mesh():
            from roboyard.description.meshes.files import load_mesh

            vertices, faces = load_mesh(geometry)
            outer = float(np.linalg.norm(vertices, axis=1).max())
            return (_hull(vertices) if geometry.convex else _triangles(vertices, faces)), outer
    raise DescriptionError(f"a {type(geometry).__name__.lower()} cannot be looked at", location=where)


def _hull(points: Array) -> Any:
    import coal

    vertices = coal.StdVec_Vec3s()
    for point in points:
        vertices.append(point)
    return coal.Convex.convexHull(vertices, True, "Qt")


def _triangles(vertices: Array, faces: NDArray[np.int64]) -> Any:
    import coal

    model = coal.BVHModelOBBRSS()
    model.beginModel(len(faces), len(vertices))
    model.addVertices(np.ascontiguousarray(vertices))
    model.addTriangles(np.ascontiguousarray(faces, np.int64))
    model.endModel()
    return model
