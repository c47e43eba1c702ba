"""Calibration of drives: moves, estimates, and where they are stored."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st
from tests.full_disk import full_disk

from roboyard.bringup.calibration_store import (
    DriveCalibration,
    calibration_folder,
    description_hash,
    load_calibration,
    save_calibration,
)
from roboyard.bringup.robot_loader import load_robot
from roboyard.errors import ConfigError, InputError, RunError
from roboyard.scenarios import load_scenario
from roboyard.scenarios.calibration import DriveCalibrationResult, calibrate_drive, plan_maneuvers, write_calibration
from roboyard.scenarios.resolve import resolve_scenario

WHEEL = """<link name="{name}"><collision><origin rpy="1.5707963 0 0"/>
      <geometry><cylinder radius="{radius}" length="0.02"/></geometry></collision>
    <inertial><mass value="0.5"/><inertia ixx="2e-3" iyy="2.5e-3" izz="2e-3" ixy="0" ixz="0" iyz="0"/></inertial></link>
  <joint name="{name}_joint" type="continuous"><parent link="base"/><child link="{name}"/>
    <origin xyz="0.1 {y} {radius}"/><axis xyz="0 1 0"/><limit effort="5" velocity="30"/></joint>"""
CART = f"""<robot name="cart">
  <link name="base"><inertial><origin xyz="0.06 0 0.1"/><mass value="5"/>
      <inertia ixx=".1" iyy=".1" izz=".1" ixy="0" ixz="0" iyz="0"/></inertial></link>
  {WHEEL.format(name="left", y=0.2, radius=0.1)}{WHEEL.format(name="right", y=-0.2, radius=0.098)}
  <link name="caster"><collision><geometry><sphere radius="0.03"/></geometry></collision>
    <inertial><mass value="0.2"/><inertia ixx="1e-4" iyy="1e-4" izz="1e-4" ixy="0" ixz="0" iyz="0"/></inertial></link>
  <joint name="caster_joint" type="fixed"><parent link="base"/><child link="caster"/>
    <origin xyz="-0.15 0 0.03"/></joint>
  <gazebo reference="caster"><mu1>0.001</mu1><mu2>0.001</mu2></gazebo>
  <gazebo><plugin name="diff" filename="libgazebo_ros_diff_drive.so"><left_joint>left_joint</left_joint>
    <right_joint>right_joint</right_joint><wheel_separation>0.43</wheel_separation><wheel_diameter>0.22</wheel_diameter>
    </plugin></gazebo>
