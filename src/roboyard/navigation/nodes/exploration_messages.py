"""Exploration as messages: how it stands, and frontiers to look at."""

from __future__ import annotations

from typing import Any, Final

import numpy as np

from roboyard.geometry import SE2
from roboyard.messages import msg
from roboyard.messages.convert import MarkerStyle, make_header, points_marker, pose_to_msg
from roboyard.navigation.exploration import Frontiers, Progress

_FRONTIER, _VIEW, _GOAL = (0.85, 0.47, 0.1, 1.0), (0.04, 0.43, 0.45, 0.8), (0.73, 0.22, 0.31, 1.0)
_HEIGHT: Final = 0.05


def status_to_msg(
    progress: Progress, start: SE2, radius: float, frame: str, time_ns: int, *, phase: str = "", cause: str = ""
) -> Any:
    """roboyard_msgs/ExplorationStatus; ``phase`` instead of the progress's own."""
    return msg.ExplorationStatus(
        header=make_header(frame, time_ns),
        phase=phase or progress.phase,
        error_code=cause,
        start=pose_to_msg(start),
        radius=radius,
        known_area=progress.known,
        frontiers=progress.frontiers,
        goals_sent=progress.goals,
        goals_failed=progress.failures,
    )


def frontiers_to_msg(found: Frontiers, goal: SE2 | None, frame: str, time_ns: int) -> Any:
    """visualization_msgs/MarkerArray: frontiers as dots, places to look from as balls, the goal as an arrow."""
    cells = np.concatenate(found.cells) if found.cells else np.zeros((0, 2))
    views = np.array([view.pose.xy for view in found.views]).reshape(-1, 2)
    side = found.frame.resolution
    aim = np.zeros((0, 2))
    if goal is not None:
        aim = goal @ np.array([[0.0, 0.0], [0.5, 0.0]])
    drawn = [
        (msg.Marker.CUBE_LIST, found.frame.cell_centers(cells), _FRONTIER, (side, side, side)),
        (msg.Marker.SPHERE_LIST, views, _VIEW, (0.15, 0.15, 0.15)),
        (msg.Marker.ARROW, aim, _GOAL, (0.06, 0.14, 0.2)),
    ]
    return msg.MarkerArray(
        [
            points_marker(
                points, MarkerStyle(kind, colour, scale), namespace="exploration", marker_id=number, frame=frame,
                time_ns=time_ns, height=_HEIGHT,
            )
            for number, (kind, points, colour, scale) in enumerate(drawn)
        ]
    )  # fmt: skip
