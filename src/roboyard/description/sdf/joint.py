"""Reads ``<joint>`` of SDF: type, links, axes with limits and dynamics, mimic."""

from __future__ import annotations

import math
from typing import get_args

import numpy as np

from roboyard.description import validation
from roboyard.description.model import Axis, AxisLimits, Joint, JointDynamics, JointType, Mimic
from roboyard.description.reader_context import ReaderContext
from roboyard.description.sdf.scope import MODEL, WORLD, SdfScope
from roboyard.description.xml import XmlNode
from roboyard.description.xml_values import child_boolean, child_number, child_text, error_at, quote
from roboyard.geometry import SE3

_JOINT_TYPES: dict[str, JointType] = {kind: kind for kind in get_args(JointType) if kind not in ("planar", "floating")}
_AXIS_COUNTS = {"fixed": 0, "ball": 0, "universal": 2, "revolute2": 2, "gearbox": 2}
_JOINT_TAGS = {
    "pose", "parent", "child", "axis", "axis2", "thread_pitch", "screw_thread_pitch", "gearbox_ratio",
    "gearbox_reference_body", "sensor",
}  # fmt: skip
_UNLIMITED = 1e15  # SDF writes ±1e16 for "no limit"


def read_joint_link(node: XmlNode, role: str) -> str:
    """Return the name of the parent or child. Raises DescriptionError if it is missing."""
    name = child_text(node, role)
    role_node = node.child(role)
    if not name and role_node is not None:
        name = role_node.get("link").strip()  # as in URDF; old Gazebo files use it too
    if not name:
        raise error_at(f"joint '{node.get('name')}' has no {role}", role_node or node, f"<{role}>link</{role}>")
    return name


def read_joint(
    context: ReaderContext, node: XmlNode, scope: SdfScope, key: str, poses: dict[str, SE3], version: tuple[int, int]
) -> Joint:
    """Read a ``<joint>``.

    Args:
        context: Receives warnings.
        node: The ``<joint>``.
        scope: Resolves names; its canonical link is set.
        key: Key of the joint in the scope.
        poses: T_model_link of every link, nested ones with ``::``.
        version: SDF version of the file: before 1.5 axes are given in the model frame.

    Raises:
        DescriptionError: The type or a link is unknown, the axis is zero, the lower limit exceeds the upper one, or a
            value is not a number.
    """
    name = node.get("name").strip()
    context.warn_unknown_children(node, _JOINT_TAGS, {"physics", "provide_feedback"})
    type_name = node.get("type").strip()
    if type_name not in _JOINT_TYPES:
        raise error_at(f"joint '{name}' has the unknown type {quote(type_name)}", node, ", ".join(_JOINT_TYPES))
    kind = _JOINT_TYPES[type_name]
    links = []
    for role in ("parent", "child"):
        link_name = read_joint_link(node, role)
        if link_name == WORLD:
            if role == "child":
                raise error_at(f"the child of joint '{name}' must not be the world", node, "the world as parent")
            links.append(WORLD)
        elif link_name == name and scope.kind(link_name) == "joint":
            raise error_at(f"joint '{name}' names itself as its {role}", node, "a link or frame")
        else:
            links.append(scope.link_of(link_name, node.child(role) or node, f"{role} of joint '{name}'"))
        if links[-1] != WORLD and links[-1] not in poses:
            raise error_at(f"joint '{name}' has the {role} '{link_name}', which has no link", node.child(role) or node)
    parent, child = links
    T_model_child = poses[child]
    T_model_parent = SE3.identity() if parent == WORLD else poses[parent]
    T_model_joint = scope.pose(key, node, f"joint '{name}'")
    n_axes = _AXIS_COUNTS.get(kind, 1)
    for unused_tag in ("axis", "axis2")[n_axes:]:
        if node.child(unused_tag) is not None:
            context.warn(
                node.child(unused_tag) or node, f"<{unused_tag}> of joint '{name}' has no effect: its type is {kind}"
            )
    axes = tuple(
        _read_axis(context, node.child(tag), node, name, scope, T_model_joint, version)
        for tag in ("axis", "axis2")[:n_axes]
    )
    legacy_pitch = child_number(node, "thread_pitch", 1.0)
    default_pitch = (
        -2.0 * math.pi / legacy_pitch if legacy_pitch else 0.0
    )  # Gazebo's old pitch: rad/m, positive is left-handed
    return Joint(
        name=name,
        type=kind,
        parent=parent,
        child=child,
        T_parent_child=T_model_parent.inverse() @ T_model_child,
        T_child_joint=T_model_child.inverse() @ T_model_joint,
        axes=axes,
        mimic=_read_mimic(context, node.child("axis"), name),
        thread_pitch=child_number(node, "screw_thread_pitch", default_pitch) if kind == "screw" else 0.0,
        gear_ratio=child_number(node, "gearbox_ratio", 1.0),
        gear_reference=child_text(node, "gearbox_reference_body") or None,
    )


