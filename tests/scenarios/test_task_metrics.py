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


@pytest.mark.parametrize(
    ("lain", "at", "right"),
    [(2.0, (2.0, 1.0, 0.7), True), (0.2, (2.0, 1.0, 0.7), False), (2.0, (5.0, 1.0, 0.7), False)],
)
def test_who_takes_away_what_was_brought_does_not_make_it_wrong(
    lain: float, at: tuple[float, float, float], right: bool
) -> None:
    metric = TasksDone("/tasks")
    hear = metric.handlers()

    def lie(seconds: float, **things: tuple[float, float, float]) -> None:
        poses = ((SE3.from_xyz_rpy(place), "world", name) for name, place in things.items())
        hear[MOVING](tf_message(poses, 0), round(1e9 * seconds))

    lie(1.0, cup=(1.0, 1.0, 1.0), pot=DESK)  # in the hand
    lie(2.0, cup=at, pot=DESK)
    lie(2.0 + lain, pot=DESK)
    told = {"task": 0, "goal": "bring", "what": "reached", "possible": True, "ends": {"cup": DESK}, "of": 1}
    hear["/tasks"](msg.String(data=json.dumps(told)), 5_000_000_000)
    assert metric.result()["tasks_wrong"] == (not right)


def test_nobody_pursues_tasks() -> None:
    assert set(TasksDone("/tasks").result().values()) == {None}
