"""The report's part about planned steps: where feet should stand and came to stand, seen from above."""

from __future__ import annotations

from typing import Any

import numpy as np

from roboyard.geometry.arrays import Array
from roboyard.mapping.nodes.grid_map_messages import heights_from_msg
from roboyard.record import Recording
from roboyard.scenarios.report.section import Section, Source
from roboyard.scenarios.report.story import thinned
from roboyard.scenarios.report.style import BAD, COMMAND, MUTED, ODOMETRY, TRUTH, WALL, new_figure, styled, svg

_WIDTH = 8.6
_WELL = 20.0
"""So near to its place a foot comes down well [mm]."""
_ROOM = 0.35
"""Round all that is drawn [m]."""


def stepping_part(source: Source) -> Section | None:
    """How a robot walked planned steps; None for others."""
    topics = [f"{source.namespace}/steps/plan", f"{source.namespace}/steps/touchdown"]
    plans, downs = (_messages(source.recording, topic) for topic in topics)
    if not plans:
        return None
    maps = _messages(source.recording, "/elevation_map")
    figures = [_above(plans, downs, maps[-1][1] if maps else None, _track(source))]
    if downs:
        figures.append(_errors(downs))
    note = (
        f"Plans that were walked: {len(plans)}, to {plans[-1][1].goal.x:.2f}, {plans[-1][1].goal.y:.2f} m. Rings: "
        "where feet should stand by the plans; dots: where they came down, as the robot knows it. Grey: low ground."
    )
    return Section("The steps it planned", tuple(figures), note=note)


def _messages(recording: Recording, topic: str) -> list[tuple[float, Any]]:
    if topic not in recording.topics:
        return []
    return [(item.time_ns * 1e-9, item.message) for item in recording.messages([topic])]


def _track(source: Source) -> Array:
    """(n, 2) where its body truly was."""
    places = [
        (m.pose.pose.position.x, m.pose.pose.position.y) for _, m in _messages(source.recording, source.topics.truth)
    ]
    return np.array(places).reshape(-1, 2)


def _above(plans: list[tuple[float, Any]], downs: list[tuple[float, Any]], ground: Any, track: Array) -> str:
    last = plans[-1][1]
    planned = np.array([(one.target.x, one.target.y) for one in last.swings]).reshape(-1, 2)
    found = np.array([(m.actual.x, m.actual.y) for _, m in downs]).reshape(-1, 2)
    body = np.array([(p.x, p.y) for p in last.body_path])
    every = np.concatenate([planned, found, body, track])
    low, high = every.min(axis=0) - _ROOM, every.max(axis=0) + _ROOM
    with styled():
        tall = min(max(_WIDTH * float((high - low)[1] / (high - low)[0]), 2.5), 8.0)
        figure, axes = new_figure(_WIDTH, tall)
        if ground is not None:
            known = heights_from_msg(ground)
            heights, (x, y), cell = known.heights, known.corner, known.resolution
            rows, columns = heights.shape
            level = float(np.nanmedian(heights))
            depth = np.clip(level - np.nan_to_num(heights, nan=level - 1.0), 0.0, 0.1) / 0.1
            left, near = x + (np.arange(columns) + 0.5) * cell, y + (np.arange(rows) + 0.5) * cell
            axes.contourf(left, near, depth, levels=[0.5, 2.0], colors=[WALL], alpha=0.25)
        axes.plot(*body.T, color=COMMAND, lw=1.0, label="body by the last plan")
        part = thinned(len(track))
        axes.plot(*track[part].T, color=TRUTH, lw=1.4, label="body, truly")
        axes.plot(*planned.T, "o", ms=7, mfc="none", mec=MUTED, mew=0.9, label="footholds by the last plan")
        axes.plot(*found.T, ".", ms=5, color=ODOMETRY, label="where feet came down")
        axes.plot(last.goal.x, last.goal.y, "*", ms=11, color=BAD, label="goal")
        axes.set_xlim(low[0], high[0])
        axes.set_ylim(low[1], high[1])
        axes.set_aspect("equal")
        axes.set_xlabel("x [m]")
        axes.set_ylabel("y [m]")
        axes.legend(loc="lower left", bbox_to_anchor=(0.0, 1.0), ncols=3, handlelength=1.4)
        return svg(figure, "Planned and found footholds and the body's way, from above")


def _errors(downs: list[tuple[float, Any]]) -> str:
    times = np.array([time for time, _ in downs])
    away = np.array([1e3 * np.hypot(m.actual.x - m.planned.x, m.actual.y - m.planned.y) for _, m in downs])
    with styled():
        figure, axes = new_figure(_WIDTH, 1.9)
        for how, color in (("planned", TRUTH), ("early", ODOMETRY), ("late", COMMAND), ("none", BAD)):
            which = np.array([m.kind == how for _, m in downs])
            if which.any():
                axes.plot(times[which], away[which], ".", ms=6, color=color, label=how)
        axes.axhline(_WELL, color=BAD, lw=0.9, ls=(0, (4, 2)))
        axes.set_ylim(bottom=0.0)
        axes.set_ylabel("off [mm]")
        axes.set_xlabel("simulated time [s]")
        axes.legend(loc="lower right", bbox_to_anchor=(1.0, 1.0), ncols=4, borderaxespad=0.1)
        return svg(figure, "How far feet came down from their places, as the robot knows it")
