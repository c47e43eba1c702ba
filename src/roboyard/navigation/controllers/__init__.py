"""Local controllers: from a path and what is about the robot to the next command."""

from roboyard.navigation.controllers.base import Controller, MotionLimits
from roboyard.navigation.controllers.dynamic_window import DynamicWindow, WindowConfig
from roboyard.navigation.controllers.mppi import Critics, Mppi, MppiConfig

__all__ = ["Controller", "Critics", "DynamicWindow", "MotionLimits", "Mppi", "MppiConfig", "WindowConfig"]
