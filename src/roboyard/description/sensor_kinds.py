"""What stands inside a ``<sensor>``, kind by kind: element to specification."""

from __future__ import annotations

import math
from collections.abc import Callable

from roboyard.description.camera_reading import read_camera
from roboyard.description.cameras import CAMERA_KINDS
from roboyard.description.fields import child_boolean, child_integer, child_number, child_text
from roboyard.description.noise import Noise
from roboyard.description.reading import ReaderContext
from roboyard.description.sensor_place import SensorElement, read_noise, read_probability
from roboyard.description.sensors import (
    AltimeterSpec,
    BarometerSpec,
    ContactSpec,
    EncoderSpec,
    ForceTorqueSpec,
    GnssSpec,
    GroundTruthSpec,
    ImuSpec,
    LidarSpec,
    SensorSpec,
    SonarSpec,
    ThreeAxisSpec,
)
from roboyard.description.values import error_at, quote
from roboyard.description.xml import XmlNode

_DEFAULT_RANGE = 30.0  # [m]
_MAX_RAYS = 2_000_000
_MAX_CYCLES = 10_000
_SONAR_TAGS = {
    "min", "max", "radius", "half_angle", "grazing", "noise", "phantom", "dropout", "frequency", "cycles", "threshold",
}  # fmt: skip
_Axes = tuple[Noise, Noise, Noise]


def _read_lidar(context: ReaderContext, element: SensorElement) -> LidarSpec:
    node, name = element.body or element.node, element.name
    scan = node.child("scan")
    range_element = node.child("range")
    if element.body is not None:
        context.warn_unknown_children(node, {"scan", "range", "noise", "phantom", "dropout"}, {"visibility_mask"})
    samples, angle_min, angle_max = _read_ray_angles(
        context, scan.child("horizontal") if scan else None, name, 640, math.pi / 2
    )
    rows, row_min, row_max = _read_ray_angles(context, scan.child("vertical") if scan else None, name, 1, 0.0)
    if samples * rows > _MAX_RAYS:
        raise error_at(f"lidar '{name}' has {samples} × {rows} rays", node, f"at most {_MAX_RAYS}")
    near = child_number(range_element, "min", 0.0, minimum=0.0)
    far = child_number(range_element, "max", 0.0, minimum=0.0, allow_infinite=True)
    if far == 0.0:
        far = _DEFAULT_RANGE
        context.warn(range_element or node, f"lidar '{name}' has no largest range: {far:g} m taken")
    if far <= near:
        raise error_at(f"lidar '{name}' sees from {near:g} m to {far:g} m", range_element or node, "max above min")
    return LidarSpec(
        samples=samples,
        angle_min=angle_min,
        angle_max=angle_max,
        vertical_samples=rows,
        vertical_angle_min=row_min,
        vertical_angle_max=row_max,
        range_min=near,
        range_max=far,
        resolution=child_number(range_element, "resolution", 0.0, minimum=0.0),
        noise=read_noise(context, node.child("noise")),
        false_echo_probability=read_probability(node, "phantom"),
        dropout_probability=read_probability(node, "dropout"),
    )


def _read_ray_angles(
    context: ReaderContext, node: XmlNode | None, name: str, samples: int, half_angle: float
) -> tuple[int, float, float]:
    """Samples and angles of one direction; ``resolution`` multiplies the samples, as in SDF."""
    count = child_integer(node, "samples", samples) * child_number(node, "resolution", 1.0, minimum=0.0, exclusive=True)
    low = child_number(node, "min_angle", -half_angle)
    high = child_number(node, "max_angle", half_angle)
    problem = f"lidar '{name}' has {count:g} samples from {low:g} to {high:g} rad"
    if node is not None and count < 1.0:
        raise error_at(problem, node, "at least 1 sample")
    if node is not None and low > high:
        context.repair_or_raise(node, problem, "min_angle ≤ max_angle", "the two change places")
        low, high = high, low
    return round(count), low, high


