"""What a path costs and how near it comes to obstacles, whoever planned it."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from roboyard.navigation.costmap import Costmap
from roboyard.navigation.path import Path
from roboyard.navigation.planning.base import Traversal
from roboyard.navigation.planning.grid_ways import nearest_obstacle
from roboyard.navigation.planning.lines import way_cost


def cost_along(costmap: Costmap, poses: NDArray[np.float64], traversal: Traversal) -> Path:
    """A path through poses (n, 3), with what it costs and its clearance.

    The cost is the integral of the traversal's weight over the way from pose to pose [metres of free ground], infinite
    where the robot's centre cannot be; the clearance is the distance of its nearest pose to an obstacle's cell [m].
    """
    inside = costmap.frame.T_map_grid.inverse() @ poses[:, :2]
    way = inside[:, ::-1] / costmap.frame.resolution - 0.5
    ground = traversal.ground(costmap.cells)
    cost = way_cost(ground, np.clip(way + 1.0, 0.0, np.array(ground.cells.shape) - 1))
    resolution = costmap.frame.resolution
    return Path(poses, cost * resolution, nearest_obstacle(costmap.cells, way) * resolution)
