"""The order in which faults start and end, and the events that a recording's log tells of them."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

from roboyard.scenarios.faults.schema import FaultConfig, LastingFault

MOMENTARY_FAULTS = (
    "spawn", "remove", "device_command", "knock_over", "remove_object", "drop_object", "cover_place", "remove_place",
    "push_objects_together", "occupy_place", "call_service", "foothold_collapse",
)  # fmt: skip
"""Kinds that happen and are over."""
END_PREFIX = "over: "
"""How the log begins to say that a fault has ended."""


def fault_times(fault: FaultConfig) -> tuple[int, int | None]:
    """When a fault begins and ends [ns]; None: it does not end."""
    start_ns = round(fault.time * 1e9)
    duration = fault.duration if isinstance(fault, LastingFault) else None
    return start_ns, None if duration is None else start_ns + max(1, round(duration * 1e9))


def fault_schedule(times: Iterable[tuple[int, int | None]]) -> list[tuple[int, int, bool]]:
    """(time [ns], number, whether it begins) in order; at one instant what ends goes before what begins."""
    order = []
    for number, (start_ns, end_ns) in enumerate(times):
        order.append((start_ns, 1, number, True))
        if end_ns is not None:
            order.append((end_ns, 0, number, False))
    return [(time_ns, number, is_start) for time_ns, _, number, is_start in sorted(order)]


def fault_event(time: float, kind: str, is_start: bool, text: str) -> dict[str, Any]:
    """What metrics.json says of it."""
    state = "occurred" if kind in MOMENTARY_FAULTS else "started" if is_start else "finished"
    return {"time": time, "kind": kind, "state": state, "text": text}


def log_line(text: str, trigger: str) -> str:
    """What the log says of a fault that begins or ends; of one that waited for a skill also for what."""
    return f"{text} (on {trigger})" if trigger else text


def events_from_log(faults: Sequence[FaultConfig], log: Iterable[tuple[int, str]], end_ns: int) -> list[dict[str, Any]]:
    """The events up to ``end_ns`` [ns], told again from what the node ``faults`` has logged by then.

    Args:
        faults: As the scenario says.
        log: Times [ns] and lines of the node, one for each event; those that waited for no skill in the agenda's order.
        end_ns: How far the run came.

    Without a line the kind is the text.
    """
    types_by_trigger = {
        str(trigger): fault.type for fault in faults if (trigger := getattr(fault, "trigger", None)) is not None
    }
    timed = [fault for fault in faults if getattr(fault, "trigger", None) is None]
    lines, events = [], []
    for time_ns, text in log:
        trigger = next((trigger for trigger in types_by_trigger if text.endswith(f" (on {trigger})")), None)
        if trigger is None:
            lines.append(text)
        else:
            events.append(
                fault_event(
                    time_ns * 1e-9,
                    types_by_trigger[trigger],
                    not text.startswith(END_PREFIX),
                    text.removeprefix(END_PREFIX),
                )
            )
    remaining_lines = iter(lines)
    for time_ns, number, is_start in fault_schedule(map(fault_times, timed)):
        if time_ns <= end_ns:
            kind = timed[number].type
            events.append(
                fault_event(time_ns * 1e-9, kind, is_start, next(remaining_lines, kind).removeprefix(END_PREFIX))
            )
    return sorted(events, key=lambda item: float(item["time"]))
