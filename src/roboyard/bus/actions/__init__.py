"""Actions as ROS 2 has them: three services and two topics a name, so that a bridge has nothing to translate."""

from roboyard.bus.actions.client import ActionClient, GoalFuture, OnFuture
from roboyard.bus.actions.server import ActionServer, GoalHandle, OnGoal
from roboyard.bus.actions.status import Status

__all__ = ["ActionClient", "ActionServer", "GoalFuture", "GoalHandle", "OnFuture", "OnGoal", "Status"]
