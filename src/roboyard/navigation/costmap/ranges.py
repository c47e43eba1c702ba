"""Sonars and other sensors that measure one distance in a cone: somewhere out there is something."""

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
from roboyard.navigation.costmap.bounds import Bounds
from roboyard.navigation.costmap.grid import FREE, LETHAL, UNKNOWN
from roboyard.navigation.costmap.own_cells import OwnCells


@dataclass(frozen=True, slots=True)
class RangeReading:
    """One echo.

    Attributes:
        pose: Of the sensor in the map; it looks along x.
        distance: Measured [m]; infinite: nothing within reach, minus infinite: something nearer than ``range_min``,
            NaN: no measurement (REP 117).
        field_of_view: Full angle of the cone [rad].
        range_min: Shortest distance it measures [m].
        range_max: Longest [m].
        sensor: Its name, so that it can be told who heard an obstacle.

    Raises:
        InputError: a cone that cannot be.
    """

    pose: SE2
    distance: float
    field_of_view: float
    range_min: float
    range_max: float
    sensor: str = ""

    def moved(self, T: SE2) -> RangeReading:
        """The same in another frame on the same ground."""
        return replace(self, pose=T @ self.pose)

    def __post_init__(self) -> None:
        if not 0.0 < self.field_of_view <= math.pi:
            raise InputError(f"a field of view of {self.field_of_view} rad", valid="more than 0, at most pi")
        if not 0.0 <= self.range_min <= self.range_max < math.inf or self.range_max == 0.0:
            raise InputError(f"ranges from {self.range_min} to {self.range_max} m", valid="ascending, finite")


@dataclass(frozen=True)
class RangeConfig:
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
    surest: float = parameter(
        0.98, low=0.5, high=1.0, doc="no echoes make a cell surer, so that it can change its mind"
    )

    def __post_init__(self) -> None:
        check(self, "echoes")
        if not 1.0 - self.surest < self.clear_threshold < 0.5 < self.mark_threshold < self.surest < 1.0:
            raise ConfigError(
                f"thresholds {self.clear_threshold} and {self.mark_threshold}, surest {self.surest}",
                location="echoes",
                valid="1 - surest < clear_threshold < 0.5 < mark_threshold < surest < 1",
            )


class RangeLayer(OwnCells):
    """What echoes say, by Bayes' rule: the cone is free up to the distance, and occupied somewhere on its arc.

    Args:
        config: How echoes become costs.
        overwrite: Whether what it heard free frees cells of the layers below; else the higher cost wins.
        name: Of the layer.
    """

    kept: ClassVar[dict[str, np.generic]] = {**OwnCells.kept, "_probability": np.float64(0.5)}

    def __init__(self, config: RangeConfig = RangeConfig(), *, overwrite: bool = False, name: str = "ranges") -> None:
        super().__init__(overwrite=overwrite, name=name)
        expect_kernels(hear_cone)
        self._config = config
        self._probability = np.zeros((0, 0), dtype=np.float64)

    def hear(self, readings: Sequence[RangeReading]) -> int:
        """Take echoes, one after another.

        Returns:
            How many said something; the others were no measurements, or out of the sensor's own range.
        """
        config, resolution = self._config, self._frame.resolution
        used = 0
        for reading in readings:
            distance = reading.distance
            silent = distance == math.inf or (distance == reading.range_max and config.clear_on_max)
            if silent and not config.clear_on_max:
                continue
            if not silent and not reading.range_min <= distance <= reading.range_max:  # NaN too
                continue
            used += 1
            reach = reading.range_max if silent else distance
            T_grid_sensor = self._frame.T_map_grid.inverse() @ reading.pose
            sensor = np.array([T_grid_sensor.x, T_grid_sensor.y, T_grid_sensor.theta])
            part = cone_bounds(sensor, reach + _spread(reach, resolution), 0.5 * reading.field_of_view, self._frame)
            hear_cone(
                self._probability, np.array(part), resolution, sensor, reach, 0.5 * reading.field_of_view,
                _spread(reach, resolution), config.phi, config.surest, silent,
            )  # fmt: skip
            self._settle(part, self._index(reading.sensor))
        return used

    def _free(self, covered: NDArray[np.int64]) -> None:
        super()._free(covered)
        self._probability[covered[:, 0], covered[:, 1]] = 1.0 - self._config.surest

    def _settle(self, part: Bounds, sensor: int) -> None:
        """Costs by probabilities; what is an obstacle only now was heard by that sensor."""
        probability = self._probability[part.slices]
        free = probability < self._config.clear_threshold
        occupied = probability > self._config.mark_threshold
        self._seen_by[part.slices][occupied & (self._cells[part.slices] != LETHAL)] = sensor
        self._cells[part.slices] = np.where(occupied, LETHAL, np.where(free, FREE, UNKNOWN))
        self._changed = self._changed.union(part)


