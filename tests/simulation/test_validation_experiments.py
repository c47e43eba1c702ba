"""Validation experiments: the simulation agrees with closed forms, and errors shrink with the time step."""

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from roboyard.errors import UnknownNameError
from roboyard.physics.settings import PhysicsSettings
from roboyard.simulation.validation import EXPERIMENTS, LawCheck, run_experiments
from roboyard.simulation.validation.driving import measure_spot_rotation, skid_rate, skid_torque
from roboyard.simulation.validation.friction import rolling_acceleration, sliding_acceleration
from roboyard.simulation.validation.mechanics import (
    measure_pendulum_period,
    measure_precession,
    measure_restitution,
    pendulum_period,
    steady_precession_rate,
)
from roboyard.simulation.validation.sensors import LIDAR_POSITION, ROOM_HALF_WIDTH, true_distances

DEFAULT = PhysicsSettings()
FINE = replace(DEFAULT, timestep=0.0005)
PAGE = Path(__file__).resolve().parents[2] / "docs" / "rooms" / "physical-truth.md"


@pytest.mark.parametrize("name", EXPERIMENTS)
def test_physics_agrees_with_closed_forms_within_bounds(name: str) -> None:
    for check in run_experiments(names=[name])[name]:
        assert check.passed, (
            f"{check.law}: {check.measured} for {check.expected}, {check.error:.4%} over {check.bound:.4%}"
        )
        # The page promises these bounds, in a line that begins with the law and its formula.
        assert f"| {check.law} | {check.formula} |" in PAGE.read_text("utf-8")
        line = next(line for line in PAGE.read_text("utf-8").splitlines() if line.startswith(f"| {check.law} |"))
        assert f"| {100 * check.bound:g} % |" in line


@pytest.mark.parametrize("name", ["impact", "bouncing", "gyroscope", "free rotation"])
def test_shorter_time_steps_reduce_the_error(name: str) -> None:
    coarse, fine = (run_experiments(settings, [name])[name] for settings in (DEFAULT, FINE))
    assert all(check.passed for check in fine)
    assert sum(check.error for check in fine) < 0.6 * sum(check.error for check in coarse)


@pytest.mark.parametrize("restitution", [0.0, 0.5, 1.0])
def test_impact_hardly_depends_on_its_time_within_a_step(restitution: float) -> None:
    for settings, bound in ((DEFAULT, 0.04), (FINE, 0.01)):
        measured = [measure_restitution(settings, restitution, speed) for speed in np.linspace(1.0, 3.0, 7)]
        assert np.abs(np.array(measured) - restitution).max() < bound + 1e-9


@pytest.mark.parametrize("length", [0.1, 0.35, 0.7])
def test_skid_turning_agrees_with_a_four_point_model(length: float) -> None:
    rate, torque = measure_spot_rotation(DEFAULT, 6.0, 0.5, length)
    assert rate == pytest.approx(skid_rate(6.0, length), rel=0.01)
    assert torque == pytest.approx(skid_torque(0.5, length), rel=0.01)


def test_closed_forms_have_their_limit_cases() -> None:
    """Small swings are harmonic, a ball that cannot slip rolls, one that can does both at the border."""
    assert pendulum_period(1e-4) == pytest.approx(
        2 * np.pi * np.sqrt((2.0 * 0.25 + 0.002) / (2.0 * 9.81 * 0.5)), rel=1e-6
    )
    assert measure_pendulum_period(FINE, 0.01) == pytest.approx(pendulum_period(0.01), rel=1e-4)
    border = np.arctan(0.3 * 3.5)
    assert rolling_acceleration(border - 1e-9, 0.3, 0.4) == pytest.approx(
        sliding_acceleration(border + 1e-9, 0.3), abs=1e-6
    )
    np.testing.assert_allclose(
        true_distances(np.array([[1.0, 0, 0], [0, -1, 0]])),
        [ROOM_HALF_WIDTH - LIDAR_POSITION[0], ROOM_HALF_WIDTH + LIDAR_POSITION[1]],
    )
    assert measure_precession(FINE, 40.0)[0] == pytest.approx(steady_precession_rate(40.0), rel=0.005)


def test_validation_check_gives_its_error() -> None:
    assert LawCheck("a", "b", 2.0, 2.01, "m").error == pytest.approx(0.005)
    assert LawCheck("a", "b", 2.0, 2.01, "m").passed
    assert not LawCheck("a", "b", 0.0, 0.5, "m", scale=10.0).passed
    with pytest.raises(UnknownNameError, match="pendulum"):
        run_experiments(names=["perpetuum mobile"])
