"""URDF to `Model`: links and joints, ``<gazebo>`` blocks, ``<ros2_control>`` and transmissions."""

from roboyard.description.urdf.robot import read_robot

__all__ = ["read_robot"]
