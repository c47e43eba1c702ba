"""Hybrid A* over motions that a base can drive (Dolgov, Thrun, Montemerlo, Diebel 2010), and a state lattice."""

from __future__ import annotations

import heapq
import math
from dataclasses import dataclass
from enum import IntEnum
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from roboyard.compute import kernel
from roboyard.config import Config, check, parameter
from roboyard.geometry import SE2, polygons
from roboyard.grids import distance_transform
from roboyard.navigation.costmap import LETHAL, Costmap
from roboyard.navigation.errors import GoalOccupiedError, NoPathError, SearchBudgetExceededError, StartOccupiedError
from roboyard.navigation.footprint import Footprint
from roboyard.navigation.path import Path
from roboyard.navigation.planners.cost_grid import example_grid
from roboyard.navigation.planners.fast_marching import propagate_wave
from roboyard.navigation.planners.planner import (
    TraversalCosts,
    evaluate_path,
    polygon_clearance,
    validate_start_and_goal,
)
from roboyard.navigation.planners.reeds_shepp import (
    CollisionMap,
    DriveType,
    analytic_expansion,
    mean_motion_weight,
    write_motion_pose,
)

_EMPTY_SLOT = np.int64(-1)
_HASH_FACTOR = np.uint64(0x9E3779B97F4A7C15)
_CHECK_SPACING = 0.9
_NEAR_RADII = 12.0
"""Distance to the goal within which the heuristic computes the path in free space [turning radii]; farther away it
hardly differs from the distance around obstacles."""
_HEURISTIC_WEIGHT = 1.2
"""Factor of the heuristic: a path costs at most so many times the optimum, and the search expands far fewer poses."""
_MAX_EXPANSION_MOTIONS = 5
"""Largest number of motions of an analytic expansion."""


class SearchStatus(IntEnum):
    """Outcome of a search."""

    FOUND = 0
    NOT_FOUND = 1
    """No sequence of motions leads to the goal."""
    BUDGET_EXCEEDED = 2
    """The search expanded as many poses as it was allowed to."""


class VehicleModel(NamedTuple):
    """Motions of the vehicle, as the search expands them.

    Attributes:
        drive_type: Motions that the base can execute.
        radius: Minimum turning radius [cells]; of a base that rotates in place, the distance that counts as a rotation
            by one radian.
        heading_stride: Number of headings by which a motion turns.
        n_headings: Number of headings into which the search divides the circle.
    """

    drive_type: DriveType
    radius: float
    heading_stride: int
    n_headings: int


class PenaltyFactors(NamedTuple):
    """Penalties of motions, as the search adds them.

    Attributes:
        reverse: Factor of the cost of a motion backward.
        rotation: Factor of the cost of a motion on an arc.
        direction_change: Cost of a change between forward and backward [cells].
        steering_change: Cost of a change of the curvature [cells].
    """

    reverse: float
    rotation: float
    direction_change: float
    steering_change: float


@kernel
def _find_slot(keys: NDArray[np.int64], key: int) -> int:
    """Return the slot of a key in an open hash table whose size is a power of two, or the slot where it belongs."""
    mask = np.uint64(len(keys) - 1)
    slot = ((np.uint64(key) * _HASH_FACTOR) >> np.uint64(20)) & mask
    while keys[slot] != _EMPTY_SLOT and keys[slot] != key:
        slot = (slot + np.uint64(1)) & mask
    return int(slot)


