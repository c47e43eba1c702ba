"""Plugins that move the body: mecanum, velocity control, planar move."""

from __future__ import annotations

from typing import Any

import numpy as np

from roboyard.errors import DescriptionError
from roboyard.scenarios.plugins.differential import read_radius
from roboyard.scenarios.plugins.odometry import TRUTH, read_place
from roboyard.scenarios.plugins.part import Part
from roboyard.scenarios.plugins.reading import PluginReader
from roboyard.scenarios.plugins.speeds import read_speeds
from roboyard.scenarios.robot_package import NodeSpec
from roboyard.scenarios.wheels import axle_of, rolls_sideways, wheels_of

_HOLDS = 60.0
"""How long a command holds [s]: the arbiter's longest; Gazebo holds it for ever."""


def mecanum(reader: PluginReader) -> Part:
    """Gazebo's MecanumDrive: four wheels that turn, and push the body along their rollers.

    Where the wheels have no rollers, neither links nor friction along one direction, the body is driven in the plane.

    Raises:
        DescriptionError: it names joints that are not there, or its numbers make no sense.
    """
    joints = tuple(
        joint
        for tag in ("front_left_joint", "front_right_joint", "back_left_joint", "back_right_joint")
        for joint in reader.joints(tag)[:1]
    )
    if len(joints) != 4:
        raise DescriptionError(
            f"a mecanum drive on {len(joints)} wheels", location=reader.where,
            valid="front_left_joint, front_right_joint, back_left_joint and back_right_joint",
        )  # fmt: skip
    wheels = wheels_of(reader.model, joints)
    place, speeds = read_place(reader, _root(reader)), read_speeds(reader)
    geometry: dict[str, Any] = {"joints": list(joints), "wheel_radius": read_radius(reader, [w.radius for w in wheels])}
    for name, tags, apart in (
        ("wheelbase", ("wheelbase", "wheel_base"), [wheel.x for wheel in wheels]),
        ("track", ("wheel_separation",), [wheels[k].y for k in (0, 2, 1, 3)]),
    ):
        value = reader.number(*tags)
        if value is None:
            value = float(np.mean(apart[:2]) - np.mean(apart[2:]))
            reader.note(f"{name} {value:g} m taken from the wheels' places: the plugin gives none")
        if value <= 0.0:
            raise DescriptionError(f"{name} {value:g}", location=reader.where, valid="a positive length [m]")
        geometry[name] = value
    geometry["axle_x"] = axle_of(reader.model, wheels, place.base_frame)
    side = {} if speeds.speed is None else {"side_speed": speeds.speed}
    rollers = all(rolls_sideways(reader.model, joint) for joint in joints)
    if not rollers:
        reader.note(
            "the wheels have no rollers (links that turn, or <fdir1> with a small <mu2>): the body is driven in the "
            "plane, the wheels turn with it"
        )
    return Part(
        nodes={
            "arbiter": NodeSpec("arbiter"),
            "drive": NodeSpec("roboyard.control.nodes:MecanumNode", {**geometry, **speeds.parameters(), **side}),
            "odometry": NodeSpec("roboyard.localization.nodes:MecanumOdometryNode", {**geometry, **place.parameters}),
        },
        drives=True,
        topics=place.topics,
        limits=speeds.limits,
        base=None if rollers else "planar",
        base_frame=place.base_frame,
        joint_rate=place.rate,
        standby=() if place.wanted else ("odometry",),
        findings=reader.findings(),
    )


def velocity_control(reader: PluginReader) -> Part:
    """Gazebo's VelocityControl: the body takes all six velocities, and holds them."""
    parameters: dict[str, Any] = {}
    for name in ("initial_linear", "initial_angular"):
        values = reader.numbers(name)
        if values:
            if len(values) != 3:
                raise DescriptionError(f"{name} of {len(values)} numbers", location=reader.where, valid="three numbers")
            parameters[name] = list(values)
    command = reader.topic("topic")
    reader.ignore(["link_name"], "commands are for the whole model, not for single links")
    reader.note(f"a command holds for {_HOLDS:g} s, not for ever")
    arbiter = NodeSpec("arbiter", {"unknown_timeout": _HOLDS})
    return Part(
        nodes={"arbiter": arbiter, "drive": NodeSpec("roboyard.control.nodes:VelocityNode", parameters)},
        drives=True,
        topics={"cmd_vel": command} if command and command != "cmd_vel" else {},
        base="free",
        findings=reader.findings(),
    )


def planar_move(reader: PluginReader) -> Part:
    """gazebo_ros's planar move: the body takes velocities in the plane; its odometry is the truth."""
    place = read_place(reader, _root(reader))
    reader.note("it has no wheels to count: its odometry is the simulation's truth, no estimate")
    nodes = {
        "arbiter": NodeSpec("arbiter"),
        "drive": NodeSpec("roboyard.control.nodes:VelocityNode", {"timeout": 0.5}),
    }
    parameters = {name: value for name, value in place.parameters.items() if name != "rate" or value > 0.0}
    nodes["odometry_truth"] = NodeSpec(TRUTH, parameters)
    return Part(
        nodes=nodes,
        drives=True,
        topics=place.topics,
        base="planar",
        base_frame=place.base_frame,
        standby=() if place.wanted else ("odometry_truth",),
        findings=reader.findings(),
    )


def _root(reader: PluginReader) -> str:
    return reader.model.roots[0].name if reader.model.roots else "base_link"
