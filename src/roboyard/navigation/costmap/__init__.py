"""Layered costmaps: the traversal cost of each cell, 0 to 254, composed of layers as in nav2_costmap_2d."""

from typing import TYPE_CHECKING

from roboyard.config.lazy import lazy_exports

if TYPE_CHECKING:
    from roboyard.navigation.costmap.inflation_layer import DenoiseLayer, InflationLayer
    from roboyard.navigation.costmap.layered_costmap import (
        FREE,
        INSCRIBED,
        LETHAL,
        UNKNOWN,
        CellBounds,
        CellSource,
        Costmap,
        Layer,
        LayeredCostmap,
        SensorLayer,
    )
    from roboyard.navigation.costmap.map_layers import KeepoutLayer, SpeedFilter, StaticLayer
    from roboyard.navigation.costmap.obstacle_layer import Observation, ObservationFilterConfig, ObstacleLayer
    from roboyard.navigation.costmap.range_layer import RangeLayer, RangeModelConfig, RangeReading
    from roboyard.navigation.costmap.voxel_layer import VoxelConfig, VoxelLayer

__all__ = [
    "FREE",
    "INSCRIBED",
    "LETHAL",
    "UNKNOWN",
    "CellBounds",
    "CellSource",
    "Costmap",
    "DenoiseLayer",
    "InflationLayer",
    "KeepoutLayer",
    "Layer",
    "LayeredCostmap",
    "Observation",
    "ObservationFilterConfig",
    "ObstacleLayer",
    "RangeLayer",
    "RangeModelConfig",
    "RangeReading",
    "SensorLayer",
    "SpeedFilter",
    "StaticLayer",
    "VoxelConfig",
    "VoxelLayer",
]

__getattr__, __dir__ = lazy_exports(__name__, {
    "inflation_layer": ("DenoiseLayer", "InflationLayer"),
    "layered_costmap": ("FREE", "INSCRIBED", "LETHAL", "UNKNOWN", "CellBounds", "CellSource", "Costmap",
        "Layer", "LayeredCostmap", "SensorLayer"),
    "map_layers": ("KeepoutLayer", "SpeedFilter", "StaticLayer"),
    "obstacle_layer": ("Observation", "ObservationFilterConfig", "ObstacleLayer"),
    "range_layer": ("RangeLayer", "RangeModelConfig", "RangeReading"),
    "voxel_layer": ("VoxelConfig", "VoxelLayer"),
})  # fmt: skip
