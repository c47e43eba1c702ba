"""Messages that the navigator publishes: costmaps, numbers of errors."""

from __future__ import annotations

from typing import Any

import numpy as np

from roboyard.messages.convert import grid_to_msg
from roboyard.navigation.costmap import Costmap
from roboyard.navigation.errors import NavigationError

_SHOWN = np.concatenate([[0], 1 + (97 * (np.arange(1, 253) - 1)) // 251, [99, 100, -1]]).astype(np.int8)

_NUMBERS = {
    "start_outside_map": 203, "goal_outside_map": 204, "start_occupied": 205, "goal_occupied": 206,
    "goal_unknown": 206, "budget_spent": 207, "no_path": 208, "pose_unknown": 202,
}  # fmt: skip
_FOLLOW = {"no_safe_command": 106, "no_progress": 105, "pose_unknown": 102, "sensor_silent": 104}
_MOTION = {"timeout": 1, "pose_unknown": 2}


def costmap_message(costmap: Costmap, frame: str, time_ns: int) -> Any:
    """nav_msgs/OccupancyGrid as Nav2 shows costs: 1 to 98, 99 where the robot touches, 100 an obstacle, -1 unknown."""
    place = costmap.frame
    return grid_to_msg(_SHOWN[costmap.cells], place.resolution, place.T_map_grid, frame, time_ns)


def planning_number(error: NavigationError) -> int:
    """The error_code of nav2_msgs/ComputePathToPose for an error."""
    return _NUMBERS.get(error.cause, 200)


def following_number(error: NavigationError) -> int:
    """The error_code of nav2_msgs/FollowPath for an error."""
    return _FOLLOW.get(error.cause, 100)


def motion_number(error: NavigationError, base: int, blocked: int) -> int:
    """The error_code of nav2_msgs/Spin, BackUp and DriveOnHeading, whose numbers begin at ``base``."""
    if error.cause == "blocked":
        return blocked
    return base + _MOTION.get(error.cause, 0)
