"""Mappers of joint plugins: states, position, velocity and force commands, trajectories."""

from __future__ import annotations

from typing import Any

from roboyard.bringup.plugins.odometry import RATE_TAGS
from roboyard.bringup.plugins.plugin_mapping import JointCommandGroup, PluginMapping
from roboyard.bringup.plugins.reader import PluginReader, to_topic_name
from roboyard.bringup.robot_config import RobotNodeConfig
from roboyard.bringup.servo_gains import JointServoGains, pid_gains
from roboyard.description.joint_interfaces import command_modes
from roboyard.errors import DescriptionError

JOINT_TRAJECTORY_NODE = "roboyard.control.nodes:JointTrajectoryNode"
_GAIN_TAGS = ("p_gain", "i_gain", "d_gain", "i_max", "i_min")
_COMMAND_LIMIT_TAGS = ("cmd_max", "cmd_min", "cmd_offset")
_SERVO_GAINS_REASON = "the joint's servo has gains and limits of its own, or those of its ros2_control interface"


def map_joint_state_publisher(reader: PluginReader) -> PluginMapping:
    """Map joint state publishers: node joint_states publishes all joints."""
    named = {child.text.strip() for child in reader.find_all("joint_name", "joint")}
    missing = sorted(named - {joint.name for joint in reader.model.joints})
    if missing:
        reader.add_finding(f"there is no joint {missing[0][:60]!r}")
    topic = reader.remapped_topic("joint_states") or reader.topic("topic")
    rate = reader.number(*RATE_TAGS)
    if named:
        reader.add_finding("all joints are told, not only those that it names")
    topics = {"joint_states": topic} if topic and topic != "joint_states" else {}
    return PluginMapping(topics=topics, min_joint_state_rate=rate, findings=reader.findings())


def map_position_controller(reader: PluginReader) -> PluginMapping:
    """Map Gazebo's JointPositionController: one topic commands the positions of one or more joints."""
    reader.mark_ignored(_COMMAND_LIMIT_TAGS, "the joint's own effort limit holds")
    uses_velocity = reader.flag("use_velocity_commands", default=False)
    if uses_velocity:
        reader.mark_ignored(["use_velocity_commands"], "set-points go to the servo as positions")
        reader.mark_ignored(_GAIN_TAGS, _SERVO_GAINS_REASON)
    return _map_joint_commands(reader, "position", "cmd_pos", "initial_position", has_gains=not uses_velocity)


def map_velocity_controller(reader: PluginReader) -> PluginMapping:
    """Map Gazebo's JointController: one topic commands the speeds of one or more joints."""
    reader.mark_ignored(_COMMAND_LIMIT_TAGS, "the joint's own effort limit holds")
    uses_force = reader.flag("use_force_commands", default=False)
    if not uses_force:
        reader.mark_ignored(_GAIN_TAGS, "it sets the joint's speed, and no force")
    return _map_joint_commands(reader, "velocity", "cmd_vel", "initial_velocity", has_gains=uses_force)


def map_joint_force(reader: PluginReader) -> PluginMapping:
    """Map Gazebo's ApplyJointForce: a topic commands the effort of a joint."""
    return _map_joint_commands(reader, "effort", "cmd_force", "initial_force", has_gains=False)


def _map_joint_commands(
    reader: PluginReader, mode: str, topic_suffix: str, initial_tag: str, *, has_gains: bool
) -> PluginMapping:
    joints = reader.joints("joint_name")
    if not joints:
        raise DescriptionError("no joint_name", location=reader.location, valid="the name of a joint")
    reader.mark_ignored(["use_actuator_msg", "actuator_number"], "set-points come as std_msgs/Float64")
    index = reader.text("joint_index") or "0"
    if index != "0":
        reader.add_finding(f"<joint_index> {index} not followed: the first axis is commanded")
    topic = reader.topic("topic", "sub_topic")
    initial_value = reader.number(initial_tag)
    group = JointCommandGroup(
        mode,
        joints,
        tuple(topic or to_topic_name(f"joint/{joint}/{topic_suffix}") for joint in joints),
        () if initial_value is None else (initial_value,) * len(joints),
    )
    return PluginMapping(
        command_groups=(group,),
        gains=_read_gains(reader, mode, joints) if has_gains else {},
        findings=reader.findings(),
    )


def _read_gains(reader: PluginReader, mode: str, joints: tuple[str, ...]) -> dict[str, JointServoGains]:
    """Read the gains of a plugin's controller, where it states valid ones."""
    p, i, d, i_max, i_min = (reader.number(tag) for tag in _GAIN_TAGS)
    if not (p or i or d):
        return {}
    if min(p or 0.0, i or 0.0, d or 0.0) < 0.0:
        reader.add_finding("its gains are not followed: they must be zero or larger")
        return {}
    clamp = max((abs(one) for one in (i_max, i_min) if one is not None), default=None)
    joint_gains = pid_gains(mode, p, i, d, clamp if i_max is None or i_min is None or i_max >= i_min else None)
    return dict.fromkeys(joints, joint_gains)


def map_trajectory_controller(reader: PluginReader) -> PluginMapping:
    """Map joint trajectory plugins: trajectories of the joints that they name, or of all that take positions."""
    named = reader.joints("joint_name")
    initial = reader.numbers("initial_position")
    gain_tags = [f"{quantity}_{gain}" for quantity in ("position", "velocity") for gain in
             ("p_gain", "i_gain", "d_gain", "i_min", "i_max", "cmd_min", "cmd_max", "cmd_offset")]  # fmt: skip
    is_velocity_only = reader.has("velocity_p_gain") and not reader.has("position_p_gain")
    reader.mark_ignored(gain_tags, _SERVO_GAINS_REASON)
    reader.mark_ignored(["use_header_start_time"], "a stamp in the header is its start")
    reader.mark_ignored(["serviceName", "updateRate", "update_rate"], "trajectories come by topic and action")
    model = reader.model
    modes_by_joint = {joint.name: command_modes(model, joint.name) for joint in model.joints if joint.axes}
    mode = "velocity" if is_velocity_only else "position"
    joints = tuple(name for name in named or modes_by_joint if mode in modes_by_joint.get(name, ()))
    if not joints:
        reader.add_finding(f"left out: no joint takes {mode} commands")
        return PluginMapping(findings=reader.findings())
    topic = reader.remapped_topic("set_joint_trajectory") or reader.topic("topic", "topicName") or "joint_trajectory"
    spec = trajectory_node_config(
        joints, mode=mode, topic=topic, initial=initial if len(initial) == len(joints) else ()
    )
    if initial and len(initial) != len(joints):
        reader.add_finding(f"{len(initial)} initial positions for {len(joints)} joints not followed")
    return PluginMapping(nodes={"joint_trajectory_controller": spec}, findings=reader.findings())


def trajectory_node_config(
    joints: tuple[str, ...], mode: str = "position", topic: str = "", initial: tuple[float, ...] = ()
) -> RobotNodeConfig:
    """Return a trajectory node for a group; as in Gazebo, a trajectory may name some of its joints."""
    parameters: dict[str, Any] = {"joints": list(joints), "mode": mode, "allow_partial_joints_goal": True}
    if initial:
        parameters["initial"] = list(initial)
    return RobotNodeConfig(JOINT_TRAJECTORY_NODE, parameters, {"~joint_trajectory": topic} if topic else {})
