"""rosbridge: JSON over a WebSocket, as roslib speaks it."""

from roboyard.bridges.rosbridge.bridge import PORT, RosbridgeBridge

__all__ = ["PORT", "RosbridgeBridge"]