def _read_imu(context: ReaderContext, element: SensorElement) -> ImuSpec:
    node = element.body
    if node is None:
        return ImuSpec()
    context.warn_unknown_children(
        node,
        {"angular_velocity", "linear_acceleration", "enable_orientation", "noise"},
        {"orientation_reference_frame", "topic"},
    )
    orientation = child_boolean(node, "enable_orientation", True)
    common_noise = node.child("noise")  # SDF 1.4: one noise for all axes, <rate> and <accel>
    if common_noise is not None:
        rate, accel = (read_noise(context, _quantity_noise(common_noise, quantity)) for quantity in ("rate", "accel"))
        return ImuSpec((rate, rate, rate), (accel, accel, accel), orientation)
    return ImuSpec(
        _read_axes_noise(context, node.child("angular_velocity")),
        _read_axes_noise(context, node.child("linear_acceleration")),
        orientation,
    )


def _quantity_noise(node: XmlNode, quantity: str) -> XmlNode | None:
    values = node.child(quantity)
    if values is None:
        return None
    kind = node.get("type") or child_text(node, "type", "gaussian")
    return XmlNode("noise", {"type": kind}, values.file, values.line, "", values.children)


def _read_encoder(context: ReaderContext, element: SensorElement) -> EncoderSpec:
    """``<joint>`` as often as there are joints, ``<resolution>`` in steps per revolution, ``<noise>`` of the speed."""
    node, name, enclosing_joint = element.body, element.name, (element.joint,) if element.joint else ()
    if node is None:
        return EncoderSpec(enclosing_joint)
    context.warn_unknown_children(node, {"joint", "resolution", "noise", "absolute", "miscount"})
    named_joints = tuple(dict.fromkeys(one.text.strip() for one in node.children_with_tag("joint") if one.text.strip()))
    steps = child_integer(node, "resolution", 0)
    if steps < 0:
        raise error_at(f"encoder '{name}' has {steps} steps per revolution", node, "at least 1, or 0 for no steps")
    absolute = child_boolean(node, "absolute", False)
    return EncoderSpec(
        named_joints or enclosing_joint,
        steps,
        read_noise(context, node.child("noise")),
        absolute,
        read_probability(node, "miscount"),
    )


def _read_axes_noise(context: ReaderContext, node: XmlNode | None) -> tuple[Noise, Noise, Noise]:
    parts = [node.child(axis) if node else None for axis in ("x", "y", "z")]
    x, y, z = (read_noise(context, part.child("noise") if part else None) for part in parts)
    return x, y, z


def _read_contact(context: ReaderContext, element: SensorElement) -> ContactSpec:
    body = element.body
    return ContactSpec(tuple(one.text.strip() for one in body.children_with_tag("collision")) if body else ())


def _read_ground_truth(context: ReaderContext, element: SensorElement) -> GroundTruthSpec:
    return GroundTruthSpec()


def _read_sonar(context: ReaderContext, element: SensorElement) -> SonarSpec:
    """SDF's ``<min> <max> <radius>`` (of the cone at its end), or our ``<half_angle>``."""
    node, defaults = element.body, SonarSpec()
    if node is None:
        return defaults
    context.warn_unknown_children(node, _SONAR_TAGS, {"geometry"})
    near, far = (
        child_number(node, "min", defaults.range_min, minimum=0.0),
        child_number(node, "max", defaults.range_max, minimum=0.0),
    )
    if far <= near:
        raise error_at(f"sonar '{element.name}' hears from {near:g} m to {far:g} m", node, "max above min")
    radius = child_number(node, "radius", far * math.tan(defaults.half_angle), minimum=0.0, exclusive=True)
    half_angle = child_number(node, "half_angle", math.atan2(radius, far), minimum=0.0, exclusive=True)
    if half_angle >= math.pi / 2:
        raise error_at(f"sonar '{element.name}' has a half angle of {half_angle:g} rad", node, "below pi/2")
    max_incidence_angle = child_number(node, "grazing", defaults.max_incidence_angle, minimum=0.0)
    noise = read_noise(context, node.child("noise"))
    burst_cycles = child_number(node, "cycles", defaults.burst_cycles, minimum=1.0)
    if burst_cycles > _MAX_CYCLES:
        raise error_at(f"sonar '{element.name}' sends {burst_cycles:g} cycles", node, f"at most {_MAX_CYCLES}")
    return SonarSpec(
        near,
        far,
        half_angle,
        max_incidence_angle,
        noise,
        read_probability(node, "phantom"),
        read_probability(node, "dropout"),
        child_number(node, "frequency", defaults.frequency, minimum=0.0, exclusive=True),
        round(burst_cycles),
        read_probability(node, "threshold"),
    )


