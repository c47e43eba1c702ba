"""Interfaces as motors and servos."""

from __future__ import annotations

import math
from xml.etree import ElementTree as ET

import numpy as np

from roboyard.description.model import Joint, JointInterface, Model
from roboyard.description.write.written import Losses, add, number, numbers

_BANDWIDTH = 40.0  # of position servos [rad/s], as in simulation
_TIME = 0.002  # of velocity servos [s]
_KINDS = ("position", "velocity", "effort")


def add_actuator(section: ET.Element, model: Model, interface: JointInterface, prefix: str, losses: Losses) -> None:
    """The actuator of a joint: of one kind, since two would fight."""
    commands = {mode: (low, high) for mode, low, high in interface.commands if mode in _KINDS}
    joint = next((one for one in model.joints if one.name == interface.joint), None)
    if not commands or joint is None or not joint.axes or joint.mimic is not None:
        return
    order = ("velocity", "position", "effort") if joint.type == "continuous" else _KINDS
    if dict(interface.parameters).get("vel_kp") is None and "effort" in commands and "velocity" in commands:
        order = ("effort", "velocity", "position") if commands["velocity"] == (-math.inf, math.inf) else order
    mode = next(one for one in order if one in commands)
    others = [one for one in commands if one != mode]
    if others:
        losses.say(f"joint '{joint.name}' also takes {' and '.join(others)}: lost, one actuator is written")
    gains = dict(interface.parameters)
    low, high = commands[mode]
    name = prefix + joint.name
    attributes = {"name": name, "joint": name}
    if mode == "position":
        inertia = _inertia(model, joint)
        kp = _gain(gains, "pos_kp", inertia * _BANDWIDTH**2, joint, losses)
        kd = float(gains.get("pos_kd", 2.0 * inertia * _BANDWIDTH))
        node = add(section, "position", **attributes, kp=number(kp), kv=number(kd))
    elif mode == "velocity":
        kv = _gain(gains, "vel_kp", _inertia(model, joint) / _TIME, joint, losses)
        node = add(section, "velocity", **attributes, kv=number(kv))
    else:
        node = add(section, "motor", **attributes)
        effort = joint.axes[0].limits.effort
        low, high = max(low, -effort), min(high, effort)
    if math.isfinite(low) and math.isfinite(high) and low < high:
        node.set("ctrllimited", "true")
        node.set("ctrlrange", numbers((low, high)))
    if any(float(gains.get(key, 0.0)) for key in ("pos_ki", "vel_ki")):
        losses.say("integral gains of servos are lost")
    if interface.reduction != 1.0:
        losses.say("reductions of transmissions are lost")


def _gain(gains: dict[str, str], key: str, default: float, joint: Joint, losses: Losses) -> float:
    if key in gains:
        return float(gains[key])
    losses.say(f"joint '{joint.name}' states no gain: {default:.3g} written, which suits its inertia")
    return default


def _inertia(model: Model, joint: Joint) -> float:
    """What the joint moves about its axis, all behind it rigid [kg m², or kg for a slide]."""
    links = {link.name: link for link in model.links}
    behind = [joint.child]
    for name in behind:
        behind += [one.child for one in model.joints if one.parent == name]
    T_model_joint = links[joint.child].T_model_link @ joint.T_child_joint
    origin = np.asarray(T_model_joint.translation)
    axis = T_model_joint.rotation_matrix() @ np.asarray(joint.axes[0].xyz)
    total = 0.0
    for name in behind:
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
