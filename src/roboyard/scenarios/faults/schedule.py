"""The order in which faults start and end, and the events that a recording's log gives of them."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

from roboyard.scenarios.faults.schema import FaultConfig, LastingFault, TriggeredFault

END_PREFIX = "over: "
"""Prefix of the log line of a fault that has ended."""


def fault_times(fault: FaultConfig) -> tuple[int, int | None]:
    """Return when a fault begins and ends [ns]; None: it does not end."""
    start_ns = round(fault.time * 1e9)
    duration = fault.duration if isinstance(fault, LastingFault) else None
    return start_ns, None if duration is None else start_ns + max(1, round(duration * 1e9))


def fault_schedule(times: Iterable[tuple[int, int | None]]) -> list[tuple[int, int, bool]]:
    """Return (time [ns], number, whether it begins) in order; at one instant faults end before others begin."""
    order = []
    for number, (start_ns, end_ns) in enumerate(times):
        order.append((start_ns, 1, number, True))
        if end_ns is not None:
            order.append((end_ns, 0, number, False))
    return [(time_ns, number, is_start) for time_ns, _, number, is_start in sorted(order)]


def fault_event(time: float, fault: FaultConfig, is_start: bool, text: str) -> dict[str, Any]:
    """Return the event that metrics.json lists for a fault that begins or ends.

    Args:
        time: Simulated time [s].
        fault: The fault.
        is_start: Whether it begins.
        text: What happened, in words.
    """
    state = "occurred" if fault.is_momentary else "started" if is_start else "finished"
    return {"time": time, "kind": fault.type, "state": state, "text": text}


def trigger_of(fault: FaultConfig) -> str | None:
    """Return the skill or phase that a fault waits for; None: it begins at its time."""
    return fault.trigger if isinstance(fault, TriggeredFault) else None


def log_line(text: str, trigger: str | None) -> str:
    """Return the log line of a fault that begins or ends, with the trigger that it waited for, if any."""
    return f"{text} (on {trigger})" if trigger else text


def events_from_log(faults: Sequence[FaultConfig], log: Iterable[tuple[int, str]], end_ns: int) -> list[dict[str, Any]]:
    """Return the events up to a time, reconstructed from what the node ``faults`` has logged by then.

    Args:
        faults: Faults of the scenario, in its order.
        log: Times [ns] and lines of the node, one for each event; those without a trigger in the order of the
            schedule. An event without a line has its type as text.
        end_ns: Time up to which the run came [ns].
    """
    faults_by_trigger = {trigger: fault for fault in faults if (trigger := trigger_of(fault)) is not None}
    timed = [fault for fault in faults if trigger_of(fault) is None]
    lines, events = [], []
    for time_ns, text in log:
        fault = next(
            (fault for trigger, fault in faults_by_trigger.items() if text.endswith(log_line("", trigger))), None
        )
        if fault is None:
            lines.append(text)
        else:
            is_start = not text.startswith(END_PREFIX)
            events.append(fault_event(time_ns * 1e-9, fault, is_start, text.removeprefix(END_PREFIX)))
    remaining_lines = iter(lines)
    for time_ns, number, is_start in fault_schedule(map(fault_times, timed)):
        if time_ns <= end_ns:
            text = next(remaining_lines, timed[number].type).removeprefix(END_PREFIX)
            events.append(fault_event(time_ns * 1e-9, timed[number], is_start, text))
    return sorted(events, key=lambda item: float(item["time"]))
