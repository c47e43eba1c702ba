"""``<ros2_control>`` blocks and ``<transmission>`` elements: which joint takes what commands and tells what states."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

from roboyard.description.model import Joint, JointInterface, Limits, Plugin
from roboyard.description.reading import Reading
from roboyard.description.sensors import EncoderSpec, Sensor
from roboyard.description.values import fault, integer, number, shown
from roboyard.description.xml import Node
from roboyard.errors import DescriptionError
from roboyard.geometry import SE3

_MODES = ("position", "velocity", "effort")
_STATES = (*_MODES, "acceleration")
_MOST = 1e6  # position or speed that a joint may start with, where it has no limit [rad, m, rad/s, m/s]
_ROS1 = {
    "EffortJointInterface": "effort",
    "VelocityJointInterface": "velocity",
    "PositionJointInterface": "position",
}


@dataclass(slots=True)
class _Draft:
    """What several blocks together say about one joint."""

    commands: dict[str, tuple[float, float]] = field(default_factory=dict)
    states: dict[str, None] = field(default_factory=dict)
    initial: dict[str, float] = field(default_factory=dict)
    parameters: dict[str, str] = field(default_factory=dict)
    reduction: float = 1.0


def read_control(
    reading: Reading, root: Node, joints: Mapping[str, Joint]
) -> tuple[tuple[JointInterface, ...], tuple[Plugin, ...]]:
    """Interfaces by joint, in file order, and each ``<ros2_control>`` block as a plugin record with all it holds.

    Raises:
        DescriptionError: a limit, initial value or reduction is no number.
    """
    known = set(joints)
    drafts: dict[str, _Draft] = {}
    plugins = []
    for block in root.all("ros2_control"):
        hardware = block.child("hardware")
        driver = hardware.child("plugin") if hardware else None
        plugins.append(Plugin(block.get("name"), driver.text.strip() if driver else "", block.element()))
        reading.unknown(block, {"hardware", "joint"}, {"sensor", "gpio", "transmission"})
        for node in block.all("joint"):
            if _named(reading, node, known):
                name = node.get("name").strip()
                _control_joint(reading, node, drafts.setdefault(name, _Draft()))
                _starting(reading, node, joints[name], drafts[name])
    for node in root.all("transmission"):
        _transmission(reading, node, drafts, known)
    return tuple(_finish(name, draft) for name, draft in drafts.items()), tuple(plugins)


def control_encoders(root: Node, joints: Mapping[str, Joint], sensors: Iterable[Sensor]) -> list[Sensor]:
    """Encoders that a driver's ``enc_counts_per_rev`` (as in diffdrive_arduino and its kin) tells of, one a block.

    Args:
        root: The ``<robot>``.
        joints: Its joints by name.
        sensors: Those already read: joints that an encoder among them measures are left out.

    Raises:
        DescriptionError: the counts are no whole number above 0.
    """
    stated = [sensor.spec for sensor in sensors if isinstance(sensor.spec, EncoderSpec)]
    counted = {name for spec in stated for name in spec.joints or joints}  # an encoder that names none has them all
    found = []
    for block in root.all("ros2_control"):
        hardware = block.child("hardware")
        for one in hardware.all("param") if hardware else ():
            if one.get("name").strip() != "enc_counts_per_rev" or not one.text.strip():
                continue
            steps = integer(one.text, one, "enc_counts_per_rev")
            if steps < 1:
                raise fault(f"enc_counts_per_rev is {steps}", one, "at least 1 count per revolution")
            names = (joint.get("name").strip() for joint in block.all("joint"))
            turning = [name for name in names if name in joints and joints[name].axes and name not in counted]
            if turning:
                name, link = f"{block.get('name').strip() or 'joints'}_encoders", joints[turning[0]].child
                spec = EncoderSpec(tuple(dict.fromkeys(turning)), steps)
                found.append(Sensor(name, "encoder", link, SE3.identity(), 50.0, name, link, spec))
                counted.update(turning)
    return found


def _named(reading: Reading, node: Node, known: set[str]) -> bool:
    name = node.get("name").strip()
    if name in known:
        return True
    reading.note(node, f"an interface is given for {shown(name)}, which is no joint")
    return False


def _control_joint(reading: Reading, node: Node, draft: _Draft) -> None:
    reading.unknown(node, {"command_interface", "state_interface", "param", "limits"})
    for one in node.all("command_interface"):
        mode = one.get("name").strip()
        low = _parameter(reading, one, "min", -math.inf)
        high = _parameter(reading, one, "max", math.inf)
        if low > high:
            what = f"{mode} commands of joint '{node.get('name')}' have min {low:g} above max {high:g}"
            reading.mend(one, what, "min ≤ max", "the two change places")
            low, high = high, low
        if mode not in _MODES:
            reading.note(one, f"command interface {shown(mode)} is not understood (position, velocity, effort)")
        draft.commands[mode] = (low, high)
        _initial(reading, one, mode, draft)
    for one in node.all("state_interface"):
        if one.get("name").strip() not in _STATES:
            reading.note(one, f"state interface {shown(one.get('name'))} is not understood ({', '.join(_STATES)})")
        draft.states[one.get("name").strip()] = None
        _initial(reading, one, one.get("name").strip(), draft)
    for one in node.all("param"):
        draft.parameters[one.get("name").strip()] = one.text.strip()


def _parameter(reading: Reading, node: Node, name: str, default: float) -> float:
    for one in node.all("param"):
        if one.get("name").strip() == name and one.text.strip():
            what = f"{name} of interface '{node.get('name')}'"
            try:
                return number(one.text, one, what, infinite=True)
            except DescriptionError as error:
                reading.mend(one, error.what, "a number", "left out")
    return default


def _initial(reading: Reading, node: Node, name: str, draft: _Draft) -> None:
    value = _parameter(reading, node, "initial_value", math.nan)
    text = node.get("initial_value")
    if text:
        value = number(text, node, "initial_value")
    if not math.isnan(value):
        draft.initial[name] = value


def _starting(reading: Reading, node: Node, joint: Joint, draft: _Draft) -> None:
    """Bring what the joint starts with within its limits, and say so."""
    limits = joint.axes[0].limits if joint.axes else Limits()
    bounds = {"position": (limits.lower, limits.upper), "velocity": (-limits.velocity, limits.velocity)}
    for name, (low, high) in bounds.items():
        low, high = max(low, -_MOST), min(high, _MOST)
        value = draft.initial.get(name, 0.0)
        if not low <= value <= high and name in draft.initial:
            draft.initial[name] = min(max(value, low), high)
            reading.note(
                node,
                f"joint '{joint.name}' starts at {name} {value:g}, outside {low:g} … {high:g}:"
                f" {draft.initial[name]:g} taken",
            )


def _transmission(reading: Reading, node: Node, drafts: dict[str, _Draft], known: set[str]) -> None:
    reading.unknown(node, {"type", "joint", "actuator"}, {"compensator", "mechanicalReduction", "leftActuator"})
    for joint in node.all("joint"):
        if not _named(reading, joint, known):
            continue
        draft = drafts.setdefault(joint.get("name").strip(), _Draft())
        for one in joint.all("hardwareInterface"):
            word = one.text.strip().rpartition("/")[2]
            if word in _ROS1:
                draft.commands.setdefault(_ROS1[word], (-math.inf, math.inf))
            else:
                reading.note(one, f"hardware interface {shown(one.text)} is not understood")
        for holder in (joint, *node.all("actuator"), node):
            given = holder.child("mechanicalReduction") or holder.child("mechanical_reduction")
            if given is not None and given.text.strip():
                draft.reduction = number(given.text, given, "mechanicalReduction")
                break


def _finish(name: str, draft: _Draft) -> JointInterface:
    return JointInterface(
        joint=name,
        commands=tuple((mode, low, high) for mode, (low, high) in draft.commands.items()),
        states=tuple(draft.states),
        initial=tuple(draft.initial.items()),
        reduction=draft.reduction,
        parameters=tuple(draft.parameters.items()),
    )
