"""Occupancy mapping from hit and miss counts per cell."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray

from roboyard.errors import InputError
from roboyard.grids.occupancy import UNKNOWN, GridGeometry, OccupancyGrid
from roboyard.grids.ray_casting import count_hits_and_misses

_MAX_BEAM_CELLS = 100_000
"""Cells that a beam may cross; what claims to be longer is no measurement."""


@dataclass(frozen=True, slots=True)
class InverseSensorModel:
    """What a beam says about the cells it touches, in log-odds.

    Attributes:
        log_odds_hit: For a cell in which it ends.
        log_odds_miss: For a cell through which it passes; negative.
        log_odds_max: Further evidence of the same kind no longer counts, so that a map can change its mind.
        min_observations: Cells with less evidence than so many beams stay unknown.
    """

    log_odds_hit: float = 0.85
    log_odds_miss: float = -0.4
    log_odds_max: float = 4.0
    min_observations: int = 1


class OccupancyMapBuilder:
    """An occupancy map in the making: beams go in, in any order, and probabilities come out.

    Args:
        geometry: Where the cells lie; beams beyond it are cut off.
        model: What beams prove.
    """

    def __init__(self, geometry: GridGeometry, model: InverseSensorModel | None = None) -> None:
        self.geometry = geometry
        self.model = model or InverseSensorModel()
        self.hits: NDArray[np.int32] = np.zeros(geometry.shape, dtype=np.int32)
        self.misses: NDArray[np.int32] = np.zeros(geometry.shape, dtype=np.int32)

    def add_beams(self, start: ArrayLike, ends: ArrayLike, hit: ArrayLike = True) -> None:
        """Add beams.

        Args:
            start: (2,) or (n, 2) where they begin, in the map [m].
            ends: (n, 2) where they end, in the map [m]; what is not finite or absurdly far is left out.
            hit: Whether something stopped them there, one for all or (n,).

        Raises:
            InputError: shapes that do not fit.
        """
        points = np.asarray(ends, dtype=np.float64)
        if points.ndim != 2 or points.shape[1] != 2:
            raise InputError(f"beams that end in an array of shape {points.shape}", valid="(n, 2)")
        T_grid_map = self.geometry.T_map_grid.inverse()
        origins = np.broadcast_to(np.asarray(start, dtype=np.float64), points.shape)
        stopped = np.ascontiguousarray(np.broadcast_to(np.asarray(hit, dtype=np.bool_), len(points)))
        with np.errstate(invalid="ignore"):
            usable = (
                np.abs(points - origins).max(axis=1, initial=0.0) < _MAX_BEAM_CELLS * self.geometry.resolution
            )  # not NaN
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
        """(rows, columns); 0 where nothing is known."""
        model = self.model
        return np.asarray(
            np.clip(
                self.hits * model.log_odds_hit + self.misses * model.log_odds_miss,
                -model.log_odds_max,
                model.log_odds_max,
            )
        )

    def to_grid(self) -> OccupancyGrid:
        """As probabilities in percent."""
        percent = np.rint(100.0 / (1.0 + np.exp(-self.log_odds()))).astype(np.int8)
        percent[self.hits + self.misses < self.model.min_observations] = UNKNOWN
        return OccupancyGrid(percent, self.geometry)
