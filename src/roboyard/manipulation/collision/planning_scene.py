"""Planning scene: the robot, obstacles, attached bodies, and allowed collisions; and which object a gripper holds."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any, Final

import numpy as np
from numpy.typing import ArrayLike

from roboyard.config.wording import did_you_mean
from roboyard.errors import InputError, UnknownNameError
from roboyard.geometry import SE3
from roboyard.geometry.arrays import Array
from roboyard.geometry.constants import GRAVITY_VECTOR
from roboyard.kinematics.chain import Chain
from roboyard.kinematics.dynamics import ChainDynamics
from roboyard.manipulation.collision.collision_model import (
    CollisionArrays,
    RobotCollisionModel,
    RobotShape,
    WorldCollisionModel,
    build_robot_model,
    build_world_model,
    collect_allowed_pairs,
    collect_robot_shapes,
    combine_collision_models,
    make_workspace,
    name_hierarchy,
)
from roboyard.manipulation.collision.motion_check import compute_distances, find_contacts, is_line_free
from roboyard.manipulation.collision.obstacles import AttachedBody, Obstacle, VoxelObstacles
from roboyard.manipulation.collision.self_filter import FilterShapes
from roboyard.manipulation.semantics.planning_groups import PlanningGroup, SemanticDescription

Pair = tuple[str, str]
"""Names of two links, obstacles or attached bodies."""


_CACHE_SOURCES: Final = {
    "robot_shapes": ("semantics", "chain", "attached"),
    "robot_model": ("semantics", "chain", "attached", "allowed"),
    "world_model": ("semantics", "chain", "T_world_robot", "obstacles"),
    "T_world_base": ("semantics", "chain", "T_world_robot"),
}
"""Fields that each cached property depends on; it is kept while they do not change."""


@dataclass(frozen=True, eq=False)
class PlanningScene:
    """A planning group of a robot, and everything that it must not touch.

    Immutable: `with_obstacles`, `attach` and the like give another one.

    Attributes:
        semantics: Semantic description of the robot.
        chain: Chain of the group, to the tool that goals are for.
        group: The planning group.
        T_world_robot: Pose of the robot's model frame in the world.
        obstacles: Obstacles by name.
        attached: Attached bodies by name.
        allowed: Pairs that may touch, in addition to those of the semantic description.
        margin: Distance below which two bodies are in contact [m].
    """

    semantics: SemanticDescription
    chain: Chain
    group: PlanningGroup
    T_world_robot: SE3 = field(default_factory=SE3.identity)
    obstacles: Mapping[str, Obstacle | VoxelObstacles] = field(default_factory=dict)
    attached: Mapping[str, AttachedBody] = field(default_factory=dict)
    allowed: frozenset[Pair] = frozenset()
    margin: float = 0.001

    def __post_init__(self) -> None:
        if not 0.0 < self.margin < 1.0:
            raise InputError(f"a margin of {self.margin} m", valid="more than 0, less than 1 m")

    @classmethod
    def create(
        cls,
        semantics: SemanticDescription,
        group: str | None = None,
        *,
        tool: str | None = None,
        T_world_robot: SE3 | None = None,
        obstacles: Iterable[Obstacle | VoxelObstacles] = (),
        fixed_positions: Mapping[str, float] | None = None,
        margin: float = 0.001,
    ) -> PlanningScene:
        """Create the scene of a robot.

        Args:
            semantics: Semantic description of the robot.
            group: Name of the planning group; the first unless named.
            tool: Frame that goals are for; the group's tip unless named.
            T_world_robot: Pose of the robot in the world.
            obstacles: Obstacles.
            fixed_positions: Positions of joints outside the group [rad or m].
            margin: Distance below which two bodies are in contact [m].

        Raises:
            UnknownNameError: there is no such group, tool or joint.
            InputError: two obstacles of one name, or an invalid margin.
        """
        chain = semantics.chain(group, tool, fixed_positions)
        empty_scene = cls(semantics, chain, semantics.group(group), T_world_robot or SE3.identity(), margin=margin)
        return empty_scene.with_obstacles(obstacles)

    # -- other scenes ------------------------------------------------------------------------------------------------
    def with_obstacles(self, obstacles: Iterable[Obstacle | VoxelObstacles]) -> PlanningScene:
        """Return a scene with more obstacles. Raises InputError for a duplicate name."""
        found, new_obstacles = dict(self.obstacles), list(obstacles)
        for obstacle in new_obstacles:
            if obstacle.name in found:
                raise InputError(f"two obstacles are called {obstacle.name!r}", valid="a name for each")
            found[obstacle.name] = obstacle
        scene = self._with(obstacles=found)
        if "world_model" in vars(self):
            vars(scene)["world_model"] = self.world_model + build_world_model(
                new_obstacles, self.T_world_base.inverse()
            )
        return scene

    def without_obstacles(self, *names: str) -> PlanningScene:
        """Return a scene without some obstacles. Raises UnknownNameError."""
        for name in names:
            self._check_known("obstacle", name, self.obstacles)
        return self._with(obstacles={name: one for name, one in self.obstacles.items() if name not in names})

    def with_robot_pose(self, T_world_robot: SE3) -> PlanningScene:
        """Return a scene with the robot at another pose."""
        return self._with(T_world_robot=T_world_robot)

    def attach(self, body: AttachedBody) -> PlanningScene:
        """Return a scene with a body attached to a link. Raises UnknownNameError, InputError."""
        self._check_known("link", body.link, self.chain.link_mounts)
        for link in body.touch_links:
            self._check_known("link", link, self.chain.link_mounts)
        if body.name in self.attached or body.name in self.chain.link_mounts:
            raise InputError(f"the name {body.name!r} is taken", valid="a name of its own")
        return self._with(attached={**self.attached, body.name: body})

    def allow_gripper_contact(self, name: str) -> PlanningScene:
        """Return a scene in which the group's gripper may touch an obstacle, so that it can grasp it.

        Raises:
            UnknownNameError: there is no such obstacle, or the group has no gripper.
        """
        self._check_known("obstacle", name, self.obstacles)
        if self.group.gripper is None:
            raise UnknownNameError(f"group {self.group.name!r} has no gripper", valid="gripper: … in its groups file")
        return self.with_allowed(*((finger, name) for finger in self._gripper_links()))

    def disallow_gripper_contact(self, name: str) -> PlanningScene:
        """Return a scene in which nothing may touch an obstacle any more, after the gripper has retreated. Raises
        UnknownNameError.
        """
        self._check_known("obstacle", name, self.obstacles)
        return self._with(allowed=frozenset(pair for pair in self.allowed if name not in pair))

    def attach_obstacle(
        self, name: str, q: ArrayLike, link: str | None = None, touch_links: Sequence[str] = (), mass: float = 0.0
    ) -> PlanningScene:
        """Return a scene in which an obstacle is attached to a link, with the joints at ``q`` (n,); the group's gripper
        may touch it.

        The attached body is then checked for collisions with everything else. While it still stands on an obstacle,
        `with_allowed` of that pair permits lifting it off. Its mass [kg] counts for the joints' efforts.

        Raises:
            UnknownNameError: there is no such obstacle or link.
            InputError: it is a cloud of voxels.
        """
        self._check_known("obstacle", name, self.obstacles)
        obstacle = self.obstacles[name]
        if isinstance(obstacle, VoxelObstacles):
            raise InputError(f"{name!r} is a cloud of voxels", valid="an obstacle with a shape")
        carrying_link = link or self._tip_link()
        T = (self.T_world_base @ SE3.from_matrix(self.link_pose(carrying_link, q))).inverse() @ obstacle.T_world
        return self.without_obstacles(name).attach(
            AttachedBody(name, carrying_link, obstacle.geometry, T, (*self._gripper_links(), *touch_links), mass)
        )

    def detach_to_world(self, name: str, q: ArrayLike) -> PlanningScene:
        """Return a scene in which an attached body is an obstacle at its present pose, with the joints at ``q``.

        Links that could touch it may do so until `disallow_gripper_contact`, so that the fingers can open and retreat.
        Raises UnknownNameError.
        """
        self._check_known("attached shape", name, self.attached)
        body = self.attached[name]
        T_world = self.T_world_base @ SE3.from_matrix(self.link_pose(body.link, q)) @ body.T_link
        remaining_bodies = {key: value for key, value in self.attached.items() if key != name}
        scene = self._with(attached=remaining_bodies).with_obstacles([Obstacle(name, body.geometry, T_world)])
        return scene.with_allowed(*((link, name) for link in body.touch_links))

    def without_attached(self, *names: str) -> PlanningScene:
        """Return a scene without some attached bodies. Raises UnknownNameError."""
        for name in names:
            self._check_known("attached shape", name, self.attached)
        return self._with(attached={name: one for name, one in self.attached.items() if name not in names})

    def with_allowed(self, *pairs: Pair) -> PlanningScene:
        """Return a scene with more allowed pairs; a name may also be that of a whole model, object or person.

        Raises:
            UnknownNameError: there is nothing of a name.
        """
        known_names = [*self.chain.link_mounts, *self.obstacles, *self.attached]
        owner_names = [name for one in (*self.obstacles, *self.attached) for name in name_hierarchy(one)[1:]]
        for name in (name for pair in pairs for name in pair):
            if name not in owner_names:
                self._check_known("link, obstacle or attached shape", name, known_names)
        return self.with_allowed_unchecked(*pairs)

    def with_allowed_unchecked(self, *pairs: Pair) -> PlanningScene:
        """Return a scene with more allowed pairs, as `with_allowed`, also for names that do not exist yet."""
        return self._with(allowed=self.allowed | set(pairs))

    def without_allowed(self, *pairs: Pair) -> PlanningScene:
        """Return a scene without some allowed pairs."""
        removed_pairs = {*pairs, *((other, one) for one, other in pairs)}
        return self._with(allowed=frozenset(pair for pair in self.allowed if pair not in removed_pairs))

    def with_fixed_positions(self, fixed_positions: Mapping[str, float], tool: str | None = None) -> PlanningScene:
        """Return a scene with other positions of joints outside the group [rad or m], for a tool of the group.

        Raises:
            UnknownNameError: there is no such joint or tool.
        """
        return self._with(chain=self.semantics.chain(self.group.name, tool, fixed_positions))

    def with_margin(self, margin: float) -> PlanningScene:
        """Return a scene with another margin [m]. Raises InputError."""
        return self._with(margin=margin)

    # -- queries -----------------------------------------------------------------------------------------------------
    @cached_property
    def T_world_base(self) -> SE3:
        """Pose of the chain's base in the world."""
        if self.chain.base == "world":
            return self.T_world_robot
        parent_links = {joint.child: joint.parent for joint in self.semantics.model.joints}
        root_link = self.chain.base
        while parent_links.get(root_link, "world") != "world":
            root_link = parent_links[root_link]
        T_base_top = SE3.from_matrix(self.chain.link_mounts[root_link][1])
        return self.T_world_robot @ self.semantics.model.link(root_link).T_model_link @ T_base_top.inverse()

    @cached_property
    def dynamics(self) -> ChainDynamics:
        """Dynamics of the chain with the attached bodies as payloads."""
        gravity = self.T_world_base.rotation_matrix().T @ np.array(GRAVITY_VECTOR)
        payloads = [one.to_payload() for one in self.attached.values() if one.mass > 0.0]
        return ChainDynamics.from_model(self.semantics.model, self.chain, payloads, gravity)

    @cached_property
    def robot_shapes(self) -> tuple[RobotShape, ...]:
        """Convex shapes of the robot and of attached bodies, from the base to the tip."""
        return collect_robot_shapes(self.semantics.model, self.chain, self.attached)

    @cached_property
    def world_shape_names(self) -> tuple[str, ...]:
        """Obstacle of each shape of the world."""
        return self._combined_models[1]

    @property
    def collision_arrays(self) -> CollisionArrays:
        """Collision model for the kernels."""
        return self._combined_models[0]

    @cached_property
    def robot_model(self) -> RobotCollisionModel:
        """Collision model of the robot and of attached bodies."""
        allowed = collect_allowed_pairs(self.semantics, self.attached, self.allowed, self.chain)
        return build_robot_model(self.chain, self.robot_shapes, allowed)

    @cached_property
    def world_model(self) -> WorldCollisionModel:
        """Collision model of the obstacles."""
        return build_world_model(self.obstacles.values(), self.T_world_base.inverse())

    @cached_property
    def _combined_models(self) -> tuple[CollisionArrays, tuple[str, ...]]:
        return combine_collision_models(self.robot_model, self.world_model, self.margin)

    def find_contacts(self, q: ArrayLike) -> list[Pair | None]:
        """Return the first pair in contact in each state (k, n), or None without contact. Raises InputError."""
        states = np.atleast_2d(self.chain.as_positions(q))
        collision = self.collision_arrays
        return [
            self.pair_names(contact_pair)
            for contact_pair in find_contacts(collision, make_workspace(collision), states)
        ]

    def find_contact(self, q: ArrayLike) -> Pair | None:
        """Return a pair in contact in a state (n,), or None. Raises InputError."""
        return self.find_contacts(q)[0]

    def is_free(self, q: ArrayLike) -> bool:
        """Return whether a state (n,) is collision-free. Raises InputError."""
        return self.find_contact(q) is None

    def is_line_free(self, a: ArrayLike, b: ArrayLike) -> bool:
        """Return whether the straight motion of the joints from ``a`` to ``b`` (n,) is collision-free. Raises
        InputError.
        """
        collision = self.collision_arrays
        return bool(
            is_line_free(collision, make_workspace(collision), self.chain.as_positions(a), self.chain.as_positions(b))
        )

    def distance(self, q: ArrayLike, limit: float = 1.0) -> float:
        """Return a lower bound of the distance to collision [m]: at most ``limit``, 0 in contact.

        `CoalChecker` computes signed distances. Raises InputError.
        """
        collision = self.collision_arrays
        return float(
            compute_distances(collision, make_workspace(collision), np.atleast_2d(self.chain.as_positions(q)), limit)[0]
        )

    def world_distance(self, q: ArrayLike, limit: float = 1.0) -> float:
        """Return the `distance` between robot and world only: links of the robot are often near each other."""
        collision = self.collision_arrays._replace(pairs=np.zeros((0, 2), np.int64))
        return float(
            compute_distances(collision, make_workspace(collision), np.atleast_2d(self.chain.as_positions(q)), limit)[0]
        )

    def link_pose(self, link: str, q: ArrayLike) -> Array:
        """Return the pose (4, 4) of a link in the chain's base. Raises UnknownNameError, InputError."""
        self._check_known("link", link, self.chain.link_mounts)
        frame, T = self.chain.link_mounts[link]
        found: Array = self.chain.frames(q)[frame] @ T
        return found

    def pair_names(self, contact_pair: Any) -> Pair | None:
        """Return the names of a pair of shapes in contact, from their indices in the kernels."""
        first, second = int(contact_pair[0]), int(contact_pair[1])
        if first < 0:
            return None
        name = self.robot_shapes[first].name
        return (name, self.world_shape_names[second]) if second >= 0 else (name, self.robot_shapes[-1 - second].name)

    def _gripper_links(self) -> tuple[str, ...]:
        return self.semantics.gripper(self.group.gripper).links if self.group.gripper is not None else ()

    def _tip_link(self) -> str:
        for frame in self.semantics.model.frames:
            if frame.name == self.group.tip:
                return frame.link
        return self.group.tip

    def _with(self, **changes: Any) -> PlanningScene:
        scene = replace(self, **changes)
        for name, sources in _CACHE_SOURCES.items():  # moving people change neither the robot nor a table
            if name in vars(self) and not any(source in changes for source in sources):
                vars(scene)[name] = vars(self)[name]
        return scene

    def _check_known(self, kind: str, name: str, known_names: Iterable[str]) -> None:
        names = list(known_names)
        if name not in names:
            raise UnknownNameError(
                f"no {kind} {name!r}{did_you_mean(name, names)}",
                location=f"scene of {self.semantics.model.name}",
                valid=", ".join(names[:40]) or "there is none",
            )


