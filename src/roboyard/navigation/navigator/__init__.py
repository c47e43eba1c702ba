"""Tasks of the navigator, which give a velocity command in each control period, and the costmaps they use."""

from typing import TYPE_CHECKING

from roboyard.config.lazy import lazy_exports

if TYPE_CHECKING:
    from roboyard.navigation.navigator.behaviors import (
        ApproachPoseTask,
        DriveOnHeadingTask,
        MobileBase,
        SpinTask,
        WaitTask,
    )
    from roboyard.navigation.navigator.config import (
        RECOVERY_POLICIES,
        RECOVERY_STEPS,
        ApproachConfig,
        NavigatorConfig,
        PathSmootherConfig,
        PluginConfig,
        ProgressCheckerConfig,
        RecoveryConfig,
        VelocityLimits,
    )
    from roboyard.navigation.navigator.costmaps import NavigationCostmaps
    from roboyard.navigation.navigator.escape import EscapeTask
    from roboyard.navigation.navigator.navigate import (
        FollowPathTask,
        NavigateTask,
        NavigatorContext,
        is_path_blocked,
        path_cost,
        plan_through_poses,
    )
    from roboyard.navigation.navigator.task import NavigationState, NavigationTask, ProgressChecker
    from roboyard.navigation.navigator.waypoints import WaypointTask

__all__ = [
    "RECOVERY_POLICIES",
    "RECOVERY_STEPS",
    "ApproachConfig",
    "ApproachPoseTask",
    "DriveOnHeadingTask",
    "EscapeTask",
    "FollowPathTask",
    "MobileBase",
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
    "WaitTask",
    "WaypointTask",
    "is_path_blocked",
    "path_cost",
    "plan_through_poses",
]

__getattr__, __dir__ = lazy_exports(__name__, {
        "behaviors": ("ApproachPoseTask", "DriveOnHeadingTask", "MobileBase", "SpinTask", "WaitTask"),
        "config": ("RECOVERY_POLICIES", "RECOVERY_STEPS", "ApproachConfig",
        "NavigatorConfig", "PathSmootherConfig", "PluginConfig",
        "ProgressCheckerConfig", "RecoveryConfig",
        "VelocityLimits", ),
        "costmaps": ("NavigationCostmaps",),
        "escape": ("EscapeTask",),
        "navigate": ("FollowPathTask", "NavigateTask", "NavigatorContext", "is_path_blocked", "path_cost",
        "plan_through_poses"),
        "task": ("NavigationState", "NavigationTask", "ProgressChecker"),
        "waypoints": ("WaypointTask",),
})  # fmt: skip
