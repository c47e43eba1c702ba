"""Tasks are judged by the true places of objects, not by the reports of the robot."""

import json
from typing import Any

import pytest
from tests.harness.collectors import CollectorFeed

from roboyard.messages import msg
from roboyard.task_planning.evaluation import TaskMetrics

TARGET_POSITION = [2.0, 1.0, 0.7]


def send_task_event(feed: CollectorFeed[TaskMetrics], event: str, time: float = 0.0, *, possible: bool = True) -> None:
    """Let the robot report an event of its one task: to bring the cup to the desk."""
    report = {
        "task": 0,
        "goal": "bring",
        "kind": event,
        "expected_feasible": possible,
        "expected_positions": {"cup": TARGET_POSITION},
        "n_tasks": 1,
    }
    feed.send("/tasks", msg.String(data=json.dumps(report)), time)


def evaluate_task(
    event: str, objects: dict[str, tuple[float, float, float]], *, possible: bool = True
) -> dict[str, Any]:
    """Metrics of one task, whose action failed twice."""
    feed = CollectorFeed(TaskMetrics("/tasks"))
    feed.send_objects(objects)
    for each in ("planned", "failed", "planned", "failed", "planned", event):
        send_task_event(feed, each, possible=possible)
    return feed.result()


@pytest.mark.parametrize(
    ("event", "objects", "possible", "right"),
    [
        ("reached", {"cup": (2.0, 1.1, 0.7)}, True, True),
        ("reached", {"cup": (2.0, 1.1, 0.0)}, True, False),  # it fell down
        ("reached", {"cup": (5.0, 1.0, 0.7), "pot": (2.0, 1.0, 0.7)}, True, False),
        ("reached", {}, True, False),
        ("reached", {"cup": (2.0, 1.0, 0.7)}, False, False),
        ("infeasible", {"cup": (5.0, 1.0, 0.7)}, True, False),
        ("infeasible", {"pot": (5.0, 1.0, 0.7)}, True, True),  # the cup is gone
        ("infeasible", {"cup": (5.0, 1.0, 0.7)}, False, True),
    ],
    ids=[
        "reached", "fallen", "elsewhere", "gone", "impossible-but-reached", "possible-but-refused",
        "refused-without-cup", "refused",
    ],
)  # fmt: skip
def test_task_is_right_if_the_truth_says_so(
    event: str, objects: dict[str, tuple[float, float, float]], possible: bool, right: bool
) -> None:
    found = evaluate_task(event, objects, possible=possible)
    assert found["tasks_over"]
    assert found["tasks_incorrect"] == (not right)
    assert (found["task_failures"], found["unrecovered_failures"]) == (2, 0 if right else 2)
    assert found["failures_recovered"] == (1.0 if right else 0.0)
    assert found["task_replans"] == 2


@pytest.mark.parametrize(
    ("rested", "position", "right"),
    [(2.0, (2.0, 1.0, 0.7), True), (0.2, (2.0, 1.0, 0.7), False), (2.0, (5.0, 1.0, 0.7), False)],
    ids=["rested-on-the-desk", "taken-at-once", "rested-elsewhere"],
)
def test_removal_of_a_brought_object_keeps_the_task_right(
    rested: float, position: tuple[float, float, float], right: bool
) -> None:
    feed = CollectorFeed(TaskMetrics("/tasks"))
    feed.send_objects({"cup": (1.0, 1.0, 1.0), "pot": TARGET_POSITION}, time=1.0)  # in the hand
    feed.send_objects({"cup": position, "pot": TARGET_POSITION}, time=2.0)
    feed.send_objects({"pot": TARGET_POSITION}, time=2.0 + rested)
    send_task_event(feed, "reached", time=5.0)
    assert feed["tasks_incorrect"] == (not right)


def test_run_without_tasks_has_no_task_metrics() -> None:
    assert TaskMetrics("/tasks").values() == {}
