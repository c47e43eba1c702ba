"""Configuration of the navigator's costmaps: which layers each of them has, in which order."""

from __future__ import annotations

from dataclasses import dataclass

from roboyard.config import check, parameter
from roboyard.config.wording import did_you_mean
from roboyard.errors import ConfigError
from roboyard.navigation.costmap.inflation_layer import DenoiseLayerConfig, InflationLayerConfig
from roboyard.navigation.costmap.layer_types import LayerConfig, LayerEntry
from roboyard.navigation.costmap.map_layers import KeepoutLayerConfig, SpeedFilterConfig, StaticLayerConfig
from roboyard.navigation.costmap.obstacle_layer import ObstacleLayerConfig
from roboyard.navigation.costmap.sensor_layer import PointSourceConfig, SensorLayerConfig

UNDECLARED_LAYERS: dict[str, LayerConfig] = {
    "static": StaticLayerConfig(type="static"),
    "keepout": KeepoutLayerConfig(type="keepout"),
}
"""Layers that a costmap may name without a declaration: the static map and the keepout mask."""

_RESERVED_NAMES = (*UNDECLARED_LAYERS, "inflation", "denoise")
"""Names that only a layer of the type of the same name may have."""


def _default_layers() -> dict[str, LayerConfig]:
    return {"obstacles": ObstacleLayerConfig(type="obstacles", sources=(PointSourceConfig("scan"),))}


@dataclass(frozen=True)
class CostmapConfig:
    """Configuration of both costmaps: layers in order from the lowest to the highest; inflation follows the last."""

    resolution: float = parameter(
        0.05,
        unit="m",
        low=0.005,
        high=2.0,
        doc="Edge of a cell of the local costmap, and of the global one without a map.",
    )
    local_size: float = parameter(6.0, unit="m", low=0.5, high=100.0, doc="Side of the local costmap.")
    global_rolling_size: float = parameter(
        30.0, unit="m", low=1.0, high=1000.0, doc="Side of the global costmap without a map."
    )
    layers: dict[str, LayerEntry] = parameter(factory=_default_layers, doc="Layers by name.")
    global_layers: tuple[str, ...] = parameter(
        ("static", "obstacles", "keepout"), doc="Layers of the global costmap: static, keepout, or names of layers."
    )
    local_layers: tuple[str, ...] = parameter(
        ("obstacles", "keepout"), doc="Layers of the local costmap: static, keepout, or names of layers."
    )
    inflation_radius: float = parameter(
        InflationLayerConfig.inflation_radius,
        unit="m",
        low=0.0,
        high=20.0,
        doc="Distance from obstacles within which costs are raised, in costmaps that name no layer of type inflation.",
    )
    cost_scaling_factor: float = parameter(
        InflationLayerConfig.cost_scaling_factor,
        unit="1/m",
        low=0.01,
        high=100.0,
        doc="Rate at which the costs fall with the distance, in costmaps that name no layer of type inflation.",
    )
    denoise_min_cells: int = parameter(
        1,
        low=1,
        high=1000,
        doc="Number of cells of the smallest obstacle that counts; more than 1 adds a layer of type denoise.",
    )
    speed_filter: SpeedFilterConfig = parameter(SpeedFilterConfig(), doc="Conversion of speed_mask.")

    def __post_init__(self) -> None:
        check(self, "costmap")
        for name, layer in self.layers.items():
            self._check_layer(name, layer)
        for key in ("global_layers", "local_layers"):
            self._check_layer_names(key)

    def _check_layer(self, name: str, layer: LayerConfig) -> None:
        location = f"costmap.layers.{name}"
        if name in _RESERVED_NAMES and layer.type != name:
            raise ConfigError(
                f"the layer {name!r} has the type {layer.type}",
                location=f"{location}.type",
                valid=f"{name}, or another name of the layer",
            )
        if isinstance(layer, SensorLayerConfig):
            topics = [source.topic for source in layer.sources]
            if not topics:
                raise ConfigError("the layer has no sensor source", location=f"{location}.sources", valid="topics")
            if len(set(topics)) != len(topics):
                raise ConfigError(f"topics {', '.join(topics)}", location=f"{location}.sources", valid="each once")
        if name not in (*self.global_layers, *self.local_layers):
            raise ConfigError("in no costmap", location=location, valid="name it in global_layers or local_layers")

    def _check_layer_names(self, key: str) -> None:
        names, valid_names = getattr(self, key), tuple(dict.fromkeys((*UNDECLARED_LAYERS, *self.layers)))
        for name in names:
            if name not in valid_names:
                raise ConfigError(
                    f"no layer {name!r}{did_you_mean(name, valid_names)}",
                    location=f"costmap.{key}",
                    valid=", ".join(valid_names),
                )
        if len(set(names)) != len(names):
            raise ConfigError(f"layers {', '.join(names)}", location=f"costmap.{key}", valid="each once")
        if self.denoise_min_cells > 1 and (self._names_inflation(names) or "denoise" in names):
            raise ConfigError(
                f"denoise_min_cells = {self.denoise_min_cells} beside a declared layer of type inflation or denoise",
                location=f"costmap.{key}",
                valid="denoise_min_cells = 1, and a layer of type denoise below the inflation",
            )

    def _names_inflation(self, names: tuple[str, ...]) -> bool:
        return any(isinstance(self.layer(name), InflationLayerConfig) for name in names)

    def layer(self, name: str) -> LayerConfig:
        """Return the configuration of a layer: the declared one, or that of a layer that needs no declaration."""
        return self.layers[name] if name in self.layers else UNDECLARED_LAYERS[name]

    @property
    def enabled_layers(self) -> dict[str, LayerConfig]:
        """Layers that costmaps name and that are enabled, in the order of their declaration."""
        names = dict.fromkeys((*self.layers, *self.global_layers, *self.local_layers))
        return {name: self.layer(name) for name in names if self.layer(name).enabled}

    def layers_of(self, names: tuple[str, ...]) -> dict[str, LayerConfig]:
        """Return the enabled layers of a costmap, the lowest first, with denoising and inflation.

        Args:
            names: ``global_layers`` or ``local_layers``.
        """
        layers = {name: self.layer(name) for name in names if self.layer(name).enabled}
        if self.denoise_min_cells > 1:
            layers["denoise"] = DenoiseLayerConfig(type="denoise", minimal_group_size=self.denoise_min_cells)
        if not self._names_inflation(names):
            layers["inflation"] = InflationLayerConfig(
                type="inflation",
                inflation_radius=self.inflation_radius,
                cost_scaling_factor=self.cost_scaling_factor,
            )
        return layers
