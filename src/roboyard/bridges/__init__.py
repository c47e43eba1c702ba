"""A run as others see it: ROS 1, Foxglove, rosbridge, and ROS 2 (`bridges.ros2`, an extra)."""

from typing import TYPE_CHECKING

from roboyard.config.lazy import lazy_exports

if TYPE_CHECKING:
    from roboyard.bridges.bridge import Attached, Bridge, BridgeError
    from roboyard.bridges.descriptions import Descriptions, describe
    from roboyard.bridges.foxglove import FoxgloveBridge
    from roboyard.bridges.ros1 import Ros1Bridge
    from roboyard.bridges.rosbridge import RosbridgeBridge

__all__ = [
    "Attached", "Bridge", "BridgeError", "Descriptions", "FoxgloveBridge", "Ros1Bridge", "RosbridgeBridge", "describe",
]  # fmt: skip

__getattr__, __dir__ = lazy_exports(__name__, {
    "bridge": ("Attached", "Bridge", "BridgeError"),
    "descriptions": ("Descriptions", "describe"),
    "foxglove": ("FoxgloveBridge",),
    "ros1": ("Ros1Bridge",),
    "rosbridge": ("RosbridgeBridge",),
})  # fmt: skip
