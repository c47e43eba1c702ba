"""Rooms in which a navigation task drives a kinematic robot by what its laser shows, without a bus."""

import math
from dataclasses import replace

import numpy as np
from tests.harness.robots import OUTLINE, GridWorld

from roboyard.control import ZERO_TWIST, PlanarTwist
from roboyard.geometry import SE2
from roboyard.grids import OccupancyGrid
from roboyard.navigation import Footprint, NavigationError
from roboyard.navigation.controllers import MotionLimits
from roboyard.navigation.costmap import Observation
from roboyard.navigation.navigator import (
    MobileBase,
    NavigationCostmaps,
    NavigationState,
    NavigatorConfig,
    NavigatorContext,
)
from roboyard.navigation.plugins import make_controller, make_planner

PERIOD = 0.1
CELL = 0.05
CORNERS = np.array(OUTLINE)
LIMITS = MotionLimits(
    max_forward_speed=0.6,
    max_backward_speed=0.2,
    max_angular_speed=1.5,
    max_acceleration=1.5,
    max_angular_acceleration=4.0,
)
BASE = MobileBase(Footprint(CORNERS + np.sign(CORNERS) * 0.03), Footprint(CORNERS), LIMITS, PERIOD)
"""Planned with a little more room than the robot takes."""
OMNI_BASE = replace(BASE, limits=replace(LIMITS, max_lateral_speed=0.4))
"""The same with wheels that go sideways too."""
_ANGLES = np.linspace(-math.pi, math.pi, 180, endpoint=False)


def room_walls(width: float, height: float) -> np.ndarray:
    """The cells of an empty room [m]; True is solid."""
    return GridWorld.room(width, height, CELL).walls


class TaskSimulation:
    """A robot among true obstacles, with a map that may not know them all."""

    def __init__(
        self,
        walls: np.ndarray,
        start: SE2,
        mapped: np.ndarray | None = None,
        mobile_base: MobileBase = BASE,
        **settings,
    ) -> None:
        self.world, self.pose, self.time, self.twist = GridWorld(walls, CELL), start, 0.0, ZERO_TWIST
        self.frame = self.world.frame
        self.config = NavigatorConfig(**settings)
        self.costmaps = NavigationCostmaps(self.config.costmap, BASE.footprint)
        is_mapped = walls if mapped is None else mapped
        self.costmaps.set_map(OccupancyGrid(np.where(is_mapped, 100, 0).astype(np.int8), self.frame))
        controller = make_controller(
            self.config.controller, mobile_base, self.config.goal_tolerance, allow_reverse=False
        )
        planner = make_planner(self.config.planner, BASE.footprint, self.config.smoother)
        self.context = NavigatorContext(planner, controller, mobile_base, self.costmaps, self.config)
        self.collisions, self.commands = 0, []

    def observe(self) -> None:
        """Give the costmaps a scan from where the robot is."""
        ranges = np.minimum(self.world.ranges(self.pose, _ANGLES), 8.0)
        directions = np.column_stack([np.cos(_ANGLES + self.pose.theta), np.sin(_ANGLES + self.pose.theta)])
        ends = np.column_stack([self.pose.xy + (ranges[:, None] + 1e-3) * directions, np.full(180, 0.2)])
        observation = Observation(np.array([*self.pose.xy, 0.2]), ends, ranges < 7.9)
        self.costmaps.add_observations({"obstacles": [observation]}, SE2.identity())

    def state(self) -> NavigationState:
        """Observe, and return what a task decides by."""
        self.observe()
        self.costmaps.update(self.pose, SE2.identity())
        local_costmap = self.costmaps.local_costmap_in_map(SE2.identity())
        return NavigationState(self.time, self.pose, self.twist, local_costmap)

    def drive(self, twist: PlanarTwist) -> None:
        """A period at a velocity, as fast as the base can follow."""
        dv, dw = LIMITS.max_acceleration * PERIOD, LIMITS.max_angular_acceleration * PERIOD
        v = self.twist.vx + min(max(twist.vx - self.twist.vx, -dv), dv)
        u = self.twist.vy + min(max(twist.vy - self.twist.vy, -dv), dv)
        w = self.twist.wz + min(max(twist.wz - self.twist.wz, -dw), dw)
        self.twist = PlanarTwist(v, u, w)
        self.pose = self.pose @ SE2.exp([v * PERIOD, u * PERIOD, w * PERIOD])
        self.time = round(self.time + PERIOD, 9)
        self.collisions += not self.world.is_free(self.pose @ Footprint(CORNERS).sample_border(CELL / 2))

    def run(self, task, seconds: float):
        """Drive until the task ends; returns its error, or None."""
        while self.time < seconds:
            try:
                twist = task.compute_command(self.state())
            except NavigationError as error:
                return error
            self.commands.append(ZERO_TWIST if twist is None else twist)
            if twist is None:
                return None
            self.drive(twist)
        raise AssertionError(f"the task has not ended after {seconds} s, at {self.pose}")
