"""Inputs of the planning scene: objects, octomaps, people, detections and the gripper's state."""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import partial
from operator import attrgetter
from typing import Any, Final

import numpy as np

from roboyard.bus import Node
from roboyard.compute import expect_kernels
from roboyard.description import Box
from roboyard.errors import RoboyardError
from roboyard.manipulation.collision import Obstacle
from roboyard.manipulation.collision.collision_model import SHAPE_NUMBER_SEPARATOR
from roboyard.manipulation.collision.obstacles import (
    BodyPartObstacles,
    person_obstacle,
    quantize_parts,
)
from roboyard.manipulation.collision.planning_scene import Pair, PlanningScene, find_grasped_object, find_touching_pairs
from roboyard.manipulation.nodes.planning_scene_monitor import PlanningSceneMonitor, SceneParameters, shapes_of_object
from roboyard.mapping.octree.octree import read_binary
from roboyard.messages import msg
from roboyard.messages.convert import pose_to_se3
from roboyard.messages.convert.poses import vector_to_array

_POSITION_TOLERANCE: Final = 0.006
_ANGLE_TOLERANCE: Final = 0.03
"""A detected object that moved less stays where it is [m, rad], because detections have noise."""
_DETECTION_TIMEOUT_NS: Final = 1_000_000_000
"""An object that is not detected for this long is removed."""


class DetectionObstacles:
    """Adds detected objects to the planning scene as boxes; attached objects are left out.

    Args:
        node: Node that receives the detections.
        monitor: Monitor of the planning scene.
        topic: vision_msgs/Detection3DArray; a detection without a name or a size is ignored.
        max_distance: Objects farther from the arm's base are ignored [m].
    """

    def __init__(self, node: Node, monitor: PlanningSceneMonitor, topic: str, max_distance: float) -> None:
        self._node, self._monitor, self._max_distance = node, monitor, max_distance
        self._detection_times_ns: dict[str, int] = {}
        node.subscribe(topic, msg.vision_msgs.Detection3DArray, self._on_detections)

    def _on_detections(self, message: Any) -> None:
        scene, now_ns = self._monitor.scene, self._node.now_ns
        changed_boxes: list[Obstacle] = []
        removed_names: list[str] = []
        for detection in message.detections:
            try:
                box = self._box_from_detection(detection)
            except RoboyardError as error:
                self._node.log.error(f"ignored a detection: {error}", throttle=5.0)
                continue
            if box is None or box.name in scene.attached:
                continue
            is_far = np.linalg.norm(box.T_world.translation - scene.T_world_base.translation) > self._max_distance
            if is_far and box.name in self._detection_times_ns:
                removed_names.append(box.name)
            elif not is_far:
                self._detection_times_ns[box.name] = now_ns
                if self._has_changed(box, scene):
                    changed_boxes.append(box)
        removed_names += [
            name
            for name, detection_time_ns in self._detection_times_ns.items()
            if now_ns - detection_time_ns > _DETECTION_TIMEOUT_NS
        ]
        for name in removed_names:
            self._detection_times_ns.pop(name, None)
        changed_names = {*removed_names, *(box.name for box in changed_boxes)} & set(scene.obstacles)
        if changed_boxes or changed_names:
            self._monitor.set_scene(scene.without_obstacles(*changed_names).with_obstacles(changed_boxes))

    def _box_from_detection(self, detection: Any) -> Obstacle | None:
        """Return a detection as an obstacle, None if it is ignored. Raises RoboyardError."""
        size = (float(detection.bbox.size.x), float(detection.bbox.size.y), float(detection.bbox.size.z))
        if not detection.id or not all(0.0 < edge < math.inf for edge in size):
            return None
        return Obstacle(str(detection.id), Box(size), self._monitor.T_world_frame(detection.header.frame_id)
                        @ pose_to_se3(detection.bbox.center))  # fmt: skip

    @staticmethod
    def _has_changed(box: Obstacle, scene: PlanningScene) -> bool:
        previous = scene.obstacles.get(box.name)
        if not isinstance(previous, Obstacle):
            return True
        T = previous.T_world
        return (
            previous.geometry != box.geometry
            or T.distance(box.T_world) > _POSITION_TOLERANCE
            or T.angle_to(box.T_world) > _ANGLE_TOLERANCE
        )

    # -- state ---------------------------------------------------------------------------------------------------------
    def save_state(self) -> dict[str, int]:
        """Return when each object was detected last [ns]."""
        return dict(self._detection_times_ns)

    def load_state(self, saved: dict[str, int]) -> None:
        """Restore what ``save_state`` returned."""
        self._detection_times_ns = dict(saved)


def _do_nothing() -> None:
    pass


HOLDING: Final = "holding"
LOST: Final = "lost"
"""States of the gripper node."""
_CONTACT_CHECK_PERIOD_NS: Final = 200_000_000
"""Period of the checks whether grasped or released objects are still in contact."""


