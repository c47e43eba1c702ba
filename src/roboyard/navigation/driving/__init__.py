"""Driving a robot to where it shall be: tasks that give a command at each step."""

from typing import TYPE_CHECKING

from roboyard.config.lazy import lazy_exports

if TYPE_CHECKING:
    from roboyard.navigation.driving.approach import Approach
    from roboyard.navigation.driving.behaviors import Body, Spin, Straight, Wait
    from roboyard.navigation.driving.checkers import Patience, Progress
    from roboyard.navigation.driving.config import (
        RECOVERIES,
        RECOVERY_POLICIES,
        ApproachSettings,
        NavigatorSettings,
        Pace,
        Part,
        RecoverySettings,
        Smoothing,
    )
    from roboyard.navigation.driving.costmap_settings import (
        CostmapSettings,
        EchoSource,
        LayerSettings,
        ObstacleSettings,
        PointSource,
        RangeSettings,
        VoxelSettings,
        ZoneSettings,
    )
    from roboyard.navigation.driving.following import FollowPath
    from roboyard.navigation.driving.navigate import Driver, Navigate
    from roboyard.navigation.driving.parts import make_controller, make_planner
    from roboyard.navigation.driving.reach import nearest_free, nearest_reachable
    from roboyard.navigation.driving.room import MakeRoom
    from roboyard.navigation.driving.situation import Situation, Task
    from roboyard.navigation.driving.surroundings import Surroundings
    from roboyard.navigation.driving.visiting import VisitWaypoints
    from roboyard.navigation.driving.ways import cost_of, is_blocked, plan_through

__all__ = [
    "RECOVERIES",
    "RECOVERY_POLICIES",
    "Approach",
    "ApproachSettings",
    "Body",
    "CostmapSettings",
    "Driver",
    "EchoSource",
    "FollowPath",
    "LayerSettings",
    "MakeRoom",
    "Navigate",
    "NavigatorSettings",
    "ObstacleSettings",
    "Pace",
    "Part",
    "Patience",
    "PointSource",
    "Progress",
    "RangeSettings",
    "RecoverySettings",
    "Situation",
    "Smoothing",
    "Spin",
    "Straight",
    "Surroundings",
    "Task",
    "VisitWaypoints",
    "VoxelSettings",
    "Wait",
    "ZoneSettings",
    "cost_of",
    "is_blocked",
    "make_controller",
    "make_planner",
    "nearest_free",
    "nearest_reachable",
    "plan_through",
]

__getattr__, __dir__ = lazy_exports(__name__, {
    "approach": ("Approach",),
    "behaviors": ("Body", "Spin", "Straight", "Wait"),
    "checkers": ("Patience", "Progress"),
    "config": ("RECOVERIES", "RECOVERY_POLICIES", "ApproachSettings", "NavigatorSettings", "Pace", "Part",
        "RecoverySettings", "Smoothing"),
    "costmap_settings": ("CostmapSettings", "EchoSource", "LayerSettings", "ObstacleSettings", "PointSource",
        "RangeSettings", "VoxelSettings", "ZoneSettings"),
    "following": ("FollowPath",),
    "navigate": ("Driver", "Navigate"),
    "parts": ("make_controller", "make_planner"),
    "reach": ("nearest_free", "nearest_reachable"),
    "room": ("MakeRoom",),
    "situation": ("Situation", "Task"),
    "surroundings": ("Surroundings",),
    "visiting": ("VisitWaypoints",),
    "ways": ("cost_of", "is_blocked", "plan_through"),
})  # fmt: skip
