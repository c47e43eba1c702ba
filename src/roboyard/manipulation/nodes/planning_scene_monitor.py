"""Monitor of the planning scene in a run: measured joints, objects, people and sensed voxels; scenes and shapes in
messages.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any, Final

import numpy as np

from roboyard.bus import Node
from roboyard.config import Config, parameter
from roboyard.config.wording import did_you_mean
from roboyard.description import Box, Capsule, Cone, Cylinder, Geometry, Plane, Sphere, World
from roboyard.description.shapes import InlineArray, Mesh
from roboyard.errors import InputError, RoboyardError
from roboyard.geometry import SE3
from roboyard.geometry.arrays import Array
from roboyard.manipulation.collision import AttachedBody, Obstacle, VoxelObstacles, obstacles_from_world
from roboyard.manipulation.collision.collision_model import SHAPE_NUMBER_SEPARATOR
from roboyard.manipulation.collision.obstacles import PersonModelConfig
from roboyard.manipulation.collision.planning_scene import PlanningScene
from roboyard.manipulation.collision.self_filter import FilterShapes
from roboyard.manipulation.nodes.moveit_errors import ArmMotionError
from roboyard.manipulation.nodes.request_fields import check_fields
from roboyard.manipulation.semantics.planning_groups import SemanticDescription
from roboyard.mapping.octree.octomap_files import octree_from_msg
from roboyard.messages import msg
from roboyard.messages.convert import make_header, pose_to_msg, pose_to_se3

_MAX_SIZE: Final = 1e4
"""Maximum size of a shape [m]."""
_MAX_SHAPES: Final = 10_000
_MAX_TRIANGLES: Final = 100_000


def shapes_from_msg(message: Any) -> list[tuple[Geometry, SE3]]:
    """Return the shapes of a moveit_msgs/CollisionObject, with poses in its frame. Raises ArmMotionError,
    MessageError.
    """
    name = message.id
    T = pose_to_se3(message.pose)
    geometries: list[tuple[Geometry, SE3]] = []
    shape_fields = (
        ("primitives", "primitive_poses", _primitive_from_msg),
        ("meshes", "mesh_poses", _mesh_from_msg),
        ("planes", "plane_poses", _plane_from_msg),
    )
    for key, poses_key, make in shape_fields:
        shapes, poses = getattr(message, key), getattr(message, poses_key)
        if len(poses) not in (len(shapes), 0) or (len(shapes) > 1 and not poses):
            raise ArmMotionError(
                f"{len(shapes)} {key} and {len(poses)} poses of {name!r}", "bad_goal", valid="one each"
            )
        for k, shape in enumerate(shapes):
            geometry, T_shape = make(shape, name)
            geometries.append((geometry, T @ (pose_to_se3(poses[k]) if poses else SE3.identity()) @ T_shape))
    if len(geometries) > _MAX_SHAPES:
        raise ArmMotionError(f"{len(geometries)} shapes of {name!r}", "bad_goal", valid=f"at most {_MAX_SHAPES}")
    return geometries


def shape_names(name: str, n_shapes: int) -> list[str]:
    """Return the names of the shapes of an object."""
    return [name if k == 0 else f"{name}{SHAPE_NUMBER_SEPARATOR}{k}" for k in range(n_shapes)]


def shapes_of_object(name: str, known_names: Sequence[str]) -> list[str]:
    """Return the names that are shapes of an object."""
    return [one for one in known_names if one == name or one.startswith(name + SHAPE_NUMBER_SEPARATOR)]


def _check_size(value: float, name: str) -> float:
    if not (0.0 < value <= _MAX_SIZE):
        raise ArmMotionError(
            f"a size of {value} m of {name!r}", "bad_goal", valid=f"more than 0, at most {_MAX_SIZE:g}"
        )
    return float(value)


def _primitive_from_msg(shape: Any, name: str) -> tuple[Geometry, SE3]:
    kinds = msg.SolidPrimitive
    n_dimensions = {kinds.BOX: 3, kinds.SPHERE: 1, kinds.CYLINDER: 2, kinds.CONE: 2}.get(shape.type)
    if n_dimensions is None or len(shape.dimensions) < n_dimensions:
        description = f"a primitive of kind {shape.type} with {len(shape.dimensions)} dimensions"
        raise ArmMotionError(f"{description} of {name!r}", "bad_goal", valid="box 3, sphere 1, cylinder 2, cone 2")
    sizes = [_check_size(float(value), name) for value in shape.dimensions[:n_dimensions]]
    if shape.type == kinds.BOX:
        return Box((sizes[0], sizes[1], sizes[2])), SE3.identity()
    if shape.type == kinds.SPHERE:
        return Sphere(sizes[0]), SE3.identity()
    if shape.type == kinds.CYLINDER:
        return Cylinder(sizes[1], sizes[0]), SE3.identity()
    return Cone(sizes[1], sizes[0]), SE3.identity()


def _mesh_from_msg(shape: Any, name: str) -> tuple[Geometry, SE3]:
    vertices = np.array([(point.x, point.y, point.z) for point in shape.vertices], dtype=np.float64).reshape(-1, 3)
    triangles = np.array([one.vertex_indices for one in shape.triangles], dtype=np.int64).reshape(-1, 3)
    is_valid = len(vertices) and len(triangles) and np.isfinite(vertices).all() and len(triangles) <= _MAX_TRIANGLES
    if not is_valid or triangles.min() < 0 or triangles.max() >= len(vertices) or np.abs(vertices).max() > _MAX_SIZE:
        raise ArmMotionError(f"invalid mesh of {name!r}", "bad_goal", valid="finite points, triangles between them")
    inline = InlineArray(vertices.astype(np.float32).tobytes(), triangles.astype(np.int32).tobytes())
    return Mesh(name, None, inline=inline), SE3.identity()


def _plane_from_msg(shape: Any, name: str) -> tuple[Geometry, SE3]:
    a, b, c, d = (float(value) for value in shape.coef)
    length = math.hypot(a, b, c)
    if not (math.isfinite(length) and math.isfinite(d) and length > 1e-9):
        raise ArmMotionError(f"a plane {a:g} {b:g} {c:g} {d:g} of {name!r}", "bad_goal", valid="finite, with a normal")
    normal = np.array([a, b, c]) / length
    x = np.cross((0.0, 1.0, 0.0) if abs(normal[1]) < 0.9 else (1.0, 0.0, 0.0), normal)
    x /= np.linalg.norm(x)
    T = np.eye(4)
    T[:3, :3] = np.stack([x, np.cross(normal, x), normal], axis=1)
    T[:3, 3] = -d / length * normal
    return Plane((0.0, 0.0, 1.0)), SE3.from_matrix(T)


def object_to_msg(body: Obstacle | AttachedBody, frame: str, time_ns: int) -> Any:
    """Return the moveit_msgs/CollisionObject of a body, or None if there is no message for its shape."""
    T = body.T_world if isinstance(body, Obstacle) else body.T_link
    message = msg.moveit_msgs.CollisionObject(header=make_header(frame, time_ns), id=body.name, pose=pose_to_msg(T))
    kinds = msg.SolidPrimitive
    match body.geometry:
        case Box(size):
            shape = kinds(type=kinds.BOX, dimensions=np.array(size))
        case Sphere(radius):
            shape = kinds(type=kinds.SPHERE, dimensions=np.array([radius]))
        case Cylinder(radius, length):
            shape = kinds(type=kinds.CYLINDER, dimensions=np.array([length, radius]))
        case Cone(radius, length):
            shape = kinds(type=kinds.CONE, dimensions=np.array([length, radius]))
        case Capsule(radius, length):
            shape = kinds(type=kinds.CYLINDER, dimensions=np.array([length + 2.0 * radius, radius]))
        case Plane():
            message.planes, message.plane_poses = [msg.Plane(coef=np.array([0.0, 0.0, 1.0, 0.0]))], [msg.Pose()]
            return message
        case _:
            return None
    message.primitives, message.primitive_poses = [shape], [msg.Pose()]
    return message


def scene_to_msg(scene: PlanningScene, frame: str, time_ns: int, state: Any) -> Any:
    """Return a moveit_msgs/PlanningScene of obstacles and attached bodies, without voxels and meshes from files."""
    world_objects = [
        object_to_msg(one, frame, time_ns) for one in scene.obstacles.values() if not isinstance(one, VoxelObstacles)
    ]
    state.attached_collision_objects = [
        msg.moveit_msgs.AttachedCollisionObject(
            link_name=one.link, object=shape, touch_links=list(one.touch_links)
        )
        for one in scene.attached.values()
        if (shape := object_to_msg(one, one.link, time_ns)) is not None
    ]  # fmt: skip
    return msg.moveit_msgs.PlanningScene(
        name="roboyard", robot_model_name=scene.semantics.model.name, robot_state=state,
        world=msg.moveit_msgs.PlanningSceneWorld(collision_objects=[one for one in world_objects if one is not None]),
    )  # fmt: skip


def allowed_collisions_to_msg(scene: PlanningScene) -> Any:
    """Return the moveit_msgs/AllowedCollisionMatrix of the pairs of a scene and of its semantic description."""
    pairs = {frozenset(pair) for pair in (*scene.allowed, *scene.semantics.allowed_collisions)}
    names = sorted({name for pair in pairs for name in pair} | set(scene.obstacles) | set(scene.attached))
    rows = [
        msg.moveit_msgs.AllowedCollisionEntry(
            enabled=np.array([frozenset((one, other)) in pairs for other in names], dtype=np.bool_)
        )
        for one in names
    ]
    return msg.moveit_msgs.AllowedCollisionMatrix(entry_names=names, entry_values=rows)


def select_components(scene_message: Any, matrix: Any, components: int) -> Any:
    """Return the components of a moveit_msgs/PlanningScene for which moveit_msgs/PlanningSceneComponents asks.

    Args:
        scene_message: The whole scene; it is changed.
        matrix: Its moveit_msgs/AllowedCollisionMatrix.
        components: Sum of the constants of the components; 0: all.
    """
    kinds = msg.moveit_msgs
    flags = kinds.PlanningSceneComponents

    def is_requested(flag: int) -> bool:
        return components == 0 or bool(components & flag)

    state = scene_message.robot_state
    if not is_requested(flags.ROBOT_STATE_ATTACHED_OBJECTS):
        state.attached_collision_objects = []
        if not is_requested(flags.ROBOT_STATE):
            scene_message.robot_state = kinds.RobotState(is_diff=True)
    if not is_requested(flags.WORLD_OBJECT_GEOMETRY):
        scene_message.world.collision_objects = [
            kinds.CollisionObject(header=one.header, id=one.id)
            for one in scene_message.world.collision_objects
            if is_requested(flags.WORLD_OBJECT_NAMES)
        ]
    if is_requested(flags.ALLOWED_COLLISION_MATRIX):
        scene_message.allowed_collision_matrix = matrix
    return scene_message


_MAX_VOXELS: Final = 200_000
"""Maximum number of voxel obstacles."""


def voxels_from_octomap(message: Any, name: str, T_world_map: SE3) -> VoxelObstacles:
    """Return the occupied voxels of an octomap_msgs/Octomap, with large leaves divided into the smallest size.

    Cubes of a map that is turned are replaced by upright ones of the same size about the same middles.

    Raises:
        InputError: it holds no tree, or more than 200,000 occupied voxels.
    """
    leaves = octree_from_msg(message)
    is_occupied = leaves.occupied
    voxels, sizes, centers = leaves.edge_voxels[is_occupied], leaves.sizes[is_occupied], leaves.centers[is_occupied]
    n_voxels = int((voxels**3).sum())
    if n_voxels > _MAX_VOXELS:
        raise InputError(f"{n_voxels} occupied voxels", valid=f"at most {_MAX_VOXELS}: a coarser map, or a smaller one")
    center_arrays = [np.zeros((0, 3))]
    for width in np.unique(voxels).tolist():
        has_width = voxels == width
        offsets = (np.arange(width) + 0.5) * leaves.resolution
        cell_offsets = np.stack(np.meshgrid(offsets, offsets, offsets, indexing="ij"), axis=-1).reshape(-1, 3)
        corners = centers[has_width] - sizes[has_width, None] / 2.0
        center_arrays.append((corners[:, None, :] + cell_offsets[None]).reshape(-1, 3))
    return VoxelObstacles(name, T_world_map @ np.concatenate(center_arrays), leaves.resolution)


_JOINT_TOLERANCE: Final = 1e-3
"""Change of joints outside the group from which shapes are updated [rad or m]."""
_POSE_TOLERANCE: Final = 1e-4
"""Change of the base pose from which the scene is updated [m, rad]."""
WORLD: Final = "world"
"""Frame of the known world."""
SENSED: Final = "seen"
"""Name of the sensed voxels."""


class SceneParameters(Config):
    """Parameters of a node that keeps a planning scene up to date: its frame, its sources and its margins."""

    world_frame: str = parameter(
        "", doc="Frame of plans, from /tf; empty: the root link of a robot that does not move."
    )
    use_world_model: bool = parameter(False, doc="Use the fixed models of the world as obstacles, as from a map.")
    robot_pose: tuple[float, ...] = parameter((), doc="Pose x y z roll pitch yaw of the root in that world.")
    octomap_topic: str = parameter("", doc="Topic of octomaps from sensors; empty: none.")
    person_topics: tuple[str, ...] = parameter((), doc="Topics of people's positions, one nav_msgs/Odometry each.")
    person_body_topics: tuple[str, ...] = parameter((), doc="Topics of people's bodies, one PersonBody each.")
    people: PersonModelConfig = parameter(factory=PersonModelConfig, doc="Model of people as obstacles.")
    gripper_state_topic: str = parameter(
        "", doc="Topic of the gripper's state, with which objects are attached; empty: none."
    )
    detections_topic: str = parameter("", doc="Topic of detected objects with their sizes; empty: none.")
    allowed_collisions: tuple[tuple[str, str], ...] = parameter(
        (), doc="Pairs of names (links, objects, models) that may touch each other."
    )
    margin: float = parameter(0.005, unit="m", low=0.0005, high=0.5, doc="Distance below which bodies touch.")
    joint_timeout: float = parameter(0.5, unit="s", low=0.01, high=1e3, doc="Maximum age of measured joints.")


class PlanningSceneMonitor:
    """Keeps a `PlanningScene` up to date (MoveIt: planning_scene_monitor::PlanningSceneMonitor).

    `SceneInputs` gives it the messages of a node; the node plans in the scene that `current_scene` returns.

    Args:
        node: Node whose clock, transforms and log are used.
        semantics: Semantic description of the robot.
        group: Planning group that moves; empty: the first group of the robot.
        parameters: Frame, margins and allowed collisions of the scene.
        world: The world, whose fixed models become obstacles if ``use_world_model`` asks for it; None: unknown.

    Raises:
        InputError: ``robot_pose`` is no pose.
        UnknownNameError: The robot has no such group.

    Attributes:
        frame: Frame of plans, as in transforms.
        scene: Scene with known and attached objects; see `current_scene` for planning.
        version: Increases when an obstacle changes.
    """

    def __init__(
        self,
        node: Node,
        semantics: SemanticDescription,
        group: str,
        parameters: SceneParameters,
        world: World | None,
    ) -> None:
        self._node, self._semantics, self._timeout = node, semantics, parameters.joint_timeout
        world_frame, robot_pose = parameters.world_frame, parse_pose(parameters.robot_pose)
        root = semantics.root_link
        self._root = node.frame(root)
        self._T_root_model = semantics.model.link(root).T_model_link.inverse()
        self._is_base_fixed = not world_frame
        self.frame = node.frame(world_frame) if world_frame else self._root
        scene = PlanningScene.create(
            semantics, group or None, T_world_robot=self._T_root_model, margin=parameters.margin
        )
        self._T_frame_world = self._T_root_model @ robot_pose.inverse() if self._is_base_fixed else SE3.identity()
        if parameters.use_world_model and world is not None:
            T = self._T_frame_world
            movable_models = [placed.name for placed in world.models if not placed.model.static]
            fixed_obstacles = obstacles_from_world(world, excluded_models=movable_models)
            scene = scene.with_obstacles(Obstacle(o.name, o.geometry, T @ o.T_world) for o in fixed_obstacles)
        self.scene = scene.with_allowed_unchecked(*parameters.allowed_collisions)
        self._other_joints = [
            joint.name
            for joint in semantics.model.joints
            if joint.type != "fixed" and joint.name not in scene.chain.joints
        ]
        self._positions: dict[str, float] = {}
        self._measured_ns = -(10**18)
        self._other_positions: dict[str, float] = {}
        self._sensed_voxels: VoxelObstacles | None = None
        self._person_obstacles: dict[str, Obstacle] = {}
        self._body_part_obstacles: dict[str, list[Obstacle]] = {}
        self.sensed_ns = -(10**18)
        self.version = 0
        self._scenes_by_tool: dict[str | None, PlanningScene] = {}
        self._current_scenes: dict[str | None, PlanningScene] = {}

    # -- joints --------------------------------------------------------------------------------------------------------
    def on_joints(self, message: Any) -> None:
        """Store measured joints; a name without a position is left out."""
        for name, position in zip(message.name, message.position, strict=False):
            if np.isfinite(position):
                self._positions[name] = float(position)
        self._measured_ns = self._node.now_ns
        other_positions = {name: self._positions[name] for name in self._other_joints if name in self._positions}
        if any(
            abs(value - self._other_positions.get(name, 1e9)) > _JOINT_TOLERANCE
            for name, value in other_positions.items()
        ):
            self._other_positions = other_positions
            self._on_scene_changed()

    @property
    def joints(self) -> tuple[str, ...]:
        """Joints of the group."""
        return self.scene.chain.joints

    def measured_joints(self) -> Array:
        """Return (n,) measured joints of the group. Raises ArmMotionError if they are unknown or too old."""
        missing = [name for name in self.joints if name not in self._positions]
        age = (self._node.now_ns - self._measured_ns) * 1e-9
        if missing or age > self._timeout:
            problem = f"joint {missing[0]} is not measured" if missing else f"joints were last measured {age:.2f} s ago"
            raise ArmMotionError(problem, "joints_unknown", valid="sensor_msgs/JointState on joint_states")
        return np.array([self._positions[name] for name in self.joints])

    def with_joint_state(self, state: Any) -> Array:
        """Return (n,) measured joints, replaced by those of a sensor_msgs/JointState. Raises ArmMotionError."""
        names, values = list(state.name), list(state.position)
        if not names:
            return self.measured_joints()
        if len(names) != len(values) or not np.isfinite(values).all():
            raise ArmMotionError("a state of joints without a finite position for each", "bad_state")
        joint_names = [joint.name for joint in self._semantics.model.joints]
        for name in names:
            if name not in joint_names:
                raise ArmMotionError(
                    f"no joint {name!r}{did_you_mean(name, joint_names)}", "bad_state", valid=", ".join(self.joints)
                )
        positions = dict(zip(names, map(float, values), strict=True))
        if set(self.joints) <= set(positions):
            return np.array([positions[name] for name in self.joints])
        return np.array(
            [positions.get(name, value) for name, value in zip(self.joints, self.measured_joints(), strict=True)]
        )

    # -- frames --------------------------------------------------------------------------------------------------------
    def T_world_frame(self, frame: str) -> SE3:
        """Return the pose of a frame in the frame of plans; an empty name is that frame. Raises TransformError."""
        if frame in ("", self.frame):
            return SE3.identity()
        if frame == WORLD:
            return self._T_frame_world
        return self._node.transforms.lookup(self.frame, frame)

    # -- the scene -----------------------------------------------------------------------------------------------------
    def current_scene(self, tool: str | None = None) -> PlanningScene:
        """Return the scene to plan in, for a tool frame of the group. Raises TransformError, UnknownNameError."""
        scene_at_pose = self.at_robot_pose(self.scene)
        if scene_at_pose is not self.scene:
            self.set_scene(scene_at_pose)
        if tool not in self._current_scenes:
            tool_scene = self._scenes_by_tool.get(tool)
            if tool_scene is None:
                tool_scene = self._scenes_by_tool[tool] = self.with_measured_joints(self.scene, tool)
                _ = tool_scene.robot_model, tool_scene.world_model  # computed once, independent of people
            scene = self.with_people(tool_scene)
            self._current_scenes[tool] = (
                scene if self._sensed_voxels is None else scene.with_obstacles([self._sensed_voxels])
            )
        return self._current_scenes[tool]

    def with_people(self, scene: PlanningScene) -> PlanningScene:
        """Return a scene with the detected people."""
        parts = (part for body in self._body_part_obstacles.values() for part in body)
        return scene.with_obstacles([*self._person_obstacles.values(), *parts])

    def at_robot_pose(self, scene: PlanningScene) -> PlanningScene:
        """Return a scene with the present pose of the robot. Raises TransformError."""
        if self._is_base_fixed:
            return scene
        T = self._node.transforms.lookup(self.frame, self._root) @ self._T_root_model
        previous_pose = scene.T_world_robot
        return (
            scene
            if T.distance(previous_pose) < _POSE_TOLERANCE and T.angle_to(previous_pose) < _POSE_TOLERANCE
            else scene.with_robot_pose(T)
        )

    def clear_sensed(self) -> None:
        """Remove the sensed voxels."""
        self._sensed_voxels = None
        self._on_scene_changed()

    def on_octomap(self, message: Any) -> None:
        """Store the voxels of an octomap_msgs/Octomap, without those of known obstacles."""
        try:
            T = self.T_world_frame(message.header.frame_id)
            voxels = voxels_from_octomap(message, SENSED, T)
        except RoboyardError as error:
            self._node.log.error(f"ignored an octomap: {error}", throttle=5.0)
            return
        known_obstacles = [obstacle for obstacle in self.scene.obstacles.values() if isinstance(obstacle, Obstacle)]
        if known_obstacles and len(voxels.centers):
            is_known = FilterShapes.from_obstacles(known_obstacles).contains(
                voxels.centers, [SE3.identity()], voxels.size
            )
            voxels = VoxelObstacles(SENSED, voxels.centers[~is_known], voxels.size)
        previous_voxels = self._sensed_voxels
        self.sensed_ns = self._node.now_ns
        if previous_voxels is None or not np.array_equal(previous_voxels.centers, voxels.centers):
            self._sensed_voxels = voxels
            self._on_scene_changed()

    def with_measured_joints(self, scene: PlanningScene, tool: str | None = None) -> PlanningScene:
        """Return a scene with the measured positions of joints outside the group, such as fingers."""
        return scene.with_fixed_positions(self._other_positions, tool)

    def update_person(self, obstacle: Obstacle) -> None:
        """Store the obstacle of a person; it stays until the next update."""
        if self._person_obstacles.get(obstacle.name) != obstacle:
            self._person_obstacles[obstacle.name] = obstacle
            self._on_obstacles_changed()

    def update_body(self, topic: str, parts: list[Obstacle]) -> None:
        """Store the obstacles of a person's body parts near the arm."""
        if self._body_part_obstacles.get(topic, []) != parts:
            self._body_part_obstacles[topic] = parts
            self._on_obstacles_changed()

    def _on_scene_changed(self) -> None:
        self._scenes_by_tool.clear()
        self._on_obstacles_changed()

    def _on_obstacles_changed(self) -> None:
        self._current_scenes.clear()
        self.version += 1

    # -- changes by messages -------------------------------------------------------------------------------------------
    def set_scene(self, scene: PlanningScene) -> None:
        """Replace the scene by another one of the same group."""
        self.scene = scene
        self._on_scene_changed()

    def apply_diff(self, message: Any, scene: PlanningScene) -> PlanningScene:
        """Return a scene changed by a moveit_msgs/PlanningScene. Raises RoboyardError."""
        if message.robot_model_name not in ("", self._semantics.model.name):
            raise ArmMotionError(
                f"a scene of the robot {message.robot_model_name!r}", "bad_goal", valid=self._semantics.model.name
            )
        self._check_scene_fields(message)
        if not message.is_diff:
            obstacle_names = [name for name, one in scene.obstacles.items() if isinstance(one, Obstacle)]
            scene = scene.without_obstacles(*obstacle_names).without_attached(*scene.attached)
        for one in message.world.collision_objects:
            scene = self.with_object(one, scene)
        for one in message.robot_state.attached_collision_objects:
            scene = self.with_attached(one, scene)
        matrix = message.allowed_collision_matrix
        if matrix.entry_names:
            scene = self._with_allowed(matrix, scene)
        return scene

    def _check_scene_fields(self, message: Any) -> None:
        """Report values of a moveit_msgs/PlanningScene without effect. Raises ArmMotionError for refused ones."""
        warn = self._node.log.warn
        check_fields(message, "PlanningScene", warn)
        check_fields(message.robot_state, "PlanningScene.robot_state", warn)
        check_fields(message.world, "PlanningSceneWorld", warn)
        check_fields(message.allowed_collision_matrix, "AllowedCollisionMatrix", warn)
        padded = [one.link_name for one in message.link_padding if one.padding != 0.0]
        padded += [one.link_name for one in message.link_scale if one.scale != 1.0]
        if padded:
            raise ArmMotionError(
                f"padding or scale of {padded[0]!r}", "bad_goal", valid="padding 0, scale 1; the parameter margin"
            )

    def with_object(self, message: Any, scene: PlanningScene) -> PlanningScene:
        """Return a scene changed by a moveit_msgs/CollisionObject. Raises RoboyardError."""
        check_fields(message, "CollisionObject", self._node.log.warn)
        message_type = msg.moveit_msgs.CollisionObject
        name = str(message.id)
        shape_names_of_object = shapes_of_object(name, list(scene.obstacles))
        operation = _operation_number(message.operation)
        if operation == message_type.REMOVE:
            if name and not shape_names_of_object:
                raise ArmMotionError(f"no object {name!r}{did_you_mean(name, list(scene.obstacles))}", "unknown_object")
            return scene.without_obstacles(*(shape_names_of_object if name else scene.obstacles))
        if not name:
            raise ArmMotionError("an object without a name", "unknown_object", valid="an id")
        T = self.T_world_frame(message.header.frame_id)
        shapes = [(geometry, T @ pose) for geometry, pose in shapes_from_msg(message)]
        if operation == message_type.MOVE:
            return self._with_moved_object(name, shape_names_of_object, T, message, scene)
        if not shapes:
            raise ArmMotionError(f"object {name!r} has no shape", "bad_goal", valid="primitives, meshes or planes")
        if operation == message_type.APPEND:
            count = len(shape_names_of_object)
            names = shape_names(name, count + len(shapes))[count:]
        elif operation == message_type.ADD:
            scene, names = scene.without_obstacles(*shape_names_of_object), shape_names(name, len(shapes))
        else:
            raise ArmMotionError(
                f"operation {operation} on object {name!r}", "bad_goal", valid="ADD, REMOVE, APPEND, MOVE"
            )
        return scene.with_obstacles(Obstacle(n, *shape) for n, shape in zip(names, shapes, strict=True))

    def _with_moved_object(
        self, name: str, shape_names_of_object: Sequence[str], T: SE3, message: Any, scene: PlanningScene
    ) -> PlanningScene:
        if not shape_names_of_object:
            raise ArmMotionError(f"no object {name!r}{did_you_mean(name, list(scene.obstacles))}", "unknown_object")
        first_shape = scene.obstacles[shape_names_of_object[0]]
        if isinstance(first_shape, VoxelObstacles):
            raise ArmMotionError(f"{name!r} is the sensed octomap", "unknown_object")
        T_new_old = T @ pose_to_se3(message.pose) @ first_shape.T_world.inverse()
        obstacles = [scene.obstacles[one] for one in shape_names_of_object]
        moved_obstacles = [
            Obstacle(one.name, one.geometry, T_new_old @ one.T_world) for one in obstacles if isinstance(one, Obstacle)
        ]
        return scene.without_obstacles(*shape_names_of_object).with_obstacles(moved_obstacles)

    def with_attached(self, message: Any, scene: PlanningScene) -> PlanningScene:
        """Return a scene changed by a moveit_msgs/AttachedCollisionObject. Raises RoboyardError."""
        check_fields(message, "AttachedCollisionObject", self._node.log.warn)
        check_fields(message.object, "CollisionObject", self._node.log.warn)
        message_type = msg.moveit_msgs.CollisionObject
        name, link = str(message.object.id), str(message.link_name)
        scene = self.at_robot_pose(scene)  # objects are attached and detached at the robot's pose
        operation = _operation_number(message.object.operation)
        attached_names = shapes_of_object(name, list(scene.attached))
        if operation == message_type.REMOVE:
            if not attached_names and name:
                raise ArmMotionError(
                    f"no attached object {name!r}", "unknown_object", valid=_format_names(scene.attached)
                )
            for name_of_shape in attached_names if name else tuple(scene.attached):
                scene = scene.detach_to_world(name_of_shape, self.measured_joints())
            return scene
        if operation != message_type.ADD:
            raise ArmMotionError(f"operation {operation} on the attached {name!r}", "bad_goal", valid="ADD or REMOVE")
        if not name or link not in scene.chain.link_mounts:
            problem = (
                f"no link {link!r}{did_you_mean(link, list(scene.chain.link_mounts))}"
                if name
                else "an object without a name"
            )
            raise ArmMotionError(problem, "unknown_link" if name else "unknown_object")
        shapes = shapes_from_msg(message.object)
        touch_links = tuple(str(name_of_shape) for name_of_shape in message.touch_links)
        if not shapes:
            obstacle_names = shapes_of_object(name, list(scene.obstacles))
            if not obstacle_names:
                raise ArmMotionError(f"no object {name!r}{did_you_mean(name, list(scene.obstacles))}", "unknown_object")
            for name_of_shape in obstacle_names:
                scene = scene.attach_obstacle(
                    name_of_shape,
                    self.measured_joints(),
                    link,
                    touch_links,
                    float(message.weight) / len(obstacle_names),
                )
            return scene
        frame = message.object.header.frame_id
        T_link_frame = SE3.identity()
        if frame not in ("", link, self._node.frame(link)):
            T_world_link = scene.T_world_base @ SE3.from_matrix(scene.link_pose(link, self.measured_joints()))
            T_link_frame = T_world_link.inverse() @ self.T_world_frame(frame)
        scene = scene.without_attached(*attached_names).without_obstacles(
            *shapes_of_object(name, list(scene.obstacles))
        )
        for name_of_shape, (geometry, pose) in zip(shape_names(name, len(shapes)), shapes, strict=True):
            mass = float(message.weight) / len(shapes)
            scene = scene.attach(AttachedBody(name_of_shape, link, geometry, T_link_frame @ pose, touch_links, mass))
        return scene

    def _with_allowed(self, matrix: Any, scene: PlanningScene) -> PlanningScene:
        names = [str(name) for name in matrix.entry_names]
        if len(matrix.entry_values) != len(names) or any(len(row.enabled) != len(names) for row in matrix.entry_values):
            raise ArmMotionError("an allowed collision matrix that is not square", "bad_goal")
        pairs: dict[bool, list[tuple[str, str]]] = {True: [], False: []}
        for i, row in enumerate(matrix.entry_values):
            for j in range(i):
                pairs[bool(row.enabled[j])].append((names[i], names[j]))
        described = next(
            (pair for pair in pairs[False] if tuple(sorted(pair)) in self._semantics.allowed_collisions), None
        )
        if described is not None:
            self._node.log.warn(
                f"contacts of {described[0]} and {described[1]} stay allowed: the semantic description allows them"
            )
        return scene.without_allowed(*pairs[False]).with_allowed_unchecked(*pairs[True])

    # -- state ---------------------------------------------------------------------------------------------------------
    def save_state(self) -> dict[str, Any]:
        """Return the state as plain data."""
        scene, sensed_voxels = self.scene, self._sensed_voxels
        return {
            "obstacles": [one for one in scene.obstacles.values() if isinstance(one, Obstacle)],
            "attached": list(scene.attached.values()),
            "allowed": sorted(scene.allowed),
            "T_world_robot": scene.T_world_robot,
            "positions": dict(self._positions),
            "held": dict(self._other_positions),
            "times": (self._measured_ns, self.sensed_ns),
            "seen": None if sensed_voxels is None else (np.array(sensed_voxels.centers), sensed_voxels.size),
            "people": list(self._person_obstacles.values()),
            "bodies": {topic: list(parts) for topic, parts in self._body_part_obstacles.items()},
            "version": self.version,
        }

    def load_state(self, saved: Mapping[str, Any]) -> None:
        """Restore what ``save_state`` returned."""
        empty_scene = PlanningScene.create(self._semantics, self.scene.group.name, margin=self.scene.margin)
        scene = empty_scene.with_robot_pose(saved["T_world_robot"]).with_obstacles(saved["obstacles"])
        for attached_body in saved["attached"]:
            scene = scene.attach(attached_body)
        self.scene = scene.with_allowed_unchecked(*(tuple(pair) for pair in saved["allowed"]))
        self._positions, self._other_positions = dict(saved["positions"]), dict(saved["held"])
        self._measured_ns, self.sensed_ns = saved["times"]
        self._sensed_voxels = None if saved["seen"] is None else VoxelObstacles(SENSED, *saved["seen"])
        self._person_obstacles = {one.name: one for one in saved["people"]}
        self._body_part_obstacles = {topic: list(parts) for topic, parts in saved["bodies"].items()}
        self._scenes_by_tool.clear()
        self._current_scenes.clear()
        self.version = saved["version"]


def _operation_number(operation: Any) -> int:
    return operation[0] if isinstance(operation, bytes) else int(operation)


def _format_names(names: Mapping[str, Any]) -> str:
    return ", ".join(names) or "there is none"


def parse_pose(values: Sequence[float]) -> SE3:
    """Return the pose of a parameter: empty, x y z, or x y z roll pitch yaw. Raises InputError."""
    if len(values) not in (0, 3, 6):
        raise InputError(f"{len(values)} numbers", location="robot_pose", valid="x, y, z or x, y, z, roll, pitch, yaw")
    pose_values = [*values, *[0.0] * (6 - len(values))]
    return SE3.from_xyz_rpy(pose_values[:3], pose_values[3:])
