"""Metrics and report section of an exploration, and its coverage of the reachable floor."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray

from roboyard.compute import expect_kernels
from roboyard.errors import InputError, RoboyardError
from roboyard.evaluation.collector import MessageHandler, Metric, MetricCollector, MetricValue, RobotContext
from roboyard.evaluation.figures import (
    COMMAND,
    MUTED,
    ODOMETRY,
    SCAN,
    TRUTH,
    WALL,
    decimation_slice,
    figure_style,
    new_figure,
    render_svg,
)
from roboyard.evaluation.robot_trace import RobotTrace, configure_time_axis
from roboyard.evaluation.section import ReportSection, SectionContext
from roboyard.evaluation.topics import RobotTopics
from roboyard.geometry import SE2
from roboyard.geometry.arrays import Array
from roboyard.grids import OCCUPIED_THRESHOLD, GridGeometry, OccupancyGrid, distance_transform
from roboyard.grids.distance_field import squared_distance_transform
from roboyard.grids.floor_plan import FloorPlan
from roboyard.grids.regions import label_components
from roboyard.messages.convert.poses import pose_to_xy_yaw
from roboyard.record import Recording


def reachable_area(occupied: ArrayLike, geometry: GridGeometry, start: ArrayLike, radius: float) -> NDArray[np.bool_]:
    """Return the floor that a circular robot can cover.

    Args:
        occupied: (rows, columns) occupied cells by ground truth; the space beyond the grid is occupied.
        geometry: Geometry of the cells.
        start: (2,) position of the robot [m]; if the robot does not fit there, the nearest free cell counts.
        radius: Radius of the robot [m].

    Returns:
        (rows, columns) cells that the robot covers at the positions that it can reach.

    Raises:
        InputError: There is no free cell near the start.
    """
    blocked = np.asarray(occupied, dtype=np.bool_)
    clearance = distance_transform(np.pad(blocked, 1, constant_values=True), geometry.resolution)[1:-1, 1:-1]
    is_free = clearance > radius
    row, column = geometry.cells_of_points(start)
    free_cells = np.argwhere(is_free)
    distances = np.hypot(free_cells[:, 0] - row, free_cells[:, 1] - column)
    if not len(free_cells) or distances.min() * geometry.resolution > 2.0 * radius + 2.0 * geometry.resolution:
        raise InputError(f"a robot of radius {radius} m does not fit at {np.asarray(start)}", valid="a free place")
    labels, _ = label_components(is_free, False)  # four-connected: no path leads between two corners
    start_cell = free_cells[np.argmin(distances)]
    center_cells = labels == labels[start_cell[0], start_cell[1]]
    return np.asarray((distance_transform(center_cells, geometry.resolution) <= radius) & ~blocked)


def coverage_fraction(grid: OccupancyGrid, area: NDArray[np.bool_], geometry: GridGeometry) -> float:
    """Return the fraction of the reachable floor that the map knows.

    Args:
        grid: Map.
        area: (rows, columns) reachable floor, as `reachable_area` returns it.
        geometry: Geometry of the cells of the floor, in the frame of the map.
    """
    points = geometry.cell_centers(np.argwhere(area))
    cells = grid.geometry.cells_of_points(points)
    is_inside = grid.geometry.contains(cells)
    is_known = grid.cells[cells[is_inside, 0], cells[is_inside, 1]] >= 0
    return float(np.count_nonzero(is_known)) / max(len(points), 1)


_COVERAGE_RESOLUTION = 0.05
_FINAL_PHASES = ("done", "failed", "canceled")


class ExplorationMetrics(MetricCollector):
    """Computes the metrics of the last exploration from the status of the explorer, the floor plan and the true track.

    The coverage refers to the floor that a disc of the explorer's radius can cover from the start, by the floor plan at
    the height of the lidar.  It is computed at the end of the exploration or of the run.

    Args:
        robot: The robot; without ground truth there is no coverage.
    """

    metrics = (
        Metric(
            "coverage",
            "ratio",
            "Share of the floor that the robot can reach that its map knows at the end; no value, as of the next "
            "three, of a robot that does not explore.",
            "higher",
            "floor explored",
        ),
        Metric(
            "explored",
            "boolean",
            "Whether the explorer reports that nothing is left and the robot is back.",
            "higher",
        ),
        Metric("exploration_time", "s", "Duration of the exploration until it was over, or so far.", "lower"),
        Metric(
            "return_error",
            "m",
            "Distance between the true poses at its start and its end.",
            "lower",
            "return error",
        ),
    )
    position = 90

    @classmethod
    def create(cls, robot: RobotContext) -> Self:
        """Return the collector of any robot."""
        return cls(robot)

    def __init__(self, robot: RobotContext) -> None:
        self._topics = (robot.topics.truth, robot.topics.exploration, robot.topics.map)
        self._robot = robot
        if robot.truth is not None:
            expect_kernels(squared_distance_transform, label_components)  # of the coverage at the end
        self._true_pose: tuple[float, float, float] | None = None
        self._map: Any = None
        self._status: Any = None
        self._start_ns = self._last_ns = 0
        self._start_pose: tuple[float, float, float] | None = None
        self._end_pose: tuple[float, float, float] | None = None
        self._is_run_finished = False

    def subscriptions(self) -> Mapping[str, MessageHandler]:
        """Return the topics of true odometry, status and map."""
        return dict(zip(self._topics, (self._on_truth, self._on_status, self._on_map), strict=True))

    def _on_truth(self, message: Any, time_ns: int) -> None:
        self._true_pose = pose_to_xy_yaw(message.pose.pose)
        if self._end_pose is None:
            self._last_ns = time_ns

    def _on_map(self, message: Any, time_ns: int) -> None:
        self._map = message

    def _on_status(self, message: Any, time_ns: int) -> None:
        is_finished = message.phase in _FINAL_PHASES
        if self._status is None or (self._status.phase in _FINAL_PHASES and not is_finished):
            self._start_ns, self._start_pose, self._end_pose = time_ns, self._true_pose, None
        self._status = message
        if is_finished and self._end_pose is None:
            self._end_pose, self._last_ns = self._true_pose, time_ns

    def finish(self, time_ns: int) -> None:
        """Compute the coverage, too, from now on."""
        self._is_run_finished = True

    def values(self) -> dict[str, MetricValue]:
        """Return the metrics; none while no explorer publishes, and no coverage without ground truth."""
        values: dict[str, MetricValue] = {}
        if self._status is None or self._start_pose is None or self._true_pose is None:
            return values
        current_pose = self._end_pose or self._true_pose
        values["explored"] = self._status.phase == "done"
        values["exploration_time"] = (self._last_ns - self._start_ns) * 1e-9
        values["return_error"] = SE2(*self._start_pose).distance(SE2(*current_pose))
        if self._is_run_finished or self._end_pose is not None:
            coverage = self._compute_coverage(SE2(*self._start_pose))
            values |= {} if coverage is None else {"coverage": coverage}
        return values

    def save_state(self) -> dict[str, Any]:
        """Return everything but the robot, as plain data."""
        return {key: value for key, value in vars(self).items() if key not in ("_robot", "_topics")}

    def _compute_coverage(self, T_world_base: SE2) -> float | None:
        from roboyard.messages.convert.grids import occupancy_grid_from_msg

        if self._map is None or self._robot.truth is None:
            return None
        try:
            plan = self._robot.truth.floor_plan(self._robot.lidar_height, _COVERAGE_RESOLUTION)
            return coverage_fraction(
                occupancy_grid_from_msg(self._map), *reachable_area_in_map(plan, self._status, T_world_base)
            )
        except RoboyardError:
            return None


def estimate_T_world_map(status: Any, T_world_base: SE2) -> SE2:
    """Return the true pose of the robot's map in the world.

    Args:
        status: A roboyard_msgs/ExplorationStatus, which has the robot's pose in the map at the start.
        T_world_base: True pose at the start.
    """
    return T_world_base @ SE2(*pose_to_xy_yaw(status.start)).inverse()


def reachable_area_in_map(plan: FloorPlan, status: Any, T_world_base: SE2) -> tuple[NDArray[np.bool_], GridGeometry]:
    """Return the floor that the robot can reach (rows, columns), and that grid's geometry in the robot's map.

    Args:
        plan: True level cut of the world.
        status: A roboyard_msgs/ExplorationStatus.
        T_world_base: True pose at the start.

    Raises:
        RoboyardError: The robot does not fit in where it started.
    """
    geometry = GridGeometry(plan.resolution, plan.occupied.shape, SE2(*plan.origin, 0.0))
    area = reachable_area(plan.occupied, geometry, np.array(T_world_base.xy), round(float(status.radius), 6))
    T_map_floor = estimate_T_world_map(status, T_world_base).inverse() @ geometry.T_map_grid
    return area, GridGeometry(geometry.resolution, geometry.shape, T_map_floor)


_WIDTH = 8.6
_N_SNAPSHOTS = 4
_MAX_COVERAGE_SAMPLES = 80
"""Maximum number of maps that the coverage is computed for."""
_DRAWN_CELL_SIZE = 0.1
"""Edge length of a drawn cell; smaller cells would make the page larger [m]."""


@dataclass(frozen=True, slots=True)
class MapSnapshot:
    """A moment of an exploration: time [s], the map, and its frontiers (n, 2) in the map [m]."""

    time: float
    grid: OccupancyGrid
    frontiers: Array


@dataclass(frozen=True, slots=True)
class ExplorationTrace:
    """An exploration over time.

    Attributes:
        T_world_map: True pose of the robot's map.
        snapshots: Some moments, the last one at the end.
        time: (n,) of maps [s].
        coverage: (n,) fraction of the reachable floor that the map knew; empty without a floor plan.
        known_area: (m, 2) time [s] and known free area by the explorer's status [m²].
        goal_times: (k,) times at which the explorer sent another goal [s].
    """

    T_world_map: SE2
    snapshots: tuple[MapSnapshot, ...]
    time: Array
    coverage: Array
    known_area: Array
    goal_times: Array


def exploration_section(context: SectionContext) -> ReportSection | None:
    """Show the growing map and the coverage over time; None if the robot did not explore."""
    exploration = read_exploration_trace(context.recording, context.trace, context.robot.topics, context.floor_plan)
    if exploration is None:
        return None
    note = (
        "The growing map with its frontiers (dots) and the true path so far. Below: the share of the floor within "
        "reach of a robot of this size that the map knew; ticks: the robot set out for another goal."
    )
    figures = (map_figure(context.trace, exploration), coverage_figure(context.trace, exploration))
    return ReportSection("Exploration", figures, note=note)


def read_exploration_trace(
    recording: Recording, trace: RobotTrace, topics: RobotTopics, floor_plan: Callable[[float], FloorPlan] | None
) -> ExplorationTrace | None:
    """Read the exploration of one robot; None if it did not explore, or its maps were not recorded.

    Raises:
        RecordingError: The recording is damaged.
    """
    from roboyard.messages.convert.grids import occupancy_grid_from_msg

    if not {topics.exploration, topics.map} <= set(recording.topics) or not len(trace.truth):
        return None
    statuses = [(item.time_ns * 1e-9, item.message) for item in recording.messages([topics.exploration])]
    maps = [(item.time_ns * 1e-9, item.message) for item in recording.messages([topics.map])]
    if not statuses or not maps:
        return None
    start_time, status = statuses[0]
    start_pose = trace.truth.pose(start_time)
    goal_times = {status.goals_sent: time for time, status in reversed(statuses)}
    sampled_maps = maps[:: -(-len(maps) // _MAX_COVERAGE_SAMPLES)]
    coverages: list[float] = []
    if floor_plan is not None:
        try:
            area = reachable_area_in_map(floor_plan(_COVERAGE_RESOLUTION), status, start_pose)
            coverages = [coverage_fraction(occupancy_grid_from_msg(message), *area) for _, message in sampled_maps]
        except RoboyardError:  # the robot does not fit in where it started
            coverages = []
    ends = np.linspace(start_time, statuses[-1][0], _N_SNAPSHOTS + 1)[1:]
    snapshot_maps = [maps[int(np.searchsorted([time for time, _ in maps], end, side="right")) - 1] for end in ends]
    return ExplorationTrace(
        estimate_T_world_map(status, start_pose),
        tuple(
            MapSnapshot(
                end, occupancy_grid_from_msg(message), _frontiers(recording, f"{topics.namespace}/frontiers", end)
            )
            for end, (_, message) in zip(ends.tolist(), snapshot_maps, strict=True)
        ),
        np.array([time for time, _ in sampled_maps]) if coverages else np.zeros(0),
        np.array(coverages),
        np.array([(time, status.known_area) for time, status in statuses]),
        np.array([time for count, time in sorted(goal_times.items()) if count > 0]),
    )


def _frontiers(recording: Recording, topic: str, end: float) -> Array:
    points: list[tuple[float, float]] = []
    if topic in recording.topics:
        for item in recording.messages([topic], end_ns=round(end * 1e9)):
            first = item.message.markers[0] if item.message.markers else None
            points = [] if first is None else [(point.x, point.y) for point in first.points]
    return np.asarray(points, dtype=np.float64).reshape(-1, 2)


def map_figure(trace: RobotTrace, exploration: ExplorationTrace) -> str:
    """Draw the map at some moments with its frontiers and the true path so far [m]."""
    with figure_style():
        corners = np.vstack([_known_corners(snapshot.grid) for snapshot in exploration.snapshots])
        world = exploration.T_world_map @ corners
        (left, low), (right, high) = world.min(axis=0), world.max(axis=0)
        height = min(max(0.5 * _WIDTH * (high - low) / (right - left) + 0.5, 1.6), 4.0)
        figure, panels = new_figure(_WIDTH, 2.0 * height, rows=2, columns=2)
        truth = trace.truth
        for axes, snapshot in zip(panels.ravel(), exploration.snapshots, strict=True):
            x, y, free, occupied = _coarse_cells(snapshot.grid, exploration.T_world_map)
            for cells, color, alpha in ((free, SCAN, 0.16), (occupied, WALL, 0.9)):
                if cells.any():
                    axes.contourf(x, y, cells.astype(float), levels=[0.5, 1.5], colors=[color], alpha=alpha)
            so_far = slice(0, max(int(np.searchsorted(truth.time, snapshot.time)), 1))
            samples = decimation_slice(so_far.stop, 500)
            axes.plot(truth.x[so_far][samples], truth.y[so_far][samples], color=TRUTH, lw=1.2)
            frontiers = exploration.T_world_map @ snapshot.frontiers if len(snapshot.frontiers) else snapshot.frontiers
            axes.plot(frontiers[:, 0], frontiers[:, 1], ".", ms=2.5, color=ODOMETRY)
            axes.set_title(f"{snapshot.time:.0f} s", fontsize=9.5, color=MUTED, loc="left")
            axes.set_aspect("equal", adjustable="box")
            axes.set_xlim(left, right)
            axes.set_ylim(low, high)
        return render_svg(figure, "The map and its frontiers at four moments of the run")


def coverage_figure(trace: RobotTrace, exploration: ExplorationTrace) -> str:
    """Draw the coverage, or the known area where there is no floor plan, over time."""
    with figure_style():
        figure, axes = new_figure(_WIDTH, 2.2)
        if len(exploration.coverage):
            axes.plot(exploration.time, 100.0 * exploration.coverage, color=TRUTH)
            axes.set_ylim(0.0, 104.0)
            axes.set_ylabel("of the floor [%]")
        else:
            axes.plot(*exploration.known_area.T, color=TRUTH)
            axes.set_ylim(bottom=0.0)
            axes.set_ylabel("known free area [m²]")
        for time in exploration.goal_times:
            axes.axvline(time, ymax=0.05, color=COMMAND, lw=1.2)
        configure_time_axis(axes, [trace])
        return render_svg(figure, "Explored share of the floor over time")


def _known_corners(grid: OccupancyGrid) -> Array:
    rows, columns = np.nonzero(grid.cells >= 0)
    if not len(rows):
        return grid.geometry.cell_centers(np.zeros((1, 2)))
    box = [(r, c) for r in (rows.min(), rows.max()) for c in (columns.min(), columns.max())]
    return grid.geometry.cell_centers(np.array(box))


def _coarse_cells(grid: OccupancyGrid, T_world_map: SE2) -> tuple[Array, Array, NDArray[np.bool_], NDArray[np.bool_]]:
    """Return centers of coarse cells in the world, and which of them are free and which occupied."""
    factor = max(round(_DRAWN_CELL_SIZE / grid.geometry.resolution), 1)
    rows, columns = (-(-count // factor) for count in grid.cells.shape)
    padded = np.full((rows * factor, columns * factor), -1, dtype=np.int8)
    padded[: grid.cells.shape[0], : grid.cells.shape[1]] = grid.cells
    blocks = padded.reshape(rows, factor, columns, factor)
    occupied = np.asarray((blocks >= OCCUPIED_THRESHOLD).any(axis=(1, 3)))
    free = np.asarray((blocks >= 0).any(axis=(1, 3)) & ~occupied)
    index = np.stack(np.meshgrid(np.arange(rows), np.arange(columns), indexing="ij"), axis=-1)
    points = T_world_map @ grid.geometry.cell_centers((index * factor + 0.5 * (factor - 1)).reshape(-1, 2))
    x, y = (points[:, axis].reshape(rows, columns) for axis in (0, 1))
    return x, y, free, occupied
