"""Coming home when the link to the operator is lost: what was heard, the way driven, where to go next, and one goal."""

from typing import TYPE_CHECKING

from roboyard.config.lazy import lazy_exports

if TYPE_CHECKING:
    from roboyard.navigation.homing.goals import (
        Cancel,
        CancelBefore,
        Goal,
        GoalConfig,
        GoalController,
        Outcome,
        Report,
        Send,
        Tell,
    )
    from roboyard.navigation.homing.link import LinkConfig, LinkState, LinkWatch
    from roboyard.navigation.homing.nearest import nearest_reachable
    from roboyard.navigation.homing.tracker import HomingConfig, Order, Phase, Skipped, Tracker
    from roboyard.navigation.homing.trail import Trail

__all__ = [
    "Cancel",
    "CancelBefore",
    "Goal",
    "GoalConfig",
    "GoalController",
    "HomingConfig",
    "LinkConfig",
    "LinkState",
    "LinkWatch",
    "Order",
    "Outcome",
    "Phase",
    "Report",
    "Send",
    "Skipped",
    "Tell",
    "Tracker",
    "Trail",
    "nearest_reachable",
]

__getattr__, __dir__ = lazy_exports(__name__, {
    "goals": ("Cancel", "CancelBefore", "Goal", "GoalConfig", "GoalController", "Outcome", "Report", "Send", "Tell"),
    "link": ("LinkState", "LinkConfig", "LinkWatch"),
    "nearest": ("nearest_reachable",),
    "tracker": ("HomingConfig", "Order", "Phase", "Skipped", "Tracker"),
    "trail": ("Trail",),
})  # fmt: skip
