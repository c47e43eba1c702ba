"""Nodes of real hardware."""

from typing import TYPE_CHECKING

from roboyard.config.lazy import lazy_exports

if TYPE_CHECKING:
    from roboyard.hardware.nodes.servo_bus import ServoBusNode

__all__ = ["ServoBusNode"]

__getattr__, __dir__ = lazy_exports(__name__, {"servo_bus": ("ServoBusNode",)})
