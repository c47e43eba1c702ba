"""Conformance test for costmap layers, Roboyard's own and those of other packages: `check_layer`."""

from __future__ import annotations

from dataclasses import fields
from typing import Any, NoReturn

import numpy as np
from numpy.typing import NDArray

from roboyard.config import load
from roboyard.errors import InputError
from roboyard.geometry import SE2, polygons
from roboyard.grids import GridGeometry, OccupancyGrid
from roboyard.navigation.costmap.layer_types import COSTMAP_LAYERS, LayerConfig, LayerContext
from roboyard.navigation.costmap.layered_costmap import (
    EMPTY_BOUNDS,
    FREE,
    INSCRIBED,
    LETHAL,
    UNKNOWN,
    CellBounds,
    Layer,
    LayeredCostmap,
)
from roboyard.navigation.costmap.map_layers import GridLayer
from roboyard.navigation.costmap.obstacle_layer import Observation
from roboyard.navigation.costmap.range_layer import RangeReading
from roboyard.navigation.costmap.sensor_layer import RangeSourceConfig, SensorLayer, SensorLayerConfig
from roboyard.navigation.footprint import Footprint

_GEOMETRY = GridGeometry(0.1, (50, 60), SE2(-3.0, -2.5, 0.0))
_FOOTPRINT = Footprint(polygons.rectangle(0.5, 0.4))
_SHIFT = (4, -7)
"""Rows and columns by which the rolling costmap of the test moves."""
_N_STEPS = 6
_N_TRIALS = 4


def check_layer(layer_config: LayerConfig | type[LayerConfig] | str) -> None:
    """Try a type of costmap layer on small costmaps: every promise of `Layer`, with seeded random inputs.

    A layer over an occupancy grid receives random grids, a sensor layer random observations of its sources' type, and
    the
    layers below change at random.

    Args:
        layer_config: Configuration of the layer, or a class of configurations or its registered name; then all
            parameters have their default values, and a sensor layer has one source.

    Raises:
        InputError: The layer breaks a promise; the message says which.
        UnknownNameError: No layer type has this name.
    """
    config = layer_config if isinstance(layer_config, LayerConfig) else _default_config(layer_config)
    for seed in range(_N_TRIALS):
        _LayerCheck(config, seed).run_all()


def _default_config(layer_type: type[LayerConfig] | str) -> LayerConfig:
    config_class = COSTMAP_LAYERS[layer_type] if isinstance(layer_type, str) else layer_type
    values: dict[str, Any] = {"type": layer_type if isinstance(layer_type, str) else "checked"}
    if issubclass(config_class, SensorLayerConfig):
        values["sources"] = [{"topic": "sensor"}]
    elif "topic" in {field.name for field in fields(config_class)}:
        values["topic"] = "grid"
    return load(config_class, values, source_name=f"layer {config_class.__name__}")


class _LayerBelow(Layer):
    """Layer of random costs that cover more than the costmap, so that a rolling costmap finds costs everywhere."""

    def __init__(self, generator: np.random.Generator) -> None:
        super().__init__("below")
        self._generator = generator
        rows, columns = _GEOMETRY.shape
        self._margin = max(rows, columns)
        costs = np.array([FREE, FREE, FREE, 60, INSCRIBED - 1, LETHAL, UNKNOWN], dtype=np.uint8)
        self._costs = generator.choice(costs, (rows + 2 * self._margin, columns + 2 * self._margin))
        self._offset = (self._margin, self._margin)
        self._changed_bounds = EMPTY_BOUNDS

    def match_size(self, geometry: GridGeometry, shift: tuple[int, int] | None) -> None:
        if shift is not None:
            self._offset = (self._offset[0] + shift[0], self._offset[1] + shift[1])
        self._changed_bounds = CellBounds.full(geometry.shape)

    def change(self) -> None:
        """Replace the costs of a random rectangle."""
        (top, bottom), (left, right) = (np.sort(self._generator.integers(0, n, 2)) for n in _GEOMETRY.shape)
        self._changed_bounds = CellBounds(int(top), int(left), int(bottom), int(right))
        costs = self._visible_costs(self._changed_bounds)
        costs[...] = self._generator.permutation(costs.ravel()).reshape(costs.shape)

    def _visible_costs(self, bounds: CellBounds) -> NDArray[np.uint8]:
        down, right = self._offset
        return self._costs[down + bounds.top : down + bounds.bottom, right + bounds.left : right + bounds.right]

    def update_bounds(self) -> CellBounds:
        changed, self._changed_bounds = self._changed_bounds, EMPTY_BOUNDS
        return changed

    def update_costs(self, cells: NDArray[np.uint8], bounds: CellBounds) -> None:
        cells[bounds.slices] = self._visible_costs(bounds)


