"""Dynamixel servos of protocol 1.0: their tables and packets, a port to them, joints that they move, and emulated ones.

The maker's library is imported when a port is opened, not before.
"""

from typing import TYPE_CHECKING

from roboyard.config.lazy import lazy_exports

if TYPE_CHECKING:
    from roboyard.hardware.dynamixel.checking import ServoReport, check_servos, strangers
    from roboyard.hardware.dynamixel.errors import BusGoneError, ServoFaultError
    from roboyard.hardware.dynamixel.hardware import DynamixelHardware
    from roboyard.hardware.dynamixel.loop import ServoLoop
    from roboyard.hardware.dynamixel.port import BusStatistics, ServoPort
    from roboyard.hardware.dynamixel.settings import ServoEntry, ServoMap, ServosFile, Watch, load_servos

__all__ = [
    "BusGoneError",
    "BusStatistics",
    "DynamixelHardware",
    "ServoEntry",
    "ServoFaultError",
    "ServoLoop",
    "ServoMap",
    "ServoPort",
    "ServoReport",
    "ServosFile",
    "Watch",
    "check_servos",
    "load_servos",
    "strangers",
]

__getattr__, __dir__ = lazy_exports(__name__, {
    "checking": ("ServoReport", "check_servos", "strangers"),
    "errors": ("BusGoneError", "ServoFaultError"),
    "hardware": ("DynamixelHardware",),
    "loop": ("ServoLoop",),
    "port": ("BusStatistics", "ServoPort"),
    "settings": ("ServoEntry", "ServoMap", "ServosFile", "Watch", "load_servos"),
})  # fmt: skip
