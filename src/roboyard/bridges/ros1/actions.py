"""Actions of ours as actionlib has them: /goal and /cancel come in, /status, /feedback and /result go out."""

from __future__ import annotations

import asyncio
import struct
from dataclasses import dataclass
from typing import Any, Final

from roboyard.bridges.asking import ask
from roboyard.bridges.gateway import Gateway
from roboyard.bridges.loop import Loop
from roboyard.bridges.ros1.channels import Outgoing
from roboyard.bridges.ros1.log import header, text
from roboyard.bridges.ros1.types import Ros1Action, ros1_type
from roboyard.bus.actions import PREEMPTED, endpoint
from roboyard.errors import MessageError, RoboyardError
from roboyard.messages import ActionType, serialize, service_type, time_to_msg
from roboyard.messages.convert.action_goals import uuid_from_msg, uuid_of_text, uuid_to_msg

STATUS_PERIOD: Final = 0.2
"""Between two messages of /status, as actionlib does [wall s]."""
_REMEMBERED: Final = 25
"""So many periods an ended goal stays in /status, as actionlib does."""
_PENDING, _ACTIVE, _PREEMPTED, _SUCCEEDED, _ABORTED, _REJECTED, _PREEMPTING = 0, 1, 2, 3, 4, 5, 6
_STATUS: Final = {0: _PENDING, 1: _PENDING, 2: _ACTIVE, 3: _PREEMPTING, 4: _SUCCEEDED, 5: _PREEMPTED, 6: _ABORTED}
"""action_msgs/GoalStatus to actionlib_msgs/GoalStatus."""
_GOALS: Final = 100
_CDR: Final = b"\x00\x01\x00\x00"


@dataclass(slots=True)
class _Goal:
    """A goal of a foreign client: its id there and here, and where it stands."""

    id: str
    stamp: tuple[int, int]
    uuid: bytes
    status: int = _PENDING
    text: str = ""
    cause: str = ""
    left: int = _REMEMBERED

    @property
    def ended(self) -> bool:
        """Nothing more comes of it."""
        return self.status in (_PREEMPTED, _SUCCEEDED, _ABORTED, _REJECTED)

    def goal_id(self) -> bytes:
        """As an ``actionlib_msgs/GoalID``."""
        return struct.pack("<II", *self.stamp) + text(self.id)

    def encode(self) -> bytes:
        """As an ``actionlib_msgs/GoalStatus``."""
        return self.goal_id() + bytes([self.status]) + text(self.text)


