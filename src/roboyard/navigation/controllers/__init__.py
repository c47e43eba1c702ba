"""Local controllers: from a path and what is about the robot to the next command."""

from typing import TYPE_CHECKING

from roboyard.config.lazy import lazy_exports

if TYPE_CHECKING:
    from roboyard.navigation.controllers.arrival import Arrival, Tolerance
    from roboyard.navigation.controllers.base import Controller, MotionLimits
    from roboyard.navigation.controllers.choice import controller_named, controller_names
    from roboyard.navigation.controllers.conformance import check_controller
    from roboyard.navigation.controllers.dynamic_window import DynamicWindow, WindowConfig
    from roboyard.navigation.controllers.following import Leg, PathFollower
    from roboyard.navigation.controllers.mppi import Critics, Mppi, MppiConfig
    from roboyard.navigation.controllers.pursuit import PursuitConfig, RegulatedPursuit
    from roboyard.navigation.controllers.surroundings import Surroundings

__all__ = [
    "Arrival",
    "Controller",
    "Critics",
    "DynamicWindow",
    "Leg",
    "MotionLimits",
    "Mppi",
    "MppiConfig",
    "PathFollower",
    "PursuitConfig",
    "RegulatedPursuit",
    "Surroundings",
    "Tolerance",
    "WindowConfig",
    "check_controller",
    "controller_named",
    "controller_names",
]

__getattr__, __dir__ = lazy_exports(__name__, {
    "arrival": ("Arrival", "Tolerance"),
    "base": ("Controller", "MotionLimits"),
    "choice": ("controller_named", "controller_names"),
    "conformance": ("check_controller",),
    "dynamic_window": ("DynamicWindow", "WindowConfig"),
    "following": ("Leg", "PathFollower"),
    "mppi": ("Critics", "Mppi", "MppiConfig"),
    "pursuit": ("PursuitConfig", "RegulatedPursuit"),
    "surroundings": ("Surroundings",),
})  # fmt: skip
