"""What stands between a command and the drive: who may command, how fast it may change, and when it must stop.

And between an arm and people: how fast it may be where they are.

The nodes that connect these to topics are in ``roboyard.safety.nodes``.
"""

from typing import TYPE_CHECKING

from roboyard.config.lazy import lazy_exports

if TYPE_CHECKING:
    from roboyard.safety.arbitration import Arbiter, ArbitrationConfig, Decision, Source
    from roboyard.safety.braking import BrakingConfig
    from roboyard.safety.bumper import BumperConfig, BumperGuard, Bumping, TouchPoint
    from roboyard.safety.collision import CollisionMonitor, MonitorConfig, Verdict
    from roboyard.safety.person_guard import GuardConfig, Mode, Motion, PersonGuard
    from roboyard.safety.separation import SeparationRules, protective_distance, separation_pace
    from roboyard.safety.smoothing import SmootherConfig, VelocitySmoother
    from roboyard.safety.zones import Action, Zone

__all__ = [
    "Action",
    "Arbiter",
    "ArbitrationConfig",
    "BrakingConfig",
    "BumperConfig",
    "BumperGuard",
    "Bumping",
    "CollisionMonitor",
    "Decision",
    "GuardConfig",
    "Mode",
    "MonitorConfig",
    "Motion",
    "PersonGuard",
    "SeparationRules",
    "SmootherConfig",
    "Source",
    "TouchPoint",
    "VelocitySmoother",
    "Verdict",
    "Zone",
    "protective_distance",
    "separation_pace",
]

__getattr__, __dir__ = lazy_exports(__name__, {
    "arbitration": ("Arbiter", "ArbitrationConfig", "Decision", "Source"),
    "braking": ("BrakingConfig",),
    "bumper": ("BumperConfig", "BumperGuard", "Bumping", "TouchPoint"),
    "collision": ("CollisionMonitor", "MonitorConfig", "Verdict"),
    "person_guard": ("GuardConfig", "Mode", "Motion", "PersonGuard"),
    "separation": ("SeparationRules", "protective_distance", "separation_pace"),
    "smoothing": ("SmootherConfig", "VelocitySmoother"),
    "zones": ("Action", "Zone"),
})  # fmt: skip
