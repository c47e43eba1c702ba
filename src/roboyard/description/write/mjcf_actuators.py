"""Interfaces as motors and servos."""

from __future__ import annotations

import math
from xml.etree import ElementTree as ET

import numpy as np

from roboyard.description.model import Joint, JointInterface, Model
from roboyard.description.write.written import ConversionLosses, add_child, format_number, format_numbers

_POSITION_BANDWIDTH = 40.0  # of position servos [rad/s], as in simulation
_VELOCITY_TIME = 0.002  # of velocity servos [s]
_COMMAND_MODES = ("position", "velocity", "effort")


def add_actuator(
    section: ET.Element, model: Model, interface: JointInterface, prefix: str, losses: ConversionLosses
) -> None:
    """The actuator of a joint: of one kind, since two would fight."""
    commands = {mode: (lower, upper) for mode, lower, upper in interface.commands if mode in _COMMAND_MODES}
    joint = next((one for one in model.joints if one.name == interface.joint), None)
    if not commands or joint is None or not joint.axes or joint.mimic is not None:
        return
    preference = ("velocity", "position", "effort") if joint.type == "continuous" else _COMMAND_MODES
    if dict(interface.parameters).get("vel_kp") is None and "effort" in commands and "velocity" in commands:
        preference = ("effort", "velocity", "position") if commands["velocity"] == (-math.inf, math.inf) else preference
    mode = next(one for one in preference if one in commands)
    other_modes = [one for one in commands if one != mode]
    if other_modes:
        losses.add(f"joint '{joint.name}' also takes {' and '.join(other_modes)}: lost, one actuator is written")
    gains = dict(interface.parameters)
    lower, upper = commands[mode]
    name = prefix + joint.name
    attributes = {"name": name, "joint": name}
    if mode == "position":
        inertia = _joint_inertia(model, joint)
        kp = _gain_or_default(gains, "pos_kp", inertia * _POSITION_BANDWIDTH**2, joint, losses)
        kd = float(gains.get("pos_kd", 2.0 * inertia * _POSITION_BANDWIDTH))
        node = add_child(section, "position", **attributes, kp=format_number(kp), kv=format_number(kd))
    elif mode == "velocity":
        kv = _gain_or_default(gains, "vel_kp", _joint_inertia(model, joint) / _VELOCITY_TIME, joint, losses)
        node = add_child(section, "velocity", **attributes, kv=format_number(kv))
    else:
        node = add_child(section, "motor", **attributes)
        effort = joint.axes[0].limits.effort
        lower, upper = max(lower, -effort), min(upper, effort)
    if math.isfinite(lower) and math.isfinite(upper) and lower < upper:
        node.set("ctrllimited", "true")
        node.set("ctrlrange", format_numbers((lower, upper)))
    if any(float(gains.get(key, 0.0)) for key in ("pos_ki", "vel_ki")):
        losses.add("integral gains of servos are lost")
    if interface.reduction != 1.0:
        losses.add("reductions of transmissions are lost")


def _gain_or_default(gains: dict[str, str], key: str, default: float, joint: Joint, losses: ConversionLosses) -> float:
    if key in gains:
        return float(gains[key])
    losses.add(f"joint '{joint.name}' states no gain: {default:.3g} written, which suits its inertia")
    return default


def _joint_inertia(model: Model, joint: Joint) -> float:
    """What the joint moves about its axis, all behind it rigid [kg m², or kg for a slide]."""
    links = {link.name: link for link in model.links}
    links_behind = [joint.child]
    for name in links_behind:
        links_behind += [one.child for one in model.joints if one.parent == name]
    T_model_joint = links[joint.child].T_model_link @ joint.T_child_joint
    origin = np.asarray(T_model_joint.translation)
    axis = T_model_joint.rotation_matrix() @ np.asarray(joint.axes[0].xyz)
    total = 0.0
    for name in links_behind:
        inertial = links[name].inertial
        if inertial is None:
            continue
        if joint.type == "prismatic":
            total += inertial.mass
            continue
        T = links[name].T_model_link @ inertial.T_link_com
        ixx, iyy, izz, ixy, ixz, iyz = inertial.inertia
        R, arm = T.rotation_matrix(), np.asarray(T.translation) - origin
        tensor = R @ np.array([[ixx, ixy, ixz], [ixy, iyy, iyz], [ixz, iyz, izz]]) @ R.T
        across = arm - (arm @ axis) * axis
        total += float(axis @ tensor @ axis) + inertial.mass * float(across @ across)
    return max(total, 1e-9)
