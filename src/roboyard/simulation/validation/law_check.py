"""The comparison of one simulated value with its closed form."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from roboyard.physics.settings import PhysicsSettings

DEFAULT_BOUND = 0.01
"""Error that a law may have unless it says otherwise: one per cent."""


def step_bound(settings: PhysicsSettings, bound_at_half_ms: float) -> float:
    """A bound that grows with the step, from ``bound_at_half_ms`` at 0.5 ms: of what happens within a step or turns
    in it."""
    return bound_at_half_ms * max(settings.timestep / 0.0005, 1.0)


@dataclass(frozen=True, slots=True)
class LawCheck:
    """A law, its true value, and what was measured.

    Attributes:
        law: What was looked at, as a noun phrase.
        formula: The closed form, as text.
        expected: Its value.
        measured: The engine's.
        unit: Of both.
        scale: What errors are compared with, in the same unit; 0 takes the true value's size.
        bound: Error that is promised, as a share of the scale.
    """

    law: str
    formula: str
    expected: float
    measured: float
    unit: str
    scale: float = 0.0
    bound: float = DEFAULT_BOUND

    @property
    def error(self) -> float:
        """Distance from the truth, as a share of the scale."""
        return abs(self.measured - self.expected) / (self.scale or abs(self.expected))

    @property
    def passed(self) -> bool:
        """Whether the error is within its bound."""
        return self.error <= self.bound


Experiment = Callable[[PhysicsSettings], tuple[LawCheck, ...]]
"""Does an experiment in worlds with these settings."""
