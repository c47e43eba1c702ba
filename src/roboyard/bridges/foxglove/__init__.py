"""Foxglove's WebSocket protocol."""

from roboyard.bridges.foxglove.bridge import PORT, FoxgloveBridge

__all__ = ["PORT", "FoxgloveBridge"]
