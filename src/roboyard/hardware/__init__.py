"""The hardware interface: what control reads from and writes to joints and bases, simulated or real."""

from typing import TYPE_CHECKING

from roboyard.config.lazy import lazy_exports

if TYPE_CHECKING:
    from roboyard.hardware.base import Base, BaseKind
    from roboyard.hardware.interface import Hardware, JointCommand, JointReadings

__all__ = ["Base", "BaseKind", "Hardware", "JointCommand", "JointReadings"]

__getattr__, __dir__ = lazy_exports(__name__, {
    "base": ("Base", "BaseKind"),
    "interface": ("Hardware", "JointCommand", "JointReadings"),
})  # fmt: skip
