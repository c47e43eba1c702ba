"""The last stretch of a base that goes sideways: it stands where and as it should, or says why not."""

import math

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.navigation.yards import BODY, OMNI, Yard, room

from roboyard.geometry import SE2, wrap_angle
from roboyard.navigation import Tolerance
from roboyard.navigation.driving import Approach, ApproachSettings, Navigate, Part

GOAL = SE2(2.0, 2.0, 0.4)
FINE = Tolerance(0.005, math.radians(0.5))
WINDOW = Part("window")


@settings(max_examples=25, deadline=None)
@given(st.floats(0.0, 0.3), st.floats(-math.pi, math.pi), st.floats(-1.0, 1.0))
def test_it_stands_at_the_goal_and_never_goes_far_from_the_straight_line(
    away: float, bearing: float, turn: float
) -> None:
    start = GOAL @ SE2(away * math.cos(bearing), away * math.sin(bearing), turn)
    yard = Yard(room(4.0, 4.0), start, body=OMNI)
    track, drive = [start], yard.drive
    yard.drive = lambda twist: (drive(twist), track.append(yard.pose))
    assert yard.run(Approach(OMNI, GOAL, FINE, ApproachSettings()), 20.0) is None
    assert yard.pose.distance(GOAL) <= FINE.xy
    assert abs(wrap_angle(yard.pose.theta - GOAL.theta)) <= FINE.yaw
    assert math.hypot(yard.twist.vx, yard.twist.vy) < 0.011
    local = np.array([(GOAL.inverse() @ pose).xy for pose in track])
    line = np.array([math.cos(bearing), math.sin(bearing)])
    assert np.abs(local @ [-line[1], line[0]]).max() < 0.03
    assert (local @ line).min() > -FINE.xy
    assert (local @ line).max() < away + FINE.xy


def test_it_stops_before_what_stands_in_between() -> None:
    true = room(4.0, 4.0)
    true[38:42, 44:46] = True  # 0.2 m before the robot's nose
    yard = Yard(true, SE2(1.8, 2.0, 0.0), body=OMNI)
    error = yard.run(Approach(OMNI, SE2(2.1, 2.0, 0.0), FINE, ApproachSettings()), 30.0)
    assert error.cause == "blocked"
    assert not yard.touched


def test_who_is_held_fast_gives_up_in_the_time_allowed() -> None:
    yard = Yard(room(4.0, 4.0), SE2(1.8, 2.0, 0.0), body=OMNI)
    yard.drive = lambda twist: setattr(yard, "time", yard.time + 0.1)
    error = yard.run(Approach(OMNI, GOAL, FINE, ApproachSettings(allowance=3.0)), 10.0)
    assert error.cause == "timeout"
    assert yard.time < 3.3


@settings(max_examples=5, deadline=None)
@given(st.floats(-math.pi, math.pi))
def test_a_drive_ends_with_it_where_the_base_can(heading: float) -> None:
    goal, tolerance = SE2(4.5, 2.5, heading), {"tolerance": FINE, "controller": WINDOW}
    yard = Yard(room(6.0, 4.0), SE2(0.8, 1.2, 0.0), body=OMNI, **tolerance)
    task, seen = Navigate(yard.driver, [goal]), set()
    drive = yard.drive
    yard.drive = lambda twist: (seen.add(task.doing), drive(twist))
    assert yard.run(task, 60.0) is None
    assert "approaches" in seen
    assert yard.pose.distance(goal) <= FINE.xy
    assert abs(wrap_angle(yard.pose.theta - heading)) <= FINE.yaw
    assert not yard.touched


def test_a_base_that_cannot_go_sideways_is_driven_as_before() -> None:
    yard = Yard(room(6.0, 4.0), SE2(0.8, 1.2, 0.0), body=BODY, controller=WINDOW)
    task, seen = Navigate(yard.driver, [SE2(4.5, 2.5, 0.0)]), set()
    drive = yard.drive
    yard.drive = lambda twist: (seen.add(task.doing), drive(twist))
    assert yard.run(task, 60.0) is None
    assert "approaches" not in seen


def test_no_straight_line_through_a_wall() -> None:
    true = room(4.0, 4.0)
    true[20:, 36:38] = True  # the goal lies behind it, 0.5 m away
    yard = Yard(true, SE2(1.5, 2.5, 1.57), body=OMNI, controller=WINDOW, approach=ApproachSettings(distance=1.0))
    task = Navigate(yard.driver, [SE2(2.2, 2.5, 1.57)])
    assert yard.run(task, 90.0) is None
    assert not yard.touched


def test_an_approach_that_is_saved_in_the_middle_goes_on_with_the_same_bits() -> None:
    def yard(pose: SE2) -> Yard:
        return Yard(room(4.0, 4.0), pose, body=OMNI, controller=WINDOW)

    one = yard(SE2(1.8, 1.9, 0.0))
    task = Navigate(one.driver, [GOAL])
    for _ in range(6):
        one.drive(task.step(one.now()))
    assert task.doing == "approaches"
    two = yard(one.pose)
    again = Navigate(two.driver, [GOAL])
    two.twist, two.time = one.twist, one.time
    two.surroundings.load(one.surroundings.save())
    again.load(task.save())
    two.driver.controller.load(one.driver.controller.save())
    while (first := task.step(one.now())) is not None:
        assert again.step(two.now()) == first
        one.drive(first)
        two.drive(first)
    assert again.step(two.now()) is None
