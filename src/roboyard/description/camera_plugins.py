"""What Gazebo Classic's camera plugins say of a camera: names of topics and frames, distortion, range, baseline.

The plugins: ``libgazebo_ros_camera.so``, ``…_multicamera.so``, ``…_depth_camera.so``, ``…_openni_kinect.so``, and
ROS 2's ``libgazebo_ros_camera.so`` with its ``<ros>`` block.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field

from roboyard.description.fields import number_of, text_of
from roboyard.description.xml import Node

_FILE = re.compile(
    r"^lib(?:gazebo_ros_(camera|multicamera|depth_camera|openni_kinect|triggered_camera|prosilica)|"
    r"(?:RealSense|realsense_gazebo_)\w*)\.so$"
)
_TOPICS = {
    "imageTopicName": "image", "cameraInfoTopicName": "info", "depthImageTopicName": "depth",
    "depthImageCameraInfoTopicName": "depth_info", "depthImageInfoTopicName": "depth_info",
    "pointCloudTopicName": "points",
}  # fmt: skip
_FRAMES = ("gz_frame_id", "ignition_frame_id", "frame_id")
_REMAPPED = {
    "image_raw": "image", "camera_info": "info", "depth/image_raw": "depth", "image_depth": "depth",
    "depth/camera_info": "depth_info", "camera_info_depth": "depth_info", "points": "points",
}  # fmt: skip
_DISTORTION = (("distortionK1", "distortion_k1"), ("distortionK2", "distortion_k2"), ("distortionT1", "distortion_t1"),
               ("distortionT2", "distortion_t2"), ("distortionK3", "distortion_k3"))  # fmt: skip


@dataclass(frozen=True, slots=True)
class CameraPlugin:
    """What a plugin says; empty where there is none.

    Attributes:
        kind: Which plugin.
        topics: (output, topic), see ``camera_topics``.
        optical_frame: Frame id, if its name says that it is an optical one.
        distortion: k1, k2, p1, p2, k3.
        lens: fx, fy, cx, cy where it sets them.
        depth_range: Least and largest depth [m]; None where it says nothing.
        baseline: Of a pair [m].
    """

    kind: str = ""
    topics: tuple[tuple[str, str], ...] = ()
    optical_frame: str = ""
    distortion: tuple[float, float, float, float, float] = (0.0, 0.0, 0.0, 0.0, 0.0)
    lens: dict[str, float] = field(default_factory=dict)
    depth_range: tuple[float | None, float | None] = (None, None)
    baseline: float = 0.0


def camera_plugin(sensor: Node) -> CameraPlugin:
    """What the first camera plugin in a ``<sensor>`` says, and the frame that the sensor itself names.

    Raises:
        DescriptionError: one of its values is no number.
    """
    frame = next((text for tag in _FRAMES if (text := text_of(sensor, tag))), "")
    for node in sensor.all("plugin"):
        matched = _FILE.match(node.get("filename").strip().rpartition("/")[2])
        if matched is None:
            continue
        frame = frame or text_of(node, "frameName", text_of(node, "frame_name")).strip("/")
        k1, k2, p1, p2, k3 = (number_of(node, old, number_of(node, new, 0.0)) for old, new in _DISTORTION)
        return CameraPlugin(
            kind=matched[1] or "realsense",
            topics=_topics(node),
            optical_frame=frame if "optical" in frame else "",
            distortion=(k1, k2, p1, p2, k3),
            lens=_lens(node),
            depth_range=(
                _maybe(node, "pointCloudCutoff", "min_depth"),
                _maybe(node, "pointCloudCutoffMax", "max_depth"),
            ),
            baseline=abs(number_of(node, "hackBaseline", number_of(node, "hack_baseline", 0.0))),
        )
    return CameraPlugin(optical_frame=frame if "optical" in frame else "")


def plugin_base(sensor: Node) -> str:
    """Base of a camera's topics as a plugin names it: ``<cameraName>``, or ROS 2's namespace and camera name."""
    for node in sensor.all("plugin"):
        if _FILE.match(node.get("filename").strip().rpartition("/")[2]):
            ros = node.child("ros")
            name = text_of(node, "cameraName", text_of(node, "camera_name", ""))
            if name and not name.startswith("/"):
                space = text_of(ros, "namespace").strip("/") if ros is not None else ""
                name = f"{space}/{name}" if space else name
            return name.strip("/")
    return ""


def _topics(node: Node) -> tuple[tuple[str, str], ...]:
    """Topics that the plugin names, below its camera's name unless they begin with a slash."""
    base = text_of(node, "cameraName", text_of(node, "camera_name")).strip("/")

    def placed(topic: str) -> str:
        return topic.strip("/") if topic.startswith("/") or not base else f"{base}/{topic.strip('/')}"

    found = {output: placed(text) for tag, output in _TOPICS.items() if (text := text_of(node, tag))}
    if base and "camera_name" in {child.tag for child in node.children}:  # ROS 2: fixed names
        found = {"image": f"{base}/image_raw", "depth": f"{base}/depth/image_raw"} | found
    for ros in node.all("ros"):
        for one in (*ros.all("remapping"), *ros.all("argument")):
            source, arrow, target = one.text.strip().partition(":=")
            source = source.removeprefix("~/").strip("/")
            source = source.removeprefix(f"{base}/") if base else source
            if arrow and source in _REMAPPED:
                found[_REMAPPED[source]] = target.strip().strip("/")
    return tuple(found.items())


def _lens(node: Node) -> dict[str, float]:
    """Focal length and principal point that a plugin claims; zero means: as the field of view says."""
    found: dict[str, float] = {}
    focal = number_of(node, "focalLength", number_of(node, "focal_length", 0.0))
    if focal > 0.0:
        found |= {"fx": focal, "fy": focal}
    for name, tags in (("cx", ("Cx", "cx")), ("cy", ("Cy", "cy"))):
        value = number_of(node, tags[0], number_of(node, tags[1], 0.0))
        if value > 0.0:
            found[name] = value - 0.5
    return found


def _maybe(node: Node, *tags: str) -> float | None:
    return next((number_of(node, tag, 0.0, low=0.0) for tag in tags if text_of(node, tag)), None)
