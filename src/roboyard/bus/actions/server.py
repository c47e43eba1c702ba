"""The serving end of an action."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import numpy as np

from roboyard.bus.actions.status import PREEMPTED, Status, check_action, endpoint
from roboyard.bus.futures import Future
from roboyard.errors import MessageError, RunError
from roboyard.messages import deserialize, message_type, serialize, service_type, stamp, type_name

if TYPE_CHECKING:
    from roboyard.bus.node import Node

_KEEP_RESULTS = 64


class GoalHandle:
    """One goal as its server sees it.

    Attributes:
        goal: The goal message.
        id: Its 16 bytes.
        status: Where it stands.
        reason: Why it was rejected, aborted or cancelled, if somebody said.
        cause: The same in one word, for programs.
        on_cancel: Called when a cancel request comes; without it, the server looks at ``canceling`` itself.
    """

    def __init__(self, server: ActionServer, goal: Any, goal_id: bytes, time_ns: int) -> None:
        self._server = server
        self.goal = goal
        self.id = goal_id
        self.accepted_ns = time_ns
        self.status = Status.UNKNOWN
        self.reason = self.cause = ""
        self.on_cancel: Callable[[GoalHandle], None] | None = None
        self.ended = Future("goal")

    @property
    def active(self) -> bool:
        """Accepted and not ended."""
        return self.status in (Status.ACCEPTED, Status.EXECUTING, Status.CANCELING)

    @property
    def canceling(self) -> bool:
        """A cancel request waits to be obeyed."""
        return self.status is Status.CANCELING

    def accept(self) -> None:
        """Take the goal on.

        Raises:
            RunError: it was decided already.
        """
        if self.status is not Status.UNKNOWN or self.reason:
            raise RunError("the goal was decided already")
        self._server.accept(self)

    def reject(self, reason: str, cause: str = "") -> None:
        """Refuse the goal, saying why."""
        if self.status is not Status.UNKNOWN:
            raise RunError("the goal was decided already")
        self.reason, self.cause = reason or "no reason given", cause

    def feedback(self, feedback: Any) -> None:
        """Tell the client how it goes; ignored once the goal has ended."""
        if self.active:
            self._server.send_feedback(self, feedback)

    def succeed(self, result: Any) -> None:
        """End: done."""
        self._server.end(self, Status.SUCCEEDED, result, "")

    def abort(self, result: Any | None = None, reason: str = "", cause: str = "") -> None:
        """End: could not be done."""
        self._server.end(self, Status.ABORTED, result, reason, cause)

    def cancel(self, result: Any | None = None, reason: str = "") -> None:
        """End: stopped because the client (or a newer goal) wanted so."""
        self._server.end(self, Status.CANCELED, result, reason)


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
        on_restored: OnGoal | None = None,
    ) -> None:
        check_action(action_type, node.full_name)
        self.node = node
        self.type = action_type
        self.name = node.resolve(name)
        self._on_goal = on_goal
        self._preempt = preempt
        self._on_restored = on_restored
        self.goals: dict[bytes, GoalHandle] = {}
        self._status_type = message_type("action_msgs/msg/GoalStatus")
        array_type = message_type("action_msgs/msg/GoalStatusArray")
        reason_type = message_type("roboyard_msgs/msg/GoalReason")
        cancel_type = service_type("action_msgs/srv/CancelGoal")
        self._feedback = node.publisher(endpoint(self.name, "feedback"), action_type.FeedbackMessage)
        self._status = node.publisher(endpoint(self.name, "status"), array_type, latched=True)
        self._reason = node.publisher(endpoint(self.name, "reason"), reason_type)
        self._cancel_response = cancel_type.Response
        node.service(endpoint(self.name, "send_goal"), action_type.SendGoal, self._on_send_goal)
        node.service(endpoint(self.name, "cancel_goal"), cancel_type, self._on_cancel_goal)
        node.service(endpoint(self.name, "get_result"), action_type.GetResult, self._on_get_result)

    @property
    def active(self) -> tuple[GoalHandle, ...]:
        """Goals accepted and not ended, oldest first."""
        return tuple(goal for goal in self.goals.values() if goal.active)

    @property
    def goals_open(self) -> int:
        """How many goals are active that nobody takes up again when a state is loaded."""
        return 0 if self._on_restored is not None else len(self.active)

    # -- requests --------------------------------------------------------------------------------------------------
    def _on_send_goal(self, request: Any) -> Any:
        goal_id = bytes(request.goal_id.uuid)
        handle = GoalHandle(self, request.goal, goal_id, self.node.now_ns)
        if goal_id in self.goals:
            handle.reject("a goal of this id exists")
        else:
            self._on_goal(handle)
        accepted = handle.status is not Status.UNKNOWN
        if not accepted:
            handle.reason = handle.reason or "the server did not take it"
            self._say_reason(handle)
            self.node.log.warn(f"goal for {self.name} rejected: {handle.reason}")
        return self.type.SendGoal.Response(accepted=accepted, stamp=stamp(handle.accepted_ns))

    def _on_cancel_goal(self, request: Any) -> Any:
        """Cancel one goal, or all goals up to a time, or all, as action_msgs/CancelGoal defines."""
        wanted, until_ns = bytes(request.goal_info.goal_id.uuid), _nanoseconds(request.goal_info.stamp)
        response = self._cancel_response()
        chosen = [
            goal
            for goal in self.goals.values()
            if goal.active and (goal.id == wanted if any(wanted) else (until_ns == 0 or goal.accepted_ns <= until_ns))
        ]
        if any(wanted) and not chosen:
            response.return_code = 3 if wanted in self.goals else 2  # ERROR_GOAL_TERMINATED, ERROR_UNKNOWN_GOAL_ID
        for goal in chosen:
            goal.status = Status.CANCELING
            response.goals_canceling.append(self._info(goal))
        self._publish_status()
        for goal in chosen:
            if goal.on_cancel:
                goal.on_cancel(goal)
        return response

    def _on_get_result(self, request: Any) -> Any:
        goal = self.goals.get(bytes(request.goal_id.uuid))
        if goal is None:
            return self.type.GetResult.Response(status=int(Status.UNKNOWN))
        return goal.ended

    # -- what handles do -------------------------------------------------------------------------------------------
    def accept(self, handle: GoalHandle) -> None:
        """Take a goal on, aborting older ones if the server preempts."""
        if self._preempt:
            for older in self.active:
                self.end(older, Status.ABORTED, None, "preempted by a newer goal", PREEMPTED)
        handle.status = Status.EXECUTING
        self.goals[handle.id] = handle
        while len(self.goals) > _KEEP_RESULTS and not next(iter(self.goals.values())).active:
            self.goals.pop(next(iter(self.goals)))
        self._publish_status()

    def send_feedback(self, handle: GoalHandle, feedback: Any) -> None:
        """Publish feedback of a goal."""
        if feedback.__class__ is not self.type.Feedback:
            raise MessageError(f"{type(feedback).__name__} is not feedback of {self.type.name}")
        self._feedback.publish(self.type.FeedbackMessage(goal_id=_uuid(handle.id), feedback=feedback))

    def end(self, handle: GoalHandle, status: Status, result: Any | None, reason: str, cause: str = "") -> None:
        """End a goal; a second end is ignored, since a preempted goal's worker may not know yet."""
        if not handle.active:
            return
        if result is not None and result.__class__ is not self.type.Result:
            raise MessageError(f"{type(result).__name__} is not a result of {self.type.name}")
        handle.status, handle.reason, handle.cause = status, reason, cause
        if reason:
            self._say_reason(handle)
        self._publish_status()
        response = self.type.GetResult.Response(status=int(status))
        if result is not None:
            response.result = result
        handle.ended.resolve(response)

    # -- state -----------------------------------------------------------------------------------------------------
    def save(self) -> list[tuple[Any, ...]]:
        """All goals that are remembered, as plain data, with the results of those that have ended."""
        return [
            (goal.id, serialize(goal.goal), goal.accepted_ns, int(goal.status), goal.reason, _result_of(goal))
            for goal in self.goals.values()
        ]

    def load(self, saved: list[tuple[Any, ...]]) -> None:
        """Counterpart of `save`: ``on_restored`` takes up the goals that are under way."""
        self.goals.clear()
        for goal_id, data, accepted_ns, status, reason, result in saved:
            goal = GoalHandle(self, deserialize(data, type_name(self.type.Goal)), goal_id, accepted_ns)
            goal.status, goal.reason = Status(status), reason
            self.goals[goal_id] = goal
            if result is not None:
                goal.ended.resolve(deserialize(result, type_name(self.type.GetResult.Response)))
            elif goal.active and self._on_restored is not None:
                self._on_restored(goal)

    def _say_reason(self, handle: GoalHandle) -> None:
        self._reason.publish(
            self._reason.topic.type(goal_id=_uuid(handle.id), reason=handle.reason, cause=handle.cause)
        )

    def _publish_status(self) -> None:
        message = self._status.topic.type()
        for goal in self.goals.values():
            message.status_list.append(self._status_type(goal_info=self._info(goal), status=int(goal.status)))
        self._status.publish(message)

    def _info(self, goal: GoalHandle) -> Any:
        info_type = message_type("action_msgs/msg/GoalInfo")
        return info_type(goal_id=_uuid(goal.id), stamp=stamp(goal.accepted_ns))

    def close(self) -> None:
        """Abort what runs; its topics and services close with the node."""
        ended = self.active
        for goal in ended:
            goal.status, goal.reason = Status.ABORTED, "its server went away"
        if ended and not self.node.bus.closing:  # whoever follows the topics would wait for ever
            for goal in ended:
                self._say_reason(goal)
            self._publish_status()
        for goal in ended:
            goal.ended.fail(RunError(f"the server of {self.name} went away"))


def _result_of(goal: GoalHandle) -> bytes | None:
    return serialize(goal.ended.result) if goal.ended.done() and goal.ended.error is None else None


def _uuid(goal_id: bytes) -> Any:
    return message_type("unique_identifier_msgs/msg/UUID")(uuid=np.frombuffer(goal_id, dtype=np.uint8))


def _nanoseconds(time: Any) -> int:
    return int(time.sec) * 1_000_000_000 + int(time.nanosec)
