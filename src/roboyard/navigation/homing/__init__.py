"""Autonomous return after the loss of the operator's link: link monitor, breadcrumb trail, homing orders and their
execution by goals of the navigator.
"""

from typing import TYPE_CHECKING

from roboyard.config.lazy import lazy_exports

if TYPE_CHECKING:
    from roboyard.navigation.homing.goal_controller import (
        CancelGoalCommand,
        CancelGoalsBeforeCommand,
        GoalController,
        GoalControllerConfig,
        GoalKind,
        HomingOrder,
        OrderOutcome,
        OrderReport,
        PublishReportCommand,
        SendGoalCommand,
    )
    from roboyard.navigation.homing.homing_manager import (
        BreadcrumbTrail,
        ConfiguredHomingPolicy,
        HomeMode,
        HomingConfig,
        HomingManager,
        HomingPhase,
        HomingPolicy,
        HomingTarget,
        LinkLossAction,
        SkippedPoint,
    )
    from roboyard.navigation.homing.link_monitor import LinkConfig, LinkMonitor, LinkState

__all__ = [
    "BreadcrumbTrail",
    "CancelGoalCommand",
    "CancelGoalsBeforeCommand",
    "ConfiguredHomingPolicy",
    "GoalController",
    "GoalControllerConfig",
    "GoalKind",
    "HomeMode",
    "HomingConfig",
    "HomingManager",
    "HomingOrder",
    "HomingPhase",
    "HomingPolicy",
    "HomingTarget",
    "LinkConfig",
    "LinkLossAction",
    "LinkMonitor",
    "LinkState",
    "OrderOutcome",
    "OrderReport",
    "PublishReportCommand",
    "SendGoalCommand",
    "SkippedPoint",
]

__getattr__, __dir__ = lazy_exports(__name__, {
        "goal_controller": ("CancelGoalCommand", "CancelGoalsBeforeCommand", "GoalController", "GoalControllerConfig",
        "GoalKind", "HomingOrder", "OrderOutcome", "OrderReport", "PublishReportCommand", "SendGoalCommand"),
        "homing_manager": ("BreadcrumbTrail", "ConfiguredHomingPolicy", "HomeMode", "HomingConfig", "HomingManager",
        "HomingPhase", "HomingPolicy", "HomingTarget", "LinkLossAction", "SkippedPoint"),
        "link_monitor": ("LinkConfig", "LinkMonitor", "LinkState"),
})  # fmt: skip
