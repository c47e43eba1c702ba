"""Collision model of a robot and its surroundings as arrays for the kernels: convex shapes, pairs of shapes, and an
AABB tree.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

from roboyard.compute import kernel
from roboyard.description import Model
from roboyard.errors import InputError
from roboyard.geometry import SE3
from roboyard.geometry.arrays import Array
from roboyard.kinematics.chain import Chain
from roboyard.kinematics.chain_kernels import ChainArrays, example_chain_arrays
from roboyard.manipulation.collision.convex_shapes import (
    BOX,
    ConvexShape,
    ConvexShapeArrays,
    IntArray,
    concatenate_shapes,
    shapes_of_geometry,
    stack_shapes,
)
from roboyard.manipulation.collision.gjk import example_shapes
from roboyard.manipulation.collision.obstacles import AttachedBody, Obstacle, VoxelObstacles
from roboyard.manipulation.semantics.planning_groups import SemanticDescription


class AabbTree(NamedTuple):
    """A tree of axis-aligned bounding boxes in depth-first order, so that a traversal needs no stack.

    Attributes:
        low: (n, 3) minimum corner of each node's box [m].
        high: (n, 3) maximum corner.
        skip: (n,) index of the next node if a node's subtree is skipped.
        leaf: (n,) index of the shape at a leaf; -1 for inner nodes.
    """

    low: Array
    high: Array
    skip: NDArray[np.int64]
    leaf: NDArray[np.int64]


def build_aabb_tree(low: Array, high: Array) -> AabbTree:
    """Build a tree over boxes (n, 3), split at the median along the longest side."""
    nodes = max(2 * len(low) - 1, 0)
    tree = AabbTree(np.zeros((nodes, 3)), np.zeros((nodes, 3)), np.zeros(nodes, np.int64), np.full(nodes, -1, np.int64))
    _fill_aabb_tree(np.ascontiguousarray(low), np.ascontiguousarray(high), *tree)
    return tree


@kernel(examples=lambda: [(*(np.zeros((1, 3)) for _ in range(4)), np.zeros(1, np.int64), np.zeros(1, np.int64))])
def _fill_aabb_tree(
    low: Array, high: Array, node_low: Array, node_high: Array, skip: NDArray[np.int64], leaf: NDArray[np.int64]
) -> None:
    """Fill the nodes of `build_aabb_tree`; each node sorts its range of ``order`` for its two halves."""
    n = low.shape[0]
    order = np.arange(n)
    stack = np.zeros((64, 3), np.int64)  # node, first, count; the tree is at most that deep
    depth = 1 if n else 0
    stack[0, 2] = n
    while depth:
        depth -= 1
        node, first, n_boxes = stack[depth]
        box_indices = order[first : first + n_boxes]
        max_extent, axis = -1.0, 0
        for k in range(3):
            min_corner, max_corner = low[box_indices[0], k], high[box_indices[0], k]
            min_center = max_center = (low[box_indices[0], k] + high[box_indices[0], k]) / 2.0
            for box_index in box_indices:
                min_corner, max_corner = min(min_corner, low[box_index, k]), max(max_corner, high[box_index, k])
                center = (low[box_index, k] + high[box_index, k]) / 2.0
                min_center, max_center = min(min_center, center), max(max_center, center)
            node_low[node, k], node_high[node, k] = min_corner, max_corner
            if max_center - min_center > max_extent:
                max_extent, axis = max_center - min_center, k
        skip[node] = node + 2 * n_boxes - 1
        if n_boxes == 1:
            leaf[node] = box_indices[0]
            continue
        centers = (low[box_indices, axis] + high[box_indices, axis]) / 2.0
        order[first : first + n_boxes] = box_indices[np.argsort(centers, kind="mergesort")]
        half = n_boxes // 2
        stack[depth] = node + 2 * half, first + half, n_boxes - half
        stack[depth + 1] = node + 1, first, half
        depth += 2


class CollisionArrays(NamedTuple):
    """A robot of n shapes on a chain of m moving joints, p pairs of its shapes, and a world of w shapes.

    Attributes:
        chain: The chain.
        robot_shapes: The robot's shapes.
        frame_index: (n,) chain frame of each shape, ascending.
        T_frame_shape: (n, 4, 4) pose of each shape in its chain frame.
        motion_bounds: (n, m) maximum displacement of a shape's points for each unit of a moving joint [m/rad or 1].
        pairs: (p, 2) shapes of the robot that must not touch, the one nearer to the base first.
        world_shapes: The world's shapes.
        world_poses: (w, 4, 4) their poses in the chain's base.
        world_tree: AABB tree over the world's shapes.
        is_allowed: (n, w) whether contact of a robot shape with a world shape is permitted.
        margin: Distance below which two shapes are in contact [m].
    """

    chain: ChainArrays
    robot_shapes: ConvexShapeArrays
    frame_index: IntArray
    T_frame_shape: Array
    motion_bounds: Array
    pairs: IntArray
    world_shapes: ConvexShapeArrays
    world_poses: Array
    world_tree: AabbTree
    is_allowed: NDArray[np.bool_]
    margin: float


class CollisionWorkspace(NamedTuple):
    """Memory that the kernels write to, allocated once.

    Attributes:
        frames: (m + 1, 4, 4) frames of the chain.
        poses: (n, 4, 4) poses of the robot's shapes.
        motion_rates: (n,) maximum speed of each shape along the checked motion.
        pair_rates: (p,) maximum approach speed of each pair of shapes.
        simplex: (5, 3).
        intervals: (i, 2) intervals of a motion that are not yet checked.
        contact_pair: (2,) last contact: a shape of the robot, and one of the world, or -1 - the index of another robot
            shape.
        n_checks: (1,) number of checked states.
        q: (dof,) a state.
    """

    frames: Array
    poses: Array
    motion_rates: Array
    pair_rates: Array
    simplex: Array
    intervals: Array
    contact_pair: IntArray
    n_checks: IntArray
    q: Array


def make_workspace(collision: CollisionArrays) -> CollisionWorkspace:
    """Allocate the workspace of the kernels."""
    n_joints, n_shapes = len(collision.chain.rotation_per_unit), len(collision.frame_index)
    return CollisionWorkspace(
        np.zeros((n_joints + 1, 4, 4)),
        np.zeros((n_shapes, 4, 4)),
        np.zeros(n_shapes),
        np.zeros(len(collision.pairs)),
        np.zeros((5, 3)),
        np.zeros((2048, 2)),
        np.zeros(2, np.int64),
        np.zeros(1, np.int64),
        np.zeros(len(collision.chain.lower)),
    )


def example_collision_arrays() -> CollisionArrays:
    """Return a model with one shape of each kind, for the examples of kernels."""
    shapes, identity_pose = example_shapes(), np.eye(4)[None].copy()
    zero_index = np.zeros(1, np.int64)
    low, high = np.zeros((1, 3)), np.ones((1, 3))
    return CollisionArrays(
        example_chain_arrays(),
        shapes,
        zero_index,
        identity_pose,
        np.zeros((1, 1)),
        np.zeros((1, 2), np.int64),
        shapes,
        identity_pose.copy(),
        build_aabb_tree(low, high),
        np.zeros((1, 1), np.bool_),
        0.001,
    )


SHAPE_NUMBER_SEPARATOR: Final = "#"
"""Separator between the name of an object and the number of one of its shapes."""
_NAME_SEPARATORS: Final = ("::", SHAPE_NUMBER_SEPARATOR, " ")
"""Separators between the name of an object and that of its part."""


@dataclass(frozen=True, eq=False)
class RobotShape:
    """A convex shape of the robot.

    Attributes:
        name: Name of the link or attached body.
        frame_index: Frame of the chain that moves the shape.
        shape: The shape in that frame.
    """

    name: str
    frame_index: int
    shape: ConvexShape


def collect_robot_shapes(model: Model, chain: Chain, attached: Mapping[str, AttachedBody]) -> tuple[RobotShape, ...]:
    """Return the shapes of all links and attached bodies, from the base to the tip. Raises DescriptionError."""
    found = []
    for link in model.links:
        frame, matrix = chain.link_mounts[link.name]
        T = SE3.from_matrix(matrix)
        for shape in link.collisions:
            location = f"{model.name}, {link.name}"
            if shape.surface.collide:
                convex_shapes = shapes_of_geometry(shape.geometry, T @ shape.T_link_geom, location, hull=True)
                found += [RobotShape(link.name, frame, convex_shape) for convex_shape in convex_shapes]
    for body in attached.values():
        frame, matrix = chain.link_mounts[body.link]
        T = SE3.from_matrix(matrix) @ body.T_link
        found += [
            RobotShape(body.name, frame, convex_shape)
            for convex_shape in shapes_of_geometry(body.geometry, T, body.name, hull=True)
        ]
    return tuple(sorted(found, key=lambda robot_shape: robot_shape.frame_index))


def collect_allowed_pairs(
    semantics: SemanticDescription,
    attached: Mapping[str, AttachedBody],
    more_pairs: Iterable[tuple[str, str]],
    chain: Chain,
) -> frozenset[tuple[str, str]]:
    """Return the pairs of names that may touch, in both orders."""
    pairs = [*semantics.allowed_collisions, *more_pairs]
    for body in attached.values():
        pairs += [(body.name, link) for link in body.touch_links]
    return frozenset(pair for one, other in pairs for pair in ((one, other), (other, one)))


@dataclass(frozen=True, eq=False)
class RobotCollisionModel:
    """The robot's part of `CollisionArrays`, which does not depend on the world.

    Attributes:
        chain: The chain.
        shape_names: (n) link or attached body of each shape.
        shapes: The shapes.
        frame_index: (n,) chain frame of each shape.
        T_frame_shape: (n, 4, 4) pose of each shape in its chain frame.
        motion_bounds: (n, m) see `CollisionArrays`.
        pairs: (p, 2) see `CollisionArrays`.
        workspace_radius: Radius of a sphere about the base that no shape ever leaves [m].
        allowed_pairs: Pairs of names that may touch, in both orders.
        allowed_names: All names in these pairs.
        allowed_by_obstacle: Cache of `allowed_shapes` by the name of the obstacle.
    """

    chain: ChainArrays
    shape_names: tuple[str, ...]
    shapes: ConvexShapeArrays
    frame_index: NDArray[np.int64]
    T_frame_shape: Array
    motion_bounds: Array
    pairs: NDArray[np.int64]
    workspace_radius: float
    allowed_pairs: frozenset[tuple[str, str]]
    allowed_names: frozenset[str]
    allowed_by_obstacle: dict[str, NDArray[np.bool_]] = field(default_factory=dict)

    def allowed_shapes(self, obstacle_name: str) -> NDArray[np.bool_]:
        """Return (n,) which shapes may touch an obstacle."""
        if obstacle_name not in self.allowed_by_obstacle:
            is_named = not self.allowed_names.isdisjoint(name_hierarchy(obstacle_name))
            self.allowed_by_obstacle[obstacle_name] = np.array(
                [
                    is_named and is_collision_allowed(self.allowed_pairs, shape_name, obstacle_name)
                    for shape_name in self.shape_names
                ],
                np.bool_,
            )
        return self.allowed_by_obstacle[obstacle_name]


def build_robot_model(
    chain: Chain, robot_shapes: Sequence[RobotShape], allowed_pairs: frozenset[tuple[str, str]]
) -> RobotCollisionModel:
    """Build the collision model of a robot. Raises InputError: a sliding joint has no limits."""
    shapes = stack_shapes([robot_shape.shape for robot_shape in robot_shapes])
    frame_index = np.array([robot_shape.frame_index for robot_shape in robot_shapes], dtype=np.int64)
    T_frame_shape = np.array([robot_shape.shape.T_frame_shape.matrix() for robot_shape in robot_shapes]).reshape(
        -1, 4, 4
    )
    return RobotCollisionModel(
        chain.arrays,
        tuple(robot_shape.name for robot_shape in robot_shapes),
        shapes,
        frame_index,
        T_frame_shape,
        compute_motion_bounds(chain.arrays, shapes, frame_index, T_frame_shape, chain.robot),
        _find_checked_pairs(robot_shapes, allowed_pairs),
        _compute_workspace_radius(chain.arrays, shapes, frame_index, T_frame_shape),
        allowed_pairs,
        frozenset(name for pair in allowed_pairs for name in pair),
    )


@dataclass(frozen=True, eq=False)
class WorldCollisionModel:
    """The world's part of `CollisionArrays`, in the base of a chain.

    Attributes:
        shapes: The shapes.
        poses: (w, 4, 4) their poses.
        obstacle_names: (w) obstacle of each shape.
        lower: (w, 3) minimum corners of their bounding boxes [m].
        upper: (w, 3) maximum corners.
    """

    shapes: ConvexShapeArrays
    poses: Array
    obstacle_names: tuple[str, ...]
    lower: Array
    upper: Array

    def __add__(self, other: WorldCollisionModel) -> WorldCollisionModel:
        """Return a model of both worlds."""
        return WorldCollisionModel(
            concatenate_shapes(self.shapes, other.shapes),
            np.concatenate([self.poses, other.poses]),
            self.obstacle_names + other.obstacle_names,
            np.concatenate([self.lower, other.lower]),
            np.concatenate([self.upper, other.upper]),
        )


def build_world_model(obstacles: Iterable[Obstacle | VoxelObstacles], T_base_world: SE3) -> WorldCollisionModel:
    """Build the collision model of obstacles. Raises DescriptionError: a shape is not supported."""
    shapes, poses, obstacle_names = _collect_world_shapes(obstacles, T_base_world)
    return WorldCollisionModel(shapes, poses, tuple(obstacle_names), *_compute_bounding_boxes(shapes, poses))


def name_hierarchy(name: str) -> tuple[str, ...]:
    """Return a name and those of its owners: an object of several shapes, a model of the world, or a person.

    >>> wholes("fixture::link::plate"), wholes("tray#2"), wholes("anna left_hand")
    (('fixture::link::plate', 'fixture'), ('tray#2', 'tray'), ('anna left_hand', 'anna'))
    """
    return (
        name,
        *(owner_name for separator in _NAME_SEPARATORS if (owner_name := name.partition(separator)[0]) != name),
    )


def is_collision_allowed(allowed_pairs: frozenset[tuple[str, str]], one: str, other: str) -> bool:
    """Return whether two bodies may touch, or the objects that they are parts of."""
    return any((a, b) in allowed_pairs for a in name_hierarchy(one) for b in name_hierarchy(other))


def combine_collision_models(
    robot: RobotCollisionModel, world: WorldCollisionModel, margin: float
) -> tuple[CollisionArrays, tuple[str, ...]]:
    """Return the arrays for the kernels, and the obstacle of each shape of the world.

    Obstacles out of the robot's reach are left out.
    """
    is_reachable = _is_within_radius(world.lower, world.upper, robot.workspace_radius + margin)
    world_shapes, world_poses = _select_shapes(world.shapes, is_reachable), world.poses[is_reachable]
    obstacle_names = tuple(world.obstacle_names[i] for i in np.flatnonzero(is_reachable).tolist())
    world_tree = build_aabb_tree(world.lower[is_reachable], world.upper[is_reachable])
    is_allowed = np.zeros((len(robot.shape_names), len(obstacle_names)), dtype=np.bool_)
    for k, name in enumerate(obstacle_names):
        is_allowed[:, k] = robot.allowed_shapes(name)
    collision = CollisionArrays(
        robot.chain,
        robot.shapes,
        robot.frame_index,
        robot.T_frame_shape,
        robot.motion_bounds,
        robot.pairs,
        world_shapes,
        world_poses,
        world_tree,
        is_allowed,
        margin,
    )
    return collision, obstacle_names


def compute_motion_bounds(
    chain: ChainArrays, shapes: ConvexShapeArrays, frame_index: NDArray[np.int64], T_frame_shape: Array, location: str
) -> Array:
    """Return (n, m) the maximum displacement of a shape's points for each unit of each moving joint. Raises
    InputError.
    """
    n, m = len(frame_index), len(chain.rotation_per_unit)
    link_lengths = np.linalg.norm(chain.origins[:, :3, 3], axis=1)
    max_strokes = np.zeros(m)
    for k in range(m):
        if chain.translation_per_unit[k] != 0.0:
            joint_range = chain.multiplier[k] * np.array(
                [chain.lower[chain.driving_joint[k]], chain.upper[chain.driving_joint[k]]]
            )
            max_strokes[k] = float(np.abs(chain.translation_per_unit[k] * (joint_range + chain.offset[k])).max())
            if not math.isfinite(max_strokes[k]) and k + 1 < m:
                raise InputError(f"moving joint {k} slides without limits", location=location, valid="a range")
    found = np.zeros((n, m))
    for i in range(n):
        max_distance = float(np.linalg.norm(T_frame_shape[i, :3, 3])) + shapes.bounding_radius[i]
        for k in range(frame_index[i] - 1, -1, -1):
            found[i, k] = (
                math.hypot(max_distance, chain.translation_per_unit[k])
                if chain.rotation_per_unit[k]
                else abs(chain.translation_per_unit[k])
            )
            max_distance += link_lengths[k] + max_strokes[k]
    return found


def _compute_workspace_radius(
    chain: ChainArrays, shapes: ConvexShapeArrays, frame_index: NDArray[np.int64], T_frame_shape: Array
) -> float:
    """Return the radius of a sphere about the base that the robot never leaves [m]."""
    max_distances = np.linalg.norm(T_frame_shape[:, :3, 3], axis=1) + shapes.bounding_radius
    link_lengths = np.linalg.norm(chain.origins[:, :3, 3], axis=1)
    for k in range(len(chain.rotation_per_unit)):
        joint_range = (
            np.array([chain.lower[chain.driving_joint[k]], chain.upper[chain.driving_joint[k]]]) * chain.multiplier[k]
        )
        max_stroke = (
            float(np.abs(chain.translation_per_unit[k] * (joint_range + chain.offset[k])).max())
            if chain.translation_per_unit[k]
            else 0.0
        )
        max_distances = max_distances + np.where(frame_index > k, link_lengths[k] + max_stroke, 0.0)
    return float(max_distances.max(initial=0.0))


def _is_within_radius(lower: Array, upper: Array, radius: float) -> NDArray[np.bool_]:
    distances = np.maximum(np.maximum(lower, -upper), 0.0)
    return np.asarray((distances**2).sum(axis=1) <= radius**2)


def _collect_world_shapes(
    obstacles: Iterable[Obstacle | VoxelObstacles], T_base_world: SE3
) -> tuple[ConvexShapeArrays, Array, list[str]]:
    shapes: list[ConvexShape] = []
    obstacle_names: list[str] = []
    voxel_obstacles: list[VoxelObstacles] = []
    for obstacle in obstacles:
        if isinstance(obstacle, VoxelObstacles):
            voxel_obstacles.append(obstacle)
            continue
        found = shapes_of_geometry(obstacle.geometry, T_base_world @ obstacle.T_world, obstacle.name)
        shapes += found
        obstacle_names += [obstacle.name] * len(found)
    poses = [np.array([shape.T_frame_shape.matrix() for shape in shapes]).reshape(-1, 4, 4)]
    world_shapes = stack_shapes(shapes)
    for voxels in voxel_obstacles:
        count = len(voxels.centers)
        voxel_poses = np.tile(T_base_world.matrix(), (count, 1, 1))
        voxel_poses[:, :3, 3] = T_base_world @ voxels.centers
        poses.append(voxel_poses)
        obstacle_names += [voxels.name] * count
        world_shapes = _append_cubes(world_shapes, count, voxels.size / 2.0)
    return world_shapes, np.concatenate(poses), obstacle_names


def _append_cubes(shapes: ConvexShapeArrays, count: int, half_size: float) -> ConvexShapeArrays:
    """Append ``count`` cubes; only the robot's bounding spheres are used, so cubes have none."""
    zeros = np.zeros(count, np.int64)
    return shapes._replace(
        kind=np.concatenate([shapes.kind, np.full(count, BOX, np.int64)]),
        half_size=np.concatenate([shapes.half_size, np.full((count, 3), half_size)]),
        radius=np.concatenate([shapes.radius, np.zeros(count)]),
        bounding_radius=np.concatenate([shapes.bounding_radius, np.full(count, half_size * math.sqrt(3.0))]),
        first_point=np.concatenate([shapes.first_point, zeros]),
        n_points=np.concatenate([shapes.n_points, zeros]),
        first_sphere=np.concatenate([shapes.first_sphere, zeros]),
        n_spheres=np.concatenate([shapes.n_spheres, zeros]),
    )


