"""ROS 2 over DDS, spoken without ROS; needs the extra ``ros2``."""

from roboyard.bridges.ros2.bridge import Ros2Bridge

__all__ = ["Ros2Bridge"]
