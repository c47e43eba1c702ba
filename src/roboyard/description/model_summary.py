"""Summary of a robot model: tree of links with masses, joints with limits, sensors, interfaces."""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Any

from roboyard.description.model import Joint, JointInterface, Link, Mimic, Model, SafetyController


def format_tree(model: Model) -> list[str]:
    """Return the lines of the tree of links, each with its mass and the joint to its parent."""
    child_joints: dict[str, list[Joint]] = {}
    for joint in model.joints:
        child_joints.setdefault(joint.parent, []).append(joint)
    links = {link.name: link for link in model.links}
    lines: list[str] = []
    starts = [(links[joint.child], f", {_joint_text(joint)} to the world") for joint in child_joints.get("world", [])]
    for link, attachment in [*starts, *((root, "") for root in model.roots)]:
        lines.append(f"{link.name}{_mass_text(link)}{attachment}")
        lines += _format_branches(link.name, child_joints, links)
    return lines


def _format_branches(name: str, below: dict[str, list[Joint]], links: dict[str, Link]) -> Iterator[str]:
    stack = [(joint, 1) for joint in reversed(below.get(name, []))]
    while stack:
        joint, depth = stack.pop()
        yield f"{'  ' * depth}{joint.child}{_mass_text(links[joint.child])}, {_joint_text(joint)}"
        stack += [(one, depth + 1) for one in reversed(below.get(joint.child, []))]


def _mass_text(link: Link) -> str:
    return f" {link.inertial.mass:.4g} kg" if link.inertial is not None else ""


def _joint_text(joint: Joint) -> str:
    return f"{joint.type} by {joint.name}"


def describe_joints(model: Model) -> list[dict[str, Any]]:
    """Return every joint that moves or closes a loop as plain data: type, links, limits, mimicked joint, safety."""
    closing = {joint.name for joint in model.loop_joints}
    interfaces = {one.joint: one for one in model.interfaces}
    return [
        {
            "name": joint.name,
            "type": joint.type,
            "parent": joint.parent,
            "child": joint.child,
            "limits": [_limits(joint, axis) for axis in range(len(joint.axes))],
            "mimics": _mimic_data(joint.mimic) if joint.mimic else None,
            "safety": _safety_data(joint.safety) if joint.safety else None,
            "commands": _command_ranges(interfaces.get(joint.name)),
            "closes_loop": joint.name in closing,
        }
        for joint in (*model.joints, *model.loop_joints)
        if joint.type != "fixed" or joint.name in closing
    ]


def _mimic_data(mimic: Mimic) -> dict[str, Any]:
    return {"joint": mimic.joint, "multiplier": mimic.multiplier, "offset": mimic.offset}


def _safety_data(safety: SafetyController) -> dict[str, float]:
    return {
        "soft_lower": safety.soft_lower,
        "soft_upper": safety.soft_upper,
        "k_position": safety.k_position,
        "k_velocity": safety.k_velocity,
    }


def _command_ranges(interface: JointInterface | None) -> dict[str, list[float | None]]:
    """Return the smallest and largest command by mode; None: no bound."""
    found = interface.commands if interface is not None else ()
    return {mode: [one if math.isfinite(one) else None for one in bounds] for mode, *bounds in found}


def _limits(joint: Joint, axis: int) -> dict[str, float | None]:
    limits = joint.axes[axis].limits
    named = ("lower", limits.lower), ("upper", limits.upper), ("velocity", limits.velocity), ("effort", limits.effort)
    return {name: value if math.isfinite(value) else None for name, value in named}


def format_limits(joint: dict[str, Any]) -> str:
    """Return the limits of one of the joints of `describe_joints` as text."""
    unit, speed, effort = ("m", "m/s", "N") if joint["type"] == "prismatic" else ("rad", "rad/s", "N m")
    parts = []
    for limits in joint["limits"]:
        low, high = limits["lower"], limits["upper"]
        if low is not None or high is not None:
            parts.append(f"{_format_range(low, high)} {unit}")
        parts += [f"{limits[key]:.4g} {of}" for key, of in (("velocity", speed), ("effort", effort)) if limits[key]]
    for mode, (low, high) in joint["commands"].items():
        if low is not None or high is not None:
            parts.append(f"{mode} commands {_format_range(low, high)}")
    if mimic := joint["mimics"]:
        offset = f" {mimic['offset']:+.4g}" if mimic["offset"] else ""
        parts.append(f"mimics {mimic['multiplier']:.4g} × {mimic['joint']}{offset}")
    if safety := joint["safety"]:
        span = _format_range(safety["soft_lower"], safety["soft_upper"])
        soft = f"{span} {unit}, " if safety["soft_lower"] < safety["soft_upper"] else ""
        parts.append(f"safety {soft}k_position {safety['k_position']:.4g}, k_velocity {safety['k_velocity']:.4g}")
    if joint["closes_loop"]:
        parts.append(f"closes a loop from {joint['parent']} to {joint['child']}")
    return ", ".join(parts) or "no limits"


def _format_range(low: float | None, high: float | None) -> str:
    return f"{'-∞' if low is None else f'{low:.4g}'} … {'∞' if high is None else f'{high:.4g}'}"


def describe_links(model: Model) -> list[dict[str, Any]]:
    """Return every link with mass: mass [kg], center of mass [m], and ixx, iyy, izz, ixy, ixz, iyz about it [kg m²]."""
    return [
        {
            "name": link.name,
            "mass": link.inertial.mass,
            "com": [float(value) for value in link.inertial.T_link_com.xyz],
            "inertia": list(link.inertial.inertia),
        }
        for link in model.links
        if link.inertial is not None
    ]


def describe_interfaces(model: Model) -> dict[str, Any]:
    """Return the command modes and the published states of each joint."""

    def describe(one: JointInterface) -> dict[str, list[str]]:
        return {"commands": [mode for mode, _, _ in one.commands], "states": list(one.states)}

    return {one.joint: describe(one) for one in model.interfaces}


def describe_sensors(model: Model) -> list[dict[str, Any]]:
    """Return every sensor: kind, link, rate [Hz] and topic."""
    return [
        {"name": one.name, "kind": one.kind, "link": one.link, "rate": one.update_rate, "topic": one.topic}
        for one in model.sensors
    ]
