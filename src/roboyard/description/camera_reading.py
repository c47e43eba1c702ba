"""``<camera>`` elements to camera records: SDF's own words, and what Roboyard adds to them.

Added: ``<exposure>``, ``<depth_noise>``, ``<depth>`` (a depth camera with a lens and a place of its own),
``<infrared>`` and ``<baseline>``.
"""

from __future__ import annotations

import math
from dataclasses import replace

from roboyard.description.camera_plugins import CameraPlugin, camera_plugin
from roboyard.description.cameras import DEPTH_MODELS, T_SENSOR_OPTICAL, CameraSpec, DepthNoise, Exposure
from roboyard.description.fields import boolean_of, integer_of, number_of, pose, text_of
from roboyard.description.noise import Noise
from roboyard.description.reading import Reading
from roboyard.description.sensor_place import Place, probability, read_noise
from roboyard.description.values import fault, shown
from roboyard.description.xml import Node
from roboyard.geometry import SE3, Lens
from roboyard.geometry.lens import LensModel

MAX_EDGE = 8192
"""Largest picture each way [px]."""
MAX_PIXELS = 1 << 24
_WIDEST = math.radians(179.0)  # of a lens that keeps lines straight [rad]
_GREY = ("l8", "l16", "l_int8", "l_uint8", "l_int16", "l_uint16", "mono8", "mono16")
_COLOURED = ("r8g8b8", "rgb_int8", "rgb8", "b8g8r8", "bgr_int8", "bgr8", "r8g8b8a8", "rgba_int8")
_LENSES: dict[str, LensModel] = {
    "gnomonical": "plumb_bob", "equidistant": "equidistant", "stereographic": "stereographic",
    "equisolid_angle": "equisolid", "orthographic": "orthographic",
}  # fmt: skip
_KNOWN = {
    "horizontal_fov", "image", "clip", "noise", "distortion", "lens", "camera_info_topic", "optical_frame_id", "pose",
    "depth_camera", "exposure", "depth_noise", "depth", "infrared", "baseline",
}  # fmt: skip
_UNUSED = {
    "save", "visibility_mask", "trigger_topic", "triggered", "segmentation_type", "box_type", "segmentation", "view",
}  # fmt: skip


def read_camera(reading: Reading, place: Place) -> CameraSpec:
    """A camera of any kind.

    Raises:
        DescriptionError: a lens or a picture that cannot be; with file and line.
    """
    kind, plugin = place.kind, camera_plugin(place.node)
    bodies = [one for one in place.node.all("camera") if one.children]
    node = bodies[0] if bodies else place.node
    for one in bodies:
        reading.unknown(one, _KNOWN, _UNUSED)
    lens = _lens(reading, node if bodies else None, place.name, plugin, wide=place.written.startswith("wideangle"))
    near, far = _clip(reading, node.child("clip"), place.name, plugin)
    depth_near, depth_far = _depth_clip(node, place.name, near, far, plugin)
    infrared = place.written == "infrared"
    own = node.child("depth")
    apart, T = (lens, SE3.identity()) if own is None else _apart(reading, own, place.name, lens)
    depth = apart if kind in ("depth_camera", "rgbd_camera", "stereo_camera") or infrared else None
    frame = text_of(node, "optical_frame_id")
    noise = read_noise(reading, node.child("noise"))
    depth_noise = _depth_noise(reading, node.child("depth_noise"), place.name)
    if kind == "depth_camera" and noise != Noise() and depth_noise == DepthNoise():
        depth_noise = DepthNoise("gaussian", noise)
    spec = CameraSpec(
        colour=None if kind == "depth_camera" or infrared else lens,
        depth=lens if kind in ("depth_camera", "stereo_camera") else depth,
        near=near,
        far=far,
        depth_near=depth_near,
        depth_far=depth_far,
        T_colour_depth=T if kind == "rgbd_camera" else SE3.identity(),
        baseline=_baseline(reading, place, bodies, plugin) if kind == "stereo_camera" else 0.0,
        noise=noise,
        exposure=_exposure(reading, node.child("exposure")),
        depth_noise=depth_noise,
        infrared=infrared or boolean_of(node, "infrared", False),
        grey=_grey(reading, node.child("image")),
        millimetres=text_of(node.child("image"), "format").lower() in ("l16", "l_uint16", "16uc1"),
        optical_frame=frame or plugin.optical_frame,
        topics=plugin.topics,
    )
    info = text_of(node, "camera_info_topic").strip("/")
    if info:
        output = "depth_info" if kind == "depth_camera" else "info"
        spec = replace(spec, topics=(*(t for t in spec.topics if t[0] != output), (output, info)))
    return spec


