"""Reads `<camera>` elements and the settings of Gazebo Classic's camera plugins.

Elements of Roboyard: `<exposure>`, `<depth_noise>`, `<depth>` (a depth camera with its own camera model and pose),
`<infrared>`, `<baseline>`. Plugins: `libgazebo_ros_camera.so`, `…_multicamera.so`, `…_depth_camera.so`,
`…_openni_kinect.so`, and ROS 2's `libgazebo_ros_camera.so` with its `<ros>` block.
"""

from __future__ import annotations

import math
import re
from dataclasses import dataclass, field, replace

from roboyard.description.reader_context import ReaderContext
from roboyard.description.sensor_element import SensorElement, read_noise, read_probability
from roboyard.description.sensors import DEPTH_MODELS, T_SENSOR_OPTICAL, CameraSpec, DepthNoise, Exposure, Noise
from roboyard.description.xml import XmlNode
from roboyard.description.xml_values import (
    child_boolean,
    child_integer,
    child_number,
    child_text,
    error_at,
    quote,
    read_pose,
)
from roboyard.geometry import SE3, CameraModel
from roboyard.geometry.camera_model import ProjectionModel

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
    """Settings of a camera plugin; empty without one.

    Attributes:
        kind: Type of the plugin.
        topics: (output, topic), see `camera_topics`.
        optical_frame: Frame id, if its name is that of an optical frame.
        distortion: Distortion coefficients k1, k2, p1, p2, k3.
        intrinsics: fx, fy, cx, cy that the plugin sets.
        depth_range: Minimum and maximum depth [m]; None if not specified.
        baseline: Baseline of a stereo pair [m].
    """

    kind: str = ""
    topics: tuple[tuple[str, str], ...] = ()
    optical_frame: str = ""
    distortion: tuple[float, float, float, float, float] = (0.0, 0.0, 0.0, 0.0, 0.0)
    intrinsics: dict[str, float] = field(default_factory=dict)
    depth_range: tuple[float | None, float | None] = (None, None)
    baseline: float = 0.0


