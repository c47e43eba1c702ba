"""Nodes of real hardware."""

from roboyard.hardware.nodes.servo_bus import ServoBusNode

__all__ = ["ServoBusNode"]
