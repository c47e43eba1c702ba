"""The walking map of a simulation: where people can walk in its world, and whom they walk around."""

from __future__ import annotations

import math
from functools import reduce

import mujoco
import numpy as np

from roboyard.compute import expect_kernels
from roboyard.geometry.arrays import Array
from roboyard.grids.distance_field import distance_transform, squared_distance_transform
from roboyard.people.walking import (
    GRID_RESOLUTION,
    MAP_MARGIN,
    Position2,
    WalkingMap,
    WalkingObstacle,
    WalkingPath,
)
from roboyard.physics.kernels.compliant_bodies import START_POSITION, TARGET_POSITION
from roboyard.physics.world import PhysicsWorld
from roboyard.simulation.ground_truth_maps import make_floor_plan, static_geom_heights
from roboyard.simulation.simulation import Simulation

CUT_HEIGHTS = (0.2, 0.6, 1.1)
"""At which people would touch something [m]; what is too thin for any of them is cut at a height of its own."""
_HEADROOM = 1.7
"""Objects that hang higher are above people's heads [m]."""
_CUT_DEPTH = 1e-3
"""Thin objects are cut this far below their tops, at most [m]."""
_AVOIDANCE_RADII = {"person": 0.55, "robot": 0.6}
"""Distance that people keep, where possible, from the center of a standing person or of a robot [m]."""
_MAX_STANDING_MOTION = 1e-3
"""A person stands whose pelvis moves less than this from one of their steps to the next [m]."""


def choose_cut_heights(spans: Array) -> list[float]:
    """`CUT_HEIGHTS`, and as few others as it takes to meet everything between the lowest of them and people's heads.

    Args:
        spans: (n, 2) lowest and highest point of each object [m].
    """
    heights = list(CUT_HEIGHTS)
    for low, high in sorted(spans.tolist(), key=lambda span: span[1]):
        if high > CUT_HEIGHTS[0] and low < _HEADROOM and not any(low < height < high for height in heights):
            heights.append(high - min(_CUT_DEPTH, 0.5 * (high - low)))
    return heights


def make_walking_map(model: mujoco.MjModel) -> WalkingMap:
    """The walking map of a compiled world: its static geoms, cut at `choose_cut_heights`."""
    heights = choose_cut_heights(static_geom_heights(model))
    extents = [make_floor_plan(model, height=height, resolution=0.5, margin=MAP_MARGIN).extent for height in heights]
    low_x, high_x = min(f[0] for f in extents), max(f[1] for f in extents)
    low_y, high_y = min(f[2] for f in extents), max(f[3] for f in extents)
    bounds = (low_x, high_x, low_y, high_y)
    plans = [make_floor_plan(model, height=h, resolution=GRID_RESOLUTION, bounds=bounds).occupied for h in heights]
    is_occupied = reduce(np.logical_or, plans)
    clearance = (
        np.full(is_occupied.shape, math.inf)
        if not is_occupied.any()
        else distance_transform(is_occupied, GRID_RESOLUTION)
    )
    return WalkingMap(clearance, (low_x, low_y))


def find_standing_people(world: PhysicsWorld, excluded: str = "") -> list[WalkingObstacle]:
    """People of a world who stand, other than the model ``excluded``."""
    bodies, found = world.compliant_bodies, []
    for name, rows in bodies.rows.items():
        pelvis = next(iter(rows.values()))
        part, (x, y, _) = bodies.parts[pelvis], bodies.positions[pelvis].tolist()
        motion = part[TARGET_POSITION : TARGET_POSITION + 2] - part[START_POSITION : START_POSITION + 2]
        if name != excluded and np.linalg.norm(motion) < _MAX_STANDING_MOTION:
            found.append(WalkingObstacle((x, y), _AVOIDANCE_RADII["person"]))
    return found


def find_mobile_robots(simulation: Simulation) -> list[WalkingObstacle]:
    """Robots of a simulation with a free root link, which can drive."""
    world, found = simulation.world, []
    for name, handle in simulation.models.items():
        joint = int(world.model.body_jntadr[world.addresses(name).bodies[0]]) if handle.is_robot else -1
        if joint >= 0 and world.model.jnt_type[joint] == mujoco.mjtJoint.mjJNT_FREE:
            x, y, _ = world.ground_truth(name, with_contacts=False).pose.xyz
            found.append(WalkingObstacle((float(x), float(y)), _AVOIDANCE_RADII["robot"]))
    return found


class SimulationWalkingMap:
    """The walking map of a simulation: it is made on first use, and made again after models were added or removed.

    Args:
        simulation: The simulation in whose world people walk.
    """

    def __init__(self, simulation: Simulation) -> None:
        expect_kernels(squared_distance_transform)
        self._simulation = simulation
        self._cached_map: tuple[mujoco.MjModel, WalkingMap] | None = None

    @property
    def walking_map(self) -> WalkingMap:
        """The map of the present world."""
        model = self._simulation.world.model
        if self._cached_map is None or self._cached_map[0] is not model:
            self._cached_map = model, make_walking_map(model)
        return self._cached_map[1]

    def plan_path(self, start: Position2, end: Position2, name: str = "") -> WalkingPath:
        """Plan a path as `WalkingMap.plan_path` does, around standing people and robots; ``name``: who walks.

        Raises:
            PersonGoalError: the end is occupied, or there is no path.
        """
        obstacles = [*find_standing_people(self._simulation.world, name), *find_mobile_robots(self._simulation)]
        return self.walking_map.plan_path(start, end, obstacles)
