"""Actions as ROS 2 has them: three services and two topics a name, so that a bridge has nothing to translate."""

from typing import TYPE_CHECKING

from roboyard.config.lazy import lazy_exports

if TYPE_CHECKING:
    from roboyard.bus.actions.client import ActionClient, GoalFuture, OnFuture
    from roboyard.bus.actions.server import ActionServer, GoalHandle, OnGoal
    from roboyard.bus.actions.status import GoalStatus

__all__ = ["ActionClient", "ActionServer", "GoalFuture", "GoalHandle", "GoalStatus", "OnFuture", "OnGoal"]

__getattr__, __dir__ = lazy_exports(__name__, {
    "client": ("ActionClient", "GoalFuture", "OnFuture"),
    "server": ("ActionServer", "GoalHandle", "OnGoal"),
    "status": ("GoalStatus",),
})  # fmt: skip