def read_camera_plugin(sensor: XmlNode) -> CameraPlugin:
    """Read the first camera plugin of a ``<sensor>``, and the frame that the sensor itself names.

    Raises:
        DescriptionError: A value is not a number.
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
    """Return the base of a camera's topics from a plugin: ``<cameraName>``, or ROS 2's namespace and camera name."""
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
    """Read the topics of a plugin; they are relative to its camera name unless they begin with a slash."""
    base = child_text(node, "cameraName", child_text(node, "camera_name")).strip("/")

    def resolve_topic(topic: str) -> str:
        return topic.strip("/") if topic.startswith("/") or not base else f"{base}/{topic.strip('/')}"

    topics = {output: resolve_topic(text) for tag, output in _TOPIC_TAGS.items() if (text := child_text(node, tag))}
    if base and "camera_name" in {child.tag for child in node.children}:  # ROS 2: fixed topic names
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
    """Read focal length and principal point of a plugin; zero means that the field of view determines them."""
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


MAX_IMAGE_SIDE = 8192
"""Maximum width and height of an image [px]."""
MAX_PIXELS = 1 << 24
_MAX_PINHOLE_VIEW = math.radians(179.0)  # of a lens without distortion [rad]
_GRAY_FORMATS = ("l8", "l16", "l_int8", "l_uint8", "l_int16", "l_uint16", "mono8", "mono16")
_COLOR_FORMATS = ("r8g8b8", "rgb_int8", "rgb8", "b8g8r8", "bgr_int8", "bgr8", "r8g8b8a8", "rgba_int8")
_LENS_MODELS: dict[str, ProjectionModel] = {
    "gnomonical": "plumb_bob", "equidistant": "equidistant", "stereographic": "stereographic",
    "equisolid_angle": "equisolid", "orthographic": "orthographic",
}  # fmt: skip
_KNOWN_TAGS = {
    "horizontal_fov", "image", "clip", "noise", "distortion", "lens", "camera_info_topic", "optical_frame_id", "pose",
    "depth_camera", "exposure", "depth_noise", "depth", "infrared", "baseline",
}  # fmt: skip
_UNUSED_TAGS = {
    "save", "visibility_mask", "trigger_topic", "triggered", "segmentation_type", "box_type", "segmentation", "view",
}  # fmt: skip


def read_camera(context: ReaderContext, element: SensorElement) -> CameraSpec:
    """Read a camera of any type.

    Raises:
        DescriptionError: The camera model or the image size is invalid; the message has file and line.
    """
    kind, plugin = element.kind, read_camera_plugin(element.node)
    cameras = [camera for camera in element.node.children_with_tag("camera") if camera.children]
    node = cameras[0] if cameras else element.node
    for camera in cameras:
        context.warn_unknown_children(camera, _KNOWN_TAGS, _UNUSED_TAGS)
    lens = _read_lens(
        context,
        node if cameras else None,
        element.name,
        plugin,
        is_wide_angle=element.type_text.startswith("wideangle"),
    )
    near, far = _read_clip(context, node.child("clip"), element.name, plugin)
    depth_near, depth_far = _read_depth_clip(node, element.name, near, far, plugin)
    infrared = element.type_text == "infrared"
    depth_element = node.child("depth")
    depth_lens, T_color_depth = (
        (lens, SE3.identity())
        if depth_element is None
        else _read_depth_lens(context, depth_element, element.name, lens)
    )
    depth = depth_lens if kind in ("depth_camera", "rgbd_camera", "stereo_camera") or infrared else None
    frame = child_text(node, "optical_frame_id")
    noise = read_noise(context, node.child("noise"))
    depth_noise = _read_depth_noise(context, node.child("depth_noise"), element.name)
    if kind == "depth_camera" and noise != Noise() and depth_noise == DepthNoise():
        depth_noise = DepthNoise("gaussian", noise)
    spec = CameraSpec(
        color=None if kind == "depth_camera" or infrared else lens,
        depth=lens if kind in ("depth_camera", "stereo_camera") else depth,
        near=near,
        far=far,
        depth_near=depth_near,
        depth_far=depth_far,
        T_color_depth=T_color_depth if kind == "rgbd_camera" else SE3.identity(),
        baseline=_read_baseline(context, element, cameras, plugin) if kind == "stereo_camera" else 0.0,
        noise=noise,
        exposure=_read_exposure(context, node.child("exposure")),
        depth_noise=depth_noise,
        infrared=infrared or child_boolean(node, "infrared", False),
        is_grayscale=_is_grayscale(context, node.child("image")),
        depth_in_mm=child_text(node.child("image"), "format").lower() in ("l16", "l_uint16", "16uc1"),
        optical_frame=frame or plugin.optical_frame,
        topics=plugin.topics,
    )
    info = child_text(node, "camera_info_topic").strip("/")
    if info:
        output = "depth_info" if kind == "depth_camera" else "info"
        spec = replace(spec, topics=(*(t for t in spec.topics if t[0] != output), (output, info)))
    return spec


def _read_lens(
    context: ReaderContext, node: XmlNode | None, name: str, plugin: CameraPlugin, *, is_wide_angle: bool = False
) -> CameraModel:
    """Read camera model and image size; `node` is the ``<camera>``."""
    image = node.child("image") if node else None
    width, height = child_integer(image, "width", 640), child_integer(image, "height", 480)
    is_valid_size = 1 <= width <= MAX_IMAGE_SIDE and 1 <= height <= MAX_IMAGE_SIDE and width * height <= MAX_PIXELS
    if image is not None and not is_valid_size:
        problem = f"camera '{name}' has an image size of {width} × {height} pixels"
        raise error_at(problem, image, f"1 to {MAX_IMAGE_SIDE} per side, at most {MAX_PIXELS} in total")
    lens_element = node.child("lens") if node else None
    lens_type = child_text(lens_element, "type", "gnomonical").lower()
    if lens_type not in _LENS_MODELS and lens_element is not None:
        context.warn(lens_element, f"unknown lens type {quote(lens_type)}: a lens without distortion is used")
    model = _LENS_MODELS.get(lens_type, "plumb_bob") if is_wide_angle else "plumb_bob"
    field_of_view = child_number(node, "horizontal_fov", 1.0472)
    max_view = _MAX_PINHOLE_VIEW if model == "plumb_bob" else (math.pi if model == "orthographic" else 1.99 * math.pi)
    if node is not None and not field_of_view > 0.0:
        raise error_at(
            f"camera '{name}' has a horizontal field of view of {field_of_view:g} rad",
            node.child("horizontal_fov") or node,
            f"above 0, at most {max_view:.4g} rad with this lens",
        )
    if node is not None and field_of_view > max_view:
        problem = f"camera '{name}' has a horizontal field of view of {field_of_view:g} rad, wider than its lens allows"
        context.warn(node.child("horizontal_fov") or node, f"{problem}: {max_view:.4g} rad is used")
        field_of_view = max_view
    distortion = _read_distortion(context, node, plugin)
    lens = CameraModel.from_field_of_view(width, height, field_of_view, model, distortion)
    intrinsics = lens_element.child("intrinsics") if lens_element is not None else None
    if intrinsics is not None:
        context.warn_unknown_children(intrinsics, {"fx", "fy", "cx", "cy", "s"})
        if child_number(intrinsics, "s", 0.0) != 0.0:
            context.warn(intrinsics, f"camera '{name}': only rectangular pixels are supported, <s> is ignored")
        # In SDF the image center is (width / 2, height / 2); here, as in ROS, pixel centers have integer coordinates.
        lens = replace(
            lens,
            fx=child_number(intrinsics, "fx", lens.fx, minimum=0.0, exclusive=True),
            fy=child_number(intrinsics, "fy", lens.fy, minimum=0.0, exclusive=True),
            cx=child_number(intrinsics, "cx", lens.cx + 0.5) - 0.5,
            cy=child_number(intrinsics, "cy", lens.cy + 0.5) - 0.5,
        )
    elif plugin.intrinsics and node is not None:
        plugin_intrinsics = plugin.intrinsics
        lens = replace(
            lens,
            fx=plugin_intrinsics.get("fx", lens.fx),
            fy=plugin_intrinsics.get("fy", lens.fy),
            cx=plugin_intrinsics.get("cx", lens.cx),
            cy=plugin_intrinsics.get("cy", lens.cy),
        )
    if (fold_pixel := lens.find_distortion_fold()) is not None and node is not None:
        pixel = f"({fold_pixel[0]:g}, {fold_pixel[1]:g})"
        problem = f"the distortion of camera '{name}' is not invertible beyond pixel {pixel}"
        context.warn(node.child("distortion") or node, f"{problem}: the image is empty from there on")
    return lens


def _read_distortion(
    context: ReaderContext, node: XmlNode | None, plugin: CameraPlugin
) -> tuple[float, float, float, float, float]:
    found = node.child("distortion") if node else None
    if found is None:
        return plugin.distortion
    context.warn_unknown_children(found, {"k1", "k2", "k3", "p1", "p2", "center"})
    k1, k2, p1, p2, k3 = (child_number(found, tag, 0.0) for tag in ("k1", "k2", "p1", "p2", "k3"))
    return k1, k2, p1, p2, k3


def _read_clip(context: ReaderContext, node: XmlNode | None, name: str, plugin: CameraPlugin) -> tuple[float, float]:
    near = child_number(node, "near", 0.1, minimum=0.0, exclusive=True)
    far = child_number(node, "far", 100.0, minimum=0.0, exclusive=True, allow_infinite=True)
    _check_clip_order(node, name, near, far)
    return near, min(far, 1e4)


def _read_depth_clip(node: XmlNode, name: str, near: float, far: float, plugin: CameraPlugin) -> tuple[float, float]:
    depth_camera = node.child("depth_camera")
    clip = depth_camera.child("clip") if depth_camera else None
    plugin_min, plugin_max = plugin.depth_range
    low = child_number(clip, "near", near if plugin_min is None else plugin_min, minimum=0.0)
    high = child_number(
        clip, "far", far if plugin_max is None else plugin_max, minimum=0.0, exclusive=True, allow_infinite=True
    )
    _check_clip_order(clip or node, name, low, high)
    return max(low, near), min(high, 1e4)


def _check_clip_order(node: XmlNode | None, name: str, near: float, far: float) -> None:
    if node is not None and near >= far:
        raise error_at(
            f"camera '{name}': far clip distance {far:g} m is not above near clip distance {near:g} m",
            node,
            "far above near",
        )


def _read_depth_lens(
    context: ReaderContext, node: XmlNode, name: str, color_lens: CameraModel
) -> tuple[CameraModel, SE3]:
    """Read a depth camera's own model and its pose: ``<pose>`` in the color camera's frame, x forward."""
    context.warn_unknown_children(node, {"pose", "horizontal_fov", "image", "distortion", "lens"})
    has_same_view = node.child("image") is None and node.child("horizontal_fov") is None
    lens = (
        color_lens
        if has_same_view and node.child("lens") is None
        else _read_lens(context, node, f"{name}/depth", CameraPlugin())
    )
    return lens, T_SENSOR_OPTICAL.inverse() @ read_pose(node.child("pose")) @ T_SENSOR_OPTICAL


def _read_baseline(
    context: ReaderContext, element: SensorElement, cameras: list[XmlNode], plugin: CameraPlugin
) -> float:
    """Read the baseline of a stereo pair: ``<baseline>``, the poses of two ``<camera>``, or a plugin's hackBaseline."""
    node = cameras[0] if cameras else element.node
    baseline = child_number(node, "baseline", plugin.baseline, minimum=0.0)
    if len(cameras) > 1:
        if len(cameras) > 2:
            context.warn(
                cameras[2], f"'{element.name}' has {len(cameras)} cameras: the first two are used as a stereo pair"
            )
        T_left_right = read_pose(cameras[0].child("pose")).inverse() @ read_pose(cameras[1].child("pose"))
        x, y, z = T_left_right.xyz
        if abs(x) > 1e-3 or abs(z) > 1e-3 or T_left_right.angle > 1e-3:
            context.warn(
                cameras[1],
                f"the cameras of '{element.name}' are not parallel and side by side: a rectified pair is used",
            )
        baseline = abs(y) or baseline
    if baseline <= 0.0:
        raise error_at(
            f"the two cameras of '{element.name}' have the same position", cameras[-1] if cameras else element.node,
            "<baseline> in m, or a <pose> in its second <camera>",
        )  # fmt: skip
    return baseline


