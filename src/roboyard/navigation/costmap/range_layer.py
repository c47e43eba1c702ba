"""Range sensor layer: readings of sonars update the probability of obstacles within their cones."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray

from roboyard.compute import expect_kernels, kernel
from roboyard.config import check, parameter
from roboyard.errors import ConfigError, InputError
from roboyard.geometry import SE2
from roboyard.grids import GridGeometry
from roboyard.navigation.costmap.layered_costmap import FREE, LETHAL, UNKNOWN, CellBounds
from roboyard.navigation.costmap.obstacle_layer import SensorLayerBase


@dataclass(frozen=True, slots=True)
class RangeReading:
    """One echo.

    Attributes:
        pose: Of the sensor in the map; it looks along x.
        range: Measured [m]; infinite: nothing within reach, minus infinite: something nearer than ``range_min``,
            NaN: no measurement (REP 117).
        field_of_view: Full angle of the cone [rad].
        range_min: Shortest distance it measures [m].
        range_max: Longest [m].
        sensor: Name of the sensor, for explanations of obstacles.

    Raises:
        InputError: a cone that cannot be.
    """

    pose: SE2
    range: float
    field_of_view: float
    range_min: float
    range_max: float
    sensor: str = ""

    def transformed(self, T: SE2) -> RangeReading:
        """The same in another frame on the same ground."""
        return replace(self, pose=T @ self.pose)

    def __post_init__(self) -> None:
        if not 0.0 < self.field_of_view <= math.pi:
            raise InputError(f"a field of view of {self.field_of_view} rad", valid="more than 0, at most pi")
        if not 0.0 <= self.range_min <= self.range_max < math.inf or self.range_max == 0.0:
            raise InputError(f"ranges from {self.range_min} to {self.range_max} m", valid="ascending, finite")


@dataclass(frozen=True)
class RangeModelConfig:
    """How echoes become costs, as in Nav2's range sensor layer.

    Raises:
        ConfigError: a number out of range.
    """

    phi: float = parameter(
        1.2, unit="m", low=0.01, high=1000.0, doc="where an echo is worth half of what it is near by"
    )
    mark_threshold: float = parameter(0.8, low=0.5, high=1.0, doc="from which probability on a cell is an obstacle")
    clear_threshold: float = parameter(0.2, low=0.0, high=0.5, doc="below which it is free")
    clear_on_max: bool = parameter(False, doc="whether silence frees the whole cone; many surfaces send no echo back")
    max_probability: float = parameter(
        0.98, low=0.5, high=1.0, doc="no echoes make a cell surer, so that it can change its mind"
    )

    def __post_init__(self) -> None:
        check(self, "range_model")
        if (
            not 1.0 - self.max_probability
            < self.clear_threshold
            < 0.5
            < self.mark_threshold
            < self.max_probability
            < 1.0
        ):
            raise ConfigError(
                f"thresholds {self.clear_threshold} and {self.mark_threshold}, max_probability {self.max_probability}",
                location="range_model",
                valid="1 - max_probability < clear_threshold < 0.5 < mark_threshold < max_probability < 1",
            )


class RangeLayer(SensorLayerBase):
    """What echoes say, by Bayes' rule: the cone is free up to the distance, and occupied somewhere on its arc.

    Args:
        config: How echoes become costs.
        overwrite: Whether free cells of this layer free those of the layers below; else the higher cost wins.
        name: Of the layer.
    """

    state_arrays: ClassVar[dict[str, np.generic]] = {**SensorLayerBase.state_arrays, "_probability": np.float64(0.5)}

    def __init__(
        self, config: RangeModelConfig = RangeModelConfig(), *, overwrite: bool = False, name: str = "ranges"
    ) -> None:
        super().__init__(overwrite=overwrite, name=name)
        expect_kernels(update_cone)
        self._config = config
        self._probability = np.zeros((0, 0), dtype=np.float64)

    def add_observations(self, readings: Sequence[RangeReading]) -> int:
        """Take echoes, one after another.

        Returns:
            How many said something; the others were no measurements, or out of the sensor's own range.
        """
        config, resolution = self._config, self._geometry.resolution
        n_used = 0
        for reading in readings:
            measured = reading.range
            no_return = measured == math.inf or (measured == reading.range_max and config.clear_on_max)
            if no_return and not config.clear_on_max:
                continue
            if not no_return and not reading.range_min <= measured <= reading.range_max:  # NaN too
                continue
            n_used += 1
            measured_range = reading.range_max if no_return else measured
            T_grid_sensor = self._geometry.T_map_grid.inverse() @ reading.pose
            sensor = np.array([T_grid_sensor.x, T_grid_sensor.y, T_grid_sensor.theta])
            bounds = cone_bounds(
                sensor,
                measured_range + _arc_half_thickness(measured_range, resolution),
                0.5 * reading.field_of_view,
                self._geometry,
            )
            update_cone(
                self._probability, np.array(bounds), resolution, sensor, measured_range, 0.5 * reading.field_of_view,
                _arc_half_thickness(measured_range, resolution), config.phi, config.max_probability, no_return,
            )  # fmt: skip
            self._update_cells(bounds, self._sensor_index(reading.sensor))
        return n_used

    def _clear_cells(self, covered: NDArray[np.int64]) -> None:
        super()._clear_cells(covered)
        self._probability[covered[:, 0], covered[:, 1]] = 1.0 - self._config.max_probability

    def _update_cells(self, bounds: CellBounds, sensor: int) -> None:
        """Update costs from probabilities; new obstacles are attributed to the sensor."""
        probability = self._probability[bounds.slices]
        free = probability < self._config.clear_threshold
        occupied = probability > self._config.mark_threshold
        self._marked_by[bounds.slices][occupied & (self._cells[bounds.slices] != LETHAL)] = sensor
        self._cells[bounds.slices] = np.where(occupied, LETHAL, np.where(free, FREE, UNKNOWN))
        self._changed_bounds = self._changed_bounds.union(bounds)


def _arc_half_thickness(distance: float, resolution: float) -> float:
    """Half the thickness of the arc on which something is [m]: Nav2's, but no arc is thinner than a cell."""
    return resolution * max(distance, 1.0)


