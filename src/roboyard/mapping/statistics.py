"""Errors in a few numbers."""

from __future__ import annotations

from dataclasses import asdict, dataclass

import numpy as np
from numpy.typing import ArrayLike

from roboyard.errors import InputError


@dataclass(frozen=True, slots=True)
class ErrorStatistics:
    """How large errors are, all of them taken without sign.

    Attributes:
        mean: Of their sizes.
        std: Standard deviation of the sizes about their mean.
        median: Half are smaller.
        rmse: Root of the mean of the squares.
        maximum: The largest.
        count: How many there are.
    """

    mean: float
    std: float
    median: float
    rmse: float
    maximum: float
    count: int

    @classmethod
    def of(cls, errors: ArrayLike) -> ErrorStatistics:
        """Of errors (n,), at least one.

        Raises:
            InputError: there is none, or one is not finite.
        """
        sizes = np.abs(np.asarray(errors, dtype=np.float64).ravel())
        if not len(sizes):
            raise InputError("no errors to make statistics of", valid="at least one")
        if not np.isfinite(sizes).all():
            raise InputError("an error is not finite", valid="numbers")
        rmse = float(np.sqrt(np.mean(sizes**2)))
        return cls(
            float(sizes.mean()), float(sizes.std()), float(np.median(sizes)), rmse, float(sizes.max()), len(sizes)
        )

    def as_dict(self) -> dict[str, float | int]:
        """Plain numbers by name."""
        return asdict(self)
