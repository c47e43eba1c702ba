"""Storage of drive calibrations: where it lies, when it is valid, what it changes, and damaged files."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest
from tests.bringup.cart import CART
from tests.full_disk import full_disk

from roboyard.bringup.calibration_store import (
    DriveCalibration,
    calibration_folder,
    description_hash,
    load_calibration,
    save_calibration,
)
from roboyard.bringup.robot_config import RobotPackage
from roboyard.bringup.robot_loader import load_robot
from roboyard.control.drive_config import DifferentialDriveConfig
from roboyard.errors import ConfigError, RunError


def make_calibration(package: RobotPackage) -> DriveCalibration:
    """A calibration of what the package describes."""
    return DriveCalibration(
        package.name, description_hash(package), wheel_radius=0.101, left_radius_scale=1.01, right_radius_scale=0.99,
        slip_factor=1.7, track=drive_of(package).track,
    )  # fmt: skip


def drive_of(package: RobotPackage) -> DifferentialDriveConfig:
    """The package's drive, which has two sides."""
    assert isinstance(package.config.drive, DifferentialDriveConfig)
    return package.config.drive


def test_calibration_is_used_until_the_robot_changes(tmp_path: Path) -> None:
    path = tmp_path / "cart.urdf"
    path.write_text(CART)
    package = load_robot(str(path))
    assert drive_of(package).wheel_radius == 0.11
    record = make_calibration(package)
    stored_path = save_calibration(package, record)
    assert stored_path == tmp_path / "cart.calibration.yaml"
    repeated = load_robot(str(path))
    calibrated = drive_of(repeated).values()
    assert {name: calibrated[name] for name in record.drive_values()} == record.drive_values()
    assert drive_of(repeated).left_joints == drive_of(package).left_joints
    assert any("calibrated" in finding and str(tmp_path) not in finding for finding in repeated.findings)
    assert drive_of(load_robot(str(path), use_calibration=False)).wheel_radius == 0.11
    path.write_text(CART.replace("0.098", "0.097"))
    changed = load_robot(str(path))
    assert drive_of(changed).wheel_radius == 0.11
    assert any("has changed" in finding for finding in changed.findings)


def test_failed_storing_keeps_the_older_calibration(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path / "home"))
    (tmp_path / "cart.urdf").write_text(CART)
    package = load_robot(str(tmp_path / "cart.urdf"), use_calibration=False)
    record = make_calibration(package)
    stored_path = save_calibration(package, record)
    before = stored_path.read_bytes()
    newer = replace(record, slip_factor=record.slip_factor + 0.1)
    with (
        full_disk(),
        pytest.raises(RunError, match=rf"{stored_path}: .*cannot be stored: .*the older one is unchanged"),
    ):
        save_calibration(package, newer)
    assert stored_path.read_bytes() == before
    assert not calibration_folder().exists()  # the older one would hide it there
    assert load_calibration(package)[0] == record
    assert drive_of(load_robot(str(tmp_path / "cart.urdf"))).slip_factor == record.slip_factor
    assert load_calibration(package)[0] != newer
    save_calibration(package, newer)
    assert load_calibration(package)[0] == newer


@pytest.mark.parametrize("damage", [b"", b"robot: ca", b"\x00\xff\x13", b"[1, 2]\n", b"{"])
def test_damaged_calibration_is_one_error_with_advice(tmp_path: Path, damage: bytes) -> None:
    source = tmp_path / "cart.urdf"
    source.write_text(CART)
    package = load_robot(str(source), use_calibration=False)
    stored_path = save_calibration(package, make_calibration(package))
    stored_path.write_bytes(damage)
    with pytest.raises(ConfigError) as caught:
        load_robot(str(source))
    message = str(caught.value)
    assert message.startswith(f"{stored_path}: the stored calibration cannot be used: ")
    assert message.endswith(f"(remove the file, or calibrate anew: roboyard calibrate odometry {source})")
    assert "\n" not in message
    assert save_calibration(package, make_calibration(package)) == stored_path  # as the advice says
    assert load_robot(str(source)).findings


def test_digest_depends_on_the_described_model(tmp_path: Path) -> None:
    """A comment changes nothing, nor does another folder; an included file's number does."""
    part = CART[CART.index(">") + 1 :]
    outer = '<robot name="cart" xmlns:xacro="http://ros.org/wiki/xacro"><xacro:include filename="part.xacro"/></robot>'

    def write(folder: str, radius: str, text: str = "") -> Path:
        (tmp_path / folder).mkdir(exist_ok=True)
        inner = f'<robot xmlns:xacro="http://ros.org/wiki/xacro">{text}{part}'
        (tmp_path / folder / "part.xacro").write_text(inner.replace("0.098", radius))
        path = tmp_path / folder / "cart.urdf.xacro"
        path.write_text(outer)
        return path

    first = description_hash(load_robot(str(write("a", "0.098"))))
    assert description_hash(load_robot(str(write("b", "0.098", "<!-- the same -->")))) == first
    assert description_hash(load_robot(str(write("a", "0.097")))) != first


def test_calibration_of_installed_robot_is_in_the_user_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path))
    package = load_robot("rover")
    stored_path = save_calibration(package, make_calibration(package))
    assert stored_path == calibration_folder() / "rover.calibration.yaml"
    assert str(stored_path).startswith(str(tmp_path))
    assert drive_of(load_robot("rover")).slip_factor == 1.7
    stored_path.write_text(stored_path.read_text().replace("1.7", "-1"))
    with pytest.raises(ConfigError, match="slip_factor"):
        load_calibration(package)


def test_calibration_of_a_robot_without_a_stated_drive_is_not_used(tmp_path: Path) -> None:
    """Numbers that a file writes into the nodes' parameters stay as they are, and a finding says so."""
    (tmp_path / "cart.urdf").write_text(CART)
    source = tmp_path / "mine.yaml"
    source.write_text("description: cart.urdf\nnodes: {drive: {type: differential_drive, parameters: {track: 0.4}}}\n")
    package = load_robot(str(source))
    stored_path = save_calibration(package, make_calibration(load_robot(str(tmp_path / "cart.urdf"))))
    assert stored_path == tmp_path / "mine.calibration.yaml"
    loaded = load_robot(str(source))
    assert loaded.config == package.config
    assert any("no `drive` of type differential" in finding for finding in loaded.findings)
