"""A run as others see it: ROS 1 so far. Bridges listen; what comes in takes the run's one port for inputs."""

from roboyard.bridges.bridge import Attached, Bridge, BridgeError
from roboyard.bridges.ros1 import Ros1Bridge

__all__ = ["Attached", "Bridge", "BridgeError", "Ros1Bridge"]
