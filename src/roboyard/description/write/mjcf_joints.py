"""Joints, couplings and starting positions in MJCF."""

from __future__ import annotations

import math
from xml.etree import ElementTree as ET

import numpy as np

from roboyard.description.model import Axis, Dynamics, Joint, Model
from roboyard.description.write.written import Losses, add, number, numbers
from roboyard.geometry import SE3

LOCKED = 1e-6
"""Play left to a joint whose limits coincide [rad or m]; the engine wants a range."""
FAR = 1e9
"""Stands for an open side of a one-sided range, as in simulation."""


def add_joints(body: ET.Element, joint: Joint, T_body_joint: SE3, prefix: str, losses: Losses) -> None:
    """What moves ``body``: one joint of MJCF for each axis, called ``name``, ``name_2``, … as in simulation."""
    place = numbers(T_body_joint.translation)
    turn = T_body_joint.rotation_matrix()
    if joint.type == "ball":
        made = add(body, "joint", name=prefix + joint.name, type="ball", pos=place)
        if joint.swing is not None:
            if math.isfinite(joint.swing.limits.upper):
                made.set("limited", "true")
                made.set("range", numbers((0.0, joint.swing.limits.upper)))
            _dynamics(made, joint.swing.dynamics)
        return
    for index, (kind, axis) in enumerate(_parts(joint)):
        name = joint.name if index == 0 else f"{joint.name}_{index + 1}"
        xyz = numbers(turn @ np.asarray(axis.xyz))
        node = add(body, "joint", name=prefix + name, type=kind, pos=place, axis=xyz)
        limits = axis.limits
        if math.isfinite(limits.lower) or math.isfinite(limits.upper):
            node.set("limited", "true")
            low, high = max(limits.lower, -FAR), min(limits.upper, FAR)
            node.set("range", numbers((low, high if high > low else low + LOCKED)))
            if low == high:
                losses.say(f"joint '{name}', whose limits coincide, gets a play of {LOCKED:g}")
        if math.isfinite(limits.effort) and limits.effort > 0.0:
            node.set("actuatorfrclimited", "true")
            node.set("actuatorfrcrange", numbers((-limits.effort, limits.effort)))
        if math.isfinite(limits.velocity):
            losses.say("speed limits of joints are lost")
        _dynamics(node, axis.dynamics)
    if joint.type == "floating":
        add(body, "joint", name=f"{prefix}{joint.name}_4", type="ball", pos=place)
    if joint.type == "gearbox":
        losses.say(f"joint '{joint.name}': the gearbox turns freely, its ratio is lost")
    if joint.safety is not None:
        losses.say("safety controllers of joints are lost")


def _dynamics(node: ET.Element, dynamics: Dynamics) -> None:
    for key, value in (
        ("damping", dynamics.damping),
        ("frictionloss", dynamics.friction),
        ("stiffness", dynamics.stiffness),
        ("springref", dynamics.reference),
        ("armature", dynamics.armature),
    ):
        if value:
            node.set(key, number(value))


def _parts(joint: Joint) -> list[tuple[str, Axis]]:
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
            flat = [Axis((float(w[0]), float(w[1]), float(w[2]))) for w in (u, v)]
            return [("slide", flat[0]), ("slide", flat[1]), ("hinge", Axis(axes[0].xyz))]
        case "floating":
            return [
                ("slide", Axis((1.0, 0.0, 0.0))),
                ("slide", Axis((0.0, 1.0, 0.0))),
                ("slide", Axis((0.0, 0.0, 1.0))),
            ]
    return []


def starts(model: Model, joint: Joint) -> list[float]:
    """What the joint's coordinates are at the start."""
    if joint.type == "ball":
        return [1.0, 0.0, 0.0, 0.0]
    count = len(_parts(joint))
    interface = next((one for one in model.interfaces if one.joint == joint.name), None)
    first = dict(interface.initial).get("position", 0.0) if interface else 0.0
    values = [first, *([0.0] * (count - 1))] if count else []
    return [*values, 1.0, 0.0, 0.0, 0.0] if joint.type == "floating" else values


def add_loops(section: ET.Element, joint: Joint, prefix: str) -> None:
    """Couplings of a mimicking joint, or of a screw's turn and travel."""
    if joint.mimic is not None and joint.axes:
        factors = numbers((joint.mimic.offset, joint.mimic.multiplier, 0.0, 0.0, 0.0))
        add(section, "joint", joint1=prefix + joint.name, joint2=prefix + joint.mimic.joint, polycoef=factors)
    if joint.type == "screw":
        factors = numbers((0.0, joint.thread_pitch / (2.0 * math.pi), 0.0, 0.0, 0.0))
        add(section, "joint", joint1=f"{prefix}{joint.name}_2", joint2=prefix + joint.name, polycoef=factors)
