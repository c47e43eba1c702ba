"""Worlds drawn as text, and a robot that drives through them without physics."""

from __future__ import annotations

import math
from collections.abc import Sequence
from functools import cache
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from roboyard.bus import Node
from roboyard.geometry import SE2
from roboyard.grids import GridGeometry, OccupancyGrid, simulate_scans
from roboyard.messages import msg
from roboyard.messages.convert import ScanGeometry, grid_to_msg, odometry_to_msg, scan_to_msg

IDENTITY = SE2()
OUTLINE = ((0.2, 0.15), (-0.2, 0.15), (-0.2, -0.15), (0.2, -0.15))
"""Corners of the kinematic robot [m], unless a test gives others."""


class GridWorld:
    """Walls on a grid of cells.

    Args:
        walls: (rows, columns), True is solid; row 0 lies at the smallest y, column 0 at the smallest x.
        resolution: Edge of a cell [m].
        origin: Pose of the outer corner of cell (0, 0) in the map.
        places: Points with a name [m].
    """

    def __init__(
        self,
        walls: ArrayLike,
        resolution: float = 0.1,
        *,
        origin: SE2 | None = None,
        places: dict[str, tuple[float, float]] | None = None,
    ) -> None:
        self.walls: NDArray[np.bool_] = np.array(walls, dtype=np.bool_)
        self.resolution = resolution
        self.frame = GridGeometry(resolution, self.walls.shape, SE2() if origin is None else origin)
        self.places = places or {}

    @classmethod
    def from_text(cls, drawing: str, resolution: float = 0.1, *, origin: SE2 | None = None) -> GridWorld:
        """A world as it is drawn: the first line is the farthest in y, as on a map.

        Args:
            drawing: ``#`` is solid, ``.`` is free, a letter or digit is a free cell whose middle is kept
                in ``places`` under that name.  Empty lines before and after, and common indentation, do not count.
            resolution: Edge of a cell [m].
            origin: As of the class.

        Raises:
            ValueError: the lines have different lengths, there are none, or a character means nothing.
        """
        lines = [line.strip() for line in drawing.strip("\n").splitlines()]
        lines = [line for line in lines if line]
        if not lines or len({len(line) for line in lines}) != 1:
            raise ValueError(f"lines of {sorted({len(line) for line in lines})} characters (all of one length)")
        rows = lines[::-1]
        strange = {character for line in rows for character in line if not (character in "#." or character.isalnum())}
        if strange:
            raise ValueError(f"characters {sorted(strange)} (valid: # . letters digits)")
        world = cls([[character == "#" for character in line] for line in rows], resolution, origin=origin)
        for row, line in enumerate(rows):
            for column, character in enumerate(line):
                if character.isalnum():
                    x, y = world.frame.cell_centers(np.array([[row, column]]))[0]
                    world.places[character] = (float(x), float(y))
        return world

    @classmethod
    def room(cls, width: float, height: float, resolution: float = 0.05) -> GridWorld:
        """An empty rectangle [m] whose outermost cells are walls."""
        walls = np.zeros((round(height / resolution), round(width / resolution)), dtype=np.bool_)
        walls[[0, -1]] = walls[:, [0, -1]] = True
        return cls(walls, resolution)

    def fill(self, x: tuple[float, float], y: tuple[float, float], solid: bool = True) -> GridWorld:
        """Make the cells of a rectangle [m], in the axes of the grid, solid or free; returns the world."""
        (left, right), (low, high) = (sorted(round(value / self.resolution) for value in edge) for edge in (x, y))
        self.walls[max(low, 0) : high, max(left, 0) : right] = solid
        return self

    def copy(self) -> GridWorld:
        """A world that can be changed by itself."""
        return GridWorld(self.walls, self.resolution, origin=self.frame.T_map_grid, places=dict(self.places))

    def is_free(self, points: ArrayLike) -> bool:
        """Whether all points (n, 2) [m, map] lie inside the grid and in no wall."""
        cells = self.frame.cells_of_points(np.atleast_2d(np.asarray(points, dtype=np.float64)))
        inside = (cells >= 0).all(axis=1) & (cells < self.walls.shape).all(axis=1)
        return bool(inside.all() and not self.walls[cells[:, 0], cells[:, 1]].any())

    def collides(self, outline: ArrayLike, pose: SE2) -> bool:
        """Whether the border of an outline (n, 2) [m, base] at a pose touches a wall or leaves the grid."""
        corners = tuple(map(tuple, np.asarray(outline, dtype=np.float64).tolist()))
        return not self.is_free(pose @ _border_points(corners, 0.5 * self.resolution))

    def ranges(self, pose: SE2, angles: ArrayLike, range_max: float = 8.0) -> NDArray[np.float64]:
        """Distances [m] from a pose to the walls at angles from its heading; infinite beyond ``range_max``."""
        return simulate_scans(self.walls, self.frame, [pose.x, pose.y, pose.theta], angles, range_max)[0]

    def scan(
        self, pose: SE2, *, beams: int = 180, range_max: float = 8.0, frame: str = "base_link", time_ns: int = 0
    ) -> Any:
        """What a laser that looks all around sees from a pose, as a LaserScan."""
        step = 2.0 * math.pi / beams
        ranges = self.ranges(pose, -math.pi + step * np.arange(beams), range_max)
        geometry = ScanGeometry(-math.pi, step, 0.05, range_max)
        return scan_to_msg(ranges + 1e-3, geometry, frame=frame, time_ns=time_ns)

    def occupancy(self) -> OccupancyGrid:
        """The map that knows every wall: 100 and 0."""
        return OccupancyGrid(np.where(self.walls, 100, 0).astype(np.int8), self.frame)

    def occupancy_msg(self, frame: str = "map", time_ns: int = 0) -> Any:
        """The same as a message."""
        grid = self.occupancy()
        return grid_to_msg(grid.cells, self.resolution, self.frame.T_map_grid, frame, time_ns)


