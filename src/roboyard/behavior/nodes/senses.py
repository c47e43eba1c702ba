"""What conditions are seen to be: where the robot is, which pose its arm is in, what topics say."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from functools import partial, reduce
from typing import Any

from roboyard.behavior.goals.domain import Value
from roboyard.behavior.goals.file import Place, SenseOf, Tasks
from roboyard.behavior.goals.pursuit import ELSEWHERE
from roboyard.bus import Node, TransformError
from roboyard.errors import ConfigError
from roboyard.geometry import SE2
from roboyard.manipulation.groups import Groups
from roboyard.messages import message_type, msg


class Senses:
    """Listens for a node to what a file of tasks says that conditions are seen by.

    Attributes:
        values: Conditions as topics told them last; plain data.
        joints: Positions of joints; plain data.
    """

    def __init__(self, node: Node, tasks: Tasks, groups: Groups | None, map_frame: str, base_frame: str) -> None:
        self.values: dict[str, Value] = {}
        self.joints: dict[str, float] = {}
        self._node, self._groups = node, groups
        self._frames = node.frame(map_frame), node.frame(base_frame)
        self._readers: dict[str, Callable[[Place | None, Mapping[str, Place], Value], Value | None]] = {}
        for name, sense in tasks.senses.items():
            self._connect(name, sense)

    def _connect(self, name: str, sense: SenseOf) -> None:
        if sense.topic:
            self._node.subscribe(sense.topic, message_type(sense.type), partial(self._on_message, name, sense.field))
        elif sense.near is not None:
            self._readers[name] = partial(_place_near, sense.near)
        else:
            if self._groups is None:
                raise ConfigError(
                    "there is no arm", location=f"senses.{name}.pose", valid="a robot with groups of joints"
                )
            if not self.joints:
                self._node.subscribe("joint_states", msg.JointState, self._on_joints)
            self._readers[name] = partial(self._pose_near, sense.pose or 0.0)

    def _on_message(self, name: str, field: str, message: Any) -> None:
        value = reduce(getattr, field.split("."), message)
        self.values[name] = value if isinstance(value, (str, bool, int, float)) else str(value)

    def _on_joints(self, message: Any) -> None:
        self.joints.update(zip(message.name, map(float, message.position), strict=False))

    def here(self) -> Place | None:
        """Where the robot is in the map; None if that is not known."""
        try:
            pose = SE2.from_se3(self._node.transforms.lookup(*self._frames))
        except TransformError:
            return None
        return pose.x, pose.y, pose.theta

    def __call__(
        self, here: Place | None, places: Mapping[str, Place], believed: Mapping[str, Value]
    ) -> dict[str, Value]:
        """Conditions as they are seen now; of places that are near to each other the one that was believed."""
        read = {name: reader(here, places, believed.get(name)) for name, reader in self._readers.items()}
        return {**self.values, **{name: value for name, value in read.items() if value is not None}}

    def _pose_near(self, most: float, *_: object) -> Value | None:
        group = None if self._groups is None else self._groups.group(None)
        if group is None or any(joint not in self.joints for joint in group.joints):
            return None
        now = [self.joints[joint] for joint in group.joints]
        off = {name: max(abs(a - b) for a, b in zip(now, pose, strict=True)) for name, pose in group.poses.items()}
        best = min(off, key=lambda name: off[name], default=None)
        return best if best is not None and off[best] <= most else ELSEWHERE


def _place_near(most: float, here: Place | None, places: Mapping[str, Place], believed: Value) -> Value | None:
    if here is None:
        return None
    far = {name: math.hypot(place[0] - here[0], place[1] - here[1]) for name, place in places.items()}
    if isinstance(believed, str) and far.get(believed, math.inf) <= most:
        return believed
    best = min(far, key=lambda name: far[name], default=None)
    return best if best is not None and far[best] <= most else ELSEWHERE