def _read_exposure(context: ReaderContext, node: XmlNode | None) -> Exposure:
    if node is None:
        return Exposure()
    context.warn_unknown_children(node, {"gain", "auto", "vignetting", "full_well", "read_noise"})
    return Exposure(
        gain=child_number(node, "gain", 1.0, minimum=0.0, exclusive=True),
        auto=child_boolean(node, "auto", False),
        vignetting=read_probability(node, "vignetting"),
        full_well=child_number(node, "full_well", 0.0, minimum=0.0),
        read_noise=child_number(node, "read_noise", 0.0, minimum=0.0),
    )


def _read_depth_noise(context: ReaderContext, node: XmlNode | None, name: str) -> DepthNoise:
    if node is None:
        return DepthNoise()
    context.warn_unknown_children(node, {"model", "noise", "baseline", "disparity", "close"})
    model_name = child_text(node, "model", "ideal").lower()
    model = next((one for one in DEPTH_MODELS if one == model_name), None)
    if model is None:
        raise error_at(
            f"camera '{name}' has the unknown depth noise model {quote(model_name)}", node, ", ".join(DEPTH_MODELS)
        )
    disparity_stddev = child_number(node, "disparity", 0.25 if model == "stereo" else 0.0, minimum=0.0)
    noise = read_noise(context, node.child("noise"))
    gaussian_noise = noise if model == "gaussian" else Noise()
    near_blur_distance = child_number(node, "close", 0.0, minimum=0.0)
    return DepthNoise(model, gaussian_noise, child_number(node, "baseline", 0.0), disparity_stddev, near_blur_distance)


def _is_grayscale(context: ReaderContext, image: XmlNode | None) -> bool:
    image_format = child_text(image, "format", "r8g8b8").lower()
    if (
        image is not None
        and image_format not in (*_GRAY_FORMATS, *_COLOR_FORMATS)
        and not image_format.startswith(("bayer", "r_float", "16u"))
    ):
        context.warn(image, f"unknown image format {quote(image_format)}: R8G8B8 is used")
    return image_format in _GRAY_FORMATS
