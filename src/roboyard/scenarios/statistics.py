"""What a number of runs says about the next one."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

Z_95 = 1.959963984540054
"""Two-sided 95 % point of the normal distribution."""


@dataclass(frozen=True, slots=True)
class Rate:
    """A share with its confidence interval."""

    successes: int
    total: int
    low: float
    high: float

    @property
    def value(self) -> float:
        """The observed share; NaN of nothing."""
        return self.successes / self.total if self.total else math.nan

    def __str__(self) -> str:
        if not self.total:
            return "no runs"
        return f"{self.successes} of {self.total} ({self.value:.1%}, 95 % interval {self.low:.1%} to {self.high:.1%})"


def wilson(successes: int, total: int, z: float = Z_95) -> Rate:
    """Wilson's score interval for a share.

    Args:
        successes: How many succeeded.
        total: Of how many; 0 gives the interval (0, 1).
        z: Normal quantile of the confidence wanted.

    Source: E. B. Wilson, "Probable inference, the law of succession, and statistical inference", JASA 22 (1927).
    """
    if total == 0:
        return Rate(0, 0, 0.0, 1.0)
    share = successes / total
    scale = 1.0 + z * z / total
    centre = (share + z * z / (2 * total)) / scale
    half = z * math.sqrt(share * (1.0 - share) / total + z * z / (4.0 * total * total)) / scale
    low = 0.0 if successes == 0 else max(0.0, centre - half)  # exactly: rounding must not leave a sliver
    high = 1.0 if successes == total else min(1.0, centre + half)
    return Rate(successes, total, low, high)


@dataclass(frozen=True, slots=True)
class Spread:
    """How one metric varies over runs."""

    count: int
    mean: float
    deviation: float
    minimum: float
    median: float
    maximum: float


def spread(values: Sequence[float]) -> Spread | None:
    """Mean, sample standard deviation, extremes and median; None of no values."""
    if not values:
        return None
    ordered = sorted(values)
    count = len(ordered)
    mean = math.fsum(ordered) / count
    variance = math.fsum((value - mean) ** 2 for value in ordered) / (count - 1) if count > 1 else 0.0
    middle = (ordered[(count - 1) // 2] + ordered[count // 2]) / 2.0
    return Spread(count, mean, math.sqrt(variance), ordered[0], middle, ordered[-1])