def _select_shapes(shapes: ConvexShapeArrays, mask: NDArray[np.bool_]) -> ConvexShapeArrays:
    """Select shapes by a mask; the arrays of points and spheres stay."""
    field_names = (
        "kind",
        "half_size",
        "radius",
        "bounding_radius",
        "first_point",
        "n_points",
        "first_sphere",
        "n_spheres",
    )
    return shapes._replace(**{name: getattr(shapes, name)[mask] for name in field_names})


def _compute_bounding_boxes(shapes: ConvexShapeArrays, poses: Array) -> tuple[Array, Array]:
    """Return the minimum and maximum corners of the axis-aligned bounding boxes of shapes."""
    half_extents = np.einsum("nij,nj->ni", np.abs(poses[:, :3, :3]), shapes.half_size) + shapes.radius[:, None]
    centers = poses[:, :3, 3]
    return centers - half_extents, centers + half_extents


def _find_checked_pairs(
    robot_shapes: Sequence[RobotShape], allowed_pairs: frozenset[tuple[str, str]]
) -> NDArray[np.int64]:
    found = [
        (i, j)
        for i, one in enumerate(robot_shapes)
        for j, other in enumerate(robot_shapes)
        if one.frame_index < other.frame_index
        and one.name != other.name
        and not is_collision_allowed(allowed_pairs, one.name, other.name)
    ]
    return np.array(found, dtype=np.int64).reshape(-1, 2)
