"""``<joint>``: type, frames, axis, limits, dynamics, mimic, safety controller."""

from __future__ import annotations

import math
from typing import get_args

from roboyard.description import validation
from roboyard.description.model import Axis, AxisLimits, Joint, JointDynamics, JointType, Mimic, SafetyController
from roboyard.description.reader_context import ReaderContext
from roboyard.description.urdf.link import read_origin
from roboyard.description.xml import XmlNode
from roboyard.description.xml_values import error_at, parse_number, quote
from roboyard.geometry import SE3

_JOINT_TYPES: dict[str, JointType] = {
    kind: kind
    for kind in get_args(JointType)
    if kind in ("fixed", "revolute", "continuous", "prismatic", "planar", "floating")
}
_JOINT_TAGS = {"origin", "parent", "child", "axis", "limit", "dynamics", "mimic", "safety_controller"}


def read_joint(context: ReaderContext, node: XmlNode) -> Joint:
    """Read a ``<joint>``; the existence of its links is checked later.

    Raises:
        DescriptionError: The type is unknown, a link is missing, the axis is zero, the lower limit exceeds the upper
            one, or a value is not a number.
    """
    name = node.get("name")
    context.warn_unknown_children(node, _JOINT_TAGS, {"hardwareInterface", "calibration"})
    type_name = node.get("type").strip()
    if type_name not in _JOINT_TYPES:
        raise error_at(f"joint '{name}' has the unknown type {quote(type_name)}", node, ", ".join(_JOINT_TYPES))
    kind = _JOINT_TYPES[type_name]
    link_nodes = [node.child(role) for role in ("parent", "child")]
    for role, link_node in zip(("parent", "child"), link_nodes, strict=True):
        if link_node is None or not link_node.get("link").strip():
            raise error_at(f"joint '{name}' has no {role} link", link_node or node, f'<{role} link="…"/>')
    parent, child = (link_node.get("link").strip() for link_node in link_nodes if link_node is not None)
    return Joint(
        name=name,
        type=kind,
        parent=parent,
        child=child,
        T_parent_child=read_origin(node, f"joint '{name}'"),
        T_child_joint=SE3.identity(),
        axes=_read_axes(context, node, name, kind),
        mimic=_read_mimic(node, name),
        safety=_read_safety_controller(context, node, name, kind),
    )


def _read_axes(context: ReaderContext, node: XmlNode, name: str, kind: JointType) -> tuple[Axis, ...]:
    axis_node = node.child("axis")
    if kind in ("fixed", "floating"):
        return ()
    xyz = (1.0, 0.0, 0.0)
    if axis_node is not None:
        xyz = validation.check_axis(context, axis_node.get("xyz") or "1 0 0", axis_node, name, xyz)
    return (Axis(xyz, _read_limits(context, node, name, kind), _read_dynamics(node, name)),)


def _read_limits(context: ReaderContext, node: XmlNode, name: str, kind: JointType) -> AxisLimits:
    limit_node = node.child("limit")
    if limit_node is None:
        if kind in ("revolute", "prismatic"):
            context.warn(node, f"joint '{name}' is {kind} and has no <limit>: unlimited")
        return AxisLimits()
    label = f"of joint '{name}'"

    def read_value(key: str, default: float) -> float:
        text = limit_node.get(key)
        return parse_number(text, limit_node, f"{key} {label}", allow_infinite=True) if text.strip() else default

    lower, upper = -math.inf, math.inf
    if kind in ("revolute", "prismatic"):
        lower, upper = read_value("lower", 0.0), read_value("upper", 0.0)
        if lower == upper == 0.0:
            context.warn(limit_node, f"joint '{name}' is limited to 0 … 0: it cannot move")
    return validation.check_limits(
        context, limit_node, name, lower, upper, read_value("velocity", math.inf), read_value("effort", math.inf)
    )


def _read_dynamics(node: XmlNode, name: str) -> JointDynamics:
    dynamics_node = node.child("dynamics")
    if dynamics_node is None:
        return JointDynamics()
    damping, friction, armature = (
        parse_number(dynamics_node.get(key) or "0", dynamics_node, f"{key} of joint '{name}'")
        for key in ("damping", "friction", "armature")
    )
    if damping < 0.0 or friction < 0.0 or armature < 0.0:
        problem = f"joint '{name}' has damping {damping:g}, friction {friction:g} and armature {armature:g}"
        raise error_at(problem, dynamics_node, "0 or more")
    return JointDynamics(damping=damping, friction=friction, armature=armature)


def _read_mimic(node: XmlNode, name: str) -> Mimic | None:
    mimic_node = node.child("mimic")
    if mimic_node is None:
        return None
    multiplier, offset = (
        parse_number(mimic_node.get(key) or default, mimic_node, f"mimic {key} of joint '{name}'")
        for key, default in (("multiplier", "1"), ("offset", "0"))
    )
    return Mimic(mimic_node.get("joint").strip(), multiplier, offset)


def _read_safety_controller(
    context: ReaderContext, node: XmlNode, name: str, kind: JointType
) -> SafetyController | None:
    safety_node = node.child("safety_controller")
    if safety_node is None:
        return None
    lower, upper, k_position, k_velocity = (
        parse_number(safety_node.get(key) or "0", safety_node, f"{key} of joint '{name}'", allow_infinite=True)
        for key in ("soft_lower_limit", "soft_upper_limit", "k_position", "k_velocity")
    )
    if lower > upper:
        raise error_at(f"joint '{name}' has soft_lower_limit {lower:g} above soft_upper_limit {upper:g}", safety_node)
    for gain_name, gain in (("k_position", k_position), ("k_velocity", k_velocity)):
        if gain < 0.0:
            raise error_at(f"joint '{name}' has {gain_name} {gain:g}", safety_node, "0 or more")
    if kind in ("revolute", "prismatic") and (lower == upper) != (k_position == 0.0):
        reason = "k_position is 0" if k_position == 0.0 else f"they are both {lower:g}"
        context.warn(safety_node, f"the soft limits of joint '{name}' have no effect: {reason}")
    return SafetyController(lower, upper, k_position, k_velocity)
