"""Waypoints in order, whatever fails; limits of speed."""

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from roboyard.control import PlanarTwist
from roboyard.errors import InputError
from roboyard.geometry import SE2
from roboyard.navigation import Waypoint, WaypointSequence, waypoints_from_polyline
from roboyard.navigation.controllers import MotionLimits, SpeedLimit
from roboyard.navigation.controllers.controller import strictest_limit
from roboyard.navigation.navigator.waypoints import WaypointState


def _make_waypoints(count: int, wait_ns: int = 0, task: str = "") -> list[Waypoint]:
    return [Waypoint(SE2(float(i), 0.0, 0.0), wait_ns, task) for i in range(count)]


@given(st.integers(1, 6), st.integers(0, 3), st.data())
def test_waypoints_are_visited_in_order_and_failures_reported(count, loops, data):
    first = data.draw(st.integers(0, count - 1))
    stop = data.draw(st.booleans())
    expected = [(loop, index) for loop in range(loops + 1) for index in range(count)][first:]
    fails = data.draw(st.lists(st.booleans(), min_size=len(expected), max_size=len(expected)))
    sequence = WaypointSequence(_make_waypoints(count), loops=loops, first=first, stop_on_failure=stop)
    visited = []
    for is_failure in fails:
        if sequence.is_finished:
            break
        assert sequence.n_remaining == len(expected) - len(visited)
        visited.append((sequence.loop, sequence.index))
        saved = sequence.save_state()
        sequence = WaypointSequence(_make_waypoints(count), loops=loops, first=first, stop_on_failure=stop)
        sequence.load_state(saved)
        if is_failure:
            sequence.report_failure("no_path")
        else:
            sequence.report_arrival(0)
    until = next((i + 1 for i, failed in enumerate(fails) if failed), len(expected)) if stop else len(expected)
    assert visited == expected[:until]
    assert sequence.is_finished
    assert sequence.n_remaining == 0
    assert [(miss.loop, miss.index) for miss in sequence.missed] == [
        visit for visit, failed in zip(visited, fails, strict=False) if failed
    ]
    assert sequence.state is (WaypointState.FAILED if stop and any(fails) else WaypointState.COMPLETED)


def test_pause_precedes_task_and_next_waypoint():
    sequence = WaypointSequence(_make_waypoints(2, wait_ns=500, task="look"), stop_on_failure=False)
    sequence.report_arrival(1000)
    assert sequence.state is WaypointState.WAITING
    sequence.update(1499)
    assert sequence.state is WaypointState.WAITING
    sequence.update(1500)
    assert (sequence.state, sequence.waypoint.task) == (WaypointState.EXECUTING_TASK, "look")
    sequence.report_task_done()
    assert (sequence.state, sequence.index) == (WaypointState.DRIVING, 1)
    sequence.report_arrival(2000)
    sequence.update(3000)
    sequence.report_failure("nothing to see")
    assert sequence.state is WaypointState.COMPLETED
    assert sequence.missed[0].cause == "nothing to see"
    for event in (
        lambda: sequence.report_arrival(0),
        sequence.report_task_done,
        lambda: sequence.report_failure("again"),
    ):
        with pytest.raises(InputError, match="done"):
            event()


def test_invalid_waypoint_sequences_are_refused():
    for make in (
        lambda: WaypointSequence([]),
        lambda: WaypointSequence(_make_waypoints(2), loops=-1),
        lambda: WaypointSequence(_make_waypoints(2), first=2),
        lambda: Waypoint(SE2(), wait_ns=-1),
        lambda: waypoints_from_polyline(np.zeros((0, 2))),
        lambda: waypoints_from_polyline(np.zeros((3, 3))),
    ):
        with pytest.raises(InputError):
            make()


def test_route_waypoints_face_the_next_one():
    waypoints = waypoints_from_polyline([[0.0, 0.0], [1.0, 0.0], [1.0, 0.0], [1.0, 2.0]])
    assert [point.pose.theta for point in waypoints] == pytest.approx([0.0, 0.0, math.pi / 2, math.pi / 2])
    assert waypoints_from_polyline([[0.0, 0.0], [1.0, 0.0]], 2.0)[-1].pose.theta == 2.0


@given(st.floats(0.01, 5.0), st.booleans(), st.floats(-3.0, 3.0), st.floats(-3.0, 3.0), st.floats(-3.0, 3.0))
def test_limited_command_keeps_its_arc_and_is_never_faster(value, percentage, vx, vy, wz):
    limit, unlimited = (
        SpeedLimit(value, percentage),
        MotionLimits(max_forward_speed=2.0, max_backward_speed=0.5, max_angular_speed=1.5),
    )
    limits = limit.apply_to_limits(unlimited)
    assert limit.max_speed(2.0) <= 2.0
    assert limits.max_forward_speed == pytest.approx(limit.max_speed(2.0))
    assert limits.max_angular_speed / limits.max_forward_speed == pytest.approx(
        unlimited.max_angular_speed / unlimited.max_forward_speed
    )
    assert limits.max_backward_speed / limits.max_forward_speed == pytest.approx(
        unlimited.max_backward_speed / unlimited.max_forward_speed
    )
    twist = limit.apply(PlanarTwist(vx, vy, wz), 2.0)
    assert math.hypot(twist.vx, twist.vy) <= limit.max_speed(2.0) + 1e-12
    assert twist.vx * wz == pytest.approx(vx * twist.wz)
    assert twist.vx * vy == pytest.approx(vx * twist.vy)
    assert limit.apply(twist, 2.0) == pytest.approx(twist, abs=1e-12)
    assert SpeedLimit().apply_to_limits(unlimited) == unlimited


def test_tightest_speed_limit_holds_and_invalid_ones_are_refused():
    assert (
        strictest_limit((SpeedLimit(1.5), SpeedLimit(50.0, percentage=True), SpeedLimit()), 2.0).max_speed(2.0) == 1.0
    )
    assert strictest_limit((), 2.0).max_speed(2.0) == 2.0
    for value, percentage in ((-1.0, False), (math.nan, False), (math.inf, False), (101.0, True)):
        with pytest.raises(InputError):
            SpeedLimit(value, percentage)
