"""``<joint>``: type, ends, axes with limits and dynamics, mimic."""

from __future__ import annotations

import math
from typing import get_args

import numpy as np

from roboyard.description import checks
from roboyard.description.fields import boolean_of, number_of, text_of
from roboyard.description.model import Axis, Dynamics, Joint, JointType, Limits, Mimic
from roboyard.description.reading import Reading
from roboyard.description.sdf.scope import MODEL, WORLD, Scope
from roboyard.description.values import fault, shown
from roboyard.description.xml import Node
from roboyard.geometry import SE3

_TYPES: dict[str, JointType] = {kind: kind for kind in get_args(JointType) if kind not in ("planar", "floating")}
_AXES = {"fixed": 0, "ball": 0, "universal": 2, "revolute2": 2, "gearbox": 2}
_KNOWN = {
    "pose", "parent", "child", "axis", "axis2", "thread_pitch", "screw_thread_pitch", "gearbox_ratio",
    "gearbox_reference_body", "sensor",
}  # fmt: skip
_ENDLESS = 1e15  # SDF writes ±1e16 for "no limit"


def end(node: Node, role: str) -> str:
    """Name of the parent or child. Raises DescriptionError when it is missing."""
    name = text_of(node, role)
    given = node.child(role)
    if not name and given is not None:
        name = given.get("link").strip()  # as URDF writes it; Gazebo's old files did, too
    if not name:
        raise fault(f"joint '{node.get('name')}' names no {role}", given or node, f"<{role}>link</{role}>")
    return name


def read_joint(
    reading: Reading, node: Node, scope: Scope, key: str, poses: dict[str, SE3], version: tuple[int, int]
) -> Joint:
    """The joint at ``node``.

    Args:
        reading: Takes findings.
        node: The ``<joint>``.
        scope: Resolves names; its canonical link is set.
        key: The joint's key there.
        poses: T_model_link of every link, nested ones with ``::``.
        version: Of the file: before 1.5 axes are given in the model frame.

    Raises:
        DescriptionError: unknown type or ends, an axis without length, lower above upper, a number that is none.
    """
    name = node.get("name").strip()
    reading.unknown(node, _KNOWN, {"physics", "provide_feedback"})
    written = node.get("type").strip()
    if written not in _TYPES:
        raise fault(f"joint '{name}' has type {shown(written)}", node, ", ".join(_TYPES))
    kind = _TYPES[written]
    links = []
    for role in ("parent", "child"):
        named = end(node, role)
        if named == WORLD:
            if role == "child":
                raise fault(f"joint '{name}' has the world as its child", node, "the world as parent")
            links.append(WORLD)
        elif named == name and scope.kind(named) == "joint":
            raise fault(f"joint '{name}' names itself as its {role}", node, "a link or frame")
        else:
            links.append(scope.body(named, node.child(role) or node, f"{role} of joint '{name}'"))
        if links[-1] != WORLD and links[-1] not in poses:
            raise fault(f"joint '{name}' has the {role} '{named}', which has no link", node.child(role) or node)
    parent, child = links
    T_model_child = poses[child]
    T_model_parent = SE3.identity() if parent == WORLD else poses[parent]
    T_model_joint = scope.pose(key, node, f"joint '{name}'")
    count = _AXES.get(kind, 1)
    for spare in ("axis", "axis2")[count:]:
        if node.child(spare) is not None:
            reading.note(node.child(spare) or node, f"<{spare}> of joint '{name}' has no effect: its type is {kind}")
    axes = tuple(
        _axis(reading, node.child(tag), node, name, scope, T_model_joint, version) for tag in ("axis", "axis2")[:count]
    )
    pitch = number_of(node, "thread_pitch", 1.0)
    per_turn = -2.0 * math.pi / pitch if pitch else 0.0  # Gazebo's old pitch: rad/m, positive is left-handed
    return Joint(
        name=name,
        type=kind,
        parent=parent,
        child=child,
        T_parent_child=T_model_parent.inverse() @ T_model_child,
        T_child_joint=T_model_child.inverse() @ T_model_joint,
        axes=axes,
        mimic=_mimic(reading, node.child("axis"), name),
        thread_pitch=number_of(node, "screw_thread_pitch", per_turn) if kind == "screw" else 0.0,
        gear_ratio=number_of(node, "gearbox_ratio", 1.0),
        gear_reference=text_of(node, "gearbox_reference_body") or None,
    )


