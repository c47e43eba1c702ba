"""``<camera>`` elements: the reverse of ``camera_reading``."""

from __future__ import annotations

import math
from xml.etree import ElementTree as ET

from roboyard.description.cameras import T_SENSOR_OPTICAL, CameraSpec, DepthNoise, Exposure
from roboyard.description.noise import Noise
from roboyard.description.sensors import Sensor
from roboyard.description.write.noise import add_noise
from roboyard.description.write.written import add, add_pose
from roboyard.geometry import SE3, Lens

_LENSES = {
    "equidistant": "equidistant", "stereographic": "stereographic", "equisolid": "equisolid_angle",
    "orthographic": "orthographic",
}  # fmt: skip
_TOPICS = {"image": "imageTopicName", "info": "cameraInfoTopicName", "depth": "depthImageTopicName",
           "depth_info": "depthImageCameraInfoTopicName", "points": "pointCloudTopicName"}  # fmt: skip


def add_camera(node: ET.Element, sensor: Sensor, spec: CameraSpec) -> None:
    """The camera under its ``<sensor>``; topics of single outputs go into a plugin's element, as files know them."""
    lens = spec.colour or spec.depth or Lens()
    pure_infrared = sensor.kind == "camera" and spec.colour is None
    if pure_infrared:
        node.set("type", "infrared")
    elif lens.model != "plumb_bob":
        node.set("type", "wideanglecamera")
    body = add(node, "camera")
    _lens(body, lens)
    form = "L16" if spec.millimetres else ("L8" if spec.grey else "R8G8B8")
    add(_image(body, lens), "format", form)
    _clip(body, spec.near, spec.far)
    _clip(add(body, "depth_camera"), spec.depth_near, spec.depth_far)
    if spec.optical_frame:
        add(body, "optical_frame_id", spec.optical_frame)
    add_noise(body, spec.noise)
    if spec.exposure != Exposure():
        light = add(body, "exposure")
        for tag in ("gain", "auto", "vignetting", "full_well", "read_noise"):
            add(light, tag, getattr(spec.exposure, tag))
    if spec.depth_noise != DepthNoise():
        noise = add(body, "depth_noise")
        add(noise, "model", spec.depth_noise.model)
        add(noise, "baseline", spec.depth_noise.baseline)
        add(noise, "disparity", spec.depth_noise.disparity)
        add(noise, "close", spec.depth_noise.close)
        add_noise(noise, spec.depth_noise.noise if spec.depth_noise.model == "gaussian" else Noise())
    if spec.apart and spec.depth is not None:
        own = add(body, "depth")
        add_pose(own, T_SENSOR_OPTICAL @ spec.T_colour_depth @ T_SENSOR_OPTICAL.inverse())
        _lens(own, spec.depth)
        _image(own, spec.depth)
    if spec.infrared and not pure_infrared:
        add(body, "infrared", True)
    if spec.baseline:
        add(body, "baseline", spec.baseline)
    named = dict(spec.topics)
    if named:
        plugin = add(node, "plugin", name=f"{sensor.name}_topics", filename="libgazebo_ros_camera.so")
        for output, tag in _TOPICS.items():
            if output in named:
                add(plugin, tag, f"/{named[output]}")


def _image(body: ET.Element, lens: Lens) -> ET.Element:
    image = add(body, "image")
    add(image, "width", float(lens.width))
    add(image, "height", float(lens.height))
    return image


def _clip(body: ET.Element, near: float, far: float) -> None:
    clip = add(body, "clip")
    add(clip, "near", near)
    add(clip, "far", far)


def _lens(body: ET.Element, lens: Lens) -> None:
    add(body, "horizontal_fov", lens.horizontal_view)
    if any(lens.distortion):
        bent = add(body, "distortion")
        for tag, value in zip(("k1", "k2", "p1", "p2", "k3"), lens.distortion, strict=True):
            add(bent, tag, value)
    shape = add(body, "lens")
    if lens.model != "plumb_bob":
        add(shape, "type", _LENSES[lens.model])
    inside = add(shape, "intrinsics")
    for tag, value in (("fx", lens.fx), ("fy", lens.fy), ("cx", lens.cx + 0.5), ("cy", lens.cy + 0.5)):
        add(inside, tag, value)


T_OPTICAL_BACKWARD = SE3.from_xyz_rpy((0.0, 0.0, 0.0), (math.pi, 0.0, 0.0))
"""MuJoCo's cameras look along -z with y up."""
