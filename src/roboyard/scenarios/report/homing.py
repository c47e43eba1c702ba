"""The report's part about coming home: the points stored, the way back, and the link over time."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from roboyard.record import Recording
from roboyard.scenarios.floor import Floor
from roboyard.scenarios.report.figures import draw_floor, extent_of, height_of, plan_axes, time_axis
from roboyard.scenarios.report.section import Section, Source
from roboyard.scenarios.report.story import Story, thinned
from roboyard.scenarios.report.style import BAD, COMMAND, GOOD, MUTED, PANEL, TRUTH, new_figure, styled, svg

_WIDTH = 8.6
_LINKS = {"never_heard": MUTED, "connected": GOOD, "recovering": COMMAND, "lost": BAD}
_PHASES = {"driven": GOOD, "mission": COMMAND, "returning": TRUTH, "waiting": BAD, "home": MUTED}


@dataclass(frozen=True, slots=True)
class Homecoming:
    """What the tracker told: ``points`` (n, 2) [m] of the longest trail, and from when on [s] link and phase were."""

    points: NDArray[np.float64]
    changes: tuple[tuple[float, str, str], ...]

    def lost(self, end: float) -> list[tuple[float, float]]:
        """From when to when the link was lost [s]."""
        moments = [*(time for time, _, _ in self.changes[1:]), end]
        spans = [(time, until) for (time, link, _), until in zip(self.changes, moments, strict=True) if link == "lost"]
        joined: list[tuple[float, float]] = []
        for begin, until in spans:
            if joined and joined[-1][1] == begin:
                joined[-1] = (joined[-1][0], until)
            else:
                joined.append((begin, until))
        return joined


def homing_part(source: Source) -> Section | None:
    """The way back and the link over time; None if the robot has no tracker, or its link was never lost."""
    found = read_homecoming(source.recording, source.namespace)
    if found is None or not len(source.story.truth):
        return None
    note = (
        "Points stored while the operator drove, as far as the trail was longest. Link: connected; lost after the "
        "time-out; recovering until the operator was heard long enough."
    )
    drawn = (homecoming_figure(source.story, found, source.floor), link_figure(source.story, found))
    return Section("Home without the operator", drawn, note=note)


def read_homecoming(recording: Recording, namespace: str) -> Homecoming | None:
    """Of the robot in this namespace ("" or "/name"); None if it has no tracker, or its link was never lost.

    Raises:
        RecordingError: it is damaged.
    """
    status, trail = f"{namespace}/homing/status", f"{namespace}/homing/trail"
    if status not in recording.topics:
        return None
    changes = [(item.time_ns * 1e-9, item.message.link, item.message.phase) for item in recording.messages([status])]
    if all(link != "lost" for _, link, _ in changes):
        return None
    poses: list[tuple[float, float]] = []
    for item in recording.messages([trail]) if trail in recording.topics else ():
        if len(item.message.poses) > len(poses):
            poses = [(pose.pose.position.x, pose.pose.position.y) for pose in item.message.poses]
    return Homecoming(np.asarray(poses, dtype=np.float64).reshape(-1, 2), tuple(changes))


def homecoming_figure(story: Story, homecoming: Homecoming, floor: Floor | None) -> str:
    """The way driven by hand and the way without the operator, over the floor plan, with the points stored [m]."""
    truth = story.truth
    with styled():
        size = extent_of([story], floor)
        figure, axes = new_figure(_WIDTH, height_of(size))
        draw_floor(axes, floor)
        part = thinned(len(truth))
        axes.plot(truth.x[part], truth.y[part], color=GOOD, lw=1.6, label="operator heard")
        for number, (begin, until) in enumerate(homecoming.lost(float(truth.time[-1]))):
            away = (truth.time >= begin) & (truth.time <= until)
            axes.plot(truth.x[away], truth.y[away], color=BAD, lw=2.4, label=None if number else "link lost")
        x, y = homecoming.points[:, 0], homecoming.points[:, 1]
        axes.plot(x, y, "o", ms=5, mfc=PANEL, mec=TRUTH, mew=1.4, label=f"{len(x)} points stored")
        if len(x):
            axes.plot(x[0], y[0], "s", ms=8, mfc=PANEL, mec=GOOD, mew=2, label="home")
        plan_axes(axes, size)
        axes.legend(loc="upper center", bbox_to_anchor=(0.5, -0.17), ncols=5, handlelength=1.8)
        return svg(figure, "Driven by hand, and home without the operator")


def link_figure(story: Story, homecoming: Homecoming) -> str:
    """Link and phase over time."""
    with styled():
        figure, (above, below) = new_figure(_WIDTH, 1.7, rows=2)
        end = float(story.truth.time[-1])
        moments = [*(time for time, _, _ in homecoming.changes[1:]), end]
        named: set[str] = set()
        for (begin, link, phase), until in zip(homecoming.changes, moments, strict=True):
            for axes, word, colours in ((above, link, _LINKS), (below, phase, _PHASES)):
                label = None if word in named else word
                named.add(word)
                axes.axvspan(begin, until, color=colours.get(word, MUTED), alpha=0.75, lw=0, label=label)
        for axes, name in ((above, "link"), (below, "robot")):
            axes.set_yticks([])
            axes.set_ylabel(name)
            axes.legend(loc="lower left", bbox_to_anchor=(0.0, 1.0), ncols=5, borderaxespad=0.1, handlelength=1.0)
        time_axis(below, [story])
        return svg(figure, "Link and phase over time")
