"""Exact collision and distance checks with coal, on the original geometry and meshes.

They are slower than the kernels by two orders of magnitude, and return signed distances. `recheck_motion` checks a
planned motion again.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from roboyard.control import SampledMotion
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
from roboyard.manipulation.collision.collision_model import collect_allowed_pairs, is_collision_allowed
from roboyard.manipulation.collision.obstacles import VoxelObstacles

if TYPE_CHECKING:
    from roboyard.manipulation.collision.planning_scene import PlanningScene


@dataclass(frozen=True, slots=True, eq=False)
class _CoalShape:
    """A geometry of coal: its body's name, the chain frame that moves it (-1: the world), its pose in that frame, and
    its bounding radius.
    """

    name: str
    frame_index: int
    coal_geometry: Any
    T_frame_shape: Array
    bounding_radius: float


class CoalChecker:
    """Collisions and signed distances of a scene's states, by coal.

    Args:
        scene: Robot, obstacles, attached bodies, and allowed pairs; its margin is not used.

    Raises:
        DescriptionError: a shape cannot be used.
    """

    def __init__(self, scene: PlanningScene) -> None:
        import coal

        self._coal = coal
        self.chain = scene.chain
        links = [
            self._make_shape(link.name, frame, shape.geometry, SE3.from_matrix(T) @ shape.T_link_geom)
            for link in scene.semantics.model.links
            for frame, T in [scene.chain.link_mounts[link.name]]
            for shape in link.collisions
            if shape.surface.collide
        ]
        for body in scene.attached.values():
            frame, T = scene.chain.link_mounts[body.link]
            links.append(self._make_shape(body.name, frame, body.geometry, SE3.from_matrix(T) @ body.T_link))
        world = []
        T_base_world = scene.T_world_base.inverse()
        for obstacle in scene.obstacles.values():
            if isinstance(obstacle, VoxelObstacles):
                cube = Box((obstacle.size,) * 3)
                world += [
                    self._make_shape(obstacle.name, -1, cube, T_base_world @ SE3(translation=center))
                    for center in obstacle.centers
                ]
            else:
                world.append(self._make_shape(obstacle.name, -1, obstacle.geometry, T_base_world @ obstacle.T_world))
        allowed = collect_allowed_pairs(scene.semantics, scene.attached, scene.allowed, scene.chain)
        self._shapes = [*links, *world]
        self._pairs = np.array(
            [
                (i, j)
                for i, shape in enumerate(links)
                for j, other in enumerate(self._shapes)
                if (j > i or other.frame_index == -1)
                and shape.name != other.name
                and (shape.frame_index != other.frame_index)
                and not (other.frame_index == -1 and shape.frame_index == 0)
                and not is_collision_allowed(allowed, shape.name, other.name)
            ],
            dtype=np.int64,
        ).reshape(-1, 2)
        self._bounding_radii = np.array([shape.bounding_radius for shape in self._shapes])
        self._frame_index = np.array([shape.frame_index for shape in self._shapes])
        self._T_frame_shape = np.array([shape.T_frame_shape for shape in self._shapes]).reshape(-1, 4, 4)

    def find_contact(self, q: ArrayLike, depth: float = 0.0) -> tuple[str, str] | None:
        """Return two names that overlap by more than ``depth`` [m] in a state (n,), or None. Raises InputError."""
        coal = self._coal
        poses, near_pairs = self._find_near_pairs(q, 0.0)
        request = coal.CollisionRequest()
        for i, j in near_pairs:
            result = coal.CollisionResult()
            shape, other = self._shapes[i], self._shapes[j]
            if coal.collide(shape.coal_geometry, poses[i], other.coal_geometry, poses[j], request, result) and (
                depth <= 0.0 or self._signed_distance_of_pair(i, j, poses) < -depth
            ):
                return shape.name, other.name
        return None

    def signed_distance(self, q: ArrayLike, limit: float = 1.0) -> tuple[float, tuple[str, str] | None]:
        """Return the smallest distance in a state (n,), negative by the depth where shapes overlap, and the pair.

        Args:
            q: Joint positions.
            limit: Pairs farther apart are ignored [m].

        Returns:
            At most ``limit`` [m], and then None.  Triangles that intersect give 0 instead of a depth.

        Raises:
            InputError: as `Chain.positions`.
        """
        poses, near_pairs = self._find_near_pairs(q, limit)
        min_distance, nearest_pair = limit, None
        for i, j in near_pairs:
            found = self._signed_distance_of_pair(i, j, poses)
            if found < min_distance:
                min_distance, nearest_pair = found, (self._shapes[i].name, self._shapes[j].name)
        return min_distance, nearest_pair

    def _signed_distance_of_pair(self, i: int, j: int, poses: list[Any]) -> float:
        request = self._coal.DistanceRequest()
        request.enable_signed_distance = True
        return float(
            self._coal.distance(
                self._shapes[i].coal_geometry,
                poses[i],
                self._shapes[j].coal_geometry,
                poses[j],
                request,
                self._coal.DistanceResult(),
            )
        )

    def _find_near_pairs(self, q: ArrayLike, limit: float) -> tuple[list[Any], list[tuple[int, int]]]:
        """Return the poses of all shapes, and the pairs whose bounding spheres are nearer than the limit."""
        frames = np.concatenate([self.chain.frames(self.chain.as_positions(q)), np.eye(4)[None]])
        poses = frames[self._frame_index] @ self._T_frame_shape
        centers = poses[:, :3, 3]
        a, b = self._pairs.T
        gaps = np.linalg.norm(centers[a] - centers[b], axis=1) - self._bounding_radii[a] - self._bounding_radii[b]
        near_pairs = [(int(i), int(j)) for i, j in self._pairs[gaps <= limit]]
        coal_poses: list[Any] = [None] * len(poses)
        for k in {number for pair in near_pairs for number in pair}:
            coal_poses[k] = self._coal.Transform3s(poses[k, :3, :3].copy(), centers[k].copy())
        return coal_poses, near_pairs

    def _make_shape(self, name: str, frame: int, geometry: Geometry, T: SE3) -> _CoalShape:
        coal_geometry, bounding_radius = make_coal_geometry(geometry, name)
        return _CoalShape(name, frame, coal_geometry, T.matrix(), bounding_radius)


def make_coal_geometry(geometry: Geometry, location: str) -> tuple[Any, float]:
    """Return a geometry of coal, and its bounding radius about its frame [m].

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
            return _make_coal_hull(points), float(np.linalg.norm(points, axis=1).max())
        case Mesh():
            from roboyard.description.meshes.files import load_mesh

            vertices, faces = load_mesh(geometry)
            bounding_radius = float(np.linalg.norm(vertices, axis=1).max())
            return (_make_coal_hull(vertices) if geometry.convex else _make_coal_mesh(vertices, faces)), bounding_radius
    raise DescriptionError(f"a {type(geometry).__name__.lower()} is not supported", location=location)


