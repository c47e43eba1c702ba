"""Odometry as drive plugins configure it, and plugins that publish ground-truth poses."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from roboyard.bringup.plugins.plugin_mapping import PluginMapping
from roboyard.bringup.plugins.reader import PluginReader
from roboyard.bringup.robot_config import RobotNodeConfig

GROUND_TRUTH_ODOMETRY_NODE = "roboyard.localization.nodes:GroundTruthOdometryNode"
RATE_TAGS = (
    "odom_publish_frequency",
    "odom_publisher_frequency",
    "update_rate",
    "updateRate",
    "odometryRate",
    "publish_rate",
)
COVARIANCE_TAGS = ("covariance_x", "covariance_y", "covariance_yaw", "covarianceX", "covarianceY", "covarianceYaw")


@dataclass(frozen=True, slots=True)
class OdometryOutput:
    """Frames, rate and topics of the odometry of a drive plugin.

    Attributes:
        parameters: Parameters of an odometry node, without the geometry.
        topics: Topics of commands and odometry that differ from cmd_vel and odom.
        base_frame: Base frame, if the plugin names one.
        rate: Rate [Hz], if the plugin states one.
        is_published: Whether the plugin publishes odometry.
    """

    parameters: dict[str, Any]
    topics: dict[str, str]
    base_frame: str | None
    rate: float | None
    is_published: bool


def read_odometry_output(reader: PluginReader, default_base_frame: str) -> OdometryOutput:
    """Read topics, frames and rate of a drive plugin, of any generation of Gazebo."""
    command = reader.remapped_topic("cmd_vel") or reader.topic("topic", "command_topic", "commandTopic", "sub_topic")
    topic = reader.remapped_topic("odom") or reader.topic("odom_topic", "odometry_topic", "odometryTopic")
    frame = reader.text("frame_id", "odometry_frame", "odometryFrame")
    base_frame = reader.text("child_frame_id", "robot_base_frame", "robotBaseFrame")
    rate = reader.number(*RATE_TAGS)
    parameters: dict[str, Any] = {"base_frame": base_frame or default_base_frame}
    if frame:
        parameters["odom_frame"] = frame
    if rate:
        parameters["rate"] = min(max(rate, 0.1), 1000.0)
    if not reader.flag("publish_odom_tf", "publishOdomTF", "broadcastTF", default=True):
        parameters["publish_tf"] = False
    reader.flag("publish_wheel_tf", "publishWheelTF", "publish_distance", default=True)  # robot_state does, always
    reader.flag("publishWheelJointState", "publish_wheel_joint_state", default=True)  # joint_states does, always
    source = reader.text("odometry_source", "odometrySource")
    if source in ("1", "world", "WORLD"):
        reader.add_finding(
            "<odometry_source> world not followed: odometry counts the wheels, it does not read the truth"
        )
    reader.mark_ignored(["tf_topic"], "transforms are on /tf")
    reader.mark_ignored(COVARIANCE_TAGS, "covariances follow from the way and the turn")
    topics = {name: value for name, value in (("cmd_vel", command), ("odom", topic)) if value and value != name}
    return OdometryOutput(
        parameters, topics, base_frame, rate, reader.flag("publish_odom", "publishOdom", default=True)
    )


def map_odometry_publisher(reader: PluginReader) -> PluginMapping:
    """Map Gazebo's OdometryPublisher, which publishes the ground-truth pose as odometry."""
    root = reader.model.roots[0].name if reader.model.roots else "base_link"
    frame = reader.text("robot_base_frame") or root
    parameters: dict[str, Any] = {"base_frame": frame, "rate": _read_rate(reader, 50.0)}
    if odom_frame := reader.text("odom_frame"):
        parameters["odom_frame"] = odom_frame
    if noise := reader.number("gaussian_noise"):
        parameters["noise_std"] = noise
    if reader.number("dimensions") in (None, 2.0):
        reader.add_finding("<dimensions> 2 is published as 3")
    reader.mark_ignored(["tf_topic"], "transforms are on /tf")
    reader.mark_ignored(["odom_covariance_topic"], "odometry carries its covariance")
    reader.mark_ignored(["xyz_offset", "rpy_offset"], "the root link's own frame is told")
    reader.add_finding("its odometry is the simulation's ground truth, not an estimate")
    topic = reader.topic("odom_topic") or reader.remapped_topic("odom")
    spec = RobotNodeConfig(GROUND_TRUTH_ODOMETRY_NODE, parameters, {"odom": topic} if topic else {})
    return PluginMapping(nodes={"odometry_truth": spec}, findings=reader.findings())


def map_p3d(reader: PluginReader) -> PluginMapping:
    """Map Gazebo Classic's p3d, which publishes the ground-truth pose of a link."""
    body = reader.text("bodyName", "body_name")
    roots = [link.name for link in reader.model.roots]
    if body and body not in roots:
        reader.add_finding(f"the truth of {body} not followed: that of {roots[0] if roots else 'the root'} is told")
    parameters: dict[str, Any] = {
        "odom_frame": reader.text("frameName", "frame_name") or "world",
        "base_frame": body or (roots[0] if roots else "base_link"),
        "rate": _read_rate(reader, 50.0),
        "publish_tf": False,
        "start_at_origin": False,
    }
    if noise := reader.number("gaussianNoise", "gaussian_noise"):
        parameters["noise_std"] = noise
    offsets = reader.numbers("xyzOffset", "xyzOffsets", "xyz_offset", "rpyOffset", "rpyOffsets", "rpy_offset")
    if any(offsets):
        reader.add_finding("its offsets not followed: the root link's own frame is told")
    reader.add_finding("its pose is the simulation's ground truth, not an estimate")
    topic = reader.remapped_topic("odom") or reader.topic("topicName", "topic_name") or "odom"
    return PluginMapping(
        nodes={"pose_truth": RobotNodeConfig(GROUND_TRUTH_ODOMETRY_NODE, parameters, {"odom": topic})},
        findings=reader.findings(),
    )


def _read_rate(reader: PluginReader, default: float) -> float:
    rate = reader.number(*RATE_TAGS)
    return min(max(rate, 0.1), 1000.0) if rate and rate > 0.0 else default