def _read_three_axis(context: ReaderContext, element: SensorElement) -> ThreeAxisSpec:
    return ThreeAxisSpec(_read_axes_noise(context, element.body))


def _read_child_noise(context: ReaderContext, node: XmlNode | None, tag: str) -> Noise:
    part = node.child(tag) if node is not None else None
    return read_noise(context, part.child("noise") if part is not None else None)


def _read_altimeter(context: ReaderContext, element: SensorElement) -> AltimeterSpec:
    node = element.body
    return AltimeterSpec(
        _read_child_noise(context, node, "vertical_position"), _read_child_noise(context, node, "vertical_velocity")
    )


def _read_barometer(context: ReaderContext, element: SensorElement) -> BarometerSpec:
    node = element.body
    return BarometerSpec(_read_child_noise(context, node, "pressure"), child_number(node, "reference_altitude", 0.0))


def _read_gnss(context: ReaderContext, element: SensorElement) -> GnssSpec:
    node = element.body
    position = node.child("position_sensing") if node else None
    velocity = node.child("velocity_sensing") if node else None
    return GnssSpec(
        _read_child_noise(context, position, "horizontal"),
        _read_child_noise(context, position, "vertical"),
        _read_child_noise(context, velocity, "horizontal"),
        _read_child_noise(context, velocity, "vertical"),
        child_number(node, "sky", GnssSpec().min_sky_fraction, minimum=0.0),
    )


def _read_force_torque(context: ReaderContext, element: SensorElement) -> ForceTorqueSpec:
    node = element.body
    if not element.joint:
        raise error_at(f"force-torque sensor '{element.name}' stands in no joint", element.node, "<joint><sensor …>")
    frame, direction = child_text(node, "frame", "child"), child_text(node, "measure_direction", "child_to_parent")
    if frame not in ("child", "parent", "sensor"):
        raise error_at(f"<frame> is {quote(frame)}", node or element.node, "child, parent or sensor")
    directions = ("child_to_parent", "parent_to_child")
    if direction not in directions:
        raise error_at(f"<measure_direction> is {quote(direction)}", node or element.node, " or ".join(directions))
    force, torque = (node.child(tag) if node else None for tag in ("force", "torque"))
    noise = _read_axes_noise(context, force), _read_axes_noise(context, torque)
    return ForceTorqueSpec(element.joint, frame, direction, *noise)  # type: ignore[arg-type]


READERS: dict[str, tuple[tuple[str, ...], Callable[[ReaderContext, SensorElement], SensorSpec]]] = {
    "lidar": (("lidar", "ray"), _read_lidar),
    "imu": (("imu",), _read_imu),
    "contact": (("contact",), _read_contact),
    "encoder": (("encoder",), _read_encoder),
    "truth": ((), _read_ground_truth),
    "sonar": (("sonar",), _read_sonar),
    "accelerometer": (("accelerometer",), _read_three_axis),
    "gyroscope": (("gyroscope",), _read_three_axis),
    "magnetometer": (("magnetometer",), _read_three_axis),
    "altimeter": (("altimeter",), _read_altimeter),
    "air_pressure": (("air_pressure",), _read_barometer),
    "navsat": (("navsat", "gps"), _read_gnss),
    "force_torque": (("force_torque",), _read_force_torque),
    **dict.fromkeys(CAMERA_KINDS, (("camera",), read_camera)),
}
"""By kind: names of the element inside, and its reader."""
