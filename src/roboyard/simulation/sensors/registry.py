"""Sensor kinds by name: the built-in ones and those that other packages bring.

Another package adds a kind with an entry point in the group ``roboyard.sensors`` whose name is the kind and whose
object is a subclass of `SimulatedSensor`.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from roboyard.config.registry import Registry
from roboyard.description.sensors import Sensor
from roboyard.simulation.sensors.base import Host, SimulatedSensor
from roboyard.simulation.sensors.cameras.camera import Camera, DepthCamera, RgbdCamera, StereoCamera
from roboyard.simulation.sensors.contact import Contact
from roboyard.simulation.sensors.encoder import Encoder
from roboyard.simulation.sensors.force_torque import ForceTorque
from roboyard.simulation.sensors.height import Altimeter, Barometer
from roboyard.simulation.sensors.imu import Imu
from roboyard.simulation.sensors.lidar import Lidar
from roboyard.simulation.sensors.satellite import Satellite
from roboyard.simulation.sensors.sonar import Sonar
from roboyard.simulation.sensors.truth import TruthSensor
from roboyard.simulation.sensors.vectors import Accelerometer, Gyroscope, Magnetometer

_BUILT_IN = (
    Lidar, Sonar, Imu, Accelerometer, Gyroscope, Magnetometer, Altimeter, Barometer, Satellite, Encoder, ForceTorque,
    Contact, TruthSensor, Camera, DepthCamera, RgbdCamera, StereoCamera,
)  # fmt: skip
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
    host: Host, robot: str, sensor: Sensor, kinds: Mapping[str, type[SimulatedSensor[Any]]] | None = None
) -> SimulatedSensor[Any] | None:
    """The simulated sensor for a description, unbound; None for a kind nobody simulates.

    Args:
        host: The simulation.
        robot: Name of the model it sits on.
        sensor: Its description.
        kinds: Further kinds, or others in place of ours.
    """
    kind = (kinds or {}).get(sensor.kind)
    if kind is None and sensor.kind in SENSORS:
        kind = SENSORS[sensor.kind]
    return kind(host, robot, sensor) if kind is not None else None
