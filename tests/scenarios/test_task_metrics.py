"""Tasks are judged by where things truly are, not by what the robot says."""

import json
from typing import Any

import pytest

from roboyard.geometry import SE3
from roboyard.messages import msg
from roboyard.messages.convert import tf_message
from roboyard.scenarios.metrics.tasks import TasksDone
from roboyard.scenarios.thing_truth import MOVING

DESK = [2.0, 1.0, 0.7]


def judged(what: str, things: dict[str, tuple[float, float, float]], *, possible: bool = True) -> dict[str, Any]:
    """One task, whose action failed twice."""
    metric = TasksDone("/tasks")
    hear = metric.handlers()
    hear[MOVING](tf_message(((SE3.from_xyz_rpy(at), "world", name) for name, at in things.items()), 0), 0)
    for said in ("plans", "fails", "plans", "fails", "plans", what):
        told = {"task": 0, "goal": "bring", "what": said, "possible": possible, "ends": {"cup": DESK}, "of": 1}
        hear["/tasks"](msg.String(data=json.dumps(told)), 0)
    return metric.result()


@pytest.mark.parametrize(
    ("what", "things", "possible", "right"),
    [
        ("reached", {"cup": (2.0, 1.1, 0.7)}, True, True),
        ("reached", {"cup": (2.0, 1.1, 0.0)}, True, False),  # it fell down
        ("reached", {"cup": (5.0, 1.0, 0.7), "pot": (2.0, 1.0, 0.7)}, True, False),
        ("reached", {}, True, False),
        ("reached", {"cup": (2.0, 1.0, 0.7)}, False, False),
        ("impossible", {"cup": (5.0, 1.0, 0.7)}, True, False),
        ("impossible", {"pot": (5.0, 1.0, 0.7)}, True, True),  # the cup is gone
        ("impossible", {"cup": (5.0, 1.0, 0.7)}, False, True),
    ],
)
def test_a_task_is_right_if_the_truth_says_so(
    what: str, things: dict[str, tuple[float, float, float]], possible: bool, right: bool
) -> None:
    found = judged(what, things, possible=possible)
    assert found["tasks_over"]
    assert found["tasks_wrong"] == (not right)
    assert (found["task_failures"], found["failures_lost"]) == (2, 0 if right else 2)
    assert found["failures_recovered"] == (1.0 if right else 0.0)
    assert found["task_replans"] == 2


def test_nobody_pursues_tasks() -> None:
    assert set(TasksDone("/tasks").result().values()) == {None}
