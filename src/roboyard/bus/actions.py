"""Actions as in ROS 2: three services and two topics each, so that bridges pass them on unchanged.

An additional topic, ``_action/error``, carries the reason why a goal was rejected, aborted or canceled.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from roboyard.bus.services import Future, check_interface_type
from roboyard.errors import MessageError, RoboyardError, RunError
from roboyard.messages import (
    ActionType,
    deserialize,
    message_type,
    serialize,
    service_type,
    time_to_msg,
    to_nanoseconds,
    type_name,
)
from roboyard.messages.convert.action_goals import GoalStatus, uuid_from_msg, uuid_of_text, uuid_to_msg

if TYPE_CHECKING:
    from roboyard.bus.node_base import NodeBase


PREEMPTED = "preempted"
"""Error code of a goal that a newer goal replaced."""


def check_action(action_type: Any, node: str) -> None:
    """Check that `action_type` is an action type.

    Raises:
        MessageError: It is not an action type.
    """
    check_interface_type(action_type, ActionType, "action", "ry.action.NavigateToPose", node)


def endpoint(action: str, part: str) -> str:
    """Return the name of one of an action's services (send_goal, cancel_goal, get_result) or topics (feedback, status,
    error).
    """
    return f"{action}/_action/{part}"


_MAX_STORED_GOALS = 64


class GoalHandle:
    """Goal on the side of its server.

    Attributes:
        goal: The goal message.
        id: Its id (16 bytes).
        status: Its present status.
        error_message: Reason why it was rejected, aborted or canceled, if one was given.
        error_code: The same reason as one word, for programs.
        on_cancel: Function called when a cancel request arrives; without it, the server polls `is_cancel_requested`.
    """

    def __init__(self, server: ActionServer, goal: Any, goal_id: bytes, time_ns: int) -> None:
        self._server = server
        self.goal = goal
        self.id = goal_id
        self.accepted_ns = time_ns
        self.status = GoalStatus.UNKNOWN
        self.error_message = self.error_code = ""
        self.on_cancel: Callable[[GoalHandle], None] | None = None
        self.result_future = Future("goal")

    @property
    def is_active(self) -> bool:
        """Whether the goal is accepted and not finished."""
        return self.status in (GoalStatus.ACCEPTED, GoalStatus.EXECUTING, GoalStatus.CANCELING)

    @property
    def is_cancel_requested(self) -> bool:
        """Whether a cancel request is pending."""
        return self.status is GoalStatus.CANCELING

    def accept(self) -> None:
        """Accept the goal.

        Raises:
            RunError: The goal was already accepted or rejected.
        """
        if self.status is not GoalStatus.UNKNOWN or self.error_message:
            raise RunError("the goal was already accepted or rejected")
        self._server.accept(self)

    def reject(self, error_message: str, error_code: str = "") -> None:
        """Reject the goal with a reason."""
        if self.status is not GoalStatus.UNKNOWN:
            raise RunError("the goal was already accepted or rejected")
        self.error_message, self.error_code = error_message or "no reason given", error_code

    def publish_feedback(self, feedback: Any) -> None:
        """Publish feedback to the client; ignored after the goal has ended."""
        if self.is_active:
            self._server.send_feedback(self, feedback)

    def succeed(self, result: Any) -> None:
        """End the goal as succeeded."""
        self._server.end_goal(self, GoalStatus.SUCCEEDED, result, "")

    def abort(self, result: Any | None = None, error_message: str = "", error_code: str = "") -> None:
        """End the goal as aborted: it could not be reached."""
        self._server.end_goal(self, GoalStatus.ABORTED, result, error_message, error_code)

    def set_canceled(self, result: Any | None = None, error_message: str = "") -> None:
        """End the goal as canceled: the client or a newer goal requested it."""
        self._server.end_goal(self, GoalStatus.CANCELED, result, error_message)


OnGoal = Callable[[GoalHandle], None]


class ActionServer:
    """Accepts goals, sends feedback and results; created by `Node.action_server`."""

    def __init__(
        self,
        node: NodeBase,
        name: str,
        action_type: Any,
        on_goal: OnGoal,
        *,
        preempt: bool,
        on_goal_restored: OnGoal | None = None,
    ) -> None:
        check_action(action_type, node.full_name)
        self.node = node
        self.type = action_type
        self.name = node.resolve(name)
        self._on_goal = on_goal
        self._preempt = preempt
        self._on_goal_restored = on_goal_restored
        self.goals: dict[bytes, GoalHandle] = {}
        self._status_type = message_type("action_msgs/msg/GoalStatus")
        array_type = message_type("action_msgs/msg/GoalStatusArray")
        error_type = message_type("roboyard_msgs/msg/GoalError")
        cancel_type = service_type("action_msgs/srv/CancelGoal")
        self._feedback_publisher = node.publisher(endpoint(self.name, "feedback"), action_type.FeedbackMessage)
        self._status_publisher = node.publisher(endpoint(self.name, "status"), array_type, latched=True)
        self._error_publisher = node.publisher(endpoint(self.name, "error"), error_type)
        self._cancel_response = cancel_type.Response
        node.service(endpoint(self.name, "send_goal"), action_type.SendGoal, self._on_send_goal)
        node.service(endpoint(self.name, "cancel_goal"), cancel_type, self._on_cancel_goal)
        node.service(endpoint(self.name, "get_result"), action_type.GetResult, self._on_get_result)

    @property
    def active_goals(self) -> tuple[GoalHandle, ...]:
        """Goals that are accepted and not finished, oldest first."""
        return tuple(goal for goal in self.goals.values() if goal.is_active)

    @property
    def unrestorable_goal_count(self) -> int:
        """Number of active goals that cannot be restored from a snapshot."""
        return 0 if self._on_goal_restored is not None else len(self.active_goals)

    # -- requests ------------------------------------------------------------------------------------------------------
    def _on_send_goal(self, request: Any) -> Any:
        goal_id = uuid_from_msg(request.goal_id)
        handle = GoalHandle(self, request.goal, goal_id, self.node.now_ns)
        if goal_id in self.goals:
            handle.reject("a goal with this id exists already")
        else:
            self._on_goal(handle)
        accepted = handle.status is not GoalStatus.UNKNOWN
        if not accepted:
            handle.error_message = handle.error_message or "the server did not accept it"
            self._publish_error(handle)
            self.node.log.warn(f"goal for {self.name} rejected: {handle.error_message}")
        return self.type.SendGoal.Response(accepted=accepted, stamp=time_to_msg(handle.accepted_ns))

    def _on_cancel_goal(self, request: Any) -> Any:
        """Cancel one goal, all goals up to a time, or all goals, as action_msgs/CancelGoal defines."""
        goal_id, until_ns = uuid_from_msg(request.goal_info.goal_id), to_nanoseconds(request.goal_info.stamp)
        response = self._cancel_response()
        canceled_goals = [
            goal
            for goal in self.goals.values()
            if goal.is_active
            and (goal.id == goal_id if any(goal_id) else (until_ns == 0 or goal.accepted_ns <= until_ns))
        ]
        if any(goal_id) and not canceled_goals:
            response.return_code = 3 if goal_id in self.goals else 2  # ERROR_GOAL_TERMINATED, ERROR_UNKNOWN_GOAL_ID
        for goal in canceled_goals:
            goal.status = GoalStatus.CANCELING
            response.goals_canceling.append(self._goal_info(goal))
        self._publish_status()
        for goal in canceled_goals:
            if goal.on_cancel:
                goal.on_cancel(goal)
        return response

    def _on_get_result(self, request: Any) -> Any:
        goal = self.goals.get(uuid_from_msg(request.goal_id))
        if goal is None:
            return self.type.GetResult.Response(status=int(GoalStatus.UNKNOWN))
        return goal.result_future

    # -- methods for goal handles
    # -------------------------------------------------------------------------------------------
    def accept(self, handle: GoalHandle) -> None:
        """Accept a goal; abort older ones if the server preempts."""
        if self._preempt:
            for older in self.active_goals:
                self.end_goal(older, GoalStatus.ABORTED, None, "preempted by a newer goal", PREEMPTED)
        handle.status = GoalStatus.EXECUTING
        self.goals[handle.id] = handle
        while len(self.goals) > _MAX_STORED_GOALS and not next(iter(self.goals.values())).is_active:
            self.goals.pop(next(iter(self.goals)))
        self._publish_status()

    def send_feedback(self, handle: GoalHandle, feedback: Any) -> None:
        """Publish feedback of a goal."""
        if feedback.__class__ is not self.type.Feedback:
            raise MessageError(f"{type(feedback).__name__} is not feedback of {self.type.name}")
        self._feedback_publisher.publish(self.type.FeedbackMessage(goal_id=uuid_to_msg(handle.id), feedback=feedback))

    def end_goal(
        self, handle: GoalHandle, status: GoalStatus, result: Any | None, error_message: str, error_code: str = ""
    ) -> None:
        """End a goal; ending it twice is ignored, because the worker of a preempted goal may end it again."""
        if not handle.is_active:
            return
        if result is not None and result.__class__ is not self.type.Result:
            raise MessageError(f"{type(result).__name__} is not a result of {self.type.name}")
        handle.status, handle.error_message, handle.error_code = status, error_message, error_code
        if error_message:
            self._publish_error(handle)
        self._publish_status()
        response = self.type.GetResult.Response(status=int(status))
        if result is not None:
            response.result = result
        handle.result_future.set_result(response)

    # -- state ---------------------------------------------------------------------------------------------------------
    def save_state(self) -> list[tuple[Any, ...]]:
        """Return all stored goals, as plain data, with the results of finished ones."""
        return [
            (
                goal.id,
                serialize(goal.goal),
                goal.accepted_ns,
                int(goal.status),
                goal.error_message,
                _serialized_result(goal),
            )
            for goal in self.goals.values()
        ]

    def load_state(self, saved: list[tuple[Any, ...]]) -> None:
        """Restore a state that `save_state` returned; `on_goal_restored` resumes the active goals."""
        self.goals.clear()
        for goal_id, data, accepted_ns, status, error_message, result in saved:
            goal = GoalHandle(self, deserialize(data, type_name(self.type.Goal)), goal_id, accepted_ns)
            goal.status, goal.error_message = GoalStatus(status), error_message
            self.goals[goal_id] = goal
            if result is not None:
                goal.result_future.set_result(deserialize(result, type_name(self.type.GetResult.Response)))
            elif goal.is_active and self._on_goal_restored is not None:
                self._on_goal_restored(goal)

    def _publish_error(self, handle: GoalHandle) -> None:
        self._error_publisher.publish(
            self._error_publisher.topic.type(
                goal_id=uuid_to_msg(handle.id), error_message=handle.error_message, error_code=handle.error_code
            )
        )

    def _publish_status(self) -> None:
        message = self._status_publisher.topic.type()
        for goal in self.goals.values():
            message.status_list.append(self._status_type(goal_info=self._goal_info(goal), status=int(goal.status)))
        self._status_publisher.publish(message)

    def _goal_info(self, goal: GoalHandle) -> Any:
        info_type = message_type("action_msgs/msg/GoalInfo")
        return info_type(goal_id=uuid_to_msg(goal.id), stamp=time_to_msg(goal.accepted_ns))

    def close(self) -> None:
        """Abort active goals; the node closes the action's topics and services."""
        aborted_goals = self.active_goals
        for goal in aborted_goals:
            goal.status, goal.error_message = GoalStatus.ABORTED, "the action server was closed"
        if aborted_goals and not self.node.bus.is_closing:  # clients that follow the topics would wait forever
            for goal in aborted_goals:
                self._publish_error(goal)
            self._publish_status()
        for goal in aborted_goals:
            goal.result_future.set_error(RunError(f"the action server of {self.name} was closed"))


