"""Leaves that read topics and publish on them."""

from __future__ import annotations

import re
from functools import reduce
from typing import Any, ClassVar

from roboyard.behavior.errors import TreeNodeError
from roboyard.behavior.kinds import Action, Condition
from roboyard.behavior.nodes.sending import OnBus, plain
from roboyard.behavior.ports import input_port, output_port
from roboyard.behavior.status import FAILURE, SUCCESS, Status
from roboyard.messages import message_type, msg
from roboyard.messages.convert import pose_to_se2
from roboyard.messages.from_data import message_from_data

_ENTRY = re.compile(r"\{(\w+)\}")


class LastMessage(OnBus, Condition):
    """Reads a field of what a topic said last; fails as long as it has said nothing."""

    ports: ClassVar = {
        "topic": input_port(str, doc="Its name"),
        "type": input_port(str, doc="As std_msgs/msg/Bool"),
        "field": input_port(str, "", "Which, as pose.position.x; empty: the message itself. Poses become x;y;yaw"),
        "value": output_port(object, doc="The field"),
    }
    state_fields = ("_message",)

    def setup(self) -> None:
        """See `TreeNode.setup`."""
        self._message: Any = None
        kind = message_type(self.inputs["type"]) if "type" in self.inputs else None
        self._path = [name for name in self.inputs.get("field", "").split(".") if name]
        if kind is not None:
            self._read(kind())
        if self.desk is not None and kind is not None and "topic" in self.inputs:
            self.keep(self.desk.node.subscribe(self.input("topic"), kind, self._take))

    def _take(self, message: Any) -> None:
        self._message = message

    def _read(self, message: Any) -> Any:
        try:
            value = reduce(getattr, self._path, message)
        except AttributeError as error:
            raise TreeNodeError(f"[field] {'.'.join(self._path)}: {error}", valid="a field of the message") from None
        if isinstance(value, msg.PoseStamped):
            value = value.pose
        return pose_to_se2(value) if isinstance(value, msg.Pose) else value

    def tick(self) -> Status:
        """See `TreeNode.tick`."""
        self.on_desk()
        if self._message is None:
            return FAILURE
        if "value" in self.outputs:
            self.output("value", self._read(self._message))
        return SUCCESS


class PublishMessage(OnBus, Action):
    """Publishes a message."""

    ports: ClassVar = {
        "topic": input_port(str, doc="Its name"),
        "type": input_port(str, doc="As std_msgs/msg/Bool"),
        "fields": input_port(str, "", "As data: true; {name} in it is an entry's value"),
    }

    def setup(self) -> None:
        """See `TreeNode.setup`."""
        self._kind = message_type(self.inputs["type"]) if "type" in self.inputs else None
        text = self.inputs.get("fields", "")
        if self._kind is not None and not _ENTRY.search(text):
            message_from_data(self._kind, plain(text))
        self._out = None
        if self.desk is not None and self._kind is not None and "topic" in self.inputs:
            self._out = self.keep(self.desk.node.publisher(self.input("topic"), self._kind))

    def tick(self) -> Status:
        """See `TreeNode.tick`."""
        self.on_desk()
        if self._out is not None and self._kind is not None:
            text = _ENTRY.sub(lambda found: str(self.blackboard.get(found.group(1))), self.input("fields"))
            self._out.publish(message_from_data(self._kind, plain(text)))
        return SUCCESS
