"""The report's part about arms: where the tool was asked to be, and the joints on the way there."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from roboyard.errors import RoboyardError
from roboyard.geometry.arrays import Array
from roboyard.manipulation.nodes.motion_messages import sampled
from roboyard.record import Recording
from roboyard.scenarios.report.section import Section, Source
from roboyard.scenarios.report.style import BAD, COMMAND, GOOD, MUTED, PANEL, TRUTH, new_figure, styled, svg

_THIN = 0.2
"""No panel of places is lower [m]."""
_WIDTH = 8.6
_ENDED = {"succeeded": GOOD, "aborted": BAD, "canceled": BAD, "rejected": BAD}
_PHASES = {"planning": COMMAND, "executing": GOOD, "stopping": BAD, "waiting": BAD}
_MOST_POINTS = 2000
_ABOUT = ("map", "odom", "world")
"""Frames in which a robot drives about."""


@dataclass(frozen=True, slots=True)
class Reached:
    """What a mover of arms told, and how the joints moved.

    Attributes:
        states: From when [s] the mover was in which state.
        goals: (n, 3) places of the tool that goals ended at [m].
        ends: (n) how each ended.
        joints: (m) names.
        time: (k,) [s].
        positions: (k, m) of the joints [rad or m].
        planned: Motions as they were planned: times (p,) [s] and joints (p, m), for each that was begun.
        room: (r, 2) times [s] and how far the arm was from everything that its mover knew [m].
        frame: Of the goals.
    """

    states: tuple[tuple[float, str], ...]
    goals: Array
    ends: tuple[str, ...]
    joints: tuple[str, ...]
    time: Array
    positions: Array
    planned: tuple[tuple[Array, Array], ...]
    room: Array
    frame: str


def arm_part(source: Source) -> Section | None:
    """Goals of the tool, and the joints over time; None if nobody asked the robot's arm for anything."""
    found = read_reached(source.recording, source.namespace)
    if found is None:
        return None
    note = (
        f"Above: where motions to goals ended, in order, in {found.frame}. Below: joints; shaded: what the mover of "
        "the arm did. Clearance is the distance from everything that it knew of."
    )
    figures = [goals_figure(found)] if len(found.goals) else []
    figures.append(joints_figure(found))
    if len(found.room):
        figures.append(room_figure(found))
    return Section("The arm", tuple(figures), note=note)


