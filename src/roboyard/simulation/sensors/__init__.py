"""Simulated sensors, one small file a kind; `registry` knows them all."""

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
