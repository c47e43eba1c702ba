"""Work is judged by the true places of things, and idleness by motion."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.harness.collectors import CollectorFeed

from roboyard.messages import msg
from roboyard.people.evaluation import MIN_IDLE_TIME, WorkMetrics, intersect_intervals, merge_intervals, total_duration


class WorkFeed(CollectorFeed[WorkMetrics]):
    """A robot that works beside Anna."""

    def __init__(self) -> None:
        super().__init__(WorkMetrics(""), people=["anna"])

    def send_work(
        self, time: float, state: str, *, object_name: str = "", place: tuple[float, ...] = (), task: str = "cycle"
    ) -> None:
        """Let the robot report its work."""
        positions = [msg.Point(*place)] if place else []
        self.send(
            "/work", msg.WorkEvent(actor="arm", task=task, state=state, object=object_name, goal_points=positions), time
        )

    def move_joints(self, start: float, end: float, speed: float = 0.5) -> None:
        """Let a joint of the robot move between two times."""
        for time in np.arange(start, end + 1e-9, 0.02):
            self.send("/joint_states", msg.JointState(velocity=np.array([0.0, speed])), float(time))

    def send_person(self, time: float, state: str) -> None:
        """Publish what Anna does."""
        self.send("/anna/state", msg.PersonState(name="anna", state=state), time)


@pytest.mark.parametrize(
    ("state", "true_place", "good", "wrong"),
    [
        ("done", (1.0, 0.0, 0.7), True, 0),
        ("done", (1.02, 0.0, 0.7), True, 0),
        ("done", (1.0, 0.0, 0.0), False, 1),  # it fell down
        ("failed", (1.0, 0.0, 0.7), False, 0),
    ],
    ids=["exact", "2-cm-off", "fallen", "failed"],
)
def test_cycle_counts_if_its_part_is_truly_there(
    state: str, true_place: tuple[float, float, float], good: bool, wrong: int
) -> None:
    feed = WorkFeed()
    feed.send_work(2.0, "started")
    feed.send_objects({"part": true_place}, time=9.9)
    feed.send_work(10.0, state, object_name="part", place=(1.0, 0.0, 0.7))
    feed.send_objects({"part": (0.0, 0.0, 0.7)}, time=11.0)  # taken away later: that counts no more
    found = feed.finish(36.0)
    assert (found["cycles"], found["work_incorrect"], found["work_ended"]) == (int(good), wrong, 1)
    assert found["work_done"] == float(good)
    if good:
        assert found["cycle_time"] == pytest.approx(8.0)
        assert found["throughput"] == pytest.approx(100.0)


def test_unfinished_work_is_neither_done_nor_failed() -> None:
    feed = WorkFeed()
    feed.send_work(1.0, "started", task="errand")
    feed.send_work(2.0, "done", task="errand")
    feed.send_work(3.0, "started")
    found = feed.finish(5.0)
    assert (found["work_ended"], found["work_done"], found["cycles"]) == (1, 1.0, 0)


def test_idle_ratios_follow_motion_of_robot_and_person() -> None:
    feed = WorkFeed()
    feed.send_work(0.0, "started")
    feed.move_joints(1.0, 4.0)
    feed.move_joints(4.0 + 0.8 * MIN_IDLE_TIME, 6.0)  # so short a rest is none
    feed.move_joints(8.0, 10.0, speed=0.001)  # that is noise
    feed.send_person(0.0, "idle")
    for time in (5.0, 5.4, 5.8, 6.2, 6.6):
        feed.send_person(time, "movement")
    feed.send_person(7.0, "idle")
    found = feed.finish(10.0)
    assert found["robot_idle"] == pytest.approx(0.5, abs=0.01)
    assert found["human_idle"] == pytest.approx(0.8, abs=1e-6)
    assert found["concurrent_activity"] == pytest.approx(0.1, abs=0.01)


def test_run_without_work_has_no_work_metrics() -> None:
    assert WorkMetrics("").values() == {}


spans = st.lists(st.tuples(st.floats(0, 50), st.floats(0, 5)).map(lambda p: [p[0], p[0] + p[1]]), max_size=8)


@given(spans, spans)
def test_times_in_both_and_in_either_add_up(one: list[list[float]], other: list[list[float]]) -> None:
    a, b = merge_intervals(one), merge_intervals(other)
    both, either = intersect_intervals(a, b), merge_intervals([*a, *b])
    assert total_duration(both) + total_duration(either) == pytest.approx(total_duration(a) + total_duration(b))
    assert both == intersect_intervals(b, a)
    grid = np.linspace(-0.5, 56.0, 400)
    inside = [np.array([any(s <= t <= e for s, e in spans) for t in grid]) for spans in (a, b, both, either)]
    assert np.mean(inside[2] != (inside[0] & inside[1])) < 0.05
    assert (inside[3] == (inside[0] | inside[1])).all()
