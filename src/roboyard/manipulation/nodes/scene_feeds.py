"""What comes in and changes the scene: objects in messages, maps of space, people, what the gripper feels."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from functools import partial
from operator import attrgetter
from typing import Any, Final

import numpy as np

from roboyard.bus import Node
from roboyard.compute import expect_kernels
from roboyard.errors import RoboyardError
from roboyard.manipulation.collision.building import PART
from roboyard.manipulation.gripped import gripped, touched_by
from roboyard.manipulation.nodes.scene_keeper import SceneKeeper
from roboyard.manipulation.nodes.scene_messages import parts_named
from roboyard.manipulation.nodes.thing_feed import ThingFeed
from roboyard.manipulation.people import PartsOfBody, PeopleSettings, person_at, round_parts
from roboyard.manipulation.scene import Pair
from roboyard.mapping.octree.octree import read_binary
from roboyard.messages import msg
from roboyard.messages.convert.poses import vector_to_array

HOLDS: Final = "holding"
LOST: Final = "lost"
"""States of the gripper node."""
_PARTS_NS: Final = 200_000_000
"""So often it is looked whether what was gripped or set down has parted."""


class SceneFeeds:
    """Hands a keeper what its node hears; what makes no sense is left out, and logged.

    in: joint_states (sensor_msgs/JointState), planning_scene (moveit_msgs/PlanningScene), collision_object
    (CollisionObject), attached_collision_object (AttachedCollisionObject), ``octomap_topic`` (octomap_msgs/Octomap),
    ``people_topics`` (nav_msgs/Odometry, one for each person), ``bodies_topics`` (roboyard_msgs/PersonBody, likewise),
    ``gripper_topic`` (std_msgs/String, a gripper's ~state)

    Once the gripper holds something, the object between its fingers is attached; when they let go it is left where it
    is, and when it is lost it is nowhere any more.  What it stands on, and the fingers afterwards, may touch it until
    they have parted.

    Args:
        node: Who listens.
        keeper: Of the scene.
        octomap_topic: Empty: none.
        people_topics: Where people are.
        bodies_topics: Where the parts of their bodies are.
        people: How much room they get.
        gripper_topic: Empty: the scene does not follow the gripper.
        things_topic: Of what a detector sees; empty: none.
        changed: Called after each change that is to be told.
    """

    def __init__(
        self,
        node: Node,
        keeper: SceneKeeper,
        *,
        octomap_topic: str,
        people_topics: Sequence[str],
        people: PeopleSettings,
        gripper_topic: str,
        changed: Callable[[], None],
        bodies_topics: Sequence[str] = (),
        things_topic: str = "",
    ) -> None:
        self._node, self._keeper, self._people, self._changed = node, keeper, people, changed
        self._held: tuple[str, ...] = ()
        self._parting: tuple[Pair, ...] = ()
        self._due_ns = 0
        types = msg.moveit_msgs
        node.subscribe("joint_states", msg.JointState, self._on_joints)
        node.subscribe("planning_scene", types.PlanningScene, self._on_scene)
        node.subscribe("collision_object", types.CollisionObject, self._on_object)
        node.subscribe("attached_collision_object", types.AttachedCollisionObject, self._on_attached)
        if bodies_topics:
            expect_kernels(round_parts)
        if octomap_topic:
            expect_kernels(read_binary)
            node.subscribe(octomap_topic, msg.octomap_msgs.Octomap, keeper.on_octomap)
        for topic in people_topics:
            node.subscribe(topic, msg.Odometry, partial(self._on_person, topic))
        for topic in bodies_topics:
            node.subscribe(topic, msg.PersonBody, partial(self._on_body, topic))
        self._parts = {topic: PartsOfBody(people) for topic in bodies_topics}
        self._things = ThingFeed(node, keeper, things_topic, people.within) if things_topic else None
        if gripper_topic:
            node.subscribe(gripper_topic, msg.String, self._on_gripper)

    # -- messages ------------------------------------------------------------------------------------------------------
    def take(self, message: Any) -> bool:
        """Have a moveit_msgs/PlanningScene change the scene; whether it could be."""
        return self._try("a planning scene", lambda: self._keeper.changed_by(message, self._keeper.scene))

    def _on_scene(self, message: Any) -> None:
        self.take(message)

    def _on_object(self, message: Any) -> None:
        self._try("an object", lambda: self._keeper.with_object(message, self._keeper.scene))

    def _on_attached(self, message: Any) -> None:
        self._try("an attached object", lambda: self._keeper.with_attached(message, self._keeper.scene))

    def _on_person(self, topic: str, message: Any) -> None:
        try:
            T = self._keeper.T_world_frame(message.header.frame_id)
            speed = math.hypot(message.twist.twist.linear.x, message.twist.twist.linear.y)
            place = vector_to_array(message.pose.pose.position)
            self._keeper.see_person(person_at(f"person {topic}", T @ place, speed, self._people))
        except RoboyardError as error:
            self._node.log.error(f"left out a person: {error}", throttle=5.0)

    def _on_body(self, topic: str, message: Any) -> None:
        keeper = self._keeper
        try:
            T = keeper.T_world_frame(message.header.frame_id)
            foot = keeper.scene.T_world_base.translation
            keeper.see_body(topic, self._parts[topic].near(message.name, message.parts, _rows(message), T, foot))
        except (RoboyardError, ValueError) as error:
            self._node.log.error(f"left out somebody's body: {error}", throttle=5.0)

    # -- the gripper ---------------------------------------------------------------------------------------------------
    def _on_gripper(self, message: Any) -> None:
        state = str(message.data)
        if state == HOLDS and not self._held:
            self._try("what the gripper holds", self._grasped)
        elif state != HOLDS and self._held:
            self._try("what the gripper let go", self._lost if state == LOST else self._released)

    def _grasped(self) -> Any:
        q, scene = self._keeper.measured(), self._keeper.standing(self._keeper.scene)
        name = gripped(self._keeper.posed(scene), q)
        if name is None:
            self._node.log.warn("the gripper holds something that nobody told of")
            return scene
        names = tuple(parts_named(name.partition(PART)[0], list(scene.obstacles)))
        for one in names:
            scene = scene.grasp(one, q)
        self._held = names
        pairs = touched_by(self._keeper.peopled(self._keeper.posed(scene)), set(names), q)
        self._parting = (*self._parting, *pairs)
        self._node.log.info(f"holds {names[0]}")
        return scene.tolerating(*pairs)

    def _released(self) -> Any:
        q, scene = self._keeper.measured(), self._keeper.standing(self._keeper.scene)
        before = scene.allowed
        for one in self._held:
            if one in scene.attached:
                scene = scene.release(one, q)
        self._parting = (*self._parting, *sorted(pair for pair in scene.allowed - before if pair[::-1] not in before))
        self._held = ()
        return scene

    def _lost(self) -> Any:
        scene = self._keeper.scene
        for one in self._held:
            if one in scene.attached:
                scene = scene.drop(one)
        self._held = ()
        return scene

    def _on_joints(self, message: Any) -> None:
        self._keeper.on_joints(message)
        if self._parting and self._node.now_ns >= self._due_ns:
            self._due_ns = self._node.now_ns + _PARTS_NS
            self._part()

    def _part(self) -> None:
        """What touched only while it was gripped or set down may no longer do so, once it is apart."""
        scene = self._keeper.scene
        peopled = self._keeper.peopled(scene)
        known = {*scene.chain.link_mounts, *peopled.obstacles, *scene.attached}
        try:
            q = self._keeper.measured()
            strict = self._keeper.posed(peopled).disallowing(*self._parting)
            touch = {
                frozenset(pair) for pair in touched_by(strict, {name for pair in self._parting for name in pair}, q)
            }
            left = tuple(pair for pair in self._parting if known >= set(pair) and frozenset(pair) in touch)
        except RoboyardError as error:
            self._node.log.warn(f"cannot tell what has parted: {error}", throttle=5.0)
            return
        if left != self._parting:
            self._keeper.put(scene.disallowing(*(set(self._parting) - set(left))))
            self._parting = left

    # -- together ------------------------------------------------------------------------------------------------------
    def _try(self, what: str, change: Callable[[], Any]) -> bool:
        try:
            self._keeper.put(change())
        except RoboyardError as error:
            self._node.log.error(f"left out {what}: {error}")
            return False
        self._changed()
        return True

    def save_state(self) -> dict[str, Any]:
        """State as plain data; the scene itself is the keeper's."""
        things = {} if self._things is None else self._things.save_state()
        return {"held": self._held, "parting": self._parting, "due": self._due_ns, "things": things}

    def load_state(self, saved: dict[str, Any]) -> None:
        """Counterpart of `save`."""
        self._held, self._due_ns = tuple(saved["held"]), saved["due"]
        self._parting = tuple(tuple(pair) for pair in saved["parting"])
        if self._things is not None:
            self._things.load_state(saved["things"])


_POSE = attrgetter(
    "position.x", "position.y", "position.z", "orientation.w", "orientation.x", "orientation.y", "orientation.z"
)


def _rows(message: Any) -> np.ndarray[Any, np.dtype[np.float64]]:
    """(b, 10) of a body's parts, see `PartsOfBody.near`. Raises ValueError: not as many of each."""
    count = len(message.parts)
    rows = np.empty((count, 10))
    rows[:, :7] = np.array(list(map(_POSE, message.poses))).reshape(count, 7)
    rows[:, 7], rows[:, 8] = message.radii, message.lengths
    rows[:, 9] = [math.hypot(v.x, v.y, v.z) for v in message.velocities]
    return rows