def _lens(reading: Reading, node: Node | None, name: str, plugin: CameraPlugin, *, wide: bool = False) -> Lens:
    """Lens and size of the picture; ``node`` is the ``<camera>``."""
    image = node.child("image") if node else None
    width, height = integer_of(image, "width", 640), integer_of(image, "height", 480)
    fits = 1 <= width <= MAX_EDGE and 1 <= height <= MAX_EDGE and width * height <= MAX_PIXELS
    if image is not None and not fits:
        what = f"camera '{name}' takes pictures of {width} × {height} pixels"
        raise fault(what, image, f"1 to {MAX_EDGE} each way, at most {MAX_PIXELS} in all")
    shape = node.child("lens") if node else None
    written = text_of(shape, "type", "gnomonical").lower()
    if written not in _LENSES and shape is not None:
        reading.note(shape, f"lens type {shown(written)} is not understood: a straight one is taken")
    model = _LENSES.get(written, "plumb_bob") if wide else "plumb_bob"
    view = number_of(node, "horizontal_fov", 1.0472)
    widest = _WIDEST if model == "plumb_bob" else (math.pi if model == "orthographic" else 1.99 * math.pi)
    if node is not None and not view > 0.0:
        raise fault(
            f"camera '{name}' has a horizontal field of view of {view:g} rad",
            node.child("horizontal_fov") or node,
            f"above 0, at most {widest:.4g} rad with this lens",
        )
    if node is not None and view > widest:
        what = f"camera '{name}' has a horizontal field of view of {view:g} rad, wider than its lens can be"
        reading.note(node.child("horizontal_fov") or node, f"{what}: {widest:.4g} rad taken")
        view = widest
    bent = _distortion(reading, node, plugin)
    lens = Lens.of_view(width, height, view, model, bent)
    given = shape.child("intrinsics") if shape is not None else None
    if given is not None:
        reading.unknown(given, {"fx", "fy", "cx", "cy", "s"})
        if number_of(given, "s", 0.0) != 0.0:
            reading.note(given, f"camera '{name}': pixels are rectangles here, <s> is not followed")
        # In SDF the middle of the picture is (width / 2, height / 2); in ours, as in ROS, pixels' middles are whole.
        lens = replace(
            lens,
            fx=number_of(given, "fx", lens.fx, low=0.0, above=True),
            fy=number_of(given, "fy", lens.fy, low=0.0, above=True),
            cx=number_of(given, "cx", lens.cx + 0.5) - 0.5,
            cy=number_of(given, "cy", lens.cy + 0.5) - 0.5,
        )
    elif plugin.lens and node is not None:
        own = plugin.lens
        lens = replace(
            lens,
            fx=own.get("fx", lens.fx),
            fy=own.get("fy", lens.fy),
            cx=own.get("cx", lens.cx),
            cy=own.get("cy", lens.cy),
        )
    if (lost := lens.folds_at()) is not None and node is not None:
        what = f"the distortion of camera '{name}' folds the picture over before pixel ({lost[0]:g}, {lost[1]:g})"
        reading.note(node.child("distortion") or node, f"{what}: nothing is seen from there on")
    return lens


def _distortion(reading: Reading, node: Node | None, plugin: CameraPlugin) -> tuple[float, float, float, float, float]:
    found = node.child("distortion") if node else None
    if found is None:
        return plugin.distortion
    reading.unknown(found, {"k1", "k2", "k3", "p1", "p2", "center"})
    k1, k2, p1, p2, k3 = (number_of(found, tag, 0.0) for tag in ("k1", "k2", "p1", "p2", "k3"))
    return k1, k2, p1, p2, k3


def _clip(reading: Reading, node: Node | None, name: str, plugin: CameraPlugin) -> tuple[float, float]:
    near = number_of(node, "near", 0.1, low=0.0, above=True)
    far = number_of(node, "far", 100.0, low=0.0, above=True, infinite=True)
    _ordered(node, name, near, far)
    return near, min(far, 1e4)


