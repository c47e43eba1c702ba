"""Range sensor layer: readings of sonars update the probability of obstacles within their cones."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import ClassVar, NamedTuple

import numpy as np
from numpy.typing import NDArray

from roboyard.compute import expect_kernels, kernel
from roboyard.config import check, parameter
from roboyard.errors import ConfigError, InputError
from roboyard.geometry import SE2
from roboyard.grids import GridGeometry
from roboyard.navigation.costmap.layer_types import LayerContext
from roboyard.navigation.costmap.layered_costmap import FREE, LETHAL, UNKNOWN, CellBounds
from roboyard.navigation.costmap.sensor_layer import RangeSourceConfig, SensorLayer, SensorLayerConfig


@dataclass(frozen=True, slots=True)
class RangeReading:
    """One measurement of a range sensor.

    Attributes:
        pose: Pose of the sensor in the frame of the costmap; the sensor measures along x.
        range: Measured distance [m]; infinite: no return, minus infinite: an obstacle nearer than ``range_min``, NaN:
            no
            measurement (REP 117).
        field_of_view: Full angle of the cone [rad].
        range_min: Shortest distance that the sensor measures [m].
        range_max: Longest distance that the sensor measures [m].
        sensor: Name of the sensor, for explanations of obstacles.

    Raises:
        InputError: The angle or the limits are impossible.
    """

    pose: SE2
    range: float
    field_of_view: float
    range_min: float
    range_max: float
    sensor: str = ""

    def transformed(self, T: SE2) -> RangeReading:
        """Return the reading in another frame; ``T`` is the pose of the present frame in it."""
        return replace(self, pose=T @ self.pose)

    def __post_init__(self) -> None:
        if not 0.0 < self.field_of_view <= math.pi:
            raise InputError(f"a field of view of {self.field_of_view} rad", valid="more than 0, at most pi")
        if not 0.0 <= self.range_min <= self.range_max < math.inf or self.range_max == 0.0:
            raise InputError(f"ranges from {self.range_min} to {self.range_max} m", valid="ascending, finite")


@dataclass(frozen=True)
class RangeModelConfig:
    """Sensor model of a range layer, as in Nav2's range sensor layer.

    Raises:
        ConfigError: A number is out of range, or the thresholds do not ascend.
    """

    phi: float = parameter(
        1.2, unit="m", low=0.01, high=1000.0, doc="Distance at which a return has half the weight of a near one."
    )
    mark_threshold: float = parameter(0.8, low=0.5, high=1.0, doc="Probability above which a cell is an obstacle.")
    clear_threshold: float = parameter(0.2, low=0.0, high=0.5, doc="Probability below which a cell is free.")
    clear_on_max: bool = parameter(
        False, doc="Clear the whole cone if there is no return; many surfaces return no sound."
    )
    max_probability: float = parameter(
        0.98, low=0.5, high=1.0, doc="Largest probability of a cell, so that later measurements can change it."
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


class RangeLayer(SensorLayer):
    """Obstacles from range sensors by Bayes' rule: the cone is free up to the distance, and occupied on its arc.

    The sensor model is that of nav2_costmap_2d::RangeSensorLayer.

    Args:
        config: Sensor model.
        overwrite: Whether free cells of this layer free those of the layers below; else the higher cost wins.
        name: Name of the layer.
    """

    state_arrays: ClassVar[dict[str, np.generic]] = {**SensorLayer.state_arrays, "_probability": np.float64(0.5)}

    def __init__(
        self, config: RangeModelConfig = RangeModelConfig(), *, overwrite: bool = False, name: str = "ranges"
    ) -> None:
        super().__init__(overwrite=overwrite, name=name)
        expect_kernels(update_cone)
        self._config = config
        self._sensor_model = RangeSensorModel(config.phi, config.max_probability)
        self._probability = np.zeros((0, 0), dtype=np.float64)

    def add_observations(self, readings: Sequence[RangeReading]) -> int:
        """Add readings, one after another.

        Returns:
            Number of readings that were used; the others were no measurements, or out of the sensor's own range.
        """
        config, resolution = self._config, self._geometry.resolution
        T_grid_map = self._geometry.T_map_grid.inverse()
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
            T_grid_sensor = T_grid_map @ reading.pose
            cone = SensorCone(T_grid_sensor.x, T_grid_sensor.y, T_grid_sensor.theta, 0.5 * reading.field_of_view)
            thickness = _arc_half_thickness(measured_range, resolution)
            bounds = cone_bounds(cone, measured_range + thickness, self._geometry)
            measurement = RangeMeasurement(measured_range, thickness, no_return)
            update_cone(self._probability, bounds, resolution, cone, measurement, self._sensor_model)
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


@dataclass(frozen=True, kw_only=True)
class RangeLayerConfig(SensorLayerConfig):
    """Probabilities of obstacles within cones, from sonars and other range sensors."""

    sources: tuple[RangeSourceConfig, ...] = parameter(doc="Sensors of the layer.")
    range_model: RangeModelConfig = parameter(RangeModelConfig(), doc="Sensor model.")

    def make_layer(self, context: LayerContext) -> RangeLayer:
        """Return a range layer."""
        return RangeLayer(self.range_model, overwrite=self.overwrite, name=context.name)


class SensorCone(NamedTuple):
    """Cone of a range sensor in the grid: position [m], heading and half its angle [rad]."""

    x: float
    y: float
    heading: float
    half_angle: float


class RangeMeasurement(NamedTuple):
    """Measured distance, or the length of the cone without a return, and half the thickness of the arc [m]."""

    distance: float
    arc_half_thickness: float
    no_return: bool


class RangeSensorModel(NamedTuple):
    """Parameters ``phi`` [m] and ``max_probability`` of `RangeModelConfig`."""

    phi: float
    max_probability: float


def _arc_half_thickness(distance: float, resolution: float) -> float:
    """Return half the thickness of the arc that holds the obstacle [m]: Nav2's, but no arc is thinner than a cell."""
    return resolution * max(distance, 1.0)


