"""The report's figures: track over the floor plan, odometry error, speeds, lidar snapshot."""

from __future__ import annotations

from typing import Any

import numpy as np

from roboyard.scenarios.floor import Floor
from roboyard.scenarios.report.story import Story, thinned
from roboyard.scenarios.report.style import (
    BAD,
    COMMAND,
    FURNITURE,
    GOOD,
    INK,
    MUTED,
    ODOMETRY,
    PANEL,
    SCAN,
    TRUTH,
    WALL,
    new_figure,
    styled,
    svg,
    widen,
)

_WIDTH = 8.6
_LEAST_ERROR, _LEAST_HEADING = 1e-3, 0.02
"""Shown of errors, however small they are [m, deg]."""


def track_figure(stories: list[Story], floor: Floor | None) -> str:
    """True way and odometry seen from above [m]."""
    with styled():
        lines = [story for story in stories if len(story.truth)]
        size = extent_of(lines, floor)
        figure, axes = new_figure(_WIDTH, height_of(size))
        draw_floor(axes, floor)
        for index, story in enumerate(lines):
            truth, odometry = story.truth, story.odometry
            part = thinned(len(truth))
            name = f"{story.robot}: " if len(lines) > 1 else ""
            axes.plot(truth.x[part], truth.y[part], color=TRUTH, lw=2.2, label=f"{name}truth" if not index else None)
            if len(odometry):
                part = thinned(len(odometry))
                axes.plot(
                    odometry.x[part], odometry.y[part], color=ODOMETRY, lw=1.4, ls=(0, (4, 2)),
                    label="odometry" if not index else None,
                )  # fmt: skip
            _arrows(axes, story)
            axes.plot(
                truth.x[0], truth.y[0], "o", ms=8, mfc=PANEL, mec=GOOD, mew=2, label="start" if not index else None
            )
            axes.plot(truth.x[-1], truth.y[-1], "s", ms=7, color=TRUTH, label="end" if not index else None)
            if story.touches:
                axes.plot(
                    [touch.x for touch in story.touches], [touch.y for touch in story.touches], "X", ms=9, color=BAD,
                    mec=PANEL, label="contact" if not index else None,
                )  # fmt: skip
        plan_axes(axes, size)
        figure.legend(loc="outside lower center", ncols=5, handlelength=1.8)
        return svg(figure, "True way and odometry over the floor plan")


def error_figure(stories: list[Story]) -> str:
    """Position [m] and heading error [deg] of odometry over time."""
    with styled():
        figure, (above, below) = new_figure(_WIDTH, 3.6, rows=2)
        for index, story in enumerate(stories):
            time, position, heading = story.errors
            part = thinned(len(time))
            colour = ODOMETRY if index == 0 else MUTED
            above.plot(time[part], position[part], color=colour)
            above.fill_between(time[part], 0.0, position[part], color=colour, alpha=0.12, lw=0)
            below.plot(time[part], np.degrees(heading[part]), color=colour)
        above.set_ylim(bottom=0.0)
        widen(above, 0.0, _LEAST_ERROR)
        above.set_ylabel("position [m]")
        below.set_ylabel("heading [°]")
        below.axhline(0.0, color=MUTED, lw=0.8)
        widen(below, -_LEAST_HEADING, _LEAST_HEADING)
        time_axis(below, stories)
        return svg(figure, "Odometry error over time")


def speed_figure(story: Story) -> str:
    """What the drive was told, and what the robot truly did."""
    with styled():
        figure, (above, below) = new_figure(_WIDTH, 3.9, rows=2)
        truth, commands = story.truth, story.commands
        part, some = thinned(len(truth)), thinned(len(commands))
        for axes, true, column in ((above, truth.v, 1), (below, truth.w, 2)):
            axes.plot(truth.time[part], true[part], color=TRUTH, lw=1.5, label="true")
            if len(commands):
                axes.step(
                    commands[some, 0], commands[some, column], where="post", color=COMMAND, lw=1.2, label="commanded"
                )
            axes.axhline(0.0, color=MUTED, lw=0.8)
        for touch in story.touches:
            above.axvline(touch.time, color=BAD, lw=1.0)
            below.axvline(touch.time, color=BAD, lw=1.0)
        above.set_ylabel("forward [m/s]")
        below.set_ylabel("turn [rad/s]")
        above.legend(loc="lower right", ncols=2, bbox_to_anchor=(1.0, 1.0), borderaxespad=0.1)
        time_axis(below, [story])
        return svg(figure, "Commanded and true speeds over time")


