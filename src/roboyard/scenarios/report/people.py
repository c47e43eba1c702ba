"""The report's part about people beside an arm: how far they were, what the guard made of it, each approach."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from roboyard.geometry.arrays import Array
from roboyard.record import Recording
from roboyard.scenarios.report.section import Section, Source, Table
from roboyard.scenarios.report.style import BAD, COMMAND, GOOD, MUTED, ODOMETRY, SCAN, TRUTH, new_figure, styled, svg

_WIDTH = 8.6
_PICTURES = 8
"""Of approaches, the nearest ones."""
_COLOURS = {"head": BAD, "trunk": TRUTH, "arms": COMMAND, "hands": GOOD, "legs": ODOMETRY}
_FAR = 3.0
"""Farther away nothing is drawn [m]."""


def people_part(source: Source) -> Section | None:
    """Of one robot; None where nobody was near its arm. RecordingError for a damaged recording."""
    told = source.said.get("people")
    if not told:
        return None
    # where people work their approaches are pictured with that
    shown = () if "/work" in source.recording.topics else source.said.get("approaches", ())
    approaches = sorted(shown, key=lambda one: float(one["distance"]))
    figures = [separation_figure(told)]
    guard = read_guard(source.recording, source.namespace)
    if len(guard):
        figures.append(guard_figure(guard))
    if approaches:
        figures.append(approaches_figure(approaches[:_PICTURES]))
    head = (
        "time [s]",
        "who",
        "part",
        "robot's part",
        "distance [m]",
        "Sp [m]",
        "robot [m/s]",
        "coming [m/s]",
        "force [N]",
    )
    rows = tuple(_row(one) for one in sorted(approaches, key=lambda one: float(one["time"])))
    return Section(
        "Beside people",
        tuple(figures),
        table=Table(head, rows, frozenset(head) - {"who", "part", "robot's part"}) if rows else None,
        note="Distances are true ones, between capsules that hold the parts. Sp is the protective separation distance; "
        "each row is the nearest moment of one approach.",
    )


def _row(one: Mapping[str, Any]) -> tuple[str, ...]:
    return (
        f"{one['time']:.2f}", str(one["person"]), str(one["body_part"]).replace("_", " "), str(one["part"]),
        f"{one['distance']:.3f}", f"{one['protective']:.2f}", f"{one['robot_speed']:.3f}", f"{one['coming']:.2f}",
        f"{one['force']:.0f}" if one["force"] else "",
    )  # fmt: skip


def read_guard(recording: Recording, namespace: str) -> Array:
    """(k, 5) what a guard told: time [s], separation and Sp of the tightest pair [m], pace, whether stopped."""
    topic = f"{namespace}/guard/state"
    items = recording.messages([topic]) if topic in recording.topics else []
    rows = [
        (one.time_ns * 1e-9, state.min_separation, state.protective_distance, state.speed_scaling, state.is_stopped)
        for one in items
        for state in (one.message,)
    ]
    return np.array(rows, dtype=np.float64).reshape(-1, 5)


def separation_figure(told: Mapping[str, Any]) -> str:
    """Least distance from each group of parts of bodies over time."""
    with styled():
        figure, axes = new_figure(_WIDTH, 2.2)
        for name, row in told["separation"].items():
            values = np.array([np.nan if value is None else min(value, _FAR) for value in row])
            axes.plot(
                np.arange(len(values)) * told["span"], values, color=_COLOURS.get(name, MUTED), lw=1.2, label=name
            )
        axes.set_ylim(0.0, None)
        axes.set_ylabel("separation [m]")
        axes.set_xlabel("simulated time [s]")
        axes.legend(loc="lower left", bbox_to_anchor=(0.0, 1.0), ncols=5, handlelength=1.2)
        return svg(figure, "Least distance between the robot and parts of people over time")


def guard_figure(guard: Array) -> str:
    """Separation against Sp of the tightest pair, and the pace below; stops are shaded."""
    with styled():
        figure, (above, below) = new_figure(_WIDTH, 3.0, rows=2)
        time = guard[:, 0]
        above.plot(time, np.minimum(guard[:, 1], _FAR), color=TRUTH, lw=1.2, label="separation")
        above.plot(time, np.minimum(guard[:, 2], _FAR), color=BAD, lw=1.2, label="Sp at the present speeds")
        below.plot(time, guard[:, 3], color=COMMAND, lw=1.2)
        ends = np.append(time[1:], time[-1])
        for axes in (above, below):
            for begin, end in zip(time[guard[:, 4] > 0.0], ends[guard[:, 4] > 0.0], strict=True):
                axes.axvspan(begin, end, color=BAD, alpha=0.12, lw=0)
        above.set_ylabel("tightest pair [m]")
        above.set_ylim(0.0, None)
        below.set_ylabel("pace")
        below.set_ylim(-0.05, 1.05)
        below.set_xlabel("simulated time [s]; shaded: protective stops")
        above.legend(loc="lower left", bbox_to_anchor=(0.0, 1.0), ncols=2, handlelength=1.2)
        return svg(figure, "What the guard of the arm saw, and the pace that it allowed")


def approaches_figure(approaches: Sequence[Mapping[str, Any]]) -> str:
    """The nearest moment of each approach from the side: the robot's parts, and theirs, the nearest pair marked."""
    with styled():
        columns = min(len(approaches), 4)
        rows = -(-len(approaches) // columns)
        figure, parts = new_figure(_WIDTH, 2.6 * rows, rows=rows, columns=columns)
        for axes in np.ravel(parts)[len(approaches) :]:
            axes.set_visible(False)
        for axes, one in zip(np.ravel(parts), approaches, strict=False):
            _draw(axes, one)
        return svg(figure, "The nearest moments of people and robot, from the side")


def _draw(axes: Any, one: Mapping[str, Any]) -> None:
    """Seen across the line from the robot's base to the person."""
    body, robot = np.array(one["body"]), np.array(one["robot"])
    middle = body.reshape(-1, 3)[:, :2].mean(axis=0)
    ahead = middle / max(float(np.linalg.norm(middle)), 1e-6)
    for lines, colour, width in ((body, SCAN, 5.0), (robot, TRUTH, 4.0)):
        for line in lines:
            axes.plot(line[:, :2] @ ahead, line[:, 2], color=colour, lw=width, solid_capstyle="round", alpha=0.8)
    axes.set_aspect("equal", adjustable="box")
    axes.set_xlim(-0.6, 1.6)
    axes.set_ylim(min(-0.05, float(body[..., 2].min())), 2.0)
    axes.set_title(f"{one['time']:.1f} s, {one['person']}: {one['distance']:.2f} m", fontsize=8.5)
    axes.tick_params(labelsize=7.5)
