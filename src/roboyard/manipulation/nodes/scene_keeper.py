"""What is planned in, in a live run: measured joints, objects that come and go, the world as it is known and seen."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final

import numpy as np

from roboyard.bus import Node
from roboyard.config.wording import did_you_mean
from roboyard.description import World
from roboyard.errors import InputError, RoboyardError
from roboyard.geometry import SE3
from roboyard.geometry.arrays import Array
from roboyard.manipulation.collision import Attached, Obstacle, Voxels, obstacles_of
from roboyard.manipulation.groups import Groups
from roboyard.manipulation.nodes.move_codes import MoveError
from roboyard.manipulation.nodes.scene_messages import part_names, parts_named, shapes_of
from roboyard.manipulation.nodes.voxel_messages import voxels_of
from roboyard.manipulation.scene import PlanningScene
from roboyard.manipulation.self_filter import Shapes
from roboyard.messages import msg

_STILL: Final = 1e-3
"""Joints that are not the group's may change by so much before shapes are placed anew [rad or m]."""
_STOOD: Final = 1e-4
"""A base that moved by less stands [m, rad]."""
KNOWN: Final = "world"
"""Frame of what is known beforehand."""
SEEN: Final = "seen"
"""Name of what sensors see."""


class SceneKeeper:
    """Keeps a `PlanningScene` up to date.

    Args:
        node: Who listens.
        groups: Of the robot.
        group: Which of them moves.
        world_frame: Of plans; empty: the robot's root link, which then stands still.
        place: Where that root stands in the known world.
        known: What stands fast in it is known beforehand; what can be carried off is not.
        margin: What is nearer touches [m].
        joint_timeout: So old may measured joints be [s].
        allowed: Pairs of names that may touch.

    Attributes:
        frame: Of plans, as transforms know it.
        scene: With what is known and held; see `now` for the one to plan in.
        version: Grows when something changes that motions must not touch.
    """

    def __init__(
        self,
        node: Node,
        groups: Groups,
        group: str,
        *,
        world_frame: str,
        place: SE3,
        known: World | None,
        margin: float,
        joint_timeout: float,
        allowed: Sequence[tuple[str, str]] = (),
    ) -> None:
        self._node, self._groups, self._timeout = node, groups, joint_timeout
        root = groups.root
        self._root = node.frame(root)
        self._T_root_model = groups.model.link(root).T_model_link.inverse()
        self._fixed = not world_frame
        self.frame = node.frame(world_frame) if world_frame else self._root
        scene = PlanningScene.of(groups, group or None, T_world_robot=self._T_root_model, margin=margin)
        self._T_frame_known = self._T_root_model @ place.inverse() if self._fixed else SE3.identity()
        if known is not None:
            T = self._T_frame_known
            loose = [placed.name for placed in known.models if not placed.model.static]
            fast = obstacles_of(known, without=loose)
            scene = scene.with_obstacles(Obstacle(o.name, o.geometry, T @ o.T_world) for o in fast)
        self.scene = scene.tolerating(*allowed)
        self._others = [
            joint.name
            for joint in groups.model.joints
            if joint.type != "fixed" and joint.name not in scene.chain.joints
        ]
        self._positions: dict[str, float] = {}
        self._measured_ns = -(10**18)
        self._held: dict[str, float] = {}
        self._seen: Voxels | None = None
        self._people: dict[str, Obstacle] = {}
        self._bodies: dict[str, list[Obstacle]] = {}
        self.seen_ns = -(10**18)
        self.version = 0
        self._posed: dict[str | None, PlanningScene] = {}
        self._ready: dict[str | None, PlanningScene] = {}

    # -- joints --------------------------------------------------------------------------------------------------------
    def on_joints(self, message: Any) -> None:
        """Take measured joints; a name without a position is left out."""
        for name, position in zip(message.name, message.position, strict=False):
            if np.isfinite(position):
                self._positions[name] = float(position)
        self._measured_ns = self._node.now_ns
        held = {name: self._positions[name] for name in self._others if name in self._positions}
        if any(abs(value - self._held.get(name, 1e9)) > _STILL for name, value in held.items()):
            self._held = held
            self._changed()

    @property
    def joints(self) -> tuple[str, ...]:
        """Of the group."""
        return self.scene.chain.joints

    def measured(self) -> Array:
        """(n,) where the group's joints are. Raises MoveError: nobody says, or not lately."""
        missing = [name for name in self.joints if name not in self._positions]
        age = (self._node.now_ns - self._measured_ns) * 1e-9
        if missing or age > self._timeout:
            what = f"joint {missing[0]} is not measured" if missing else f"joints were last measured {age:.2f} s ago"
            raise MoveError(what, "joints_unknown", valid="sensor_msgs/JointState on joint_states")
        return np.array([self._positions[name] for name in self.joints])

    def with_given(self, state: Any) -> Array:
        """(n,) measured joints, those of a sensor_msgs/JointState in their place. Raises MoveError."""
        names, values = list(state.name), list(state.position)
        if not names:
            return self.measured()
        if len(names) != len(values) or not np.isfinite(values).all():
            raise MoveError("a state of joints without a finite position for each", "bad_state")
        known = [joint.name for joint in self._groups.model.joints]
        for name in names:
            if name not in known:
                raise MoveError(
                    f"no joint {name!r}{did_you_mean(name, known)}", "bad_state", valid=", ".join(self.joints)
                )
        given = dict(zip(names, map(float, values), strict=True))
        if set(self.joints) <= set(given):
            return np.array([given[name] for name in self.joints])
        return np.array([given.get(name, value) for name, value in zip(self.joints, self.measured(), strict=True)])

    # -- frames --------------------------------------------------------------------------------------------------------
    def T_world_frame(self, frame: str) -> SE3:
        """Pose of a frame in that of plans; no name is that of plans itself. Raises TransformError."""
        if frame in ("", self.frame):
            return SE3.identity()
        if frame == KNOWN:
            return self._T_frame_known
        return self._node.transforms.lookup(self.frame, frame)

    # -- the scene -----------------------------------------------------------------------------------------------------
    def now(self, tool: str | None = None) -> PlanningScene:
        """To plan in, for a tool of the group. Raises TransformError, UnknownNameError."""
        standing = self.standing(self.scene)
        if standing is not self.scene:
            self.put(standing)
        if tool not in self._ready:
            posed = self._posed.get(tool)
            if posed is None:
                posed = self._posed[tool] = self.posed(self.scene, tool)
                _ = posed.robot, posed.around  # made once, whatever people do
            scene = self.peopled(posed)
            self._ready[tool] = scene if self._seen is None else scene.with_obstacles([self._seen])
        return self._ready[tool]

    def peopled(self, scene: PlanningScene) -> PlanningScene:
        """A scene with the people who are there."""
        parts = (part for body in self._bodies.values() for part in body)
        return scene.with_obstacles([*self._people.values(), *parts])

    def standing(self, scene: PlanningScene) -> PlanningScene:
        """A scene with the robot where it stands now. Raises TransformError."""
        if self._fixed:
            return scene
        T = self._node.transforms.lookup(self.frame, self._root) @ self._T_root_model
        before = scene.T_world_robot
        return scene if T.distance(before) < _STOOD and T.angle_to(before) < _STOOD else scene.moved(T)

    def forget(self) -> None:
        """Let go of what sensors saw."""
        self._seen = None
        self._changed()

    def on_octomap(self, message: Any) -> None:
        """Take what sensors see: an octomap_msgs/Octomap; what is known already is left out of it."""
        try:
            T = self.T_world_frame(message.header.frame_id)
            voxels = voxels_of(message, SEEN, T)
        except RoboyardError as error:
            self._node.log.error(f"left out a map of space: {error}", throttle=5.0)
            return
        known = [one for one in self.scene.obstacles.values() if isinstance(one, Obstacle)]
        if known and len(voxels.middles):
            on = Shapes.of_obstacles(known).on(voxels.middles, [SE3.identity()], voxels.size)
            voxels = Voxels(SEEN, voxels.middles[~on], voxels.size)
        before = self._seen
        self.seen_ns = self._node.now_ns
        if before is None or not np.array_equal(before.middles, voxels.middles):
            self._seen = voxels
            self._changed()

    def posed(self, scene: PlanningScene, tool: str | None = None) -> PlanningScene:
        """A scene with joints that are not the group's where they are measured, as those of fingers."""
        return scene.with_joints(self._held, tool)

    def see_person(self, one: Obstacle) -> None:
        """Take where somebody is; who was seen once stays where they were seen last."""
        if self._people.get(one.name) != one:
            self._people[one.name] = one
            self._seen_otherwise()

    def see_body(self, topic: str, parts: list[Obstacle]) -> None:
        """Take where the parts of somebody's body are that are near enough to matter."""
        if self._bodies.get(topic, []) != parts:
            self._bodies[topic] = parts
            self._seen_otherwise()

    def _changed(self) -> None:
        self._posed.clear()
        self._seen_otherwise()

    def _seen_otherwise(self) -> None:
        self._ready.clear()
        self.version += 1

    # -- what messages change ------------------------------------------------------------------------------------------
    def put(self, scene: PlanningScene) -> None:
        """Plan in another scene of the same group from now on."""
        self.scene = scene
        self._changed()

    def changed_by(self, message: Any, scene: PlanningScene) -> PlanningScene:
        """A scene as a moveit_msgs/PlanningScene changes it. Raises RoboyardError."""
        if message.robot_model_name not in ("", self._groups.model.name):
            raise MoveError(
                f"a scene of the robot {message.robot_model_name!r}", "bad_goal", valid=self._groups.model.name
            )
        if not message.is_diff:
            known = [name for name, one in scene.obstacles.items() if isinstance(one, Obstacle)]
            scene = scene.without(*known).without_attached(*scene.attached)
        for one in message.world.collision_objects:
            scene = self.with_object(one, scene)
        for one in message.robot_state.attached_collision_objects:
            scene = self.with_attached(one, scene)
        matrix = message.allowed_collision_matrix
        if matrix.entry_names:
            scene = self._with_allowed(matrix, scene)
        return scene

    def with_object(self, message: Any, scene: PlanningScene) -> PlanningScene:
        """A scene as a moveit_msgs/CollisionObject changes it. Raises RoboyardError."""
        kind = msg.moveit_msgs.CollisionObject
        name = str(message.id)
        there = parts_named(name, list(scene.obstacles))
        operation = _number(message.operation)
        if operation == kind.REMOVE:
            if name and not there:
                raise MoveError(f"no object {name!r}{did_you_mean(name, list(scene.obstacles))}", "unknown_object")
            return scene.without(*(there if name else scene.obstacles))
        if not name:
            raise MoveError("an object without a name", "unknown_object", valid="an id")
        T = self.T_world_frame(message.header.frame_id)
        shapes = [(geometry, T @ pose) for geometry, pose in shapes_of(message)]
        if operation == kind.MOVE:
            return self._moved(name, there, T, message, scene)
        if not shapes:
            raise MoveError(f"object {name!r} has no shape", "bad_goal", valid="primitives, meshes or planes")
        if operation == kind.APPEND:
            count = len(there)
            names = part_names(name, count + len(shapes))[count:]
        elif operation == kind.ADD:
            scene, names = scene.without(*there), part_names(name, len(shapes))
        else:
            raise MoveError(f"operation {operation} on object {name!r}", "bad_goal", valid="ADD, REMOVE, APPEND, MOVE")
        return scene.with_obstacles(Obstacle(n, *shape) for n, shape in zip(names, shapes, strict=True))

    def _moved(self, name: str, there: Sequence[str], T: SE3, message: Any, scene: PlanningScene) -> PlanningScene:
        from roboyard.messages.convert import pose_to_se3

        if not there:
            raise MoveError(f"no object {name!r}{did_you_mean(name, list(scene.obstacles))}", "unknown_object")
        first = scene.obstacles[there[0]]
        if isinstance(first, Voxels):
            raise MoveError(f"{name!r} is what sensors see", "unknown_object")
        shift = T @ pose_to_se3(message.pose) @ first.T_world.inverse()
        found = [scene.obstacles[one] for one in there]
        moved = [Obstacle(one.name, one.geometry, shift @ one.T_world) for one in found if isinstance(one, Obstacle)]
        return scene.without(*there).with_obstacles(moved)

    def with_attached(self, message: Any, scene: PlanningScene) -> PlanningScene:
        """A scene as a moveit_msgs/AttachedCollisionObject changes it. Raises RoboyardError."""
        kind = msg.moveit_msgs.CollisionObject
        name, link = str(message.object.id), str(message.link_name)
        scene = self.standing(scene)  # things are taken and left where the robot stands
        operation = _number(message.object.operation)
        held = parts_named(name, list(scene.attached))
        if operation == kind.REMOVE:
            if not held and name:
                raise MoveError(f"nothing attached is called {name!r}", "unknown_object", valid=_listed(scene.attached))
            for one in held if name else tuple(scene.attached):
                scene = scene.release(one, self.measured())
            return scene
        if operation != kind.ADD:
            raise MoveError(f"operation {operation} on the attached {name!r}", "bad_goal", valid="ADD or REMOVE")
        if not name or link not in scene.chain.link_mounts:
            what = (
                f"no link {link!r}{did_you_mean(link, list(scene.chain.link_mounts))}"
                if name
                else "an object without a name"
            )
            raise MoveError(what, "unknown_link" if name else "unknown_object")
        shapes = shapes_of(message.object)
        touches = tuple(str(one) for one in message.touch_links)
        if not shapes:
            there = parts_named(name, list(scene.obstacles))
            if not there:
                raise MoveError(f"no object {name!r}{did_you_mean(name, list(scene.obstacles))}", "unknown_object")
            for one in there:
                scene = scene.grasp(one, self.measured(), link, touches, float(message.weight) / len(there))
            return scene
        frame = message.object.header.frame_id
        T_link_frame = SE3.identity()
        if frame not in ("", link, self._node.frame(link)):
            T_world_link = scene.T_world_base @ SE3.from_matrix(scene.link_pose(link, self.measured()))
            T_link_frame = T_world_link.inverse() @ self.T_world_frame(frame)
        scene = scene.without_attached(*held).without(*parts_named(name, list(scene.obstacles)))
        for one, (geometry, pose) in zip(part_names(name, len(shapes)), shapes, strict=True):
            mass = float(message.weight) / len(shapes)
            scene = scene.attach(Attached(one, link, geometry, T_link_frame @ pose, touches, mass))
        return scene

    def _with_allowed(self, matrix: Any, scene: PlanningScene) -> PlanningScene:
        names = [str(name) for name in matrix.entry_names]
        if len(matrix.entry_values) != len(names) or any(len(row.enabled) != len(names) for row in matrix.entry_values):
            raise MoveError("an allowed collision matrix that is not square", "bad_goal")
        pairs = [(names[i], names[j]) for i, row in enumerate(matrix.entry_values) for j in range(i) if row.enabled[j]]
        return scene.tolerating(*pairs)

    # -- state ---------------------------------------------------------------------------------------------------------
    def save_state(self) -> dict[str, Any]:
        """Everything as plain data."""
        scene, seen = self.scene, self._seen
        return {
            "obstacles": [one for one in scene.obstacles.values() if isinstance(one, Obstacle)],
            "attached": list(scene.attached.values()),
            "allowed": sorted(scene.allowed),
            "T_world_robot": scene.T_world_robot,
            "positions": dict(self._positions),
            "held": dict(self._held),
            "times": (self._measured_ns, self.seen_ns),
            "seen": None if seen is None else (np.array(seen.middles), seen.size),
            "people": list(self._people.values()),
            "bodies": {topic: list(parts) for topic, parts in self._bodies.items()},
            "version": self.version,
        }

    def load_state(self, saved: Mapping[str, Any]) -> None:
        """Counterpart of `save`."""
        bare = PlanningScene.of(self._groups, self.scene.group.name, margin=self.scene.margin)
        scene = bare.moved(saved["T_world_robot"]).with_obstacles(saved["obstacles"])
        for thing in saved["attached"]:
            scene = scene.attach(thing)
        self.scene = scene.tolerating(*(tuple(pair) for pair in saved["allowed"]))
        self._positions, self._held = dict(saved["positions"]), dict(saved["held"])
        self._measured_ns, self.seen_ns = saved["times"]
        self._seen = None if saved["seen"] is None else Voxels(SEEN, *saved["seen"])
        self._people = {one.name: one for one in saved["people"]}
        self._bodies = {topic: list(parts) for topic, parts in saved["bodies"].items()}
        self._posed.clear()
        self._ready.clear()
        self.version = saved["version"]


def _number(operation: Any) -> int:
    return operation[0] if isinstance(operation, bytes) else int(operation)


def _listed(names: Mapping[str, Any]) -> str:
    return ", ".join(names) or "there is none"


def place_of(given: Sequence[float]) -> SE3:
    """A pose of a parameter: nothing, x y z, or x y z roll pitch yaw. Raises InputError."""
    if len(given) not in (0, 3, 6):
        raise InputError(f"{len(given)} numbers", location="place", valid="x, y, z or x, y, z, roll, pitch, yaw")
    numbers = [*given, *[0.0] * (6 - len(given))]
    return SE3.from_xyz_rpy(numbers[:3], numbers[3:])
