"""Goals of an external navigator are measured as those of the package's navigator."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import roboyard as ry
from roboyard.bus.external_inputs import EXTERNAL_REQUEST_TOPIC, EXTERNAL_RESPONSE_TOPIC
from roboyard.evaluation import topics
from roboyard.evaluation.collector import RobotContext
from roboyard.evaluation.topics import RobotTopics
from roboyard.geometry import SE2
from roboyard.messages import message_type, serialize, time_to_msg
from roboyard.messages.convert import pose_stamped_to_msg
from roboyard.navigation.evaluation.navigation import NavigationMetrics

ACTIONS = {"navigate_to_pose": ry.action.NavigateToPose, "move_base": ry.action.MoveBase}
ENDS = {"succeeded": 4, "canceled": 5, "aborted": 6}
SECOND = 1_000_000_000


@dataclass(frozen=True)
class Goal:
    """A goal, how it ends and how long it takes [s]."""

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


class NavigationFeed:
    """A collector of navigation goals, and what a navigator of this package or an external one publishes.

    Not a `CollectorFeed`: the collector is replaced when its state is loaded, and external calls need their clock.
    """

    def __init__(self, namespace: str = "") -> None:
        self.namespace = namespace
        self.drives = self.make_collector()
        self.now_ns = 0

    def make_collector(self) -> NavigationMetrics:
        """A collector that knows nothing yet."""
        return NavigationMetrics(RobotContext("rover", RobotTopics.for_robot("rover", self.namespace)))

    def send(self, topic: str, message: Any) -> None:
        """Let the collector take a message now."""
        self.drives.subscriptions()[topic](message, self.now_ns)

    def set_pose(self, pose: SE2) -> None:
        """The rover is truly there."""
        odometry = ry.msg.Odometry()
        odometry.pose.pose = pose_stamped_to_msg(pose, "world", self.now_ns).pose
        self.send("/truth/rover/odom", odometry)

    def send_status(self, goal: Goal, state: str, seconds: float = 0.0, error_code: str = "") -> None:
        """The navigator of this package publishes the state of a goal."""
        pose = pose_stamped_to_msg(SE2(goal.x, goal.y, goal.yaw), "map", self.now_ns).pose
        kind = message_type("roboyard_msgs/msg/NavigationStatus")
        self.send(
            "/navigator/status",
            kind(task=goal.task, state=state, goal=pose, elapsed=seconds, error_code=error_code),
        )

    def send_call(self, goal: Goal, part: str, number: int, request: Any, until: int = 0) -> None:
        """A service of an external navigator's action is called."""
        service = f"{self.namespace}/{goal.task}/_action/{part}"
        data = np.frombuffer(serialize(request), np.uint8)
        kind = getattr(ACTIONS[goal.task], "SendGoal" if part == "send_goal" else "GetResult")
        call = message_type("roboyard_msgs/msg/ExternalRequest")
        self.send(
            EXTERNAL_REQUEST_TOPIC,
            call(service=service, type=kind.name, call_id=number, request=data, deadline=time_to_msg(until)),
        )

    def send_response(self, number: int, response: bytes, error: str = "") -> None:
        """The external navigator responds to a call."""
        kind = message_type("roboyard_msgs/msg/ExternalResponse")
        self.send(
            EXTERNAL_RESPONSE_TOPIC, kind(call_id=number, response=np.frombuffer(response, np.uint8), error=error)
        )


def send_navigator_goal(feed: NavigationFeed, goal: Goal) -> None:
    """What the navigator of this package publishes about a goal."""
    if goal.end == "rejected":
        feed.send_status(goal, "rejected")
        return
    feed.send_status(goal, "started")
    feed.now_ns += goal.seconds * SECOND
    feed.set_pose(SE2(goal.x + 0.3, goal.y - 0.4, goal.yaw + 0.1))
    state = goal.end if goal.end in ENDS else "aborted"
    feed.send_status(goal, state, float(goal.seconds), "no_path" if state == "aborted" else "")


