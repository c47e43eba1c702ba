"""Differential and skid-steer drive plugins of all generations."""

from __future__ import annotations

from typing import Any

import numpy as np

from roboyard.errors import DescriptionError
from roboyard.scenarios.plugins.odometry import OdometryPlace, read_place
from roboyard.scenarios.plugins.part import Part
from roboyard.scenarios.plugins.reading import PluginReader
from roboyard.scenarios.plugins.speeds import Speeds, read_speeds
from roboyard.scenarios.robot_package import NodeSpec
from roboyard.scenarios.wheels import Drive, axle_of, wheels_of

LEFT = ("left_joint", "leftJoint", "left_front_joint", "leftFrontJoint", "left_rear_joint", "leftRearJoint",
        "front_left_joint", "back_left_joint", "rear_left_joint")  # fmt: skip
RIGHT = tuple(tag.replace("left", "right") for tag in LEFT)

_GAZEBO_RADIUS = 0.2
"""What Gazebo's drives take where nobody says [m]."""


def names_two_sides(reader: PluginReader) -> bool:
    """Whether a plugin nobody knows still says which joints are left and right."""
    return reader.has(*LEFT) and reader.has(*RIGHT)


def differential(reader: PluginReader) -> Part:
    """The drive's nodes.

    Raises:
        DescriptionError: it names joints that are not there, or its numbers make no sense.
    """
    place, speeds = read_place(reader, _root(reader)), read_speeds(reader)
    drive = read_drive(reader, place)
    reader.ignore(["max_wheel_torque", "torque", "wheel_torque", "wheelTorque"], "the joints' own effort limits hold")
    reader.flag("legacyMode", "legacy_mode", default=False)  # of Gazebo's own mix-up of left and right
    reader.ignore(["num_wheel_pairs"], "all wheels named count")
    parameters = drive_parameters(drive)
    return two_sided(parameters, drive.axle_x, speeds, place, reader.findings())


def two_sided(
    wheels: dict[str, Any], axle_x: float, speeds: Speeds, place: OdometryPlace, findings: tuple[str, ...]
) -> Part:
    """Arbiter, drive and odometry on the wheels of two sides."""
    limits = speeds.parameters()
    if speeds.turn_acceleration is None and speeds.acceleration is not None:
        # a limit on the rims' acceleration, as gazebo_ros states it, limits turning about the middle too
        limits["turn_acceleration"] = 2.0 * speeds.acceleration / wheels["track"]
    return Part(
        nodes={
            "arbiter": NodeSpec("arbiter"),
            "drive": NodeSpec("drive", {**wheels, **limits}),
            "odometry": NodeSpec("odometry", {**wheels, "axle_x": axle_x, **place.parameters}),
        },
        drives=True,
        topics=place.topics,
        limits=speeds.limits,
        base_frame=place.base_frame,
        joint_rate=place.rate,
        standby=() if place.wanted else ("odometry",),
        findings=findings,
    )


def drive_parameters(drive: Drive) -> dict[str, Any]:
    """The geometry as the nodes take it."""
    return {
        "left_joints": list(drive.left),
        "right_joints": list(drive.right),
        "wheel_radius": drive.radius,
        "track": drive.track,
    }


def read_drive(reader: PluginReader, place: OdometryPlace) -> Drive:
    """The wheels: what the plugin says, the rest from their places and shapes.

    Raises:
        DescriptionError: it names joints that are not there, or its numbers make no sense.
    """
    left, right = reader.joints(*LEFT), reader.joints(*RIGHT)
    if not left or not right:
        raise DescriptionError(
            "a drive without wheels on both sides", location=reader.where, valid="left and right joints"
        )
    wheels = wheels_of(reader.model, (*left, *right))
    radius = read_radius(reader, [wheel.radius for wheel in wheels])
    track = reader.number("wheel_separation", "wheelSeparation")
    if track is None:
        of_left, of_right = wheels[: len(left)], wheels[len(left) :]
        track = float(np.mean([wheel.y for wheel in of_left]) - np.mean([wheel.y for wheel in of_right]))
        reader.note(f"track {track:g} m taken from the wheels' places: the plugin gives none")
    if track <= 0.0:
        raise DescriptionError(f"wheel radius {radius}, track {track}", location=reader.where, valid="positive lengths")
    return Drive(left, right, radius, track, axle_of(reader.model, wheels, place.base_frame))


def read_radius(reader: PluginReader, shapes: list[float | None]) -> float:
    """The wheels' radius [m]: stated, or of their shape, or Gazebo's default.

    Raises:
        DescriptionError: it is not positive.
    """
    radius = reader.number("wheel_radius", "wheelRadius")
    diameter = reader.number("wheel_diameter", "wheelDiameter")
    if radius is None and diameter is not None:
        radius = diameter / 2.0
    if radius is None:
        radius = next((shape for shape in shapes if shape), None)
        source = "the wheels' shape" if radius is not None else "Gazebo's default"
        radius = _GAZEBO_RADIUS if radius is None else radius
        reader.note(f"wheel radius {radius} m taken from {source}: the plugin gives none")
    if radius <= 0.0:
        raise DescriptionError(f"wheel radius {radius}", location=reader.where, valid="a positive length [m]")
    return radius


def _root(reader: PluginReader) -> str:
    return reader.model.roots[0].name if reader.model.roots else "base_link"
