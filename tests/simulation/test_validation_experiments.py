"""Validation experiments: the simulation agrees with closed forms, and errors shrink with the time step."""

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from roboyard.errors import UnknownNameError
from roboyard.physics.settings import PhysicsSettings
from roboyard.simulation.validation import EXPERIMENTS, Law, LawCheck, run_experiments
from roboyard.simulation.validation.drives import measure_spot_rotation, skid_rate, skid_torque
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
PAGE = Path(__file__).resolve().parents[2] / "docs" / "explanation" / "physics-validation.md"


@pytest.mark.parametrize("name", EXPERIMENTS)
def test_physics_agrees_with_laws_within_tolerances(name: str) -> None:
    page = PAGE.read_text("utf-8")
    for check in run_experiments(names=[name])[name]:
        assert check.passed, (
            f"{check.quantity}: {check.measured} for {check.expected}, {check.error:.4%} over {check.tolerance:.4%}"
        )
        # The page has these tolerances and sources in lines that begin with the quantity or the formula.
        (line,) = (line for line in page.splitlines() if line.startswith(f"| {check.quantity} |"))
        assert f"| {check.law.formula} |" in line
        assert f"| {100 * check.tolerance:g} % |" in line
        assert f"| {check.law.formula} | {check.law.source} |" in page
        stated_error = 0.01 * float(line.split(" | ")[4].removesuffix(" %"))
        assert stated_error == pytest.approx(check.error, abs=0.05 * check.tolerance)


def test_page_of_physics_validation_has_no_other_laws() -> None:
    """Every quantity of the page's table belongs to an experiment of the package."""
    quantities = {check.quantity for checks in run_experiments().values() for check in checks}
    lines = PAGE.read_text("utf-8").partition("| quantity |")[2].partition("\n\n")[0].splitlines()[2:]
    assert [line.split(" | ")[0].removeprefix("| ") for line in lines] == [
        check.quantity for checks in run_experiments().values() for check in checks
    ]
    assert len(quantities) == len(lines)


@pytest.mark.parametrize("name", ["impact", "restitution", "gyroscope", "free rotation"])
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


def test_check_compares_relative_error_with_tolerance() -> None:
    law = Law("b", "c")
    assert LawCheck("a", law, 2.0, 2.01, "m").error == pytest.approx(0.005)
    assert LawCheck("a", law, 2.0, 2.01, "m").passed
    assert not LawCheck("a", law, 0.0, 0.5, "m", scale=10.0).passed
    with pytest.raises(UnknownNameError, match="pendulum"):
        run_experiments(names=["perpetuum mobile"])
