"""Dynamixel servos of protocol 1.0: their tables and packets, a port to them, joints that they move, and emulated ones.

The maker's library is imported when a port is opened, not before.
"""

from typing import TYPE_CHECKING

from roboyard.config.lazy import lazy_exports

if TYPE_CHECKING:
    from roboyard.hardware.dynamixel.checking import ServoDiagnosis, diagnose_servos, find_unknown_ids
    from roboyard.hardware.dynamixel.errors import PortLostError, ServoFaultError
    from roboyard.hardware.dynamixel.hardware import DynamixelHardware
    from roboyard.hardware.dynamixel.loop import ServoThread
    from roboyard.hardware.dynamixel.port import BusStatistics, ServoPort
    from roboyard.hardware.dynamixel.settings import FaultLimits, ServoConfig, ServoMap, ServosConfig, load_servos

__all__ = [
    "BusStatistics",
    "DynamixelHardware",
    "FaultLimits",
    "PortLostError",
    "ServoConfig",
    "ServoDiagnosis",
    "ServoFaultError",
    "ServoMap",
    "ServoPort",
    "ServoThread",
    "ServosConfig",
    "diagnose_servos",
    "find_unknown_ids",
    "load_servos",
]

__getattr__, __dir__ = lazy_exports(__name__, {
    "checking": ("ServoDiagnosis", "diagnose_servos", "find_unknown_ids"),
    "errors": ("PortLostError", "ServoFaultError"),
    "hardware": ("DynamixelHardware",),
    "loop": ("ServoThread",),
    "port": ("BusStatistics", "ServoPort"),
    "settings": ("ServoConfig", "ServoMap", "ServosConfig", "FaultLimits", "load_servos"),
})  # fmt: skip
