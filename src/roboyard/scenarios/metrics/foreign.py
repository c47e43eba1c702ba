"""Goals for a navigator that was left out, told as ours would tell them, from what was asked outside and answered."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final

from roboyard.bus import GoalStatus
from roboyard.bus.external_inputs import EXTERNAL_REQUEST_TOPIC, EXTERNAL_RESPONSE_TOPIC
from roboyard.errors import MessageError
from roboyard.messages import deserialize, message_type, to_nanoseconds
from roboyard.messages.convert.uuids import uuid_from_msg
from roboyard.scenarios.metrics.collector import Handler

_STATUS: Final = "roboyard_msgs/msg/NavigationStatus"
_ENDS: Final = {GoalStatus.SUCCEEDED: "succeeded", GoalStatus.CANCELED: "canceled"}
_PARTS: Final = ("send_goal", "get_result")


class ForeignDrives:
    """Listens to calls of a robot's actions that bring it somewhere, and their answers.

    Replans and recoveries of somebody else's navigator are not known: they count as none.

    Args:
        namespace: The robot's, "" or "/name".
        tasks: Names of the actions.
        tell: Called with each change, a roboyard_msgs/NavigationStatus, and its time [ns].
    """

    def __init__(self, namespace: str, tasks: Sequence[str], tell: Handler) -> None:
        self._parts = {f"{namespace}/{task}/_action/{part}": (task, part) for task in tasks for part in _PARTS}
        self._tell = tell
        self._asked: dict[int, tuple[str, str, bytes, int]] = {}  # service, type, request, end [ns] by the number
        self._drives: dict[bytes, tuple[str, str, bytes, int]] = {}  # task, type, request, begin [ns] by the goal's id

    def handlers(self) -> Mapping[str, Handler]:
        """Both sides of the calls."""
        return {EXTERNAL_REQUEST_TOPIC: self._on_asked, EXTERNAL_RESPONSE_TOPIC: self._on_answered}

    def _on_asked(self, call: Any, time_ns: int) -> None:
        if call.service in self._parts:
            self._asked[int(call.call_id)] = (
                call.service,
                call.type,
                bytes(call.request),
                to_nanoseconds(call.deadline),
            )

    def _on_answered(self, answer: Any, time_ns: int) -> None:
        asked = self._asked.pop(int(answer.call_id), None)
        if asked is None:
            return
        service, kind, data, until_ns = asked
        if 0 < until_ns <= time_ns:
            return  # too late: whoever asked has been told that nobody answered
        task, part = self._parts[service]
        request = deserialize(data, f"{kind}_Request")
        try:
            response = None if answer.error else deserialize(bytes(answer.response), f"{kind}_Response")
        except MessageError:
            response = None
        uuid = uuid_from_msg(request.goal_id)
        if part == "get_result":
            self._end(uuid, response, time_ns)
        elif response is not None and response.accepted:
            self._drives[uuid] = (task, kind, data, time_ns)
            self._tell(_status(task, "started", request), time_ns)
        else:
            self._tell(_status(task, "rejected", request, cause="refused"), time_ns)

    def _end(self, uuid: bytes, response: Any, time_ns: int) -> None:
        drive = self._drives.pop(uuid, None)
        if drive is None:
            return
        task, kind, data, begun_ns = drive
        state = "aborted" if response is None else _ENDS.get(response.status, "aborted")
        cause = "" if state != "aborted" else "unanswered" if response is None else "aborted"
        request = deserialize(data, f"{kind}_Request")
        self._tell(_status(task, state, request, (time_ns - begun_ns) * 1e-9, cause), time_ns)

    def save_state(self) -> dict[str, Any]:
        """All it knows, as plain data."""
        return {"asked": dict(self._asked), "drives": dict(self._drives)}

    def load_state(self, saved: dict[str, Any]) -> None:
        """Counterpart of `save`."""
        self._asked, self._drives = dict(saved["asked"]), dict(saved["drives"])


def _status(task: str, state: str, request: Any, seconds: float = 0.0, cause: str = "") -> Any:
    return message_type(_STATUS)(task=task, state=state, goal=_goal(request.goal), elapsed=seconds, error_code=cause)


def _goal(goal: Any) -> Any:
    """The pose that a goal ends at (geometry_msgs/Pose): each action names it otherwise."""
    for name in ("pose", "target_pose"):
        if hasattr(goal, name):
            return getattr(goal, name).pose
    poses = goal.poses
    return poses[-1].pose if poses else message_type("geometry_msgs/msg/Pose")()
