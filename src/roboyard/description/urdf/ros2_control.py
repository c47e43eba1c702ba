"""``<ros2_control>`` blocks and ``<transmission>`` elements: command and state interfaces of joints."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

from roboyard.description.model import AxisLimits, Joint, JointInterface, Plugin
from roboyard.description.reader_context import ReaderContext
from roboyard.description.sensors import EncoderSpec, Sensor
from roboyard.description.xml import XmlNode
from roboyard.description.xml_values import error_at, parse_integer, parse_number, quote
from roboyard.errors import DescriptionError
from roboyard.geometry import SE3

_COMMAND_MODES = ("position", "velocity", "effort")
_STATE_INTERFACES = (*_COMMAND_MODES, "acceleration")
_MAX_INITIAL_VALUE = 1e6  # maximum initial position or velocity without a limit [rad, m, rad/s, m/s]
_ROS1_INTERFACES = {
    "EffortJointInterface": "effort",
    "VelocityJointInterface": "velocity",
    "PositionJointInterface": "position",
}


@dataclass(slots=True)
class _InterfaceDraft:
    """Data of several blocks about one joint."""

    commands: dict[str, tuple[float, float]] = field(default_factory=dict)
    states: dict[str, None] = field(default_factory=dict)
    initial: dict[str, float] = field(default_factory=dict)
    parameters: dict[str, str] = field(default_factory=dict)
    reduction: float = 1.0


def read_joint_interfaces(
    context: ReaderContext, root: XmlNode, joints: Mapping[str, Joint]
) -> tuple[tuple[JointInterface, ...], tuple[Plugin, ...]]:
    """Return interfaces by joint, in file order, and each ``<ros2_control>`` block as a plugin with all its content.

    Raises:
        DescriptionError: A limit, initial value or reduction is not a number.
    """
    joint_names = set(joints)
    drafts: dict[str, _InterfaceDraft] = {}
    plugins = []
    for block in root.children_with_tag("ros2_control"):
        hardware = block.child("hardware")
        driver = hardware.child("plugin") if hardware else None
        plugins.append(Plugin(block.get("name"), driver.text.strip() if driver else "", block.freeze()))
        context.warn_unknown_children(block, {"hardware", "joint"}, {"sensor", "gpio", "transmission"})
        for node in block.children_with_tag("joint"):
            if _refers_to_joint(context, node, joint_names):
                name = node.get("name").strip()
                _read_control_joint(context, node, drafts.setdefault(name, _InterfaceDraft()))
                _clamp_initial_values(context, node, joints[name], drafts[name])
    for node in root.children_with_tag("transmission"):
        _read_transmission(context, node, drafts, joint_names)
    return tuple(_make_interface(name, draft) for name, draft in drafts.items()), tuple(plugins)


def read_driver_encoders(root: XmlNode, joints: Mapping[str, Joint], sensors: Iterable[Sensor]) -> list[Sensor]:
    """Return the encoders that a driver's ``enc_counts_per_rev`` (as in diffdrive_arduino) defines, one per block.

    Args:
        root: The ``<robot>``.
        joints: Joints by name.
        sensors: Sensors read so far: joints that one of their encoders measures are omitted.

    Raises:
        DescriptionError: The counts are not a positive integer.
    """
    encoder_specs = [sensor.spec for sensor in sensors if isinstance(sensor.spec, EncoderSpec)]
    measured_joints = {
        name for spec in encoder_specs for name in spec.joints or joints
    }  # an encoder without names measures all joints
    encoders = []
    for block in root.children_with_tag("ros2_control"):
        hardware = block.child("hardware")
        for one in hardware.children_with_tag("param") if hardware else ():
            if one.get("name").strip() != "enc_counts_per_rev" or not one.text.strip():
                continue
            counts = parse_integer(one.text, one, "enc_counts_per_rev")
            if counts < 1:
                raise error_at(f"enc_counts_per_rev is {counts}", one, "at least 1 count per revolution")
            names = (joint.get("name").strip() for joint in block.children_with_tag("joint"))
            encoder_joints = [
                name for name in names if name in joints and joints[name].axes and name not in measured_joints
            ]
            if encoder_joints:
                name, link = f"{block.get('name').strip() or 'joints'}_encoders", joints[encoder_joints[0]].child
                spec = EncoderSpec(tuple(dict.fromkeys(encoder_joints)), counts)
                encoders.append(Sensor(name, "encoder", link, SE3.identity(), 50.0, name, link, spec))
                measured_joints.update(encoder_joints)
    return encoders


def _refers_to_joint(context: ReaderContext, node: XmlNode, joint_names: set[str]) -> bool:
    name = node.get("name").strip()
    if name in joint_names:
        return True
    context.warn(node, f"an interface is defined for the unknown joint {quote(name)}")
    return False


def _read_control_joint(context: ReaderContext, node: XmlNode, draft: _InterfaceDraft) -> None:
    context.warn_unknown_children(node, {"command_interface", "state_interface", "param", "limits"})
    for one in node.children_with_tag("command_interface"):
        mode = one.get("name").strip()
        lower = _read_parameter(context, one, "min", -math.inf)
        upper = _read_parameter(context, one, "max", math.inf)
        if lower > upper:
            problem = f"{mode} commands of joint '{node.get('name')}' have min {lower:g} above max {upper:g}"
            context.repair_or_raise(one, problem, "min ≤ max", "the two are swapped")
            lower, upper = upper, lower
        if mode not in _COMMAND_MODES:
            context.warn(one, f"unknown command interface {quote(mode)} (position, velocity, effort)")
        draft.commands[mode] = (lower, upper)
        _read_initial_value(context, one, mode, draft)
    for one in node.children_with_tag("state_interface"):
        if one.get("name").strip() not in _STATE_INTERFACES:
            context.warn(one, f"unknown state interface {quote(one.get('name'))} ({', '.join(_STATE_INTERFACES)})")
        draft.states[one.get("name").strip()] = None
        _read_initial_value(context, one, one.get("name").strip(), draft)
    for one in node.children_with_tag("param"):
        draft.parameters[one.get("name").strip()] = one.text.strip()


def _read_parameter(context: ReaderContext, node: XmlNode, name: str, default: float) -> float:
    for one in node.children_with_tag("param"):
        if one.get("name").strip() == name and one.text.strip():
            description = f"{name} of interface '{node.get('name')}'"
            try:
                return parse_number(one.text, one, description, allow_infinite=True)
            except DescriptionError as error:
                context.repair_or_raise(one, error.message, "a number", "ignored")
    return default


def _read_initial_value(context: ReaderContext, node: XmlNode, name: str, draft: _InterfaceDraft) -> None:
    value = _read_parameter(context, node, "initial_value", math.nan)
    text = node.get("initial_value")
    if text:
        value = parse_number(text, node, "initial_value")
    if not math.isnan(value):
        draft.initial[name] = value


def _clamp_initial_values(context: ReaderContext, node: XmlNode, joint: Joint, draft: _InterfaceDraft) -> None:
    """Clamp the initial values of a joint to its limits, with a warning."""
    limits = joint.axes[0].limits if joint.axes else AxisLimits()
    bounds = {"position": (limits.lower, limits.upper), "velocity": (-limits.velocity, limits.velocity)}
    for name, (lower, upper) in bounds.items():
        lower, upper = max(lower, -_MAX_INITIAL_VALUE), min(upper, _MAX_INITIAL_VALUE)
        value = draft.initial.get(name, 0.0)
        if not lower <= value <= upper and name in draft.initial:
            draft.initial[name] = min(max(value, lower), upper)
            context.warn(
                node,
                f"joint '{joint.name}' starts at {name} {value:g}, outside {lower:g} … {upper:g}:"
                f" {draft.initial[name]:g} is used",
            )


def _read_transmission(
    context: ReaderContext, node: XmlNode, drafts: dict[str, _InterfaceDraft], joint_names: set[str]
) -> None:
    context.warn_unknown_children(
        node, {"type", "joint", "actuator"}, {"compensator", "mechanicalReduction", "leftActuator"}
    )
    for joint in node.children_with_tag("joint"):
        if not _refers_to_joint(context, joint, joint_names):
            continue
        draft = drafts.setdefault(joint.get("name").strip(), _InterfaceDraft())
        for one in joint.children_with_tag("hardwareInterface"):
            interface_name = one.text.strip().rpartition("/")[2]
            if interface_name in _ROS1_INTERFACES:
                draft.commands.setdefault(_ROS1_INTERFACES[interface_name], (-math.inf, math.inf))
            else:
                context.warn(one, f"unknown hardware interface {quote(one.text)}")
        for owner in (joint, *node.children_with_tag("actuator"), node):
            reduction_node = owner.child("mechanicalReduction") or owner.child("mechanical_reduction")
            if reduction_node is not None and reduction_node.text.strip():
                draft.reduction = parse_number(reduction_node.text, reduction_node, "mechanicalReduction")
                break


def _make_interface(name: str, draft: _InterfaceDraft) -> JointInterface:
    return JointInterface(
        joint=name,
        commands=tuple((mode, low, high) for mode, (low, high) in draft.commands.items()),
        states=tuple(draft.states),
        initial=tuple(draft.initial.items()),
        reduction=draft.reduction,
        parameters=tuple(draft.parameters.items()),
    )
