"""Crowds: people get where they want to go, keep off each other, posts and walls, and do the same mirrored or moved."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray
from tests.harness.models import make_world, static_box

from roboyard.geometry import SE3
from roboyard.simulation import Simulation
from roboyard.simulation.people import Physique, Skeleton
from roboyard.simulation.people.crowd import CrowdSettings, crowd_velocities
from roboyard.simulation.people.library import find_clip
from roboyard.simulation.people.movement import RefusedError
from roboyard.simulation.people.person import Person, State
from roboyard.simulation.people.ways import Ways

Array = NDArray[np.float64]
DT = 0.05
SETTINGS = CrowdSettings()
NOTHING = np.zeros((0, 3))


def walked(places: Array, goals: Array, others: Array = NOTHING, seconds: float = 40.0) -> tuple[Array, float]:
    """Where everybody ends, and how near anybody ever came to somebody or something [m]."""
    velocities, nearest = np.zeros_like(places), math.inf
    for _ in range(round(seconds / DT)):
        velocities = crowd_velocities(places, velocities, goals, others, DT, SETTINGS)
        assert np.linalg.norm(velocities, axis=1).max() <= SETTINGS.fastest + 1e-12
        places = places + DT * velocities
        apart = np.linalg.norm(places[:, None] - places[None], axis=2) + np.diag(np.full(len(places), math.inf))
        nearest = min(nearest, float(apart.min(initial=math.inf)))
        off = np.linalg.norm(places[:, None] - others[None, :, :2], axis=2) - others[:, 2]
        nearest = min(nearest, float(off.min(initial=math.inf)))
    return places, nearest


def ring(n: int) -> Array:
    angles = np.arange(n) * 2.0 * math.pi / n + 0.1
    return 4.0 * np.stack([np.cos(angles), np.sin(angles)], axis=1)


@pytest.mark.parametrize("n", [2, 3, 6, 10])
def test_crossing_people_arrive_without_contact(n: int) -> None:
    ends, nearest = walked(ring(n), -ring(n))
    assert np.abs(ends + ring(n)).max() < 0.1
    assert nearest > 0.45


def test_single_person_walks_straight_at_speed_and_stops() -> None:
    start, goal = np.array([[0.0, 0.0]]), np.array([[6.0, 8.0]])
    half, _ = walked(start, goal, seconds=4.0)
    assert half[0, 1] / half[0, 0] == pytest.approx(8.0 / 6.0)
    assert np.linalg.norm(half) == pytest.approx(SETTINGS.speed * (4.0 - SETTINGS.relaxation), rel=0.05)
    end, _ = walked(start, goal)
    assert end[0] == pytest.approx(goal[0], abs=1e-3)


@given(st.floats(-0.3, 0.3))
@settings(max_examples=15, deadline=None)
def test_crowd_model_passes_a_post(aside: float) -> None:
    ends, nearest = walked(np.array([[0.0, 0.0]]), np.array([[6.0, 0.0]]), np.array([[3.0, aside, 0.2]]), 20.0)
    assert ends[0] == pytest.approx((6.0, 0.0), abs=0.1)
    assert nearest > 0.2


@given(st.floats(-math.pi, math.pi), st.floats(-5.0, 5.0), st.floats(-5.0, 5.0))
@settings(max_examples=20, deadline=None)
def test_crowd_model_is_invariant_to_rotation_and_position(angle: float, x: float, y: float) -> None:
    rng = np.random.default_rng(4)
    places, velocities, goals = rng.normal(size=(3, 5, 2))
    others = np.array([[0.3, 0.4, 0.2]])
    R = np.array([[math.cos(angle), -math.sin(angle)], [math.sin(angle), math.cos(angle)]])
    shift = np.array([x, y])
    moved = np.array([[*(R @ others[0, :2] + shift), 0.2]])
    one = crowd_velocities(places, velocities, goals, others, DT, SETTINGS)
    other = crowd_velocities(places @ R.T + shift, velocities @ R.T, goals @ R.T + shift, moved, DT, SETTINGS)
    assert np.allclose(one @ R.T, other, atol=1e-9)


def test_nearest_obstacles_agree_with_brute_force() -> None:
    ways = Ways(Simulation(make_world(static_box("wall", (0.2, 6.0, 2.0), SE3(translation=(2.0, 0.0, 1.0))))))
    there = ways.nearest((1.2, 0.3))
    assert there == pytest.approx((1.9, 0.3), abs=0.08)
    assert ways.nearest((-4.0, 0.0)) is None


def test_steered_person_faces_the_walking_direction() -> None:
    person = Person(Skeleton.of(Physique.of_height(1.7)), (0.0, 0.0, 0.0), find_clip)
    person.step(0.02)
    person.steer((0.0, 1.0))
    for _ in range(100):
        person.step(0.02)
    assert person.place == pytest.approx((0.0, 2.0, math.pi / 2.0), abs=1e-9)
    assert person.state is State.MOVEMENT
    assert person.animation == "walk"
    with pytest.raises(RefusedError, match="busy"):
        person.animate("wave", 1.0)
    with pytest.raises(RefusedError, match="finite"):
        person.steer((math.nan, 0.0))
    person.steer(None)
    assert person.state is State.IDLE
    person.animate("wave", 1.0)
    with pytest.raises(RefusedError, match="busy"):
        person.steer((1.0, 0.0))
