"""Ackermann steering plugins."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from roboyard.errors import DescriptionError
from roboyard.scenarios.plugins.differential import read_radius
from roboyard.scenarios.plugins.odometry import read_place
from roboyard.scenarios.plugins.part import Part
from roboyard.scenarios.plugins.reading import PluginReader
from roboyard.scenarios.plugins.speeds import read_speeds
from roboyard.scenarios.robot_package import NodeSpec
from roboyard.scenarios.wheels import Wheel, axle_of, wheels_of

_LEFT = ("left_joint", "front_left_joint", "rear_left_joint")
_RIGHT = ("right_joint", "front_right_joint", "rear_right_joint")


def ackermann(reader: PluginReader) -> Part:
    """Gazebo's AckermannSteering and gazebo_ros's ackermann drive.

    Raises:
        DescriptionError: it names joints that are not there, or its numbers make no sense.
    """
    model = reader.model
    left, right = reader.joints(*_LEFT), reader.joints(*_RIGHT)
    steering = reader.joints("left_steering_joint"), reader.joints("right_steering_joint")
    if not all(steering):
        raise DescriptionError(
            "no joint that steers", where=reader.where, valid="left_steering_joint and right_steering_joint"
        )
    steered_links = {model.joint(name).child for side in steering for name in side}
    groups = {
        "left_joints": [name for name in left if model.joint(name).parent not in steered_links],
        "right_joints": [name for name in right if model.joint(name).parent not in steered_links],
        "left_steered_joints": [name for name in left if model.joint(name).parent in steered_links],
        "right_steered_joints": [name for name in right if model.joint(name).parent in steered_links],
        "left_steering_joints": list(steering[0]),
        "right_steering_joints": list(steering[1]),
    }
    place, speeds = read_place(reader, model.roots[0].name if model.roots else "base_link"), read_speeds(reader)
    wheels = wheels_of(model, (*left, *right))
    geometry = _geometry(reader, wheels, groups, place.base_frame)
    steers = {"steering_limit": _limit(reader)}
    reader.ignore(["steering_wheel_joint"], "the wheel in the driver's hand does not turn")
    reader.ignore(
        [f"{side}_{gain}" for side in ("left_steering", "right_steering", "linear_velocity")
         for gain in ("pid_gain", "i_range")] + ["steer_p_gain"],
        "the joints' own servos hold",
    )  # fmt: skip
    if reader.flag("steering_only", default=False):
        reader.note("<steering_only> not followed: it drives, too, as twists say")
    axle_x = geometry.pop("axle_x")
    shape = {**groups, **geometry}
    return Part(
        nodes={
            "arbiter": NodeSpec("arbiter"),
            "drive": NodeSpec(
                "roboyard.control.nodes:AckermannNode", {**shape, **steers, **speeds.parameters()}
            ),
            "odometry": NodeSpec(
                "roboyard.localization.nodes:AckermannOdometryNode", {**shape, "axle_x": axle_x, **place.parameters}
            ),
        },
        drives=True,
        topics=place.topics,
        limits=speeds.limits,
        base_frame=place.base_frame,
        joint_rate=place.rate,
        standby=() if place.wanted and wheels else ("odometry",),  # steering alone tells no way
        findings=reader.findings(),
    )  # fmt: skip


def _geometry(
    reader: PluginReader, wheels: list[Wheel], groups: dict[str, list[str]], base_frame: str | None
) -> dict[str, Any]:
    """Lengths: what the plugin says, the rest from where wheels and steering joints are."""
    model = reader.model
    pins = wheels_of(model, (*groups["left_steering_joints"], *groups["right_steering_joints"]))
    half = len(groups["left_steering_joints"])
    unsteered = [wheel for wheel in wheels if wheel.joint in (*groups["left_joints"], *groups["right_joints"])]
    places = {name: model.link(model.joint(name).child).T_model_link @ model.joint(name).T_child_joint
              for pin in pins for name in (pin.joint,)}  # fmt: skip
    at = [places[pin.joint] for pin in pins]
    front = float(np.mean([place.x for place in at]))
    pins_apart = float(np.mean([p.y for p in at[:half]]) - np.mean([p.y for p in at[half:]]))
    behind = float(np.mean([wheel.x for wheel in unsteered])) if unsteered else None
    ys = [wheel.y for wheel in wheels]
    apart = float(np.mean([y for y in ys if y > 0.0] or [0.0]) - np.mean([y for y in ys if y < 0.0] or [0.0]))

    def length(name: str, tags: tuple[str, ...], found: float | None) -> float:
        value = reader.number(*tags)
        if value is None:
            value = found
            reader.note(f"{name} {value} m taken from the joints' places: the plugin gives none")
        if value is None or value == 0.0 or (value < 0.0 and name != "wheelbase"):
            raise DescriptionError(f"{name} {value}", where=reader.where, valid="a positive length [m]")
        return value

    lengths = {
        "wheel_radius": read_radius(reader, [wheel.radius for wheel in wheels]),
        "wheelbase": length("wheelbase", ("wheel_base", "wheelbase"), None if behind is None else front - behind),
        "track": length("track", ("wheel_separation",), apart),
        "kingpin_width": length("kingpin_width", ("kingpin_width",), pins_apart),
    }
    base = next((link for link in model.links if link.name == base_frame), model.roots[0])
    lengths["axle_x"] = (
        axle_of(model, unsteered, base_frame)
        if unsteered
        else round(front - lengths["wheelbase"] - base.T_model_link.x, 9)
    )
    return lengths


def _limit(reader: PluginReader) -> float:
    """Largest steering angle [rad]."""
    limit = reader.number("steering_limit", "max_steer")
    reader.ignore(["max_steering_angle"], "of the wheel in the driver's hand")
    if limit is None:
        limit = 0.5
        reader.note("steering limit 0.5 rad taken: the plugin gives none")
    if not 0.0 < limit < 0.5 * math.pi:
        raise DescriptionError(f"steering limit {limit:g}", where=reader.where, valid="between 0 and pi/2 rad")
    return limit