def _depth_clip(node: Node, name: str, near: float, far: float, plugin: CameraPlugin) -> tuple[float, float]:
    own = node.child("depth_camera")
    clip = own.child("clip") if own else None
    from_, to = plugin.depth_range
    low = number_of(clip, "near", near if from_ is None else from_, low=0.0)
    high = number_of(clip, "far", far if to is None else to, low=0.0, above=True, infinite=True)
    _ordered(clip or node, name, low, high)
    return max(low, near), min(high, 1e4)


def _ordered(node: Node | None, name: str, near: float, far: float) -> None:
    if node is not None and near >= far:
        raise fault(f"camera '{name}' sees from {near:g} m to {far:g} m", node, "far above near")


def _apart(reading: Reading, node: Node, name: str, colour: Lens) -> tuple[Lens, SE3]:
    """A depth camera's own lens, and its place: ``<pose>`` in the colour camera's frame, x forward."""
    reading.unknown(node, {"pose", "horizontal_fov", "image", "distortion", "lens"})
    same = node.child("image") is None and node.child("horizontal_fov") is None
    lens = colour if same and node.child("lens") is None else _lens(reading, node, f"{name}/depth", CameraPlugin())
    return lens, T_SENSOR_OPTICAL.inverse() @ pose(node.child("pose")) @ T_SENSOR_OPTICAL


def _baseline(reading: Reading, place: Place, bodies: list[Node], plugin: CameraPlugin) -> float:
    """Distance of the eyes: ``<baseline>``, the poses of two ``<camera>``, or a plugin's hackBaseline."""
    node = bodies[0] if bodies else place.node
    said = number_of(node, "baseline", plugin.baseline, low=0.0)
    if len(bodies) > 1:
        if len(bodies) > 2:
            reading.note(bodies[2], f"'{place.name}' has {len(bodies)} cameras: the first two are taken as a pair")
        between = pose(bodies[0].child("pose")).inverse() @ pose(bodies[1].child("pose"))
        x, y, z = between.xyz
        if abs(x) > 1e-3 or abs(z) > 1e-3 or between.angle > 1e-3:
            reading.note(bodies[1], f"the eyes of '{place.name}' do not look alike side by side: a rectified pair is")
        said = abs(y) or said
    if said <= 0.0:
        raise fault(
            f"the eyes of '{place.name}' are at the same place", bodies[-1] if bodies else place.node,
            "<baseline> in m, or a <pose> in its second <camera>",
        )  # fmt: skip
    return said


def _exposure(reading: Reading, node: Node | None) -> Exposure:
    if node is None:
        return Exposure()
    reading.unknown(node, {"gain", "auto", "vignetting", "full_well", "read_noise"})
    return Exposure(
        gain=number_of(node, "gain", 1.0, low=0.0, above=True),
        auto=boolean_of(node, "auto", False),
        vignetting=probability(node, "vignetting"),
        full_well=number_of(node, "full_well", 0.0, low=0.0),
        read_noise=number_of(node, "read_noise", 0.0, low=0.0),
    )


def _depth_noise(reading: Reading, node: Node | None, name: str) -> DepthNoise:
    if node is None:
        return DepthNoise()
    reading.unknown(node, {"model", "noise", "baseline", "disparity", "close"})
    model = text_of(node, "model", "ideal").lower()
    found = next((one for one in DEPTH_MODELS if one == model), None)
    if found is None:
        raise fault(f"camera '{name}' errs like {shown(model)}", node, ", ".join(DEPTH_MODELS))
    disparity = number_of(node, "disparity", 0.25 if found == "stereo" else 0.0, low=0.0)
    noise = read_noise(reading, node.child("noise"))
    own = noise if found == "gaussian" else Noise()
    close = number_of(node, "close", 0.0, low=0.0)
    return DepthNoise(found, own, number_of(node, "baseline", 0.0), disparity, close)


def _grey(reading: Reading, image: Node | None) -> bool:
    written = text_of(image, "format", "r8g8b8").lower()
    if (
        image is not None
        and written not in (*_GREY, *_COLOURED)
        and not written.startswith(("bayer", "r_float", "16u"))
    ):
        reading.note(image, f"picture format {shown(written)} is not understood: R8G8B8 taken")
    return written in _GREY