class ServedAction:
    """One action.

    Args:
        name: Its name.
        action: Its type.
        kind: Its types in ROS 1.
        node: The node of ours that serves it.
        loop: Where its connections live.
        gateway: The bus.

    Attributes:
        topics: What it publishes.
    """

    def __init__(
        self, name: str, action: ActionType, kind: Ros1Action, node: str, loop: Loop, gateway: Gateway
    ) -> None:
        self.name = name
        self.kind = kind
        self.node = node
        self._action = action
        self._loop = loop
        self._gateway = gateway
        self._goals: dict[bytes, _Goal] = {}
        self._number = 0
        status_type = ros1_type("actionlib_msgs/msg/GoalStatusArray")
        self._status = Outgoing(f"{name}/status", status_type, latched=False)
        self._feedback = Outgoing(f"{name}/feedback", kind.feedback, latched=False)
        self._result = Outgoing(f"{name}/result", kind.result, latched=False)
        self.topics = (self._status, self._feedback, self._result)
        self._task: asyncio.Task[Any] | None = None

    def open(self) -> None:
        """Begin; on the loop's thread."""
        self._gateway.ask(self._listen)
        self._task = self._loop.begin(self._tell())

    def close(self) -> None:
        """End; on the loop's thread."""
        if self._task is not None:
            self._task.cancel()
        self._gateway.ask(self._forget)

    # -- on the executor's thread ----------------------------------------------------------------------------------
    def _listen(self) -> None:
        self._gateway.listen(endpoint(self.name, "feedback"), self._heard_feedback)
        self._gateway.listen(endpoint(self.name, "error"), self._heard_error)
        self._gateway.listen(endpoint(self.name, "status"), self._heard_status)

    def _forget(self) -> None:
        self._gateway.forget(endpoint(self.name, "feedback"), self._heard_feedback)
        self._gateway.forget(endpoint(self.name, "error"), self._heard_error)
        self._gateway.forget(endpoint(self.name, "status"), self._heard_status)

    def _heard_feedback(self, message: Any, node: str, time_ns: int) -> None:
        goal = self._goals.get(uuid_from_msg(message.goal_id))
        if goal is not None:
            self._loop.post(lambda: self._send_feedback(goal, message.feedback))

    def _heard_error(self, message: Any, node: str, time_ns: int) -> None:
        goal = self._goals.get(uuid_from_msg(message.goal_id))
        if goal is not None:
            goal.text, goal.cause = message.error_message, message.error_code

    def _heard_status(self, message: Any, node: str, time_ns: int) -> None:
        seen = {uuid_from_msg(item.goal_info.goal_id): int(item.status) for item in message.status_list}
        self._loop.post(lambda: self._standing(seen))

    # -- on the loop's thread --------------------------------------------------------------------------------------
    def take_goal(self, data: bytes, source: str, latched: bool) -> None:
        """A goal has come. Raises MessageError."""
        identity, when, rest = _split(data)
        self._number += 1
        name = identity or f"{source}-{self._number}"
        uuid = uuid_of_text(name)
        if uuid in self._goals:
            raise MessageError(f"a goal of the id {name[:80]} is known already", location=self.name)
        while len(self._goals) >= _GOALS:
            oldest = next((key for key, goal in self._goals.items() if goal.ended), None)
            if oldest is None:
                raise MessageError(f"{_GOALS} goals wait already", location=self.name)
            del self._goals[oldest]
        inner = self.kind.goal_part.decode(rest)
        goal = self._goals[uuid] = _Goal(name, when, uuid)
        self._loop.begin(self._pursue(goal, inner, source))

    def take_cancel(self, data: bytes, source: str, latched: bool) -> None:
        """Goals shall end: one by its id, those up to a time, or all. Raises MessageError."""
        identity, when, _ = _split(data, header=False)
        request = service_type("action_msgs/srv/CancelGoal").Request()
        if identity:
            uuid = uuid_of_text(identity)
            request.goal_info.goal_id = uuid_to_msg(uuid)
        elif any(when):
            request.goal_info.stamp = time_to_msg(when[0] * 1_000_000_000 + when[1])
        self._loop.begin(self._cancel(serialize(request), source))

    async def _cancel(self, request: bytes, source: str) -> None:
        try:
            target = endpoint(self.name, "cancel_goal")
            await ask(self._gateway, self._loop, target, "action_msgs/srv/CancelGoal", source, request)
        except RoboyardError as error:
            self._gateway.complain("refused", f"{self.name}: cancelling: {error}")

    async def _pursue(self, goal: _Goal, inner: bytes, source: str) -> None:
        """Hand a goal in, wait for its end, and tell."""
        action, result = self._action, self.kind.result_part.encode(self._action.Result())
        try:
            data = _CDR + goal.uuid + inner[4:]  # 16 bytes keep what follows aligned
            answer: Any = await ask(
                self._gateway, self._loop, endpoint(self.name, "send_goal"), action.SendGoal.name, source, data
            )
            if answer.accepted:
                goal.status = _ACTIVE
                self._send_status()
                request = serialize(action.GetResult.Request(goal_id=uuid_to_msg(goal.uuid)))
                ended: Any = await ask(
                    self._gateway, self._loop, endpoint(self.name, "get_result"), action.GetResult.name, source, request
                )
                goal.status = _PREEMPTED if goal.cause == PREEMPTED else _STATUS.get(int(ended.status), _ABORTED)
                result = self.kind.result_part.encode(ended.result)
            else:
                goal.status = _REJECTED
        except RoboyardError as error:
            goal.status, goal.text = _ABORTED, str(error)
        self._send_status()
        self._result.send(self.node, self._head() + goal.encode() + result)

    def _standing(self, seen: dict[bytes, int]) -> None:
        for uuid, status in seen.items():
            goal = self._goals.get(uuid)
            if goal is not None and not goal.ended and _STATUS.get(status) == _PREEMPTING:
                goal.status = _PREEMPTING

    async def _tell(self) -> None:
        """Say again and again how all goals stand."""
        while True:
            self._send_status()
            for uuid, goal in list(self._goals.items()):
                goal.left -= goal.ended
                if goal.left <= 0:
                    del self._goals[uuid]
            await asyncio.sleep(STATUS_PERIOD)

    def _send_status(self) -> None:
        goals = b"".join(goal.encode() for goal in self._goals.values())
        self._status.send(self.node, self._head() + struct.pack("<I", len(self._goals)) + goals)

    def _send_feedback(self, goal: _Goal, feedback: Any) -> None:
        try:
            part = self.kind.feedback_part.encode(feedback)
        except MessageError as error:
            self._gateway.complain("not sent", f"{self.name}/feedback: {error}")
            return
        self._feedback.send(self.node, self._head() + goal.encode() + part)

    def _head(self) -> bytes:
        return header(time_to_msg(self._gateway.bus.now_ns))


def _split(data: bytes, *, header: bool = True) -> tuple[str, tuple[int, int], bytes]:
    """Id and stamp of a goal, and what stands behind them.

    Raises:
        MessageError: there is no goal in these bytes.
    """
    try:
        position = 0
        if header:
            position = 16 + struct.unpack_from("<I", data, 12)[0]
        seconds, nanoseconds, length = struct.unpack_from("<III", data, position)
        position += 12
        name = data[position : position + length]
        if len(name) != length:
            raise MessageError(f"{len(data)} bytes hold no goal")
        return name.decode("utf-8", "replace"), (seconds, nanoseconds), data[position + length :]
    except struct.error as error:
        raise MessageError(f"{len(data)} bytes hold no goal") from error
