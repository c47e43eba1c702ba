"""Small worlds of cells in which a kinematic robot drives by what its laser shows."""

import math
from dataclasses import replace

import numpy as np

from roboyard.control import STANDSTILL, PlanarTwist
from roboyard.geometry import SE2
from roboyard.grids import GridFrame, OccupancyGrid, cast_rays
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
OUTLINE = np.array([[0.2, 0.15], [-0.2, 0.15], [-0.2, -0.15], [0.2, -0.15]])
LIMITS = MotionLimits(forward=0.6, backward=0.2, turn=1.5, acceleration=1.5, turn_acceleration=4.0)
BODY = Body(Footprint(OUTLINE + np.sign(OUTLINE) * 0.03), Footprint(OUTLINE), LIMITS, PERIOD)
"""Planned with a little more room than the robot takes."""
OMNI = replace(BODY, limits=replace(LIMITS, sideways=0.4))
"""The same with wheels that go sideways too."""
_ANGLES = np.linspace(-math.pi, math.pi, 180, endpoint=False)


def room(width: float, height: float) -> np.ndarray:
    """Free cells within walls."""
    cells = np.zeros((round(height / CELL), round(width / CELL)), dtype=bool)
    cells[[0, -1]] = cells[:, [0, -1]] = True
    return cells


class Yard:
    """A robot among true obstacles, with a map that may not know them all."""

    def __init__(
        self, true: np.ndarray, start: SE2, mapped: np.ndarray | None = None, body: Body = BODY, **settings
    ) -> None:
        self.true, self.pose, self.time, self.twist = true.copy(), start, 0.0, STANDSTILL
        self.frame = GridFrame(CELL, true.shape)
        self.settings = NavigatorSettings(**settings)
        self.surroundings = Surroundings(self.settings.costmap, BODY.footprint)
        known = true if mapped is None else mapped
        self.surroundings.take_map(OccupancyGrid(np.where(known, 100, 0).astype(np.int8), self.frame))
        controller = make_controller(self.settings.controller, body, self.settings.tolerance, reverse=False)
        planner = make_planner(self.settings.planner, BODY.footprint, self.settings.smoothing)
        self.driver = Driver(planner, controller, body, self.surroundings, self.settings)
        self.touched, self.commands = 0, []

    def see(self) -> None:
        rays = np.column_stack(
            [np.full(180, self.pose.x / CELL), np.full(180, self.pose.y / CELL), _ANGLES + self.pose.theta]
        )
        ranges = cast_rays(self.true, rays, 8.0 / CELL) * CELL
        ways = np.column_stack([np.cos(rays[:, 2]), np.sin(rays[:, 2])])
        ends = np.column_stack([self.pose.xy + (ranges[:, None] + 1e-3) * ways, np.full(180, 0.2)])
        seen = Observation(np.array([*self.pose.xy, 0.2]), ends, ranges < 7.9)
        self.surroundings.see({"obstacles": [seen]}, SE2.identity())

    def now(self) -> Situation:
        self.see()
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
        cells = self.frame.cells(self.pose @ Footprint(OUTLINE).border(CELL / 2))
        self.touched += int(self.true[cells[:, 0], cells[:, 1]].any())

    def run(self, task, seconds: float):
        """Drive until the task ends; its error, or None."""
        while self.time < seconds:
            try:
                twist = task.step(self.now())
            except NavigationError as error:
                return error
            self.commands.append(STANDSTILL if twist is None else twist)
            if twist is None:
                return None
            self.drive(twist)
        raise AssertionError(f"not over after {seconds} s, at {self.pose}")
