"""Waypoints in order, whatever fails; limits of speed."""

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from roboyard.control import PlanarTwist
from roboyard.errors import InputError
from roboyard.geometry import SE2
from roboyard.navigation import MotionLimits, SpeedLimit, Waypoint, WaypointSequence, waypoints_along
from roboyard.navigation.speed_limit import tightest


def _places(count: int, wait_ns: int = 0, task: str = "") -> list[Waypoint]:
    return [Waypoint(SE2(float(i), 0.0, 0.0), wait_ns, task) for i in range(count)]


@given(st.integers(1, 6), st.integers(0, 3), st.data())
def test_waypoints_are_visited_in_order_and_failures_reported(count, loops, data):
    first = data.draw(st.integers(0, count - 1))
    stop = data.draw(st.booleans())
    wanted = [(loop, index) for loop in range(loops + 1) for index in range(count)][first:]
    fails = data.draw(st.lists(st.booleans(), min_size=len(wanted), max_size=len(wanted)))
    sequence = WaypointSequence(_places(count), loops=loops, first=first, stop_on_failure=stop)
    visited = []
    for is_failure in fails:
        if sequence.over:
            break
        assert sequence.left == len(wanted) - len(visited)
        visited.append((sequence.loop, sequence.index))
        kept = sequence.save_state()
        sequence = WaypointSequence(_places(count), loops=loops, first=first, stop_on_failure=stop)
        sequence.load_state(kept)
        if is_failure:
            sequence.failed("no_path")
        else:
            sequence.arrived(0)
    until = next((i + 1 for i, failed in enumerate(fails) if failed), len(wanted)) if stop else len(wanted)
    assert visited == wanted[:until]
    assert sequence.over
    assert sequence.left == 0
    assert [(miss.loop, miss.index) for miss in sequence.missed] == [
        place for place, failed in zip(visited, fails, strict=False) if failed
    ]
    assert sequence.doing == ("failed" if stop and any(fails) else "done")


def test_pause_precedes_task_and_next_waypoint():
    sequence = WaypointSequence(_places(2, wait_ns=500, task="look"), stop_on_failure=False)
    sequence.arrived(1000)
    assert sequence.doing == "wait"
    sequence.look(1499)
    assert sequence.doing == "wait"
    sequence.look(1500)
    assert (sequence.doing, sequence.waypoint.task) == ("task", "look")
    sequence.task_done()
    assert (sequence.doing, sequence.index) == ("drive", 1)
    sequence.arrived(2000)
    sequence.look(3000)
    sequence.failed("nothing to see")
    assert sequence.doing == "done"
    assert sequence.missed[0].cause == "nothing to see"
    for event in (lambda: sequence.arrived(0), sequence.task_done, lambda: sequence.failed("again")):
        with pytest.raises(InputError, match="done"):
            event()


def test_invalid_waypoint_sequences_are_refused():
    for make in (
        lambda: WaypointSequence([]),
        lambda: WaypointSequence(_places(2), loops=-1),
        lambda: WaypointSequence(_places(2), first=2),
        lambda: Waypoint(SE2(), wait_ns=-1),
        lambda: waypoints_along(np.zeros((0, 2))),
        lambda: waypoints_along(np.zeros((3, 3))),
    ):
        with pytest.raises(InputError):
            make()


def test_route_waypoints_face_the_next_one():
    ahead = waypoints_along([[0.0, 0.0], [1.0, 0.0], [1.0, 0.0], [1.0, 2.0]])
    assert [point.pose.theta for point in ahead] == pytest.approx([0.0, 0.0, math.pi / 2, math.pi / 2])
    assert waypoints_along([[0.0, 0.0], [1.0, 0.0]], 2.0)[-1].pose.theta == 2.0


@given(st.floats(0.01, 5.0), st.booleans(), st.floats(-3.0, 3.0), st.floats(-3.0, 3.0), st.floats(-3.0, 3.0))
def test_limited_command_keeps_its_arc_and_is_never_faster(value, percentage, vx, vy, wz):
    limit, own = SpeedLimit(value, percentage), MotionLimits(forward=2.0, backward=0.5, turn=1.5)
    limits = limit.limits(own)
    assert limit.speed(2.0) <= 2.0
    assert limits.forward == pytest.approx(limit.speed(2.0))
    assert limits.turn / limits.forward == pytest.approx(own.turn / own.forward)
    assert limits.backward / limits.forward == pytest.approx(own.backward / own.forward)
    twist = limit.slowed(PlanarTwist(vx, vy, wz), 2.0)
    assert math.hypot(twist.vx, twist.vy) <= limit.speed(2.0) + 1e-12
    assert twist.vx * wz == pytest.approx(vx * twist.wz)
    assert twist.vx * vy == pytest.approx(vx * twist.vy)
    assert limit.slowed(twist, 2.0) == pytest.approx(twist, abs=1e-12)
    assert SpeedLimit().limits(own) == own


def test_tightest_speed_limit_holds_and_invalid_ones_are_refused():
    assert tightest((SpeedLimit(1.5), SpeedLimit(50.0, percentage=True), SpeedLimit()), 2.0).speed(2.0) == 1.0
    assert tightest((), 2.0).speed(2.0) == 2.0
    for value, percentage in ((-1.0, False), (math.nan, False), (math.inf, False), (101.0, True)):
        with pytest.raises(InputError):
            SpeedLimit(value, percentage)