@cache
def _border_points(corners: tuple[tuple[float, float], ...], spacing: float) -> NDArray[np.float64]:
    """Points (n, 2) on the edges of a polygon, at most ``spacing`` apart [m]."""
    starts = np.array(corners)
    edges = np.roll(starts, -1, axis=0) - starts
    steps = max(math.ceil(np.linalg.norm(edges, axis=1).max() / spacing), 1)
    fractions = np.arange(steps)[:, None, None] / steps
    return (starts + fractions * edges).reshape(-1, 2)


class KinematicRobot(Node):
    """A robot that drives exactly as commanded, and stands where it would touch a wall.

    in: cmd_vel   out: odom, scan, map (latched), truth/odom (if it has a subscriber), /tf

    Args:
        world: What it drives in; None: nothing is in its way, and it publishes neither scans nor a map.
        pose: True initial pose in the map.
        outline: (n, 2) corners [m, base].
        rate: Of motion, odometry and transforms [Hz].
        scan_rate: Of scans [Hz].
        T_map_odom: Where the odometry's frame lies; a test may move it.
        map_msg: The OccupancyGrid that it publishes; None: the map that knows every wall.

    Attributes:
        pose: True pose in the map.
        twist: The velocity (vx, vy, wz) that it drives with [m/s, m/s, rad/s].
        commands: Every command (time [s], vx, vy, wz).
        track: (time [s], x, y, theta) after each step.
        collisions: Steps in which a wall held it.
        publish_scans: Whether it publishes scans.
        publish_transforms: Whether it publishes transforms.
        publish_map_frame: Whether map → odom is among them, as of a localization that is exact.
    """

    state_fields = ("pose", "twist", "commands", "track", "collisions", "T_map_odom")

    def __init__(
        self,
        world: GridWorld | None = None,
        pose: SE2 | None = None,
        *,
        outline: Sequence[tuple[float, float]] = OUTLINE,
        rate: float = 20.0,
        scan_rate: float = 10.0,
        T_map_odom: SE2 | None = None,
        map_msg: Any = None,
    ) -> None:
        super().__init__()
        self.world, self.pose, self.outline = world, SE2() if pose is None else pose, outline
        self.T_map_odom = SE2() if T_map_odom is None else T_map_odom
        self.twist = (0.0, 0.0, 0.0)
        self.commands: list[tuple[float, float, float, float]] = []
        self.track: list[tuple[float, float, float, float]] = []
        self.collisions = 0
        self.publish_scans = self.publish_transforms = self.publish_map_frame = True
        self._rate, self._scan_rate, self._map_msg = rate, scan_rate, map_msg

    def setup(self) -> None:
        """Connect, and publish the first pose."""
        self.subscribe("cmd_vel", msg.Twist, self._on_twist)
        self._odom = self.publisher("odom", msg.Odometry)
        self._truth = self.publisher("truth/odom", msg.Odometry)
        if self.world is not None:
            self._scan = self.publisher("scan", msg.LaserScan)
            self._map = self.publisher("map", msg.OccupancyGrid, latched=True)
            self._map.publish(self.world.occupancy_msg() if self._map_msg is None else self._map_msg)
            self.timer(rate=self._scan_rate, callback=self._publish_scan, immediate=True)
        self.timer(rate=self._rate, callback=self._step, immediate=True)

    def _on_twist(self, command: Any) -> None:
        self.twist = (command.linear.x, command.linear.y, command.angular.z)
        self.commands.append((self.now, *self.twist))

    def _step(self) -> None:
        vx, vy, wz = self.twist
        if any(self.twist):
            ahead = self.pose @ SE2.exp([vx / self._rate, vy / self._rate, wz / self._rate])
            if self.world is not None and self.world.collides(self.outline, ahead):
                self.collisions += 1
            else:
                self.pose = ahead
        self.track.append((self.now, self.pose.x, self.pose.y, self.pose.theta))
        self.publish_pose()

    def publish_pose(self) -> None:
        """Publish odometry, transforms and, if it has a subscriber, the truth of the present pose."""
        T_odom_base = self.pose if self.T_map_odom == IDENTITY else self.T_map_odom.inverse() @ self.pose
        speeds = ([self.twist[0], self.twist[1], 0.0], [0.0, 0.0, self.twist[2]])
        if self.publish_transforms:
            transforms = [(T_odom_base.to_se3(), "odom", "base_link")]
            if self.publish_map_frame:
                transforms.insert(0, (self.T_map_odom.to_se3(), "map", "odom"))
            self.send_transforms(transforms)
        now_ns = self.now_ns
        self._odom.publish(odometry_to_msg(T_odom_base, *speeds, frame="odom", child_frame="base_link", time_ns=now_ns))
        if self._truth.topic.subscriptions:
            self._truth.publish(
                odometry_to_msg(self.pose, *speeds, frame="map", child_frame="base_link", time_ns=now_ns)
            )

    def _publish_scan(self) -> None:
        if self.publish_scans and self.world is not None:
            self._scan.publish(self.world.scan(self.pose, time_ns=self.now_ns))
