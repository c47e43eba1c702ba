"""Readings of simulated sensors as ROS messages."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from roboyard.description.sensors import ForceTorqueSpec, ImuSpec, LidarSpec, Noise, SonarSpec, ThreeAxisSpec
from roboyard.messages import msg
from roboyard.messages.convert import pose_stamped_to_msg, pose_to_msg
from roboyard.messages.time import time_to_msg
from roboyard.simulation.sensors import SimulatedSensor, beam_directions
from roboyard.simulation.touch import Touch
from roboyard.simulation.truth import Truth

WORLD = "world"
Converter = Callable[[Any], Any]


def converter(sensor: SimulatedSensor[Any], frame: str) -> tuple[type, Converter] | None:
    """Message class and function from a sensor's reading to a message.

    Args:
        sensor: The sensor.
        frame: Frame id for its messages.

    Returns:
        None for kinds that are not published: encoders reach the bus through the hardware and the joint state node.
        A kind of another package has ``message_type`` and ``to_message(reading, frame)``.
    """
    spec = sensor.sensor.spec
    if isinstance(spec, LidarSpec):
        if spec.vertical_samples > 1:
            return msg.PointCloud2, _cloud(spec, frame)
        return msg.LaserScan, _scan(spec, frame, sensor.period_ns * 1e-9)
    if isinstance(spec, ImuSpec):
        return msg.Imu, _imu(spec, frame)
    if isinstance(spec, SonarSpec):
        return msg.Range, _range(spec, frame)
    if isinstance(spec, ThreeAxisSpec):
        return (msg.MagneticField if sensor.sensor.kind == "magnetometer" else msg.Imu), _axes(sensor, spec, frame)
    if isinstance(spec, ForceTorqueSpec):
        return msg.WrenchStamped, _wrench(spec, frame)
    made = _KINDS.get(sensor.sensor.kind)
    if made is not None:
        return made[0], made[1](frame)
    own = getattr(sensor, "to_message", None)  # a kind that another package brings says itself what it publishes
    return None if own is None else (getattr(sensor, "message_type", object), lambda reading: own(reading, frame))


def _header(time_ns: int, frame: str) -> Any:
    return msg.Header(stamp=time_to_msg(time_ns), frame_id=frame)


def _scan(spec: LidarSpec, frame: str, period: float) -> Converter:
    fixed: dict[str, Any] = {
        "angle_min": spec.angle_min,
        "angle_max": spec.angle_max,
        "angle_increment": (spec.angle_max - spec.angle_min) / max(spec.samples - 1, 1),
        "scan_time": period,
        "range_min": spec.range_min,
        "range_max": spec.range_max,
    }

    def convert(reading: Any) -> Any:
        return msg.LaserScan(
            header=_header(reading.time_ns, frame), ranges=reading.ranges[0].astype(np.float32), **fixed
        )

    return convert


def _cloud(spec: LidarSpec, frame: str) -> Converter:
    beams = beam_directions(spec)
    fields = [msg.PointField(name=name, offset=4 * i, datatype=7, count=1) for i, name in enumerate("xyz")]

    def convert(reading: Any) -> Any:
        ranges = reading.ranges.ravel()
        # Beams without a return are points at "not a number", so that the cloud keeps its rows and columns.
        points = (beams * np.where(np.isfinite(ranges), ranges, np.nan)[:, None]).astype(np.float32)
        return msg.PointCloud2(
            header=_header(reading.time_ns, frame),
            height=spec.vertical_samples,
            width=spec.samples,
            fields=fields,
            is_bigendian=False,
            point_step=12,
            row_step=12 * spec.samples,
            data=points.view(np.uint8).ravel(),
            is_dense=False,
        )

    return convert


def _imu(spec: ImuSpec, frame: str) -> Converter:
    unknown = np.zeros(9)
    unknown[0] = -1.0  # "no such measurement", says sensor_msgs/Imu
    fixed: dict[str, Any] = {
        "orientation_covariance": np.zeros(9) if spec.orientation else unknown,
        "angular_velocity_covariance": _covariance(spec.angular_velocity),
        "linear_acceleration_covariance": _covariance(spec.linear_acceleration),
    }

    def convert(reading: Any) -> Any:
        w, x, y, z = reading.orientation.tolist() if reading.orientation is not None else (1.0, 0.0, 0.0, 0.0)
        return msg.Imu(
            header=_header(reading.time_ns, frame),
            orientation=msg.Quaternion(x=x, y=y, z=z, w=w),
            angular_velocity=_vector(reading.angular_velocity),
            linear_acceleration=_vector(reading.linear_acceleration),
            **fixed,
        )

    return convert


def _covariance(channels: tuple[Noise, Noise, Noise]) -> NDArray[np.float64]:
    return np.diag([channel.stddev**2 for channel in channels]).ravel()


def _vector(values: tuple[float, float, float] | NDArray[np.float64]) -> Any:
    x, y, z = values if isinstance(values, tuple) else values.tolist()
    return msg.Vector3(x, y, z)


def _range(spec: SonarSpec, frame: str) -> Converter:
    fixed: dict[str, Any] = {
        "radiation_type": msg.Range.ULTRASOUND,
        "field_of_view": 2.0 * spec.half_angle,
        "min_range": spec.range_min,
        "max_range": spec.range_max,
        "variance": spec.noise.stddev**2,
    }

    def convert(reading: Any) -> Any:
        return msg.Range(header=_header(reading.time_ns, frame), range=reading.range, **fixed)

    return convert


def _axes(sensor: SimulatedSensor[Any], spec: ThreeAxisSpec, frame: str) -> Converter:
    """A magnetometer's message; accelerometer and gyroscope as an Imu that knows nothing else."""
    known, unknown = _covariance(spec.axes), np.zeros(9)
    unknown[0] = -1.0
    kind = sensor.sensor.kind
    covariances: dict[str, Any] = {
        "orientation_covariance": unknown,
        "angular_velocity_covariance": known if kind == "gyroscope" else unknown,
        "linear_acceleration_covariance": known if kind == "accelerometer" else unknown,
    }

    def convert(reading: Any) -> Any:
        header, vector = _header(reading.time_ns, frame), _vector(reading.vector)
        if kind == "magnetometer":
            return msg.MagneticField(header=header, magnetic_field=vector, magnetic_field_covariance=known)
        if kind == "gyroscope":
            return msg.Imu(header=header, angular_velocity=vector, **covariances)
        return msg.Imu(header=header, linear_acceleration=vector, **covariances)

    return convert


