"""Contacts that creep: the force is the optimum, its derivative is true, and it becomes the engine's."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.simulation.builders import at, free_box, ground, rover, world
from tests.simulation.test_grain import with_surface

from roboyard.description.model import Surface
from roboyard.simulation import Simulation
from roboyard.simulation.creep import APART, STICKING, creeping_force

CASES = st.tuples(st.integers(3, 6), st.integers(0, 2**31))


def case(dim: int, seed: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    rng = np.random.default_rng(seed)
    residual = rng.normal(0.0, 1.0, dim) * 10.0 ** rng.uniform(-1, 1, dim)
    return residual, 10.0 ** rng.uniform(-2, 4, dim), 10.0 ** rng.uniform(-1.5, 0.2, dim - 1)


def force_of(residual: np.ndarray, stiffness: np.ndarray, friction: np.ndarray) -> tuple[int, np.ndarray, np.ndarray]:
    force, bend = np.zeros(6), np.zeros((6, 6))
    zone = creeping_force(residual, stiffness, friction, force, bend)
    return zone, force[: len(residual)], bend[: len(residual), : len(residual)]


@given(CASES)
def test_the_force_is_the_optimum(given_case: tuple[int, int]) -> None:
    """Inside its cone, what it leaves inside the dual cone, and the two orthogonal."""
    residual, stiffness, friction = case(*given_case)
    _, force, _ = force_of(residual, stiffness, friction)
    left = force / stiffness + residual
    size, scale = 1.0 + np.abs(force).max(), np.abs(residual).max() + np.abs(force / stiffness).max()
    assert np.linalg.norm(force[1:] / friction) <= force[0] + 1e-7 * size
    assert np.linalg.norm(left[1:] * friction) <= left[0] + 1e-7 * scale
    assert abs(left @ force) <= 1e-7 * size * scale


@given(CASES)
def test_the_derivative_is_the_forces_own(given_case: tuple[int, int]) -> None:
    residual, stiffness, friction = case(*given_case)
    zone, _, bend = force_of(residual, stiffness, friction)
    for i in range(len(residual)):
        step = np.zeros(len(residual))
        step[i] = 1e-6 * max(1.0, abs(residual[i]))
        (before, low, _), (after, high, _) = (
            force_of(residual - step, stiffness, friction), force_of(residual + step, stiffness, friction)
        )  # fmt: skip
        if before == zone == after:
            slope = (high - low) / (2.0 * step[i])
            np.testing.assert_allclose(-bend[:, i], slope, atol=1e-3 * (1.0 + np.abs(slope).max()))
    assert np.linalg.eigvalsh(bend).min() >= -1e-6 * (1.0 + np.abs(bend).max())


@given(CASES)
def test_in_the_engines_proportion_it_is_the_engines_cone(given_case: tuple[int, int]) -> None:
    """Todorov's closed form, for rows whose softness goes with the square of their coefficients."""
    residual, stiffness, friction = case(*given_case)
    mu = 0.7 * friction[0]
    stiffness = np.concatenate([stiffness[:1], stiffness[0] * friction**2 / mu**2])
    zone, force, _ = force_of(residual, stiffness, friction)
    normal, tangential = mu * residual[0], float(np.linalg.norm(friction * residual[1:]))
    if zone == APART:
        assert normal >= mu * tangential * (1 - 1e-9)
        assert not force.any()
    elif zone == STICKING:
        assert mu * normal + tangential <= 1e-9
        np.testing.assert_allclose(force, -stiffness * residual)
    else:
        pull = stiffness[0] / (mu**2 * (1 + mu**2)) * (normal - mu * tangential)
        expected = np.concatenate([[-pull * mu], pull * mu * friction**2 * residual[1:] / tangential])
        np.testing.assert_allclose(force, expected, rtol=1e-6, atol=1e-9 * np.abs(expected).max())


def drift(first: float, second: float, direction: tuple[float, float, float] | None) -> np.ndarray:
    """Velocity [m/s] of a box of 5 kg that 10 N push along x and 20 N along y, on a floor that holds it."""
    surface = Surface(friction=1.0, direction1=direction, slip=(first, second))
    sim = Simulation(world(ground()))
    sim.add(with_surface(free_box(), surface), "crate", at(z=0.1))
    sim.step(200)
    sim.data.qfrc_applied[:2] = 10.0, 20.0
    sim.step(500)
    return sim.data.qvel[:2].copy()


@pytest.mark.parametrize(
    ("first", "second", "direction", "expected"),
    [
        (0.04, 0.0, (1.0, 0.0, 0.0), (0.1, 0.0)),
        (0.04, 0.0, (0.0, 1.0, 0.0), (0.0, 0.2)),
        (0.02, 0.04, (1.0, 0.0, 0.0), (0.05, 0.2)),
        (0.02, 0.02, None, (0.05, 0.1)),
    ],
)
def test_four_corners_yield_along_their_directions(
    first: float, second: float, direction: tuple[float, float, float] | None, expected: tuple[float, float]
) -> None:
    np.testing.assert_allclose(drift(first, second, direction), expected, atol=1e-3)


def test_a_rover_whose_wheels_slip_sideways_still_stands_and_repeats() -> None:
    """Gazebo's skid-steered examples: 0.035 along the axle.  It turns with less torque, rests as deep, and repeats."""
    surface = Surface(friction=1.0, direction1=(0.0, 0.0, 1.0), slip=(0.035, 0.0))
    ends = []
    for _ in range(2):
        sim = Simulation(world(ground()))
        sim.add(with_surface(rover(sensors=()), surface), "rover", at(z=0.1313))
        sim.step(1000)
        assert max(0.0, -float(np.min(sim.data.contact.dist))) < 1e-3
        sim.data.qvel[5] = 1.0
        sim.step(100)
        ends.append(sim.data.qpos.tobytes())
    assert ends[0] == ends[1]
