"""``<camera>`` elements: the reverse of ``camera_reading``."""

from __future__ import annotations

import math
from xml.etree import ElementTree as ET

from roboyard.description.cameras import T_SENSOR_OPTICAL, CameraSpec, DepthNoise, Exposure
from roboyard.description.noise import Noise
from roboyard.description.sensors import Sensor
from roboyard.description.write.noise import add_noise
from roboyard.description.write.written import add_child, add_pose
from roboyard.geometry import SE3, CameraModel

_LENS_TYPES = {
    "equidistant": "equidistant", "stereographic": "stereographic", "equisolid": "equisolid_angle",
    "orthographic": "orthographic",
}  # fmt: skip
_TOPIC_TAGS = {"image": "imageTopicName", "info": "cameraInfoTopicName", "depth": "depthImageTopicName",
           "depth_info": "depthImageCameraInfoTopicName", "points": "pointCloudTopicName"}  # fmt: skip


def add_camera(node: ET.Element, sensor: Sensor, spec: CameraSpec) -> None:
    """The camera under its ``<sensor>``; topics of single outputs go into a plugin's element, as files know them."""
    lens = spec.color or spec.depth or CameraModel()
    pure_infrared = sensor.kind == "camera" and spec.color is None
    if pure_infrared:
        node.set("type", "infrared")
    elif lens.model != "plumb_bob":
        node.set("type", "wideanglecamera")
    body = add_child(node, "camera")
    _add_lens(body, lens)
    pixel_format = "L16" if spec.depth_in_mm else ("L8" if spec.is_grayscale else "R8G8B8")
    add_child(_add_image(body, lens), "format", pixel_format)
    _add_clip(body, spec.near, spec.far)
    _add_clip(add_child(body, "depth_camera"), spec.depth_near, spec.depth_far)
    if spec.optical_frame:
        add_child(body, "optical_frame_id", spec.optical_frame)
    add_noise(body, spec.noise)
    if spec.exposure != Exposure():
        exposure = add_child(body, "exposure")
        for tag in ("gain", "auto", "vignetting", "full_well", "read_noise"):
            add_child(exposure, tag, getattr(spec.exposure, tag))
    if spec.depth_noise != DepthNoise():
        noise = add_child(body, "depth_noise")
        add_child(noise, "model", spec.depth_noise.model)
        add_child(noise, "baseline", spec.depth_noise.baseline)
        add_child(noise, "disparity", spec.depth_noise.disparity_stddev)
        add_child(noise, "close", spec.depth_noise.near_blur_distance)
        add_noise(noise, spec.depth_noise.noise if spec.depth_noise.model == "gaussian" else Noise())
    if spec.has_separate_depth_lens and spec.depth is not None:
        depth_node = add_child(body, "depth")
        add_pose(depth_node, T_SENSOR_OPTICAL @ spec.T_color_depth @ T_SENSOR_OPTICAL.inverse())
        _add_lens(depth_node, spec.depth)
        _add_image(depth_node, spec.depth)
    if spec.infrared and not pure_infrared:
        add_child(body, "infrared", True)
    if spec.baseline:
        add_child(body, "baseline", spec.baseline)
    topics = dict(spec.topics)
    if topics:
        plugin = add_child(node, "plugin", name=f"{sensor.name}_topics", filename="libgazebo_ros_camera.so")
        for output, tag in _TOPIC_TAGS.items():
            if output in topics:
                add_child(plugin, tag, f"/{topics[output]}")


def _add_image(body: ET.Element, lens: CameraModel) -> ET.Element:
    image = add_child(body, "image")
    add_child(image, "width", float(lens.width))
    add_child(image, "height", float(lens.height))
    return image


def _add_clip(body: ET.Element, near: float, far: float) -> None:
    clip = add_child(body, "clip")
    add_child(clip, "near", near)
    add_child(clip, "far", far)


def _add_lens(body: ET.Element, lens: CameraModel) -> None:
    add_child(body, "horizontal_fov", lens.horizontal_fov)
    if any(lens.distortion):
        distortion = add_child(body, "distortion")
        for tag, value in zip(("k1", "k2", "p1", "p2", "k3"), lens.distortion, strict=True):
            add_child(distortion, tag, value)
    lens_node = add_child(body, "lens")
    if lens.model != "plumb_bob":
        add_child(lens_node, "type", _LENS_TYPES[lens.model])
    intrinsics = add_child(lens_node, "intrinsics")
    for tag, value in (("fx", lens.fx), ("fy", lens.fy), ("cx", lens.cx + 0.5), ("cy", lens.cy + 0.5)):
        add_child(intrinsics, tag, value)


T_OPTICAL_BACKWARD = SE3.from_xyz_rpy((0.0, 0.0, 0.0), (math.pi, 0.0, 0.0))
"""MuJoCo's cameras look along -z with y up."""