_N_BISECTIONS = 12
"""Number of bisections of the distance to the nearest obstacle."""
_MAX_CONTACTS = 50


def find_grasp_center(scene: PlanningScene, q: ArrayLike) -> tuple[Array, float]:
    """Return the point (3,) between the fingers of the group's gripper in the world, and the reach of the fingers from
    it [m].

    Args:
        scene: Scene with the present positions of the fingers.
        q: (n,) joint positions of the group.

    Raises:
        UnknownNameError: the group has no gripper; InputError: ``q`` is not a state of the chain.
    """
    if scene.group.gripper is None:
        raise UnknownNameError(f"group {scene.group.name!r} has no gripper", valid="gripper: … in its groups file")
    finger_links = scene.semantics.gripper(scene.group.gripper).links
    frames = scene.chain.frames(q)
    finger_shapes = [shape for shape in scene.robot_shapes if shape.name in finger_links]
    positions = np.array(
        [(frames[shape.frame_index] @ shape.shape.T_frame_shape.matrix())[:3, 3] for shape in finger_shapes]
    )
    finger_centers = [positions[[shape.name == name for shape in finger_shapes]].mean(axis=0) for name in finger_links]
    center = np.mean(finger_centers, axis=0)
    reach = max(
        float(np.linalg.norm(position - center)) + float(np.linalg.norm(shape.shape.half_size)) + shape.shape.radius
        for shape, position in zip(finger_shapes, positions, strict=True)
    )
    return np.asarray(scene.T_world_base @ center), reach


