"""What nodes say of their own condition, as /diagnostics shows it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

HealthLevel = Literal["ok", "warn", "error", "stale"]
HEALTH_LEVELS: dict[HealthLevel, int] = {"ok": 0, "warn": 1, "error": 2, "stale": 3}
"""The numbers of diagnostic_msgs/DiagnosticStatus."""


@dataclass(frozen=True, slots=True)
class Health:
    """One node's condition."""

    level: HealthLevel
    text: str
    values: tuple[tuple[str, str], ...] = ()
