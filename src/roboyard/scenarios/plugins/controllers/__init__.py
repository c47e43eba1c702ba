"""Controllers that a description's ros2_control or ros_control files configure, mapped onto our nodes."""

from typing import TYPE_CHECKING

from roboyard.config.lazy import lazy_exports

if TYPE_CHECKING:
    from roboyard.scenarios.plugins.controllers.mapping import map_controllers

__all__ = ["map_controllers"]

__getattr__, __dir__ = lazy_exports(__name__, {"mapping": ("map_controllers",)})
