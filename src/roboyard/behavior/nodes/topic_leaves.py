"""Leaves that wait for messages, read topics, publish, and call services and actions."""

from __future__ import annotations

import re
from functools import reduce
from typing import Any, ClassVar

from roboyard.behavior.basic_types import FAILURE, RUNNING, SUCCESS, NodeStatus
from roboyard.behavior.errors import TreeNodeError
from roboyard.behavior.nodes.leaf_host import (
    ACTION_PORTS,
    TIMEOUT_PORT,
    ActionLeaf,
    BusLeaf,
    check_fields,
    message_from_port,
    parse_fields,
)
from roboyard.behavior.ports import input_port, output_port
from roboyard.behavior.tree_node import ConditionNode, StatefulActionNode, SyncActionNode
from roboyard.bus import Future
from roboyard.messages import action_type, message_type, msg, service_type
from roboyard.messages.convert import pose_to_se2
from roboyard.messages.from_data import message_from_data


class CallService(BusLeaf, StatefulActionNode):
    """Calls a service, and fails if its response has ``success: false``."""

    ports: ClassVar = {
        "service_name": input_port(str, doc="Name of the topic."),
        "service_type": input_port(str, "std_srvs/srv/Trigger", "As std_srvs/srv/SetBool"),
        "request": input_port(str, "", "Fields of the request, as `data: true`."),
        "server_timeout": TIMEOUT_PORT,
    }
    state_fields = ("_outcome",)

    def setup(self) -> None:
        """See `TreeNode.setup`."""
        self._outcome: tuple[bool, str] | None = None
        self.failure_reason = ""
        self._response: Future | None = None
        self._client = None
        if "request" in self.ports:
            check_fields(self, self._service_type().Request, "request")
        if self.host is not None:
            self._client = self.host.node.service_client(self._service_name(), self._service_type())

    def _service_name(self) -> str:
        return self.inputs.get("service_name", "")

    def _service_type(self) -> Any:
        return service_type(self.inputs.get("service_type", "std_srvs/srv/Trigger"))

    def _make_request(self) -> Any:
        return message_from_port(self, self._service_type().Request, "request")

    def on_start(self) -> NodeStatus:
        """See `StatefulActionNode.on_start`."""
        self.require_host()
        if self._client is None:
            raise TreeNodeError("the service has no client")
        self._outcome = None
        self._response = self._client.call(self._make_request())
        return self.on_running()

    def on_running(self) -> NodeStatus:
        """See `StatefulActionNode.on_running`."""
        self._read_response()
        if self._outcome is None:
            return RUNNING if self._response is not None else self.on_start()  # a restored call is made again
        is_successful, self.failure_reason = self._outcome
        if not is_successful:
            self.require_host().node.log.info(f"{self.path}: {self.failure_reason}")
        return SUCCESS if is_successful else FAILURE

    def _read_response(self) -> None:
        """Note whether the call has succeeded, and the reason of a failure."""
        response = self._response
        if self._outcome is not None or response is None or not response.done():
            return
        if response.error is not None:
            self._outcome = False, str(response.error)
        elif getattr(response.result, "success", True):
            self._outcome = True, ""
        else:
            self._outcome = False, getattr(response.result, "message", "") or "the service reports a failure"

    def save_state(self) -> dict[str, Any]:
        """See `TreeNode.save_state`."""
        self._read_response()
        return super().save_state()

    def on_halted(self) -> None:
        """See `StatefulActionNode.on_halted`."""
        self._response = None


class TopicLeaf(BusLeaf, StatefulActionNode):
    """A leaf that waits for a message on a topic; derive and implement ``topic_type`` and ``on_message``.

    It has the ports ``topic`` and ``timeout``, after which it fails [s].

    Attributes:
        failure_reason: Reason of the last failure.
    """

    state_fields: ClassVar[tuple[str, ...]] = ("_has_succeeded", "_deadline_ns")

    def topic_type(self) -> Any:
        """Return the type of the messages."""
        raise NotImplementedError

    def on_message(self, message: Any) -> bool:
        """Handle a message; return whether it is the one that the leaf waits for."""
        raise NotImplementedError

    def on_timeout(self) -> str:
        """Return the reason of the failure."""
        return f"no message on {self.get_input('topic')}"

    def setup(self) -> None:
        """See `TreeNode.setup`."""
        self._has_succeeded = False
        self._deadline_ns = 0
        self.failure_reason = ""
        self._subscription: Any = None

    def on_start(self) -> NodeStatus:
        """See `StatefulActionNode.on_start`."""
        self.require_host()
        self._has_succeeded = False
        self._deadline_ns = self.now_ns + round(self.get_input("timeout") * 1e9)
        self._subscribe()
        return RUNNING

    def on_running(self) -> NodeStatus:
        """See `StatefulActionNode.on_running`."""
        if not self._has_succeeded and self.now_ns < self._deadline_ns:
            return RUNNING
        self.on_halted()
        if not self._has_succeeded:
            self.failure_reason = self.on_timeout()
        return SUCCESS if self._has_succeeded else FAILURE

    def on_halted(self) -> None:
        """See `StatefulActionNode.on_halted`."""
        subscription, self._subscription = self._subscription, None
        if subscription is not None:
            self.require_host().node.release_endpoint(subscription)

    def _subscribe(self) -> None:
        self._subscription = self.require_host().node.subscribe(
            self.get_input("topic"), self.topic_type(), self._on_message
        )

    def _on_message(self, message: Any) -> None:
        self._has_succeeded = self._has_succeeded or self.on_message(message)

    def load_state(self, saved: dict[str, Any]) -> None:
        """See `TreeNode.load_state`."""
        super().load_state(saved)
        if self.status is RUNNING and not self._has_succeeded:
            self._subscribe()