def cone_bounds(sensor: NDArray[np.float64], max_range: float, half_angle: float, geometry: GridGeometry) -> CellBounds:
    """The cells that a cone may touch.

    Args:
        sensor: (3,) x, y [m] and heading [rad] in the grid.
        max_range: Of the cone [m].
        half_angle: Of its angle [rad].
        geometry: Of the grid.
    """
    angles = sensor[2] + half_angle * np.linspace(-1.0, 1.0, 9)
    outer_radius = max_range / math.cos(half_angle / 8.0)  # chords outside of the arc
    corners = np.vstack([sensor[:2], sensor[:2] + outer_radius * np.column_stack([np.cos(angles), np.sin(angles)])])
    low = np.floor(corners.min(axis=0) / geometry.resolution).astype(int) - 1
    high = np.floor(corners.max(axis=0) / geometry.resolution).astype(int) + 2
    rows, columns = geometry.shape
    (left, top), (right, bottom) = np.clip(low, 0, (columns, rows)).tolist(), np.clip(high, 0, (columns, rows)).tolist()
    return CellBounds(top, left, bottom, right)


@kernel(
    examples=lambda: [
        (np.zeros((5, 5)), np.zeros(4, dtype=np.int64), 0.1, np.zeros(3), 1.0, 0.2, 0.1, 1.2, 0.98, False),
    ]
)
def update_cone(
    probability: NDArray[np.float64],
    bounds: NDArray[np.int64],
    resolution: float,
    sensor: NDArray[np.float64],
    distance: float,
    half_angle: float,
    arc_half_thickness: float,
    phi: float,
    max_probability: float,
    no_return: bool,
) -> None:
    """Update cells by one echo (the model of Nav2's range sensor layer).

    Args:
        probability: (rows, columns) that something is there, written.
        bounds: Top, left, bottom, right of what is looked at.
        resolution: Side of a cell [m].
        sensor: (3,) x, y [m] and heading [rad] in the grid.
        distance: Measured range [m], or the range of the cone without a return.
        half_angle: Of the cone's angle [rad].
        arc_half_thickness: Half the thickness of the arc [m].
        phi: See ``RangeConfig``.
        max_probability: See ``RangeConfig``.
        no_return: Whether there was no return.
    """
    for r in range(bounds[0], bounds[2]):
        for c in range(bounds[1], bounds[3]):
            dx, dy = (c + 0.5) * resolution - sensor[0], (r + 0.5) * resolution - sensor[1]
            cell_distance = math.hypot(dx, dy)
            if cell_distance > distance + arc_half_thickness:
                continue
            axis_angle = abs((math.atan2(dy, dx) - sensor[2] + math.pi) % (2.0 * math.pi) - math.pi)
            # a cell that the axis runs through lies on the axis, however narrow the cone
            axis_angle = max(
                axis_angle - (math.atan2(0.5 * resolution, cell_distance) if cell_distance > 0.0 else math.pi), 0.0
            )
            if axis_angle > half_angle:
                continue
            weight = (
                (1.0 - axis_angle * axis_angle / (half_angle * half_angle))
                * 0.5
                * (1.0 - math.tanh(2.0 * (cell_distance - phi)))
            )
            if no_return:
                occupied = 1.0 - max_probability
            elif cell_distance < distance - 2.0 * arc_half_thickness:
                occupied = 0.5 * (1.0 - weight)
            elif cell_distance < distance - arc_half_thickness:
                ramp = (cell_distance - (distance - 2.0 * arc_half_thickness)) / arc_half_thickness
                occupied = weight * 0.5 * ramp * ramp + 0.5 * (1.0 - weight)
            else:
                ramp = (distance - cell_distance) / arc_half_thickness
                occupied = weight * (0.5 - 0.5 * ramp * ramp) + 0.5
            prior = probability[r, c]
            occupied_likelihood, free_likelihood = occupied * prior, (1.0 - occupied) * (1.0 - prior)
            probability[r, c] = min(
                max(occupied_likelihood / (occupied_likelihood + free_likelihood), 1.0 - max_probability),
                max_probability,
            )
