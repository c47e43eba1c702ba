"""A gyroscope's bias, learned while the base stands."""

from __future__ import annotations

from typing import Any

import numpy as np

from roboyard.geometry.arrays import Array

_SETTLE_NS = 200_000_000
"""Standing counts only after so long without motion, so that rocking has died away [ns]."""
_LEAST = 10


class RestBias:
    """Averages turn rates over all time that the base stood, newer ones counting more.

    Args:
        memory: Readings that the average goes back over.

    Attributes:
        bias: (3,) [rad/s]; zero until the base has stood.
        variance: (3,) of the bias [(rad/s)²]; infinite until then.
    """

    def __init__(self, memory: int = 1000) -> None:
        self._memory = memory
        self._mean, self._spread, self._count = np.zeros(3), np.zeros(3), 0
        self._still_since: int | None = None

    def moves(self, time_ns: int, still: bool) -> None:
        """Hear whether the base moves."""
        if not still:
            self._still_since = None
        elif self._still_since is None:
            self._still_since = time_ns

    def reading(self, time_ns: int, rates: Array) -> Array:
        """Take a reading (3,) [rad/s] and give it without the bias."""
        if self._still_since is not None and time_ns - self._still_since >= _SETTLE_NS and np.isfinite(rates).all():
            self._count += 1
            share = 1.0 / min(self._count, self._memory)
            away = rates - self._mean
            self._mean = self._mean + share * away
            self._spread = (1.0 - share) * (self._spread + share * away**2)
        return rates - self.bias

    @property
    def bias(self) -> Array:
        """(3,) [rad/s]."""
        return self._mean if self._count >= _LEAST else np.zeros(3)

    @property
    def variance(self) -> Array:
        """(3,) [(rad/s)²]."""
        if self._count < _LEAST:
            return np.full(3, np.inf)
        return np.asarray(self._spread / min(self._count, self._memory))

    def save_state(self) -> dict[str, Any]:
        """State as plain data."""
        return {
            "mean": self._mean.copy(), "spread": self._spread.copy(), "count": self._count,
            "still_since": self._still_since,
        }  # fmt: skip

    def load_state(self, state: dict[str, Any]) -> None:
        """Take back what ``save`` gave."""
        self._mean, self._spread = np.array(state["mean"]), np.array(state["spread"])
        self._count, self._still_since = state["count"], state["still_since"]
