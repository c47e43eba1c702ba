"""Exploration as messages: how it stands, and frontiers to look at."""

from __future__ import annotations

from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from roboyard.geometry import SE2
from roboyard.messages import duration, msg
from roboyard.messages.convert import header, pose_to_msg
from roboyard.navigation.exploration import Frontiers, Progress

_FRONTIER, _VIEW, _GOAL = (0.85, 0.47, 0.1, 1.0), (0.04, 0.43, 0.45, 0.8), (0.73, 0.22, 0.31, 1.0)
_HEIGHT: Final = 0.05


def status_to_msg(
    progress: Progress, start: SE2, radius: float, frame: str, time_ns: int, *, phase: str = "", cause: str = ""
) -> Any:
    """roboyard_msgs/ExplorationStatus; ``phase`` instead of the progress's own."""
    return msg.ExplorationStatus(
        header=header(frame, time_ns),
        phase=phase or progress.phase,
        cause=cause,
        start=pose_to_msg(start),
        radius=radius,
        known=progress.known,
        frontiers=progress.frontiers,
        goals=progress.goals,
        failures=progress.failures,
    )


def frontiers_to_msg(found: Frontiers, goal: SE2 | None, frame: str, time_ns: int) -> Any:
    """visualization_msgs/MarkerArray: frontiers as dots, places to look from as balls, the goal as an arrow."""
    cells = np.concatenate(found.cells) if found.cells else np.zeros((0, 2))
    views = np.array([view.pose.xy for view in found.views]).reshape(-1, 2)
    side = found.frame.resolution
    aim = np.zeros((0, 2))
    if goal is not None:
        aim = goal @ np.array([[0.0, 0.0], [0.5, 0.0]])
    return msg.MarkerArray(
        [
            _marker(0, msg.Marker.CUBE_LIST, found.frame.points(cells), _FRONTIER, (side, side, side), frame, time_ns),
            _marker(1, msg.Marker.SPHERE_LIST, views, _VIEW, (0.15, 0.15, 0.15), frame, time_ns),
            _marker(2, msg.Marker.ARROW, aim, _GOAL, (0.06, 0.14, 0.2), frame, time_ns),
        ]
    )


def _marker(
    number: int,
    kind: int,
    places: NDArray[np.float64],
    colour: tuple[float, float, float, float],
    scale: tuple[float, float, float],
    frame: str,
    time_ns: int,
) -> Any:
    # what has no points is taken away: viewers complain about empty lists
    action = msg.Marker.ADD if len(places) else msg.Marker.DELETE
    return msg.Marker(
        header=header(frame, time_ns),
        ns="exploration",
        id=number,
        type=kind,
        action=action,
        pose=msg.Pose(orientation=msg.Quaternion(w=1.0)),
        scale=msg.Vector3(*scale),
        color=msg.ColorRGBA(*colour),
        lifetime=duration(0),
        points=[msg.Point(float(x), float(y), _HEIGHT) for x, y in places],
    )
