"""In what order faults begin and end, and what of it has happened by what a recording says."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

from roboyard.scenarios.faults.kinds import Fault, Lasting

MOMENTARY = (
    "spawn", "remove", "furniture", "knock_over", "take_away", "slip", "cover", "erase", "push_together", "occupy",
    "press", "foothold_gone",
)  # fmt: skip
"""Kinds that happen and are over."""
OVER = "over: "
"""How the log begins to say that a fault has ended."""


def times_of(fault: Fault) -> tuple[int, int | None]:
    """When a fault begins and ends [ns]; None: it does not end."""
    begin_ns = round(fault.at * 1e9)
    lasts = fault.seconds if isinstance(fault, Lasting) else None
    return begin_ns, None if lasts is None else begin_ns + max(1, round(lasts * 1e9))


def agenda(times: Iterable[tuple[int, int | None]]) -> list[tuple[int, int, bool]]:
    """(time [ns], number, whether it begins) in order; at one instant what ends goes before what begins."""
    order = []
    for number, (begin_ns, end_ns) in enumerate(times):
        order.append((begin_ns, 1, number, True))
        if end_ns is not None:
            order.append((end_ns, 0, number, False))
    return [(time_ns, number, begins) for time_ns, _, number, begins in sorted(order)]


def event(time: float, kind: str, begins: bool, text: str) -> dict[str, Any]:
    """What metrics.json says of it."""
    state = "happened" if kind in MOMENTARY else "began" if begins else "ended"
    return {"time": time, "kind": kind, "state": state, "text": text}


def line(text: str, on: str) -> str:
    """What the log says of a fault that begins or ends; of one that waited for a skill also for what."""
    return f"{text} (on {on})" if on else text


def events_by(faults: Sequence[Fault], log: Iterable[tuple[int, str]], end_ns: int) -> list[dict[str, Any]]:
    """The events up to ``end_ns`` [ns], told again from what the node ``faults`` has logged by then.

    Args:
        faults: As the scenario says.
        log: Times [ns] and lines of the node, one for each event; those that waited for no skill in the agenda's order.
        end_ns: How far the run came.

    Without a line the kind is the text.
    """
    waited = {str(on): fault.what for fault in faults if (on := getattr(fault, "on", None)) is not None}
    timed = [fault for fault in faults if getattr(fault, "on", None) is None]
    lines, found = [], []
    for time_ns, text in log:
        on = next((on for on in waited if text.endswith(f" (on {on})")), None)
        if on is None:
            lines.append(text)
        else:
            found.append(event(time_ns * 1e-9, waited[on], not text.startswith(OVER), text.removeprefix(OVER)))
    told = iter(lines)
    for time_ns, number, begins in agenda(map(times_of, timed)):
        if time_ns <= end_ns:
            kind = timed[number].what
            found.append(event(time_ns * 1e-9, kind, begins, next(told, kind).removeprefix(OVER)))
    return sorted(found, key=lambda one: float(one["time"]))
