"""Facts about a robot's drive: its file states each once, and all nodes take them from there."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from tests.harness.bus import BusHarness

import roboyard
from roboyard.bringup.robot_loader import load_robot
from roboyard.control.drive_config import DifferentialDriveConfig, DriveLimits, MecanumDriveConfig
from roboyard.localization.nodes import AmclNode, EkfNode
from roboyard.safety.nodes import CollisionMonitorNode

ROBOTS = sorted(
    path.parent.name
    for path in (Path(roboyard.__file__).parent / "robots").glob("*/*.yaml")
    if path.stem == path.parent.name
)
MECANUM = MecanumDriveConfig(type="mecanum", joints=("a", "b", "c", "d"), wheel_radius=0.05, wheelbase=0.4, track=0.3)
DIFFERENTIAL = DifferentialDriveConfig(
    type="differential", left_joints=("l",), right_joints=("r",), wheel_radius=0.1, track=0.4
)
FOOTPRINT = ((0.25, 0.2), (-0.25, 0.2), (-0.25, -0.2), (0.25, -0.2))


@pytest.mark.parametrize("name", ROBOTS)
def test_robot_file_states_no_fact_of_its_drive_twice(name: str) -> None:
    """A parameter of a node that has the value which the drive or its limits state is a second statement of it."""
    config = load_robot(name, use_calibration=False).config
    facts = dict(config.limits.values())
    if config.drive is not None:
        facts |= config.drive.values()
    repeated = [
        f"{node_name}.{key}"
        for node_name, node in config.nodes.items()
        for key, value in node.parameters.items()
        if facts.get(key) is not None and facts[key] == value
    ]
    assert not repeated


@pytest.mark.parametrize(
    ("limits", "expected"),
    [
        ({"acceleration": 2.5, "deceleration": 2.5, "angular_acceleration": 3.2}, (2.5, 1.5, 3.2, 3.0)),
        ({"acceleration": 1.0, "angular_acceleration": 2.0}, (1.0, 1.0, 2.0, 2.0)),
        ({}, (1.5, 1.5, 4.0, 3.0)),
    ],
)
def test_collision_monitor_brakes_no_harder_than_the_drive(
    limits: dict[str, float], expected: tuple[float, ...]
) -> None:
    braking = CollisionMonitorNode(footprint=FOOTPRINT, drive_limits=DriveLimits(**limits)).config.braking
    assert (
        braking.acceleration,
        braking.deceleration,
        braking.angular_acceleration,
        braking.angular_deceleration,
    ) == expected


def test_stated_braking_takes_precedence_over_the_drive() -> None:
    limits = DriveLimits(acceleration=2.5, deceleration=2.5)
    node = CollisionMonitorNode(footprint=FOOTPRINT, drive_limits=limits, deceleration=2.0)
    assert (node.config.braking.acceleration, node.config.braking.deceleration) == (2.5, 2.0)


@pytest.mark.parametrize(
    ("drive", "parameters", "expected"),
    [
        (MECANUM, {}, "omnidirectional"),
        (MECANUM, {"robot_model_type": "nav2_amcl::DifferentialMotionModel"}, "differential"),
        (DIFFERENTIAL, {}, "differential"),
        (None, {}, "differential"),
    ],
)
def test_amcl_takes_the_motion_model_of_the_drive(
    drive: MecanumDriveConfig | DifferentialDriveConfig | None, parameters: dict[str, str], expected: str
) -> None:
    resources = {} if drive is None else {"drive_geometry": drive}
    with BusHarness() as harness:
        node = harness.add(AmclNode(**resources, **parameters), "amcl")
        assert node._filter.config.motion_model_name == expected


def test_filter_takes_limits_of_commands_from_the_drive() -> None:
    limits = DriveLimits(acceleration=1.5, deceleration=2.0, angular_acceleration=4.0)
    commands = {"use_control": True, "control_config": (True, *(False,) * 4, True)}
    with BusHarness() as harness:
        control = harness.add(EkfNode(odom0="odom", drive_limits=limits, **commands), "ekf")._fusion.config.control
    velocity, command = np.zeros(6), np.array([9.0, 0, 0, 0, 0, 9.0])
    accelerations = control.acceleration_toward(velocity, command)
    assert (accelerations[0], accelerations[5]) == (1.5, 4.0)
    assert control.acceleration_toward(command, velocity)[0] == -2.0
    with BusHarness() as harness:
        stated = {"acceleration_limits": (0.5,) * 6}
        node = harness.add(EkfNode(odom0="odom", drive_limits=limits, **commands, **stated), "ekf")
        assert node._fusion.config.control.acceleration_toward(velocity, command)[0] == 0.5
