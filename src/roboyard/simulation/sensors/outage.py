"""Times in which a sensor says nothing, at random."""

from __future__ import annotations

from typing import Any

import numpy as np

from roboyard.description.sensors import Outage
from roboyard.simulation.randomness import plain_state, restore_generator


class Outages:
    """Alternates between working and silent, both of exponentially distributed length.

    Args:
        spec: Mean lengths.
        rng: Draws them; its own, so that the noise stays the same with and without outages.
    """

    def __init__(self, spec: Outage, rng: np.random.Generator) -> None:
        self._spec, self._rng = spec, rng
        self._out, self._until_ns = True, 0  # the first change is at once, to working
        if spec.mean_interval <= 0.0:
            self._out, self._until_ns = False, -1

    def at(self, time_ns: int) -> bool:
        """Whether it is silent at ``time_ns``, which never goes back."""
        while 0 <= self._until_ns <= time_ns:
            self._out = not self._out
            mean = self._spec.mean_duration if self._out else self._spec.mean_interval
            self._until_ns += max(1, round(self._rng.exponential(mean) * 1e9))
        return self._out

    def save_state(self) -> dict[str, Any]:
        """State as plain data."""
        return {
            "out": self._out,
            "until_ns": self._until_ns,
            "generator": plain_state(dict(self._rng.bit_generator.state)),
        }

    def load_state(self, saved: dict[str, Any]) -> None:
        """Counterpart of `save`."""
        self._out, self._until_ns = saved["out"], saved["until_ns"]
        restore_generator(self._rng, saved["generator"])
