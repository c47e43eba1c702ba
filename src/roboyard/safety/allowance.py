"""Between who drives an arm by hand and the guard: what is wanted, and what share of it is allowed."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from roboyard.geometry.arrays import Array


class Allowance:
    """The share of what it wants that a driver may do, as the guard told last; nothing while the guard is silent.

    Args:
        timeout: After so long without a word the guard is silent [s].
    """

    def __init__(self, timeout: float) -> None:
        self._timeout_ns = round(timeout * 1e9)
        self._share, self._told_ns = 0.0, -(10**18)

    def tell(self, share: float, now_ns: int) -> None:
        """Take what the guard says; what is not from 0 to 1 allows nothing."""
        self._share, self._told_ns = (share if 0.0 <= share <= 1.0 else 0.0), now_ns

    def share(self, now_ns: int) -> float:
        """From 0 to 1."""
        return self._share if now_ns - self._told_ns <= self._timeout_ns else 0.0

    def save_state(self) -> tuple[float, int]:
        """State as plain data."""
        return self._share, self._told_ns

    def load_state(self, saved: tuple[float, int]) -> None:
        """Counterpart of `save`."""
        self._share, self._told_ns = saved


def going_on(q: Array, speeds: Array) -> Callable[[Array], tuple[Array, Array]]:
    """What joints will do whose driver goes on to want what it wants now: for `Motion.ahead`.

    Args:
        q: (n,) where they are.
        speeds: (n,) wanted.
    """

    def ahead(times: Array) -> tuple[Array, Array]:
        return q[None] + np.outer(times, speeds), np.tile(speeds, (len(times), 1))

    return ahead
