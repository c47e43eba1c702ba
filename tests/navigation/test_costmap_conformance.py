"""Every registered costmap layer keeps the contract, and `check_layer` finds a layer that breaks a promise."""

from dataclasses import dataclass, replace

import pytest

from roboyard.config import load
from roboyard.errors import InputError, UnknownNameError
from roboyard.navigation.costmap import (
    COSTMAP_LAYERS,
    LETHAL,
    UNKNOWN,
    CellBounds,
    Layer,
    LayerConfig,
    ObstacleLayer,
    ObstacleLayerConfig,
    PointSourceConfig,
)
from roboyard.navigation.costmap.conformance import check_layer

SCAN = (PointSourceConfig("scan"),)


@pytest.mark.parametrize("name", COSTMAP_LAYERS.names())
def test_registered_layers_conform(name: str) -> None:
    check_layer(name)


@pytest.mark.parametrize("name", ["obstacles", "voxels", "ranges"])
def test_overwriting_sensor_layers_conform(name: str) -> None:
    values = {"type": name, "sources": [{"topic": "a"}, {"topic": "b"}]}
    check_layer(replace(load(COSTMAP_LAYERS[name], values, source_name="test"), overwrite=True))


def test_unknown_layer_type_is_refused() -> None:
    with pytest.raises(UnknownNameError, match="did you mean 'obstacles'"):
        check_layer("obstacels")


class BrokenLayer(ObstacleLayer):
    """Obstacle layer that breaks one promise."""

    violation = ""

    def update_bounds(self) -> CellBounds:
        changed = super().update_bounds()
        if self.violation == "do not cover all changed cells":
            return changed._replace(bottom=max(changed.bottom - 8, changed.top))
        return CellBounds(0, 0, 1, 1) if self.violation == "although nothing changed" else changed

    def update_costs(self, cells, bounds) -> None:
        super().update_costs(cells, bounds)
        if self.violation == "outside of the bounds":
            cells[-1, -1] = LETHAL
        if self.violation == "lowers costs":
            inside = cells[bounds.slices]
            inside[inside == 60] = 59
        if self.violation == "makes known cells unknown":
            inside = cells[bounds.slices]
            inside[inside == LETHAL] = UNKNOWN
        if self.violation == "when update_costs is called again":
            self.calls = getattr(self, "calls", 0) + 1
            cells[bounds.slices][:] = self.calls % 200

    def clear(self, bounds=None) -> None:
        if self.violation != "after clear":
            super().clear(bounds)

    def match_size(self, geometry, shift) -> None:
        super().match_size(geometry, None if self.violation == "stay in view" else shift)

    def load_state(self, saved, geometry) -> None:
        super().load_state(saved, geometry)
        if self.violation == "after save_state":
            self._cells[:] = UNKNOWN


@dataclass(frozen=True, kw_only=True)
class BrokenConfig(ObstacleLayerConfig):
    violation: str = ""

    def make_layer(self, context):
        if self.violation == "not a Layer":
            return object()
        layer = BrokenLayer(
            self.observation_filter, name="other" if self.violation == "names its layer" else context.name
        )
        layer.violation = self.violation
        return layer


@pytest.mark.parametrize(
    "violation",
    [
        "not a Layer", "names its layer", "do not cover all changed cells", "although nothing changed",
        "outside of the bounds", "lowers costs", "makes known cells unknown", "when update_costs is called again",
        "after clear", "stay in view", "after save_state",
    ],
)  # fmt: skip
def test_broken_promise_is_named(violation: str) -> None:
    with pytest.raises(InputError, match=violation):
        check_layer(BrokenConfig(type="broken", sources=SCAN, violation=violation))
    check_layer(BrokenConfig(type="broken", sources=SCAN))


def test_incomplete_layer_type_names_its_missing_method() -> None:
    with pytest.raises(TypeError, match="make_layer"):
        LayerConfig(type="nothing")  # type: ignore[abstract]
    with pytest.raises(TypeError, match="update_bounds"):
        Layer("nothing")  # type: ignore[abstract]
