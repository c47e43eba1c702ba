"""Whether the particles still explain what is seen: averages of the weights, and when to look elsewhere."""

from __future__ import annotations

from typing import Any

_LONGEST_PAUSE = 15
"""Updates between two searches, at most."""


class Averages:
    """The slow and the fast average of augmented Monte-Carlo localisation (Probabilistic Robotics, table 8.3).

    Args:
        slow: Share of the newest weight in the slow average.
        fast: Likewise in the fast one; either 0: never recover.

    A look that found nothing better is repeated later and later, so that a place that has changed for good does not
    cost a search with every scan.

    Attributes:
        share: Of the particles that should be replaced now.
    """

    def __init__(self, slow: float, fast: float) -> None:
        self._alphas = (slow, fast)
        self._slow: float | None = None
        self._fast: float | None = None
        self._belief: float | None = None
        self.share = 0.0
        self._pause = self._wait = 0

    def weighed(self, weight: float) -> None:
        """Take the mean likelihood of one beam over all particles."""
        if self._slow is None or self._fast is None:
            self._slow = self._fast = weight
        self._slow += self._alphas[0] * (weight - self._slow)
        self._fast += self._alphas[1] * (weight - self._fast)

    def believed(self, belief: float) -> None:
        """Take how far the scan leaves the estimate possible, see ``visibility.belief``."""
        before = belief if self._belief is None else self._belief
        self._belief = before + max(self._alphas[1], 0.2) * (belief - before)

    def recover(self, lost_share: float) -> float:
        """Share of particles to replace now: 1 - fast / slow, or by how much the estimate is contradicted, if it is.

        The averages alone do not tell a robot that was carried off from one with people about it; what goes through
        walls does.  A share below a percent is no reason to search the whole map.
        """
        self.share = 0.0
        if min(self._alphas) <= 0.0 or self._slow is None or self._fast is None or self._belief is None:
            return 0.0
        drop = max(0.0, 1.0 - self._fast / self._slow) if self._slow > 0.0 else 0.0
        missing = max(0.0, 1.0 - self._belief / lost_share) if lost_share > 0.0 else 0.0
        share = min(0.5, max(drop, missing)) if missing > 0.0 else 0.0
        if share <= 0.01:
            self._pause = self._wait = 0
        elif self._wait > 0:
            self._wait -= 1
        else:
            self.share = share
        return self.share

    def looked(self, found: bool) -> None:
        """A search for better places ended."""
        self._pause = 0 if found else min(2 * self._pause + 1, _LONGEST_PAUSE)
        self._wait = self._pause

    def save_state(self) -> dict[str, Any]:
        """State as plain data."""
        return {
            "slow": self._slow, "fast": self._fast, "belief": self._belief, "share": self.share,
            "pause": self._pause, "wait": self._wait,
        }  # fmt: skip

    def load_state(self, state: dict[str, Any]) -> None:
        """Take back what ``save`` gave."""
        self._slow, self._fast, self._belief = state["slow"], state["fast"], state["belief"]
        self.share, self._pause, self._wait = state["share"], state["pause"], state["wait"]
