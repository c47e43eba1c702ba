"""Escape manoeuvres to a pose where the robot can rotate in place."""

import math

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from tests.navigation.task_simulation import BASE, CELL, PERIOD, TaskSimulation, room_walls

from roboyard.control import ZERO_TWIST
from roboyard.errors import InputError
from roboyard.geometry import SE2
from roboyard.grids import GridGeometry
from roboyard.navigation.errors import NavigationError
from roboyard.navigation.navigator import EscapeTask, NavigateTask, RecoveryConfig, WaitConfig

CORNERS = BASE.footprint.circumscribed_radius


def clearance(simulation: TaskSimulation) -> float:
    """From the robot's middle to the nearest obstacle's cell [m]."""
    cells = np.argwhere(simulation.world.walls)
    return float(np.min(np.hypot(*(simulation.frame.cell_centers(cells) - simulation.pose.xy).T)))


def run_escape(simulation: TaskSimulation, seconds: float = 60.0):
    task = EscapeTask(BASE, 0.15, 30.0)
    simulation.time, simulation.twist = 0.0, ZERO_TWIST
    simulation.state()  # its costmap comes to where it is
    while simulation.time < seconds:
        try:
            twist = task.compute_command(simulation.state())
        except NavigationError as error:
            return error
        if twist is None:
            return None
        simulation.drive(twist)
    raise AssertionError("not over")


@settings(max_examples=25)
@given(st.floats(-0.3, 0.3), st.floats(0.29, 0.34))
def test_robot_facing_a_wall_backs_up_until_it_can_turn(curvature: float, gap: float) -> None:
    simulation = TaskSimulation(room_walls(6.0, 6.0), SE2(3.0, 3.0, 0.0))
    while simulation.pose.x < 6.0 - CELL - gap:
        simulation.pose = simulation.pose @ SE2.exp([0.01, 0.0, 0.01 * curvature])
    start = simulation.pose
    assert run_escape(simulation) is None
    assert clearance(simulation) > CORNERS
    assert not simulation.collisions
    assert start.distance(simulation.pose) < 0.35, "no farther than it must"


def test_robot_with_its_back_at_a_wall_drives_forward() -> None:
    simulation = TaskSimulation(room_walls(6.0, 6.0), SE2(0.3, 3.0, 0.0))
    assert run_escape(simulation) is None
    assert simulation.pose.x > 0.3
    assert clearance(simulation) > CORNERS
    assert not simulation.collisions


def test_escape_stays_when_free_and_fails_when_enclosed() -> None:
    simulation = TaskSimulation(room_walls(6.0, 6.0), SE2(3.0, 3.0, 1.0))
    assert run_escape(simulation) is None
    assert simulation.pose == SE2(3.0, 3.0, 1.0)
    simulation = TaskSimulation(room_walls(0.7, 0.6), SE2(0.35, 0.3, 0.0))
    assert run_escape(simulation).cause == "blocked"
    assert not simulation.collisions


@settings(max_examples=15)
@given(st.floats(0.012, 0.06), st.floats(-0.3, 0.3))
def test_robot_along_a_wall_leaves_without_collision(gap: float, lean: float) -> None:
    """Its side nearly at the wall of a corridor that is just wide enough to turn in, its nose away from it or to it."""
    reach = float((SE2(0.0, 0.0, lean) @ BASE.unpadded_footprint.corners)[:, 1].min())
    simulation = TaskSimulation(room_walls(8.0, 1.0), SE2(4.0, CELL - reach + gap, lean))
    assert run_escape(simulation) is None
    assert clearance(simulation) > CORNERS
    assert not simulation.collisions


@settings(max_examples=20)
@given(st.integers(0, 10_000), st.floats(-3.1, 3.1), st.integers(5, 40))
def test_escape_among_pillars_never_collides(seed: int, heading: float, n: int) -> None:
    rng = np.random.default_rng(seed)
    cells = room_walls(4.0, 4.0)
    pillars = rng.integers(1, len(cells) - 1, (n, 2))
    cells[pillars[:, 0], pillars[:, 1]] = True
    start = SE2(2.0, 2.0, heading)
    # every 0.5 mm of it and 1 mm about it: whatever cell reaches into it has one of these points
    x, y = np.linspace(-0.201, 0.201, 805), np.linspace(-0.151, 0.151, 605)
    inside = np.stack(np.meshgrid(x, y), axis=-1).reshape(-1, 2)
    under = GridGeometry(CELL, cells.shape).cells_of_points(start @ inside)
    assume(not cells[under[:, 0], under[:, 1]].any())
    simulation = TaskSimulation(cells, start)
    error = run_escape(simulation)
    assert not simulation.collisions
    if error is None:
        assert clearance(simulation) > CORNERS
    else:
        assert error.cause in ("blocked", "timeout")


def test_robot_backs_out_of_a_narrow_dead_end() -> None:
    cells = room_walls(6.0, 4.0)
    cells[:, 60:] = True
    cells[36:44, 60:110] = False  # 0.4 m wide, 2.5 m long
    simulation = TaskSimulation(cells, SE2(2.0, 2.0, 0.0))
    simulation.state()
    for x in np.arange(2.0, 5.0, 0.05):
        simulation.pose = SE2(float(x), 2.0, 0.0)
    assert run_escape(simulation) is None
    assert simulation.pose.x < 3.0
    assert not simulation.collisions
    goal = NavigateTask(simulation.context, [SE2(1.0, 1.0, math.pi)])
    simulation.time = 0.0
    assert simulation.run(goal, 60.0) is None
    assert not simulation.collisions


def test_invalid_escape_settings_are_refused() -> None:
    for bad in ({"max_speed": 0.0}, {"max_speed": math.nan}, {"time_allowance": -1.0}):
        with pytest.raises(InputError):
            EscapeTask(BASE, **{"max_speed": 0.1, "time_allowance": 1.0, **bad})


@pytest.mark.slow
def test_careful_recovery_policy_frees_a_robot_at_a_wall() -> None:
    """Nose at a wall that the map knows, the goal behind: it cannot turn, and there is nothing to forget."""
    ends = {}
    short_wait = {"wait": WaitConfig(type="wait", duration=PERIOD)}
    for policy, behaviors in (("thesis", {}), ("careful", short_wait)):
        recovery = RecoveryConfig(policy=policy, behaviors=behaviors)
        simulation = TaskSimulation(room_walls(6.0, 6.0), SE2(5.66, 3.0, 0.0), recovery=recovery)
        ends[policy] = simulation.run(NavigateTask(simulation.context, [SE2(1.0, 3.0, math.pi)]), 120.0)
        assert not simulation.collisions
    assert ends["careful"] is None
    assert ends["thesis"] is not None