def _read_axis(
    context: ReaderContext,
    node: XmlNode | None,
    joint_node: XmlNode,
    name: str,
    scope: SdfScope,
    T_model_joint: SE3,
    version: tuple[int, int],
) -> Axis:
    if node is None:
        context.warn(joint_node, f"joint '{name}' has no axis: z is used")
        return Axis((0.0, 0.0, 1.0))
    context.warn_unknown_children(
        node, {"xyz", "limit", "dynamics", "mimic", "use_parent_model_frame"}, {"initial_position"}
    )
    xyz_node = node.child("xyz")
    xyz = (0.0, 0.0, 1.0)
    if xyz_node is not None and xyz_node.text.strip():
        xyz = validation.check_axis(context, xyz_node.text, xyz_node, name, xyz)
    frame = explicit_frame = xyz_node.get("expressed_in") if xyz_node is not None else ""
    if not frame and child_boolean(node, "use_parent_model_frame", version < (1, 5)):
        frame = MODEL
    if frame and version < (1, 5) and not explicit_frame:
        _warn_model_frame_axis(context, node, name, T_model_joint)
    if frame:
        R = (
            T_model_joint.inverse() @ scope.pose(frame, xyz_node or node, f"expressed_in of joint '{name}'")
        ).rotation_matrix()
        x, y, z = (float(value) for value in R @ np.array(xyz))
        xyz = (x, y, z)
    return Axis(xyz, _read_limits(context, node, name), _read_dynamics(context, node))


def _warn_model_frame_axis(context: ReaderContext, node: XmlNode, name: str, T_model_joint: SE3) -> None:
    """Warn about axes in files of version 1.4, which are often written with the later rule in mind."""
    if not np.allclose(T_model_joint.rotation_matrix(), np.eye(3), atol=1e-6):
        context.warn(
            node, f"joint '{name}': before SDF 1.5 an axis is in the model frame, and the joint is rotated in it"
        )


def _read_limits(context: ReaderContext, node: XmlNode, name: str) -> AxisLimits:
    limit_node = node.child("limit")
    if limit_node is None:
        return AxisLimits()
    context.warn_unknown_children(limit_node, {"lower", "upper", "effort", "velocity"}, {"stiffness", "dissipation"})
    lower = child_number(limit_node, "lower", -math.inf, allow_infinite=True)
    upper = child_number(limit_node, "upper", math.inf, allow_infinite=True)
    velocity = child_number(limit_node, "velocity", math.inf, allow_infinite=True)
    effort = child_number(limit_node, "effort", math.inf, allow_infinite=True)
    return validation.check_limits(
        context,
        limit_node,
        name,
        lower if lower > -_UNLIMITED else -math.inf,
        upper if upper < _UNLIMITED else math.inf,
        velocity if 0.0 <= velocity < _UNLIMITED else math.inf,  # negative is SDF's old "no limit"
        effort if 0.0 <= effort < _UNLIMITED else math.inf,
    )


def _read_dynamics(context: ReaderContext, node: XmlNode) -> JointDynamics:
    dynamics_node = node.child("dynamics")
    if dynamics_node is None:
        return JointDynamics()
    context.warn_unknown_children(dynamics_node, {"damping", "friction", "spring_stiffness", "spring_reference"})
    return JointDynamics(
        damping=child_number(dynamics_node, "damping", 0.0, minimum=0.0),
        friction=child_number(dynamics_node, "friction", 0.0, minimum=0.0),
        stiffness=child_number(dynamics_node, "spring_stiffness", 0.0, minimum=0.0),
        reference=child_number(dynamics_node, "spring_reference", 0.0),
    )


def _read_mimic(context: ReaderContext, axis: XmlNode | None, name: str) -> Mimic | None:
    mimic_node = axis.child("mimic") if axis else None
    if mimic_node is None:
        return None
    if mimic_node.get("axis", "axis") != "axis":
        context.warn(mimic_node, f"joint '{name}' mimics a second axis: ignored")
        return None
    multiplier = child_number(mimic_node, "multiplier", 1.0)
    offset = child_number(mimic_node, "offset", 0.0) - multiplier * child_number(mimic_node, "reference", 0.0)
    return Mimic(mimic_node.get("joint").strip(), multiplier, offset)
