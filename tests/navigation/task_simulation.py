"""Rooms in which a navigation task drives a kinematic robot by what its laser shows, without a bus."""

import math
from dataclasses import replace

import numpy as np
from tests.harness.robots import OUTLINE, GridWorld

from roboyard.control import STANDSTILL, PlanarTwist
from roboyard.geometry import SE2
from roboyard.grids import OccupancyGrid
from roboyard.navigation import Footprint, MotionLimits, NavigationError, Observation
from roboyard.navigation.driving import (
    Body,
    Driver,
    NavigatorSettings,
    Situation,
    Surroundings,
    make_controller,
    make_planner,
)

PERIOD = 0.1
CELL = 0.05
CORNERS = np.array(OUTLINE)
LIMITS = MotionLimits(forward=0.6, backward=0.2, turn=1.5, acceleration=1.5, turn_acceleration=4.0)
BODY = Body(Footprint(CORNERS + np.sign(CORNERS) * 0.03), Footprint(CORNERS), LIMITS, PERIOD)
"""Planned with a little more room than the robot takes."""
OMNI = replace(BODY, limits=replace(LIMITS, sideways=0.4))
"""The same with wheels that go sideways too."""
_ANGLES = np.linspace(-math.pi, math.pi, 180, endpoint=False)


def room_walls(width: float, height: float) -> np.ndarray:
    """The cells of an empty room [m]; True is solid."""
    return GridWorld.room(width, height, CELL).walls


class TaskSimulation:
    """A robot among true obstacles, with a map that may not know them all."""

    def __init__(
        self, walls: np.ndarray, start: SE2, mapped: np.ndarray | None = None, body: Body = BODY, **settings
    ) -> None:
        self.world, self.pose, self.time, self.twist = GridWorld(walls, CELL), start, 0.0, STANDSTILL
        self.frame = self.world.frame
        self.settings = NavigatorSettings(**settings)
        self.surroundings = Surroundings(self.settings.costmap, BODY.footprint)
        known = walls if mapped is None else mapped
        self.surroundings.take_map(OccupancyGrid(np.where(known, 100, 0).astype(np.int8), self.frame))
        controller = make_controller(self.settings.controller, body, self.settings.tolerance, reverse=False)
        planner = make_planner(self.settings.planner, BODY.footprint, self.settings.smoothing)
        self.driver = Driver(planner, controller, body, self.surroundings, self.settings)
        self.collisions, self.commands = 0, []

    def observe(self) -> None:
        """Give the costmaps a scan from where the robot is."""
        ranges = np.minimum(self.world.ranges(self.pose, _ANGLES), 8.0)
        directions = np.column_stack([np.cos(_ANGLES + self.pose.theta), np.sin(_ANGLES + self.pose.theta)])
        ends = np.column_stack([self.pose.xy + (ranges[:, None] + 1e-3) * directions, np.full(180, 0.2)])
        seen = Observation(np.array([*self.pose.xy, 0.2]), ends, ranges < 7.9)
        self.surroundings.see({"obstacles": [seen]}, SE2.identity())

    def situation(self) -> Situation:
        """Observe, and return what a task decides by."""
        self.observe()
        self.surroundings.move(self.pose, SE2.identity())
        near = self.surroundings.near_costs(SE2.identity())
        return Situation(self.time, self.pose, self.twist, near)

    def drive(self, twist: PlanarTwist) -> None:
        """A period at a velocity, as fast as the base can follow."""
        dv, dw = LIMITS.acceleration * PERIOD, LIMITS.turn_acceleration * PERIOD
        v = self.twist.vx + min(max(twist.vx - self.twist.vx, -dv), dv)
        u = self.twist.vy + min(max(twist.vy - self.twist.vy, -dv), dv)
        w = self.twist.wz + min(max(twist.wz - self.twist.wz, -dw), dw)
        self.twist = PlanarTwist(v, u, w)
        self.pose = self.pose @ SE2.exp([v * PERIOD, u * PERIOD, w * PERIOD])
        self.time = round(self.time + PERIOD, 9)
        self.collisions += not self.world.is_free(self.pose @ Footprint(CORNERS).border(CELL / 2))

    def run(self, task, seconds: float):
        """Drive until the task ends; returns its error, or None."""
        while self.time < seconds:
            try:
                twist = task.step(self.situation())
            except NavigationError as error:
                return error
            self.commands.append(STANDSTILL if twist is None else twist)
            if twist is None:
                return None
            self.drive(twist)
        raise AssertionError(f"the task has not ended after {seconds} s, at {self.pose}")
