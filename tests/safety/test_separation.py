"""Speed and separation: the distance to be kept, and the pace that keeps it."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from roboyard.safety.separation import (
    SeparationRules,
    drift,
    pace_to_brake,
    protective_distance,
    separation_pace,
    stopping_time,
)

SPEEDS, TIMES, LENGTHS = st.floats(0.0, 3.0, allow_subnormal=False), st.floats(0.0, 2.0), st.floats(0.0, 1.0)
RULES = st.builds(
    SeparationRules, reaction_time=TIMES, intrusion=LENGTHS, person_uncertainty=LENGTHS, robot_uncertainty=LENGTHS
)
PACES = st.floats(0.0, 1.0)


@given(RULES, SPEEDS, SPEEDS, TIMES, PACES, st.floats(0.0, 1.0))
def test_protective_distance_grows_with_speeds_and_times(rules, person, robot, stopping, pace, more) -> None:
    before = protective_distance(rules, person, robot, stopping, pace)
    assert before >= rules.constant
    later = SeparationRules(
        reaction_time=rules.reaction_time + more,
        intrusion=rules.intrusion,
        person_uncertainty=rules.person_uncertainty,
    )
    for after in (
        protective_distance(rules, person + more, robot, stopping, pace),
        protective_distance(rules, person, robot + more, stopping, pace),
        protective_distance(rules, person, robot, stopping + more, pace),
        protective_distance(rules, person, robot, stopping, min(pace + more, 1.0)),
        protective_distance(later, person, robot, stopping, pace) + rules.robot_uncertainty,
    ):
        assert after >= before - 1e-12


@given(RULES, SPEEDS, SPEEDS, TIMES, st.floats(-0.5, 8.0))
def test_pace_is_the_largest_that_keeps_the_distance(rules, person, robot, stopping, gap) -> None:
    pace = float(separation_pace(rules, gap, person, robot, stopping))
    assert 0.0 <= pace <= 1.0
    if pace > 0.0:
        assert protective_distance(rules, person, robot, stopping, pace) <= gap + 1e-9
    low, high = 0.0, 1.0  # the same by halving
    for _ in range(60):
        middle = 0.5 * (low + high)
        low, high = (
            (middle, high) if protective_distance(rules, person, robot, stopping, middle) <= gap else (low, middle)
        )
    if protective_distance(rules, person, robot, stopping, 0.0) > gap:
        assert pace == 0.0
    elif abs(pace - low) > 1e-6:  # where the distance hardly depends on the pace, any rounding decides
        assert protective_distance(rules, person, robot, stopping, max(pace, low)) == pytest.approx(gap, abs=1e-6)


@given(RULES, SPEEDS, SPEEDS, st.floats(0.01, 2.0))
def test_braking_at_the_distance_stops_before_contact(rules, person, robot, stopping) -> None:
    """Both go on for the reaction time, then the robot brakes evenly: what is left is C + Zd + Zr."""
    gap, dt, speed, time = float(protective_distance(rules, person, robot, stopping)), 1e-3, robot, 0.0
    while speed > 0.0 or time < rules.reaction_time + stopping:
        after = max(robot - max(time + dt - rules.reaction_time, 0.0) * robot / stopping, 0.0)
        gap -= person * dt + 0.5 * (speed + after) * dt
        speed, time = after, time + dt
    assert gap == pytest.approx(rules.constant, abs=4.0 * (person + robot + 0.1) * dt)


def test_protective_distance_of_the_iso_example() -> None:
    """1.6 m/s, 0.1 s, half a second to stop from 1 m/s: 0.96 + 0.1 + 0.25 + 0.04 m."""
    assert protective_distance(SeparationRules(), 1.6, 1.0, 0.5) == pytest.approx(1.35)


@given(
    st.lists(PACES, min_size=1, max_size=8), st.floats(0.05, 2.0), st.floats(0.0, 0.2), st.floats(0.02, 0.3)
)  # fmt: skip
def test_braking_from_allowed_pace_keeps_later_allowances(paces, stopping, delay, spacing) -> None:
    positions = spacing * np.arange(len(paces))
    pace, limiting = pace_to_brake(np.array(paces), positions, stopping, delay)
    assert pace <= paces[0] + 1e-12
    # With the brakes on after the delay, the square of the pace falls by 2 / stopping each second of the trajectory.
    braked = np.maximum(pace**2 - 2.0 / stopping * np.maximum(positions - pace * delay, 0.0), 0.0)
    assert (braked <= np.square(paces) + 1e-9).all()
    # The greatest such pace: a little more is full pace, or too fast at the position that is named.
    more = pace + 1e-6
    braked = max(more**2 - 2.0 / stopping * max(positions[limiting] - more * delay, 0.0), 0.0)
    assert more > 1.0 or braked > paces[limiting] ** 2


@given(SPEEDS, st.floats(-2.0, 2.0), st.floats(0.0, 0.5))
def test_person_comes_no_farther_than_assumed(supposed, measured, since) -> None:
    rules = SeparationRules(person_speed=supposed)
    assert drift(rules, measured, since) >= max(supposed, measured, 0.0) * since - 1e-12
    assert (rules.coming(np.array([measured]), since) >= (supposed if supposed > 0.0 else measured)).all()


def test_slowest_joint_decides_the_stopping_time() -> None:
    assert stopping_time(np.array([1.0, -2.0]), np.array([2.0, 1.0])) == pytest.approx(2.0)
    assert stopping_time(np.zeros((3, 2)), np.ones(2)).tolist() == [0.0, 0.0, 0.0]