def find_grasped_object(scene: PlanningScene, q: ArrayLike) -> str | None:
    """Return the obstacle that the gripper has grasped: the nearest one to the point between its fingers.

    Returns:
        Its name, or None: no known obstacle is within the reach of the fingers.

    Raises:
        UnknownNameError, InputError: as `find_grasp_center`.
    """
    point, reach = find_grasp_center(scene, q)
    nearest_name, min_distance = None, reach
    for name, obstacle in scene.obstacles.items():
        if not isinstance(obstacle, Obstacle):
            continue
        shapes = FilterShapes.from_obstacles([obstacle])
        if not shapes.contains(point[None], [SE3.identity()], min_distance)[0]:
            continue
        low, high = 0.0, min_distance
        for _ in range(_N_BISECTIONS):
            mid_distance = 0.5 * (low + high)
            low, high = (
                (low, mid_distance)
                if shapes.contains(point[None], [SE3.identity()], mid_distance)[0]
                else (mid_distance, high)
            )
        nearest_name, min_distance = name, high
    return nearest_name


def find_touching_pairs(scene: PlanningScene, names: set[str], q: ArrayLike) -> tuple[Pair, ...]:
    """Return the pairs in contact at ``q`` (n,) with one of the names, as the supports of a held object."""
    found: list[Pair] = []
    for _ in range(_MAX_CONTACTS):
        pair = scene.find_contact(q)
        if pair is None:
            break
        scene = scene.with_allowed(pair)
        if names & set(pair):
            found.append(pair)
    return tuple(found)


