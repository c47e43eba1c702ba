"""The final approach of an omnidirectional base: it reaches its pose, or the error has a cause."""

import math

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.navigation.task_simulation import BASE, OMNI_BASE, TaskSimulation, room_walls

from roboyard.geometry import SE2, wrap_angle
from roboyard.navigation.controllers import GoalTolerance
from roboyard.navigation.navigator import ApproachConfig, ApproachPoseTask, NavigateTask, PluginConfig

GOAL = SE2(2.0, 2.0, 0.4)
FINE = GoalTolerance(xy=0.005, yaw=math.radians(0.5))
WINDOW = PluginConfig("dwa")


@settings(max_examples=25, deadline=None)
@given(st.floats(0.0, 0.3), st.floats(-math.pi, math.pi), st.floats(-1.0, 1.0))
def test_approach_reaches_the_goal_along_a_straight_line(distance: float, bearing: float, rotation: float) -> None:
    start = GOAL @ SE2(distance * math.cos(bearing), distance * math.sin(bearing), rotation)
    simulation = TaskSimulation(room_walls(4.0, 4.0), start, mobile_base=OMNI_BASE)
    track, drive = [start], simulation.drive
    simulation.drive = lambda twist: (drive(twist), track.append(simulation.pose))
    assert simulation.run(ApproachPoseTask(OMNI_BASE, GOAL, FINE, ApproachConfig()), 20.0) is None
    assert simulation.pose.distance(GOAL) <= FINE.xy
    assert abs(wrap_angle(simulation.pose.theta - GOAL.theta)) <= FINE.yaw
    assert math.hypot(simulation.twist.vx, simulation.twist.vy) < 0.011
    local = np.array([(GOAL.inverse() @ pose).xy for pose in track])
    line = np.array([math.cos(bearing), math.sin(bearing)])
    assert np.abs(local @ [-line[1], line[0]]).max() < 0.03
    assert (local @ line).min() > -FINE.xy
    assert (local @ line).max() < distance + FINE.xy


def test_approach_stops_before_an_obstacle() -> None:
    true = room_walls(4.0, 4.0)
    true[38:42, 44:46] = True  # 0.2 m before the robot's nose
    simulation = TaskSimulation(true, SE2(1.8, 2.0, 0.0), mobile_base=OMNI_BASE)
    error = simulation.run(ApproachPoseTask(OMNI_BASE, SE2(2.1, 2.0, 0.0), FINE, ApproachConfig()), 30.0)
    assert error.cause == "blocked"
    assert not simulation.collisions


def test_approach_of_an_immobile_robot_times_out() -> None:
    simulation = TaskSimulation(room_walls(4.0, 4.0), SE2(1.8, 2.0, 0.0), mobile_base=OMNI_BASE)
    simulation.drive = lambda twist: setattr(simulation, "time", simulation.time + 0.1)
    error = simulation.run(ApproachPoseTask(OMNI_BASE, GOAL, FINE, ApproachConfig(time_allowance=3.0)), 10.0)
    assert error.cause == "timeout"
    assert simulation.time < 3.3


@settings(max_examples=5, deadline=None)
@given(st.floats(-math.pi, math.pi))
def test_navigation_of_omnidirectional_base_ends_with_approach(heading: float) -> None:
    goal, tolerance = SE2(4.5, 2.5, heading), {"goal_tolerance": FINE, "controller": WINDOW}
    simulation = TaskSimulation(room_walls(6.0, 4.0), SE2(0.8, 1.2, 0.0), mobile_base=OMNI_BASE, **tolerance)
    task, activities = NavigateTask(simulation.context, [goal]), set()
    drive = simulation.drive
    simulation.drive = lambda twist: (activities.add(task.activity), drive(twist))
    assert simulation.run(task, 60.0) is None
    assert "approaching" in activities
    assert simulation.pose.distance(goal) <= FINE.xy
    assert abs(wrap_angle(simulation.pose.theta - heading)) <= FINE.yaw
    assert not simulation.collisions


def test_navigation_of_a_differential_base_uses_no_approach() -> None:
    simulation = TaskSimulation(room_walls(6.0, 4.0), SE2(0.8, 1.2, 0.0), mobile_base=BASE, controller=WINDOW)
    task, activities = NavigateTask(simulation.context, [SE2(4.5, 2.5, 0.0)]), set()
    drive = simulation.drive
    simulation.drive = lambda twist: (activities.add(task.activity), drive(twist))
    assert simulation.run(task, 60.0) is None
    assert "approaching" not in activities


def test_approach_does_not_cross_a_wall() -> None:
    true = room_walls(4.0, 4.0)
    true[20:, 36:38] = True  # the goal lies behind it, 0.5 m away
    simulation = TaskSimulation(
        true, SE2(1.5, 2.5, 1.57), mobile_base=OMNI_BASE, controller=WINDOW, approach=ApproachConfig(distance=1.0)
    )
    task = NavigateTask(simulation.context, [SE2(2.2, 2.5, 1.57)])
    assert simulation.run(task, 90.0) is None
    assert not simulation.collisions


def test_saved_approach_continues_bit_for_bit() -> None:
    def simulation(pose: SE2) -> TaskSimulation:
        return TaskSimulation(room_walls(4.0, 4.0), pose, mobile_base=OMNI_BASE, controller=WINDOW)

    one = simulation(SE2(1.8, 1.9, 0.0))
    task = NavigateTask(one.context, [GOAL])
    for _ in range(6):
        one.drive(task.compute_command(one.state()))
    assert task.activity == "approaching"
    two = simulation(one.pose)
    restored = NavigateTask(two.context, [GOAL])
    two.twist, two.time = one.twist, one.time
    two.costmaps.load_state(one.costmaps.save_state())
    restored.load_state(task.save_state())
    two.context.controller.load_state(one.context.controller.save_state())
    while (first := task.compute_command(one.state())) is not None:
        assert restored.compute_command(two.state()) == first
        one.drive(first)
        two.drive(first)
    assert restored.compute_command(two.state()) is None
