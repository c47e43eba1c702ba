"""What stands inside a ``<sensor>``, kind by kind: element to specification."""

from __future__ import annotations

import math
from collections.abc import Callable

from roboyard.description.camera_reading import read_camera
from roboyard.description.cameras import CAMERA_KINDS
from roboyard.description.fields import boolean_of, integer_of, number_of, text_of
from roboyard.description.noise import Noise
from roboyard.description.reading import Reading
from roboyard.description.sensor_place import Place, probability, read_noise
from roboyard.description.sensors import (
    AltimeterSpec,
    ContactSpec,
    EncoderSpec,
    ForceTorqueSpec,
    ImuSpec,
    LidarSpec,
    PressureSpec,
    SatelliteSpec,
    SensorSpec,
    SonarSpec,
    TruthSpec,
    VectorSpec,
)
from roboyard.description.values import fault, shown
from roboyard.description.xml import Node

_DEFAULT_RANGE = 30.0  # [m]
_MAX_RAYS = 2_000_000
_MAX_CYCLES = 10_000
_SONAR = {
    "min", "max", "radius", "half_angle", "grazing", "noise", "phantom", "dropout", "frequency", "cycles", "threshold",
}  # fmt: skip
_Axes = tuple[Noise, Noise, Noise]


def _lidar(reading: Reading, place: Place) -> LidarSpec:
    node, name = place.body or place.node, place.name
    scan = node.child("scan")
    span = node.child("range")
    if place.body is not None:
        reading.unknown(node, {"scan", "range", "noise", "phantom", "dropout"}, {"visibility_mask"})
    samples, angle_min, angle_max = _fan(reading, scan.child("horizontal") if scan else None, name, 640, math.pi / 2)
    rows, row_min, row_max = _fan(reading, scan.child("vertical") if scan else None, name, 1, 0.0)
    if samples * rows > _MAX_RAYS:
        raise fault(f"lidar '{name}' has {samples} × {rows} rays", node, f"at most {_MAX_RAYS}")
    near = number_of(span, "min", 0.0, low=0.0)
    far = number_of(span, "max", 0.0, low=0.0, infinite=True)
    if far == 0.0:
        far = _DEFAULT_RANGE
        reading.note(span or node, f"lidar '{name}' has no largest range: {far:g} m taken")
    if far <= near:
        raise fault(f"lidar '{name}' sees from {near:g} m to {far:g} m", span or node, "max above min")
    return LidarSpec(
        samples=samples,
        angle_min=angle_min,
        angle_max=angle_max,
        vertical_samples=rows,
        vertical_angle_min=row_min,
        vertical_angle_max=row_max,
        range_min=near,
        range_max=far,
        resolution=number_of(span, "resolution", 0.0, low=0.0),
        noise=read_noise(reading, node.child("noise")),
        phantom=probability(node, "phantom"),
        dropout=probability(node, "dropout"),
    )


def _fan(reading: Reading, node: Node | None, name: str, samples: int, half: float) -> tuple[int, float, float]:
    """Samples and angles of one direction; ``resolution`` multiplies the samples, as in SDF."""
    count = integer_of(node, "samples", samples) * number_of(node, "resolution", 1.0, low=0.0, above=True)
    low = number_of(node, "min_angle", -half)
    high = number_of(node, "max_angle", half)
    what = f"lidar '{name}' has {count:g} samples from {low:g} to {high:g} rad"
    if node is not None and count < 1.0:
        raise fault(what, node, "at least 1 sample")
    if node is not None and low > high:
        reading.mend(node, what, "min_angle ≤ max_angle", "the two change places")
        low, high = high, low
    return round(count), low, high


def _imu(reading: Reading, place: Place) -> ImuSpec:
    node = place.body
    if node is None:
        return ImuSpec()
    reading.unknown(
        node,
        {"angular_velocity", "linear_acceleration", "enable_orientation", "noise"},
        {"orientation_reference_frame", "topic"},
    )
    orientation = boolean_of(node, "enable_orientation", True)
    old = node.child("noise")  # SDF 1.4: one noise for all axes, <rate> and <accel>
    if old is not None:
        rate, accel = (read_noise(reading, _old_noise(old, part)) for part in ("rate", "accel"))
        return ImuSpec((rate, rate, rate), (accel, accel, accel), orientation)
    return ImuSpec(
        _axes(reading, node.child("angular_velocity")), _axes(reading, node.child("linear_acceleration")), orientation
    )


def _old_noise(node: Node, part: str) -> Node | None:
    values = node.child(part)
    if values is None:
        return None
    kind = node.get("type") or text_of(node, "type", "gaussian")
    return Node("noise", {"type": kind}, values.file, values.line, "", values.children)


def _encoder(reading: Reading, place: Place) -> EncoderSpec:
    """``<joint>`` as often as there are joints, ``<resolution>`` in steps per revolution, ``<noise>`` of the speed."""
    node, name, own = place.body, place.name, (place.joint,) if place.joint else ()
    if node is None:
        return EncoderSpec(own)
    reading.unknown(node, {"joint", "resolution", "noise", "absolute", "miscount"})
    named = tuple(dict.fromkeys(one.text.strip() for one in node.all("joint") if one.text.strip()))
    steps = integer_of(node, "resolution", 0)
    if steps < 0:
        raise fault(f"encoder '{name}' has {steps} steps per revolution", node, "at least 1, or 0 for no steps")
    absolute = boolean_of(node, "absolute", False)
    return EncoderSpec(
        named or own, steps, read_noise(reading, node.child("noise")), absolute, probability(node, "miscount")
    )


