"""Random rooms of cells, an exact sensor for them, and a loop that lets an explorer drive through them."""

import math

import numpy as np
from scipy.ndimage import binary_dilation
from tests.harness.robots import GridWorld

from roboyard.geometry import SE2, wrap_angle
from roboyard.grids import GridGeometry, OccupancyGrid, OccupancyMapBuilder
from roboyard.navigation import NavigationError
from roboyard.navigation.costmap import InflationLayer, LayeredCostmap, StaticLayer
from roboyard.navigation.exploration import Explorer
from roboyard.navigation.planners import FastMarchingPlanner, TraversalCosts


def random_rooms(seed: int, rows: int, columns: int, resolution: float = 0.1, doors: float = 1.0) -> np.ndarray:
    """Rooms in rooms, split until they are small, with doors in the walls and boxes in them; True is solid."""
    rng = np.random.default_rng(seed)
    solid = np.zeros((rows, columns), dtype=bool)
    solid[[0, -1]] = solid[:, [0, -1]] = True
    width = max(round(doors / resolution), 2)

    def split(top: int, left: int, bottom: int, right: int) -> None:
        tall, wide = bottom - top, right - left
        if max(tall, wide) < 2.5 / resolution or rng.random() < 0.15:
            if rng.random() < 0.5 and min(tall, wide) > 20:
                r, c = rng.integers(top + 3, bottom - 8), rng.integers(left + 3, right - 8)
                solid[r : r + rng.integers(2, 6), c : c + rng.integers(2, 6)] = True
            return
        min_size = width + 3
        if tall > wide:
            if tall < 2 * min_size:
                return
            wall = int(rng.integers(top + min_size, bottom - min_size + 1))
            solid[wall, left:right] = True
            door = int(rng.integers(left + 1, max(right - width - 1, left + 2)))
            solid[wall, door : door + width] = False
            split(top, left, wall, right)
            split(wall + 1, left, bottom, right)
        else:
            if wide < 2 * min_size:
                return
            wall = int(rng.integers(left + min_size, right - min_size + 1))
            solid[top:bottom, wall] = True
            door = int(rng.integers(top + 1, max(bottom - width - 1, top + 2)))
            solid[door : door + width, wall] = False
            split(top, left, bottom, wall)
            split(top, wall + 1, bottom, right)

    split(1, 1, rows - 1, columns - 1)
    return solid


def free_pose(solid: np.ndarray, frame: GridGeometry, radius: float, seed: int) -> SE2:
    """A random pose at which a robot of that radius fits."""
    radius_cells = math.ceil(radius / frame.resolution) + 1
    free_cells = np.argwhere(~binary_dilation(solid, iterations=2 * radius_cells))
    if not len(free_cells):
        free_cells = np.argwhere(~binary_dilation(solid, iterations=radius_cells))
    cell = free_cells[np.random.default_rng(seed).integers(len(free_cells))]
    return SE2(*frame.cell_centers(cell), np.random.default_rng(seed).uniform(-3.0, 3.0))


class Sensor:
    """An exact sensor: it sees every cell up to a distance that no other cell hides."""

    def __init__(
        self, solid: np.ndarray, frame: GridGeometry, max_range: float = 5.0, field_of_view: float = 2 * math.pi
    ):
        self.solid, self.max_range, self.field_of_view = solid, max_range, field_of_view
        self.world = GridWorld(solid, frame.resolution, origin=frame.T_map_grid)
        self.evidence = OccupancyMapBuilder(frame)
        self.cell_centers = frame.cell_centers(np.argwhere(np.ones(frame.shape, dtype=bool)))

    def update(self, pose: SE2) -> OccupancyGrid:
        """Add what it sees from a pose; returns the map so far."""
        count = 720
        angles = self.field_of_view * ((np.arange(count) + 0.5) / count - 0.5)
        lengths = np.minimum(self.world.ranges(pose, angles, self.max_range), self.max_range)
        hit = lengths < self.max_range - 1e-9
        directions = np.column_stack([np.cos(pose.theta + angles), np.sin(pose.theta + angles)])
        start = pose.xy
        ends = start + (lengths + 1e-6)[:, None] * directions
        self.evidence.add_beams(start, ends, hit)
        under = np.hypot(*(self.cell_centers - start).T).reshape(self.solid.shape) < 0.25
        self.evidence.misses[under & ~self.solid] += 1  # it stands there
        return self.evidence.to_grid()


def explore(
    sensor: Sensor, explorer: Explorer, pose: SE2, radius: float, *, stride: float = 0.5, max_updates: int = 2000
) -> tuple[OccupancyGrid, float, list[SE2]]:
    """Let the explorer decide and drive where it says along planned paths, looking about every ``stride`` [m].

    Returns:
        The map, the way driven [m], and where the robot looked from.
    """
    grid, distance, track = sensor.update(pose), 0.0, [pose]
    planner = FastMarchingPlanner(TraversalCosts(allow_unknown=False))
    for _ in range(max_updates):
        goal = explorer.update(grid, pose)
        if explorer.is_finished or goal is None:
            return grid, distance, track
        static = StaticLayer()
        static.set_map(grid)
        layers = LayeredCostmap(grid.geometry, [static, InflationLayer(radius, radius + 0.4)], track_unknown_space=True)
        layers.update()
        try:
            path = planner.plan(layers.snapshot(), pose, goal)
        except NavigationError:
            explorer.report_failure()
            continue
        lengths = np.concatenate([[0.0], np.hypot(*np.diff(path.poses[:, :2], axis=0).T).cumsum()])
        k = min(int(np.searchsorted(lengths, stride)), len(path) - 1)
        distance += float(lengths[k])
        x, y, theta = path.poses[k]
        if k == len(path) - 1:
            explorer.report_arrival()
            theta = goal.theta
        pose = SE2(x, y, wrap_angle(theta))
        track.append(pose)
        grid = sensor.update(pose)
    raise AssertionError(f"not finished after {max_updates} updates: {explorer.progress}")