class _LayerCheck:
    """Test of one layer type with the random inputs of one seed."""

    def __init__(self, config: LayerConfig, seed: int) -> None:
        self._config, self._seed = config, seed

    def run_all(self) -> None:
        """Test every promise in turn."""
        self._check_written_cells()
        self._check_bounds_and_repetition()
        self._check_raised_costs()
        self._check_clearing()
        self._check_rolling()
        self._check_state()

    def _make(self) -> Layer:
        layer: object = self._config.make_layer(LayerContext("checked", _FOOTPRINT, _GEOMETRY.resolution))
        if not isinstance(layer, Layer):
            self._report_violation(f"makes {type(layer).__name__}, not a Layer")
        if layer.name != "checked":
            self._report_violation(f"names its layer {layer.name!r} instead of the name that LayerContext gives")
        return layer

    def _random(self) -> np.random.Generator:
        return np.random.default_rng(self._seed)

    def _feed(self, layer: Layer, generator: np.random.Generator) -> None:
        """Give the layer a random input of its kind."""
        if isinstance(layer, GridLayer):
            shape = tuple(int(n) for n in generator.integers(20, 50, 2))
            cells = generator.choice(np.array([-1, 0, 0, 0, 40, 100], dtype=np.int8), shape)
            pose = _random_pose(generator, 1.0)
            layer.set_grid(OccupancyGrid(cells, GridGeometry(generator.uniform(0.05, 0.2), (shape[0], shape[1]), pose)))
        elif isinstance(layer, SensorLayer) and isinstance(self._config, SensorLayerConfig):
            items = [
                _random_reading(generator) if isinstance(source, RangeSourceConfig) else _random_observation(generator)
                for source in self._config.sources
                for _ in range(3)
            ]
            layer.add_observations(items)

    def _check_bounds_and_repetition(self) -> None:
        generator, below, layer = self._random(), _LayerBelow(self._random()), self._make()
        costmap = LayeredCostmap(_GEOMETRY, [below, layer], track_unknown_space=True)
        before = costmap.snapshot().cells
        for k in range(_N_STEPS):
            self._feed(layer, generator)
            below.change()
            if k == 3 and layer.is_clearable:
                layer.clear(CellBounds(5, 6, 30, 20))
            if k == 4:
                costmap.center_on(SE2(0.3, -0.2, 0.0))
                before = UNKNOWN * np.ones_like(before)
            bounds = costmap.update()
            after = costmap.snapshot().cells
            outside = np.ones(after.shape, dtype=np.bool_)
            outside[bounds.slices] = False
            if (after != before)[outside].any():
                self._report_violation("changes cells outside of the bounds that update_bounds returned")
            if (_composed(below, layer) != after).any():
                self._report_violation("changed, but update_bounds and influence_cells do not cover all changed cells")
            if not costmap.update().is_empty:
                self._report_violation("returns bounds from update_bounds although nothing changed since the last call")
            before = after

    def _check_written_cells(self) -> None:
        generator, layer = self._random(), self._make()
        layer.match_size(_GEOMETRY, None)
        for _ in range(3):
            self._feed(layer, generator)
        (top, bottom), (left, right) = (np.sort(generator.integers(0, n, 2)) for n in _GEOMETRY.shape)
        cells = generator.choice(np.array([FREE, 60, LETHAL, UNKNOWN], dtype=np.uint8), _GEOMETRY.shape)
        written, repeated = cells.copy(), cells.copy()
        bounds = CellBounds(int(top), int(left), int(bottom), int(right))
        layer.update_costs(written, bounds)
        layer.update_costs(repeated, bounds)
        outside = np.ones(cells.shape, dtype=np.bool_)
        outside[bounds.slices] = False
        if (written != cells)[outside].any():
            self._report_violation("writes cells outside of the bounds that update_costs was given")
        if (written != repeated).any():
            self._report_violation("writes other costs when update_costs is called again")

    def _check_raised_costs(self) -> None:
        generator, layer = self._random(), self._make()
        layer.match_size(_GEOMETRY, None)
        cells = generator.choice(np.array([FREE, 60, LETHAL, UNKNOWN], dtype=np.uint8), _GEOMETRY.shape)
        for _ in range(_N_STEPS):
            self._feed(layer, generator)
            written = cells.copy()
            layer.update_costs(written, CellBounds.full(_GEOMETRY.shape))
            is_known = cells != UNKNOWN
            if (written[is_known] == UNKNOWN).any():
                self._report_violation("makes known cells unknown")
            if not layer.lowers_costs and (written[is_known] < cells[is_known]).any():
                self._report_violation("lowers costs of the layers below although lowers_costs is false")

    def _check_clearing(self) -> None:
        generator, layer, unobserved = self._random(), self._make(), self._make()
        for one in (layer, unobserved):
            one.match_size(_GEOMETRY, None)
        if isinstance(layer, GridLayer) and isinstance(unobserved, GridLayer):
            self._feed(layer, self._random())
            self._feed(unobserved, self._random())
        else:
            for _ in range(3):
                self._feed(layer, generator)
        layer.clear()
        if (_composed(layer) != _composed(unobserved)).any():
            self._report_violation(
                "writes other costs after clear() than before its first observation"
                if layer.is_clearable
                else "is changed by clear() although is_clearable is false, or remembers observations without it"
            )

    def _check_rolling(self) -> None:
        """Compare the cells that stay in view with those of a costmap that did not move."""
        rolling, fixed = (self._costmap_with_inputs() for _ in range(2))
        down, right = _SHIFT
        rows, columns = _GEOMETRY.shape
        center = _GEOMETRY.cell_centers(np.array([rows // 2 + down, columns // 2 + right]))
        rolling.center_on(SE2(float(center[0]), float(center[1]), 0.0))
        for costmap in (rolling, fixed):
            costmap.update()
        margin = max(layer.influence_cells() for layer in fixed.layers)
        overlap = fixed.snapshot().cells[down:, : columns + right], rolling.snapshot().cells[: rows - down, -right:]
        inner = (slice(margin, overlap[0].shape[0] - margin), slice(margin, overlap[0].shape[1] - margin))
        if (overlap[0][inner] != overlap[1][inner]).any():
            self._report_violation("changes the cells that stay in view when a rolling costmap moves (match_size)")

    def _costmap_with_inputs(self) -> LayeredCostmap:
        generator, layer = self._random(), self._make()
        costmap = LayeredCostmap(_GEOMETRY, [_LayerBelow(self._random()), layer], track_unknown_space=True)
        for _ in range(3):
            self._feed(layer, generator)
            costmap.update()
        return costmap

    def _check_state(self) -> None:
        generator, layer, restored = self._random(), self._make(), self._make()
        for one in (layer, restored):
            one.match_size(_GEOMETRY, None)
        for _ in range(3):
            if isinstance(restored, GridLayer):  # grids belong to whoever gave them
                self._feed(restored, _copy(generator))
            self._feed(layer, generator)
        restored.load_state(layer.save_state(), _GEOMETRY)
        for _ in range(2):
            if (_composed(layer) != _composed(restored)).any():
                self._report_violation("writes other costs after save_state and load_state")
            self._feed(restored, _copy(generator))
            self._feed(layer, generator)
        if (_composed(layer) != _composed(restored)).any():
            self._report_violation("takes observations otherwise after save_state and load_state")

    def _report_violation(self, violation: str) -> NoReturn:
        raise InputError(violation, location=type(self._config).__name__, valid="what Layer promises")


def _composed(*layers: Layer) -> NDArray[np.uint8]:
    """Return all cells as the layers write them onto an empty costmap."""
    cells = np.full(_GEOMETRY.shape, UNKNOWN, dtype=np.uint8)
    for layer in layers:
        layer.update_costs(cells, CellBounds.full(_GEOMETRY.shape))
    return cells


def _copy(generator: np.random.Generator) -> np.random.Generator:
    copied = np.random.default_rng(0)  # the seed is replaced by the state
    copied.bit_generator.state = generator.bit_generator.state
    return copied


def _random_pose(generator: np.random.Generator, distance: float) -> SE2:
    x, y = generator.uniform(-distance, distance, 2)
    return SE2(float(x), float(y), generator.uniform(-3.0, 3.0))


def _random_observation(generator: np.random.Generator) -> Observation:
    origin = np.append(generator.uniform(-1.0, 1.0, 2), generator.uniform(0.1, 1.5))
    points = origin + generator.normal(0.0, 1.0, (40, 3)) * (1.5, 1.5, 0.6)
    return Observation(origin, points, generator.random(40) < 0.7, "sensor")


def _random_reading(generator: np.random.Generator) -> RangeReading:
    pose = _random_pose(generator, 1.5)
    return RangeReading(pose, generator.uniform(0.1, 3.0), generator.uniform(0.1, 1.2), 0.1, 3.0, "sensor")
