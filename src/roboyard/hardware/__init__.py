"""The hardware interface: what control reads from and writes to joints and bases, simulated or real."""

from roboyard.hardware.base import Base, BaseKind
from roboyard.hardware.interface import Hardware, JointCommand, JointReadings

__all__ = ["Base", "BaseKind", "Hardware", "JointCommand", "JointReadings"]
