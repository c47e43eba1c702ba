"""rosbridge: JSON over a WebSocket, as roslib speaks it."""

from typing import TYPE_CHECKING

from roboyard.config.lazy import lazy_exports

if TYPE_CHECKING:
    from roboyard.bridges.rosbridge.bridge import PORT, RosbridgeBridge

__all__ = ["PORT", "RosbridgeBridge"]

__getattr__, __dir__ = lazy_exports(__name__, {"bridge": ("PORT", "RosbridgeBridge")})
