"""Brings up a robot that has no package of ours: which nodes run, with which parameters, by its description alone."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from roboyard.description import load_model
from roboyard.description.model import Model
from roboyard.scenarios.robot_package import Limits, NodeSpec, RobotFile, RobotPackage
from roboyard.scenarios.wheels import Drive, find_drive

_JOINT_RATE = 50.0
_SPEED, _TURN_RATE = 1.0, 2.0
"""For drives whose description states no limits [m/s, rad/s]."""


def derive_package(path: Path, arguments: dict[str, str], *, repair: bool = False) -> RobotPackage:
    """The package of a bare description.

    Raises:
        DescriptionError: it cannot be read, or its drive makes no sense.
    """
    return package_of(load_model(path, arguments=arguments, repair=repair), path, arguments)


def package_of(model: Model, path: Path, arguments: dict[str, str] | None = None) -> RobotPackage:
    """The package of a model that is loaded already: drive and odometry if it has wheels, joint states if joints."""
    nodes: dict[str, NodeSpec] = {}
    findings: tuple[str, ...] = ()
    limits = Limits()
    base_frame = model.roots[0].name if model.roots else "base_link"
    topics: dict[str, str] = {}
    movable = [joint for joint in model.joints if joint.type != "fixed"]
    drive = find_drive(model)
    if movable:
        rate = max(_JOINT_RATE, drive.odometry_rate or 0.0) if drive else _JOINT_RATE
        nodes["joint_states"] = NodeSpec("joint_states", {"rate": rate})
    nodes["robot_state"] = NodeSpec("robot_state")
    if drive is None:
        if movable:
            findings = ("no drive was found: the robot stands where it is put",)
    else:
        findings = drive.findings
        base_frame = drive.base_frame or base_frame
        limits = Limits(drive.speed, drive.turn_rate, drive.acceleration, drive.turn_acceleration)
        nodes |= _drive_nodes(drive, base_frame)
        topics = {k: v for k, v in (("cmd_vel", drive.command_topic), ("odom", drive.odometry_topic)) if v and v != k}
    file = RobotFile(
        description=Path(path.name),
        about=f"{model.name}, brought up by its description",
        arguments=arguments or {},
        base_frame=base_frame,
        limits=limits,
        topics=topics,
        nodes=nodes,
        default=tuple(nodes),
    )
    return RobotPackage(model.name, file, path, findings)


def _drive_nodes(drive: Drive, base_frame: str) -> dict[str, NodeSpec]:
    wheels: dict[str, Any] = {
        "left_joints": list(drive.left),
        "right_joints": list(drive.right),
        "wheel_radius": drive.radius,
        "track": drive.track,
    }
    limits: dict[str, Any] = {
        "speed": drive.speed if drive.speed is not None else _SPEED,
        "turn_rate": drive.turn_rate if drive.turn_rate is not None else _TURN_RATE,
    }
    if drive.acceleration is not None:
        limits["acceleration"] = drive.acceleration
    if drive.turn_acceleration is not None:
        limits["turn_acceleration"] = drive.turn_acceleration
    elif drive.acceleration is not None:
        # a limit on the rims' acceleration, as gazebo_ros states it, limits turning about the middle too
        limits["turn_acceleration"] = 2.0 * drive.acceleration / drive.track
    odometry: dict[str, Any] = {**wheels, "axle_x": drive.axle_x, "base_frame": base_frame}
    if drive.odometry_frame:
        odometry["odom_frame"] = drive.odometry_frame
    if drive.odometry_rate:
        odometry["rate"] = drive.odometry_rate
    return {
        "arbiter": NodeSpec("arbiter"),
        "drive": NodeSpec("drive", {**wheels, **limits}),
        "odometry": NodeSpec("odometry", odometry),
    }