def _axis(
    reading: Reading,
    node: Node | None,
    joint: Node,
    name: str,
    scope: Scope,
    T_model_joint: SE3,
    version: tuple[int, int],
) -> Axis:
    if node is None:
        reading.note(joint, f"joint '{name}' has no axis: z taken")
        return Axis((0.0, 0.0, 1.0))
    reading.unknown(node, {"xyz", "limit", "dynamics", "mimic", "use_parent_model_frame"}, {"initial_position"})
    given = node.child("xyz")
    xyz = (0.0, 0.0, 1.0)
    if given is not None and given.text.strip():
        xyz = checks.axis(reading, given.text, given, name, xyz)
    frame = given_frame = given.get("expressed_in") if given is not None else ""
    if not frame and boolean_of(node, "use_parent_model_frame", version < (1, 5)):
        frame = MODEL
    if frame and version < (1, 5) and not given_frame:
        _warn_old(reading, node, name, T_model_joint)
    if frame:
        R = (
            T_model_joint.inverse() @ scope.pose(frame, given or node, f"expressed_in of joint '{name}'")
        ).rotation_matrix()
        x, y, z = (float(value) for value in R @ np.array(xyz))
        xyz = (x, y, z)
    return Axis(xyz, _limits(reading, node, name), _dynamics(reading, node))


def _warn_old(reading: Reading, node: Node, name: str, T_model_joint: SE3) -> None:
    """Files labelled 1.4 are often written with the later rule in mind; the difference is worth a word."""
    if not np.allclose(T_model_joint.rotation_matrix(), np.eye(3), atol=1e-6):
        reading.note(
            node, f"joint '{name}': before SDF 1.5 an axis is in the model frame, and the joint is turned from it"
        )


def _limits(reading: Reading, node: Node, name: str) -> Limits:
    given = node.child("limit")
    if given is None:
        return Limits()
    reading.unknown(given, {"lower", "upper", "effort", "velocity"}, {"stiffness", "dissipation"})
    lower = number_of(given, "lower", -math.inf, infinite=True)
    upper = number_of(given, "upper", math.inf, infinite=True)
    velocity = number_of(given, "velocity", math.inf, infinite=True)
    effort = number_of(given, "effort", math.inf, infinite=True)
    return checks.limits(
        reading,
        given,
        name,
        lower if lower > -_ENDLESS else -math.inf,
        upper if upper < _ENDLESS else math.inf,
        velocity if 0.0 <= velocity < _ENDLESS else math.inf,  # negative is SDF's old "no limit"
        effort if 0.0 <= effort < _ENDLESS else math.inf,
    )


def _dynamics(reading: Reading, node: Node) -> Dynamics:
    given = node.child("dynamics")
    if given is None:
        return Dynamics()
    reading.unknown(given, {"damping", "friction", "spring_stiffness", "spring_reference"})
    return Dynamics(
        damping=number_of(given, "damping", 0.0, low=0.0),
        friction=number_of(given, "friction", 0.0, low=0.0),
        stiffness=number_of(given, "spring_stiffness", 0.0, low=0.0),
        reference=number_of(given, "spring_reference", 0.0),
    )


def _mimic(reading: Reading, axis: Node | None, name: str) -> Mimic | None:
    given = axis.child("mimic") if axis else None
    if given is None:
        return None
    if given.get("axis", "axis") != "axis":
        reading.note(given, f"joint '{name}' follows a second axis: left out")
        return None
    factor = number_of(given, "multiplier", 1.0)
    offset = number_of(given, "offset", 0.0) - factor * number_of(given, "reference", 0.0)
    return Mimic(given.get("joint").strip(), factor, offset)
