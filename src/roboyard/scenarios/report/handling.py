"""The report's part about picking and placing: each of them with its error and cause, and what the robot saw."""

from __future__ import annotations

import base64
from typing import Any

import numpy as np

from roboyard.record import Recording
from roboyard.scenarios.metrics.handling import Handled, Handling
from roboyard.scenarios.report.section import Section, Source, Table
from roboyard.scenarios.report.style import BAD, COMMAND, GOOD, MUTED, new_figure, styled, svg

_PICTURES = 6
"""Of what was seen: the first ones, and those from before what went wrong."""
_SEEN = "discs/image/compressed"


def handling_part(source: Source) -> Section | None:
    """Of one robot; None if its skills told nothing.

    Raises:
        RecordingError: the recording is damaged.
    """
    if f"{source.namespace}/skills/events" not in source.recording.topics:
        return None
    judged = _judged(source)
    if not judged.handled:
        return None
    rows = tuple(_row(number, one) for number, one in enumerate(judged.handled, 1))
    head = ("#", "end [s]", "what", "takes [s]", "bay", "thing", "error [mm]", "", "why not")
    errors = [1e3 * one.error for one in judged.handled if one.done and one.error is not None]
    return Section(
        "Picks and places",
        (_errors_figure(judged.handled),) if errors else (),
        _pictures(source.recording, source.namespace, judged.handled),
        Table(head, rows, frozenset(("#", "end [s]", "takes [s]", "bay", "error [mm]"))),
        "Errors are true ones: from the middle between the two discs to where the thing stands 0.6 s after it was put "
        "down. Pictures are what the wrist camera saw, with what was found drawn in.",
    )


def _judged(source: Source) -> Handling:
    """The run's picks and places, judged again from its recording."""
    topics = source.topics
    judge = Handling(topics.namespace, topics.truth, topics.contacts)
    takes = {name: take for name, take in judge.handlers().items() if name in source.recording.topics}
    last = 0
    for item in source.recording.messages(list(takes)):
        takes[item.topic](item.message, item.time_ns)
        last = item.time_ns
    judge.finish(last)
    return judge


def _row(number: int, one: Handled) -> tuple[str, ...]:
    error = "" if one.error is None else f"{1e3 * one.error:.2f}"
    words = (
        ("done", one.good), ("not done", not one.done), ("nothing is up", not one.risen),
        ("fell over", not one.stands), ("beside it", True),
    )  # fmt: skip
    word = next(text for text, holds in words if holds)
    why = f"{one.cause}: {one.text}" if one.cause and one.text else one.cause
    bay = str(one.bay) if one.bay else ""
    return (str(number), f"{one.time:.1f}", one.skill, f"{one.seconds:.1f}", bay, one.thing, error, word, why)


def _errors_figure(handled: list[Handled]) -> str:
    """Errors of places in their order, and how often which."""
    errors = np.array([1e3 * one.error for one in handled if one.done and one.error is not None])
    with styled():
        figure, (axes, counts) = new_figure(8.6, 2.6, columns=2, alike=False)
        axes.plot(np.arange(1, len(errors) + 1), errors, "o", ms=4, color=COMMAND)
        axes.axhline(float(errors.mean()), color=GOOD, lw=1.0, label=f"mean {errors.mean():.2f} mm")
        p95 = float(np.percentile(errors, 95))
        axes.axhline(p95, color=BAD, lw=1.0, label=f"19 of 20 below {p95:.2f} mm")
        axes.set_ylim(0.0, None)
        axes.set_xlabel("place")
        axes.set_ylabel("error [mm]")
        axes.legend(loc="upper left", bbox_to_anchor=(0.0, 1.16), ncols=2, handlelength=1.2)
        counts.hist(errors, bins=min(20, max(5, len(errors) // 2)), color=MUTED)
        counts.set_xlabel("error [mm]")
        counts.set_ylabel("places")
        return svg(figure, "Errors of the places in their order, and how many have which")


def _pictures(recording: Recording, namespace: str, handled: list[Handled]) -> tuple[tuple[str, str], ...]:
    """The first looks, and the last ones before each of what failed."""
    topic = f"{namespace}/{_SEEN}"
    if topic not in recording.topics:
        return ()
    times = [item.time_ns for item in recording.messages([topic])]
    failed = [round(one.time * 1e9) for one in handled if not one.good]
    before = [max((time for time in times if time <= end), default=None) for end in failed]
    wanted = list(dict.fromkeys([time for time in before if time is not None][: _PICTURES // 2] + times))[:_PICTURES]
    found = []
    for item in recording.messages([topic]):
        if item.time_ns in wanted:
            word = ", before what was not done" if item.time_ns in before else ""
            found.append((_source(item.message), f"{item.time_ns * 1e-9:.1f} s{word}"))
    return tuple(found)


def _source(message: Any) -> str:
    return "data:image/jpeg;base64," + base64.b64encode(bytes(message.data)).decode()
