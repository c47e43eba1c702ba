"""Hardware interface: joint states and commands of simulated and real robots, Dynamixel servos, joysticks."""

from typing import TYPE_CHECKING

from roboyard.config.lazy import lazy_exports

if TYPE_CHECKING:
    from roboyard.hardware.interface import BaseMotion, Hardware, JointCommand, JointStates, VelocityBase

__all__ = ["BaseMotion", "Hardware", "JointCommand", "JointStates", "VelocityBase"]

__getattr__, __dir__ = lazy_exports(
    __name__,
    {
        "interface": ("BaseMotion", "Hardware", "JointCommand", "JointStates", "VelocityBase"),
    },
)