def _axes(reading: Reading, node: Node | None) -> tuple[Noise, Noise, Noise]:
    parts = [node.child(axis) if node else None for axis in ("x", "y", "z")]
    x, y, z = (read_noise(reading, part.child("noise") if part else None) for part in parts)
    return x, y, z


def _contact(reading: Reading, place: Place) -> ContactSpec:
    body = place.body
    return ContactSpec(tuple(one.text.strip() for one in body.all("collision")) if body else ())


def _truth(reading: Reading, place: Place) -> TruthSpec:
    return TruthSpec()


def _sonar(reading: Reading, place: Place) -> SonarSpec:
    """SDF's ``<min> <max> <radius>`` (of the cone at its end), or our ``<half_angle>``."""
    node, plain = place.body, SonarSpec()
    if node is None:
        return plain
    reading.unknown(node, _SONAR, {"geometry"})
    near, far = number_of(node, "min", plain.range_min, low=0.0), number_of(node, "max", plain.range_max, low=0.0)
    if far <= near:
        raise fault(f"sonar '{place.name}' hears from {near:g} m to {far:g} m", node, "max above min")
    radius = number_of(node, "radius", far * math.tan(plain.half_angle), low=0.0, above=True)
    half = number_of(node, "half_angle", math.atan2(radius, far), low=0.0, above=True)
    if half >= math.pi / 2:
        raise fault(f"sonar '{place.name}' has a half angle of {half:g} rad", node, "below pi/2")
    grazing = number_of(node, "grazing", plain.grazing, low=0.0)
    noise = read_noise(reading, node.child("noise"))
    cycles = number_of(node, "cycles", plain.cycles, low=1.0)
    if cycles > _MAX_CYCLES:
        raise fault(f"sonar '{place.name}' sends {cycles:g} cycles", node, f"at most {_MAX_CYCLES}")
    return SonarSpec(
        near,
        far,
        half,
        grazing,
        noise,
        probability(node, "phantom"),
        probability(node, "dropout"),
        number_of(node, "frequency", plain.frequency, low=0.0, above=True),
        round(cycles),
        probability(node, "threshold"),
    )


def _vector(reading: Reading, place: Place) -> VectorSpec:
    return VectorSpec(_axes(reading, place.body))


def _channel(reading: Reading, node: Node | None, tag: str) -> Noise:
    part = node.child(tag) if node is not None else None
    return read_noise(reading, part.child("noise") if part is not None else None)


def _altimeter(reading: Reading, place: Place) -> AltimeterSpec:
    node = place.body
    return AltimeterSpec(_channel(reading, node, "vertical_position"), _channel(reading, node, "vertical_velocity"))


def _pressure(reading: Reading, place: Place) -> PressureSpec:
    node = place.body
    return PressureSpec(_channel(reading, node, "pressure"), number_of(node, "reference_altitude", 0.0))


def _satellite(reading: Reading, place: Place) -> SatelliteSpec:
    node = place.body
    position = node.child("position_sensing") if node else None
    velocity = node.child("velocity_sensing") if node else None
    return SatelliteSpec(
        _channel(reading, position, "horizontal"),
        _channel(reading, position, "vertical"),
        _channel(reading, velocity, "horizontal"),
        _channel(reading, velocity, "vertical"),
        number_of(node, "sky", SatelliteSpec().sky, low=0.0),
    )


def _force_torque(reading: Reading, place: Place) -> ForceTorqueSpec:
    node = place.body
    if not place.joint:
        raise fault(f"force-torque sensor '{place.name}' stands in no joint", place.node, "<joint><sensor …>")
    frame, direction = text_of(node, "frame", "child"), text_of(node, "measure_direction", "child_to_parent")
    if frame not in ("child", "parent", "sensor"):
        raise fault(f"<frame> is {shown(frame)}", node or place.node, "child, parent or sensor")
    senses = ("child_to_parent", "parent_to_child")
    if direction not in senses:
        raise fault(f"<measure_direction> is {shown(direction)}", node or place.node, " or ".join(senses))
    force, torque = (node.child(tag) if node else None for tag in ("force", "torque"))
    return ForceTorqueSpec(place.joint, frame, direction, _axes(reading, force), _axes(reading, torque))  # type: ignore[arg-type]


READERS: dict[str, tuple[tuple[str, ...], Callable[[Reading, Place], SensorSpec]]] = {
    "lidar": (("lidar", "ray"), _lidar),
    "imu": (("imu",), _imu),
    "contact": (("contact",), _contact),
    "encoder": (("encoder",), _encoder),
    "truth": ((), _truth),
    "sonar": (("sonar",), _sonar),
    "accelerometer": (("accelerometer",), _vector),
    "gyroscope": (("gyroscope",), _vector),
    "magnetometer": (("magnetometer",), _vector),
    "altimeter": (("altimeter",), _altimeter),
    "air_pressure": (("air_pressure",), _pressure),
    "navsat": (("navsat", "gps"), _satellite),
    "force_torque": (("force_torque",), _force_torque),
    **dict.fromkeys(CAMERA_KINDS, (("camera",), read_camera)),
}
"""By kind: names of the element inside, and its reader."""
