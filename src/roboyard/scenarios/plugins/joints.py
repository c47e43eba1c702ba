"""Joint plugins: state publisher, position, velocity and force commands, trajectories."""

from __future__ import annotations

from typing import Any

from roboyard.description.joint_interfaces import command_modes
from roboyard.errors import DescriptionError
from roboyard.scenarios.gains import Gains, pid
from roboyard.scenarios.plugins.names import as_topic
from roboyard.scenarios.plugins.odometry import RATE
from roboyard.scenarios.plugins.part import JointGroup, Part
from roboyard.scenarios.plugins.reading import PluginReader
from roboyard.scenarios.robot_package import NodeSpec

TRAJECTORIES = "roboyard.control.nodes:JointTrajectoryNode"
_GAINS = ("p_gain", "i_gain", "d_gain", "i_max", "i_min")
_BOUNDS = ("cmd_max", "cmd_min", "cmd_offset")
_OWN_SERVO = "the joint's servo has gains and limits of its own, or those of its ros2_control interface"


def joint_states(reader: PluginReader) -> Part:
    """Joint state publishers: ours tells all joints, always."""
    named = {child.text.strip() for child in reader.all("joint_name", "joint")}
    gone = sorted(named - {joint.name for joint in reader.model.joints})
    if gone:
        reader.note(f"there is no joint {gone[0][:60]!r}")
    topic = reader.remapped("joint_states") or reader.topic("topic")
    rate = reader.number(*RATE)
    if named:
        reader.note("all joints are told, not only those that it names")
    topics = {"joint_states": topic} if topic and topic != "joint_states" else {}
    return Part(topics=topics, joint_rate=rate, findings=reader.findings())


def position_controller(reader: PluginReader) -> Part:
    """Gazebo's JointPositionController: set-points of one or more joints from one topic."""
    reader.ignore(_BOUNDS, "the joint's own effort limit holds")
    by_speed = reader.flag("use_velocity_commands", default=False)
    if by_speed:
        reader.ignore(["use_velocity_commands"], "set-points go to the servo as positions")
        reader.ignore(_GAINS, _OWN_SERVO)
    return _commands(reader, "position", "cmd_pos", "initial_position", by_force=not by_speed)


def velocity_controller(reader: PluginReader) -> Part:
    """Gazebo's JointController: speeds of one or more joints from one topic."""
    reader.ignore(_BOUNDS, "the joint's own effort limit holds")
    by_force = reader.flag("use_force_commands", default=False)
    if not by_force:
        reader.ignore(_GAINS, "it sets the joint's speed, and no force")
    return _commands(reader, "velocity", "cmd_vel", "initial_velocity", by_force=by_force)


def force_controller(reader: PluginReader) -> Part:
    """Gazebo's ApplyJointForce: the effort of a joint from a topic."""
    return _commands(reader, "effort", "cmd_force", "initial_force", by_force=False)


def _commands(reader: PluginReader, mode: str, name: str, initial: str, *, by_force: bool) -> Part:
    joints = reader.joints("joint_name")
    if not joints:
        raise DescriptionError("no joint_name", location=reader.where, valid="the name of a joint")
    reader.ignore(["use_actuator_msg", "actuator_number"], "set-points come as std_msgs/Float64")
    index = reader.text("joint_index") or "0"
    if index != "0":
        reader.note(f"<joint_index> {index} not followed: the first axis is commanded")
    topic = reader.topic("topic", "sub_topic")
    begins = reader.number(initial)
    group = JointGroup(
        mode,
        joints,
        tuple(topic or as_topic(f"joint/{joint}/{name}") for joint in joints),
        () if begins is None else (begins,) * len(joints),
    )
    return Part(groups=(group,), gains=_gains(reader, mode, joints) if by_force else {}, findings=reader.findings())


def _gains(reader: PluginReader, mode: str, joints: tuple[str, ...]) -> dict[str, Gains]:
    """The gains of a plugin's controller, where it states any that make sense."""
    p, i, d, top, low = (reader.number(tag) for tag in _GAINS)
    if not (p or i or d):
        return {}
    if min(p or 0.0, i or 0.0, d or 0.0) < 0.0:
        reader.note("its gains are not followed: they must be zero or larger")
        return {}
    clamp = max((abs(one) for one in (top, low) if one is not None), default=None)
    own = pid(mode, p, i, d, clamp if top is None or low is None or top >= low else None)
    return dict.fromkeys(joints, own)


def trajectory_controller(reader: PluginReader) -> Part:
    """Trajectories for the joints it names, or for all that take positions."""
    named = reader.joints("joint_name")
    initial = reader.numbers("initial_position")
    gains = [f"{what}_{gain}" for what in ("position", "velocity") for gain in
             ("p_gain", "i_gain", "d_gain", "i_min", "i_max", "cmd_min", "cmd_max", "cmd_offset")]  # fmt: skip
    speeds_only = reader.has("velocity_p_gain") and not reader.has("position_p_gain")
    reader.ignore(gains, _OWN_SERVO)
    reader.ignore(["use_header_start_time"], "a stamp in the header is its start")
    reader.ignore(["serviceName", "updateRate", "update_rate"], "trajectories come by topic and action")
    model = reader.model
    takes = {joint.name: command_modes(model, joint.name) for joint in model.joints if joint.axes}
    mode = "velocity" if speeds_only else "position"
    joints = tuple(name for name in named or takes if mode in takes.get(name, ()))
    if not joints:
        reader.note(f"left out: no joint takes {mode} commands")
        return Part(findings=reader.findings())
    topic = reader.remapped("set_joint_trajectory") or reader.topic("topic", "topicName") or "joint_trajectory"
    spec = trajectories(joints, mode=mode, topic=topic, initial=initial if len(initial) == len(joints) else ())
    if initial and len(initial) != len(joints):
        reader.note(f"{len(initial)} initial positions for {len(joints)} joints not followed")
    return Part(nodes={"joint_trajectory_controller": spec}, findings=reader.findings())


def trajectories(
    joints: tuple[str, ...], mode: str = "position", topic: str = "", initial: tuple[float, ...] = ()
) -> NodeSpec:
    """A trajectory node for a group, which follows whichever of its joints are named, as Gazebo's do."""
    parameters: dict[str, Any] = {"joints": list(joints), "mode": mode, "allow_partial_joints_goal": True}
    if initial:
        parameters["initial"] = list(initial)
    return NodeSpec(TRAJECTORIES, parameters, {"~joint_trajectory": topic} if topic else {})
