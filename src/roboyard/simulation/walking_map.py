"""Where people can walk in a simulated world: straight, or around obstacles, people and robots."""

from __future__ import annotations

import math
from collections.abc import Iterable
from functools import reduce
from typing import NamedTuple

import mujoco
import numpy as np
from numpy.typing import NDArray

from roboyard.compute import expect_kernels
from roboyard.geometry.arrays import Array
from roboyard.grids.distance_field import distance_transform, squared_distance_transform
from roboyard.people.walking_path import (
    WALKING_ACCELERATION,
    PersonGoalError,
    WalkingPath,
    compute_line_cost,
    find_path,
)
from roboyard.physics.kernels.compliant_bodies import START_POSITION, TARGET_POSITION
from roboyard.simulation.ground_truth_maps import make_floor_plan, static_geom_heights
from roboyard.simulation.simulation import Simulation

Position2 = tuple[float, float]
CUT_HEIGHTS = (0.2, 0.6, 1.1)
"""At which people would touch something [m]; what is too thin for any of them is cut at a height of its own."""
_HEADROOM = 1.7
"""What hangs higher is over people's heads [m]."""
_CUT_DEPTH = 1e-3
"""So far below its top something thin is cut, at most [m]."""
WALKING_CLEARANCE = 0.20
"""Half of the width that a person needs [m]."""
RESOLUTION = 0.05
_MAP_MARGIN = 2.0
_START_RADIUS = 0.5
"""Radius around the start in which obstacles closer than `WALKING_CLEARANCE` are accepted [m]."""
_COMFORTABLE_CLEARANCE = 0.5
"""Clearance beyond which obstacles cost nothing [m]."""
_NARROW_COST = 3.0
"""What the narrowest way costs, in easy ones."""
_LEAVING_COST = 20.0
"""What leaving something costs that is too close."""
_AVOIDANCE_RADII = {"person": 0.55, "robot": 0.6}
"""Distance that people keep, where possible, from the center of a standing person or of a robot [m]."""
_MAX_STANDING_MOTION = 1e-3
"""Whose middle moves less from one of their steps to the next stands [m]."""
_CROSSING_COST = 8.0
"""What it costs to get through there."""
_MAX_CELLS = 25_000_000


class ClearanceGrid(NamedTuple):
    """A world cut at `choose_cut_heights`.

    Attributes:
        clearance: (rows, columns) how far what stands still is from each cell's middle [m].
        origin: Its corner [m].
    """

    clearance: NDArray[np.floating]
    origin: Position2


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


