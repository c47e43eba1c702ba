"""What a foreign robot's description says about its drive: from simulator plugins, ros2_control, or its bare wheels."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from roboyard.description.model import Cylinder, Element, Joint, Model, Plugin, Sphere
from roboyard.errors import DescriptionError

_LEFT = ("left_joint", "leftJoint", "left_front_joint", "leftFrontJoint", "left_rear_joint", "leftRearJoint")
_RIGHT = ("right_joint", "rightJoint", "right_front_joint", "rightFrontJoint", "right_rear_joint", "rightRearJoint")
_RATE = ("odom_publisher_frequency", "odom_publish_frequency", "update_rate", "updateRate")
_LATERAL = 0.9
"""Share of a wheel's axis that must point sideways."""


@dataclass(frozen=True, slots=True)
class Drive:
    """A differential or skid-steer drive.

    Attributes:
        left: Joints of the left wheels.
        right: Of the right.
        radius: Of the wheels [m].
        track: Distance between left and right wheels [m].
        axle_x: How far the wheels' middle lies ahead of the base frame [m]: it turns about that.
        speed: Limit [m/s]; None where the description gives none, as for those that follow.
        turn_rate: Limit [rad/s].
        acceleration: Limit [m/s²].
        turn_acceleration: Limit [rad/s²].
        odometry_rate: [Hz].
        command_topic: Where it takes twists.
        odometry_topic: Where it tells its pose.
        odometry_frame: Frame of that pose.
        base_frame: Frame that it moves.
        findings: What was guessed.
    """

    left: tuple[str, ...]
    right: tuple[str, ...]
    radius: float
    track: float
    axle_x: float = 0.0
    speed: float | None = None
    turn_rate: float | None = None
    acceleration: float | None = None
    turn_acceleration: float | None = None
    odometry_rate: float | None = None
    command_topic: str | None = None
    odometry_topic: str | None = None
    odometry_frame: str | None = None
    base_frame: str | None = None
    findings: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class _Wheel:
    joint: str
    x: float
    y: float
    radius: float | None
    forward: bool


def find_drive(model: Model) -> Drive | None:
    """The drive of ``model``: from a differential-drive plugin if it has one, else from its wheels; None if no wheels.

    Raises:
        DescriptionError: a plugin names joints that are not there, or its numbers make no sense.
    """
    for plugin in model.plugins:
        element = plugin.element
        if any(element.find(tag) for tag in _LEFT) and any(element.find(tag) for tag in _RIGHT):
            return _from_plugin(model, plugin)
    return _from_wheels(model)


def _from_plugin(model: Model, plugin: Plugin) -> Drive:
    element, where = plugin.element, f"{model.source or model.name}:{plugin.element.line}, plugin {plugin.name}"
    left, right = _joints(model, element, _LEFT, where), _joints(model, element, _RIGHT, where)
    findings: list[str] = []
    wheels = {joint.name: _wheel(model, joint) for joint in model.joints if joint.name in (*left, *right)}
    radius = _number(element, ("wheel_radius", "wheelRadius"), where)
    if radius is None:
        diameter = _number(element, ("wheel_diameter", "wheelDiameter"), where)
        radius = diameter / 2 if diameter is not None else None
    if radius is None:
        radius = next((wheel.radius for wheel in wheels.values() if wheel.radius), None)
        findings.append(f"wheel radius {radius} m taken from the wheels' shape: the plugin gives none")
    track = _number(element, ("wheel_separation", "wheelSeparation"), where)
    if track is None:
        track = float(np.mean([wheels[j].y for j in left]) - np.mean([wheels[j].y for j in right]))
        findings.append(f"track {track:g} m taken from the wheels' places: the plugin gives none")
    if radius is None or radius <= 0.0 or track <= 0.0:
        raise DescriptionError(f"wheel radius {radius}, track {track}", where=where, valid="positive lengths")
    base_frame = _text(element, ("child_frame_id", "robot_base_frame", "robotBaseFrame"))
    return Drive(
        left, right, radius, track,
        axle_x=_axle_x(model, list(wheels.values()), base_frame),
        speed=_number(element, ("max_linear_velocity", "max_velocity"), where),
        turn_rate=_number(element, ("max_angular_velocity",), where),
        # gazebo_ros limits the rim's speed: the body's acceleration on a straight
        acceleration=_number(element, ("max_linear_acceleration", "max_acceleration", "max_wheel_acceleration"), where),
        turn_acceleration=_number(element, ("max_angular_acceleration",), where),
        odometry_rate=_number(element, _RATE, where),
        command_topic=_text(element, ("topic", "command_topic", "commandTopic")),
        odometry_topic=_text(element, ("odom_topic", "odometry_topic", "odometryTopic")),
        odometry_frame=_text(element, ("frame_id", "odometry_frame", "odometryFrame")),
        base_frame=base_frame,
        findings=tuple(findings),
    )  # fmt: skip