</robot>"""


@pytest.fixture(scope="module")
def cart(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("cart") / "cart.urdf"
    path.write_text(CART)
    return path


@pytest.fixture(scope="module")
def found(cart: Path) -> DriveCalibrationResult:
    return calibrate_drive(load_robot(str(cart), use_calibration=False), n_turns=6, seed=2)


@given(st.integers(4, 60), st.floats(0.05, 2.0), st.floats(0.2, 3.0), st.floats(0.3, 5.0), st.integers(0, 99))
def test_every_second_move_reverses_the_one_before(n: int, v: float, w: float, room: float, seed: int) -> None:
    moves = plan_maneuvers(n, v, w, room, seed)
    assert all(back == there.reversed_maneuver() for there, back in zip(moves[::2], moves[1::2], strict=True))
    assert sum(move.kind != "straight" for move in moves) == n + n % 2
    assert all(abs(move.linear) <= v and abs(move.angular) <= w for move in moves)
    assert all(abs(move.linear) * move.duration <= 2.0 * room + 1e-9 for move in moves)
    assert moves == plan_maneuvers(n, v, w, room, seed)


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
        low, high = estimate.interval
        assert low < estimate.value < high


def test_calibration_report_is_complete(found: DriveCalibrationResult, tmp_path: Path) -> None:
    paths = write_calibration(found, tmp_path)
    assert paths["figure"].read_bytes().startswith(b"\x89PNG")
    assert "data:image/png;base64," in paths["report"].read_text()
    rows = paths["maneuvers"].read_text().splitlines()
    assert len(rows) == len(found.data.maneuvers) + 1
    assert write_calibration(found, tmp_path)["figure"].read_bytes() == paths["figure"].read_bytes()


def test_calibration_is_used_until_the_robot_changes(found: DriveCalibrationResult, tmp_path: Path) -> None:
    path = tmp_path / "cart.urdf"
    path.write_text(CART)
    package = load_robot(str(path))
    assert package.node("drive").parameters["wheel_radius"] == 0.11
    kept = save_calibration(package, found.calibration)
    assert kept == tmp_path / "cart.calibration.yaml"
    repeated = load_robot(str(path))
    for node in ("drive", "odometry"):
        numbers = repeated.node(node).parameters
        assert {name: numbers[name] for name in found.calibration.parameters()} == found.calibration.parameters()
    assert any("calibrated" in finding and str(tmp_path) not in finding for finding in repeated.findings)
    assert load_robot(str(path), use_calibration=False).node("drive").parameters["wheel_radius"] == 0.11
    path.write_text(CART.replace("0.098", "0.097"))
    changed = load_robot(str(path))
    assert changed.node("drive").parameters["wheel_radius"] == 0.11
    assert any("has changed" in finding for finding in changed.findings)


def test_failed_storing_keeps_the_older_calibration(
    found: DriveCalibrationResult, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path / "home"))
    (tmp_path / "cart.urdf").write_text(CART)
    package = load_robot(str(tmp_path / "cart.urdf"), use_calibration=False)
    kept = save_calibration(package, found.calibration)
    before = kept.read_bytes()
    newer = replace(found.calibration, slip_factor=found.calibration.slip_factor + 0.1)
    with full_disk(), pytest.raises(RunError, match=rf"{kept}: .*cannot be stored: .*the older one is unchanged"):
        save_calibration(package, newer)
    assert kept.read_bytes() == before
    assert not calibration_folder().exists()  # the older one would hide it there
    assert load_calibration(package)[0] == found.calibration
    assert (
        load_robot(str(tmp_path / "cart.urdf")).node("drive").parameters["slip_factor"] == found.calibration.slip_factor
    )
    assert load_calibration(package)[0] != newer
    save_calibration(package, newer)
    assert load_calibration(package)[0] == newer


@pytest.mark.parametrize("damage", [b"", b"robot: ca", b"\x00\xff\x13", b"[1, 2]\n", b"{"])
def test_damaged_calibration_is_one_error_with_advice(
    found: DriveCalibrationResult, tmp_path: Path, damage: bytes
) -> None:
    source = tmp_path / "cart.urdf"
    source.write_text(CART)
    kept = save_calibration(load_robot(str(source), use_calibration=False), found.calibration)
    kept.write_bytes(damage)
    with pytest.raises(ConfigError) as caught:
        load_robot(str(source))
    message = str(caught.value)
    assert message.startswith(f"{kept}: the stored calibration cannot be used: ")
    assert message.endswith(f"(remove the file, or calibrate anew: roboyard calibrate odometry {source})")
    assert "\n" not in message
    assert (
        save_calibration(load_robot(str(source), use_calibration=False), found.calibration) == kept
    )  # as the advice says
    assert load_robot(str(source)).findings


def test_digest_depends_on_the_described_model(found: DriveCalibrationResult, tmp_path: Path) -> None:
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
    assert written["drive"] == {**found.calibration.parameters(), "track": 0.5}


def test_calibration_of_installed_robot_is_in_the_user_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path))
    package = load_robot("rover")
    numbers = {"wheel_radius": 0.101, "left_radius_scale": 1.0, "right_radius_scale": 1.0, "slip_factor": 1.7}
    record = DriveCalibration("rover", description_hash(package), **numbers, track=0.35)
    kept = save_calibration(package, record)
    assert kept == calibration_folder() / "rover.calibration.yaml"
    assert str(kept).startswith(str(tmp_path))
    assert load_robot("rover").node("odometry").parameters["slip_factor"] == 1.7
    kept.write_text(kept.read_text().replace("1.7", "-1"))
    with pytest.raises(ConfigError, match="slip_factor"):
        load_calibration(package)


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
        path: calibrate_drive(load_robot(str(path), use_calibration=False), n_turns=12).fit.slip_factor
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