def _serialized_result(goal: GoalHandle) -> bytes | None:
    return (
        serialize(goal.result_future.result) if goal.result_future.done() and goal.result_future.error is None else None
    )


class GoalRejectedError(RoboyardError):
    """The server rejected the goal; the message states the reason."""


class GoalFuture(Future):
    """Goal on the side of its client: a future of the result message.

    Attributes:
        id: The goal's id (16 bytes).
        accepted: True or False after the server's decision.
        status: Present status; final when the future is done.
        error_message: Reason why it was rejected, aborted or canceled, if the server gave one.
        error_code: The same reason as one word, for programs, if the server gave one.
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
        """Set the function called with each further feedback message; it replaces the previous one."""
        self._feedback_callback = callback

    @property
    def action(self) -> str:
        """Full name of the action."""
        return self._client.name

    @property
    def succeeded(self) -> bool:
        """Whether the goal is finished and the server reached it."""
        return self.status is GoalStatus.SUCCEEDED

    def cancel(self) -> Future:
        """Request cancellation; the goal ends when the server has canceled it."""
        return self._client.cancel(self)


OnFuture = Callable[[GoalFuture], None]


class ActionClient:
    """Sends goals and tracks them; created by `Node.action_client`."""

    def __init__(
        self, node: NodeBase, name: str, action_type: Any, *, on_goal_restored: OnFuture | None = None
    ) -> None:
        check_action(action_type, node.full_name)
        self.type = action_type
        self.name = node.resolve(name)
        self._node_name = node.full_name
        self._session = node.bus.session
        self._created_ns = node.now_ns
        self._sent_count = 0
        self._on_goal_restored = on_goal_restored
        self._goals: dict[bytes, GoalFuture] = {}
        self._cancel_type = service_type("action_msgs/srv/CancelGoal")
        self._goal_info_type = message_type("action_msgs/msg/GoalInfo")
        self._send_goal_client = node.service_client(endpoint(self.name, "send_goal"), action_type.SendGoal)
        self._cancel_goal_client = node.service_client(endpoint(self.name, "cancel_goal"), self._cancel_type)
        self._get_result_client = node.service_client(endpoint(self.name, "get_result"), action_type.GetResult)
        node.subscribe(endpoint(self.name, "feedback"), action_type.FeedbackMessage, self._on_feedback)
        error_type = message_type("roboyard_msgs/msg/GoalError")
        node.subscribe(endpoint(self.name, "error"), error_type, self._on_error)

    def is_available(self) -> bool:
        """Return whether a node serves this action now."""
        return self._send_goal_client.is_available()

    def send(self, goal: Any, feedback_callback: Callable[[Any], None] | None = None) -> GoalFuture:
        """Send a goal.

        Args:
            goal: The action's goal message.
            feedback_callback: Function called with each feedback message.

        Returns:
            Future of the result.  It fails with GoalRejectedError if the server rejects the goal, and with
            UnknownNameError if there is no server.

        Raises:
            MessageError: `goal` is not a goal of this action.
        """
        if goal.__class__ is not self.type.Goal:
            raise MessageError(
                f"action {self.name} requires a goal of {self.type.name}, got {type(goal).__name__}",
                location=f"node {self._node_name}",
            )
        self._sent_count += 1  # ids must repeat between runs and differ between clients, including restarted nodes
        identity = f"{self._session}{self._node_name} {self.name} {self._created_ns} {self._sent_count}"
        uuid = uuid_of_text(identity)
        future = GoalFuture(self, uuid, feedback_callback)
        self._goals[uuid] = future
        request = self.type.SendGoal.Request(goal_id=uuid_to_msg(uuid), goal=goal)
        self._send_goal_client.call(request).add_done_callback(
            lambda response: self._on_goal_response(future, response)
        )
        return future

    def cancel(self, goal: GoalFuture) -> Future:
        """Request cancellation of `goal`."""
        info = self._goal_info_type(goal_id=uuid_to_msg(goal.id))
        return self._cancel_goal_client.call(self._cancel_type.Request(goal_info=info))

    def _on_goal_response(self, future: GoalFuture, response: Future) -> None:
        if self._goals.get(future.id) is not future:
            return  # the node has been removed meanwhile
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
        request = self.type.GetResult.Request(goal_id=uuid_to_msg(future.id))
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
        goal = self._goals.get(uuid_from_msg(message.goal_id))
        if goal is not None and goal._feedback_callback is not None:
            goal._feedback_callback(message.feedback)

    def _on_error(self, message: Any) -> None:
        goal = self._goals.get(uuid_from_msg(message.goal_id))
        if goal is not None:
            goal.error_message, goal.error_code = message.error_message, message.error_code

    def _discard_goal(self, future: GoalFuture) -> None:
        self._goals.pop(future.id, None)

    @property
    def unrestorable_goal_count(self) -> int:
        """Number of goals sent and not finished that cannot be restored from a snapshot."""
        unrestorable = [
            goal for goal in self._goals.values() if self._on_goal_restored is None or goal.accepted is None
        ]
        return len(unrestorable)

    def save_state(self) -> dict[str, Any]:
        """Return the number of sent goals, which determines their ids, and the active ones, as plain data."""
        pending_goals = [(goal.id, int(goal.status), goal.error_message) for goal in self._goals.values()]
        return {"created_ns": self._created_ns, "sent_count": self._sent_count, "goals": pending_goals}

    def load_state(self, saved: dict[str, Any]) -> None:
        """Restore a state that `save_state` returned; `on_goal_restored` gets a future for each active goal."""
        self._created_ns, self._sent_count = saved["created_ns"], saved["sent_count"]
        self._goals.clear()
        for goal_id, status, error_message in saved["goals"]:
            future = GoalFuture(self, goal_id, None)
            future.accepted, future.status, future.error_message = True, GoalStatus(status), error_message
            self._goals[goal_id] = future
            if self._on_goal_restored is not None:
                self._on_goal_restored(future)
            self._request_result(future)

    def close(self) -> None:
        """Stop tracking all goals."""
        self._goals.clear()
