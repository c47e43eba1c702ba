"""The report's part about a robot and people who work: who was active when, each piece of work, how near they came."""

from __future__ import annotations

from contextlib import closing
from typing import Any

from roboyard.record import Recording
from roboyard.scenarios.metrics.working import CYCLE, Working
from roboyard.scenarios.report.scenes import Scenes
from roboyard.scenarios.report.section import Section, Source, Table
from roboyard.scenarios.report.style import BAD, COMMAND, GOOD, MUTED, TRUTH, new_figure, styled, svg

_WIDTH = 8.6
_PICTURES = 24
"""Of the closest approaches."""


def working_part(source: Source) -> Section | None:
    """Of one robot; None if nobody told of work.

    Raises:
        RecordingError: the recording is damaged.
    """
    people = tuple(
        topic.split("/")[2]
        for topic in source.recording.topics
        if topic.startswith("/truth/") and topic.endswith("/body")
    )
    if "/work" not in source.recording.topics:
        return None
    judged = _judged(source.recording, source.namespace, people)
    if not judged.pieces:
        return None
    approaches = sorted(source.said.get("approaches", []), key=lambda one: one["distance"])
    figures = [_activity(judged, source.story.robot, people)]
    if any(one.task == CYCLE and one.ended is not None for one in judged.pieces):
        figures.append(_cycles(judged))
    return Section(
        "Working together",
        tuple(figures),
        _pictures(source, people, approaches[:_PICTURES]),
        _table(approaches) if approaches else None,
        "Above: when robot and people moved, and pieces of work by colour: done, or failed (also where a part was not "
        "where it was to be). Pictures and table: the nearest moment of each time that somebody was nearer than 0.5 m, "
        "nearest first; what should have been kept is the protective separation distance at that moment.",
    )


def _judged(recording: Recording, namespace: str, people: tuple[str, ...]) -> Working:
    """The run's work, judged again from its recording."""
    judge = Working(namespace)
    takes: dict[str, Any] = dict(judge.handlers())
    for name in people:
        takes |= judge.meet_person(name)
    last = 0
    for item in recording.messages([topic for topic in takes if topic in recording.topics]):
        takes[item.topic](item.message, item.time_ns)
        last = item.time_ns
    judge.finish(last)
    return judge


def _activity(judged: Working, robot: str, people: tuple[str, ...]) -> str:
    """Who moved when, and who did which work when."""
    actors = [("", robot), *((name, name) for name in people)]
    with styled():
        figure, axes = new_figure(_WIDTH, 0.6 + 0.75 * len(actors))
        labels, ticks = [], []
        for row, (key, name) in enumerate(actors):
            spans = [(start, end - start) for start, end in judged.active.get(key, [])]
            axes.broken_barh(spans, (-2 * row - 0.35, 0.7), color=TRUTH, lw=0)
            ticks.append(-2 * row)
            labels.append(f"{name} moves")
            for piece in (one for one in judged.pieces if one.actor == name):
                end = judged.end if piece.ended is None else piece.ended
                colour = MUTED if piece.ended is None else GOOD if piece.good else BAD
                axes.broken_barh([(piece.begun, end - piece.begun)], (-2 * row - 1.25, 0.5), color=colour, alpha=0.6)
            ticks.append(-2 * row - 1)
            labels.append("works")
        axes.set_yticks(ticks, labels)
        axes.set_xlim(0.0, max(judged.end, 1e-3))
        axes.grid(visible=False, axis="y")
        axes.set_xlabel("simulated time [s]")
        return svg(figure, "When robot and people moved, and when they worked")


def _cycles(judged: Working) -> str:
    """What each cycle took."""
    cycles = [one for one in judged.pieces if one.task == CYCLE and one.ended is not None]
    seconds = [(one.ended or 0.0) - one.begun for one in cycles]
    with styled():
        figure, axes = new_figure(_WIDTH, 1.9)
        colours = [COMMAND if one.good else BAD for one in cycles]
        axes.bar(range(1, len(cycles) + 1), seconds, color=colours, width=0.7)
        mean = sum(seconds) / len(seconds)
        axes.axhline(mean, color=GOOD, lw=1.2, label=f"mean {mean:.1f} s")
        axes.legend(loc="lower right", bbox_to_anchor=(1.0, 1.0), borderaxespad=0.1)
        axes.set_xticks(range(1, len(cycles) + 1, 1 + len(cycles) // 20))
        axes.set_xlabel("cycle")
        axes.set_ylabel("takes [s]")
        return svg(figure, "What each cycle took")


def _pictures(source: Source, people: tuple[str, ...], approaches: list[dict[str, Any]]) -> tuple[tuple[str, str], ...]:
    if source.simulation is None or not approaches:
        return ()
    scenes = Scenes(source.simulation, source.recording, source.story.robot, source.namespace, people)
    with closing(scenes):
        return tuple(
            (
                scenes.picture(one["time"], one["person"], one["body_part"]),
                f"{one['time']:.1f} s: {one['part']} {max(one['distance'], 0.0):.2f} m from {one['person']}'s "
                f"{one['body_part'].replace('_', ' ')}",
            )
            for one in approaches
        )


def _table(approaches: list[dict[str, Any]]) -> Table:
    head = ("time [s]", "who", "part", "robot's part", "distance [m]", "robot [m/s]", "should be [m]", "force [N]")
    rows = tuple(
        (
            f"{one['time']:.1f}", one["person"], one["body_part"].replace("_", " "), one["part"],
            f"{max(one['distance'], 0.0):.3f}", f"{one['robot_speed']:.2f}", f"{one['protective']:.2f}",
            f"{one['force']:.0f}" if one["force"] else "",
        )
        for one in approaches
    )  # fmt: skip
    return Table(head, rows, frozenset(head) - {"who", "part", "robot's part"})
