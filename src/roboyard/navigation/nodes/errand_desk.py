"""Where goals of all actions come in: one errand at a time, a newer one takes the older one's place."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

from roboyard.bus import GoalHandle, Node
from roboyard.bus.actions import PREEMPTED
from roboyard.control import PlanarTwist
from roboyard.errors import RoboyardError
from roboyard.geometry import SE2
from roboyard.messages import msg
from roboyard.messages.convert import make_header, pose_to_msg
from roboyard.navigation.driving import Navigate, Situation
from roboyard.navigation.errors import NavigationError
from roboyard.navigation.nodes.errands import Errand, Places, errands
from roboyard.navigation.path import Path

_FEEDBACK_NS = 200_000_000
"""Between feedback messages [ns]."""
_STATUS_NS = 1_000_000_000
"""Between status messages while nothing changes [ns]."""


Begin = Callable[[Errand, Any], tuple[list[SE2], Any]]
Remake = Callable[[Errand, list[SE2], Any], Any]


class Desk:
    """Action servers of all errands, and the errand that is under way.

    Args:
        node: Whose they are.
        frame: Of goals.
        begin: Gives the goals of an errand in the map, and its task, from the goal message; raises RoboyardError to
            refuse it.
        remake: Gives the task again, from the goals in the map and the goal message.
        ended: Called when an errand has ended.
    """

    def __init__(self, node: Node, frame: str, begin: Begin, remake: Remake, ended: Callable[[], None]) -> None:
        self._frame = frame
        self._node, self._make, self._remake, self._ended = node, begin, remake, ended
        self._goals: tuple[SE2, ...] = ()
        self._handle: GoalHandle | None = None
        self._errand: Errand | None = None
        self._task: Any = None
        self._began_ns = self._fed_ns = self._said_ns = 0
        self._said = ""
        self._status = node.publisher("~/status", msg.NavigationStatus, latched=True)
        self._errands = errands()
        for errand in self._errands.values():
            node.action_server(
                errand.name, errand.type, partial(self._on_goal, errand), preempt=False,
                on_goal_restored=partial(self._on_restored, errand),
            )  # fmt: skip

    @property
    def busy(self) -> bool:
        """Whether an errand is under way."""
        return self._handle is not None

    @property
    def path(self) -> Path | None:
        """That the robot follows."""
        return getattr(self._task, "path", None)

    # -- goals ---------------------------------------------------------------------------------------------------------
    def _on_goal(self, errand: Errand, handle: GoalHandle) -> None:
        try:
            goals, task = self._make(errand, handle.goal)
        except RoboyardError as error:
            handle.reject(str(error), _cause_of(error))
            self._refuse(errand, error)
            return
        if self._handle is not None:
            self._finish("aborted", None, "preempted by a newer goal", PREEMPTED)
        handle.accept()
        self._take(errand, handle, task, goals)
        self.say("started")

    def _take(self, errand: Errand, handle: GoalHandle, task: Any, goals: Sequence[SE2]) -> None:
        self._errand, self._handle, self._task, self._goals = errand, handle, task, tuple(goals)
        self._began_ns = self._fed_ns = self._node.now_ns
        handle.on_cancel = self._on_cancel

    def _on_cancel(self, handle: GoalHandle) -> None:
        if handle is self._handle:
            self._finish("canceled", None, "")

    def _on_restored(self, errand: Errand, handle: GoalHandle) -> None:
        self._take(errand, handle, None, ())  # its task is made in ``load``

    # -- each step -----------------------------------------------------------------------------------------------------
    def step(self, now: Situation, places: Places) -> PlanarTwist | None:
        """The command of the errand under way, or None: it has just ended."""
        if self._handle is None or self._errand is None:
            return None
        try:
            twist: PlanarTwist | None = self._task.step(now)
        except NavigationError as error:
            self.fail(error)
            return None
        if twist is None:
            self._finish("succeeded", None, "")
            return None
        if self._node.now_ns - self._fed_ns >= _FEEDBACK_NS:
            self._fed_ns = self._node.now_ns
            self._handle.publish_feedback(self._errand.feedback(self._task, now, self._seconds, places))
        self.say(getattr(self._task, "doing", "moving"))
        return twist

    def fail(self, error: NavigationError) -> None:
        """Give the errand up."""
        self._node.log.warn(f"gave up {'' if self._errand is None else self._errand.name}: {error}")
        self._finish("aborted", error, str(error), error.cause)

    @property
    def _seconds(self) -> float:
        return (self._node.now_ns - self._began_ns) * 1e-9

    def _finish(self, state: str, error: NavigationError | None, reason: str, cause: str = "") -> None:
        handle, errand, task = self._handle, self._errand, self._task
        if handle is None or errand is None:
            return
        self.say(state, error, reason)
        result = errand.result(task, error, self._seconds, self._frame)
        self._handle = self._errand = self._task = None
        if state == "succeeded":
            handle.succeed(result)
        elif state == "canceled":
            handle.set_canceled(result, reason)
        else:
            handle.abort(result, reason, cause)
        self._node.report_health("ok" if error is None else "warn", reason or state)
        if cause != PREEMPTED:  # else the next errand drives on
            self._ended()

    # -- telling -------------------------------------------------------------------------------------------------------
    def say(self, state: str, error: RoboyardError | None = None, text: str = "") -> None:
        """Publish the status, if it changed or is old."""
        now_ns = self._node.now_ns
        if state == self._said and now_ns - self._said_ns < _STATUS_NS:
            return
        if self._handle is not None and state != self._said and error is None:
            self._node.report_health("ok", f"{'' if self._errand is None else self._errand.name}: {state}")
        self._said, self._said_ns = state, now_ns
        task = self._task
        message = self._message(self._errand, state, error, text)
        message.elapsed = self._seconds
        if isinstance(task, Navigate):
            message.goal = pose_to_msg(SE2(*task.goal))
            message.distance_remaining, message.replans, message.recoveries = task.left, task.replans, task.recoveries
        self._status.publish(message)

    def _refuse(self, errand: Errand, error: RoboyardError) -> None:
        self._status.publish(self._message(errand, "rejected", error, ""))

    def _message(self, errand: Errand | None, state: str, error: RoboyardError | None, text: str) -> Any:
        return msg.NavigationStatus(
            header=make_header(self._frame, self._node.now_ns),
            task="" if errand is None else errand.name,
            state=state,
            error_code="" if error is None else _cause_of(error),
            message=text or ("" if error is None else str(error)),
        )

    # -- state ---------------------------------------------------------------------------------------------------------
    def save_state(self) -> dict[str, Any]:
        """Everything as plain data; the goal itself is its action server's."""
        return {
            "task": None if self._task is None else self._task.save_state(),
            "goals": [(goal.x, goal.y, goal.theta) for goal in self._goals],
            "times": (self._began_ns, self._fed_ns, self._said_ns),
            "said": self._said,
        }

    def load_state(self, saved: dict[str, Any]) -> None:
        """Counterpart of `save`, after the action servers have taken up their goals."""
        self._goals = tuple(SE2(*goal) for goal in saved["goals"])
        if self._errand is not None and self._handle is not None and saved["task"] is not None:
            self._task = self._remake(self._errand, list(self._goals), self._handle.goal)
            self._task.load_state(saved["task"])
        self._began_ns, self._fed_ns, self._said_ns = saved["times"]
        self._said = saved["said"]


def _cause_of(error: RoboyardError) -> str:
    return str(getattr(error, "cause", "refused"))
