"""Getting to where there is room to turn: the remembered way, and driving by it."""

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.navigation.yards import BODY, CELL, PERIOD, Yard, room

from roboyard.control import STANDSTILL
from roboyard.errors import InputError
from roboyard.geometry import SE2, wrap_angle
from roboyard.navigation.driving import MakeRoom, Navigate, RecoverySettings, Track
from roboyard.navigation.errors import NavigationError

CORNERS = BODY.footprint.circumscribed_radius

motions = st.lists(st.tuples(st.floats(0.02, 0.5), st.floats(-1.0, 1.0), st.booleans()), min_size=1, max_size=8).map(
    lambda legs: [(0.0 if on_the_spot else v, w) for v, w, on_the_spot in legs]
)


def way(legs: list[tuple[float, float]], start: SE2) -> list[SE2]:
    """Poses 0.1 s apart of seconds at velocities (v, w)."""
    poses = [start]
    for v, w in legs:
        poses += [poses[-1] @ SE2.exp([v * t, 0.0, w * t]) for t in np.arange(1, 11) * 0.1]
    return poses


def apart(a: SE2, b: SE2) -> float:
    return a.distance(b) + 0.25 * abs(wrap_angle(a.theta - b.theta))


@settings(max_examples=100)
@given(motions, st.integers(0, 60))
def test_what_is_driven_back_is_forgotten(legs, back: int) -> None:
    poses = way(legs, SE2(1.0, -2.0, 0.3))
    there, again = Track(100.0), Track(100.0)
    turn = max(len(poses) - back, 1)
    for pose in poses[:turn]:
        there.go(pose)
    for pose in [*poses, *reversed(poses[turn - 1 : -1])]:
        again.go(pose)
    assert abs(len(there) - len(again)) <= 1
    newest = SE2(*again.save()[-1])
    assert apart(newest, poses[turn - 1]) < 0.1, "the robot is about where the track ends"


@settings(max_examples=50)
@given(motions)
def test_a_robot_that_goes_where_its_track_says_comes_back_to_where_it_began(legs) -> None:
    poses = way(legs, SE2())
    track = Track(100.0)
    for pose in poses:
        track.go(pose)
    here, steps = poses[-1], 0
    while (aim := track.behind(here)) is not None:
        assert min(apart(aim, pose) for pose in poses) < 0.06, "over ground that it has driven on"
        here = aim
        track.go(here)
        steps += 1
        assert steps < 1000
    assert apart(here, poses[0]) < 0.2


def test_a_track_is_bounded_and_goes_on_from_a_saved_one() -> None:
    track = Track(1.0)
    for x in np.arange(0.0, 30.0, 0.03):
        track.go(SE2(float(x), 0.0, 0.0))
    assert len(track) == 20
    other = Track(1.0)
    other.load(track.save())
    assert other.behind(SE2(29.97, 0.0, 0.0)) == track.behind(SE2(29.97, 0.0, 0.0))
    assert 0.5 - 1e-9 <= other.save()[-1][0] - other.before(0.5).x < 0.57
    assert other.before(5.0) is None


def clearance(yard: Yard) -> float:
    """From the robot's middle to the nearest obstacle's cell [m]."""
    cells = np.argwhere(yard.true)
    return float(np.min(np.hypot(*(yard.frame.points(cells) - yard.pose.xy).T)))


def make_room(yard: Yard, track: Track, seconds: float = 60.0):
    task = MakeRoom(BODY, track, 0.15, 30.0)
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
        track.go(yard.pose)
    raise AssertionError("not over")


@settings(max_examples=25)
@given(st.floats(-0.3, 0.3), st.floats(0.29, 0.34))
def test_nose_at_a_wall_it_drives_back_until_it_can_turn_and_touches_nothing(bend: float, gap: float) -> None:
    yard = Yard(room(6.0, 6.0), SE2(3.0, 3.0, 0.0))
    track = Track()
    while yard.pose.x < 6.0 - CELL - gap:
        yard.pose = yard.pose @ SE2.exp([0.01, 0.0, 0.01 * bend])
        track.go(yard.pose)
    at = yard.pose
    assert make_room(yard, track) is None
    assert clearance(yard) > CORNERS
    assert not yard.touched
    assert at.distance(yard.pose) < 0.35, "no farther than it must"


def test_with_its_tail_at_a_wall_it_drives_ahead() -> None:
    yard = Yard(room(6.0, 6.0), SE2(0.3, 3.0, 0.0))
    assert make_room(yard, Track()) is None
    assert yard.pose.x > 0.3
    assert clearance(yard) > CORNERS
    assert not yard.touched


def test_where_it_can_turn_and_where_it_has_come_from_nowhere_it_stays() -> None:
    for start in (SE2(3.0, 3.0, 1.0), SE2(5.7, 3.0, 0.0)):
        yard = Yard(room(6.0, 6.0), start)
        assert make_room(yard, Track()) is None
        assert yard.pose == start


def test_out_of_a_blind_alley_too_narrow_to_turn_in() -> None:
    cells = room(6.0, 4.0)
    cells[:, 60:] = True
    cells[36:44, 60:110] = False  # 0.4 m wide, 2.5 m long
    yard = Yard(cells, SE2(2.0, 2.0, 0.0))
    track = Track()
    for x in np.arange(2.0, 5.0, 0.05):
        yard.pose = SE2(float(x), 2.0, 0.0)
        track.go(yard.pose)
    assert make_room(yard, track) is None
    assert yard.pose.x < 3.0
    assert not yard.touched
    goal = Navigate(yard.driver, [SE2(1.0, 1.0, math.pi)])
    yard.time = 0.0
    assert yard.run(goal, 60.0) is None
    assert not yard.touched


def test_a_robot_that_is_told_what_it_cannot_do() -> None:
    for bad in ({"speed": 0.0}, {"speed": math.nan}, {"allowance": -1.0}):
        with pytest.raises(InputError):
            MakeRoom(BODY, Track(), **{"speed": 0.1, "allowance": 1.0, **bad})


def test_the_careful_policy_gets_a_robot_away_from_a_wall_that_the_others_keep_it_at() -> None:
    """Nose at a wall that the map knows, the goal behind: it cannot turn, and there is nothing to forget."""
    ends = {}
    for policy in ("thesis", "careful"):
        yard = Yard(room(6.0, 6.0), SE2(5.66, 3.0, 0.0), recovery=RecoverySettings(policy=policy, wait=PERIOD))
        for x in np.arange(5.0, 5.66, 0.05):
            yard.driver.track.go(SE2(float(x), 3.0, 0.0))
        ends[policy] = yard.run(Navigate(yard.driver, [SE2(1.0, 3.0, math.pi)]), 120.0)
        assert not yard.touched
    assert ends["careful"] is None
    assert ends["thesis"] is not None
