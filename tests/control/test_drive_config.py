"""Drives and their limits are stated once: nodes of all types of drives take them as defaults."""

from __future__ import annotations

from dataclasses import fields
from typing import Any

import pytest
from tests.harness.bus import BusHarness
from tests.harness.hardware import FakeHardware

from roboyard.bus import Node
from roboyard.control import PlanarTwist
from roboyard.control.drive_config import (
    AckermannDriveConfig,
    DifferentialDriveConfig,
    DriveConfig,
    DriveLimits,
    FreeBaseConfig,
    MecanumDriveConfig,
    PlanarBaseConfig,
)
from roboyard.control.nodes import AckermannDriveNode, DifferentialDriveNode, MecanumDriveNode, VelocityBaseNode
from roboyard.control.nodes.velocity_base import DriveCommandNode
from roboyard.errors import ConfigError
from roboyard.localization.nodes import AckermannOdometryNode, MecanumOdometryNode, OdometryNode

DIFFERENTIAL = DifferentialDriveConfig(
    type="differential", left_joints=("a", "b"), right_joints=("c", "d"), wheel_radius=0.08, track=0.4, slip_factor=1.3,
    left_radius_scale=1.01, right_radius_scale=0.99, axle_x=0.02,
)  # fmt: skip
MECANUM = MecanumDriveConfig(
    type="mecanum", joints=("a", "b", "c", "d"), wheel_radius=0.05, wheelbase=0.46, track=0.32, axle_x=0.01
)
CAR = AckermannDriveConfig(
    type="ackermann", left_joints=("a",), right_joints=("b",), left_steered_joints=("c",), right_steered_joints=("d",),
    left_steering_joints=("e",), right_steering_joints=("f",), wheel_radius=0.3, wheelbase=1.1, track=0.9,
    kingpin_width=0.7, steering_limit=0.6, steering_rate=1.5, axle_x=-0.4,
)  # fmt: skip
LIMITS = DriveLimits(
    speed=0.7, reverse_speed=0.3, lateral_speed=0.5, angular_speed=1.1, acceleration=0.9, deceleration=1.9,
    angular_acceleration=2.1, wheel_speed=17.0,
)  # fmt: skip
NODES = [
    (DIFFERENTIAL, DifferentialDriveNode, OdometryNode),
    (MECANUM, MecanumDriveNode, MecanumOdometryNode),
    (CAR, AckermannDriveNode, AckermannOdometryNode),
]


def hardware() -> FakeHardware:
    """Joints a to f."""
    return FakeHardware(tuple("abcdef"), lambda: 0, modes=["velocity", "position"])


@pytest.mark.parametrize(("drive", "node_class", "odometry_class"), NODES)
def test_drive_and_odometry_take_every_number_of_the_drive(
    drive: DriveConfig, node_class: type[Node], odometry_class: type[Node]
) -> None:
    node = node_class(hardware=hardware(), drive_geometry=drive, drive_limits=LIMITS)
    odometry = odometry_class(drive_geometry=drive)
    stated = {name: value for name, value in drive.values().items() if name not in ("type", "has_rollers")}
    for name, value in stated.items():
        takers = [one for one in (node, odometry) if name in one.parameters()]
        assert takers, name
        assert all(one.parameters()[name] == value for one in takers), name
    shared = {"wheel_radius", "track"} & node.parameters().keys()
    assert {name: node.parameters()[name] for name in shared} == {name: odometry.parameters()[name] for name in shared}


@pytest.mark.parametrize(("drive", "node_class", "odometry_class"), NODES)
def test_drive_nodes_keep_the_stated_limits(
    drive: DriveConfig, node_class: type[Node], odometry_class: type[Node]
) -> None:
    parameters = node_class(hardware=hardware(), drive_geometry=drive, drive_limits=LIMITS).parameters()
    named = {"angular_speed": 1.1, "angular_acceleration": 2.1, "speed": 0.7, "reverse_speed": 0.3, "deceleration": 1.9}
    assert {name: parameters[name] for name in named} == named
    defaults = node_class(hardware=hardware(), drive_geometry=drive, drive_limits=DriveLimits()).parameters()
    assert defaults == {**node_class(hardware=hardware(), drive_geometry=drive).parameters()}


def test_constructor_arguments_override_the_robot() -> None:
    parameters: dict[str, Any] = {"track": 0.5, "speed": 0.2}
    node = DifferentialDriveNode(hardware=hardware(), drive_geometry=DIFFERENTIAL, drive_limits=LIMITS, **parameters)
    assert (node.config.wheels.track, node.config.ramps.speed) == (0.5, 0.2)
    assert (node.config.wheels.wheel_radius, node.config.ramps.angular_speed) == (0.08, 1.1)


def test_node_of_another_type_of_drive_is_refused() -> None:
    with pytest.raises(ConfigError, match=r"drive_geometry.*MecanumDriveConfig.*DifferentialDriveConfig"):
        OdometryNode(drive_geometry=MECANUM)


def test_all_drive_nodes_have_one_base(harness: BusHarness) -> None:
    assert all(
        issubclass(one, DriveCommandNode)
        for one in (DifferentialDriveNode, MecanumDriveNode, AckermannDriveNode, VelocityBaseNode)
    )


@pytest.mark.parametrize(
    ("drive", "motion"),
    [
        (DIFFERENTIAL, None),
        (MECANUM, None),
        (MECANUM.replace({"has_rollers": False}), "planar"),
        (CAR, None),
        (PlanarBaseConfig(type="planar"), "planar"),
        (FreeBaseConfig(type="free"), "free"),
    ],
)
def test_body_moves_by_itself_where_no_wheel_moves_it(drive: DriveConfig, motion: str | None) -> None:
    assert drive.base_motion == motion


def test_tightest_curve_is_that_of_the_steering_limit() -> None:
    assert DIFFERENTIAL.min_turning_radius == 0.0
    assert CAR.curvature(PlanarTwist(1.0, 0.0, 99.0)) == pytest.approx(1.0 / CAR.min_turning_radius)


def test_contradicting_limits_and_wheels_are_refused() -> None:
    with pytest.raises(ConfigError, match="at most angular_speed"):
        DriveLimits(angular_speed=0.5, min_angular_speed=0.6)
    with pytest.raises(ConfigError, match="3 joints"):
        MECANUM.replace({"joints": ("a", "b", "c")})
    with pytest.raises(ConfigError, match="wheelbase"):
        CAR.replace({"wheelbase": 0.0})


def test_every_limit_but_the_smallest_speeds_reaches_a_drive_node() -> None:
    keys = {*DifferentialDriveNode.config_class.keys(), *MecanumDriveNode.config_class.keys()}
    unused = {field.name for field in fields(DriveLimits)} - {"min_speed", "min_angular_speed"}
    assert len(LIMITS.node_parameters(keys)) == len(unused)
