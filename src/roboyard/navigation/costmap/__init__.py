"""Costmaps: what it costs a robot to be at a place, put together from layers."""

from typing import TYPE_CHECKING

from roboyard.config.lazy import lazy_exports

if TYPE_CHECKING:
    from roboyard.navigation.costmap.bounds import Bounds
    from roboyard.navigation.costmap.denoise import DenoiseLayer
    from roboyard.navigation.costmap.filters import KeepoutLayer, SpeedZones
    from roboyard.navigation.costmap.grid import FREE, INSCRIBED, LETHAL, UNKNOWN, Costmap
    from roboyard.navigation.costmap.inflation import InflationLayer
    from roboyard.navigation.costmap.layered import Layer, LayeredCostmap, Origin, SensorLayer
    from roboyard.navigation.costmap.obstacles import Observation, ObstacleConfig, ObstacleLayer
    from roboyard.navigation.costmap.ranges import RangeConfig, RangeLayer, RangeReading
    from roboyard.navigation.costmap.recent import Recent
    from roboyard.navigation.costmap.static import StaticLayer
    from roboyard.navigation.costmap.voxels import VoxelConfig, VoxelLayer

__all__ = [
    "FREE",
    "INSCRIBED",
    "LETHAL",
    "UNKNOWN",
    "Bounds",
    "Costmap",
    "DenoiseLayer",
    "InflationLayer",
    "KeepoutLayer",
    "Layer",
    "LayeredCostmap",
    "Observation",
    "ObstacleConfig",
    "ObstacleLayer",
    "Origin",
    "RangeConfig",
    "RangeLayer",
    "RangeReading",
    "Recent",
    "SensorLayer",
    "SpeedZones",
    "StaticLayer",
    "VoxelConfig",
    "VoxelLayer",
]

__getattr__, __dir__ = lazy_exports(__name__, {
    "bounds": ("Bounds",),
    "denoise": ("DenoiseLayer",),
    "filters": ("KeepoutLayer", "SpeedZones"),
    "grid": ("FREE", "INSCRIBED", "LETHAL", "UNKNOWN", "Costmap"),
    "inflation": ("InflationLayer",),
    "layered": ("Layer", "LayeredCostmap", "Origin", "SensorLayer"),
    "obstacles": ("Observation", "ObstacleConfig", "ObstacleLayer"),
    "ranges": ("RangeConfig", "RangeLayer", "RangeReading"),
    "recent": ("Recent",),
    "static": ("StaticLayer",),
    "voxels": ("VoxelConfig", "VoxelLayer"),
})  # fmt: skip