def read_reached(recording: Recording, namespace: str) -> Reached | None:
    """Of the robot in this namespace ("" or "/name"); None if nobody asked its arm for anything.

    Raises:
        RecordingError: it is damaged.
    """
    status, states_topic = f"{namespace}/move_group/status", f"{namespace}/joint_states"
    if status not in recording.topics or states_topic not in recording.topics:
        return None
    states: list[tuple[float, str]] = []
    goals: list[tuple[float, float, float]] = []
    ends: list[str] = []
    joints: tuple[str, ...] = ()
    frame = ""
    for item in recording.messages([status]):
        message = item.message
        frame = str(message.header.frame_id)
        states.append((item.time_ns * 1e-9, str(message.state)))
        joints = tuple(message.joints) or joints
        if message.state in _ENDED and len(message.goal):
            place = message.pose.position
            goals.append((place.x, place.y, place.z))
            ends.append(str(message.state))
    if not states or not joints:
        return None
    times, rows = [], []
    for item in recording.messages([states_topic]):
        at = dict(zip(item.message.name, item.message.position, strict=False))
        if all(name in at for name in joints):
            times.append(item.time_ns * 1e-9)
            rows.append([at[name] for name in joints])
    if not rows:
        return None
    every = max(1, len(rows) // _MOST_POINTS)
    return Reached(
        tuple(states), np.array(goals).reshape(-1, 3), tuple(ends), joints,
        np.array(times[::every]), np.array(rows[::every]), _planned(recording, namespace, states, joints),
        _room(recording, f"{namespace}/move_group/clearance"), frame,
    )  # fmt: skip


def _planned(
    recording: Recording, namespace: str, states: list[tuple[float, str]], joints: tuple[str, ...]
) -> tuple[tuple[Array, Array], ...]:
    """Motions that were shown and then begun, until the mover did something else."""
    topic = f"{namespace}/display_planned_path"
    found = []
    for item in recording.messages([topic] if topic in recording.topics else []):
        shown = item.time_ns * 1e-9
        later = [k for k, (time, _) in enumerate(states) if time >= shown - 1e-6]
        begun = next((k for k in later if states[k][1] == "executing"), None)
        if begun is None or states[begun][0] > shown + 1e-3 or not item.message.trajectory:
            continue  # only planned
        try:
            times, points = sampled(item.message.trajectory[0].joint_trajectory, joints)
        except RoboyardError:
            continue  # of other joints
        until = states[begun + 1][0] if begun + 1 < len(states) else np.inf
        kept = states[begun][0] + times <= until
        found.append((states[begun][0] + times[kept], points[kept]))
    return tuple(found)


def _room(recording: Recording, topic: str) -> Array:
    told = recording.messages([topic]) if topic in recording.topics else []
    return np.array([(item.time_ns * 1e-9, item.message.data) for item in told]).reshape(-1, 2)


def goals_figure(found: Reached) -> str:
    """Places of the tool from above and from the side, in the order in which they were asked for [m]."""
    with styled():
        figure, (above, side) = new_figure(_WIDTH, 3.6, columns=2, alike=False)
        for axes, (i, j), names in ((above, (0, 1), ("x", "y")), (side, (0, 2), ("x", "z"))):
            axes.plot(found.goals[:, i], found.goals[:, j], color=MUTED, lw=0.6)
            for end, colour in _ENDED.items():
                part = [k for k, one in enumerate(found.ends) if one == end]
                if part:
                    places = found.goals[part]
                    axes.plot(places[:, i], places[:, j], "o", ms=6, mfc=PANEL, mec=colour, mew=1.6, label=end)
            if found.frame.rpartition("/")[2] not in _ABOUT:
                axes.plot(0.0, 0.0, "+", color=TRUTH, ms=9, label="root of the robot")
            low, high = axes.get_ylim()
            if high - low < _THIN:  # all in a line: the panel would be one, too
                axes.set_ylim((low + high - _THIN) / 2.0, (low + high + _THIN) / 2.0)
            axes.set_aspect("equal", adjustable="box")
            axes.set_xlabel(f"{names[0]} [m]")
            axes.set_ylabel(f"{names[1]} [m]")
        side.legend(loc="upper left", bbox_to_anchor=(0.0, 1.12), ncols=3, handlelength=1.2)
        return svg(figure, "Places of the tool that were asked for, from above and from the side")


def joints_figure(found: Reached) -> str:
    """Joints over time, and what the mover did."""
    with styled():
        rows = len(found.joints)
        figure, parts = new_figure(_WIDTH, 0.5 + 0.95 * rows, rows=rows)
        parts = np.atleast_1d(parts)
        end = float(found.time[-1])
        moments = [*(time for time, _ in found.states[1:]), end]
        for k, (axes, name) in enumerate(zip(parts, found.joints, strict=True)):
            named: set[str] = set()
            for (begin, state), until in zip(found.states, moments, strict=True):
                if state in _PHASES and until > begin:
                    label = None if state in named else state
                    named.add(state)
                    axes.axvspan(begin, until, color=_PHASES[state], alpha=0.14, lw=0, label=label)
            for j, (times, points) in enumerate(found.planned):
                axes.plot(times, points[:, k], color=COMMAND, lw=4.0, alpha=0.3, label=None if j else "as planned")
            axes.plot(found.time, found.positions[:, k], color=TRUTH, lw=1.2, label="as it moved")
            axes.set_ylabel(name, rotation=0, ha="right", va="center")
            axes.set_xlim(0.0, end)
            if k + 1 < rows:
                axes.tick_params(labelbottom=False)
        parts[0].legend(loc="lower left", bbox_to_anchor=(0.0, 1.0), ncols=6, handlelength=1.0)
        parts[-1].set_xlabel("simulated time [s]; positions [rad or m]")
        return svg(figure, "Joints over time, and what the mover of the arm did")


def room_figure(found: Reached) -> str:
    """How far the arm was from everything in the world that its mover knew of, while it moved."""
    with styled():
        figure, axes = new_figure(_WIDTH, 1.6)
        time, room = found.room.T
        breaks = np.flatnonzero(np.diff(time) > 0.5) + 1
        for part in np.split(np.arange(len(time)), breaks):
            axes.plot(time[part], room[part], color=TRUTH, lw=1.2)
        axes.set_xlim(0.0, float(found.time[-1]))
        axes.set_ylim(0.0, max(0.1, float(room.max()) * 1.05))
        axes.set_ylabel("clearance [m]")
        axes.set_xlabel("simulated time [s]")
        return svg(figure, f"Clearance of the arm while it moved, at least {room.min():.3f} m")
