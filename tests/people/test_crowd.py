"""Crowds: people arrive without contact with each other, posts and walls; results are equivariant to rigid motions."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray
from tests.harness.models import make_world, static_box

from roboyard.geometry import SE3
from roboyard.people import BodyDimensions, Skeleton
from roboyard.people.clip_library import find_clip
from roboyard.people.crowd import CrowdSettings, compute_crowd_velocities
from roboyard.people.person import Person, PersonActivity
from roboyard.people.walking import PersonGoalError
from roboyard.simulation import Simulation
from roboyard.simulation.walking_map import make_walking_map

Array = NDArray[np.float64]
DT = 0.05
SETTINGS = CrowdSettings()
NO_OBSTACLES = np.zeros((0, 3))


def simulate_crowd(
    positions: Array, goals: Array, obstacles: Array = NO_OBSTACLES, seconds: float = 40.0
) -> tuple[Array, float]:
    """Return the final positions, and the smallest distance between people, or of a person to an obstacle [m]."""
    velocities, nearest = np.zeros_like(positions), math.inf
    for _ in range(round(seconds / DT)):
        velocities = compute_crowd_velocities(positions, velocities, goals, obstacles, DT, SETTINGS)
        assert np.linalg.norm(velocities, axis=1).max() <= SETTINGS.max_speed + 1e-12
        positions = positions + DT * velocities
        distances = np.linalg.norm(positions[:, None] - positions[None], axis=2) + np.diag(
            np.full(len(positions), math.inf)
        )
        nearest = min(nearest, float(distances.min(initial=math.inf)))
        clearances = np.linalg.norm(positions[:, None] - obstacles[None, :, :2], axis=2) - obstacles[:, 2]
        nearest = min(nearest, float(clearances.min(initial=math.inf)))
    return positions, nearest


def positions_on_circle(n: int) -> Array:
    angles = np.arange(n) * 2.0 * math.pi / n + 0.1
    return 4.0 * np.stack([np.cos(angles), np.sin(angles)], axis=1)


@pytest.mark.parametrize("n", [2, 3, 6, 10])
def test_crossing_people_arrive_without_contact(n: int) -> None:
    ends, nearest = simulate_crowd(positions_on_circle(n), -positions_on_circle(n))
    assert np.abs(ends + positions_on_circle(n)).max() < 0.1
    assert nearest > 0.45


def test_single_person_walks_straight_at_speed_and_stops() -> None:
    start, goal = np.array([[0.0, 0.0]]), np.array([[6.0, 8.0]])
    half, _ = simulate_crowd(start, goal, seconds=4.0)
    assert half[0, 1] / half[0, 0] == pytest.approx(8.0 / 6.0)
    assert np.linalg.norm(half) == pytest.approx(SETTINGS.desired_speed * (4.0 - SETTINGS.relaxation_time), rel=0.05)
    end, _ = simulate_crowd(start, goal)
    assert end[0] == pytest.approx(goal[0], abs=1e-3)


@given(st.floats(-0.3, 0.3))
@settings(max_examples=15, deadline=None)
def test_crowd_model_passes_a_post(lateral_offset: float) -> None:
    ends, nearest = simulate_crowd(
        np.array([[0.0, 0.0]]), np.array([[6.0, 0.0]]), np.array([[3.0, lateral_offset, 0.2]]), 20.0
    )
    assert ends[0] == pytest.approx((6.0, 0.0), abs=0.1)
    assert nearest > 0.2


@given(st.floats(-math.pi, math.pi), st.floats(-5.0, 5.0), st.floats(-5.0, 5.0))
@settings(max_examples=20, deadline=None)
def test_crowd_model_is_invariant_to_rotation_and_position(angle: float, x: float, y: float) -> None:
    rng = np.random.default_rng(4)
    positions, velocities, goals = rng.normal(size=(3, 5, 2))
    obstacles = np.array([[0.3, 0.4, 0.2]])
    R = np.array([[math.cos(angle), -math.sin(angle)], [math.sin(angle), math.cos(angle)]])
    shift = np.array([x, y])
    moved_obstacles = np.array([[*(R @ obstacles[0, :2] + shift), 0.2]])
    one = compute_crowd_velocities(positions, velocities, goals, obstacles, DT, SETTINGS)
    other = compute_crowd_velocities(
        positions @ R.T + shift, velocities @ R.T, goals @ R.T + shift, moved_obstacles, DT, SETTINGS
    )
    assert np.allclose(one @ R.T, other, atol=1e-9)


def test_nearest_obstacles_agree_with_brute_force() -> None:
    walking_map = make_walking_map(
        Simulation(make_world(static_box("wall", (0.2, 6.0, 2.0), SE3(translation=(2.0, 0.0, 1.0))))).world.model
    )
    nearest = walking_map.nearest_obstacle((1.2, 0.3))
    assert nearest == pytest.approx((1.9, 0.3), abs=0.08)
    assert walking_map.nearest_obstacle((-4.0, 0.0)) is None


def test_steered_person_faces_the_walking_direction() -> None:
    person = Person(Skeleton.from_dimensions(BodyDimensions.from_height(1.7)), (0.0, 0.0, 0.0), find_clip)
    person.step(0.02)
    person.set_walking_velocity((0.0, 1.0))
    for _ in range(100):
        person.step(0.02)
    assert person.pose == pytest.approx((0.0, 2.0, math.pi / 2.0), abs=1e-9)
    assert person.activity is PersonActivity.MOVEMENT
    assert person.animation_name == "walk"
    with pytest.raises(PersonGoalError, match="busy"):
        person.animate("wave", 1.0)
    with pytest.raises(PersonGoalError, match="finite"):
        person.set_walking_velocity((math.nan, 0.0))
    person.set_walking_velocity(None)
    assert person.activity is PersonActivity.IDLE
    person.animate("wave", 1.0)
    with pytest.raises(PersonGoalError, match="busy"):
        person.set_walking_velocity((1.0, 0.0))
