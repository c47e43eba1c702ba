"""The report's part about exploring: what the map knew as the run went on, and how much of the place that was."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from roboyard.errors import RoboyardError
from roboyard.geometry import SE2
from roboyard.geometry.arrays import Array
from roboyard.grids import OCCUPIED_THRESHOLD, OccupancyGrid
from roboyard.record import Recording
from roboyard.scenarios.metrics import RobotTopics
from roboyard.scenarios.metrics.exploration import T_world_map, floor_in_map
from roboyard.scenarios.metrics.mapping import Plan
from roboyard.scenarios.report.figures import time_axis
from roboyard.scenarios.report.section import Section, Source
from roboyard.scenarios.report.story import Story, thinned
from roboyard.scenarios.report.style import COMMAND, MUTED, ODOMETRY, SCAN, TRUTH, WALL, new_figure, styled, svg

_WIDTH = 8.6
_PICTURES = 4
_MOST_MAPS = 80
"""Maps that coverage is reckoned for."""
_COARSE = 0.1
"""Edge of a drawn cell [m]: finer ones would only make the page larger."""


@dataclass(frozen=True, slots=True)
class Known:
    """What was known at one moment: time [s], the map, and frontiers (n, 2) in the map [m]."""

    time: float
    grid: OccupancyGrid
    frontiers: Array


@dataclass(frozen=True, slots=True)
class Reconnaissance:
    """How a place was explored.

    Attributes:
        T_world_map: Where the robot's map truly lies.
        pictures: Some moments, the last one at the end.
        time: (n,) of maps [s].
        coverage: (n,) share of the floor the robot can come to that the map knew; empty where nobody knows the floor.
        known: (m, 2) time [s] and free ground that the explorer says is known [m²].
        goals: (k,) when it set out for another place [s].
    """

    T_world_map: SE2
    pictures: tuple[Known, ...]
    time: Array
    coverage: Array
    known: Array
    goals: Array


def exploration_part(source: Source) -> Section | None:
    """The map as it grew, and coverage over time; None if the robot did not explore."""
    found = read_reconnaissance(source.recording, source.story, source.topics, source.plan)
    if found is None:
        return None
    note = (
        "The map as it grew, with its frontiers (dots) and the true way so far. Below: the share of the floor that a "
        "robot of its size can come to which the map knew; ticks: it set out for another place."
    )
    drawn = (map_figure(source.story, found), coverage_figure(source.story, found))
    return Section("Explored", drawn, note=note)


def read_reconnaissance(
    recording: Recording, story: Story, topics: RobotTopics, plan: Plan | None
) -> Reconnaissance | None:
    """Of one robot; None if it did not explore, or its maps were not recorded.

    Raises:
        RecordingError: it is damaged.
    """
    from roboyard.mapping.nodes.map_messages import map_from_msg
    from roboyard.navigation.exploration import coverage

    if not {topics.exploration, topics.map} <= set(recording.topics) or not len(story.truth):
        return None
    told = [(item.time_ns * 1e-9, item.message) for item in recording.messages([topics.exploration])]
    maps = [(item.time_ns * 1e-9, item.message) for item in recording.messages([topics.map])]
    if not told or not maps:
        return None
    begin, status = told[0]
    set_out = story.truth.pose(begin)
    places = {status.goals_sent: time for time, status in reversed(told)}
    measured = maps[:: -(-len(maps) // _MOST_MAPS)]
    shares: list[float] = []
    if plan is not None:
        try:
            floor = floor_in_map(plan, status, set_out)
            shares = [coverage(map_from_msg(message), *floor) for _, message in measured]
        except RoboyardError:  # no room where it set out: then there is no share either
            shares = []
    ends = np.linspace(begin, told[-1][0], _PICTURES + 1)[1:]
    pictures = [maps[int(np.searchsorted([time for time, _ in maps], end, side="right")) - 1] for end in ends]
    return Reconnaissance(
        T_world_map(status, set_out),
        tuple(
            Known(end, map_from_msg(message), _frontiers(recording, f"{topics.namespace}/frontiers", end))
            for end, (_, message) in zip(ends.tolist(), pictures, strict=True)
        ),
        np.array([time for time, _ in measured]) if shares else np.zeros(0),
        np.array(shares),
        np.array([(time, status.known_area) for time, status in told]),
        np.array([time for count, time in sorted(places.items()) if count > 0]),
    )


def _frontiers(recording: Recording, topic: str, end: float) -> Array:
    points: list[tuple[float, float]] = []
    if topic in recording.topics:
        for item in recording.messages([topic], end_ns=round(end * 1e9)):
            first = item.message.markers[0] if item.message.markers else None
            points = [] if first is None else [(point.x, point.y) for point in first.points]
    return np.asarray(points, dtype=np.float64).reshape(-1, 2)


def map_figure(story: Story, found: Reconnaissance) -> str:
    """What the map knew at some moments, the frontiers then, and the true way so far [m]."""
    with styled():
        corners = np.vstack([_corners(known.grid) for known in found.pictures])
        world = found.T_world_map @ corners
        (left, low), (right, high) = world.min(axis=0), world.max(axis=0)
        height = min(max(0.5 * _WIDTH * (high - low) / (right - left) + 0.5, 1.6), 4.0)
        figure, panels = new_figure(_WIDTH, 2.0 * height, rows=2, columns=2)
        truth = story.truth
        for axes, known in zip(panels.ravel(), found.pictures, strict=True):
            x, y, free, occupied = _drawn(known.grid, found.T_world_map)
            for cells, colour, alpha in ((free, SCAN, 0.16), (occupied, WALL, 0.9)):
                if cells.any():
                    axes.contourf(x, y, cells.astype(float), levels=[0.5, 1.5], colors=[colour], alpha=alpha)
            so_far = slice(0, max(int(np.searchsorted(truth.time, known.time)), 1))
            part = thinned(so_far.stop, 500)
            axes.plot(truth.x[so_far][part], truth.y[so_far][part], color=TRUTH, lw=1.2)
            edge = found.T_world_map @ known.frontiers if len(known.frontiers) else known.frontiers
            axes.plot(edge[:, 0], edge[:, 1], ".", ms=2.5, color=ODOMETRY)
            axes.set_title(f"{known.time:.0f} s", fontsize=9.5, color=MUTED, loc="left")
            axes.set_aspect("equal", adjustable="box")
            axes.set_xlim(left, right)
            axes.set_ylim(low, high)
        return svg(figure, "What the map knew, and its frontiers, as the run went on")


def coverage_figure(story: Story, found: Reconnaissance) -> str:
    """How much was known over time."""
    with styled():
        figure, axes = new_figure(_WIDTH, 2.2)
        if len(found.coverage):
            axes.plot(found.time, 100.0 * found.coverage, color=TRUTH)
            axes.set_ylim(0.0, 104.0)
            axes.set_ylabel("of the floor [%]")
        else:
            axes.plot(*found.known.T, color=TRUTH)
            axes.set_ylim(bottom=0.0)
            axes.set_ylabel("free ground [m²]")
        for time in found.goals:
            axes.axvline(time, ymax=0.05, color=COMMAND, lw=1.2)
        time_axis(axes, [story])
        return svg(figure, "How much was known over time")


def _corners(grid: OccupancyGrid) -> Array:
    rows, columns = np.nonzero(grid.cells >= 0)
    if not len(rows):
        return grid.geometry.cell_centers(np.zeros((1, 2)))
    box = [(r, c) for r in (rows.min(), rows.max()) for c in (columns.min(), columns.max())]
    return grid.geometry.cell_centers(np.array(box))


def _drawn(grid: OccupancyGrid, T: SE2) -> tuple[Array, Array, NDArray[np.bool_], NDArray[np.bool_]]:
    """Middles of coarse cells in the world, and whether they are free, and occupied."""
    k = max(round(_COARSE / grid.geometry.resolution), 1)
    rows, columns = (-(-count // k) for count in grid.cells.shape)
    padded = np.full((rows * k, columns * k), -1, dtype=np.int8)
    padded[: grid.cells.shape[0], : grid.cells.shape[1]] = grid.cells
    blocks = padded.reshape(rows, k, columns, k)
    occupied = np.asarray((blocks >= OCCUPIED_THRESHOLD).any(axis=(1, 3)))
    free = np.asarray((blocks >= 0).any(axis=(1, 3)) & ~occupied)
    index = np.stack(np.meshgrid(np.arange(rows), np.arange(columns), indexing="ij"), axis=-1)
    points = T @ grid.geometry.cell_centers((index * k + 0.5 * (k - 1)).reshape(-1, 2))
    x, y = (points[:, axis].reshape(rows, columns) for axis in (0, 1))
    return x, y, free, occupied
