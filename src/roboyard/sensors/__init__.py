"""Simulated sensors: one class for each kind. `registry` finds the class of a kind, also of other packages."""

from typing import TYPE_CHECKING

from roboyard.config.lazy import lazy_exports

if TYPE_CHECKING:
    from roboyard.sensors.imu import ImuReading
    from roboyard.sensors.lidar import LidarReading, beam_directions
    from roboyard.sensors.proprioception import ContactReading, EncoderReading
    from roboyard.sensors.registry import make_sensor, sensor_kinds
    from roboyard.sensors.sensor import SensorContext, SimulatedSensor

__all__ = [
    "ContactReading",
    "EncoderReading",
    "ImuReading",
    "LidarReading",
    "SensorContext",
    "SimulatedSensor",
    "beam_directions",
    "make_sensor",
    "sensor_kinds",
]

__getattr__, __dir__ = lazy_exports(__name__, {
    "imu": ("ImuReading",),
    "lidar": ("LidarReading", "beam_directions"),
    "proprioception": ("ContactReading", "EncoderReading"),
    "registry": ("make_sensor", "sensor_kinds"),
    "sensor": ("SensorContext", "SimulatedSensor"),
})  # fmt: skip
