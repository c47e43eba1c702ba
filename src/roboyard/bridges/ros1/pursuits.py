"""Actions of ROS 1 that nodes of ours use: /goal and /cancel go out, /status, /feedback and /result come in."""

from __future__ import annotations

import asyncio
import struct
from dataclasses import dataclass
from typing import Any, Final

from roboyard.bridges.gateway import Gateway
from roboyard.bridges.loop import Loop
from roboyard.bridges.ros1.calls import LOOK, SOURCE
from roboyard.bridges.ros1.channels import Incoming, Outgoing
from roboyard.bridges.ros1.log import header, text
from roboyard.bridges.ros1.types import Ros1Action, ros1_type
from roboyard.bus.actions import endpoint
from roboyard.errors import InputError, MessageError
from roboyard.messages import ActionType, deserialize, message_type, serialize, service_type, time_to_msg
from roboyard.messages.convert.action_goals import GoalStatus, uuid_from_msg, uuid_to_msg

_STATUS: Final = {
    1: GoalStatus.EXECUTING, 2: GoalStatus.CANCELED, 3: GoalStatus.SUCCEEDED, 4: GoalStatus.ABORTED,
    5: GoalStatus.ABORTED, 6: GoalStatus.CANCELING, 7: GoalStatus.CANCELING, 8: GoalStatus.CANCELED,
    9: GoalStatus.ABORTED,
}  # fmt: skip
"""actionlib_msgs/GoalStatus to action_msgs/GoalStatus; PENDING is not decided yet."""
_REJECTED: Final = 5
_SILENT: Final = 5.0
"""So long without a word on how its goals stand, a server has gone [wall s]; actionlib speaks five times a second."""
_CANCEL: Final = "action_msgs/srv/CancelGoal"


@dataclass(slots=True)
class _Goal:
    """A goal of ours: the calls that wait for its acceptance and its result, and where it stands."""

    uuid: bytes
    asked: int = 0
    wanted: int = 0
    status: int = 0
    text: str = ""
    result: bytes | None = None


