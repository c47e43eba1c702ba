"""What a run came to, in a few lines."""

from __future__ import annotations

import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from roboyard.cli.terminal import columns, paint, say

_SHOWN = (
    ("path_length", "drove", "m"),
    ("odom_rmse", "odometry error", "m rms"),
    ("odom_final_error", "at the end", "m"),
)


def show_outcome(document: Mapping[str, Any], files: Mapping[str, Path]) -> None:
    """Verdict, main numbers, and where everything lies."""
    show_verdict(document)
    show_numbers(document)
    if files:
        say()
        columns([("  " + kind, file) for kind, file in files.items()])


def show_verdict(document: Mapping[str, Any]) -> None:
    """One line for the run, one for each criterion."""
    good = bool(document["success"])
    state = str(document["state"])
    word = "criteria held" if good and document["criteria"] else "done" if good else _ENDINGS.get(state, state)
    colour = "1;32" if good else "1;31"
    judged = "" if state == "done" or not document["criteria"] else "; criteria are not judged"
    say(f"{paint(word, colour, sys.stdout)}: {document['scenario']}, seed {document['seed']}{judged}")
    if document.get("error"):
        say(f"  {document['error']}")
    for name, found in document["criteria"].items():
        passed = found["passed"]
        mark = "?" if passed is None else paint("✓", "32", sys.stdout) if passed else paint("✗", "31", sys.stdout)
        say(f"  {mark} {name}: {found['expression']}{_values(found)}{_reason(found)}")


def show_numbers(document: Mapping[str, Any]) -> None:
    """Time, pace, and the main robot's main metrics."""
    parts = [f"{document['sim_seconds']:.4g} s simulated"]
    if document.get("real_time_factor"):
        parts.append(f"{document['real_time_factor']:.3g} × real time")
    parts.append(f"{document['messages']:,} messages")
    for key, label, unit in _SHOWN:
        if isinstance(document.get(key), (int, float)):
            parts.append(f"{label} {document[key]:.3g} {unit}")
    if document.get("contacts") is not None:
        parts.append(f"contacts {document['contacts']}")
    say("  " + ", ".join(parts))


_ENDINGS = {"done": "criteria not held", "failed": "failed", "killed": "killed"}


def _values(found: Mapping[str, Any]) -> str:
    shown = ", ".join(f"{key} = {_short(value)}" for key, value in dict(found["values"]).items())
    return f"  ({shown})" if shown else ""


def _reason(found: Mapping[str, Any]) -> str:
    """Why a criterion was not held or could not be judged, if there is more to say than its values."""
    return f", {found['reason']}" if found["reason"] and found["passed"] is False else ""


def _short(value: Any) -> str:
    return f"{value:.4g}" if isinstance(value, float) else str(value)
