"""The ground's height round a robot, cell by cell, each with its variance."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any, Final

import numpy as np
from numpy.typing import ArrayLike, NDArray

from roboyard.errors import InputError
from roboyard.geometry import SE3
from roboyard.geometry.arrays import Array
from roboyard.mapping.elevation.config import ElevationConfig
from roboyard.mapping.elevation.kernels import DepthNoiseModel, Layers, Told, ask, look_through, placed, take

_RAYS: Final = 3
"""Of an organised cloud every third ray of a row and a column looks for what is gone."""
_UNCOVERED: Final = (math.inf, -math.inf, math.inf, -math.inf)


@dataclass(frozen=True, slots=True)
class Taken:
    """What came of a cloud.

    Attributes:
        points: That lie on the map.
        cells: That have a height now.
    """

    points: int
    cells: int


class ElevationMap:
    """Fuses clouds of points into heights with variances, in a window that goes with the robot; pure.

    After Fankhauser et al. (CLAWAR 2014, RA-L 2018): a Kalman filter a cell, whose measurement is the highest ground
    that a cloud shows there and whose error grows with the distance; heights that contradict it beyond a Mahalanobis
    distance are left out, until they insist; rays that pass below what is known remove it.  As the robot's pose gets
    less sure, so do heights: with the distance where it tilts, and with their slope where it moves.

    Surfaces that stand upright are kept apart: they say how high something is, but not that it is ground.

    Args:
        config: Of the map; None: the usual one.

    Attributes:
        config: Of the map.
        layers: What is known of each cell, rows along y, columns along x.
    """

    def __init__(self, config: ElevationConfig | None = None) -> None:
        self.config = config = config or ElevationConfig()
        self._first = np.array([-(n // 2) for n in config.shape], np.int64)
        self.layers = _nothing(config.shape)

    @property
    def corner(self) -> tuple[float, float]:
        """Least x and y of the window [m]: multiples of the resolution."""
        row, column = self._first.tolist()
        return column * self.config.resolution, row * self.config.resolution

    @property
    def elevation(self) -> Array:
        """(rows, columns) how high the ground is, or what stands upright on it [m]; not a number: unknown."""
        return np.where(self._blocked(), self.layers.upright, np.where(self._covered(), self.layers.height, math.nan))

    @property
    def variance(self) -> Array:
        """(rows, columns) of `elevation` [m²]; ``max_variance`` where something stands upright."""
        return np.where(
            self._blocked(), self.config.max_variance, np.where(self._covered(), self._variance(), math.nan)
        )

    @property
    def ceiling(self) -> Array:
        """(rows, columns) what is in a cell is lower than this, seen or not [m]; infinite: nothing is known."""
        return self.layers.ceiling.copy()

    def _variance(self) -> Array:
        return np.maximum(self.layers.variance, self.config.min_variance)

    def _covered(self) -> NDArray[np.bool_]:
        """Where points lay all over the cell, not only at its rim, where errors carry them from the next one."""
        x0, x1, y0, y1 = np.moveaxis(self.layers.covered, -1, 0)
        found: NDArray[np.bool_] = np.minimum(x1 - x0, y1 - y0) >= self.config.coverage
        return found

    def _blocked(self) -> NDArray[np.bool_]:
        """Where something upright is higher than the ground can be."""
        known = self.layers
        above = np.maximum(3.0 * np.sqrt(self._variance()), self.config.step)
        return known.upright > np.where(np.isnan(known.height), -math.inf, known.height + above)

    def insert(self, points: ArrayLike, T_map_sensor: SE3) -> Taken:
        """Take in a cloud.

        Args:
            points: (h, w, 3), organised as a camera's picture, or (n, 3), of which all are taken for ground, in the
                sensor's frame [m].  Not finite: nothing was seen there.
            T_map_sensor: Where they were seen from.

        Raises:
            InputError: points of another shape.
        """
        given = np.asarray(points, dtype=np.float32)
        if given.ndim not in (2, 3) or given.shape[-1] != 3:
            raise InputError(f"a cloud of shape {given.shape}", valid="(h, w, 3) or (n, 3)")
        organised = given.ndim == 3
        cloud = np.ascontiguousarray(given if organised else given[None])
        config, eye = self.config, np.array(T_map_sensor.translation, dtype=np.float64)
        noise = config.sensor_processor
        inside = placed(cloud, np.ascontiguousarray(T_map_sensor.rotation_matrix()), eye)
        (x, y), shape, gate = self.corner, config.shape, config.mahalanobis_distance_threshold
        told = Told(
            np.full(shape, -math.inf), np.zeros(shape), np.zeros(shape), np.full(shape, -math.inf), np.zeros(shape),
            np.full(shape, math.inf), np.full((*shape, 4), _UNCOVERED),
        )  # fmt: skip
        sensor = DepthNoiseModel(
            noise.normal_factor_a, noise.normal_factor_b, noise.normal_factor_c, noise.lateral_factor,
            noise.cutoff_min_depth, noise.cutoff_max_depth,
        )  # fmt: skip
        count = ask(inside, eye, x, y, config.resolution, math.cos(config.upright), gate, sensor, told)
        if config.enable_visibility_cleanup:
            stride = _RAYS if organised else 1
            look_through(inside, eye, x, y, config.resolution, noise.cutoff_max_depth, stride, told.ceiling)
        take(self.layers, told, gate, config.min_variance, config.patience)
        return Taken(int(count), int(np.isfinite(self.elevation).sum()))

    def move(self, x: float, y: float) -> None:
        """Go with the robot: the window's middle comes to about (x, y) [m]; what leaves it is forgotten."""
        rows, columns = self.config.shape
        first = np.array(
            [round(y / self.config.resolution) - rows // 2, round(x / self.config.resolution) - columns // 2]
        )
        down, right = (first - self._first).tolist()
        if not (down or right):
            return
        old, self.layers, self._first = self.layers, _nothing((rows, columns)), first
        source, target = _overlap(down, rows), _overlap(-down, rows)
        across, there = _overlap(right, columns), _overlap(-right, columns)
        for before, now in zip(old, self.layers, strict=True):
            now[target, there] = before[source, across]

    def grow(self, T_map_base: SE3, covariance: ArrayLike) -> None:
        """Get less sure of all heights, since the robot's pose has got less sure.

        Args:
            T_map_base: Where the robot is.
            covariance: (6, 6) by which that of its pose grew, x, y, z [m] and rotations about the map's axes [rad].

        Raises:
            InputError: a covariance of another shape, or with variances that are negative or not finite.
        """
        more = np.asarray(covariance, dtype=np.float64)
        if more.shape != (6, 6) or not np.isfinite(more).all() or (np.diag(more) < 0.0).any():
            raise InputError("a covariance that is none", valid="(6, 6), finite, variances of 0 or more")
        sxx, syy, szz, roll, pitch, yaw = np.diag(more).tolist()
        (rows, columns), cell, (x, y) = self.config.shape, self.config.resolution, self.corner
        dx = x + (np.arange(columns) + 0.5) * cell - T_map_base.x
        dy = (y + (np.arange(rows) + 0.5) * cell - T_map_base.y)[:, None]
        height, variance = self.layers.height, self.layers.variance
        up, along = (_slope(height, axis, cell) ** 2 for axis in (0, 1))
        variance += szz + roll * dy**2 + pitch * dx**2
        variance += along * (sxx + yaw * dy**2) + up * (syy + yaw * dx**2)
        lost = variance > self.config.max_variance
        for layer, empty in zip(self.layers, _nothing((1, 1)), strict=True):
            layer[lost] = empty[0, 0]

    def clear(self) -> None:
        """Forget all."""
        self.layers = _nothing(self.config.shape)

    def save_state(self) -> dict[str, Any]:
        """State as plain data."""
        return {"first": self._first.copy(), "layers": [layer.copy() for layer in self.layers]}

    def load_state(self, saved: dict[str, Any]) -> None:
        """Take back what ``save`` gave."""
        self._first = np.array(saved["first"])
        self.layers = Layers(*(np.array(layer) for layer in saved["layers"]))


def _nothing(shape: tuple[int, int]) -> Layers:
    unknown = np.full(shape, math.nan)
    return Layers(
        unknown, unknown.copy(), unknown.copy(), np.full(shape, math.inf), np.zeros(shape, np.int64),
        np.full((*shape, 4), _UNCOVERED),
    )  # fmt: skip


def _overlap(shift: int, length: int) -> slice:
    """Which part of an axis is left in it when it moves on."""
    return slice(max(shift, 0), max(length + min(shift, 0), 0))


def _slope(height: Array, axis: int, cell: float) -> Array:
    """(rows, columns) rise along an axis; 0 where a neighbour is unknown."""
    if height.shape[axis] < 3:
        return np.zeros(height.shape)
    out: Array = np.nan_to_num(np.gradient(height, cell, axis=axis))
    return out
