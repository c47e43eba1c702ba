"""The asking end of an action."""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import numpy as np

from roboyard.bus.actions.status import GoalStatus, check_action, endpoint
from roboyard.bus.futures import Future
from roboyard.errors import MessageError, RoboyardError
from roboyard.messages import message_type, service_type

if TYPE_CHECKING:
    from roboyard.bus.node import Node


class GoalRejectedError(RoboyardError):
    """The server refused the goal; says why."""


class GoalFuture(Future):
    """A goal as its sender sees it: a future of the result message.

    Attributes:
        id: The goal's 16 bytes.
        accepted: True or False once the server decided.
        status: Where it stands, final once done.
        error_message: Why it was rejected, aborted or cancelled, if the server said.
        error_code: The same in one word, for programs, if the server gave one.
    """

    __slots__ = ("_client", "_feedback_callback", "accepted", "error_code", "error_message", "id", "status")

    def __init__(self, client: ActionClient, goal_id: bytes, feedback_callback: Callable[[Any], None] | None) -> None:
        super().__init__(f"result of {client.name}")
        self._client = client
        self._feedback_callback = feedback_callback
        self.id = goal_id
        self.accepted: bool | None = None
        self.status = GoalStatus.UNKNOWN
        self.error_message = self.error_code = ""

    def on_feedback(self, callback: Callable[[Any], None]) -> None:
        """Have ``callback`` called with each feedback message from now on, in place of another one."""
        self._feedback_callback = callback

    @property
    def action(self) -> str:
        """The action's full name."""
        return self._client.name

    @property
    def succeeded(self) -> bool:
        """Done, and the server says it reached the goal."""
        return self.status is GoalStatus.SUCCEEDED

    def cancel(self) -> Future:
        """Ask the server to stop; the goal is done when it has."""
        return self._client.cancel(self)


OnFuture = Callable[[GoalFuture], None]


