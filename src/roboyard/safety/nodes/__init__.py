"""Nodes that connect safety to topics."""

from roboyard.safety.nodes.arbiter import ArbiterNode
from roboyard.safety.nodes.bumper import BumperGuardNode
from roboyard.safety.nodes.collision_monitor import CollisionMonitorNode
from roboyard.safety.nodes.depth_people_tracker import DepthPeopleTrackerNode
from roboyard.safety.nodes.hand_guiding import HandGuidingNode
from roboyard.safety.nodes.people_tracker import PeopleTrackerNode
from roboyard.safety.nodes.person_guard import PersonGuardNode
from roboyard.safety.nodes.velocity_smoother import VelocitySmootherNode

__all__ = [
    "ArbiterNode",
    "BumperGuardNode",
    "CollisionMonitorNode",
    "DepthPeopleTrackerNode",
    "HandGuidingNode",
    "PeopleTrackerNode",
    "PersonGuardNode",
    "VelocitySmootherNode",
]
