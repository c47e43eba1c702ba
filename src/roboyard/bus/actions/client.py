"""The asking end of an action."""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import numpy as np

from roboyard.bus.actions.status import Status, check_action, endpoint
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
        reason: Why it was rejected, aborted or cancelled, if the server said.
        cause: The same in one word, for programs, if the server gave one.
    """

    __slots__ = ("_client", "_feedback", "accepted", "cause", "id", "reason", "status")

    def __init__(self, client: ActionClient, goal_id: bytes, feedback: Callable[[Any], None] | None) -> None:
        super().__init__(f"result of {client.name}")
        self._client = client
        self._feedback = feedback
        self.id = goal_id
        self.accepted: bool | None = None
        self.status = Status.UNKNOWN
        self.reason = self.cause = ""

    def on_feedback(self, callback: Callable[[Any], None]) -> None:
        """Have ``callback`` called with each feedback message from now on, in place of another one."""
        self._feedback = callback

    @property
    def action(self) -> str:
        """The action's full name."""
        return self._client.name

    @property
    def succeeded(self) -> bool:
        """Done, and the server says it reached the goal."""
        return self.status is Status.SUCCEEDED

    def cancel(self) -> Future:
        """Ask the server to stop; the goal is done when it has."""
        return self._client.cancel(self)


OnFuture = Callable[[GoalFuture], None]


class ActionClient:
    """Sends goals and follows them; made by ``Node.action_client``."""

    def __init__(self, node: Node, name: str, action_type: Any, *, on_restored: OnFuture | None = None) -> None:
        check_action(action_type, node.full_name)
        self.type = action_type
        self.name = node.resolve(name)
        self._owner = node.full_name
        self._session = node.bus.session
        self._born_ns = node.now_ns
        self._sent = 0
        self._on_restored = on_restored
        self._goals: dict[bytes, GoalFuture] = {}
        self._uuid = message_type("unique_identifier_msgs/msg/UUID")
        self._cancel_type = service_type("action_msgs/srv/CancelGoal")
        self._info = message_type("action_msgs/msg/GoalInfo")
        self._send = node.service_client(endpoint(self.name, "send_goal"), action_type.SendGoal)
        self._cancel = node.service_client(endpoint(self.name, "cancel_goal"), self._cancel_type)
        self._result = node.service_client(endpoint(self.name, "get_result"), action_type.GetResult)
        node.subscribe(endpoint(self.name, "feedback"), action_type.FeedbackMessage, self._on_feedback)
        reason_type = message_type("roboyard_msgs/msg/GoalReason")
        node.subscribe(endpoint(self.name, "reason"), reason_type, self._on_reason)

    def available(self) -> bool:
        """Whether some node serves this action now."""
        return self._send.available()

    def send(self, goal: Any, feedback: Callable[[Any], None] | None = None) -> GoalFuture:
        """Send ``goal``.

        Args:
            goal: The action's goal message.
            feedback: Called with each feedback message.

        Returns:
            Future of the result; it fails with GoalRejectedError when the server refuses, UnknownNameError when there
            is no server.

        Raises:
            MessageError: ``goal`` is not this action's goal.
        """
        if goal.__class__ is not self.type.Goal:
            raise MessageError(
                f"action {self.name} takes a goal of {self.type.name}, not {type(goal).__name__}",
                where=f"node {self._owner}",
            )
        self._sent += 1  # ids must repeat from run to run and differ between clients, also of a node started anew
        identity = f"{self._session}{self._owner} {self.name} {self._born_ns} {self._sent}"
        digest = hashlib.sha256(identity.encode()).digest()[:16]
        future = GoalFuture(self, digest, feedback)
        self._goals[digest] = future
        request = self.type.SendGoal.Request(goal_id=self._goal_id(digest), goal=goal)
        self._send.call(request).then(lambda answer: self._on_answer(future, answer))
        return future

    def cancel(self, goal: GoalFuture) -> Future:
        """Ask for ``goal`` to be stopped."""
        info = self._info(goal_id=self._goal_id(goal.id))
        return self._cancel.call(self._cancel_type.Request(goal_info=info))

    def _on_answer(self, future: GoalFuture, answer: Future) -> None:
        if self._goals.get(future.id) is not future:
            return  # the node has left meanwhile
        if answer.error is not None:
            self._forget(future)
            future.fail(answer.error)
            return
        future.accepted = bool(answer.result.accepted)
        if not future.accepted:
            self._forget(future)
            future.fail(GoalRejectedError(f"goal rejected: {future.reason or 'no reason given'}", where=self.name))
            return
        if future.status is Status.UNKNOWN:
            future.status = Status.EXECUTING
        self._follow(future)

    def _follow(self, future: GoalFuture) -> None:
        request = self.type.GetResult.Request(goal_id=self._goal_id(future.id))
        self._result.call(request).then(lambda result: self._on_result(future, result))

    def _on_result(self, future: GoalFuture, answer: Future) -> None:
        if self._goals.get(future.id) is not future:
            return
        self._forget(future)
        if answer.error is not None:
            future.status = Status.ABORTED
            future.fail(answer.error)
            return
        future.status = Status(answer.result.status)
        future.resolve(answer.result.result)

    def _on_feedback(self, message: Any) -> None:
        goal = self._goals.get(bytes(message.goal_id.uuid))
        if goal is not None and goal._feedback is not None:
            goal._feedback(message.feedback)

    def _on_reason(self, message: Any) -> None:
        goal = self._goals.get(bytes(message.goal_id.uuid))
        if goal is not None:
            goal.reason, goal.cause = message.reason, message.cause

    def _forget(self, future: GoalFuture) -> None:
        self._goals.pop(future.id, None)

    def _goal_id(self, digest: bytes) -> Any:
        return self._uuid(uuid=np.frombuffer(digest, dtype=np.uint8))

    @property
    def goals_open(self) -> int:
        """How many goals were sent and have not ended, and nobody takes them up again when a state is loaded."""
        lost = [goal for goal in self._goals.values() if self._on_restored is None or goal.accepted is None]
        return len(lost)

    def save(self) -> dict[str, Any]:
        """How many goals were sent, since their ids follow from that, and those that are under way; plain data."""
        goals = [(goal.id, int(goal.status), goal.reason) for goal in self._goals.values()]
        return {"born": self._born_ns, "sent": self._sent, "goals": goals}

    def load(self, saved: dict[str, Any]) -> None:
        """Counterpart of `save`: ``on_restored`` gets a future for each goal that is under way."""
        self._born_ns, self._sent = saved["born"], saved["sent"]
        self._goals.clear()
        for goal_id, status, reason in saved["goals"]:
            future = GoalFuture(self, goal_id, None)
            future.accepted, future.status, future.reason = True, Status(status), reason
            self._goals[goal_id] = future
            if self._on_restored is not None:
                self._on_restored(future)
            self._follow(future)

    def close(self) -> None:
        """Follow no goal any more."""
        self._goals.clear()
