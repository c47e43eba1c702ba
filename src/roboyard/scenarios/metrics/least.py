"""The least of a figure over time, in a bounded number of spans."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field

MOST = 300
"""Spans; when they are full, each two become one."""


@dataclass(slots=True)
class LeastOverTime:
    """The least values of several figures in spans of equal length.

    Attributes:
        span: Length of each [s].
        rows: By figure, the least in each span; infinite where it was not told.
    """

    span: float = 0.5
    rows: dict[str, list[float]] = field(default_factory=dict)

    def take(self, time: float, values: Mapping[str, float]) -> None:
        """Take figures of a moment [s]."""
        while time >= MOST * self.span:
            self.span *= 2.0
            self.rows = {name: [min(row[k : k + 2]) for k in range(0, len(row), 2)] for name, row in self.rows.items()}
        place = int(time / self.span)
        for name, value in values.items():
            row = self.rows.setdefault(name, [])
            row += [math.inf] * (place + 1 - len(row))
            row[place] = min(row[place], value)

    def told(self) -> dict[str, list[float | None]]:
        """By figure, as JSON has it: to a millimetre, None where it was not told."""
        return {
            name: [round(value, 3) if math.isfinite(value) else None for value in row]
            for name, row in self.rows.items()
        }
