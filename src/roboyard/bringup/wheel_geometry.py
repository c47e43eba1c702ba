"""Wheels of a model: position, radius and rollers, and the differential drive that they form."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from roboyard.control.drive_config import DifferentialDriveConfig
from roboyard.description.joint_interfaces import command_modes
from roboyard.description.model import Cylinder, Joint, Model, Sphere
from roboyard.errors import DescriptionError

_MAX_ROLLER_FRICTION_RATIO = 0.2
"""Of the friction along the better direction that is left along the other where a surface stands for rollers."""
_MIN_AXIS_ALIGNMENT = 0.9
"""Share of a wheel's axis that must point sideways."""


@dataclass(frozen=True, slots=True)
class Wheel:
    """A wheel in the model's frame.

    Attributes:
        joint: Joint that turns it.
        x: Position of its center [m].
        y: Position of its center [m].
        radius: Radius of its shape [m]; None where that is neither cylinder nor sphere.
        rolls_forward: Whether it rolls forward when its joint turns in the positive direction.
    """

    joint: str
    x: float
    y: float
    radius: float | None
    rolls_forward: bool


def infer_differential_drive(model: Model) -> tuple[DifferentialDriveConfig, str] | None:
    """Infer a differential drive from the wheels of a model; return it with a finding, or None without two sides.

    Wheels are links on continuous joints with a lateral axis: on those that take velocities if there are any, else on
    all.

    Raises:
        DescriptionError: Wheels turn backward, or some of them are steered and others are not.
    """
    velocity_commanded = {i.joint for i in model.interfaces if any(mode == "velocity" for mode, _, _ in i.commands)}
    wheels = [
        wheel_on(model, joint)
        for joint in model.joints
        if _is_continuous(joint)
        and abs(joint_axis(model, joint)[1]) > _MIN_AXIS_ALIGNMENT
        and (not velocity_commanded or joint.name in velocity_commanded)
        and "velocity" in command_modes(model, joint.name)
    ]
    left = [wheel for wheel in wheels if wheel.y > 0.0]
    right = [wheel for wheel in wheels if wheel.y < 0.0]
    radii = [wheel.radius for wheel in (*left, *right) if wheel.radius]
    if not left or not right or not radii:
        return None
    track = float(np.mean([w.y for w in left]) - np.mean([w.y for w in right]))
    backwards = [wheel.joint for wheel in (*left, *right) if not wheel.rolls_forward]
    if backwards:
        raise DescriptionError(
            f"wheels {', '.join(backwards)} turn backwards: their axis points right",
            location=str(model.source or model.name), valid="axis y to the left, or a differential-drive plugin",
        )  # fmt: skip
    _reject_steered_wheels(model)
    source = "the joints that take velocities" if velocity_commanded else "the joints that turn freely"
    finding = (
        f"differential drive guessed from {source}: left {', '.join(w.joint for w in left)}; "
        f"right {', '.join(w.joint for w in right)}; radius {radii[0]:g} m, track {track:g} m"
    )
    drive = DifferentialDriveConfig(
        type="differential", left_joints=tuple(w.joint for w in left), right_joints=tuple(w.joint for w in right),
        wheel_radius=radii[0], track=track, axle_x=axle_offset(model, [*left, *right], None),
    )  # fmt: skip
    return drive, finding


def _reject_steered_wheels(model: Model) -> None:
    """Raise DescriptionError where joints steer some of the wheels: the robot turns by these, not by wheel speeds."""
    position_commanded = {i.joint for i in model.interfaces if any(mode == "position" for mode, _, _ in i.commands)}
    steering_joints = {
        joint.child: joint.name
        for joint in model.joints
        if joint.type in ("revolute", "continuous")
        and (joint.name in position_commanded or not _is_continuous(joint))  # what turns freely is a castor
        and abs(joint_axis(model, joint)[2]) > _MIN_AXIS_ALIGNMENT
    }
    wheel_joints = [
        one for one in model.joints if _is_continuous(one) and abs(joint_axis(model, one)[1]) > _MIN_AXIS_ALIGNMENT
    ]
    steered = [joint for joint in wheel_joints if joint.parent in steering_joints]
    if steered and len(steered) < len(wheel_joints):
        raise DescriptionError(
            f"it is a car: {steering_joints[steered[0].parent]} steers {steered[0].name}",
            location=str(model.source or model.name), valid="an Ackermann plugin or controller that names its joints",
        )  # fmt: skip


def axle_offset(model: Model, wheels: Sequence[Wheel], base_frame: str | None) -> float:
    """Return the position of the wheels' center ahead of the base frame [m], by default the model's root."""
    base = next((link for link in model.links if link.name == base_frame), model.roots[0])
    return round(float(np.mean([wheel.x for wheel in wheels])) - base.T_model_link.x, 9)


def wheels_on(model: Model, joints: Sequence[str]) -> list[Wheel]:
    """Return the wheels on joints of the model, in the order of the joints."""
    return [wheel_on(model, model.joint(name)) for name in joints]


def wheel_on(model: Model, joint: Joint) -> Wheel:
    """Return the wheel that a joint turns."""
    link = model.link(joint.child)
    center, radius = link.T_model_link @ joint.T_child_joint, None
    for collision in link.collisions:
        if isinstance(collision.geometry, Cylinder | Sphere):
            center, radius = link.T_model_link @ collision.T_link_geom, collision.geometry.radius
            break
    return Wheel(joint.name, center.x, center.y, radius, bool(joint.axes) and joint_axis(model, joint)[1] > 0.0)


def has_rollers(model: Model, joint: str) -> bool:
    """Return whether the wheel on a joint has rollers: as links, or as friction that is low along one direction."""
    wheel_link = model.joint(joint).child
    rigid_links, roller_links = {wheel_link}, set[str]()
    for one in model.joints:  # parents come before children
        if one.parent in rigid_links:
            (rigid_links if one.type == "fixed" else roller_links).add(one.child)
    surfaces = [one.surface for link in model.links if link.name in rigid_links for one in link.collisions]
    is_anisotropic = [
        surface.friction_direction is not None
        and surface.friction2 is not None
        and min(surface.friction, surface.friction2)
        <= _MAX_ROLLER_FRICTION_RATIO * max(surface.friction, surface.friction2)
        for surface in surfaces
        if surface.collide
    ]
    return bool(is_anisotropic and all(is_anisotropic)) or any(
        link.collisions for link in model.links if link.name in roller_links
    )


def joint_axis(model: Model, joint: Joint) -> NDArray[np.float64]:
    """Return the joint's first axis (3,) in the model's frame."""
    if not joint.axes:
        return np.zeros(3)
    T_model_joint = model.link(joint.child).T_model_link @ joint.T_child_joint
    axis: NDArray[np.float64] = T_model_joint.rotation_matrix() @ np.asarray(joint.axes[0].xyz)
    return axis


def _is_continuous(joint: Joint) -> bool:
    limits = joint.axes[0].limits if joint.axes else None
    return joint.type == "continuous" or (
        joint.type == "revolute" and limits is not None and limits.upper - limits.lower > 1e3
    )