class WalkingMap:
    """The ways of a world; it is cut when they are first asked for, and anew when models come or go."""

    def __init__(self, simulation: Simulation) -> None:
        expect_kernels(squared_distance_transform)
        self._simulation = simulation
        self._cached_clearance: tuple[mujoco.MjModel, ClearanceGrid] | None = None

    def plan_path(self, start: Position2, end: Position2, name: str = "") -> WalkingPath:
        """How to walk from one place to another [m]: straight, or round what stands there, robots and people too.

        People and robots that drive are gone round where there is room, and not taken for walls: they move on.

        Args:
            start: Where.
            end: Where to.
            name: Model of the walking person, which is no obstacle.

        Raises:
            PersonGoalError: something stands at the end, or there is no way.
        """
        blockage, obstacles = self.explain_blockage(start, end), self._find_avoided_bodies(name)
        straight = np.array([start, end], dtype=np.float64)
        if not blockage and not any(_passes_near(straight, position, radius) for position, radius in obstacles):
            return WalkingPath(straight, WALKING_ACCELERATION)
        if blockage and self.explain_blockage(end, end):
            raise PersonGoalError(f"({end[0]:.2f}, {end[1]:.2f}) cannot be reached: {blockage}", "unreachable")
        costs, origin = self._compute_costs(start, end, obstacles)
        cells = find_path(costs, _cell_of(start, origin), _cell_of(end, origin))
        if not len(cells):
            raise PersonGoalError(
                f"({end[0]:.2f}, {end[1]:.2f}) cannot be reached: {blockage}, and no way leads round it", "unreachable"
            )
        corners = np.array(origin) + RESOLUTION * (cells[:, ::-1] + 0.5)
        corners[0], corners[-1] = start, end

        def is_free(positions: Array) -> bool:
            rows = (positions - origin) / RESOLUTION - 0.5
            return all(
                math.isfinite(compute_line_cost(costs, a[1], a[0], b[1], b[0]))
                for a, b in zip(rows.tolist(), rows[1:].tolist(), strict=False)
            )

        return WalkingPath.with_rounded_corners(corners, WALKING_ACCELERATION, is_free)

    def explain_blockage(self, start: Position2, end: Position2) -> str:
        """Explain why there is no straight path between two positions [m]; empty: there is one."""
        clearance, origin = self._compute_clearance()
        rows, columns = clearance.shape
        length = math.dist(start, end)
        for s in np.linspace(0.0, length, max(math.ceil(length / (0.5 * RESOLUTION)), 1) + 1)[::-1].tolist():
            fraction = s / length if length else 0.0
            x, y = (a + fraction * (b - a) for a, b in zip(start, end, strict=True))
            row, column = _cell_of((x, y), origin)
            if not (0 <= row < rows and 0 <= column < columns) or clearance[row, column] >= WALKING_CLEARANCE:
                continue
            if s < length and s < _START_RADIUS:
                continue
            return f"something stands at ({x:.2f}, {y:.2f})"
        return ""

    def nearest_obstacle(self, position: Position2) -> Position2 | None:
        """The place of what stands nearest, roughly, within two metres [m]; None: nothing does."""
        clearance, origin = self._compute_clearance()
        k, n = _cell_of(position, origin)
        if (
            not (1 <= k < clearance.shape[0] - 1 and 1 <= n < clearance.shape[1] - 1)
            or not clearance[k, n] < _MAP_MARGIN
        ):
            return None
        y = float(clearance[k + 1, n] - clearance[k - 1, n])
        x = float(clearance[k, n + 1] - clearance[k, n - 1])
        length = math.hypot(x, y)
        if length < 1e-9:
            return None
        scale = float(clearance[k, n]) / length
        return position[0] - scale * x, position[1] - scale * y

    # -- what stands there ---------------------------------------------------------------------------------------------
    def _compute_clearance(self) -> ClearanceGrid:
        model = self._simulation.model
        if self._cached_clearance is None or self._cached_clearance[0] is not model:
            heights = choose_cut_heights(static_geom_heights(model))
            extents = [
                make_floor_plan(model, height=height, resolution=0.5, margin=_MAP_MARGIN).extent for height in heights
            ]
            low_x, high_x = min(f[0] for f in extents), max(f[1] for f in extents)
            low_y, high_y = min(f[2] for f in extents), max(f[3] for f in extents)
            bounds = (low_x, high_x, low_y, high_y)
            plans = [make_floor_plan(model, height=h, resolution=RESOLUTION, bounds=bounds).occupied for h in heights]
            is_occupied = reduce(np.logical_or, plans)
            clearance = (
                np.full(is_occupied.shape, math.inf)
                if not is_occupied.any()
                else distance_transform(is_occupied, RESOLUTION)
            )
            self._cached_clearance = model, ClearanceGrid(clearance, (low_x, low_y))
        return self._cached_clearance[1]

    def _find_avoided_bodies(self, name: str) -> list[tuple[Position2, float]]:
        """Where people stand and robots are that can drive, and how far to keep off each."""
        simulation, found = self._simulation, []
        bodies, model = simulation.compliant_bodies, simulation.model
        for model_name, rows in bodies.rows.items():
            pelvis = next(iter(rows.values()))
            part, (x, y, _) = bodies.parts[pelvis], bodies.positions[pelvis].tolist()
            if (
                model_name != name
                and np.linalg.norm(
                    part[TARGET_POSITION : TARGET_POSITION + 2] - part[START_POSITION : START_POSITION + 2]
                )
                < _MAX_STANDING_MOTION
            ):
                found.append(((x, y), _AVOIDANCE_RADII["person"]))
        for model_name, handle in simulation.models.items():
            joint = int(model.body_jntadr[simulation.addresses(model_name).bodies[0]]) if handle.is_robot else -1
            if joint >= 0 and model.jnt_type[joint] == mujoco.mjtJoint.mjJNT_FREE:
                x, y, _ = simulation.ground_truth(model_name).pose.xyz
                found.append(((float(x), float(y)), _AVOIDANCE_RADII["robot"]))
        return found

    def _compute_costs(
        self, start: Position2, end: Position2, obstacles: Iterable[tuple[Position2, float]]
    ) -> tuple[Array, Position2]:
        """What walking over each cell costs, of a grid that also holds both ends of a way, and its corner.

        Raises PersonGoalError where that would be a whole country.
        """
        clearance_grid = self._compute_clearance()
        rows, columns = clearance_grid.clearance.shape
        low = [
            math.floor((min(a, b, o + _MAP_MARGIN) - _MAP_MARGIN - o) / RESOLUTION)
            for a, b, o in zip(start, end, clearance_grid.origin, strict=True)
        ]
        high = [
            max(size, math.ceil((max(a, b) + _MAP_MARGIN - o) / RESOLUTION))
            for a, b, o, size in zip(start, end, clearance_grid.origin, (columns, rows), strict=True)
        ]
        width, height = high[0] - low[0], high[1] - low[1]
        if width * height > _MAX_CELLS:
            raise PersonGoalError(f"({end[0]:g}, {end[1]:g}) is too far to look for a way", "unreachable")
        clearance = np.full((height, width), math.inf)
        clearance[-low[1] : rows - low[1], -low[0] : columns - low[0]] = clearance_grid.clearance
        origin = clearance_grid.origin[0] + RESOLUTION * low[0], clearance_grid.origin[1] + RESOLUTION * low[1]
        narrowness = np.clip(
            (_COMFORTABLE_CLEARANCE - clearance) / (_COMFORTABLE_CLEARANCE - WALKING_CLEARANCE), 0.0, 1.0
        )
        costs = 1.0 + (_NARROW_COST - 1.0) * narrowness**2
        x, y = (o + RESOLUTION * (np.arange(n) + 0.5) for o, n in zip(origin, (width, height), strict=True))
        for (center_x, center_y), radius in obstacles:
            costs[np.hypot(x[None] - center_x, y[:, None] - center_y) < radius] += _CROSSING_COST
        is_near_start = np.hypot(x[None] - start[0], y[:, None] - start[1]) < _START_RADIUS
        costs[clearance < WALKING_CLEARANCE] = math.inf
        costs[is_near_start & (clearance < WALKING_CLEARANCE) & (clearance > 0.0)] = _LEAVING_COST
        row, column = _cell_of(start, origin)
        costs[row, column] = min(costs[row, column], _LEAVING_COST)
        return costs, origin


def _cell_of(position: Position2, origin: Position2) -> tuple[int, int]:
    """Row and column."""
    return math.floor((position[1] - origin[1]) / RESOLUTION), math.floor((position[0] - origin[0]) / RESOLUTION)


def _passes_near(line: Array, position: Position2, radius: float) -> bool:
    """Whether a straight way (2, 2) comes as near to a place, which is at neither of its ends."""
    displacement, center = line[1] - line[0], np.asarray(position)
    fraction = float(
        np.clip(np.dot(center - line[0], displacement) / max(float(displacement @ displacement), 1e-12), 0.0, 1.0)
    )
    distance = float(np.linalg.norm(line[0] + fraction * displacement - center))
    return distance < radius and min(float(np.linalg.norm(end - center)) for end in line) > distance + 1e-9
