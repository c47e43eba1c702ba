"""The hardware interface: what control reads from and writes to joints, simulated or real."""

from roboyard.hardware.interface import Hardware, JointCommand, JointReadings

__all__ = ["Hardware", "JointCommand", "JointReadings"]
