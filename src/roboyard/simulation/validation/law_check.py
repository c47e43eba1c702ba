"""A law of mechanics with its closed form, and the comparison of a simulated value with it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from roboyard.physics.settings import PhysicsSettings

DEFAULT_TOLERANCE = 0.01
"""Relative error that a check tolerates unless it says otherwise: one percent."""


def step_tolerance(settings: PhysicsSettings, tolerance_at_half_ms: float) -> float:
    """Return a tolerance that grows in proportion to the time step, from its value at 0.5 ms.

    It belongs to quantities whose error is of the first order in the time step: impacts and rotation within a step.
    """
    return tolerance_at_half_ms * max(settings.timestep / 0.0005, 1.0)


@dataclass(frozen=True, slots=True)
class Law:
    """A law with a closed form.

    Attributes:
        formula: The closed form, as text.
        source: Where the formula comes from.
    """

    formula: str
    source: str


@dataclass(frozen=True, slots=True)
class LawCheck:
    """Comparison of a simulated quantity with its value by a law.

    Attributes:
        quantity: The quantity, as a noun phrase.
        law: The law that gives its value.
        expected: The value by the law's formula.
        measured: The simulated value.
        unit: Unit of both.
        scale: The error is relative to this value in the same unit; 0: to the expected value.
        tolerance: Largest relative error for which the check passes.
    """

    quantity: str
    law: Law
    expected: float
    measured: float
    unit: str
    scale: float = 0.0
    tolerance: float = DEFAULT_TOLERANCE

    @property
    def error(self) -> float:
        """Error relative to the scale."""
        return abs(self.measured - self.expected) / (self.scale or abs(self.expected))

    @property
    def passed(self) -> bool:
        """Whether the error is within the tolerance."""
        return self.error <= self.tolerance


Experiment = Callable[[PhysicsSettings], tuple[LawCheck, ...]]
"""Simulates an experiment with these settings and returns its checks."""
