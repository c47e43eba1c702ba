"""A bus with a navigator and a kinematic robot in a room whose map it publishes."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

import numpy as np
from tests.harness.bus import BusHarness, Goal
from tests.harness.robots import OUTLINE, GridWorld, KinematicRobot

from roboyard.geometry import SE2
from roboyard.messages import action, msg
from roboyard.messages.convert import cloud_to_msg, grid_to_msg, pose_stamped_to_msg
from roboyard.messages.convert.poses import make_header
from roboyard.navigation import Footprint
from roboyard.navigation.nodes import NavigatorNode

START = SE2(1.0, 2.0, 0.0)
CELL = 0.05
CORNERS = np.array(OUTLINE)
LOW_BAR = (slice(30, 50), slice(50, 60))
"""Cells of a bar that the laser looks over: x from 2.5 to 3 m, y from 1.5 to 2.5 m."""
DEFAULTS = {"controller": {"type": "dwa"}, "velocity_limits": {"forward": 0.6}}


def goal_pose(x: float, y: float, theta: float = 0.0, frame: str = "map") -> Any:
    """A goal [m, rad]; its x may be no number."""
    stamped = pose_stamped_to_msg(SE2(0.0, y, theta), frame, 0)
    stamped.pose.position.x = x
    return stamped


def room_map(world: GridWorld) -> Any:
    """The map of the room, in which a rectangle is unknown."""
    cells = world.occupancy().cells.copy()
    cells[30:50, 95:115] = -1
    return grid_to_msg(cells, world.resolution, SE2(), "map", 0)


class NavigatorHarness(BusHarness):
    """A bus that has run up to ``start`` [s] with a robot and a navigator.

    Args:
        robot: In a room of 6 m by 4 m; None: one with a laser only, whose map has an unknown rectangle.
        settings: Of the navigator, over `DEFAULTS`.
        start: Until when the bus has run [s].
        parameters: Of the navigator.
    """

    def __init__(
        self,
        robot: KinematicRobot | None = None,
        *,
        settings: Mapping[str, Any] | None = None,
        start: float = 1.0,
        **parameters: Any,
    ) -> None:
        super().__init__(seed=1)
        world = GridWorld.room(6.0, 4.0)
        default = KinematicRobot(world, START, map_msg=room_map(world))
        self.robot: Any = self.add(default if robot is None else robot, "rover")
        self.navigator = self.add(
            NavigatorNode(footprint=OUTLINE, rate=10.0, **(DEFAULTS | dict(settings or {})), **parameters),
            "navigator",
        )
        self.run_until(start)

    @property
    def statuses(self) -> list[Any]:
        """What the navigator published of itself."""
        return self.published("/navigator/status").messages

    def start_navigation(self, x: float, y: float, theta: float = 0.0, frame: str = "map") -> Goal:
        """Send the robot to a pose [m, rad]."""
        return self.start_goal("/navigate_to_pose", action.NavigateToPose, pose=goal_pose(x, y, theta, frame))

    def navigate(self, x: float, y: float, theta: float = 0.0, frame: str = "map", *, timeout: float) -> Goal:
        """Send the robot to a pose and wait until the goal has ended [m, rad, s]."""
        return self.wait_for(self.start_navigation(x, y, theta, frame), timeout=timeout)

    def check_moved(self) -> list[tuple[float, ...]]:
        """The robot's track, once it has left its place."""
        assert self.robot.pose.x > 1.5
        return list(self.robot.track)


class SensorRobot(KinematicRobot):
    """A robot with a depth camera and a sonar that also see a low bar.   out: depth/points, sonar"""

    def __init__(self) -> None:
        world = GridWorld.room(6.0, 4.0)
        super().__init__(world, START, map_msg=room_map(world))
        self.publish_clouds = True
        self.bar = GridWorld(np.zeros_like(world.walls), CELL)
        self.bar.walls[LOW_BAR] = True

    def setup(self) -> None:
        """Connect."""
        super().setup()
        self._cloud = self.publisher("depth/points", msg.PointCloud2)
        self._range = self.publisher("sonar", msg.Range)
        self.timer(rate=5.0, callback=self._publish_clouds, immediate=True)

    def _publish_clouds(self) -> None:
        if not (self._cloud.topic.subscriptions or self._range.topic.subscriptions):
            return
        beam_angles = np.linspace(-0.9, 0.9, 61)
        visible = GridWorld(self.world.walls | self.bar.walls, CELL)
        ranges = np.minimum(visible.ranges(self.pose, beam_angles, 4.0), 4.0) + 1e-3
        if self.publish_clouds:
            points = np.column_stack([ranges * np.cos(beam_angles), ranges * np.sin(beam_angles), np.full(61, 0.1)])
            points[ranges >= 3.9] = np.nan  # as depth cameras say that they saw nothing
            self._cloud.publish(cloud_to_msg(points, "base_link", self.now_ns))
        nearest = float(ranges[np.abs(beam_angles) < 0.3].min())
        self._range.publish(
            msg.Range(header=make_header("base_link", self.now_ns), field_of_view=0.6, min_range=0.05, max_range=3.0,
                      range=nearest if nearest < 3.0 else math.inf)
        )  # fmt: skip


class SensorHarness(NavigatorHarness):
    """A navigator with a costmap of its own and a robot with all sensors, from the beginning on."""

    def __init__(
        self,
        costmap: dict[str, Any],
        robot: SensorRobot | None = None,
        *,
        settings: Mapping[str, Any] | None = None,
        **parameters: Any,
    ) -> None:
        settings = {"controller": {"type": "regulated_pure_pursuit"}, "costmap": costmap} | dict(settings or {})
        super().__init__(robot or SensorRobot(), settings=settings, start=0.0, **parameters)

    def publish_speed_mask(self, value: int, x: tuple[float, float]) -> None:
        """A zone between two places in x [m] and over the whole room in y."""
        cells = np.zeros(self.robot.world.walls.shape, dtype=np.int8)
        cells[:, round(x[0] / CELL) : round(x[1] / CELL)] = value
        self.publish("/speed_mask", grid_to_msg(cells, CELL, SE2(), "map", self.now_ns), latched=True)

    def drove_over_the_bar(self) -> bool:
        """Whether the robot's border was over a cell of the bar."""
        border = Footprint(CORNERS).sample_border(CELL / 2)
        track = np.concatenate([SE2(x, y, theta) @ border for _, x, y, theta in self.robot.track])
        return not self.robot.bar.is_free(track)


def costmap_config(*names: str, **layers: Any) -> dict[str, Any]:
    """Costmaps with these sensors' layers, both local and global."""
    return {"layers": layers, "global_layers": ["static", *names, "keepout"], "local_layers": [*names, "keepout"]}