class ActionClient:
    """Sends goals and follows them; made by ``Node.action_client``."""

    def __init__(self, node: Node, name: str, action_type: Any, *, on_goal_restored: OnFuture | None = None) -> None:
        check_action(action_type, node.full_name)
        self.type = action_type
        self.name = node.resolve(name)
        self._node_name = node.full_name
        self._session = node.bus.session
        self._created_ns = node.now_ns
        self._sent_count = 0
        self._on_goal_restored = on_goal_restored
        self._goals: dict[bytes, GoalFuture] = {}
        self._uuid_type = message_type("unique_identifier_msgs/msg/UUID")
        self._cancel_type = service_type("action_msgs/srv/CancelGoal")
        self._goal_info_type = message_type("action_msgs/msg/GoalInfo")
        self._send_goal_client = node.service_client(endpoint(self.name, "send_goal"), action_type.SendGoal)
        self._cancel_goal_client = node.service_client(endpoint(self.name, "cancel_goal"), self._cancel_type)
        self._get_result_client = node.service_client(endpoint(self.name, "get_result"), action_type.GetResult)
        node.subscribe(endpoint(self.name, "feedback"), action_type.FeedbackMessage, self._on_feedback)
        reason_type = message_type("roboyard_msgs/msg/GoalReason")
        node.subscribe(endpoint(self.name, "reason"), reason_type, self._on_reason)

    def is_available(self) -> bool:
        """Whether some node serves this action now."""
        return self._send_goal_client.is_available()

    def send(self, goal: Any, feedback_callback: Callable[[Any], None] | None = None) -> GoalFuture:
        """Send ``goal``.

        Args:
            goal: The action's goal message.
            feedback_callback: Called with each feedback message.

        Returns:
            Future of the result; it fails with GoalRejectedError when the server refuses, UnknownNameError when there
            is no server.

        Raises:
            MessageError: ``goal`` is not this action's goal.
        """
        if goal.__class__ is not self.type.Goal:
            raise MessageError(
                f"action {self.name} takes a goal of {self.type.name}, not {type(goal).__name__}",
                location=f"node {self._node_name}",
            )
        self._sent_count += 1  # ids must repeat from run to run and differ between clients, also of a node started anew
        identity = f"{self._session}{self._node_name} {self.name} {self._created_ns} {self._sent_count}"
        digest = hashlib.sha256(identity.encode()).digest()[:16]
        future = GoalFuture(self, digest, feedback_callback)
        self._goals[digest] = future
        request = self.type.SendGoal.Request(goal_id=self._uuid_message(digest), goal=goal)
        self._send_goal_client.call(request).add_done_callback(
            lambda response: self._on_goal_response(future, response)
        )
        return future

    def cancel(self, goal: GoalFuture) -> Future:
        """Ask for ``goal`` to be stopped."""
        info = self._goal_info_type(goal_id=self._uuid_message(goal.id))
        return self._cancel_goal_client.call(self._cancel_type.Request(goal_info=info))

    def _on_goal_response(self, future: GoalFuture, response: Future) -> None:
        if self._goals.get(future.id) is not future:
            return  # the node has left meanwhile
        if response.error is not None:
            self._discard_goal(future)
            future.set_error(response.error)
            return
        future.accepted = bool(response.result.accepted)
        if not future.accepted:
            self._discard_goal(future)
            future.set_error(
                GoalRejectedError(f"goal rejected: {future.error_message or 'no reason given'}", location=self.name)
            )
            return
        if future.status is GoalStatus.UNKNOWN:
            future.status = GoalStatus.EXECUTING
        self._request_result(future)

    def _request_result(self, future: GoalFuture) -> None:
        request = self.type.GetResult.Request(goal_id=self._uuid_message(future.id))
        self._get_result_client.call(request).add_done_callback(lambda result: self._on_result(future, result))

    def _on_result(self, future: GoalFuture, response: Future) -> None:
        if self._goals.get(future.id) is not future:
            return
        self._discard_goal(future)
        if response.error is not None:
            future.status = GoalStatus.ABORTED
            future.set_error(response.error)
            return
        future.status = GoalStatus(response.result.status)
        future.set_result(response.result.result)

    def _on_feedback(self, message: Any) -> None:
        goal = self._goals.get(bytes(message.goal_id.uuid))
        if goal is not None and goal._feedback_callback is not None:
            goal._feedback_callback(message.feedback)

    def _on_reason(self, message: Any) -> None:
        goal = self._goals.get(bytes(message.goal_id.uuid))
        if goal is not None:
            goal.error_message, goal.error_code = message.reason, message.cause

    def _discard_goal(self, future: GoalFuture) -> None:
        self._goals.pop(future.id, None)

    def _uuid_message(self, digest: bytes) -> Any:
        return self._uuid_type(uuid=np.frombuffer(digest, dtype=np.uint8))

    @property
    def unrestorable_goal_count(self) -> int:
        """How many goals were sent and have not ended, and nobody takes them up again when a state is loaded."""
        unrestorable = [
            goal for goal in self._goals.values() if self._on_goal_restored is None or goal.accepted is None
        ]
        return len(unrestorable)

    def save_state(self) -> dict[str, Any]:
        """How many goals were sent, since their ids follow from that, and those that are under way; plain data."""
        pending_goals = [(goal.id, int(goal.status), goal.error_message) for goal in self._goals.values()]
        return {"born": self._created_ns, "sent": self._sent_count, "goals": pending_goals}

    def load_state(self, saved: dict[str, Any]) -> None:
        """Counterpart of `save`: ``on_goal_restored`` gets a future for each goal that is under way."""
        self._created_ns, self._sent_count = saved["born"], saved["sent"]
        self._goals.clear()
        for goal_id, status, error_message in saved["goals"]:
            future = GoalFuture(self, goal_id, None)
            future.accepted, future.status, future.error_message = True, GoalStatus(status), error_message
            self._goals[goal_id] = future
            if self._on_goal_restored is not None:
                self._on_goal_restored(future)
            self._request_result(future)

    def close(self) -> None:
        """Follow no goal any more."""
        self._goals.clear()