def _wrench(spec: ForceTorqueSpec, frame: str) -> Converter:
    def convert(reading: Any) -> Any:
        wrench = msg.Wrench(force=_vector(reading.force), torque=_vector(reading.torque))
        return msg.WrenchStamped(header=_header(reading.time_ns, frame), wrench=wrench)

    return convert


def _altimeter(frame: str) -> Converter:
    return lambda reading: msg.Altimeter(
        header=_header(reading.time_ns, frame),
        vertical_position=reading.height,
        vertical_velocity=reading.climb,
        vertical_reference=reading.reference,
    )


def _pressure(frame: str) -> Converter:
    return lambda reading: msg.FluidPressure(
        header=_header(reading.time_ns, frame), fluid_pressure=reading.pressure, variance=reading.variance
    )


def _satellite(frame: str) -> Converter:
    def convert(reading: Any) -> Any:
        status = msg.NavSatStatus(
            status=msg.NavSatStatus.STATUS_FIX if reading.fix else msg.NavSatStatus.STATUS_NO_FIX,
            service=msg.NavSatStatus.SERVICE_GPS,
        )
        return msg.NavSatFix(
            header=_header(reading.time_ns, frame),
            status=status,
            latitude=math.degrees(reading.latitude),
            longitude=math.degrees(reading.longitude),
            altitude=reading.altitude,
            position_covariance=np.diag(reading.variance).ravel(),
            position_covariance_type=msg.NavSatFix.COVARIANCE_TYPE_DIAGONAL_KNOWN,
        )

    return convert


_KINDS: dict[str, tuple[type, Callable[[str], Converter]]] = {
    "contact": (
        msg.ContactsState,
        lambda frame: lambda reading: contacts_state(reading.touches, reading.time_ns, frame=frame),
    ),
    "ground_truth": (msg.Odometry, lambda frame: lambda truth: odometry(truth, frame)),
    "altimeter": (msg.Altimeter, _altimeter),
    "air_pressure": (msg.FluidPressure, _pressure),
    "navsat": (msg.NavSatFix, _satellite),
}


def contacts_state(
    touches: tuple[Touch, ...], time_ns: int, brief: tuple[tuple[str, str], ...] = (), *, frame: str = WORLD
) -> Any:
    """gazebo_msgs/ContactsState of touches: one state for each pair of shapes.

    Args:
        touches: Contact points of this instant.
        time_ns: When.
        brief: Pairs of shapes that touched since the last message and came apart again; they carry no points.
        frame: In which the touches are.
    """
    pairs: dict[tuple[str, str], list[Touch]] = {}
    for touch in touches:
        pairs.setdefault((touch.own, touch.against), []).append(touch)
    states = [_contact_state(*pair, met) for pair, met in pairs.items()]
    states += [
        msg.ContactState(collision1_name=own, collision2_name=against)
        for own, against in brief
        if (own, against) not in pairs
    ]
    return msg.ContactsState(header=_header(time_ns, frame), states=states)


def _contact_state(own: str, against: str, touches: list[Touch]) -> Any:
    """gazebo_msgs/ContactState of the contact points of two shapes."""
    vector = msg.Vector3
    x = y = z = 0.0
    for touch in touches:
        fx, fy, fz = touch.force
        x, y, z = x + fx, y + fy, z + fz
    return msg.ContactState(
        collision1_name=own,
        collision2_name=against,
        wrenches=[msg.Wrench(vector(*touch.force)) for touch in touches],
        total_wrench=msg.Wrench(vector(x, y, z)),
        contact_positions=[vector(*touch.position) for touch in touches],
        contact_normals=[vector(*touch.normal) for touch in touches],
        depths=np.array([touch.depth for touch in touches]),
    )


def odometry(truth: Truth, child: str) -> Any:
    """nav_msgs/Odometry: pose in the world, twist in the body's frame."""
    twist = msg.Twist(_vector(truth.linear_velocity), _vector(truth.angular_velocity))
    return msg.Odometry(
        header=_header(truth.time_ns, WORLD),
        child_frame_id=child,
        pose=msg.PoseWithCovariance(pose_to_msg(truth.T_world_base)),
        twist=msg.TwistWithCovariance(twist),
    )


def true_pose(truth: Truth) -> Any:
    """geometry_msgs/PoseStamped in the world."""
    return pose_stamped_to_msg(truth.T_world_base, WORLD, truth.time_ns)