def scan_figure(story: Story, floor: Floor | None) -> str:
    """One scan where it hit the world."""
    scan = story.scan
    if scan is None:
        return ""
    with styled():
        size = extent_of([story], floor)
        figure, axes = new_figure(_WIDTH, height_of(size))
        draw_floor(axes, floor)
        x, y = scan.points[:, 0], scan.points[:, 1]
        if len(x):
            outline = np.vstack([scan.origin, scan.points, scan.origin])
            axes.fill(outline[:, 0], outline[:, 1], color=SCAN, alpha=0.12, lw=0)
        axes.plot(x, y, ".", ms=3.2, color=SCAN, label=f"{len(x)} returns")
        axes.plot(*scan.origin, "o", ms=7, mfc=PANEL, mec=INK, mew=1.6, label="lidar")
        plan_axes(axes, size)
        figure.legend(loc="outside lower center", ncols=2)
        return svg(figure, f"Lidar scan at {scan.time:.1f} s")


def draw_floor(axes: Any, floor: Floor | None) -> None:
    """What stands there, under what follows."""
    if floor is None:
        return
    x, y = floor.centres
    for solid, colour, alpha in ((floor.low & ~floor.tall, FURNITURE, 0.45), (floor.tall, WALL, 0.75)):
        if solid.any() and min(solid.shape) > 1:
            axes.contourf(x, y, solid.astype(float), levels=[0.5, 1.5], colors=[colour], alpha=alpha, zorder=1)


def _arrows(axes: Any, story: Story) -> None:
    """Show which way it went, every few metres."""
    truth = story.truth
    steps = np.hypot(np.diff(truth.x), np.diff(truth.y))
    gone = np.concatenate([[0.0], np.cumsum(steps)])
    if gone[-1] < 1.0:
        return
    for target in np.linspace(0.0, gone[-1], 2 + min(12, int(gone[-1] / 3.0)))[1:-1]:
        i = int(np.searchsorted(gone, target))
        dx, dy = 0.01 * np.cos(truth.yaw[i]), 0.01 * np.sin(truth.yaw[i])
        if truth.v[i] < 0.0:
            dx, dy = -dx, -dy
        axes.annotate(
            "", xy=(truth.x[i] + dx, truth.y[i] + dy), xytext=(truth.x[i], truth.y[i]),
            arrowprops={"arrowstyle": "-|>", "color": TRUTH, "mutation_scale": 18, "lw": 0},
        )  # fmt: skip


def extent_of(stories: list[Story], floor: Floor | None) -> tuple[float, float, float, float]:
    """What to show: the floor plan's frame if there is one, and all that the robots did."""
    xs = [value for story in stories for value in (story.truth.x.min(), story.truth.x.max()) if len(story.truth)]
    ys = [value for story in stories for value in (story.truth.y.min(), story.truth.y.max()) if len(story.truth)]
    if floor is not None and floor.bounds is not None:
        xs += [floor.bounds[0], floor.bounds[2]]
        ys += [floor.bounds[1], floor.bounds[3]]
    if not xs:
        return (-1.0, -1.0, 1.0, 1.0)
    margin = 0.04 * max(max(xs) - min(xs), max(ys) - min(ys), 1.0)
    return (min(xs) - margin, min(ys) - margin, max(xs) + margin, max(ys) + margin)


def height_of(size: tuple[float, float, float, float]) -> float:
    """Of a figure that shows this much [inch]."""
    ratio = (size[3] - size[1]) / (size[2] - size[0])
    return float(min(max(_WIDTH * ratio * 0.94 + 0.9, 1.6), 8.0))


def plan_axes(axes: Any, size: tuple[float, float, float, float]) -> None:
    """Axes of a plan that shows this much."""
    axes.set_aspect("equal", adjustable="box")
    axes.set_xlim(size[0], size[2])
    axes.set_ylim(size[1], size[3])
    axes.set_xlabel("x [m]")
    axes.set_ylabel("y [m]")
    for side in ("left", "bottom"):
        axes.spines[side].set_visible(False)


def time_axis(axes: Any, stories: list[Story]) -> None:
    """The whole run's time along x."""
    end = max((float(story.truth.time[-1]) for story in stories if len(story.truth)), default=1.0)
    axes.set_xlim(0.0, max(end, 1e-3))
    axes.set_xlabel("simulated time [s]")
