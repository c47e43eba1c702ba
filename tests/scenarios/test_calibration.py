"""Calibration of drives: maneuvers, estimates, report, and the scenario that a calibrated run leaves."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st
from tests.bringup.cart import CART

from roboyard.bringup.calibration_store import save_calibration
from roboyard.bringup.robot_loader import load_robot
from roboyard.errors import InputError
from roboyard.scenarios import load_scenario
from roboyard.scenarios.calibration import DriveCalibrationResult, calibrate_drive, plan_maneuvers, write_calibration
from roboyard.scenarios.resolve import resolve_scenario


@pytest.fixture(scope="module")
def cart(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("cart") / "cart.urdf"
    path.write_text(CART)
    return path


@pytest.fixture(scope="module")
def found(cart: Path) -> DriveCalibrationResult:
    return calibrate_drive(load_robot(str(cart), use_calibration=False), n_rotations=6, seed=2)


@given(st.integers(4, 60), st.floats(0.05, 2.0), st.floats(0.2, 3.0), st.floats(0.3, 5.0), st.integers(0, 99))
def test_every_second_move_reverses_the_one_before(n: int, v: float, w: float, clearance: float, seed: int) -> None:
    moves = plan_maneuvers(n, v, w, clearance, seed)
    assert all(back == forward.reversed_maneuver() for forward, back in zip(moves[::2], moves[1::2], strict=True))
    assert sum(move.kind != "straight" for move in moves) == n + n % 2
    assert all(abs(move.linear) <= v and abs(move.angular) <= w for move in moves)
    assert all(abs(move.linear) * move.duration <= 2.0 * clearance + 1e-9 for move in moves)
    assert moves == plan_maneuvers(n, v, w, clearance, seed)


def test_calibration_finds_the_true_wheels(found: DriveCalibrationResult) -> None:
    """Said: radius 0.11 m, track 0.43 m.  Built: 0.100 and 0.098 m, 0.40 m apart."""
    drive = found.fit.drive
    assert drive.wheel_radius * drive.left_radius_scale == pytest.approx(0.100, rel=0.01)
    assert drive.wheel_radius * drive.right_radius_scale == pytest.approx(0.098, rel=0.01)
    assert drive.left_radius_scale - drive.right_radius_scale == pytest.approx(0.02 / 0.99, rel=0.1)
    assert drive.effective_track == pytest.approx(0.40, rel=0.04)
    before, after = found.rotation_errors()
    assert np.sqrt(np.mean(after**2)) < 0.3 * np.sqrt(np.mean(before**2))
    for estimate in found.estimates.values():
        low, high = estimate.confidence_interval
        assert low < estimate.value < high


def test_calibration_report_is_complete(found: DriveCalibrationResult, tmp_path: Path) -> None:
    paths = write_calibration(found, tmp_path)
    assert paths["figure"].read_bytes().startswith(b"\x89PNG")
    assert "data:image/png;base64," in paths["report"].read_text()
    rows = paths["maneuvers"].read_text().splitlines()
    assert len(rows) == len(found.data.maneuvers) + 1
    assert write_calibration(found, tmp_path)["figure"].read_bytes() == paths["figure"].read_bytes()


def test_scenario_as_run_contains_the_calibration(found: DriveCalibrationResult, tmp_path: Path) -> None:
    (tmp_path / "cart.urdf").write_text(CART)
    (tmp_path / "s.yaml").write_text(
        "world: empty\nduration: 1 s\nrobots: {cart: {model: cart.urdf, parameters: {drive: {track: 0.5}}}}\n"
    )
    spec = load_scenario(str(tmp_path / "s.yaml"))
    assert "slip_factor" not in resolve_scenario(spec).to_yaml()
    save_calibration(load_robot(str(tmp_path / "cart.urdf")), found.calibration)
    written = yaml.safe_load(resolve_scenario(spec).to_yaml())["robots"]["cart"]["parameters"]
    assert written["odometry"]["slip_factor"] == found.calibration.slip_factor
    assert written["drive"] == {**found.calibration.drive_values(), "track": 0.5}


def test_robots_that_cannot_be_calibrated_are_refused(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="at least 4"):
        plan_maneuvers(3, 1.0, 1.0, 1.0, 0)
    path = tmp_path / "stone.urdf"
    path.write_text('<robot name="stone"><link name="a"><inertial><mass value="1"/><inertia ixx="1" iyy="1" izz="1" '
                    'ixy="0" ixz="0" iyz="0"/></inertial></link></robot>')  # fmt: skip
    with pytest.raises(InputError, match="no drive with a left and a right side"):
        calibrate_drive(load_robot(str(path)))


@pytest.mark.slow
def test_slip_factors_of_external_robots(external_data: Path) -> None:
    folder = external_data / "descriptions"
    burger = folder / "turtlebot3_burger/turtlebot3_gazebo/models/turtlebot3_burger/model.sdf"
    jackal = folder / "jackal/jackal_description/urdf/jackal.expanded.urdf"
    slip = {
        path: calibrate_drive(load_robot(str(path), use_calibration=False), n_rotations=12).fit.slip_factor
        for path in (burger, jackal)
    }
    assert slip[burger].value == pytest.approx(1.0, abs=0.02), "two wheels do not slip"
    # (wheelbase / track)² + 1, of wheels with equal loads: 0.262 m and 0.376 m
    assert slip[jackal].value == pytest.approx(1.0 + (0.262 / 0.376) ** 2, rel=0.05)


@pytest.mark.slow
def test_calibrated_rover_keeps_its_heading() -> None:
    import importlib.util

    path = Path(__file__).parents[2] / "benchmarks" / "calibration.py"
    spec = importlib.util.spec_from_file_location("calibration_benchmark", path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    found = calibrate_drive(load_robot("rover", use_calibration=False), seed=11)
    without, with_it = module.course(found, 11)
    assert abs(with_it) <= 0.05 * abs(without)
