"""An MJCF robot in an MJCF world runs the scenario of the rover."""

from pathlib import Path

import pytest
from tests.description.mjcf_samples import CART, SMALL_WORLD

from roboyard.scenarios import load_spec, run_scenario
from roboyard.scenarios.bringup import derive_package


def test_drive_of_an_mjcf_robot_is_found(tmp_path: Path) -> None:
    file = tmp_path / "cart.xml"
    file.write_text(CART)
    drive = derive_package(file, {}).file.nodes["drive"].parameters
    assert (drive["left_joints"], drive["right_joints"]) == (["left"], ["right"])
    assert (drive["wheel_radius"], drive["track"]) == pytest.approx((0.1, 0.3))


@pytest.mark.slow
def test_mjcf_robot_drives_in_an_mjcf_world(tmp_path: Path) -> None:
    robot, world = tmp_path / "cart.xml", tmp_path / "yard.xml"
    robot.write_text(CART)
    world.write_text(SMALL_WORLD)
    spec = load_spec("rover-drive", robot=str(robot), world=str(world), overrides=["duration=30 s"])
    outcome = run_scenario(spec, out=tmp_path / "run", serve=False, report=False)
    assert outcome.success, outcome.reason
    assert outcome.metrics["path_length"] > 10.0