def send_external_goal(feed: NavigationFeed, goal: Goal, number: int, until: int = 0) -> None:
    """The calls that an external navigator takes for a goal."""
    action = ACTIONS[goal.task]
    stamped = pose_stamped_to_msg(SE2(goal.x, goal.y, goal.yaw), "map", feed.now_ns)
    body = action.Goal(target_pose=stamped) if goal.task == "move_base" else action.Goal(pose=stamped)
    uuid = np.full(16, number % 251, np.uint8)
    send = action.SendGoal.Request(goal=body)
    send.goal_id.uuid = uuid
    feed.send_call(goal, "send_goal", number, send, until)
    accepted = goal.end != "rejected"
    feed.send_response(number, serialize(action.SendGoal.Response(accepted=accepted)))
    if not accepted:
        return
    expected = action.GetResult.Request()
    expected.goal_id.uuid = uuid
    feed.send_call(goal, "get_result", number + 1, expected)
    feed.now_ns += goal.seconds * SECOND
    feed.set_pose(SE2(goal.x + 0.3, goal.y - 0.4, goal.yaw + 0.1))
    if goal.end == "malformed":
        feed.send_response(number + 1, b"\x00\x01")
    elif goal.end == "gone":
        feed.send_response(number + 1, b"", "who served it has gone")
    else:
        feed.send_response(number + 1, serialize(action.GetResult.Response(status=ENDS[goal.end])))


@given(st.lists(goals, max_size=5), st.sampled_from(["", "/anna"]), st.integers(0, 5))
def test_external_navigator_has_the_metrics_of_the_internal_one(tasks: list[Goal], namespace: str, saved: int) -> None:
    internal, external = NavigationFeed(), NavigationFeed(namespace)
    for feed in (internal, external):
        feed.set_pose(SE2.identity())
    for index, goal in enumerate(tasks):
        send_navigator_goal(internal, goal)
        send_external_goal(external, goal, 2 * index)
        if index == saved:  # the run is resumed in another process
            state, external.drives = external.drives.save_state(), external.make_collector()
            external.drives.load_state(state)
    expected, found = internal.drives.values(), external.drives.values()
    assert expected.pop("navigation_failure", "") in ("", "no_path")
    found.pop("navigation_failure", "")
    assert found == pytest.approx(expected)
    accepted_goals = [goal for goal in tasks if goal.end != "rejected"]
    if accepted_goals:
        assert found["final_error"] == pytest.approx(0.5)
        assert found["navigation_time"] == pytest.approx(sum(goal.seconds for goal in accepted_goals))
    if tasks:
        assert found["goals_reached"] == sum(goal.end == "succeeded" for goal in tasks)


@pytest.mark.parametrize(("end", "cause"), [
    ("rejected", "refused"), ("aborted", "aborted"), ("malformed", "unanswered"), ("gone", "unanswered"),
])  # fmt: skip
def test_cause_of_a_failed_external_goal(end: str, cause: str) -> None:
    feed = NavigationFeed()
    feed.set_pose(SE2.identity())
    send_external_goal(feed, Goal("move_base", 1.0, 2.0, math.pi / 2, end, 3), 7)
    found = feed.drives.values()
    assert (found["navigation_goals"], found["goals_failed"], found["navigation_failure"]) == (1, 1, cause)


def test_late_or_unrequested_responses_are_no_goals() -> None:
    feed = NavigationFeed()
    feed.now_ns = 5 * SECOND
    send_external_goal(feed, Goal("navigate_to_pose", 0.0, 0.0, 0.0, "succeeded", 1), 9, until=5 * SECOND)  # too late
    feed.send_response(3, b"whatever")
    send_external_goal(feed, Goal("navigate_to_pose", 0.0, 0.0, 0.0, "succeeded", 1), 1)
    other_robot = NavigationFeed("/other")
    other_robot.namespace = ""  # calls for a robot without a namespace are not those of /other
    send_external_goal(other_robot, Goal("navigate_to_pose", 0.0, 0.0, 0.0, "succeeded", 1), 1)
    assert feed.drives.values()["navigation_goals"] == 1
    assert other_robot.drives.values() == {}


def test_topics_of_calls_are_those_of_the_bus() -> None:
    assert (topics.EXTERNAL_REQUEST_TOPIC, topics.EXTERNAL_RESPONSE_TOPIC) == (
        EXTERNAL_REQUEST_TOPIC,
        EXTERNAL_RESPONSE_TOPIC,
    )
