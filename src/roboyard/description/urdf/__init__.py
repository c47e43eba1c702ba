"""URDF to `Model`: links and joints, ``<gazebo>`` blocks, ``<ros2_control>`` and transmissions."""

from typing import TYPE_CHECKING

from roboyard.config.lazy import lazy_exports

if TYPE_CHECKING:
    from roboyard.description.urdf.robot import read_robot

__all__ = ["read_robot"]

__getattr__, __dir__ = lazy_exports(__name__, {"robot": ("read_robot",)})