@kernel
def _grow_table(
    keys: NDArray[np.int64], node_indices: NDArray[np.int64]
) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Return a copy of the hash table with four times as many slots."""
    larger = np.full(4 * len(keys), _EMPTY_SLOT)
    larger_indices = np.empty(len(larger), dtype=np.int64)
    for k in range(len(keys)):
        if keys[k] != _EMPTY_SLOT:
            slot = _find_slot(larger, keys[k])
            larger[slot], larger_indices[slot] = keys[k], node_indices[k]
    return larger, larger_indices


@kernel
def _estimate_remaining_cost(
    pose: NDArray[np.float64],
    goals: NDArray[np.float64],
    arrival_times: NDArray[np.float32],
    vehicle: VehicleModel,
    lengths: NDArray[np.float64],
    angles: NDArray[np.float64],
) -> float:
    """Return a lower bound of the remaining cost: around obstacles in any direction, or by motions in free space."""
    drive_type, radius = vehicle.drive_type, vehicle.radius
    obstacle_cost = float(arrival_times[int(pose[1]) + 1, int(pose[0]) + 1])
    if math.hypot(goals[0, 0] - pose[0], goals[0, 1] - pose[1]) > _NEAR_RADII * radius or len(goals) > 1:
        return obstacle_cost
    return max(obstacle_cost, analytic_expansion(drive_type, radius, pose, goals[0], lengths, angles))


def _example_search() -> list[tuple[object, ...]]:
    collision_map = CollisionMap(np.zeros((3, 3), np.uint8), example_grid(), np.zeros((4, 2)), 0)
    vehicle, penalties = VehicleModel(DriveType.REVERSIBLE, 2.0, 3, 72), PenaltyFactors(1.0, 1.0, 1.0, 1.0)
    times = np.zeros((5, 5), np.float32)
    return [(collision_map, times, np.zeros(3), np.zeros((1, 3)), vehicle, penalties, 10)]


@kernel(examples=_example_search)
def search_motions(
    collision_map: CollisionMap,
    arrival_times: NDArray[np.float32],
    start: NDArray[np.float64],
    goals: NDArray[np.float64],
    vehicle: VehicleModel,
    penalties: PenaltyFactors,
    max_expansions: int,
) -> tuple[SearchStatus, NDArray[np.float64], int]:
    """Find the cheapest sequence of motions from the start to one of the goals (Hybrid A*).

    From each pose the search expands motions that change the heading by ``heading_stride`` headings, and straight ones
    of the same length.  All poses within one cell and one heading count as one node.  From time to time, more often the
    nearer the goal, it tries the shortest path in free space (analytic expansion).

    Args:
        collision_map: Costmap and footprint.
        arrival_times: (rows + 2, columns + 2) cost of the way to the goal from each cell, in any direction [cells].
        start: (3,) pose.
        goals: (n, 3) poses at one position, any of which may be reached.
        vehicle: Motions of the vehicle.
        penalties: Penalties of motions.
        max_expansions: Largest number of poses that the search expands.

    Returns:
        Outcome; motions (n, 2), each a length [cells] and a rotation [rad]; and the number of expanded poses.
    """
    cells, grid = collision_map.cells, collision_map.grid
    footprint_border = collision_map.footprint_border
    drive_type, radius, heading_stride, n_headings = vehicle
    columns = cells.shape[1]
    heading_step = 2.0 * math.pi / n_headings
    motion_angle = heading_stride * heading_step
    motion_length = motion_angle * radius if drive_type != DriveType.DIFFERENTIAL else 2.0
    footprint_radius = 0.0
    for k in range(len(footprint_border)):
        footprint_radius = max(footprint_radius, math.hypot(footprint_border[k, 0], footprint_border[k, 1]))
    # motions: straight, left and right forward; the same backward; rotations in place
    lengths, angles = np.zeros(8), np.zeros(8)
    n_motions = 3 if drive_type == DriveType.FORWARD_ONLY else 6
    for k in range(6):
        lengths[k] = motion_length if k < 3 else -motion_length
        angles[k] = (0.0, motion_angle, -motion_angle)[k % 3] * (1.0 if k < 3 else -1.0)
    if drive_type == DriveType.DIFFERENTIAL:
        angles[1] = angles[4] = heading_step * heading_stride
        angles[2] = angles[5] = -heading_step * heading_stride
        lengths[6] = lengths[7] = 0.0
        angles[6], angles[7] = heading_step * heading_stride, -heading_step * heading_stride
        n_motions = 8
    max_nodes = max_expansions * n_motions + 2
    poses = np.empty((max_nodes, 3))
    costs = np.empty(max_nodes)
    parents = np.empty(max_nodes, dtype=np.int64)
    motions_to = np.empty(max_nodes, dtype=np.int8)
    keys = np.full(1 << 14, _EMPTY_SLOT)
    node_indices = np.empty(len(keys), dtype=np.int64)
    is_closed = np.zeros(max_nodes, dtype=np.bool_)
    expansion_lengths, expansion_angles = np.zeros(_MAX_EXPANSION_MOTIONS), np.zeros(_MAX_EXPANSION_MOTIONS)
    best_lengths, best_angles = np.zeros(_MAX_EXPANSION_MOTIONS), np.zeros(_MAX_EXPANSION_MOTIONS)
    pose = np.empty(3)
    poses[0] = start
    costs[0], parents[0], motions_to[0] = 0.0, -1, -1
    count = 1
    queue: list[tuple[float, int]] = [(0.0, 0)]
    best_cost, best_end = np.inf, -1
    n_expanded, next_expansion = 0, 0
    status = SearchStatus.NOT_FOUND
    while len(queue) > 0:
        estimate, u = heapq.heappop(queue)
        if best_cost <= estimate:
            break
        if is_closed[u]:
            continue
        if n_expanded >= max_expansions:
            status = SearchStatus.BUDGET_EXCEEDED
            break
        is_closed[u] = True
        n_expanded += 1
        if n_expanded >= next_expansion:
            remaining = math.hypot(goals[0, 0] - poses[u, 0], goals[0, 1] - poses[u, 1])
            next_expansion = n_expanded + 1 + int(remaining / (4.0 * motion_length))
            for j in range(len(goals)):
                analytic_expansion(drive_type, radius, poses[u], goals[j], expansion_lengths, expansion_angles)
                cost = costs[u]
                last_length, last_angle = 0.0, 0.0
                if motions_to[u] >= 0:
                    last_length, last_angle = lengths[motions_to[u]], angles[motions_to[u]]
                pose[:] = poses[u]
                for k in range(_MAX_EXPANSION_MOTIONS):
                    length, angle = expansion_lengths[k], expansion_angles[k]
                    if length == 0.0 and angle == 0.0:
                        continue
                    weight = mean_motion_weight(collision_map, pose, length, angle, _CHECK_SPACING, footprint_radius)
                    cost += _penalized_cost(length, angle, weight, radius, last_length, last_angle, penalties)
                    if cost >= best_cost:
                        break
                    write_motion_pose(pose.copy(), length, angle, 1.0, pose)
                    last_length, last_angle = length, angle
                if cost < best_cost:
                    best_cost, best_end = cost, u
                    best_lengths[:] = expansion_lengths
                    best_angles[:] = expansion_angles
        for k in range(n_motions):
            write_motion_pose(poses[u], lengths[k], angles[k], 1.0, pose)
            row, column = math.floor(pose[1]), math.floor(pose[0])
            if row < 0 or column < 0 or row >= cells.shape[0] or column >= columns:
                continue
            if grid.weights[grid.cells[row + 1, column + 1]] == 0.0 or not arrival_times[row + 1, column + 1] < np.inf:
                continue
            heading_index = math.floor(pose[2] / heading_step + 0.5) % n_headings
            key = (np.int64(row) * columns + column) * n_headings + heading_index
            slot = _find_slot(keys, key)
            v = node_indices[slot] if keys[slot] == key else np.int64(-1)
            if v >= 0 and is_closed[v]:
                continue
            last_length, last_angle = 0.0, 0.0
            if motions_to[u] >= 0:
                last_length, last_angle = lengths[motions_to[u]], angles[motions_to[u]]
            min_cost = costs[u] + _penalized_cost(
                lengths[k], angles[k], 1.0, radius, last_length, last_angle, penalties
            )
            if v >= 0 and min_cost >= costs[v]:
                continue
            weight = mean_motion_weight(
                collision_map, poses[u], lengths[k], angles[k], _CHECK_SPACING, footprint_radius
            )
            cost = costs[u] + _penalized_cost(lengths[k], angles[k], weight, radius, last_length, last_angle, penalties)
            if not cost < np.inf or (v >= 0 and cost >= costs[v]):
                continue
            v = count
            count += 1
            keys[slot], node_indices[slot] = key, v
            if 2 * count > len(keys):
                keys, node_indices = _grow_table(keys, node_indices)
            poses[v] = pose
            costs[v], parents[v], motions_to[v] = cost, u, k
            remaining = _estimate_remaining_cost(
                pose, goals, arrival_times, vehicle, expansion_lengths, expansion_angles
            )
            heapq.heappush(queue, (float(cost + _HEURISTIC_WEIGHT * remaining), int(v)))
    if best_end < 0:
        return status, np.empty((0, 2)), n_expanded
    steps = 0
    u = best_end
    while parents[u] >= 0:
        steps += 1
        u = int(parents[u])
    motions = np.empty((steps + _MAX_EXPANSION_MOTIONS, 2))
    u = best_end
    for k in range(steps - 1, -1, -1):
        motions[k, 0], motions[k, 1] = lengths[motions_to[u]], angles[motions_to[u]]
        u = int(parents[u])
    for k in range(_MAX_EXPANSION_MOTIONS):
        if best_lengths[k] != 0.0 or best_angles[k] != 0.0:
            motions[steps, 0], motions[steps, 1] = best_lengths[k], best_angles[k]
            steps += 1
    return SearchStatus.FOUND, motions[:steps], n_expanded


@kernel
def _penalized_cost(
    length: float, angle: float, weight: float, radius: float, last_length: float, last_angle: float,
    penalties: PenaltyFactors,
) -> float:  # fmt: skip
    """Return the cost of a motion after another one [cells]."""
    distance = abs(length) if length != 0.0 else radius * abs(angle)
    cost = distance * weight
    if length < 0.0:
        cost *= penalties.reverse
    if angle != 0.0:
        cost *= penalties.rotation
    if length * last_length < 0.0:
        cost += penalties.direction_change
    curvature = angle / length if length != 0.0 else np.sign(angle)
    last_curvature = last_angle / last_length if last_length != 0.0 else np.sign(last_angle)
    if abs(curvature - last_curvature) > 1e-9:
        cost += penalties.steering_change
    return cost


_FOOTPRINT_MARGIN = 0.3
"""Padding of the outline [cells]: with points half a cell apart, no corner of a lethal cell lies between two points
without being found."""


class MotionPenalties(Config):
    """Costs of motions beside their length."""

    reverse: float = parameter(
        2.0,
        low=1.0,
        high=100.0,
        aliases=("reverse_penalty",),
        doc="Cost of a distance backward per cost of the same distance forward.",
    )
    rotation: float = parameter(
        1.05,
        low=1.0,
        high=100.0,
        aliases=("non_straight_penalty",),
        doc="Cost of a distance on a curve per cost of the same distance straight.",
    )
    direction_change: float = parameter(
        0.5, unit="m", low=0.0, high=100.0, doc="Cost of a change between forward and backward, as a distance."
    )
    steering_change: float = parameter(
        0.05,
        unit="m",
        low=0.0,
        high=100.0,
        aliases=("change_penalty",),
        doc="Cost of a change of the steering angle, as a distance.",
    )


@dataclass(frozen=True, slots=True)
class HybridAStarPlanner:
    """Planner of paths that a base can drive as they are, with its whole footprint free.

    With a turning radius it plans for a car (Hybrid A*), whose paths have no smaller radius.  Without one the robot
    rotates in place (a state lattice).

    Attributes:
        footprint: Footprint of the robot.
        turning_radius: Radius of the tightest curve of the base's origin [m]; 0: the base rotates in place.
        allow_reverse: Whether a car may drive backward.
        traversal: Traversal costs.
        penalties: Costs of motions beside their length.
        heading_tolerance: Largest difference to the goal's heading [rad]; π and more: any heading.
        n_headings: Number of headings into which the search divides the circle.
        max_expansions: Largest number of poses that the search expands.

    Raises:
        ConfigError: A number is out of its bounds.
    """

    footprint: Footprint
    turning_radius: float = parameter(
        0.5,
        unit="m",
        low=0.0,
        high=1000.0,
        aliases=("minimum_turning_radius",),
        doc="Radius of the tightest curve; 0: the base rotates in place.",
    )
    allow_reverse: bool = parameter(
        True, aliases=("motion_model_for_search",), doc="Drive backward too (REEDS_SHEPP), or only forward (DUBIN)."
    )
    traversal: TraversalCosts = parameter(factory=TraversalCosts, doc="Traversal costs.")
    penalties: MotionPenalties = parameter(factory=MotionPenalties, doc="Costs of motions beside their length.")
    heading_tolerance: float = parameter(
        0.0,
        unit="rad",
        low=0.0,
        high=100.0,
        aliases=("goal_heading_mode",),
        doc="Largest difference to the goal's heading; pi and more: any heading.",
    )
    n_headings: int = parameter(
        72, low=8, high=720, aliases=("angle_quantization_bins",), doc="Number of headings of the search."
    )
    max_expansions: int = parameter(
        200_000, low=1, high=10_000_000, aliases=("max_iterations",), doc="Largest number of expanded poses."
    )

    def __post_init__(self) -> None:
        check(self, "HybridAStarPlanner", skip=("footprint",))

    def plan(self, costmap: Costmap, start: SE2, goal: SE2) -> Path:
        """Plan a path that the base can drive; see the contract in `GlobalPlanner.plan`.

        Raises:
            NavigationError: There is no such path; the class names the cause.
        """
        first, last = validate_start_and_goal(costmap, self.traversal, start, goal)
        self._check_footprint(costmap, start, goal)
        resolution = costmap.geometry.resolution
        grid = self.traversal.make_grid(costmap.cells)
        arrival_times = np.full(grid.cells.shape, np.inf, dtype=np.float32)
        propagate_wave(grid, arrival_times.ravel(), grid.flat_index(last), -1)
        if not np.isfinite(arrival_times[first[0] + 1, first[1] + 1]):
            raise NoPathError(
                "no collision-free path from start to goal", valid="a goal on the robot's side of the obstacles"
            )
        radius = (self.turning_radius or max(self.footprint.inscribed_radius, resolution)) / resolution
        drive_type, penalties = self._drive_type, self.penalties
        collision_map = CollisionMap(
            costmap.cells, grid, self._padded_footprint(resolution), self._possibly_inscribed_cost(costmap)
        )
        vehicle = VehicleModel(drive_type, radius, self._heading_stride(radius), self.n_headings)
        penalty_factors = PenaltyFactors(
            penalties.reverse,
            penalties.rotation,
            penalties.direction_change / resolution,
            penalties.steering_change / resolution,
        )
        status, motions, _ = search_motions(
            collision_map,
            arrival_times,
            _to_grid_pose(costmap, start),
            self._goal_poses(_to_grid_pose(costmap, goal)),
            vehicle,
            penalty_factors,
            self.max_expansions,
        )
        if status == SearchStatus.BUDGET_EXCEEDED:
            raise SearchBudgetExceededError(
                f"no path was found from {self.max_expansions} poses", valid="more expansions, or a nearer goal"
            )
        if status != SearchStatus.FOUND:
            raise NoPathError(
                "a path exists from start to goal, but none that this robot can drive",
                valid="a goal with more room about it, or another heading",
            )
        return self._make_path(costmap, motions, start, goal)

    @property
    def _drive_type(self) -> DriveType:
        if not self.turning_radius:
            return DriveType.DIFFERENTIAL
        return DriveType.REVERSIBLE if self.allow_reverse else DriveType.FORWARD_ONLY

    def _goal_poses(self, goal: NDArray[np.float64]) -> NDArray[np.float64]:
        """Return the poses (n, 3) at which the path may end, that of the goal first."""
        if not self.heading_tolerance:
            return goal[None]
        count = min(math.ceil(self.heading_tolerance / math.radians(15.0)), 12)
        offsets = np.arange(1, count + 1) / count * min(self.heading_tolerance, math.pi)
        heading_offsets = np.concatenate([[0.0], offsets, -offsets])
        return np.column_stack([np.repeat(goal[None, :2], len(heading_offsets), axis=0), goal[2] + heading_offsets])

    def _heading_stride(self, radius: float) -> int:
        """Return the number of headings by which a motion turns: the smallest with which it leaves its cell."""
        if not self.turning_radius:
            return max(self.n_headings // 24, 1)
        return max(math.ceil(math.sqrt(2.0) / (radius * 2.0 * math.pi / self.n_headings)), 1)

    def _padded_footprint(self, resolution: float) -> NDArray[np.float64]:
        """Return points (n, 2) of the outline, padded by the margin [cells]."""
        corners = polygons.make_counter_clockwise(self.footprint.corners / resolution)
        edges = np.roll(corners, -1, axis=0) - corners
        normals = np.column_stack([edges[:, 1], -edges[:, 0]]) / np.linalg.norm(edges, axis=1)[:, None]
        previous_normals = np.roll(normals, 1, axis=0)
        scale = np.maximum(1.0 + (previous_normals * normals).sum(axis=1), 0.3)[:, None]
        return Footprint(corners + _FOOTPRINT_MARGIN * (previous_normals + normals) / scale).sample_border(0.5)

    def _possibly_inscribed_cost(self, costmap: Costmap) -> int:
        """Return the smallest cost of a cell at which the outline may touch an obstacle."""
        radius_cells = self.footprint.circumscribed_radius / costmap.geometry.resolution + 2.0
        is_near = distance_transform(costmap.cells == LETHAL) <= radius_cells
        border_width = math.ceil(radius_cells)
        is_near[:border_width] = is_near[-border_width:] = True
        is_near[:, :border_width] = is_near[:, -border_width:] = True
        return int(costmap.cells[is_near].min(initial=LETHAL))

    def _check_footprint(self, costmap: Costmap, start: SE2, goal: SE2) -> None:
        """Raise an error if the footprint collides at the start or the goal."""
        for pose, error_type, name in ((start, StartOccupiedError, "start"), (goal, GoalOccupiedError, "goal")):
            if error_type is GoalOccupiedError and self.heading_tolerance:
                continue
            outline = np.array([pose @ corner for corner in self.footprint.corners])
            if polygon_clearance(costmap, outline) <= 0.0:
                location = f"({pose.x:.2f}, {pose.y:.2f}, {pose.theta:.2f})"
                raise error_type(
                    f"at the {name} {location} the robot's outline touches an obstacle or the map's edge",
                    valid="a free place",
                )

    def _make_path(self, costmap: Costmap, motions: NDArray[np.float64], start: SE2, goal: SE2) -> Path:
        poses = [_to_grid_pose(costmap, start)]
        for length, angle in motions:
            count = max(math.ceil(max(abs(length), abs(angle) / 0.1)), 1)
            pieces = np.empty((count, 3))
            for k in range(count):
                write_motion_pose(poses[-1], length, angle, (k + 1) / count, pieces[k])
            poses.extend(pieces)
        grid_poses = np.array(poses)
        T_map_grid, resolution = costmap.geometry.T_map_grid, costmap.geometry.resolution
        xy = T_map_grid @ (grid_poses[:, :2] * resolution)
        theta = np.arctan2(np.sin(grid_poses[:, 2] + T_map_grid.theta), np.cos(grid_poses[:, 2] + T_map_grid.theta))
        map_poses = np.column_stack([xy, theta])
        # the conversion to the grid and back rounds the start and the goal
        map_poses[0] = start.x, start.y, start.theta
        map_poses[-1, :2] = goal.x, goal.y
        if not self.heading_tolerance:
            map_poses[-1, 2] = goal.theta
        return evaluate_path(costmap, map_poses, self.traversal)


def _to_grid_pose(costmap: Costmap, pose: SE2) -> NDArray[np.float64]:
    """Return the pose (3,) in the frame of the grid: x, y [cells] from its corner, and the heading [rad]."""
    T_grid_base = costmap.geometry.T_map_grid.inverse() @ pose
    resolution = costmap.geometry.resolution
    return np.array([T_grid_base.x / resolution, T_grid_base.y / resolution, T_grid_base.theta])
