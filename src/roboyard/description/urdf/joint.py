"""``<joint>``: type, frames, axis, limits, dynamics, mimic, safety controller."""

from __future__ import annotations

import math
from typing import get_args

from roboyard.description import checks
from roboyard.description.model import Axis, Dynamics, Joint, JointType, Limits, Mimic, Safety
from roboyard.description.reading import Reading
from roboyard.description.urdf.link import origin
from roboyard.description.values import fault, number, shown
from roboyard.description.xml import Node
from roboyard.geometry import SE3

_TYPES: dict[str, JointType] = {
    kind: kind
    for kind in get_args(JointType)
    if kind in ("fixed", "revolute", "continuous", "prismatic", "planar", "floating")
}
_KNOWN = {"origin", "parent", "child", "axis", "limit", "dynamics", "mimic", "safety_controller"}


def read_joint(reading: Reading, node: Node) -> Joint:
    """The joint at ``node``; whether its links exist is checked later.

    Raises:
        DescriptionError: unknown type, missing link, axis without length, lower above upper, a number that is none.
    """
    name = node.get("name")
    reading.unknown(node, _KNOWN, {"hardwareInterface", "calibration"})
    written = node.get("type").strip()
    if written not in _TYPES:
        raise fault(f"joint '{name}' has type {shown(written)}", node, ", ".join(_TYPES))
    kind = _TYPES[written]
    ends = [node.child(role) for role in ("parent", "child")]
    for role, end in zip(("parent", "child"), ends, strict=True):
        if end is None or not end.get("link").strip():
            raise fault(f"joint '{name}' names no {role} link", end or node, f'<{role} link="…"/>')
    parent, child = (end.get("link").strip() for end in ends if end is not None)
    return Joint(
        name=name,
        type=kind,
        parent=parent,
        child=child,
        T_parent_child=origin(node, f"joint '{name}'"),
        T_child_joint=SE3.identity(),
        axes=_axes(reading, node, name, kind),
        mimic=_mimic(node, name),
        safety=_safety(reading, node, name, kind),
    )


def _axes(reading: Reading, node: Node, name: str, kind: JointType) -> tuple[Axis, ...]:
    given = node.child("axis")
    if kind in ("fixed", "floating"):
        return ()
    xyz = (1.0, 0.0, 0.0)
    if given is not None:
        xyz = checks.axis(reading, given.get("xyz") or "1 0 0", given, name, xyz)
    return (Axis(xyz, _limits(reading, node, name, kind), _dynamics(node, name)),)


def _limits(reading: Reading, node: Node, name: str, kind: JointType) -> Limits:
    given = node.child("limit")
    if given is None:
        if kind in ("revolute", "prismatic"):
            reading.note(node, f"joint '{name}' is {kind} and has no <limit>: unlimited")
        return Limits()
    label = f"of joint '{name}'"

    def value(key: str, default: float) -> float:
        text = given.get(key)
        return number(text, given, f"{key} {label}", infinite=True) if text.strip() else default

    lower, upper = -math.inf, math.inf
    if kind in ("revolute", "prismatic"):
        lower, upper = value("lower", 0.0), value("upper", 0.0)
        if lower == upper == 0.0:
            reading.note(given, f"joint '{name}' is limited to 0 … 0: it cannot move")
    return checks.limits(reading, given, name, lower, upper, value("velocity", math.inf), value("effort", math.inf))


def _dynamics(node: Node, name: str) -> Dynamics:
    given = node.child("dynamics")
    if given is None:
        return Dynamics()
    damping, friction, armature = (
        number(given.get(key) or "0", given, f"{key} of joint '{name}'") for key in ("damping", "friction", "armature")
    )
    if damping < 0.0 or friction < 0.0 or armature < 0.0:
        what = f"joint '{name}' has damping {damping:g}, friction {friction:g} and armature {armature:g}"
        raise fault(what, given, "0 or more")
    return Dynamics(damping=damping, friction=friction, armature=armature)


def _mimic(node: Node, name: str) -> Mimic | None:
    given = node.child("mimic")
    if given is None:
        return None
    factor, offset = (
        number(given.get(key) or default, given, f"mimic {key} of joint '{name}'")
        for key, default in (("multiplier", "1"), ("offset", "0"))
    )
    return Mimic(given.get("joint").strip(), factor, offset)


def _safety(reading: Reading, node: Node, name: str, kind: JointType) -> Safety | None:
    given = node.child("safety_controller")
    if given is None:
        return None
    lower, upper, position, velocity = (
        number(given.get(key) or "0", given, f"{key} of joint '{name}'", infinite=True)
        for key in ("soft_lower_limit", "soft_upper_limit", "k_position", "k_velocity")
    )
    if lower > upper:
        raise fault(f"joint '{name}' has soft_lower_limit {lower:g} above soft_upper_limit {upper:g}", given)
    for word, gain in (("k_position", position), ("k_velocity", velocity)):
        if gain < 0.0:
            raise fault(f"joint '{name}' has {word} {gain:g}", given, "0 or more")
    if kind in ("revolute", "prismatic") and (lower == upper) != (position == 0.0):
        lacking = "k_position is 0" if position == 0.0 else f"they are both {lower:g}"
        reading.note(given, f"the soft limits of joint '{name}' have no effect: {lacking}")
    return Safety(lower, upper, position, velocity)
