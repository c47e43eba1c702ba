"""Controllers that drive: differential, mecanum, and those that steer."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from roboyard.errors import DescriptionError
from roboyard.scenarios.plugins.bodies import mecanum as mecanum_plugin
from roboyard.scenarios.plugins.controllers.reading import ControllerReader
from roboyard.scenarios.plugins.differential import two_sided
from roboyard.scenarios.plugins.odometry import OdometryPlace
from roboyard.scenarios.plugins.part import Part
from roboyard.scenarios.plugins.reading import PluginReader
from roboyard.scenarios.plugins.speeds import Speeds
from roboyard.scenarios.robot_package import NodeSpec
from roboyard.scenarios.wheels import Wheel, axle_of, wheels_of

_THIN = 1e-3
"""Between the wheels of a single-track vehicle [m]: as good as none."""
_STEEPEST = 1.55  # of a steered wheel [rad]; at a right angle there is no way forward


def differential(reader: ControllerReader) -> Part:
    """diff_drive_controller of both ROS generations.

    Raises:
        DescriptionError: it names joints that are not there, or its numbers make no sense.
    """
    left = reader.joints("left_wheel_names", "left_wheel")
    right = reader.joints("right_wheel_names", "right_wheel")
    if not left or not right:
        raise DescriptionError(
            "no wheels on both sides", location=reader.where, valid="left_wheel_names, right_wheel_names"
        )
    wheels = wheels_of(reader.model, (*left, *right))
    apart = float(np.mean([w.y for w in wheels[: len(left)]]) - np.mean([w.y for w in wheels[len(left) :]]))
    both = _positive(reader, 1.0, "wheel_radius_multiplier")
    geometry: dict[str, Any] = {
        "left_joints": list(left),
        "right_joints": list(right),
        "wheel_radius": _radius(reader, wheels, "wheel_radius") * both,
        "track": _length(reader, "track", apart, "wheel_separation"),
    }
    for name, key, low, high in (
        ("slip_factor", "wheel_separation_multiplier", 0.1, 10.0),
        ("left_radius_scale", "left_wheel_radius_multiplier", 0.5, 2.0),
        ("right_radius_scale", "right_wheel_radius_multiplier", 0.5, 2.0),
    ):
        value = _positive(reader, 1.0, key)
        if not low <= value <= high:
            raise DescriptionError(f"{key} {value:g}", location=reader.where, valid=f"{low:g} to {high:g}")
        if value != 1.0:
            geometry[name] = value
    place = _place(reader)
    part = two_sided(geometry, axle_of(reader.model, wheels, place.base_frame), _speeds(reader), place, ())
    return _timed(reader, part)


def mecanum(reader: ControllerReader) -> Part:
    """mecanum_drive_controller, and the kin of it that robot makers ship.

    Raises:
        DescriptionError: as ``differential``.
    """
    corners = [
        reader.joints(
            f"{end}_{side}_wheel_command_joint_name", f"{end}_{side}_wheel_name", f"{other}_{side}_wheel_name",
            f"{end}_{side}_wheel_joint", f"wheel_{end}_{side}", f"{other}_{side}_wheel_joint",
        )
        for end, other in (("front", "front"), ("rear", "back"))
        for side in ("left", "right")
    ]  # fmt: skip
    wheels = wheels_of(reader.model, [corner[0] for corner in corners if corner])
    if len(wheels) != 4:
        raise DescriptionError(f"a mecanum drive on {len(wheels)} wheels", location=reader.where, valid="four wheels")
    reader.ignore(*(f"{end}_{side}_wheel_state_joint_name" for end in ("front", "rear") for side in ("left", "right")))
    reader.ignore("kinematics.base_frame_offset.x", "kinematics.base_frame_offset.y", "interface_name")
    reader.ignore("kinematics.base_frame_offset.theta")
    radius = _radius(reader, wheels, "kinematics.wheels_radius", "wheel_radius", "wheels_radius")
    radius *= _positive(reader, 1.0, "wheel_radius_multiplier")
    base, track = reader.number("wheel_separation_x", "wheelbase"), reader.number("wheel_separation_y", "track")
    half = reader.number("kinematics.sum_of_robot_center_projection_on_X_Y_axis")
    if base is not None:
        base *= _positive(reader, 1.0, "wheel_separation_x_multiplier")
    if track is not None:
        track *= _positive(reader, 1.0, "wheel_separation_y_multiplier")
    if half is not None and base is None and track is None:  # only the sum of the two counts in the kinematics
        along = float(np.mean([w.x for w in wheels[:2]]) - np.mean([w.x for w in wheels[2:]]))
        base = along if 0.0 < along < 2.0 * half else half
        track = 2.0 * half - base
    place, speeds = _place(reader), _speeds(reader)
    tags = ("front_left_joint", "front_right_joint", "back_left_joint", "back_right_joint")
    said = reader.plugin(
        *zip(tags, (wheel.joint for wheel in wheels), strict=True),
        ("wheel_radius", radius), ("wheelbase", base), ("wheel_separation", track),
        ("frame_id", place.parameters.get("odom_frame")), ("child_frame_id", place.base_frame),
        ("odom_publish_frequency", place.rate),
        ("publish_odom_tf", str(place.parameters.get("publish_tf", True)).lower()),
        ("max_linear_velocity", speeds.speed), ("max_angular_velocity", speeds.turn_rate),
        ("max_linear_acceleration", speeds.acceleration), ("max_angular_acceleration", speeds.turn_acceleration),
    )  # fmt: skip
    plugin = PluginReader(reader.model, said, where=reader.where)
    part = mecanum_plugin(plugin)
    for text in part.findings:
        reader.note(text.partition(": ")[2])
    return _timed(reader, part)


def steering(reader: ControllerReader) -> Part:
    """Ackermann, bicycle, tricycle and steer-drive controllers: as a car of one or two wheels an axle.

    Raises:
        DescriptionError: as ``differential``.
    """
    ahead = reader.flag("front_steering", default=True)
    front, rear = reader.joints("front_wheels_names"), reader.joints("rear_wheels_names")
    steers = reader.joints("steering_joints_names", "steering_joint_name", "front_steer") or (front if ahead else rear)
    driven = reader.joints("traction_joints_names", "traction_joint_name", "rear_wheel") or (rear if ahead else front)
    if not steers or not driven:
        raise DescriptionError(
            "nothing that steers, or nothing that drives", location=reader.where,
            valid="traction_joints_names and steering_joints_names",
        )  # fmt: skip
    model = reader.model
    carried = {model.joint(name).child for name in steers}
    pins, wheels = wheels_of(model, steers), wheels_of(model, driven)
    turned = [wheel for wheel in wheels if model.joint(wheel.joint).parent in carried]
    straight = [wheel for wheel in wheels if wheel not in turned]
    place, limit = _place(reader), _steepest(reader, steers)
    behind = float(np.mean([w.x for w in straight])) if straight else None
    at = float(np.mean([pin.x for pin in pins]))
    end, other = ("front", "rear") if ahead else ("rear", "front")
    reader.ignore(f"{end}_wheels_radius", "steering_wheels_radius", "wheel_separation_h_multiplier")
    base = _length(reader, "wheelbase", None if behind is None else at - behind, "wheelbase", "wheel_separation_h")
    if not ahead or (behind is not None and at < behind):
        base = -abs(base)
    track = _length(
        reader, "track", _spread(wheels), "traction_track_width", f"{other}_wheel_track", "wheel_track",
        "wheel_separation_w", thin=True,
    )  # fmt: skip
    pin_width = _length(
        reader, "kingpin_width", _spread(pins), "steering_track_width", f"{end}_wheel_track", thin=True
    )  # fmt: skip
    shape = {
        **_sides("joints", straight), **_sides("steered_joints", turned), **_sides("steering_joints", pins),
        "wheel_radius": _radius(
            reader, wheels, "traction_wheels_radius", "traction_wheel_radius", f"{other}_wheels_radius",
            f"{other}_wheel_radius", "wheel_radius",
        ),
        "wheelbase": base, "track": max(track, _THIN), "kingpin_width": max(pin_width, _THIN),
    }  # fmt: skip
    root = next((link for link in model.links if link.name == place.base_frame), model.roots[0])
    axle_x = round((behind if behind is not None else at - base) - root.T_model_link.x, 9)
    quick = reader.number("steering.max_velocity")
    speeds = _speeds(reader)
    steer = {"steering_limit": limit, **({} if not quick else {"steering_rate": quick})}
    part = Part(
        nodes={
            "arbiter": NodeSpec("arbiter"),
            "drive": NodeSpec("roboyard.control.nodes:AckermannNode", {**shape, **steer, **speeds.parameters()}),
            "odometry": NodeSpec(
                "roboyard.localization.nodes:AckermannOdometryNode", {**shape, "axle_x": axle_x, **place.parameters}
            ),
        },
        drives=True,
        limits=speeds.limits,
        base_frame=place.base_frame,
        joint_rate=place.rate,
    )
    return _timed(reader, part)


def _sides(name: str, wheels: list[Wheel]) -> dict[str, list[str]]:
    """Left and right joints; a single one in the middle counts as left."""
    if len(wheels) == 1:
        return {f"left_{name}": [wheels[0].joint], f"right_{name}": []}
    middle = float(np.mean([wheel.y for wheel in wheels])) if wheels else 0.0
    return {
        f"left_{name}": [wheel.joint for wheel in wheels if wheel.y > middle],
        f"right_{name}": [wheel.joint for wheel in wheels if wheel.y <= middle],
    }


def _spread(wheels: list[Wheel]) -> float:
    ys = [wheel.y for wheel in wheels]
    return max(ys) - min(ys) if len(ys) > 1 else 0.0


def _steepest(reader: ControllerReader, steers: tuple[str, ...]) -> float:
    """Largest steering angle [rad]: what the file and the joints allow."""
    bounds = [_STEEPEST]
    for name in steers:
        limits = reader.model.joint(name).axes[0].limits if reader.model.joint(name).axes else None
        bounds += [abs(one) for one in (limits.lower, limits.upper) if math.isfinite(one)] if limits else []
    for key in ("steering.max_position", "steering.min_position"):
        value = reader.number(key)
        bounds += [abs(value)] if value else []
    return max(min(bounds), 1e-3)


def _place(reader: ControllerReader) -> OdometryPlace:
    base, frame = reader.text("base_frame_id", "base_frame"), reader.text("odom_frame_id", "odom_frame")
    rate = reader.number("publish_rate")
    root = reader.model.roots[0].name if reader.model.roots else "base_link"
    if base is not None and base not in {link.name for link in reader.model.links}:
        reader.note(f"base_frame_id {base[:60]!r} is no link: {root} taken")
        base = None
    parameters: dict[str, Any] = {"base_frame": base or root}
    if frame:
        parameters["odom_frame"] = frame
    if rate and rate > 0.0:
        parameters["rate"] = min(max(rate, 0.1), 1000.0)
    if not reader.flag("enable_odom_tf", default=True):
        parameters["publish_tf"] = False
    return OdometryPlace(parameters, {}, base, rate, True)


def _speeds(reader: ControllerReader) -> Speeds:
    """Limits; those whose ``has_…_limits`` says no do not count."""

    def bound(axis: str, what: str, sign: int = 1) -> float | None:
        on = reader.flag(f"{axis}.has_{what}_limits", default=True)
        value = reader.number(f"{axis}.{'max' if sign > 0 else 'min'}_{what}")
        return max(sign * value, 0.0) if value is not None and on else None

    for axis in ("linear.x", "linear.y", "angular.z"):
        reader.ignore(f"{axis}.has_jerk_limits", f"{axis}.max_jerk", f"{axis}.min_jerk", f"{axis}.min_acceleration")
        reader.ignore(
            f"{axis}.max_deceleration", f"{axis}.max_acceleration_reverse", f"{axis}.max_deceleration_reverse"
        )
        reader.ignore(f"{axis}.min_velocity", *(f"{axis}.has_{what}_limits" for what in ("velocity", "acceleration")))
    speed, reverse = bound("linear.x", "velocity"), bound("linear.x", "velocity", -1)
    reader.ignore("linear.y.max_velocity", "linear.y.max_acceleration")
    return Speeds(
        speed,
        None if reverse is None or reverse == speed else reverse,
        bound("angular.z", "velocity"),
        bound("linear.x", "acceleration"),
        None,
        bound("angular.z", "acceleration"),
    )


def _timed(reader: ControllerReader, part: Part) -> Part:
    """The part with the time after which a command no longer holds, and what there is to say."""
    timeout = reader.number("cmd_vel_timeout", "reference_timeout")
    if timeout is not None and reader.controller.kind == "TricycleController":
        timeout /= 1000.0  # the one controller that counts it in milliseconds
    nodes = dict(part.nodes)
    if timeout:
        drive = nodes["drive"]
        held = min(max(timeout, 0.01), 60.0)
        nodes["drive"] = NodeSpec(drive.use, {**drive.parameters, "timeout": held}, drive.remap)
    name = reader.controller.name
    reader.note(f"it drives by cmd_vel and tells odom, not {name}/cmd_vel and {name}/odom")
    return Part(
        nodes=nodes, drives=True, limits=part.limits, base=part.base, base_frame=part.base_frame,
        joint_rate=part.joint_rate, standby=part.standby, findings=reader.findings(),
    )  # fmt: skip


def _positive(reader: ControllerReader, default: float, *names: str) -> float:
    value = reader.number(*names)
    if value is not None and value <= 0.0:
        raise DescriptionError(f"{names[0]} {value:g}", location=reader.where, valid="a number above 0")
    return default if value is None else value


def _length(reader: ControllerReader, what: str, found: float | None, *names: str, thin: bool = False) -> float:
    value = reader.number(*names)
    if value is None:
        value = found
        if not (thin and not found):
            reader.note(f"{what} {value} m taken from the wheels' places: the file gives none")
    if value is None or (value < 0.0 and what != "wheelbase") or (value == 0.0 and not thin):
        raise DescriptionError(f"{what} {value}", location=reader.where, valid="a positive length [m]")
    return value


def _radius(reader: ControllerReader, wheels: list[Wheel], *names: str) -> float:
    value = reader.number(*names)
    if value is None:
        value = next((wheel.radius for wheel in wheels if wheel.radius), None)
        reader.note(f"wheel radius {value} m taken from the wheels' shape: the file gives none")
    if value is None or value <= 0.0:
        raise DescriptionError(f"wheel radius {value}", location=reader.where, valid="a positive length [m]")
    return value
