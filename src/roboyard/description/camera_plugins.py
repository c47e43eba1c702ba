"""What Gazebo Classic's camera plugins say of a camera: names of topics and frames, distortion, range, baseline.

The plugins: ``libgazebo_ros_camera.so``, ``…_multicamera.so``, ``…_depth_camera.so``, ``…_openni_kinect.so``, and
ROS 2's ``libgazebo_ros_camera.so`` with its ``<ros>`` block.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field

from roboyard.description.fields import child_number, child_text
from roboyard.description.xml import XmlNode

_PLUGIN_FILE = re.compile(
    r"^lib(?:gazebo_ros_(camera|multicamera|depth_camera|openni_kinect|triggered_camera|prosilica)|"
    r"(?:RealSense|realsense_gazebo_)\w*)\.so$"
)
_TOPIC_TAGS = {
    "imageTopicName": "image", "cameraInfoTopicName": "info", "depthImageTopicName": "depth",
    "depthImageCameraInfoTopicName": "depth_info", "depthImageInfoTopicName": "depth_info",
    "pointCloudTopicName": "points",
}  # fmt: skip
_FRAME_TAGS = ("gz_frame_id", "ignition_frame_id", "frame_id")
_REMAPPABLE_TOPICS = {
    "image_raw": "image", "camera_info": "info", "depth/image_raw": "depth", "image_depth": "depth",
    "depth/camera_info": "depth_info", "camera_info_depth": "depth_info", "points": "points",
}  # fmt: skip
_DISTORTION_TAGS = (
    ("distortionK1", "distortion_k1"),
    ("distortionK2", "distortion_k2"),
    ("distortionT1", "distortion_t1"),
    ("distortionT2", "distortion_t2"),
    ("distortionK3", "distortion_k3"),
)


@dataclass(frozen=True, slots=True)
class CameraPlugin:
    """What a plugin says; empty where there is none.

    Attributes:
        kind: Which plugin.
        topics: (output, topic), see ``camera_topics``.
        optical_frame: Frame id, if its name says that it is an optical one.
        distortion: k1, k2, p1, p2, k3.
        intrinsics: fx, fy, cx, cy where it sets them.
        depth_range: Least and largest depth [m]; None where it says nothing.
        baseline: Of a pair [m].
    """

    kind: str = ""
    topics: tuple[tuple[str, str], ...] = ()
    optical_frame: str = ""
    distortion: tuple[float, float, float, float, float] = (0.0, 0.0, 0.0, 0.0, 0.0)
    intrinsics: dict[str, float] = field(default_factory=dict)
    depth_range: tuple[float | None, float | None] = (None, None)
    baseline: float = 0.0


def read_camera_plugin(sensor: XmlNode) -> CameraPlugin:
    """What the first camera plugin in a ``<sensor>`` says, and the frame that the sensor itself names.

    Raises:
        DescriptionError: one of its values is no number.
    """
    frame = next((text for tag in _FRAME_TAGS if (text := child_text(sensor, tag))), "")
    for node in sensor.children_with_tag("plugin"):
        match = _PLUGIN_FILE.match(node.get("filename").strip().rpartition("/")[2])
        if match is None:
            continue
        frame = frame or child_text(node, "frameName", child_text(node, "frame_name")).strip("/")
        k1, k2, p1, p2, k3 = (child_number(node, old, child_number(node, new, 0.0)) for old, new in _DISTORTION_TAGS)
        return CameraPlugin(
            kind=match[1] or "realsense",
            topics=_read_topics(node),
            optical_frame=frame if "optical" in frame else "",
            distortion=(k1, k2, p1, p2, k3),
            intrinsics=_read_intrinsics(node),
            depth_range=(
                _optional_number(node, "pointCloudCutoff", "min_depth"),
                _optional_number(node, "pointCloudCutoffMax", "max_depth"),
            ),
            baseline=abs(child_number(node, "hackBaseline", child_number(node, "hack_baseline", 0.0))),
        )
    return CameraPlugin(optical_frame=frame if "optical" in frame else "")


def read_plugin_base_topic(sensor: XmlNode) -> str:
    """Base of a camera's topics as a plugin names it: ``<cameraName>``, or ROS 2's namespace and camera name."""
    for node in sensor.children_with_tag("plugin"):
        if _PLUGIN_FILE.match(node.get("filename").strip().rpartition("/")[2]):
            ros = node.child("ros")
            name = child_text(node, "cameraName", child_text(node, "camera_name", ""))
            if name and not name.startswith("/"):
                namespace = child_text(ros, "namespace").strip("/") if ros is not None else ""
                name = f"{namespace}/{name}" if namespace else name
            return name.strip("/")
    return ""


def _read_topics(node: XmlNode) -> tuple[tuple[str, str], ...]:
    """Topics that the plugin names, below its camera's name unless they begin with a slash."""
    base = child_text(node, "cameraName", child_text(node, "camera_name")).strip("/")

    def resolve_topic(topic: str) -> str:
        return topic.strip("/") if topic.startswith("/") or not base else f"{base}/{topic.strip('/')}"

    topics = {output: resolve_topic(text) for tag, output in _TOPIC_TAGS.items() if (text := child_text(node, tag))}
    if base and "camera_name" in {child.tag for child in node.children}:  # ROS 2: fixed names
        topics = {"image": f"{base}/image_raw", "depth": f"{base}/depth/image_raw"} | topics
    for ros in node.children_with_tag("ros"):
        for remapping in (*ros.children_with_tag("remapping"), *ros.children_with_tag("argument")):
            source, arrow, target = remapping.text.strip().partition(":=")
            source = source.removeprefix("~/").strip("/")
            source = source.removeprefix(f"{base}/") if base else source
            if arrow and source in _REMAPPABLE_TOPICS:
                topics[_REMAPPABLE_TOPICS[source]] = target.strip().strip("/")
    return tuple(topics.items())


def _read_intrinsics(node: XmlNode) -> dict[str, float]:
    """Focal length and principal point that a plugin claims; zero means: as the field of view says."""
    intrinsics: dict[str, float] = {}
    focal_length = child_number(node, "focalLength", child_number(node, "focal_length", 0.0))
    if focal_length > 0.0:
        intrinsics |= {"fx": focal_length, "fy": focal_length}
    for name, tags in (("cx", ("Cx", "cx")), ("cy", ("Cy", "cy"))):
        value = child_number(node, tags[0], child_number(node, tags[1], 0.0))
        if value > 0.0:
            intrinsics[name] = value - 0.5
    return intrinsics


def _optional_number(node: XmlNode, *tags: str) -> float | None:
    return next((child_number(node, tag, 0.0, minimum=0.0) for tag in tags if child_text(node, tag)), None)