def _spread(distance: float, resolution: float) -> float:
    """Half the thickness of the arc on which something is [m]: Nav2's, but no arc is thinner than a cell."""
    return resolution * max(distance, 1.0)


def cone_bounds(sensor: NDArray[np.float64], reach: float, half: float, frame: GridGeometry) -> Bounds:
    """The cells that a cone may touch.

    Args:
        sensor: (3,) x, y [m] and heading [rad] in the grid.
        reach: Of the cone [m].
        half: Of its angle [rad].
        frame: Of the grid.
    """
    angles = sensor[2] + half * np.linspace(-1.0, 1.0, 9)
    far = reach / math.cos(half / 8.0)  # chords outside of the arc
    corners = np.vstack([sensor[:2], sensor[:2] + far * np.column_stack([np.cos(angles), np.sin(angles)])])
    low = np.floor(corners.min(axis=0) / frame.resolution).astype(int) - 1
    high = np.floor(corners.max(axis=0) / frame.resolution).astype(int) + 2
    rows, columns = frame.shape
    (left, top), (right, bottom) = np.clip(low, 0, (columns, rows)).tolist(), np.clip(high, 0, (columns, rows)).tolist()
    return Bounds(top, left, bottom, right)


@kernel(
    examples=lambda: [
        (np.zeros((5, 5)), np.zeros(4, dtype=np.int64), 0.1, np.zeros(3), 1.0, 0.2, 0.1, 1.2, 0.98, False),
    ]
)
def hear_cone(
    probability: NDArray[np.float64],
    bounds: NDArray[np.int64],
    resolution: float,
    sensor: NDArray[np.float64],
    distance: float,
    half: float,
    spread: float,
    phi: float,
    surest: float,
    silent: bool,
) -> None:
    """Update cells by one echo (the model of Nav2's range sensor layer).

    Args:
        probability: (rows, columns) that something is there, written.
        bounds: Top, left, bottom, right of what is looked at.
        resolution: Side of a cell [m].
        sensor: (3,) x, y [m] and heading [rad] in the grid.
        distance: Of the echo [m], or of what was heard to be empty.
        half: Of the cone's angle [rad].
        spread: Half the thickness of the arc [m].
        phi: See ``RangeConfig``.
        surest: See ``RangeConfig``.
        silent: Nothing sent an echo back.
    """
    for r in range(bounds[0], bounds[2]):
        for c in range(bounds[1], bounds[3]):
            dx, dy = (c + 0.5) * resolution - sensor[0], (r + 0.5) * resolution - sensor[1]
            away = math.hypot(dx, dy)
            if away > distance + spread:
                continue
            turn = abs((math.atan2(dy, dx) - sensor[2] + math.pi) % (2.0 * math.pi) - math.pi)
            # a cell that the axis runs through lies on the axis, however narrow the cone
            turn = max(turn - (math.atan2(0.5 * resolution, away) if away > 0.0 else math.pi), 0.0)
            if turn > half:
                continue
            worth = (1.0 - turn * turn / (half * half)) * 0.5 * (1.0 - math.tanh(2.0 * (away - phi)))
            if silent:
                occupied = 1.0 - surest
            elif away < distance - 2.0 * spread:
                occupied = 0.5 * (1.0 - worth)
            elif away < distance - spread:
                ramp = (away - (distance - 2.0 * spread)) / spread
                occupied = worth * 0.5 * ramp * ramp + 0.5 * (1.0 - worth)
            else:
                ramp = (distance - away) / spread
                occupied = worth * (0.5 - 0.5 * ramp * ramp) + 0.5
            before = probability[r, c]
            yes, no = occupied * before, (1.0 - occupied) * (1.0 - before)
            probability[r, c] = min(max(yes / (yes + no), 1.0 - surest), surest)
