"""People as upright columns: what sensors that see only where somebody is make of their bodies."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from roboyard.geometry.arrays import Array


@dataclass(frozen=True, eq=False)
class BodyColumns:
    """Upright capsules, n of them, that hold a body.

    Attributes:
        places: (n, 2) of their middle lines [m].
        bottoms: (n,) their lowest points [m].
        tops: (n,) their highest [m].
        radii: (n,) [m].
    """

    places: Array
    bottoms: Array
    tops: Array
    radii: Array

    @classmethod
    def single(cls, place: tuple[float, float], height: float, radius: float) -> BodyColumns:
        """One from the floor up that holds all of somebody."""
        return cls(np.array([place], dtype=np.float64), np.zeros(1), np.array([height]), np.array([radius]))

    def moved(self, by: tuple[float, float]) -> BodyColumns:
        """Somewhere else by so much [m]."""
        return BodyColumns(self.places + np.asarray(by), self.bottoms, self.tops, self.radii)

    def middle_lines(self) -> tuple[Array, Array]:
        """Heights of their middles (n,), and how long their middle lines are (n,), zero of a ball [m]."""
        return 0.5 * (self.bottoms + self.tops), np.maximum(self.tops - self.bottoms - 2.0 * self.radii, 0.0)


@dataclass(frozen=True, eq=False)
class Cells:
    """Squares of the floor above which something was seen, n of them.

    Attributes:
        places: (n, 2) their middles [m].
        lowest: (n,) height of the lowest point above each [m].
        highest: (n,) of the highest [m].
    """

    places: Array
    lowest: Array
    highest: Array

    @classmethod
    def of(cls, points: Array, side: float, least: int) -> Cells:
        """Those with at least so many points.

        Args:
            points: (k, 3) [m].
            side: Of the squares [m].
            least: See above.
        """
        if not len(points):
            return cls(np.zeros((0, 2)), np.zeros(0), np.zeros(0))
        squares, owner, counts = np.unique(
            np.floor(points[:, :2] / side).astype(np.int64), axis=0, return_inverse=True, return_counts=True
        )
        lowest, highest = np.full(len(squares), np.inf), np.full(len(squares), -np.inf)
        np.minimum.at(lowest, owner.ravel(), points[:, 2])
        np.maximum.at(highest, owner.ravel(), points[:, 2])
        kept = counts >= least
        return cls(side * (squares[kept].astype(np.float64) + 0.5), lowest[kept], highest[kept])

    def taken(self, rows: NDArray[np.int64]) -> Cells:
        """Some of them."""
        return Cells(self.places[rows], self.lowest[rows], self.highest[rows])
