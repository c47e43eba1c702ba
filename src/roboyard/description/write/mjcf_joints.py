"""Joints, couplings and starting positions in MJCF."""

from __future__ import annotations

import math
from xml.etree import ElementTree as ET

import numpy as np

from roboyard.description.model import Axis, Joint, JointDynamics, Model
from roboyard.description.write.written import ConversionLosses, add_child, format_number, format_numbers
from roboyard.geometry import SE3

LOCKED_RANGE = 1e-6
"""Play left to a joint whose limits coincide [rad or m]; the engine wants a range."""
OPEN_LIMIT = 1e9
"""Stands for an open side of a one-sided range, as in simulation."""


def add_joints(body: ET.Element, joint: Joint, T_body_joint: SE3, prefix: str, losses: ConversionLosses) -> None:
    """What moves ``body``: one joint of MJCF for each axis, called ``name``, ``name_2``, … as in simulation."""
    position = format_numbers(T_body_joint.translation)
    rotation = T_body_joint.rotation_matrix()
    if joint.type == "ball":
        ball_joint = add_child(body, "joint", name=prefix + joint.name, type="ball", pos=position)
        if joint.ball_axis is not None:
            if math.isfinite(joint.ball_axis.limits.upper):
                ball_joint.set("limited", "true")
                ball_joint.set("range", format_numbers((0.0, joint.ball_axis.limits.upper)))
            _set_dynamics(ball_joint, joint.ball_axis.dynamics)
        return
    for index, (kind, axis) in enumerate(_mjcf_axes(joint)):
        name = joint.name if index == 0 else f"{joint.name}_{index + 1}"
        xyz = format_numbers(rotation @ np.asarray(axis.xyz))
        node = add_child(body, "joint", name=prefix + name, type=kind, pos=position, axis=xyz)
        limits = axis.limits
        if math.isfinite(limits.lower) or math.isfinite(limits.upper):
            node.set("limited", "true")
            lower, upper = max(limits.lower, -OPEN_LIMIT), min(limits.upper, OPEN_LIMIT)
            node.set("range", format_numbers((lower, upper if upper > lower else lower + LOCKED_RANGE)))
            if lower == upper:
                losses.add(f"joint '{name}', whose limits coincide, gets a play of {LOCKED_RANGE:g}")
        if math.isfinite(limits.effort) and limits.effort > 0.0:
            node.set("actuatorfrclimited", "true")
            node.set("actuatorfrcrange", format_numbers((-limits.effort, limits.effort)))
        if math.isfinite(limits.velocity):
            losses.add("speed limits of joints are lost")
        _set_dynamics(node, axis.dynamics)
    if joint.type == "floating":
        add_child(body, "joint", name=f"{prefix}{joint.name}_4", type="ball", pos=position)
    if joint.type == "gearbox":
        losses.add(f"joint '{joint.name}': the gearbox turns freely, its ratio is lost")
    if joint.safety is not None:
        losses.add("safety controllers of joints are lost")


def _set_dynamics(node: ET.Element, dynamics: JointDynamics) -> None:
    for key, value in (
        ("damping", dynamics.damping),
        ("frictionloss", dynamics.friction),
        ("stiffness", dynamics.stiffness),
        ("springref", dynamics.reference),
        ("armature", dynamics.armature),
    ):
        if value:
            node.set(key, format_number(value))


def _mjcf_axes(joint: Joint) -> list[tuple[str, Axis]]:
    axes = joint.axes or (Axis(),)
    match joint.type:
        case "revolute" | "continuous":
            return [("hinge", axes[0])]
        case "prismatic":
            return [("slide", axes[0])]
        case "universal" | "revolute2":
            return [("hinge", axes[0]), ("hinge", axes[-1])]
        case "gearbox":
            return [("hinge", axes[-1])]
        case "screw":
            return [("hinge", axes[0]), ("slide", Axis(axes[0].xyz))]
        case "planar":
            normal = np.asarray(axes[0].xyz, float)
            u = np.cross(normal, np.eye(3)[int(np.argmin(np.abs(normal)))])
            u /= np.linalg.norm(u)
            v = np.cross(normal, u)
            planar_axes = [Axis((float(w[0]), float(w[1]), float(w[2]))) for w in (u, v)]
            return [("slide", planar_axes[0]), ("slide", planar_axes[1]), ("hinge", Axis(axes[0].xyz))]
        case "floating":
            return [
                ("slide", Axis((1.0, 0.0, 0.0))),
                ("slide", Axis((0.0, 1.0, 0.0))),
                ("slide", Axis((0.0, 0.0, 1.0))),
            ]
    return []


def initial_positions(model: Model, joint: Joint) -> list[float]:
    """What the joint's coordinates are at the start."""
    if joint.type == "ball":
        return [1.0, 0.0, 0.0, 0.0]
    count = len(_mjcf_axes(joint))
    interface = next((one for one in model.interfaces if one.joint == joint.name), None)
    position = dict(interface.initial).get("position", 0.0) if interface else 0.0
    values = [position, *([0.0] * (count - 1))] if count else []
    return [*values, 1.0, 0.0, 0.0, 0.0] if joint.type == "floating" else values


def add_couplings(section: ET.Element, joint: Joint, prefix: str) -> None:
    """Couplings of a mimicking joint, or of a screw's turn and travel."""
    if joint.mimic is not None and joint.axes:
        factors = format_numbers((joint.mimic.offset, joint.mimic.multiplier, 0.0, 0.0, 0.0))
        add_child(section, "joint", joint1=prefix + joint.name, joint2=prefix + joint.mimic.joint, polycoef=factors)
    if joint.type == "screw":
        factors = format_numbers((0.0, joint.thread_pitch / (2.0 * math.pi), 0.0, 0.0, 0.0))
        add_child(section, "joint", joint1=f"{prefix}{joint.name}_2", joint2=prefix + joint.name, polycoef=factors)