class SoughtAction:
    """One action.

    Args:
        name: Its name.
        action: Its type.
        kind: Its types in ROS 1.
        node: The node of ours that asks.
        loop: Where its connections live.
        gateway: The bus.

    Attributes:
        topics: What it publishes.
        heard: What it listens to besides the status: feedback and result.
    """

    def __init__(
        self, name: str, action: ActionType, kind: Ros1Action, node: str, loop: Loop, gateway: Gateway
    ) -> None:
        self.name = name
        self.kind = kind
        self._node = node
        self._action = action
        self._loop = loop
        self._gateway = gateway
        self._goal = Outgoing(f"{name}/goal", kind.goal, latched=False)
        self._cancel = Outgoing(f"{name}/cancel", ros1_type("actionlib_msgs/msg/GoalID"), latched=False)
        self.topics = (self._goal, self._cancel)
        self.heard: tuple[Incoming, ...] = ()
        self._goals: dict[str, _Goal] = {}
        self._server = SOURCE
        self._heard = -_SILENT
        self._task: asyncio.Task[Any] | None = None

    def open(self) -> None:
        """Begin; on the loop's thread."""
        self._task = self._loop.begin(self._watch())

    def close(self) -> None:
        """End; on the loop's thread."""
        if self._task is not None:
            self._task.cancel()

    # -- what our nodes ask, on the loop's thread ------------------------------------------------------------------
    def ask(self, service: str, number: int, request: bytes, until_ns: int) -> None:
        """Take a call of one of the action's services to the other side; as `calls.Asked.ask`."""
        action = self._action
        if service == endpoint(self.name, "send_goal"):
            self._loop.begin(self._send(number, deserialize(request, f"{action.SendGoal.name}_Request"), until_ns))
        elif service == endpoint(self.name, "get_result"):
            self._want(number, uuid_from_msg(deserialize(request, f"{action.GetResult.name}_Request").goal_id))
        else:
            self._stop(number, deserialize(request, f"{_CANCEL}_Request"))

    async def _send(self, number: int, request: Any, until_ns: int) -> None:
        uuid = uuid_from_msg(request.goal_id)
        while not self._ready:
            if self._gateway.bus.now_ns > until_ns:
                return
            await asyncio.sleep(LOOK)
        now = time_to_msg(self._gateway.bus.now_ns)
        try:
            part = self.kind.goal_part.encode(request.goal)
        except MessageError as error:
            self._gateway.answer(number, SOURCE, error=str(error))
            return
        self._gateway.count("asked")
        self._goals[uuid.hex()] = _Goal(uuid, asked=number)
        self._goal.send(self._node, header(now) + struct.pack("<II", now.sec, now.nanosec) + text(uuid.hex()) + part)

    def _want(self, number: int, uuid: bytes) -> None:
        goal = self._goals.get(uuid.hex())
        if goal is None:
            self._gateway.answer(number, SOURCE, serialize(self._action.GetResult.Response()))
            return
        goal.wanted = number
        self._settle(goal)

    def _stop(self, number: int, request: Any) -> None:
        info = request.goal_info
        wanted = uuid_from_msg(info.goal_id)
        identity = wanted.hex() if any(wanted) else ""
        self._cancel.send(self._node, struct.pack("<II", info.stamp.sec, info.stamp.nanosec) + text(identity))
        response = service_type(_CANCEL).Response()
        if identity in self._goals:
            response.goals_canceling.append(info)
        self._gateway.answer(number, self._server, serialize(response))

    # -- what comes back, on the loop's thread ---------------------------------------------------------------------
    def take_status(self, data: bytes, source: str, latched: bool) -> None:
        """How all goals stand. Raises MessageError."""
        kind = "actionlib_msgs/msg/GoalStatusArray"
        found = deserialize(ros1_type(kind).decode(data), kind)
        self._server, self._heard = source, self._loop.asyncio.time()
        for item in found.status_list:
            self._stands(item.goal_id.id, int(item.status), item.text)

    def take_feedback(self, data: bytes, source: str, latched: bool) -> None:
        """How a goal goes. Raises MessageError."""
        identity, _, _, rest = _split(data)
        goal = self._goals.get(identity)
        if goal is None:
            return
        action = self._action
        feedback = deserialize(self.kind.feedback_part.decode(rest), f"{action.name}_Feedback")
        message = action.FeedbackMessage(goal_id=uuid_to_msg(goal.uuid), feedback=feedback)
        kind = f"{action.name}_FeedbackMessage"
        self._gateway.publish(endpoint(self.name, "feedback"), kind, source, serialize(message))

    def take_result(self, data: bytes, source: str, latched: bool) -> None:
        """What came of a goal. Raises MessageError."""
        identity, status, why, rest = _split(data)
        goal = self._goals.get(identity)
        if goal is None:
            return
        goal.result = self.kind.result_part.decode(rest)
        self._server = source
        self._stands(identity, status, why)

    def _stands(self, identity: str, status: int, why: str) -> None:
        goal = self._goals.get(identity)
        if goal is not None:
            goal.status, goal.text = status, why
            self._settle(goal)

    def _settle(self, goal: _Goal) -> None:
        """Answer what can be answered now."""
        status = _STATUS.get(goal.status)
        if status is None:
            return
        action, refused = self._action, goal.status == _REJECTED
        if goal.asked:
            if refused:
                self._tell_why(goal)
            accepted = action.SendGoal.Response(accepted=not refused, stamp=time_to_msg(self._gateway.bus.now_ns))
            self._gateway.answer(goal.asked, self._server, serialize(accepted))
            goal.asked = 0
        if refused:
            self._goals.pop(goal.uuid.hex(), None)
        elif goal.wanted and goal.result is not None:
            self._tell_why(goal)
            result = deserialize(goal.result, f"{action.name}_Result")
            response = action.GetResult.Response(status=int(status), result=result)
            self._gateway.answer(goal.wanted, self._server, serialize(response))
            self._goals.pop(goal.uuid.hex(), None)

    def _tell_why(self, goal: _Goal) -> None:
        """ROS 1's goals end with a sentence, ours too."""
        if goal.text:
            kind = "roboyard_msgs/msg/GoalError"
            message = message_type(kind)(goal_id=uuid_to_msg(goal.uuid), error_message=goal.text[:500])
            try:
                self._gateway.publish(endpoint(self.name, "error"), kind, self._server, serialize(message))
            except InputError as error:
                self._gateway.complain("refused", f"{self.name}: {error}")

    @property
    def _ready(self) -> bool:
        """Whether nothing that the server says of a goal could be missed, nor our taking it back; as actionlib's
        ``waitForServer`` asks: the five topics connect one after the other."""
        hears = self._goal.outlets and self._cancel.outlets
        return bool(hears) and self._there and all(self._server in topic.sources.values() for topic in self.heard)

    @property
    def _there(self) -> bool:
        return self._loop.asyncio.time() - self._heard < _SILENT

    async def _watch(self) -> None:
        """Let go of goals whose server has gone."""
        while True:
            await asyncio.sleep(LOOK)
            if self._goals and not self._there:
                for goal in self._goals.values():
                    for number in (goal.asked, goal.wanted):
                        if number:
                            self._gateway.answer(number, SOURCE, error="who served it has gone before the answer came")
                self._goals.clear()


def _split(data: bytes) -> tuple[str, int, str, bytes]:
    """Id, status and text of a goal, and what stands behind them.

    Raises:
        MessageError: there is no goal in these bytes.
    """
    try:
        at = 16 + struct.unpack_from("<I", data, 12)[0] + 8
        identity, at = _text(data, at)
        status = data[at]
        why, at = _text(data, at + 1)
    except (struct.error, IndexError) as error:
        raise MessageError(f"{len(data)} bytes hold no status of a goal") from error
    return identity, status, why, data[at:]


def _text(data: bytes, at: int) -> tuple[str, int]:
    (length,) = struct.unpack_from("<I", data, at)
    end = at + 4 + length
    if end > len(data):
        raise IndexError(end)
    return data[at + 4 : end].decode("utf-8", "replace"), end
