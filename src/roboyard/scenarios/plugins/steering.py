"""Ackermann steering plugins."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from roboyard.description.model import Model
from roboyard.errors import DescriptionError
from roboyard.scenarios.plugins.differential import read_radius
from roboyard.scenarios.plugins.odometry import read_place
from roboyard.scenarios.plugins.part import Part
from roboyard.scenarios.plugins.reading import PluginReader
from roboyard.scenarios.plugins.speeds import read_speeds
from roboyard.scenarios.robot_package import NodeSpec
from roboyard.scenarios.wheels import Wheel, axle_of, wheels_of

_LEFT = ("left_joint", "front_left_joint", "rear_left_joint")
_GAINS = (
    "steer_p_gain",
    *(f"{side}_{gain}" for side in ("left_steering", "right_steering", "linear_velocity")
      for gain in ("pid_gain", "i_range")),
)  # fmt: skip
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
            "no joint that steers", location=reader.where, valid="left_steering_joint and right_steering_joint"
        )
    if reader.flag("steering_only", default=False):
        return _steering_only(reader, steering)
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
    reader.ignore(_GAINS, "the joints' own servos hold")
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
        standby=() if place.wanted and wheels else ("odometry",),  # without wheels nothing tells the way
        findings=reader.findings(),
    )  # fmt: skip


def _steering_only(reader: PluginReader, steering: tuple[tuple[str, ...], tuple[str, ...]]) -> Part:
    """It turns the steered wheels as it is told an angle, and leaves driving to others."""
    left, right = steering
    _, apart = _pins(reader.model, left, right)
    lengths = {
        "wheelbase": _length(reader, "wheelbase", ("wheel_base", "wheelbase"), None),
        "kingpin_width": _length(reader, "kingpin_width", ("kingpin_width",), apart),
        "steering_limit": _limit(reader),
    }
    reader.ignore(["wheel_separation", "wheel_radius"], "it drives no wheel")
    reader.ignore(_GAINS, "the joints' own servos hold")
    topic = reader.topic("sub_topic", "topic")
    joints = {"left_steering_joints": list(left), "right_steering_joints": list(right)}
    spec = NodeSpec(
        "roboyard.control.nodes:SteeringNode", {**joints, **lengths}, {"steer_angle": topic} if topic else {}
    )
    return Part(nodes={"steering": spec}, drives=True, findings=reader.findings())


def _pins(model: Model, left: Sequence[str], right: Sequence[str]) -> tuple[float, float]:
    """How far ahead of the model's origin the steering axes are, and how far apart the sides [m]."""
    left_at, right_at = (
        [model.link(model.joint(name).child).T_model_link @ model.joint(name).T_child_joint for name in side]
        for side in (left, right)
    )
    ahead = float(np.mean([place.x for place in (*left_at, *right_at)]))
    return ahead, float(np.mean([place.y for place in left_at]) - np.mean([place.y for place in right_at]))


def _length(reader: PluginReader, name: str, tags: tuple[str, ...], found: float | None) -> float:
    value = reader.number(*tags)
    if value is None:
        value = found
        reader.note(f"{name} {value} m taken from the joints' places: the plugin gives none")
    if value is None or value == 0.0 or (value < 0.0 and name != "wheelbase"):
        raise DescriptionError(f"{name} {value}", location=reader.where, valid="a positive length [m]")
    return value


def _geometry(
    reader: PluginReader, wheels: list[Wheel], groups: dict[str, list[str]], base_frame: str | None
) -> dict[str, Any]:
    """Lengths: what the plugin says, the rest from where wheels and steering joints are."""
    model = reader.model
    front, pins_apart = _pins(model, groups["left_steering_joints"], groups["right_steering_joints"])
    unsteered = [wheel for wheel in wheels if wheel.joint in (*groups["left_joints"], *groups["right_joints"])]
    behind = float(np.mean([wheel.x for wheel in unsteered])) if unsteered else None
    ys = [wheel.y for wheel in wheels]
    apart = float(np.mean([y for y in ys if y > 0.0] or [0.0]) - np.mean([y for y in ys if y < 0.0] or [0.0]))
    lengths = {
        "wheel_radius": read_radius(reader, [wheel.radius for wheel in wheels]),
        "wheelbase": _length(
            reader, "wheelbase", ("wheel_base", "wheelbase"), None if behind is None else front - behind
        ),
        "track": _length(reader, "track", ("wheel_separation",), apart),
        "kingpin_width": _length(reader, "kingpin_width", ("kingpin_width",), pins_apart),
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
        raise DescriptionError(f"steering limit {limit:g}", location=reader.where, valid="between 0 and pi/2 rad")
    return limit
