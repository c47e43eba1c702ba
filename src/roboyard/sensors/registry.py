"""Sensor classes by kind: the built-in ones and those of other packages.

Another package adds a kind with an entry point in the group ``roboyard.sensors``: its name is the kind, its object a
subclass of `SimulatedSensor`.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from roboyard.config.registry import Registry
from roboyard.description.sensors import Sensor
from roboyard.sensors.altitude import Altimeter, Barometer
from roboyard.sensors.cameras.camera import CameraSensor, DepthCamera, RgbdCamera, StereoCamera
from roboyard.sensors.gnss import GnssReceiver
from roboyard.sensors.imu import Accelerometer, Gyroscope, ImuSensor, Magnetometer
from roboyard.sensors.lidar import Lidar
from roboyard.sensors.proprioception import ContactSensor, ForceTorqueSensor, GroundTruthSensor, JointEncoder
from roboyard.sensors.sensor import SensorContext, SimulatedSensor
from roboyard.sensors.sonar import Sonar

_BUILT_IN = (
    Lidar,
    Sonar,
    ImuSensor,
    Accelerometer,
    Gyroscope,
    Magnetometer,
    Altimeter,
    Barometer,
    GnssReceiver,
    JointEncoder,
    ForceTorqueSensor,
    ContactSensor,
    GroundTruthSensor,
    CameraSensor,
    DepthCamera,
    RgbdCamera,
    StereoCamera,
)
SENSORS: Registry[type[SimulatedSensor[Any]]] = Registry(
    "sensor",
    group="roboyard.sensors",
    base=lambda: SimulatedSensor,
    built_in={kind.kind: kind for kind in _BUILT_IN},
)


def sensor_kinds() -> tuple[str, ...]:
    """Return all kinds that can be simulated."""
    return SENSORS.names()


def make_sensor(
    context: SensorContext, robot: str, sensor: Sensor, kinds: Mapping[str, type[SimulatedSensor[Any]]] | None = None
) -> SimulatedSensor[Any] | None:
    """The simulated sensor for a description, unbound; None for an unknown kind.

    Args:
        context: What the sensor may use of the simulation.
        robot: Name of the model it sits on.
        sensor: Its description.
        kinds: Further kinds, or others in place of ours.
    """
    kind = (kinds or {}).get(sensor.kind)
    if kind is None and sensor.kind in SENSORS:
        kind = SENSORS[sensor.kind]
    return kind(context, robot, sensor) if kind is not None else None
