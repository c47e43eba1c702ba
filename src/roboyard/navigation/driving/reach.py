"""Places near one that cannot be had: where a robot in an obstacle's reach gets free, how near it comes to a goal."""

from __future__ import annotations

from roboyard.geometry import SE2
from roboyard.navigation.costmap import INSCRIBED, UNKNOWN, Costmap
from roboyard.navigation.reachable import joined, nearest


def nearest_free(costmap: Costmap, pose: SE2, radius: float) -> SE2 | None:
    """The free cell's middle that is nearest to a pose, with its heading; the pose itself if it is free.

    Args:
        costmap: Its frame in the map.
        pose: In the map.
        radius: How far to look [m].
    """
    return nearest(costmap.cells < INSCRIBED, costmap.frame, pose, radius)


def nearest_reachable(costmap: Costmap, start: SE2, goal: SE2, escape: float, *, unknown: bool = False) -> SE2 | None:
    """The place nearest to a goal that a way from the start leads to; None if the start is not free.

    Args:
        costmap: Its frame in the map.
        start: In the map; or the free place within ``escape`` [m] of it.
        goal: In the map.
        escape: See ``start``.
        unknown: Whether ways may lead over unknown ground.
    """
    free = costmap.cells < INSCRIBED
    begin = nearest(free, costmap.frame, start, escape)
    if begin is None:
        return None
    passable = free | (costmap.cells == UNKNOWN) if unknown else free
    return nearest(joined(passable, costmap.frame, begin), costmap.frame, goal)
