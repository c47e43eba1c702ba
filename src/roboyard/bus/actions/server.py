"""The serving end of an action."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import numpy as np

from roboyard.bus.actions.status import PREEMPTED, GoalStatus, check_action, endpoint
from roboyard.bus.futures import Future
from roboyard.errors import MessageError, RunError
from roboyard.messages import deserialize, message_type, serialize, service_type, time_to_msg, type_name

if TYPE_CHECKING:
    from roboyard.bus.node import Node

_MAX_STORED_GOALS = 64


class GoalHandle:
    """One goal as its server sees it.

    Attributes:
        goal: The goal message.
        id: Its 16 bytes.
        status: Where it stands.
        error_message: Why it was rejected, aborted or cancelled, if somebody said.
        error_code: The same in one word, for programs.
        on_cancel: Called when a cancel request comes; without it, the server looks at ``is_cancel_requested`` itself.
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
        """Accepted and not ended."""
        return self.status in (GoalStatus.ACCEPTED, GoalStatus.EXECUTING, GoalStatus.CANCELING)

    @property
    def is_cancel_requested(self) -> bool:
        """A cancel request waits to be obeyed."""
        return self.status is GoalStatus.CANCELING

    def accept(self) -> None:
        """Take the goal on.

        Raises:
            RunError: it was decided already.
        """
        if self.status is not GoalStatus.UNKNOWN or self.error_message:
            raise RunError("the goal was decided already")
        self._server.accept(self)

    def reject(self, error_message: str, error_code: str = "") -> None:
        """Refuse the goal, saying why."""
        if self.status is not GoalStatus.UNKNOWN:
            raise RunError("the goal was decided already")
        self.error_message, self.error_code = error_message or "no reason given", error_code

    def publish_feedback(self, feedback: Any) -> None:
        """Tell the client how it goes; ignored once the goal has ended."""
        if self.is_active:
            self._server.send_feedback(self, feedback)

    def succeed(self, result: Any) -> None:
        """End: done."""
        self._server.end_goal(self, GoalStatus.SUCCEEDED, result, "")

    def abort(self, result: Any | None = None, error_message: str = "", error_code: str = "") -> None:
        """End: could not be done."""
        self._server.end_goal(self, GoalStatus.ABORTED, result, error_message, error_code)

    def set_canceled(self, result: Any | None = None, error_message: str = "") -> None:
        """End: stopped because the client (or a newer goal) wanted so."""
        self._server.end_goal(self, GoalStatus.CANCELED, result, error_message)


OnGoal = Callable[[GoalHandle], None]


class ActionServer:
    """Takes goals, sends feedback and results; made by ``Node.action_server``."""

    def __init__(
        self,
        node: Node,
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
        reason_type = message_type("roboyard_msgs/msg/GoalReason")
        cancel_type = service_type("action_msgs/srv/CancelGoal")
        self._feedback_publisher = node.publisher(endpoint(self.name, "feedback"), action_type.FeedbackMessage)
        self._status_publisher = node.publisher(endpoint(self.name, "status"), array_type, latched=True)
        self._error_publisher = node.publisher(endpoint(self.name, "reason"), reason_type)
        self._cancel_response = cancel_type.Response
        node.service(endpoint(self.name, "send_goal"), action_type.SendGoal, self._on_send_goal)
        node.service(endpoint(self.name, "cancel_goal"), cancel_type, self._on_cancel_goal)
        node.service(endpoint(self.name, "get_result"), action_type.GetResult, self._on_get_result)

    @property
    def active_goals(self) -> tuple[GoalHandle, ...]:
        """Goals accepted and not ended, oldest first."""
        return tuple(goal for goal in self.goals.values() if goal.is_active)

    @property
    def unrestorable_goal_count(self) -> int:
        """How many goals are active that nobody takes up again when a state is loaded."""
        return 0 if self._on_goal_restored is not None else len(self.active_goals)

    # -- requests --------------------------------------------------------------------------------------------------
    def _on_send_goal(self, request: Any) -> Any:
        goal_id = bytes(request.goal_id.uuid)
        handle = GoalHandle(self, request.goal, goal_id, self.node.now_ns)
        if goal_id in self.goals:
            handle.reject("a goal of this id exists")
        else:
            self._on_goal(handle)
        accepted = handle.status is not GoalStatus.UNKNOWN
        if not accepted:
            handle.error_message = handle.error_message or "the server did not take it"
            self._publish_error(handle)
            self.node.log.warn(f"goal for {self.name} rejected: {handle.error_message}")
        return self.type.SendGoal.Response(accepted=accepted, stamp=time_to_msg(handle.accepted_ns))

    def _on_cancel_goal(self, request: Any) -> Any:
        """Cancel one goal, or all goals up to a time, or all, as action_msgs/CancelGoal defines."""
        goal_id, until_ns = bytes(request.goal_info.goal_id.uuid), _nanoseconds(request.goal_info.stamp)
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
        goal = self.goals.get(bytes(request.goal_id.uuid))
        if goal is None:
            return self.type.GetResult.Response(status=int(GoalStatus.UNKNOWN))
        return goal.result_future

    # -- what handles do -------------------------------------------------------------------------------------------
    def accept(self, handle: GoalHandle) -> None:
        """Take a goal on, aborting older ones if the server preempts."""
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
        self._feedback_publisher.publish(self.type.FeedbackMessage(goal_id=_uuid_message(handle.id), feedback=feedback))

    def end_goal(
        self, handle: GoalHandle, status: GoalStatus, result: Any | None, error_message: str, error_code: str = ""
    ) -> None:
        """End a goal; a second end is ignored, since a preempted goal's worker may not know yet."""
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

    # -- state -----------------------------------------------------------------------------------------------------
    def save_state(self) -> list[tuple[Any, ...]]:
        """All goals that are remembered, as plain data, with the results of those that have ended."""
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
        """Counterpart of `save`: ``on_goal_restored`` takes up the goals that are under way."""
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
                goal_id=_uuid_message(handle.id), reason=handle.error_message, cause=handle.error_code
            )
        )

    def _publish_status(self) -> None:
        message = self._status_publisher.topic.type()
        for goal in self.goals.values():
            message.status_list.append(self._status_type(goal_info=self._goal_info(goal), status=int(goal.status)))
        self._status_publisher.publish(message)

    def _goal_info(self, goal: GoalHandle) -> Any:
        info_type = message_type("action_msgs/msg/GoalInfo")
        return info_type(goal_id=_uuid_message(goal.id), stamp=time_to_msg(goal.accepted_ns))

    def close(self) -> None:
        """Abort what runs; its topics and services close with the node."""
        aborted_goals = self.active_goals
        for goal in aborted_goals:
            goal.status, goal.error_message = GoalStatus.ABORTED, "its server went away"
        if aborted_goals and not self.node.bus.is_closing:  # whoever follows the topics would wait for ever
            for goal in aborted_goals:
                self._publish_error(goal)
            self._publish_status()
        for goal in aborted_goals:
            goal.result_future.set_error(RunError(f"the server of {self.name} went away"))


def _serialized_result(goal: GoalHandle) -> bytes | None:
    return (
        serialize(goal.result_future.result) if goal.result_future.done() and goal.result_future.error is None else None
    )


def _uuid_message(goal_id: bytes) -> Any:
    return message_type("unique_identifier_msgs/msg/UUID")(uuid=np.frombuffer(goal_id, dtype=np.uint8))


def _nanoseconds(time: Any) -> int:
    return int(time.sec) * 1_000_000_000 + int(time.nanosec)
