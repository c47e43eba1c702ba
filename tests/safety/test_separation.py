"""Speed and separation: the protective distance, and the speed scaling that keeps it."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from roboyard.safety.collaborative.separation import (
    SeparationParameters,
    max_speed_scaling,
    person_travel,
    protective_distance,
    speed_scaling_for_braking,
    stopping_time,
)

SPEEDS, TIMES, LENGTHS = st.floats(0.0, 3.0, allow_subnormal=False), st.floats(0.0, 2.0), st.floats(0.0, 1.0)
PARAMETERS = st.builds(
    SeparationParameters,
    reaction_time=TIMES,
    intrusion_distance=LENGTHS,
    person_uncertainty=LENGTHS,
    robot_uncertainty=LENGTHS,
)
SCALINGS = st.floats(0.0, 1.0)


@given(PARAMETERS, SPEEDS, SPEEDS, TIMES, SCALINGS, st.floats(0.0, 1.0))
def test_protective_distance_grows_with_speeds_and_times(parameters, person, robot, stop_time, scaling, more) -> None:
    before = protective_distance(parameters, person, robot, stop_time, scaling)
    assert before >= parameters.constant_distance
    later = SeparationParameters(
        reaction_time=parameters.reaction_time + more,
        intrusion_distance=parameters.intrusion_distance,
        person_uncertainty=parameters.person_uncertainty,
    )
    for after in (
        protective_distance(parameters, person + more, robot, stop_time, scaling),
        protective_distance(parameters, person, robot + more, stop_time, scaling),
        protective_distance(parameters, person, robot, stop_time + more, scaling),
        protective_distance(parameters, person, robot, stop_time, min(scaling + more, 1.0)),
        protective_distance(later, person, robot, stop_time, scaling) + parameters.robot_uncertainty,
    ):
        assert after >= before - 1e-12


@given(PARAMETERS, SPEEDS, SPEEDS, TIMES, st.floats(-0.5, 8.0))
def test_speed_scaling_is_the_largest_that_keeps_the_distance(parameters, person, robot, stop_time, distance) -> None:
    scaling = float(max_speed_scaling(parameters, distance, person, robot, stop_time))
    assert 0.0 <= scaling <= 1.0
    if scaling > 0.0:
        assert protective_distance(parameters, person, robot, stop_time, scaling) <= distance + 1e-9
    low, high = 0.0, 1.0  # the same by halving
    for _ in range(60):
        midpoint = 0.5 * (low + high)
        low, high = (
            (midpoint, high)
            if protective_distance(parameters, person, robot, stop_time, midpoint) <= distance
            else (low, midpoint)
        )
    if protective_distance(parameters, person, robot, stop_time, 0.0) > distance:
        assert scaling == 0.0
    elif abs(scaling - low) > 1e-6:  # where the distance hardly depends on the pace, any rounding decides
        assert protective_distance(parameters, person, robot, stop_time, max(scaling, low)) == pytest.approx(
            distance, abs=1e-6
        )


@given(PARAMETERS, SPEEDS, SPEEDS, st.floats(0.01, 2.0))
def test_braking_at_the_distance_stops_before_contact(parameters, person, robot, stop_time) -> None:
    """Both go on for the reaction time, then the robot brakes evenly: what is left is C + Zd + Zr."""
    distance, dt, speed, time = float(protective_distance(parameters, person, robot, stop_time)), 1e-3, robot, 0.0
    while speed > 0.0 or time < parameters.reaction_time + stop_time:
        after = max(robot - max(time + dt - parameters.reaction_time, 0.0) * robot / stop_time, 0.0)
        distance -= person * dt + 0.5 * (speed + after) * dt
        speed, time = after, time + dt
    assert distance == pytest.approx(parameters.constant_distance, abs=4.0 * (person + robot + 0.1) * dt)


def test_protective_distance_of_the_iso_example() -> None:
    """1.6 m/s, 0.1 s, half a second to stop from 1 m/s: 0.96 + 0.1 + 0.25 + 0.04 m."""
    assert protective_distance(SeparationParameters(), 1.6, 1.0, 0.5) == pytest.approx(1.35)


@given(
    st.lists(SCALINGS, min_size=1, max_size=8), st.floats(0.05, 2.0), st.floats(0.0, 0.2), st.floats(0.02, 0.3)
)  # fmt: skip
def test_braking_from_allowed_speed_keeps_later_scalings(scalings, stop_time, delay, spacing) -> None:
    positions = spacing * np.arange(len(scalings))
    scaling, limiting = speed_scaling_for_braking(np.array(scalings), positions, stop_time, delay)
    assert scaling <= scalings[0] + 1e-12
    # With the brakes on after the delay, the square of the pace falls by 2 / stopping each second of the trajectory.
    braked = np.maximum(scaling**2 - 2.0 / stop_time * np.maximum(positions - scaling * delay, 0.0), 0.0)
    assert (braked <= np.square(scalings) + 1e-9).all()
    # The greatest such pace: a little more is full pace, or too fast at the position that is named.
    more = scaling + 1e-6
    braked = max(more**2 - 2.0 / stop_time * max(positions[limiting] - more * delay, 0.0), 0.0)
    assert more > 1.0 or braked > scalings[limiting] ** 2


@given(SPEEDS, st.floats(-2.0, 2.0), st.floats(0.0, 0.5))
def test_person_comes_no_farther_than_assumed(assumed, measured, elapsed) -> None:
    parameters = SeparationParameters(person_speed=assumed)
    assert person_travel(parameters, measured, elapsed) >= max(assumed, measured, 0.0) * elapsed - 1e-12
    assert (
        parameters.person_approach_speed(np.array([measured]), elapsed) >= (assumed if assumed > 0.0 else measured)
    ).all()


def test_stopping_time_is_that_of_the_last_joint() -> None:
    assert stopping_time(np.array([1.0, -2.0]), np.array([2.0, 1.0])) == pytest.approx(2.0)
    assert stopping_time(np.zeros((3, 2)), np.ones(2)).tolist() == [0.0, 0.0, 0.0]
