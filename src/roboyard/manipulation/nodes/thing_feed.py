"""Things that a detector sees, as boxes that an arm must not touch until it holds them."""

from __future__ import annotations

import math
from typing import Any, Final

import numpy as np

from roboyard.bus import Node
from roboyard.description import Box
from roboyard.errors import RoboyardError
from roboyard.manipulation.collision import Obstacle
from roboyard.manipulation.nodes.scene_keeper import SceneKeeper
from roboyard.manipulation.scene import PlanningScene
from roboyard.messages import msg
from roboyard.messages.convert import pose_to_se3

_MOVED: Final = 0.006
_TURNED: Final = 0.03
"""A thing that is seen nearer than this to where it was lies still [m, rad]: no look is without error."""
_GONE_NS: Final = 1_000_000_000
"""What is not seen for so long is gone."""


class ThingFeed:
    """Hands a keeper what is seen; what an arm holds is left to its hand.

    Args:
        node: Who listens.
        keeper: Of the scene.
        topic: vision_msgs/Detection3DArray; a detection without a name or a size is no thing.
        within: Farther from the arm's foot things do not matter [m].
    """

    def __init__(self, node: Node, keeper: SceneKeeper, topic: str, within: float) -> None:
        self._node, self._keeper, self._within = node, keeper, within
        self._seen_ns: dict[str, int] = {}
        node.subscribe(topic, msg.vision_msgs.Detection3DArray, self._on_things)

    def _on_things(self, message: Any) -> None:
        scene, now_ns = self._keeper.scene, self._node.now_ns
        found: list[Obstacle] = []
        away: list[str] = []
        for one in message.detections:
            try:
                box = self._box(one)
            except RoboyardError as error:
                self._node.log.error(f"left out a thing: {error}", throttle=5.0)
                continue
            if box is None or box.name in scene.attached:
                continue
            far = np.linalg.norm(box.T_world.translation - scene.T_world_base.translation) > self._within
            if far and box.name in self._seen_ns:
                away.append(box.name)
            elif not far:
                self._seen_ns[box.name] = now_ns
                if self._is_elsewhere(box, scene):
                    found.append(box)
        away += [name for name, seen_ns in self._seen_ns.items() if now_ns - seen_ns > _GONE_NS]
        for name in away:
            self._seen_ns.pop(name, None)
        changed = {*away, *(box.name for box in found)} & set(scene.obstacles)
        if found or changed:
            self._keeper.put(scene.without(*changed).with_obstacles(found))

    def _box(self, one: Any) -> Obstacle | None:
        """A detection as an obstacle, None where it is no thing. Raises RoboyardError."""
        size = (float(one.bbox.size.x), float(one.bbox.size.y), float(one.bbox.size.z))
        if not one.id or not all(0.0 < edge < math.inf for edge in size):
            return None
        return Obstacle(str(one.id), Box(size), self._keeper.T_world_frame(one.header.frame_id)
                        @ pose_to_se3(one.bbox.center))  # fmt: skip

    @staticmethod
    def _is_elsewhere(box: Obstacle, scene: PlanningScene) -> bool:
        before = scene.obstacles.get(box.name)
        if not isinstance(before, Obstacle):
            return True
        T = before.T_world
        return before.geometry != box.geometry or T.distance(box.T_world) > _MOVED or T.angle_to(box.T_world) > _TURNED

    # -- state ---------------------------------------------------------------------------------------------------------
    def save_state(self) -> dict[str, int]:
        """When each thing was seen last [ns]."""
        return dict(self._seen_ns)

    def load_state(self, saved: dict[str, int]) -> None:
        """Counterpart of `save`."""
        self._seen_ns = dict(saved)
