"""Controllers that a description's ros2_control or ros_control files configure, mapped onto our nodes."""

from roboyard.scenarios.plugins.controllers.mapping import map_controllers

__all__ = ["map_controllers"]