class SceneInputs:
    """Updates the monitor with the messages of its node; invalid messages are ignored and logged.

    in: joint_states (sensor_msgs/JointState), planning_scene (moveit_msgs/PlanningScene), collision_object
    (CollisionObject), attached_collision_object (AttachedCollisionObject), ``octomap_topic`` (octomap_msgs/Octomap),
    ``person_topics`` (nav_msgs/Odometry, one for each person), ``person_body_topics`` (roboyard_msgs/PersonBody, one
    for each person), ``detections_topic`` (vision_msgs/Detection3DArray), ``gripper_state_topic`` (std_msgs/String, a
    gripper's ~state)

    When the gripper holds an object, the object between its fingers is attached; when it is released, it is detached at
    its pose, and when it is lost, it is removed.  Its support, and the fingers afterwards, may touch it until they are
    no longer in contact.

    Args:
        node: Node that receives the messages.
        monitor: Monitor of the planning scene.
        parameters: Topics of the sources, and the model of people as obstacles.
        on_change: Called after each change of the scene by a message or by the gripper.
    """

    def __init__(
        self,
        node: Node,
        monitor: PlanningSceneMonitor,
        parameters: SceneParameters,
        on_change: Callable[[], None] = _do_nothing,
    ) -> None:
        self._node, self._monitor, self._on_change = node, monitor, on_change
        self._person_config = person_config = parameters.people
        self._grasped_names: tuple[str, ...] = ()
        self._touching_pairs: tuple[Pair, ...] = ()
        self._due_ns = 0
        types = msg.moveit_msgs
        node.subscribe("joint_states", msg.JointState, self._on_joints)
        node.subscribe("planning_scene", types.PlanningScene, self._on_scene)
        node.subscribe("collision_object", types.CollisionObject, self._on_object)
        node.subscribe("attached_collision_object", types.AttachedCollisionObject, self._on_attached)
        if parameters.person_body_topics:
            expect_kernels(quantize_parts)
        if parameters.octomap_topic:
            expect_kernels(read_binary)
            node.subscribe(parameters.octomap_topic, msg.octomap_msgs.Octomap, monitor.on_octomap)
        for topic in parameters.person_topics:
            node.subscribe(topic, msg.Odometry, partial(self._on_person, topic))
        for topic in parameters.person_body_topics:
            node.subscribe(topic, msg.PersonBody, partial(self._on_body, topic))
        self._body_parts = {topic: BodyPartObstacles(person_config) for topic in parameters.person_body_topics}
        self._detections = (
            DetectionObstacles(node, monitor, parameters.detections_topic, person_config.max_distance)
            if parameters.detections_topic
            else None
        )
        if parameters.gripper_state_topic:
            node.subscribe(parameters.gripper_state_topic, msg.String, self._on_gripper)

    # -- messages ------------------------------------------------------------------------------------------------------
    def apply_scene_message(self, message: Any) -> bool:
        """Apply a moveit_msgs/PlanningScene to the scene and return whether it was possible."""
        return self._apply("a planning scene", lambda: self._monitor.apply_diff(message, self._monitor.scene))

    def _on_scene(self, message: Any) -> None:
        self.apply_scene_message(message)

    def _on_object(self, message: Any) -> None:
        self._apply("an object", lambda: self._monitor.with_object(message, self._monitor.scene))

    def _on_attached(self, message: Any) -> None:
        self._apply("an attached object", lambda: self._monitor.with_attached(message, self._monitor.scene))

    def _on_person(self, topic: str, message: Any) -> None:
        try:
            T = self._monitor.T_world_frame(message.header.frame_id)
            speed = math.hypot(message.twist.twist.linear.x, message.twist.twist.linear.y)
            position = vector_to_array(message.pose.pose.position)
            self._monitor.update_person(person_obstacle(f"person {topic}", T @ position, speed, self._person_config))
        except RoboyardError as error:
            self._node.log.error(f"ignored a person: {error}", throttle=5.0)

    def _on_body(self, topic: str, message: Any) -> None:
        monitor = self._monitor
        try:
            T = monitor.T_world_frame(message.header.frame_id)
            base_position = monitor.scene.T_world_base.translation
            monitor.update_body(
                topic,
                self._body_parts[topic].update(message.name, message.parts, _capsule_rows(message), T, base_position),
            )
        except (RoboyardError, ValueError) as error:
            self._node.log.error(f"ignored a person's body: {error}", throttle=5.0)

    # -- the gripper ---------------------------------------------------------------------------------------------------
    def _on_gripper(self, message: Any) -> None:
        state = str(message.data)
        if state == HOLDING and not self._grasped_names:
            self._apply("the grasped object", self._attach_grasped)
        elif state != HOLDING and self._grasped_names:
            self._apply("the released object", self._remove_lost if state == LOST else self._detach_released)

    def _attach_grasped(self) -> Any:
        q, scene = self._monitor.measured_joints(), self._monitor.at_robot_pose(self._monitor.scene)
        name = find_grasped_object(self._monitor.with_measured_joints(scene), q)
        if name is None:
            self._node.log.warn("the gripper holds an object that is not in the planning scene")
            return scene
        names = tuple(shapes_of_object(name.partition(SHAPE_NUMBER_SEPARATOR)[0], list(scene.obstacles)))
        for one in names:
            scene = scene.attach_obstacle(one, q)
        self._grasped_names = names
        pairs = find_touching_pairs(self._monitor.with_people(self._monitor.with_measured_joints(scene)), set(names), q)
        self._touching_pairs = (*self._touching_pairs, *pairs)
        self._node.log.info(f"grasped {names[0]}")
        return scene.with_allowed_unchecked(*pairs)

    def _detach_released(self) -> Any:
        q, scene = self._monitor.measured_joints(), self._monitor.at_robot_pose(self._monitor.scene)
        previous_pairs = scene.allowed
        for one in self._grasped_names:
            if one in scene.attached:
                scene = scene.detach_to_world(one, q)
        self._touching_pairs = (
            *self._touching_pairs,
            *sorted(pair for pair in scene.allowed - previous_pairs if pair[::-1] not in previous_pairs),
        )
        self._grasped_names = ()
        return scene

    def _remove_lost(self) -> Any:
        scene = self._monitor.scene
        for one in self._grasped_names:
            if one in scene.attached:
                scene = scene.without_attached(one)
        self._grasped_names = ()
        return scene

    def _on_joints(self, message: Any) -> None:
        self._monitor.on_joints(message)
        if self._touching_pairs and self._node.now_ns >= self._due_ns:
            self._due_ns = self._node.now_ns + _CONTACT_CHECK_PERIOD_NS
            self._update_touching_pairs()

    def _update_touching_pairs(self) -> None:
        """Check grasped and released objects again, once they are no longer in contact."""
        scene = self._monitor.scene
        people_scene = self._monitor.with_people(scene)
        body_names = {*scene.chain.link_mounts, *people_scene.obstacles, *scene.attached}
        try:
            q = self._monitor.measured_joints()
            checked_scene = self._monitor.with_measured_joints(people_scene).without_allowed(*self._touching_pairs)
            touching = {
                frozenset(pair)
                for pair in find_touching_pairs(
                    checked_scene, {name for pair in self._touching_pairs for name in pair}, q
                )
            }
            remaining_pairs = tuple(
                pair for pair in self._touching_pairs if body_names >= set(pair) and frozenset(pair) in touching
            )
        except RoboyardError as error:
            self._node.log.warn(f"cannot check contacts of grasped objects: {error}", throttle=5.0)
            return
        if remaining_pairs != self._touching_pairs:
            self._monitor.set_scene(scene.without_allowed(*(set(self._touching_pairs) - set(remaining_pairs))))
            self._touching_pairs = remaining_pairs

    # -- common --------------------------------------------------------------------------------------------------------
    def _apply(self, description: str, change: Callable[[], Any]) -> bool:
        try:
            self._monitor.set_scene(change())
        except RoboyardError as error:
            self._node.log.error(f"ignored {description}: {error}")
            return False
        self._on_change()
        return True

    def save_state(self) -> dict[str, Any]:
        """Return the state as plain data; the scene itself is saved by the monitor."""
        detections = {} if self._detections is None else self._detections.save_state()
        return {"held": self._grasped_names, "parting": self._touching_pairs, "due": self._due_ns, "things": detections}

    def load_state(self, saved: dict[str, Any]) -> None:
        """Restore what ``save_state`` returned."""
        self._grasped_names, self._due_ns = tuple(saved["held"]), saved["due"]
        self._touching_pairs = tuple(tuple(pair) for pair in saved["parting"])
        if self._detections is not None:
            self._detections.load_state(saved["things"])


_POSE = attrgetter(
    "position.x", "position.y", "position.z", "orientation.w", "orientation.x", "orientation.y", "orientation.z"
)


def _capsule_rows(message: Any) -> np.ndarray[Any, np.dtype[np.float64]]:
    """(b, 10) of a body's parts, see `BodyPartObstacles.update`. Raises ValueError: not as many of each."""
    n_parts = len(message.parts)
    rows = np.empty((n_parts, 10))
    rows[:, :7] = np.array(list(map(_POSE, message.poses))).reshape(n_parts, 7)
    rows[:, 7], rows[:, 8] = message.radii, message.lengths
    rows[:, 9] = [math.hypot(v.x, v.y, v.z) for v in message.velocities]
    return rows
