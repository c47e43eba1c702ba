"""Simulated sensors, one small file a kind; `registry` knows them all."""

from typing import TYPE_CHECKING

from roboyard.config.lazy import lazy_exports

if TYPE_CHECKING:
    from roboyard.simulation.sensors.base import Host, SimulatedSensor
    from roboyard.simulation.sensors.contact import ContactReading
    from roboyard.simulation.sensors.encoder import EncoderReading
    from roboyard.simulation.sensors.imu import ImuReading
    from roboyard.simulation.sensors.lidar import LidarReading, beam_directions
    from roboyard.simulation.sensors.registry import make_sensor, sensor_kinds

__all__ = [
    "ContactReading",
    "EncoderReading",
    "Host",
    "ImuReading",
    "LidarReading",
    "SimulatedSensor",
    "beam_directions",
    "make_sensor",
    "sensor_kinds",
]

__getattr__, __dir__ = lazy_exports(__name__, {
    "base": ("Host", "SimulatedSensor"),
    "contact": ("ContactReading",),
    "encoder": ("EncoderReading",),
    "imu": ("ImuReading",),
    "lidar": ("LidarReading", "beam_directions"),
    "registry": ("make_sensor", "sensor_kinds"),
})  # fmt: skip
