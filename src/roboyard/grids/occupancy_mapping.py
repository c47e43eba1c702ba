"""Occupancy mapping from hit and miss counts per cell."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray

from roboyard.errors import InputError
from roboyard.grids.occupancy import UNKNOWN, GridGeometry, OccupancyGrid
from roboyard.grids.ray_casting import count_hits_and_misses

_MAX_BEAM_CELLS = 100_000
"""Maximum number of cells that a beam may cross; longer beams are treated as invalid."""


@dataclass(frozen=True, slots=True)
class InverseSensorModel:
    """Inverse sensor model of a beam, in log-odds.

    Attributes:
        log_odds_hit: Evidence for the cell in which the beam ends.
        log_odds_miss: Evidence for cells that the beam passes through; negative.
        log_odds_max: Bound of the accumulated evidence, so that the map can adapt to changes.
        min_observations: Minimum number of beams; cells with less evidence remain unknown.
    """

    log_odds_hit: float = 0.85
    log_odds_miss: float = -0.4
    log_odds_max: float = 4.0
    min_observations: int = 1


class OccupancyMapBuilder:
    """Builder of an occupancy map from beams in any order.

    Args:
        geometry: Geometry of the cells; beams are clipped to it.
        model: Inverse sensor model.
    """

    def __init__(self, geometry: GridGeometry, model: InverseSensorModel | None = None) -> None:
        self.geometry = geometry
        self.model = model or InverseSensorModel()
        self.hits: NDArray[np.int32] = np.zeros(geometry.shape, dtype=np.int32)
        self.misses: NDArray[np.int32] = np.zeros(geometry.shape, dtype=np.int32)

    def add_beams(self, start: ArrayLike, ends: ArrayLike, hit: ArrayLike = True) -> None:
        """Add beams.

        Args:
            start: (2,) or (n, 2) start points in the map [m].
            ends: (n, 2) end points in the map [m]; points that are not finite or extremely far away are skipped.
            hit: Whether an obstacle ended the beam, one value for all or (n,).

        Raises:
            InputError: The shapes do not match.
        """
        points = np.asarray(ends, dtype=np.float64)
        if points.ndim != 2 or points.shape[1] != 2:
            raise InputError(f"beam ends have the shape {points.shape}", valid="(n, 2)")
        T_grid_map = self.geometry.T_map_grid.inverse()
        origins = np.broadcast_to(np.asarray(start, dtype=np.float64), points.shape)
        stopped = np.ascontiguousarray(np.broadcast_to(np.asarray(hit, dtype=np.bool_), len(points)))
        with np.errstate(invalid="ignore"):
            usable = (
                np.abs(points - origins).max(axis=1, initial=0.0) < _MAX_BEAM_CELLS * self.geometry.resolution
            )  # False for NaN
        if not usable.all():
            points, origins, stopped = points[usable], origins[usable], stopped[usable]
        scale = 1.0 / self.geometry.resolution
        count_hits_and_misses(
            self.hits,
            self.misses,
            np.ascontiguousarray(T_grid_map @ origins) * scale,
            np.ascontiguousarray(T_grid_map @ points) * scale,
            stopped,
        )

    def log_odds(self) -> NDArray[np.float64]:
        """Compute the log-odds (rows, columns); 0 for unknown cells."""
        model = self.model
        return np.asarray(
            np.clip(
                self.hits * model.log_odds_hit + self.misses * model.log_odds_miss,
                -model.log_odds_max,
                model.log_odds_max,
            )
        )

    def to_grid(self) -> OccupancyGrid:
        """Convert to probabilities in percent."""
        percent = np.rint(100.0 / (1.0 + np.exp(-self.log_odds()))).astype(np.int8)
        percent[self.hits + self.misses < self.model.min_observations] = UNKNOWN
        return OccupancyGrid(percent, self.geometry)