MARGIN_FRACTION = 0.4
"""A planned motion keeps half of the margin everywhere; a distance below this fraction of it blocks the motion."""


@dataclass(frozen=True, slots=True)
class PathBlockage:
    """Where a motion is blocked.

    Attributes:
        time: Time since the start of the motion [s].
        pair: Names of the bodies that would be in contact.
    """

    time: float
    pair: Pair


def find_blockage(scene: PlanningScene, times: Array, points: Array, elapsed: float) -> PathBlockage | None:
    """Return the first contact on the remaining part of a motion, or None.

    Between way points the joints are taken to go straight, and the way is proven free, not only looked at.

    Args:
        scene: The arm and its obstacles.
        times: (k,) times of the waypoints [s].
        points: (k, n) joint positions there [rad or m].
        elapsed: Time since the start of the motion; earlier waypoints are ignored [s].
    """
    collision = scene.collision_arrays._replace(margin=MARGIN_FRACTION * scene.margin)
    remaining = np.flatnonzero(times > elapsed)
    if not len(remaining):
        return None
    current_joints = np.array([np.interp(elapsed, times, column) for column in points.T])
    workspace = make_workspace(collision)
    lower, upper = scene.chain.lower, scene.chain.upper
    previous_joints, previous_time = np.clip(current_joints, lower, upper), elapsed
    for k in remaining.tolist():
        next_joints = np.clip(points[k], lower, upper)
        if not is_line_free(collision, workspace, previous_joints, next_joints):
            return PathBlockage(previous_time, scene.pair_names(workspace.contact_pair) or ("", ""))
        previous_joints, previous_time = next_joints, float(times[k])
    return None