def _from_wheels(model: Model) -> Drive | None:
    """Wheels are joints that turn without end about a sideways axis: commanded ones if any are, else all."""
    commanded = {i.joint for i in model.interfaces if any(mode == "velocity" for mode, _, _ in i.commands)}
    wheels = [
        _wheel(model, joint)
        for joint in model.joints
        if _turns_freely(joint)
        and abs(_axis(model, joint)[1]) > _LATERAL
        and (not commanded or joint.name in commanded)
    ]
    left = [wheel for wheel in wheels if wheel.y > 0.0]
    right = [wheel for wheel in wheels if wheel.y < 0.0]
    radii = [wheel.radius for wheel in (*left, *right) if wheel.radius]
    if not left or not right or not radii:
        return None
    track = float(np.mean([w.y for w in left]) - np.mean([w.y for w in right]))
    backwards = [wheel.joint for wheel in (*left, *right) if not wheel.forward]
    if backwards:
        raise DescriptionError(
            f"wheels {', '.join(backwards)} turn backwards: their axis points right",
            where=str(model.source or model.name), valid="axis y to the left, or a differential-drive plugin",
        )  # fmt: skip
    source = "the joints that take velocities" if commanded else "the joints that turn freely"
    finding = (
        f"differential drive guessed from {source}: left {', '.join(w.joint for w in left)}; "
        f"right {', '.join(w.joint for w in right)}; radius {radii[0]:g} m, track {track:g} m"
    )
    return Drive(
        tuple(w.joint for w in left), tuple(w.joint for w in right), radii[0], track,
        axle_x=_axle_x(model, [*left, *right], None), findings=(finding,),
    )  # fmt: skip


def _axle_x(model: Model, wheels: list[_Wheel], base_frame: str | None) -> float:
    """Middle of the wheels ahead of the base frame, by default the model's root."""
    base = next((link for link in model.links if link.name == base_frame), model.roots[0])
    return round(float(np.mean([wheel.x for wheel in wheels])) - base.T_model_link.x, 9)


def _turns_freely(joint: Joint) -> bool:
    limits = joint.axes[0].limits if joint.axes else None
    return joint.type == "continuous" or (
        joint.type == "revolute" and limits is not None and limits.upper - limits.lower > 1e3
    )


def _axis(model: Model, joint: Joint) -> np.ndarray:
    """The first axis in the model's frame."""
    T_model_joint = model.link(joint.child).T_model_link @ joint.T_child_joint
    axis: np.ndarray = T_model_joint.rotation_matrix() @ np.asarray(joint.axes[0].xyz)
    return axis


def _wheel(model: Model, joint: Joint) -> _Wheel:
    link = model.link(joint.child)
    middle, radius = link.T_model_link @ joint.T_child_joint, None
    for collision in link.collisions:
        if isinstance(collision.geometry, Cylinder | Sphere):
            middle, radius = link.T_model_link @ collision.T_link_geom, collision.geometry.radius
            break
    return _Wheel(joint.name, middle.x, middle.y, radius, bool(joint.axes) and _axis(model, joint)[1] > 0.0)


def _joints(model: Model, element: Element, tags: tuple[str, ...], where: str) -> tuple[str, ...]:
    found = tuple(child.text.strip() for tag in tags for child in element.find_all(tag))
    known = [joint.name for joint in model.joints]
    for name in found:
        if name not in known:
            raise DescriptionError(f"there is no joint {name!r}", where=where, valid=f"joints: {', '.join(known)}")
    return found


def _text(element: Element, tags: tuple[str, ...]) -> str | None:
    for tag in tags:
        child = element.find(tag)
        if child is not None and child.text.strip():
            return child.text.strip()
    return None


def _number(element: Element, tags: tuple[str, ...], where: str) -> float | None:
    text = _text(element, tags)
    if text is None:
        return None
    try:
        value = float(text)
    except ValueError as error:
        raise DescriptionError(f"{tags[0]} {text!r} is not a number", where=where) from error
    if not np.isfinite(value):
        raise DescriptionError(f"{tags[0]} {text!r} is not finite", where=where)
    return value
