"""What a path costs and how near it comes to obstacles, whoever planned it."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from roboyard.navigation.costmap import UNKNOWN, Costmap
from roboyard.navigation.path import Path
from roboyard.navigation.planning.base import Traversal
from roboyard.navigation.planning.grid_ways import nearest_obstacle
from roboyard.navigation.planning.lines import way_cost


def cost_along(costmap: Costmap, poses: NDArray[np.float64], traversal: Traversal) -> Path:
    """A path through poses (n, 3), with what it costs and its clearance.

    The cost is the integral of the traversal's weight over the way from pose to pose [metres of free ground], infinite
    where the robot's centre cannot be; beyond the map a metre costs what it does on unknown ground.  The clearance is
    the distance of its nearest pose to an obstacle's cell [m].

    Raises:
        InputError: poses of another shape, or not finite.
    """
    poses = Path(poses).poses
    resolution = costmap.frame.resolution
    inside = costmap.frame.T_map_grid.inverse() @ poses[:, :2]
    way = inside[:, ::-1] / resolution - 0.5
    # two cells of a rim: unknown ones, which lines beyond are cut off at, and the ground's own
    ground = traversal.ground(np.pad(costmap.cells, 1, constant_values=UNKNOWN))
    cost = way_cost(ground, way + 2.0, 1)
    return Path(poses, cost * resolution, nearest_obstacle(costmap.cells, way) * resolution)
