"""A kinematic robot among pillars that a controller drives in a closed loop."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray
from tests.harness.robots import GridWorld

from roboyard.control import PlanarTwist
from roboyard.geometry import SE2
from roboyard.grids import GridGeometry
from roboyard.navigation import Costmap, Footprint, LayeredCostmap, NavigationError, Path
from roboyard.navigation.controllers import MotionLimits
from roboyard.navigation.costmap import LETHAL, InflationLayer, Layer
from roboyard.navigation.costmap.layered_costmap import CellBounds
from roboyard.navigation.footprint import is_footprint_in_collision

PERIOD = 0.05
BODY = Footprint(np.array([[0.25, 0.18], [-0.25, 0.18], [-0.25, -0.18], [0.25, -0.18]]))
LIMITS = MotionLimits(max_forward_speed=0.5, max_backward_speed=0.2, max_angular_speed=1.5)
OMNI = MotionLimits(max_forward_speed=0.5, max_backward_speed=0.5, max_lateral_speed=0.5, max_angular_speed=1.5)


def inflated_costmap(obstacles: NDArray[np.bool_], radius: float = 0.5, cost_scaling_factor: float = 4.0) -> Costmap:
    """A map of 5 cm cells whose corner lies at the origin."""

    class WallLayer(Layer):
        def match_size(self, geometry, shift): ...
        def update_bounds(self):
            return CellBounds.full(obstacles.shape)

        def update_costs(self, cells, bounds):
            cells[bounds.slices][obstacles[bounds.slices]] = LETHAL

    layers = LayeredCostmap(
        GridGeometry(0.05, obstacles.shape),
        [WallLayer("walls"), InflationLayer(BODY.inscribed_radius, radius, cost_scaling_factor)],
    )
    layers.update()
    return layers.snapshot()


def pillar_walls(seed: int, count: int, size: float = 6.0) -> NDArray[np.bool_]:
    """A room with pillars of 20 cm, none of them near two opposite corners."""
    rng = np.random.default_rng(seed)
    grid = GridWorld.room(size, size).walls
    n = len(grid)
    for row, column in rng.integers(4, n - 8, (count, 2)):
        corner_distance = min(np.hypot(row - 16, column - 16), np.hypot(row - n + 16, column - n + 16))
        if corner_distance > 18:
            grid[row : row + 4, column : column + 4] = True
    return grid


@dataclass
class DriveResult:
    """The outcome of a drive: poses and commands, and why it ended."""

    arrived: bool = False
    collided: bool = False
    causes: list[str] = field(default_factory=list)
    commands: list[PlanarTwist] = field(default_factory=list)
    poses: list[SE2] = field(default_factory=list)

    @property
    def time(self) -> float:
        return len(self.commands) * PERIOD


def overlaps_obstacle(costmap: Costmap, pose: SE2, footprint: Footprint = BODY) -> bool:
    """Whether a footprint at a pose lies on an obstacle."""
    grid_pose = costmap.geometry.T_map_grid.inverse() @ pose
    scale = 1.0 / costmap.geometry.resolution
    border = footprint.sample_border(costmap.geometry.resolution) * scale
    return bool(
        is_footprint_in_collision(
            costmap.cells, border, grid_pose.x * scale, grid_pose.y * scale, grid_pose.theta, False
        )
    )


def drive(
    controller, costmap: Costmap, path: Path, start: SE2, periods: int = 1200, *, overlapping: bool = False
) -> DriveResult:
    """Drive until the controller reports arrival or the robot collides; ``overlapping`` ignores collisions."""
    result, pose, twist = DriveResult(), start, PlanarTwist()
    controller.set_path(path)
    for _ in range(periods):
        result.poses.append(pose)
        if controller.is_goal_reached(pose):
            result.arrived = True
            break
        try:
            twist = controller.compute_velocity(pose, twist, costmap)
        except NavigationError as error:
            result.causes.append(error.cause)
            break
        result.commands.append(twist)
        pose = pose @ SE2.exp([PERIOD * value for value in twist])
        if not overlapping and overlaps_obstacle(costmap, pose):
            result.collided = True
            break
    return result
