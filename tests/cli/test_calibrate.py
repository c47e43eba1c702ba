"""``roboyard calibrate odometry`` from the command line."""

from __future__ import annotations

from pathlib import Path

import pytest
from tests.cli.conftest import Command
from tests.scenarios.test_calibration import CART


def test_calibrate_writes_result_in_the_folder_of_the_robot_file(command: Command) -> None:
    Path("cart.urdf").write_text(CART)
    result = command("calibrate", "odometry", "./cart.urdf", "--turns", "4", "--seed", "3", "--out", "found", "--json")
    assert result.code == 0, result.err
    data = result.json
    assert data["maneuvers"] == 8
    assert data["turn_error_calibrated"] < 0.5 * data["turn_error_uncalibrated"]
    assert {Path(path).name for path in data["files"].values()} == {
        "report.html", "fit.png", "maneuvers.csv", "calibration.yaml",
    }  # fmt: skip
    assert all(Path(path).is_file() for path in data["files"].values())
    assert Path(data["stored_file"]).name == "cart.calibration.yaml"
    low, high = data["estimates"]["slip_factor"]["interval"]
    assert low < data["estimates"]["slip_factor"]["value"] < high
    displayed = command("check", "robot", "./cart.urdf")
    assert "as calibrated in cart.calibration.yaml" in displayed.err


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["nobody"], "no robot 'nobody'"),
        (["rover", "--world", "nowhere"], "no world 'nowhere'"),
        (["rover", "--turns", "2"], "turns"),
        (["rover", "--out", "full"], "not empty"),
        (["./stone.urdf"], "no drive with a left and a right side"),
    ],
)
def test_bad_input_is_one_line_and_leaves_nothing(command: Command, arguments: list[str], message: str) -> None:
    Path("full").mkdir()
    Path("full/thing").touch()
    Path("stone.urdf").write_text(
        '<robot name="stone"><link name="a"><inertial><mass value="1"/>'
        '<inertia ixx="1" iyy="1" izz="1" ixy="0" ixz="0" iyz="0"/></inertial></link></robot>'
    )
    result = command("calibrate", "odometry", *arguments)
    assert result.code == 2
    assert message in result.error
    assert not Path("runs").exists()
