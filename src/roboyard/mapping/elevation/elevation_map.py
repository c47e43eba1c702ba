"""Elevation maps: the height of the ground around a robot, cell by cell, each with its variance."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any, Final

import numpy as np
from numpy.typing import ArrayLike, NDArray

from roboyard.config import check, parameter
from roboyard.errors import ConfigError, InputError
from roboyard.geometry import SE3
from roboyard.geometry.arrays import Array
from roboyard.mapping.elevation.kernels import (
    CellWindow,
    CloudCellStatistics,
    DepthNoiseModel,
    ElevationLayers,
    accumulate_cloud,
    fuse_cloud,
    lower_ceiling,
    transform_points,
)


@dataclass(frozen=True)
class StructuredLightNoise:
    """Noise of a structured-light camera (Nguyen et al., 3DIMPVT 2012; Fankhauser et al., ICAR 2015).

    The standard deviation along the ray is a + b (d - c)² at a distance d, and lateral_factor d across it.

    Raises:
        ConfigError: A number is out of range, or the limits of depth are not ascending.
    """

    normal_factor_a: float = parameter(
        0.000611,
        unit="m",
        low=0.0,
        high=1.0,
        doc="Coefficient a of the standard deviation along the ray, a + b (depth - c)².",
    )
    normal_factor_b: float = parameter(
        0.003587, unit="1/m", low=0.0, high=1.0, doc="Coefficient b of the standard deviation along the ray."
    )
    normal_factor_c: float = parameter(
        0.3515, unit="m", low=0.0, high=10.0, doc="Coefficient c of the standard deviation along the ray."
    )
    lateral_factor: float = parameter(
        0.0013765, low=0.0, high=1.0, doc="Standard deviation across the ray per distance."
    )
    cutoff_min_depth: float = parameter(0.2, unit="m", low=0.0, high=100.0, doc="Depth below which points are ignored.")
    cutoff_max_depth: float = parameter(
        3.0, unit="m", low=0.0, high=100.0, doc="Depth beyond which points are ignored."
    )

    def __post_init__(self) -> None:
        check(self, "sensor_processor")
        if not self.cutoff_min_depth < self.cutoff_max_depth:
            raise ConfigError(
                f"depths {self.cutoff_min_depth} to {self.cutoff_max_depth} m", location="sensor_processor",
                valid="ascending",
            )  # fmt: skip


@dataclass(frozen=True)
class ElevationMapConfig:
    """Parameters of an `ElevationMap`.

    Raises:
        ConfigError: A number is out of range, variances are not ascending, or the map has too many cells.
    """

    resolution: float = parameter(0.02, unit="m", low=0.002, high=10.0, doc="Edge of a cell.")
    length_in_x: float = parameter(
        3.2, unit="m", low=0.1, high=1000.0, doc="Length along x of the window that moves with the robot."
    )
    length_in_y: float = parameter(3.2, unit="m", low=0.1, high=1000.0, doc="Length along y of that window.")
    min_variance: float = parameter(9e-6, unit="m²", low=1e-12, high=1.0, doc="Smallest variance of a height.")
    max_variance: float = parameter(
        0.01, unit="m²", low=1e-12, high=100.0, doc="Variance above which a height becomes unknown."
    )
    mahalanobis_distance_threshold: float = parameter(
        2.5, low=0.1, high=100.0, doc="Mahalanobis distance above which heights contradict each other."
    )
    max_contradictions: int = parameter(
        3, low=1, high=1000, doc="Number of successive contradicting clouds after which a cell is reset."
    )
    max_slope: float = parameter(
        0.87, unit="rad", low=0.01, high=1.57, doc="Slope above which a surface is not ground."
    )
    min_coverage: float = parameter(
        0.4, low=0.0, high=1.0, doc="Fraction of both edges of a cell that points must cover."
    )
    step_height: float = parameter(
        0.02, unit="m", low=0.0, high=10.0, doc="Height above the ground of the lowest upright object."
    )
    enable_visibility_cleanup: bool = parameter(True, doc="Remove heights that rays pass through.")
    sensor_processor: StructuredLightNoise = parameter(StructuredLightNoise(), doc="Uncertainty of the points.")

    def __post_init__(self) -> None:
        check(self, "elevation")
        if not self.min_variance < self.max_variance:
            raise ConfigError(
                f"variances {self.min_variance} to {self.max_variance} m²", location="elevation", valid="ascending"
            )
        if self.length_in_x * self.length_in_y > 4e6 * self.resolution**2:
            raise ConfigError(
                f"{self.length_in_x} x {self.length_in_y} m of {self.resolution} m", location="elevation",
                valid="4 million cells or fewer",
            )  # fmt: skip

    @property
    def shape(self) -> tuple[int, int]:
        """Return the number of rows along y and of columns along x."""
        return max(round(self.length_in_y / self.resolution), 1), max(round(self.length_in_x / self.resolution), 1)


_RAY_STRIDE: Final = 3
"""Of an organised cloud every third ray of a row and a column looks for what is gone."""
_EMPTY_BOUNDS: Final = (math.inf, -math.inf, math.inf, -math.inf)


@dataclass(frozen=True, slots=True)
class CloudInsertion:
    """Result of the insertion of a cloud.

    Attributes:
        n_points: Number of points in the window.
        n_known_cells: Number of cells with a height.
    """

    n_points: int
    n_known_cells: int


class ElevationMap:
    """Fuses clouds of points into heights with variances, in a window that moves with the robot.

    The method is that of Fankhauser et al. (CLAWAR 2014, RA-L 2018): a Kalman filter for each cell, whose measurement
    is the highest ground of a cloud in the cell, with an error that grows with the distance. Heights beyond a
    Mahalanobis distance are ignored until they repeat. Rays that pass below a height remove it. When the robot's pose
    becomes less certain, heights do, too: with the distance by its tilt, and with their slope by its position.

    Upright surfaces are kept apart: they give the height of an object, but are no ground.

    Args:
        config: Parameters; None: the defaults.

    Attributes:
        config: Parameters.
        layers: State of each cell, rows along y, columns along x.
    """

    def __init__(self, config: ElevationMapConfig | None = None) -> None:
        self.config = config = config or ElevationMapConfig()
        self._first_cell = np.array([-(n // 2) for n in config.shape], np.int64)
        self.layers = _empty_layers(config.shape)

    @property
    def min_corner(self) -> tuple[float, float]:
        """Return the smallest x and y of the window [m]: multiples of the resolution."""
        row, column = self._first_cell.tolist()
        return column * self.config.resolution, row * self.config.resolution

    @property
    def elevation(self) -> Array:
        """Return the height (rows, columns) of the ground, or of an upright object on it [m]; NaN: unknown."""
        return np.where(
            self._is_obstructed(), self.layers.upright, np.where(self._is_covered(), self.layers.height, math.nan)
        )

    @property
    def variance(self) -> Array:
        """Return the variance (rows, columns) of `elevation` [m²]; ``max_variance`` at upright objects."""
        return np.where(
            self._is_obstructed(),
            self.config.max_variance,
            np.where(self._is_covered(), self._bounded_variance(), math.nan),
        )

    @property
    def ceiling(self) -> Array:
        """Return an upper bound (rows, columns) of heights, also where nothing was seen [m]; infinite: unknown."""
        return self.layers.ceiling.copy()

    def _bounded_variance(self) -> Array:
        return np.maximum(self.layers.variance, self.config.min_variance)

    def _is_covered(self) -> NDArray[np.bool_]:
        """Return where points cover the whole cell, not only an edge, over which errors carry points of a neighbor."""
        x0, x1, y0, y1 = np.moveaxis(self.layers.coverage_bounds, -1, 0)
        found: NDArray[np.bool_] = np.minimum(x1 - x0, y1 - y0) >= self.config.min_coverage
        return found

    def _is_obstructed(self) -> NDArray[np.bool_]:
        """Return where an upright object is higher than the ground can be."""
        layers = self.layers
        margin = np.maximum(3.0 * np.sqrt(self._bounded_variance()), self.config.step_height)
        return layers.upright > np.where(np.isnan(layers.height), -math.inf, layers.height + margin)

    def insert(self, points: ArrayLike, T_map_sensor: SE3) -> CloudInsertion:
        """Insert a cloud.

        Args:
            points: (h, w, 3) organized as the image of a camera, or (n, 3), of which all count as ground, in the
                sensor's frame [m]. Points that are not finite are ignored.
            T_map_sensor: Pose of the sensor.

        Raises:
            InputError: Points have another shape.
        """
        cloud_array = np.asarray(points, dtype=np.float32)
        if cloud_array.ndim not in (2, 3) or cloud_array.shape[-1] != 3:
            raise InputError(f"a cloud of shape {cloud_array.shape}", valid="(h, w, 3) or (n, 3)")
        is_organized = cloud_array.ndim == 3
        cloud = np.ascontiguousarray(cloud_array if is_organized else cloud_array[None])
        config, sensor_position = self.config, np.array(T_map_sensor.translation, dtype=np.float64)
        noise = config.sensor_processor
        points_in_map = transform_points(cloud, np.ascontiguousarray(T_map_sensor.rotation_matrix()), sensor_position)
        shape, gate = config.shape, config.mahalanobis_distance_threshold
        window = CellWindow(*self.min_corner, config.resolution)
        statistics = CloudCellStatistics(
            np.full(shape, -math.inf), np.zeros(shape), np.zeros(shape), np.full(shape, -math.inf), np.zeros(shape),
            np.full(shape, math.inf), np.full((*shape, 4), _EMPTY_BOUNDS),
        )  # fmt: skip
        noise_model = DepthNoiseModel(
            noise.normal_factor_a, noise.normal_factor_b, noise.normal_factor_c, noise.lateral_factor,
            noise.cutoff_min_depth, noise.cutoff_max_depth,
        )  # fmt: skip
        n_points = accumulate_cloud(
            points_in_map, sensor_position, window, math.cos(config.max_slope), gate, noise_model, statistics
        )
        if config.enable_visibility_cleanup:
            stride = _RAY_STRIDE if is_organized else 1
            lower_ceiling(
                points_in_map,
                sensor_position,
                window,
                noise.cutoff_max_depth,
                stride,
                statistics.ceiling,
            )
        fuse_cloud(self.layers, statistics, gate, config.min_variance, config.max_contradictions)
        return CloudInsertion(int(n_points), int(np.isfinite(self.elevation).sum()))

    def recenter(self, x: float, y: float) -> None:
        """Move the window so that its center is at about (x, y) [m]; cells that leave it are forgotten."""
        rows, columns = self.config.shape
        first_cell = np.array(
            [round(y / self.config.resolution) - rows // 2, round(x / self.config.resolution) - columns // 2]
        )
        down, right = (first_cell - self._first_cell).tolist()
        if not (down or right):
            return
        old_layers, self.layers, self._first_cell = self.layers, _empty_layers((rows, columns)), first_cell
        source_rows, target_rows = _overlap(down, rows), _overlap(-down, rows)
        source_columns, target_columns = _overlap(right, columns), _overlap(-right, columns)
        for old_layer, layer in zip(old_layers, self.layers, strict=True):
            layer[target_rows, target_columns] = old_layer[source_rows, source_columns]

    def inflate_variance(self, T_map_base: SE3, covariance: ArrayLike) -> None:
        """Increase the variances of all heights, since the robot's pose became less certain.

        Args:
            T_map_base: Pose of the robot.
            covariance: (6, 6) growth of the covariance of its pose: x, y, z [m] and rotations about the map's axes
                [rad].

        Raises:
            InputError: The covariance has another shape, or variances that are negative or not finite.
        """
        added_covariance = np.asarray(covariance, dtype=np.float64)
        if (
            added_covariance.shape != (6, 6)
            or not np.isfinite(added_covariance).all()
            or (np.diag(added_covariance) < 0.0).any()
        ):
            raise InputError("an invalid covariance", valid="(6, 6), finite, variances of 0 or more")
        sxx, syy, szz, roll, pitch, yaw = np.diag(added_covariance).tolist()
        (rows, columns), cell_size, (x, y) = self.config.shape, self.config.resolution, self.min_corner
        dx = x + (np.arange(columns) + 0.5) * cell_size - T_map_base.x
        dy = (y + (np.arange(rows) + 0.5) * cell_size - T_map_base.y)[:, None]
        height, variance = self.layers.height, self.layers.variance
        slope_y, slope_x = (_slope(height, axis, cell_size) ** 2 for axis in (0, 1))
        variance += szz + roll * dy**2 + pitch * dx**2
        variance += slope_x * (sxx + yaw * dy**2) + slope_y * (syy + yaw * dx**2)
        is_unknown = variance > self.config.max_variance
        for layer, empty_layer in zip(self.layers, _empty_layers((1, 1)), strict=True):
            layer[is_unknown] = empty_layer[0, 0]

    def clear(self) -> None:
        """Forget all heights."""
        self.layers = _empty_layers(self.config.shape)

    def save_state(self) -> dict[str, Any]:
        """Return the whole map as plain data."""
        return {"first": self._first_cell.copy(), "layers": [layer.copy() for layer in self.layers]}

    def load_state(self, saved: dict[str, Any]) -> None:
        """Restore what `save_state` returned."""
        self._first_cell = np.array(saved["first"])
        self.layers = ElevationLayers(*(np.array(layer) for layer in saved["layers"]))


def _empty_layers(shape: tuple[int, int]) -> ElevationLayers:
    unknown = np.full(shape, math.nan)
    return ElevationLayers(
        unknown, unknown.copy(), unknown.copy(), np.full(shape, math.inf), np.zeros(shape, np.int64),
        np.full((*shape, 4), _EMPTY_BOUNDS),
    )  # fmt: skip


def _overlap(shift: int, length: int) -> slice:
    """Return the part of an axis that remains in the window when the window moves."""
    return slice(max(shift, 0), max(length + min(shift, 0), 0))


def _slope(height: Array, axis: int, cell_size: float) -> Array:
    """Return the slope (rows, columns) along an axis; 0 where a neighbor is unknown."""
    if height.shape[axis] < 3:
        return np.zeros(height.shape)
    out: Array = np.nan_to_num(np.gradient(height, cell_size, axis=axis))
    return out
