"""What the doctor says of one thing."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Finding:
    """One thing looked at.

    Attributes:
        what: It is.
        good: None for what is merely said, or what only some need.
        text: What was found.
        advice: What to do about it; "" where nothing is to be done. What is not good always has one.
    """

    what: str
    good: bool | None
    text: str
    advice: str = ""
