"""Nodes that connect safety to topics."""

from typing import TYPE_CHECKING

from roboyard.config.lazy import lazy_exports

if TYPE_CHECKING:
    from roboyard.safety.nodes.arbiter import ArbiterNode
    from roboyard.safety.nodes.bumper import BumperGuardNode
    from roboyard.safety.nodes.collaborative_safety import CollaborativeSafetyNode
    from roboyard.safety.nodes.collision_monitor import CollisionMonitorNode
    from roboyard.safety.nodes.depth_people_tracker import DepthPeopleTrackerNode
    from roboyard.safety.nodes.hand_guiding import HandGuidingNode
    from roboyard.safety.nodes.people_tracker import PeopleTrackerNode
    from roboyard.safety.nodes.velocity_smoother import VelocitySmootherNode

__all__ = [
    "ArbiterNode",
    "BumperGuardNode",
    "CollaborativeSafetyNode",
    "CollisionMonitorNode",
    "DepthPeopleTrackerNode",
    "HandGuidingNode",
    "PeopleTrackerNode",
    "VelocitySmootherNode",
]

__getattr__, __dir__ = lazy_exports(__name__, {
    "arbiter": ("ArbiterNode",),
    "bumper": ("BumperGuardNode",),
    "collaborative_safety": ("CollaborativeSafetyNode",),
    "collision_monitor": ("CollisionMonitorNode",),
    "depth_people_tracker": ("DepthPeopleTrackerNode",),
    "hand_guiding": ("HandGuidingNode",),
    "people_tracker": ("PeopleTrackerNode",),
    "velocity_smoother": ("VelocitySmootherNode",),
})  # fmt: skip
