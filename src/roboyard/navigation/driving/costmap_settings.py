"""What can be set of the navigator's costmaps: which layers, and which sensors tell them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from roboyard.config import check, parameter
from roboyard.config.wording import did_you_mean
from roboyard.errors import ConfigError
from roboyard.navigation.costmap import ObstacleConfig, RangeConfig, VoxelConfig

MAP_LAYERS = ("static", "keepout")
"""Layers that are always there to be named: the map made beforehand, and where people forbid to go."""


@dataclass(frozen=True)
class PointSource:
    """A sensor that shows points: a laser or a depth camera."""

    topic: str = parameter(doc="Topic of the sensor.")
    kind: Literal["scan", "cloud"] = parameter(
        "scan", doc="Type of the messages: sensor_msgs/LaserScan or PointCloud2."
    )
    persistence: float = parameter(
        0.0, unit="s", low=0.0, high=3600.0, doc="Time for which what it saw counts; 0: the newest message."
    )
    timeout: float | None = parameter(
        None,
        unit="s",
        low=0.02,
        high=3600.0,
        doc="Silence after which the robot stops; none: the node's sensor_timeout.",
    )
    voxel: float = parameter(
        0.05, unit="m", low=0.0, high=10.0, doc="Edge of the cube in which points of a cloud become one; 0: none."
    )
    every: int = parameter(1, low=1, high=64, doc="Step between the used rows and columns of an organized cloud.")


@dataclass(frozen=True)
class EchoSource:
    """A sonar, or another sensor of one distance (sensor_msgs/Range)."""

    topic: str = parameter(doc="Topic of the sensor.")
    timeout: float | None = parameter(
        None,
        unit="s",
        low=0.02,
        high=3600.0,
        doc="Silence after which the robot stops; none: the node's sensor_timeout.",
    )


@dataclass(frozen=True, kw_only=True)
class SensedLayer:
    """What layers of sensors have in common."""

    overwrite: bool = parameter(
        False, doc="Replace the costs of the layers below by what this layer knows; false: the higher cost wins."
    )
    clear_footprint: bool = parameter(True, doc="Free the ground under the robot itself.")
    enabled: bool = parameter(True, doc="Use the layer; false: nothing listens to its sources.")


@dataclass(frozen=True, kw_only=True)
class ObstacleSettings(SensedLayer):
    """Obstacles in the plane, from laser scans and point clouds (`ObstacleLayer`)."""

    type: Literal["obstacles"]
    sources: tuple[PointSource, ...] = parameter(doc="Sensors of the layer.")
    points: ObstacleConfig = parameter(ObstacleConfig(), doc="Points that count.")


@dataclass(frozen=True, kw_only=True)
class VoxelSettings(SensedLayer):
    """Obstacles in columns of voxels, from point clouds and scans at several heights (`VoxelLayer`)."""

    type: Literal["voxels"]
    sources: tuple[PointSource, ...] = parameter(doc="Sensors of the layer.")
    points: ObstacleConfig = parameter(ObstacleConfig(), doc="Points that count.")
    voxels: VoxelConfig = parameter(VoxelConfig(), doc="Costs of columns of voxels.")


@dataclass(frozen=True, kw_only=True)
class RangeSettings(SensedLayer):
    """Probabilities of obstacles within cones, from sonars and other range sensors (`RangeLayer`)."""

    type: Literal["ranges"]
    sources: tuple[EchoSource, ...] = parameter(doc="Sensors of the layer.")
    echoes: RangeConfig = parameter(RangeConfig(), doc="Costs of echoes.")


LayerSettings = ObstacleSettings | VoxelSettings | RangeSettings


def _by_lasers() -> dict[str, LayerSettings]:
    return {"obstacles": ObstacleSettings(type="obstacles", sources=(PointSource("scan"),))}


@dataclass(frozen=True)
class ZoneSettings:
    """How a mask's values become speeds, as in Nav2's speed filter: base + multiplier · value."""

    base: float = parameter(0.0, low=-1e4, high=1e4, doc="Constant term of the conversion.")
    multiplier: float = parameter(1.0, low=-1e4, high=1e4, doc="Factor of the conversion.")
    percent: bool = parameter(True, doc="Speeds in percent of the largest speed; false: in m/s.")


@dataclass(frozen=True)
class CostmapSettings:
    """Of both costmaps: layers are named from the lowest to the highest, and inflated after the last."""

    resolution: float = parameter(
        0.05,
        unit="m",
        low=0.005,
        high=2.0,
        doc="Edge of a cell of the local costmap, and of the global one without a map.",
    )
    local_size: float = parameter(6.0, unit="m", low=0.5, high=100.0, doc="Side of the local costmap.")
    rolling_size: float = parameter(
        30.0, unit="m", low=1.0, high=1000.0, doc="Side of the global costmap without a map."
    )
    layers: dict[str, LayerSettings] = parameter(factory=_by_lasers, doc="Layers of sensors, by name.")
    global_layers: tuple[str, ...] = parameter(
        ("static", "obstacles", "keepout"), doc="Layers of the global costmap: static, keepout, or names of layers."
    )
    local_layers: tuple[str, ...] = parameter(
        ("obstacles", "keepout"), doc="Layers of the local costmap: static, keepout, or names of layers."
    )
    inflation_radius: float = parameter(
        0.6, unit="m", low=0.0, high=20.0, doc="Distance from obstacles within which costs are raised."
    )
    inflation_scaling: float = parameter(
        4.0, unit="1/m", low=0.01, high=100.0, doc="Rate at which the costs fall with the distance."
    )
    denoise: int = parameter(1, low=1, high=1000, doc="Number of cells of the smallest obstacle that counts.")
    speed_zones: ZoneSettings = parameter(ZoneSettings(), doc="Conversion of speed_mask.")

    def __post_init__(self) -> None:
        check(self, "costmap")
        known = (*MAP_LAYERS, *self.layers)
        for name, layer in self.layers.items():
            where = f"costmap.layers.{name}"
            topics = [source.topic for source in layer.sources]
            if name in MAP_LAYERS:
                raise ConfigError(f"{name!r} is no layer of sensors", location=where, valid="another name")
            if not topics:
                raise ConfigError("nothing tells this layer anything", location=f"{where}.sources", valid="topics")
            if len(set(topics)) != len(topics):
                raise ConfigError(f"topics {', '.join(topics)}", location=f"{where}.sources", valid="each once")
            if name not in (*self.global_layers, *self.local_layers):
                raise ConfigError("in no costmap", location=where, valid="name it in global_layers or local_layers")
        for key in ("global_layers", "local_layers"):
            names = getattr(self, key)
            for name in names:
                if name not in known:
                    raise ConfigError(
                        f"no layer {name!r}{did_you_mean(name, known)}",
                        location=f"costmap.{key}",
                        valid=", ".join(known),
                    )
            if len(set(names)) != len(names):
                raise ConfigError(f"layers {', '.join(names)}", location=f"costmap.{key}", valid="each once")

    @property
    def enabled_layers(self) -> dict[str, LayerSettings]:
        """Layers of sensors without those that are switched off."""
        return {name: layer for name, layer in self.layers.items() if layer.enabled}

    def enabled(self, names: tuple[str, ...]) -> tuple[str, ...]:
        """Those of the layers named that are not switched off."""
        return tuple(name for name in names if name in MAP_LAYERS or self.layers[name].enabled)