def cone_bounds(cone: SensorCone, max_range: float, geometry: GridGeometry) -> CellBounds:
    """Return the cells that a cone may touch.

    Args:
        cone: Cone in the grid.
        max_range: Length of the cone [m].
        geometry: Geometry of the grid.
    """
    angles = cone.heading + cone.half_angle * np.linspace(-1.0, 1.0, 9)
    outer_radius = max_range / math.cos(cone.half_angle / 8.0)  # chords outside of the arc
    apex = np.array([cone.x, cone.y])
    corners = np.vstack([apex, apex + outer_radius * np.column_stack([np.cos(angles), np.sin(angles)])])
    low = np.floor(corners.min(axis=0) / geometry.resolution).astype(int) - 1
    high = np.floor(corners.max(axis=0) / geometry.resolution).astype(int) + 2
    rows, columns = geometry.shape
    (left, top), (right, bottom) = np.clip(low, 0, (columns, rows)).tolist(), np.clip(high, 0, (columns, rows)).tolist()
    return CellBounds(top, left, bottom, right)


@kernel(
    examples=lambda: [
        (np.zeros((5, 5)), CellBounds(0, 0, 5, 5), 0.1, SensorCone(0.0, 0.0, 0.0, 0.2),
         RangeMeasurement(1.0, 0.1, False), RangeSensorModel(1.2, 0.98)),
    ]
)  # fmt: skip
def update_cone(
    probability: NDArray[np.float64],
    bounds: CellBounds,
    resolution: float,
    cone: SensorCone,
    measurement: RangeMeasurement,
    model: RangeSensorModel,
) -> None:
    """Update the probabilities of cells by one measurement (the model of Nav2's range sensor layer).

    Args:
        probability: (rows, columns) probability of an obstacle, written.
        bounds: Cells that the cone may touch.
        resolution: Edge of a cell [m].
        cone: Cone in the grid.
        measurement: Distance, and thickness of the arc.
        model: Parameters of the sensor model.
    """
    half_angle, distance, arc_half_thickness = cone.half_angle, measurement.distance, measurement.arc_half_thickness
    phi, max_probability = model.phi, model.max_probability
    for r in range(bounds.top, bounds.bottom):
        for c in range(bounds.left, bounds.right):
            dx, dy = (c + 0.5) * resolution - cone.x, (r + 0.5) * resolution - cone.y
            cell_distance = math.hypot(dx, dy)
            if cell_distance > distance + arc_half_thickness:
                continue
            axis_angle = abs((math.atan2(dy, dx) - cone.heading + math.pi) % (2.0 * math.pi) - math.pi)
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
            if measurement.no_return:
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
