"""One closed form beside what the engine does."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from roboyard.simulation.settings import PhysicsSettings

BOUND = 0.01
"""Error that a law may have unless it says otherwise: one per cent."""


def first_order(settings: PhysicsSettings, at_half_ms: float) -> float:
    """A bound that grows with the step, from ``at_half_ms`` at 0.5 ms: of what happens within a step or turns in it."""
    return at_half_ms * max(settings.timestep / 0.0005, 1.0)


@dataclass(frozen=True, slots=True)
class Check:
    """A law, its true value, and what was measured.

    Attributes:
        law: What was looked at, as a noun phrase.
        form: The closed form, as text.
        truth: Its value.
        measured: The engine's.
        unit: Of both.
        scale: What errors are compared with, in the same unit; 0 takes the true value's size.
        bound: Error that is promised, as a share of the scale.
    """

    law: str
    form: str
    truth: float
    measured: float
    unit: str
    scale: float = 0.0
    bound: float = BOUND

    @property
    def error(self) -> float:
        """Distance from the truth, as a share of the scale."""
        return abs(self.measured - self.truth) / (self.scale or abs(self.truth))

    @property
    def held(self) -> bool:
        """Whether the error is within its bound."""
        return self.error <= self.bound


Proof = Callable[[PhysicsSettings], tuple[Check, ...]]
"""Does an experiment in worlds with these settings."""
