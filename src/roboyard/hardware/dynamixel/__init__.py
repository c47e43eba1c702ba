"""Driver of Dynamixel servos (protocol 1.0): control table, packets, serial port, `Hardware` interface, and an
emulator.

The library dynamixel-sdk is imported when a port is opened.
"""

from typing import TYPE_CHECKING

from roboyard.config.lazy import lazy_exports

if TYPE_CHECKING:
    from roboyard.hardware.dynamixel.config import FaultLimits, ServoConfig, ServoMap, ServosConfig, load_servos
    from roboyard.hardware.dynamixel.hardware import DynamixelHardware
    from roboyard.hardware.dynamixel.monitor import ServoDiagnosis, ServoFaultError, diagnose_servos, find_unknown_ids
    from roboyard.hardware.dynamixel.port import BusStatistics, PortLostError, ServoPort
    from roboyard.hardware.dynamixel.thread import ServoThread

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

__getattr__, __dir__ = lazy_exports(
    __name__,
    {
        "config": ("FaultLimits", "ServoConfig", "ServoMap", "ServosConfig", "load_servos"),
        "hardware": ("DynamixelHardware",),
        "monitor": ("ServoDiagnosis", "ServoFaultError", "diagnose_servos", "find_unknown_ids"),
        "port": ("BusStatistics", "PortLostError", "ServoPort"),
        "thread": ("ServoThread",),
    },
)
