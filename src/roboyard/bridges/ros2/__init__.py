"""ROS 2 over DDS, spoken without ROS; needs the extra ``ros2``."""

from typing import TYPE_CHECKING

from roboyard.config.lazy import lazy_exports

if TYPE_CHECKING:
    from roboyard.bridges.ros2.bridge import Ros2Bridge

__all__ = ["Ros2Bridge"]

__getattr__, __dir__ = lazy_exports(__name__, {"bridge": ("Ros2Bridge",)})
