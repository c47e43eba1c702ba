"""Tasks of the navigator, which give a velocity command in each control period, and the costmaps they use."""

from typing import TYPE_CHECKING

from roboyard.config.lazy import lazy_exports

if TYPE_CHECKING:
    from roboyard.navigation.navigator.behavior import (
        BEHAVIORS,
        Behavior,
        BehaviorConfig,
        BehaviorContext,
        BehaviorEntry,
        MobileBase,
        MotionBehaviorConfig,
    )
    from roboyard.navigation.navigator.behaviors import (
        ApproachConfig,
        ApproachPoseTask,
        ClearCostmapTask,
        DriveOnHeadingTask,
        SpinTask,
        WaitConfig,
        WaitTask,
    )
    from roboyard.navigation.navigator.config import (
        RECOVERY_POLICIES,
        NavigatorConfig,
        PathSmootherConfig,
        PluginConfig,
        RecoveryConfig,
    )
    from roboyard.navigation.navigator.costmaps import NavigationCostmaps
    from roboyard.navigation.navigator.escape import EscapeTask
    from roboyard.navigation.navigator.motion_limits import VelocityLimits, resolve_motion_limits
    from roboyard.navigation.navigator.navigate import (
        FollowPathTask,
        NavigateTask,
        NavigatorContext,
        is_path_blocked,
        path_cost,
        plan_through_poses,
    )
    from roboyard.navigation.navigator.task import (
        NavigationState,
        NavigationTask,
        ProgressChecker,
        ProgressCheckerConfig,
    )
    from roboyard.navigation.navigator.waypoints import WaypointTask

__all__ = [
    "BEHAVIORS",
    "RECOVERY_POLICIES",
    "ApproachConfig",
    "ApproachPoseTask",
    "Behavior",
    "BehaviorConfig",
    "BehaviorContext",
    "BehaviorEntry",
    "ClearCostmapTask",
    "DriveOnHeadingTask",
    "EscapeTask",
    "FollowPathTask",
    "MobileBase",
    "MotionBehaviorConfig",
    "NavigateTask",
    "NavigationCostmaps",
    "NavigationState",
    "NavigationTask",
    "NavigatorConfig",
    "NavigatorContext",
    "PathSmootherConfig",
    "PluginConfig",
    "ProgressChecker",
    "ProgressCheckerConfig",
    "RecoveryConfig",
    "SpinTask",
    "VelocityLimits",
    "WaitConfig",
    "WaitTask",
    "WaypointTask",
    "is_path_blocked",
    "path_cost",
    "plan_through_poses",
    "resolve_motion_limits",
]

__getattr__, __dir__ = lazy_exports(__name__, {
    "behavior": ("BEHAVIORS", "Behavior", "BehaviorConfig", "BehaviorContext", "BehaviorEntry", "MobileBase",
        "MotionBehaviorConfig"),
    "behaviors": ("ApproachConfig", "ApproachPoseTask", "ClearCostmapTask", "DriveOnHeadingTask", "SpinTask",
        "WaitConfig", "WaitTask"),
    "config": ("RECOVERY_POLICIES", "NavigatorConfig", "PathSmootherConfig", "PluginConfig", "RecoveryConfig"),
    "costmaps": ("NavigationCostmaps",),
    "escape": ("EscapeTask",),
    "motion_limits": ("VelocityLimits", "resolve_motion_limits"),
    "navigate": ("FollowPathTask", "NavigateTask", "NavigatorContext", "is_path_blocked", "path_cost",
        "plan_through_poses"),
    "task": ("NavigationState", "NavigationTask", "ProgressChecker", "ProgressCheckerConfig"),
    "waypoints": ("WaypointTask",),
})  # fmt: skip
