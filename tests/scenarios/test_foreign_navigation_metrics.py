"""Drives of a navigator that was left out count as those of ours do."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import roboyard as ry
from roboyard.bus.inputs import ANSWERED, ASKED
from roboyard.geometry import SE2
from roboyard.messages import message_type, serialize, stamp
from roboyard.messages.convert import pose_stamped
from roboyard.scenarios.metrics.navigation import Drives

ACTIONS = {"navigate_to_pose": ry.action.NavigateToPose, "move_base": ry.action.MoveBase}
ENDS = {"succeeded": 4, "canceled": 5, "aborted": 6}
SECOND = 1_000_000_000


@dataclass(frozen=True)
class Goal:
    task: str
    x: float
    y: float
    yaw: float
    end: str
    """succeeded, canceled, aborted, rejected, malformed or gone."""
    seconds: int


goals = st.builds(
    Goal, st.sampled_from(sorted(ACTIONS)), st.floats(-9, 9), st.floats(-9, 9), st.floats(-3, 3),
    st.sampled_from([*ENDS, "rejected", "malformed", "gone"]), st.integers(1, 60),
)  # fmt: skip


class Listener:
    """A collector, and who speaks to it."""

    def __init__(self, namespace: str = "") -> None:
        self.namespace = namespace
        self.drives = self.made()
        self.now_ns = 0

    def made(self) -> Drives:
        return Drives("/truth/rover/odom", "/navigator/status", None, (), self.namespace)

    def hear(self, topic: str, message: Any) -> None:
        self.drives.handlers()[topic](message, self.now_ns)

    def stand(self, pose: SE2) -> None:
        found = ry.msg.Odometry()
        found.pose.pose = pose_stamped(pose, "world", self.now_ns).pose
        self.hear("/truth/rover/odom", found)

    def ours(self, goal: Goal, state: str, seconds: float = 0.0) -> None:
        pose = pose_stamped(SE2(goal.x, goal.y, goal.yaw), "map", self.now_ns).pose
        kind = message_type("roboyard_msgs/msg/NavigationStatus")
        self.hear("/navigator/status", kind(task=goal.task, state=state, goal=pose, seconds=seconds))

    def asked(self, goal: Goal, part: str, number: int, request: Any, until: int = 0) -> None:
        service = f"{self.namespace}/{goal.task}/_action/{part}"
        data = np.frombuffer(serialize(request), np.uint8)
        kind = getattr(ACTIONS[goal.task], "SendGoal" if part == "send_goal" else "GetResult")
        call = message_type("roboyard_msgs/msg/ForeignCall")
        self.hear(ASKED, call(service=service, type=kind.name, number=number, request=data, until=stamp(until)))

    def answered(self, number: int, response: bytes, error: str = "") -> None:
        kind = message_type("roboyard_msgs/msg/ForeignAnswer")
        self.hear(ANSWERED, kind(number=number, response=np.frombuffer(response, np.uint8), error=error))


def drive_ours(listener: Listener, goal: Goal) -> None:
    if goal.end == "rejected":
        listener.ours(goal, "rejected")
        return
    listener.ours(goal, "begins")
    listener.now_ns += goal.seconds * SECOND
    listener.stand(SE2(goal.x + 0.3, goal.y - 0.4, goal.yaw + 0.1))
    listener.ours(goal, goal.end if goal.end in ENDS else "aborted", float(goal.seconds))


def drive_foreign(listener: Listener, goal: Goal, number: int, until: int = 0) -> None:
    action = ACTIONS[goal.task]
    stamped = pose_stamped(SE2(goal.x, goal.y, goal.yaw), "map", listener.now_ns)
    body = action.Goal(target_pose=stamped) if goal.task == "move_base" else action.Goal(pose=stamped)
    uuid = np.full(16, number % 251, np.uint8)
    send = action.SendGoal.Request(goal=body)
    send.goal_id.uuid = uuid
    listener.asked(goal, "send_goal", number, send, until)
    accepted = goal.end != "rejected"
    listener.answered(number, serialize(action.SendGoal.Response(accepted=accepted)))
    if not accepted:
        return
    wanted = action.GetResult.Request()
    wanted.goal_id.uuid = uuid
    listener.asked(goal, "get_result", number + 1, wanted)
    listener.now_ns += goal.seconds * SECOND
    listener.stand(SE2(goal.x + 0.3, goal.y - 0.4, goal.yaw + 0.1))
    if goal.end == "malformed":
        listener.answered(number + 1, b"\x00\x01")
    elif goal.end == "gone":
        listener.answered(number + 1, b"", "who served it has gone")
    else:
        listener.answered(number + 1, serialize(action.GetResult.Response(status=ENDS[goal.end])))


@given(st.lists(goals, max_size=5), st.sampled_from(["", "/anna"]), st.integers(0, 5))
def test_a_foreign_navigator_is_judged_as_ours(tasks: list[Goal], namespace: str, saved: int) -> None:
    ours, foreign = Listener(), Listener(namespace)
    for listener in (ours, foreign):
        listener.stand(SE2.identity())
    for index, goal in enumerate(tasks):
        drive_ours(ours, goal)
        drive_foreign(foreign, goal, 2 * index)
        if index == saved:  # the run goes on elsewhere
            state, foreign.drives = foreign.drives.save(), foreign.made()
            foreign.drives.load(state)
    mine, others = ours.drives.result(), foreign.drives.result()
    assert mine.pop("cause") in ("", "preempted", None)
    others.pop("cause")
    assert others == pytest.approx(mine)
    ended = [goal for goal in tasks if goal.end != "rejected"]
    if ended:
        assert others["final_error"] == pytest.approx(0.5)
        assert others["time"] == pytest.approx(sum(goal.seconds for goal in ended))
    if tasks:
        assert others["goals_reached"] == sum(goal.end == "succeeded" for goal in tasks)


@pytest.mark.parametrize(("end", "cause"), [
    ("rejected", "refused"), ("aborted", "aborted"), ("malformed", "unanswered"), ("gone", "unanswered"),
])  # fmt: skip
def test_why_it_failed(end: str, cause: str) -> None:
    listener = Listener()
    listener.stand(SE2.identity())
    drive_foreign(listener, Goal("move_base", 1.0, 2.0, math.pi / 2, end, 3), 7)
    found = listener.drives.result()
    assert (found["goals"], found["goals_failed"], found["cause"]) == (1, 1, cause)


def test_what_nobody_asked_is_no_drive() -> None:
    listener = Listener()
    listener.now_ns = 5 * SECOND
    drive_foreign(listener, Goal("navigate_to_pose", 0.0, 0.0, 0.0, "succeeded", 1), 9, until=5 * SECOND)  # too late
    listener.answered(3, b"whatever")
    drive_foreign(listener, Goal("navigate_to_pose", 0.0, 0.0, 0.0, "succeeded", 1), 1)
    elsewhere = Listener("/other")
    elsewhere.namespace = ""  # calls for a robot without a namespace are not those of /other
    drive_foreign(elsewhere, Goal("navigate_to_pose", 0.0, 0.0, 0.0, "succeeded", 1), 1)
    assert listener.drives.result()["goals"] == 1
    assert elsewhere.drives.result()["goals"] is None
