"""Contacts with slip: the force is the minimum, its derivative is exact, and tires drift in proportion to the force."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.harness.models import free_box, ground_plane, make_pose, make_world, rover_model
from tests.physics.test_compiler_contact_properties import with_surface

from roboyard.description.model import Surface
from roboyard.physics.kernels.contact_solver import SEPARATED, STICKING, slip_friction_force
from roboyard.simulation import Simulation

CASES = st.tuples(st.integers(3, 6), st.integers(0, 2**31))


def make_contact(dim: int, seed: int) -> tuple[np.ndarray, np.ndarray, np.ndarray, float]:
    """Residual, stiffness, coefficients, limit."""
    rng = np.random.default_rng(seed)
    residual = rng.normal(0.0, 1.0, dim) * 10.0 ** rng.uniform(-1, 1, dim)
    return (
        residual,
        10.0 ** rng.uniform(-2, 4, dim),
        10.0 ** rng.uniform(-1.5, 0.2, dim - 1),
        10.0 ** rng.uniform(-2, 3),
    )


def friction_force(
    residual: np.ndarray, stiffness: np.ndarray, friction: np.ndarray, limit: float
) -> tuple[int, np.ndarray, np.ndarray]:
    force, hessian = np.zeros(6), np.zeros((6, 6))
    zone = slip_friction_force(residual, stiffness, friction, limit, force, hessian)
    return zone, force[: len(residual)], hessian[: len(residual), : len(residual)]


@given(CASES)
def test_friction_is_the_optimum_within_its_limit(dim_and_seed: tuple[int, int]) -> None:
    """Where it slides, what it leaves points out of the ellipse; where it sticks, nothing is left."""
    residual, stiffness, friction, limit = make_contact(*dim_and_seed)
    zone, force, _ = friction_force(residual, stiffness, friction, limit)
    assert force[0] == max(0.0, -stiffness[0] * residual[0])
    normalized_force, residual_gradient = force[1:] / friction, friction * (force[1:] / stiffness[1:] + residual[1:])
    if zone == STICKING:
        assert np.linalg.norm(normalized_force) <= limit * (1 + 1e-9)
        np.testing.assert_allclose(residual_gradient, 0.0, atol=1e-9 * np.abs(residual).max())
    else:
        assert np.linalg.norm(normalized_force) == pytest.approx(limit, rel=1e-9)
        scale = np.linalg.norm(friction * residual[1:])
        np.testing.assert_allclose(
            residual_gradient, -np.linalg.norm(residual_gradient) * normalized_force / limit, atol=1e-7 * scale
        )


@given(CASES)
def test_friction_derivative_agrees_with_finite_differences(dim_and_seed: tuple[int, int]) -> None:
    residual, *contact = make_contact(*dim_and_seed)
    zone, _, hessian = friction_force(residual, *contact)
    for i in range(len(residual)):
        step = np.zeros(len(residual))
        step[i] = 1e-6 * max(1.0, abs(residual[i]))
        (before, low, _), (after, high, _) = (
            friction_force(residual - step, *contact),
            friction_force(residual + step, *contact),
        )
        if before == zone == after and abs(residual[0]) > 2.0 * step[0]:
            slope = (high - low) / (2.0 * step[i])
            np.testing.assert_allclose(-hessian[:, i], slope, atol=1e-3 * (1.0 + np.abs(slope).max()))
    assert np.linalg.eigvalsh(hessian).min() >= -1e-6 * (1.0 + np.abs(hessian).max())


@given(CASES)
def test_friction_is_zero_without_normal_force(dim_and_seed: tuple[int, int]) -> None:
    residual, stiffness, friction, _ = make_contact(*dim_and_seed)
    zone, force, _ = friction_force(residual, stiffness, friction, 0.0)
    assert zone == SEPARATED
    assert not force[1:].any()


def drift(first: float, second: float, direction: tuple[float, float, float] | None) -> np.ndarray:
    """Velocity [m/s] of a box of 5 kg that 10 N push along x and 20 N along y, on a floor that holds it."""
    surface = Surface(friction=1.0, friction_direction=direction, slip=(first, second))
    sim = Simulation(make_world(ground_plane()))
    sim.add(with_surface(free_box(), surface), "crate", make_pose(z=0.1))
    sim.step(200)
    sim.world.data.qfrc_applied[:2] = 10.0, 20.0
    sim.step(500)
    return sim.world.data.qvel[:2].copy()


@pytest.mark.parametrize(
    ("first", "second", "direction", "expected"),
    [
        (0.04, 0.0, (1.0, 0.0, 0.0), (0.1, 0.0)),
        (0.04, 0.0, (0.0, 1.0, 0.0), (0.0, 0.2)),
        (0.02, 0.04, (1.0, 0.0, 0.0), (0.05, 0.2)),
        (0.02, 0.02, None, (0.05, 0.1)),
    ],
)
def test_contact_corners_slip_along_their_directions(
    first: float, second: float, direction: tuple[float, float, float] | None, expected: tuple[float, float]
) -> None:
    np.testing.assert_allclose(drift(first, second, direction), expected, atol=1e-3)


def test_rover_with_wheel_slip_is_at_rest_and_repeats() -> None:
    """Gazebo's skid-steered examples: 0.035 along the axle.  It turns with less torque, rests as deep, and repeats."""
    surface = Surface(friction=1.0, friction_direction=(0.0, 0.0, 1.0), slip=(0.035, 0.0))
    ends = []
    for _ in range(2):
        sim = Simulation(make_world(ground_plane()))
        sim.add(with_surface(rover_model(sensors=()), surface), "rover", make_pose(z=0.1313))
        sim.step(1000)
        assert max(0.0, -float(np.min(sim.world.data.contact.dist))) < 1e-3
        sim.world.data.qvel[5] = 1.0
        sim.step(100)
        ends.append(sim.world.data.qpos.tobytes())
    assert ends[0] == ends[1]
