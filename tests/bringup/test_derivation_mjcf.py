"""An MJCF robot in an MJCF world runs the scenario of the rover."""

from pathlib import Path

import pytest
from tests.description.mjcf_samples import CART, SMALL_WORLD

from roboyard.bringup.derivation import derive_package
from roboyard.control.drive_config import DifferentialDriveConfig
from roboyard.scenarios import load_scenario, run_scenario
from roboyard.scenarios.run_options import RunOptions


def test_drive_of_an_mjcf_robot_is_found(tmp_path: Path) -> None:
    file = tmp_path / "cart.xml"
    file.write_text(CART)
    drive = derive_package(file, {}).config.drive
    assert isinstance(drive, DifferentialDriveConfig)
    assert (drive.left_joints, drive.right_joints) == (("left",), ("right",))
    assert (drive.wheel_radius, drive.track) == pytest.approx((0.1, 0.3))


@pytest.mark.slow
def test_mjcf_robot_drives_in_an_mjcf_world(tmp_path: Path) -> None:
    robot, world = tmp_path / "cart.xml", tmp_path / "yard.xml"
    robot.write_text(CART)
    world.write_text(SMALL_WORLD)
    spec = load_scenario("rover-drive", robot=str(robot), world=str(world), overrides=["duration=30 s"])
    outcome = run_scenario(spec, RunOptions(out=tmp_path / "run", serve=False, write_report=False))
    assert outcome.success, outcome.failure_reason
    assert outcome.metrics["path_length"] > 10.0
