"""Getting to where there is room to turn."""

import math

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from tests.navigation.yards import BODY, CELL, PERIOD, Yard, room

from roboyard.control import STANDSTILL
from roboyard.errors import InputError
from roboyard.geometry import SE2
from roboyard.grids import GridFrame
from roboyard.navigation.driving import MakeRoom, Navigate, RecoverySettings
from roboyard.navigation.errors import NavigationError

CORNERS = BODY.footprint.circumscribed_radius


def clearance(yard: Yard) -> float:
    """From the robot's middle to the nearest obstacle's cell [m]."""
    cells = np.argwhere(yard.true)
    return float(np.min(np.hypot(*(yard.frame.points(cells) - yard.pose.xy).T)))


def make_room(yard: Yard, seconds: float = 60.0):
    task = MakeRoom(BODY, 0.15, 30.0)
    yard.time, yard.twist = 0.0, STANDSTILL
    yard.now()  # its costmap comes to where it is
    while yard.time < seconds:
        try:
            twist = task.step(yard.now())
        except NavigationError as error:
            return error
        if twist is None:
            return None
        yard.drive(twist)
    raise AssertionError("not over")


@settings(max_examples=25)
@given(st.floats(-0.3, 0.3), st.floats(0.29, 0.34))
def test_nose_at_a_wall_it_drives_back_until_it_can_turn_and_touches_nothing(bend: float, gap: float) -> None:
    yard = Yard(room(6.0, 6.0), SE2(3.0, 3.0, 0.0))
    while yard.pose.x < 6.0 - CELL - gap:
        yard.pose = yard.pose @ SE2.exp([0.01, 0.0, 0.01 * bend])
    at = yard.pose
    assert make_room(yard) is None
    assert clearance(yard) > CORNERS
    assert not yard.touched
    assert at.distance(yard.pose) < 0.35, "no farther than it must"


def test_with_its_tail_at_a_wall_it_drives_ahead() -> None:
    yard = Yard(room(6.0, 6.0), SE2(0.3, 3.0, 0.0))
    assert make_room(yard) is None
    assert yard.pose.x > 0.3
    assert clearance(yard) > CORNERS
    assert not yard.touched


def test_where_it_can_turn_it_stays_and_where_no_manoeuvre_leads_there_it_says_so() -> None:
    yard = Yard(room(6.0, 6.0), SE2(3.0, 3.0, 1.0))
    assert make_room(yard) is None
    assert yard.pose == SE2(3.0, 3.0, 1.0)
    yard = Yard(room(0.7, 0.6), SE2(0.35, 0.3, 0.0))
    assert make_room(yard).cause == "blocked"
    assert not yard.touched


@settings(max_examples=15)
@given(st.floats(0.012, 0.06), st.floats(-0.3, 0.3))
def test_along_a_wall_it_gets_away_without_touching_it(gap: float, lean: float) -> None:
    """Its side nearly at the wall of a corridor that is just wide enough to turn in, its nose away from it or to it."""
    reach = float((SE2(0.0, 0.0, lean) @ BODY.outline.corners)[:, 1].min())
    yard = Yard(room(8.0, 1.0), SE2(4.0, CELL - reach + gap, lean))
    assert make_room(yard) is None
    assert clearance(yard) > CORNERS
    assert not yard.touched


@settings(max_examples=20)
@given(st.integers(0, 10_000), st.floats(-3.1, 3.1), st.integers(5, 40))
def test_wherever_it_stands_it_touches_nothing_and_ends_with_room_or_says_so(seed: int, heading: float, n: int) -> None:
    rng = np.random.default_rng(seed)
    cells = room(4.0, 4.0)
    pillars = rng.integers(1, len(cells) - 1, (n, 2))
    cells[pillars[:, 0], pillars[:, 1]] = True
    start = SE2(2.0, 2.0, heading)
    # every 0.5 mm of it and 1 mm about it: whatever cell reaches into it has one of these points
    ahead, aside = np.linspace(-0.201, 0.201, 805), np.linspace(-0.151, 0.151, 605)
    inside = np.stack(np.meshgrid(ahead, aside), axis=-1).reshape(-1, 2)
    under = GridFrame(CELL, cells.shape).cells(start @ inside)
    assume(not cells[under[:, 0], under[:, 1]].any())
    yard = Yard(cells, start)
    error = make_room(yard)
    assert not yard.touched
    if error is None:
        assert clearance(yard) > CORNERS
    else:
        assert error.cause in ("blocked", "timeout")


def test_out_of_a_blind_alley_too_narrow_to_turn_in() -> None:
    cells = room(6.0, 4.0)
    cells[:, 60:] = True
    cells[36:44, 60:110] = False  # 0.4 m wide, 2.5 m long
    yard = Yard(cells, SE2(2.0, 2.0, 0.0))
    yard.now()
    for x in np.arange(2.0, 5.0, 0.05):
        yard.pose = SE2(float(x), 2.0, 0.0)
    assert make_room(yard) is None
    assert yard.pose.x < 3.0
    assert not yard.touched
    goal = Navigate(yard.driver, [SE2(1.0, 1.0, math.pi)])
    yard.time = 0.0
    assert yard.run(goal, 60.0) is None
    assert not yard.touched


def test_a_robot_that_is_told_what_it_cannot_do() -> None:
    for bad in ({"speed": 0.0}, {"speed": math.nan}, {"allowance": -1.0}):
        with pytest.raises(InputError):
            MakeRoom(BODY, **{"speed": 0.1, "allowance": 1.0, **bad})


@pytest.mark.slow
def test_the_careful_policy_gets_a_robot_away_from_a_wall_that_the_others_keep_it_at() -> None:
    """Nose at a wall that the map knows, the goal behind: it cannot turn, and there is nothing to forget."""
    ends = {}
    for policy in ("thesis", "careful"):
        yard = Yard(room(6.0, 6.0), SE2(5.66, 3.0, 0.0), recovery=RecoverySettings(policy=policy, wait=PERIOD))
        ends[policy] = yard.run(Navigate(yard.driver, [SE2(1.0, 3.0, math.pi)]), 120.0)
        assert not yard.touched
    assert ends["careful"] is None
    assert ends["thesis"] is not None
