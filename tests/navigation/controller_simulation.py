"""A kinematic robot among pillars that a controller drives in a closed loop."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray
from tests.harness.robots import GridWorld

from roboyard.control import PlanarTwist
from roboyard.geometry import SE2
from roboyard.grids import GridGeometry
from roboyard.navigation import Costmap, Footprint, InflationLayer, LayeredCostmap, MotionLimits, NavigationError, Path
from roboyard.navigation.costmap import LETHAL
from roboyard.navigation.costmap.bounds import Bounds
from roboyard.navigation.footprint import lies_on_obstacle

PERIOD = 0.05
BODY = Footprint(np.array([[0.25, 0.18], [-0.25, 0.18], [-0.25, -0.18], [0.25, -0.18]]))
LIMITS = MotionLimits(forward=0.5, backward=0.2, turn=1.5)
OMNI = MotionLimits(forward=0.5, backward=0.5, sideways=0.5, turn=1.5)


def inflated_costmap(obstacles: NDArray[np.bool_], radius: float = 0.5, scaling: float = 4.0) -> Costmap:
    """A map of 5 cm cells whose corner lies at the origin."""

    class Walls:
        name = "walls"

        def fit(self, frame, moved): ...
        def changed(self):
            return Bounds.whole(obstacles.shape)

        def reach(self):
            return 0

        def apply(self, cells, bounds):
            cells[bounds.slices][obstacles[bounds.slices]] = LETHAL

    layers = LayeredCostmap(
        GridGeometry(0.05, obstacles.shape), [Walls(), InflationLayer(BODY.inscribed_radius, radius, scaling)]
    )
    layers.update()
    return layers.costmap()


def pillar_walls(seed: int, count: int, size: float = 6.0) -> NDArray[np.bool_]:
    """A room with pillars of 20 cm, none of them near two opposite corners."""
    rng = np.random.default_rng(seed)
    grid = GridWorld.room(size, size).walls
    n = len(grid)
    for row, column in rng.integers(4, n - 8, (count, 2)):
        near = min(np.hypot(row - 16, column - 16), np.hypot(row - n + 16, column - n + 16))
        if near > 18:
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
    here = costmap.frame.T_map_grid.inverse() @ pose
    scale = 1.0 / costmap.frame.resolution
    border = footprint.border(costmap.frame.resolution) * scale
    return bool(lies_on_obstacle(costmap.cells, border, here.x * scale, here.y * scale, here.theta, False))


def drive(
    controller, costmap: Costmap, path: Path, start: SE2, periods: int = 1200, *, overlapping: bool = False
) -> DriveResult:
    """Drive until the controller reports arrival or the robot collides; ``overlapping`` ignores collisions."""
    result, pose, twist = DriveResult(), start, PlanarTwist()
    controller.follow(path)
    for _ in range(periods):
        result.poses.append(pose)
        if controller.arrived(pose):
            result.arrived = True
            break
        try:
            twist = controller.command(pose, twist, costmap)
        except NavigationError as error:
            result.causes.append(error.cause)
            break
        result.commands.append(twist)
        pose = pose @ SE2.exp([PERIOD * value for value in twist])
        if not overlapping and overlaps_obstacle(costmap, pose):
            result.collided = True
            break
    return result
