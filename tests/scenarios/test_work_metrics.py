"""Work is judged by where things truly are, and idleness by who moved when."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from roboyard.geometry import SE3
from roboyard.messages import msg
from roboyard.messages.convert import tf_message
from roboyard.scenarios.metrics.working import PAUSE, Working, common, joined, lasting
from roboyard.scenarios.thing_truth import MOVING

S = 1_000_000_000


class Shift:
    """A robot, and Anna."""

    def __init__(self) -> None:
        self.metric = Working("")
        self.hear = {**self.metric.handlers(), **self.metric.meet_person("anna")}

    def work(
        self, time: float, state: str, *, thing: str = "", at: tuple[float, ...] = (), task: str = "cycle"
    ) -> None:
        place = [msg.Point(*at)] if at else []
        event = msg.WorkEvent(actor="arm", task=task, state=state, thing=thing, place=place)
        self.hear["/work"](event, round(time * S))

    def things(self, time: float, **at: tuple[float, float, float]) -> None:
        message = tf_message(((SE3.from_xyz_rpy(place), "world", name) for name, place in at.items()), 0)
        self.hear[MOVING](message, round(time * S))

    def moves(self, start: float, end: float, speed: float = 0.5) -> None:
        for time in np.arange(start, end + 1e-9, 0.02):
            message = msg.JointState(velocity=np.array([0.0, speed]))
            self.hear["/joint_states"](message, round(float(time) * S))

    def anna(self, time: float, state: str) -> None:
        self.hear["/anna/state"](msg.PersonState(name="anna", state=state), round(time * S))

    def result(self, end: float) -> dict[str, Any]:
        self.metric.finish(round(end * S))
        return dict(self.metric.result())


@pytest.mark.parametrize(
    ("state", "truly", "good", "wrong"),
    [
        ("done", (1.0, 0.0, 0.7), True, 0),
        ("done", (1.02, 0.0, 0.7), True, 0),
        ("done", (1.0, 0.0, 0.0), False, 1),  # it fell down
        ("failed", (1.0, 0.0, 0.7), False, 0),
    ],
)
def test_a_cycle_counts_if_its_part_is_truly_there(
    state: str, truly: tuple[float, float, float], good: bool, wrong: int
) -> None:
    shift = Shift()
    shift.work(2.0, "begun")
    shift.things(9.9, part=truly)
    shift.work(10.0, state, thing="part", at=(1.0, 0.0, 0.7))
    shift.things(11.0, part=(0.0, 0.0, 0.7))  # taken away later: that counts no more
    found = shift.result(36.0)
    assert (found["cycles"], found["work_wrong"], found["work_ended"]) == (int(good), wrong, 1)
    assert found["work_done"] == float(good)
    if good:
        assert found["cycle_time"] == pytest.approx(8.0)
        assert found["throughput"] == pytest.approx(100.0)


def test_what_is_under_way_at_the_end_is_neither_done_nor_failed() -> None:
    shift = Shift()
    shift.work(1.0, "begun", task="errand")
    shift.work(2.0, "done", task="errand")
    shift.work(3.0, "begun")
    found = shift.result(5.0)
    assert (found["work_ended"], found["work_done"], found["cycles"]) == (1, 1.0, 0)


def test_who_moved_when() -> None:
    shift = Shift()
    shift.work(0.0, "begun")
    shift.moves(1.0, 4.0)
    shift.moves(4.0 + 0.8 * PAUSE, 6.0)  # so short a rest is none
    shift.moves(8.0, 10.0, speed=0.001)  # that is noise
    shift.anna(0.0, "idle")
    shift.anna(5.0, "movement")
    shift.anna(5.4, "movement")
    shift.anna(5.8, "movement")
    shift.anna(6.2, "movement")
    shift.anna(6.6, "movement")
    shift.anna(7.0, "idle")
    found = shift.result(10.0)
    assert found["robot_idle"] == pytest.approx(0.5, abs=0.01)
    assert found["human_idle"] == pytest.approx(0.8, abs=1e-6)
    assert found["concurrent_activity"] == pytest.approx(0.1, abs=0.01)


def test_nobody_works() -> None:
    assert set(Working("").result().values()) == {None}


spans = st.lists(st.tuples(st.floats(0, 50), st.floats(0, 5)).map(lambda p: [p[0], p[0] + p[1]]), max_size=8)


@given(spans, spans)
def test_times_in_both_and_in_either_add_up(one: list[list[float]], other: list[list[float]]) -> None:
    a, b = joined(one), joined(other)
    both, either = common(a, b), joined([*a, *b])
    assert lasting(both) + lasting(either) == pytest.approx(lasting(a) + lasting(b))
    assert both == common(b, a)
    grid = np.linspace(-0.5, 56.0, 400)
    inside = [np.array([any(s <= t <= e for s, e in spans) for t in grid]) for spans in (a, b, both, either)]
    assert np.mean(inside[2] != (inside[0] & inside[1])) < 0.05
    assert (inside[3] == (inside[0] | inside[1])).all()