class WaitForMessage(TopicLeaf):
    """Waits for the next message on a topic, such as an image of a camera that renders only while there is a
    subscription."""

    ports: ClassVar = {
        "topic": input_port(str, doc="Name of the topic."),
        "type": input_port(str, doc="Type of the messages, as `sensor_msgs/msg/Image`."),
        "timeout": input_port(float, 5.0, "Time after which the leaf fails [s]."),
        "message": output_port(object, doc="The message that was received."),
    }

    def setup(self) -> None:
        """See `TreeNode.setup`."""
        super().setup()
        self._message_type = message_type(self.inputs["type"]) if "type" in self.inputs else msg.String

    def topic_type(self) -> Any:
        """See `TopicLeaf.topic_type`."""
        return self._message_type

    def on_message(self, message: Any) -> bool:
        """See `TopicLeaf.on_message`."""
        if "message" in self.outputs:
            self.set_output("message", message)
        return True


_ENTRY_PATTERN = re.compile(r"\{(\w+)\}")


class LastMessage(BusLeaf, ConditionNode):
    """Reads a field of the last message on a topic; fails before the first one."""

    ports: ClassVar = {
        "topic": input_port(str, doc="Name of the topic."),
        "type": input_port(str, doc="Type of the messages, as `std_msgs/msg/Bool`."),
        "field": input_port(str, "", "Field, as `pose.position.x`; empty: the message. Poses become `x;y;yaw`."),
        "value": output_port(object, doc="Value of the field."),
    }
    state_fields = ("_message",)

    def setup(self) -> None:
        """See `TreeNode.setup`."""
        self._message: Any = None
        topic_type = message_type(self.inputs["type"]) if "type" in self.inputs else None
        self._field_path = [name for name in self.inputs.get("field", "").split(".") if name]
        if topic_type is not None:
            self._read_field(topic_type())
        if self.host is not None and topic_type is not None and "topic" in self.inputs:
            self.release_with_tree(self.host.node.subscribe(self.get_input("topic"), topic_type, self._on_message))

    def _on_message(self, message: Any) -> None:
        self._message = message

    def _read_field(self, message: Any) -> Any:
        try:
            value = reduce(getattr, self._field_path, message)
        except AttributeError as error:
            raise TreeNodeError(
                f"[field] {'.'.join(self._field_path)}: {error}", valid="a field of the message"
            ) from None
        if isinstance(value, msg.PoseStamped):
            value = value.pose
        return pose_to_se2(value) if isinstance(value, msg.Pose) else value

    def tick(self) -> NodeStatus:
        """See `TreeNode.tick`."""
        self.require_host()
        if self._message is None:
            return FAILURE
        if "value" in self.outputs:
            self.set_output("value", self._read_field(self._message))
        return SUCCESS


class PublishMessage(BusLeaf, SyncActionNode):
    """Publishes a message."""

    ports: ClassVar = {
        "topic": input_port(str, doc="Name of the topic."),
        "type": input_port(str, doc="Type of the messages, as `std_msgs/msg/Bool`."),
        "fields": input_port(
            str, "", "Fields of the message, as `data: true`; `{key}` in it is the value of an entry."
        ),
    }

    def setup(self) -> None:
        """See `TreeNode.setup`."""
        self._message_type = message_type(self.inputs["type"]) if "type" in self.inputs else None
        text = self.inputs.get("fields", "")
        if self._message_type is not None and not _ENTRY_PATTERN.search(text):
            message_from_data(self._message_type, parse_fields(text))
        self._publisher = None
        if self.host is not None and self._message_type is not None and "topic" in self.inputs:
            self._publisher = self.release_with_tree(
                self.host.node.publisher(self.get_input("topic"), self._message_type)
            )

    def tick(self) -> NodeStatus:
        """See `TreeNode.tick`."""
        self.require_host()
        if self._publisher is not None and self._message_type is not None:
            text = _ENTRY_PATTERN.sub(lambda found: str(self.blackboard.get(found.group(1))), self.get_input("fields"))
            self._publisher.publish(message_from_data(self._message_type, parse_fields(text)))
        return SUCCESS


class CallAction(ActionLeaf):
    """Sends a goal to any action."""

    ports: ClassVar = {
        "action_type": input_port(str, doc="Type of the action, as `nav2_msgs/action/Spin`."),
        "goal": input_port(str, "", "Fields of the goal, as `target_yaw: 1.57`."),
        **ACTION_PORTS,
        "server_name": input_port(str, doc="Name of the action."),
    }

    def setup(self) -> None:
        """See `TreeNode.setup`."""
        super().setup()
        if "action_type" in self.inputs:
            check_fields(self, self.action_type.Goal, "goal")

    @property
    def action_type(self) -> Any:
        """Return the type of the action."""
        return action_type(self.inputs.get("action_type", ""))

    def make_goal(self) -> Any:
        """See `ActionLeaf.make_goal`."""
        return message_from_port(self, self.action_type.Goal, "goal")