def _make_coal_hull(points: Array) -> Any:
    import coal

    vertices = coal.StdVec_Vec3s()
    for point in points:
        vertices.append(point)
    return coal.Convex.convexHull(vertices, True, "Qt")


def _make_coal_mesh(vertices: Array, faces: NDArray[np.int64]) -> Any:
    import coal

    model = coal.BVHModelOBBRSS()
    model.beginModel(len(faces), len(vertices))
    model.addVertices(np.ascontiguousarray(vertices))
    model.addTriangles(np.ascontiguousarray(faces, np.int64))
    model.endModel()
    return model


@dataclass(frozen=True)
class RecheckResult:
    """Result of the exact check of a motion.

    Attributes:
        n_states: Number of checked states.
        max_tool_step: Maximum motion of the tool between two of them [m].
        contacts: Times [s] of contacts, and the pairs in contact.
    """

    n_states: int
    max_tool_step: float
    contacts: tuple[tuple[float, tuple[str, str]], ...]


def recheck_motion(checker: CoalChecker, motion: SampledMotion, tool_step: float = 0.001) -> RecheckResult:
    """Check a motion at states between which the tool moves at most ``tool_step`` [m]."""
    coarse_times = np.linspace(0.0, motion.duration, 400)
    tips = checker.chain.forward(motion.sample_at(coarse_times).position)[:, :3, 3]
    tool_path_length = float(np.linalg.norm(np.diff(tips, axis=0), axis=1).sum())
    count = max(2, math.ceil(2.0 * tool_path_length / tool_step))
    while True:
        times = np.linspace(0.0, motion.duration, count)
        states = motion.sample_at(times).position
        tips = checker.chain.forward(states)[:, :3, 3]
        steps = np.linalg.norm(np.diff(tips, axis=0), axis=1)
        if steps.max(initial=0.0) <= tool_step:
            break
        count = math.ceil(1.5 * count)
    checked_states = ((float(t), checker.find_contact(q)) for t, q in zip(times, states, strict=True))
    contacts = tuple((t, pair) for t, pair in checked_states if pair is not None)
    return RecheckResult(count, float(steps.max(initial=0.0)), contacts)
