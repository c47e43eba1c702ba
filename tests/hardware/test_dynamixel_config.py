"""Servo files: the file of the Akrobat matches its description, and errors state their location."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from roboyard.config import schema_table
from roboyard.errors import ConfigError, InputError
from roboyard.hardware.dynamixel.config import ServosConfig, load_servos
from roboyard.hardware.dynamixel.control_table import POSITION_UNIT
from roboyard.scenarios.hardware_run import ServoRobot


@pytest.fixture(scope="module")
def akrobat() -> ServoRobot:
    return ServoRobot.load("akrobat")


def test_akrobat_servo_file_matches_its_joints(akrobat: ServoRobot) -> None:
    assert akrobat.legs is not None
    assert akrobat.servos.joints == akrobat.legs.joints
    assert akrobat.servos.ids == tuple(int(joint[1:]) for joint in akrobat.servos.joints)
    # The limits of the description were computed from those of the servos and differ by rounding only.
    limits = np.array([servo.limits for servo in akrobat.settings.servos.values()])
    limit_angles = (limits - akrobat.servos.zero_position[:, None]) * POSITION_UNIT
    np.testing.assert_allclose(akrobat.servos.min_position, limit_angles[:, 0], atol=1.1 * POSITION_UNIT)
    np.testing.assert_allclose(akrobat.servos.max_position, limit_angles[:, 1], atol=1.1 * POSITION_UNIT)
    assert (akrobat.servos.max_velocity == 1.0).all()


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("{}", "servos"),
        ("servos: {}", "no servos"),
        ("servos: {m11: {id: 254}}", "id.*254.*0 to 253"),
        ("servos: {m11: {id: 1, zero_position: 1024}}", "zero_position.*1023"),
        ("servos: {m11: {id: 1, direction: 2}}", "direction"),
        ("servos: {m11: {id: 1, limits: [600, 500]}}", "limits.*lower limit first"),
        ("servos: {m11: {id: 1, limits: [0, 100]}}", "do not overlap.*another zero_position"),
        ("servos: {m11: {id: 1}, m12: {id: 1}}", "servo id 1 is already used by joint m11"),
        ("servos: {knee: {id: 1}}", "joint 'knee' does not exist.*m11"),
        ("{servos: {m11: {id: 1}}, baud: 1234}", "baud.*57600"),
        ("{servos: {m11: {id: 1}}, rate: 5 kHz}", "rate"),
        ("{servos: {m11: {id: 1}}, fault_limits: {min_voltage: 12 A}}", "min_voltage"),
        ("{servos: {m11: {id: 1}}, fault_limits: {on_fault: jump}}", "on_fault.*hold"),
    ],
)
def test_invalid_servo_files_are_refused(tmp_path: Path, akrobat: ServoRobot, text: str, message: str) -> None:
    path = tmp_path / "servos.yaml"
    path.write_text(text)
    with pytest.raises(ConfigError, match=message) as caught:
        load_servos(path, akrobat.model)
    assert "servos.yaml" in str(caught.value)


def test_servo_file_must_name_every_leg_joint(tmp_path: Path, akrobat: ServoRobot) -> None:
    path = tmp_path / "servos.yaml"
    path.write_text("servos: {m11: {id: 1}}")
    with pytest.raises(ConfigError, match="joint m12 has no servo"):
        load_servos(path, akrobat.model, ("m11", "m12"))


def test_robot_without_servos_is_an_error() -> None:
    with pytest.raises(InputError, match="names no servos"):
        ServoRobot.load("rover")


def test_page_lists_all_keys_of_a_servo_file() -> None:
    page = Path(__file__).parents[2] / "docs" / "reference" / "hardware.md"
    assert schema_table(ServosConfig) in page.read_text("utf-8")
