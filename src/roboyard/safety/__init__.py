"""Safety layer between commands and actuators: arbitration, smoothing, collision monitoring and bumper guard.

`roboyard.safety.collaborative` keeps arms beside people safe.  The nodes that connect all this to topics are in
`roboyard.safety.nodes`.
"""

from typing import TYPE_CHECKING

from roboyard.config.lazy import lazy_exports

if TYPE_CHECKING:
    from roboyard.safety.arbitration import Arbiter, ArbitrationConfig, ArbitrationDecision, CommandSource
    from roboyard.safety.bumper import BumperConfig, BumperContact, BumperGuard, BumperState
    from roboyard.safety.collision_monitor import (
        BrakingConfig,
        CollisionMonitor,
        CollisionMonitorConfig,
        MonitorAction,
        MonitorDecision,
        SafetyZone,
        ZoneAction,
    )
    from roboyard.safety.velocity_smoother import SmootherConfig, VelocitySmoother

__all__ = [
    "Arbiter",
    "ArbitrationConfig",
    "ArbitrationDecision",
    "BrakingConfig",
    "BumperConfig",
    "BumperContact",
    "BumperGuard",
    "BumperState",
    "CollisionMonitor",
    "CollisionMonitorConfig",
    "CommandSource",
    "MonitorAction",
    "MonitorDecision",
    "SafetyZone",
    "SmootherConfig",
    "VelocitySmoother",
    "ZoneAction",
]

__getattr__, __dir__ = lazy_exports(
    __name__,
    {
        "arbitration": ("Arbiter", "ArbitrationConfig", "ArbitrationDecision", "CommandSource"),
        "bumper": ("BumperConfig", "BumperContact", "BumperGuard", "BumperState"),
        "collision_monitor": (
            "BrakingConfig",
            "CollisionMonitor",
            "CollisionMonitorConfig",
            "MonitorAction",
            "MonitorDecision",
            "SafetyZone",
            "ZoneAction",
        ),
        "velocity_smoother": ("SmootherConfig", "VelocitySmoother"),
    },
)
