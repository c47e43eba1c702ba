"""Layered costmaps: the traversal cost of each cell, 0 to 254, composed of layers as in nav2_costmap_2d."""

from typing import TYPE_CHECKING

from roboyard.config.lazy import lazy_exports

if TYPE_CHECKING:
    from roboyard.navigation.costmap.config import (
        CostmapConfig,
    )
    from roboyard.navigation.costmap.inflation_layer import (
        DenoiseLayer,
        DenoiseLayerConfig,
        InflationLayer,
        InflationLayerConfig,
    )
    from roboyard.navigation.costmap.layer_types import (
        COSTMAP_LAYERS,
        LayerConfig,
        LayerContext,
        LayerEntry,
    )
    from roboyard.navigation.costmap.layered_costmap import (
        FREE,
        INSCRIBED,
        LETHAL,
        UNKNOWN,
        CellBounds,
        CellCostOrigin,
        Costmap,
        Layer,
        LayeredCostmap,
    )
    from roboyard.navigation.costmap.map_layers import (
        GridLayer,
        GridLayerConfig,
        KeepoutLayer,
        KeepoutLayerConfig,
        SpeedFilter,
        SpeedFilterConfig,
        StaticLayer,
        StaticLayerConfig,
    )
    from roboyard.navigation.costmap.obstacle_layer import (
        Observation,
        ObservationFilterConfig,
        ObstacleLayer,
        ObstacleLayerConfig,
    )
    from roboyard.navigation.costmap.range_layer import (
        RangeLayer,
        RangeLayerConfig,
        RangeModelConfig,
        RangeReading,
    )
    from roboyard.navigation.costmap.sensor_layer import (
        PointSourceConfig,
        RangeSourceConfig,
        SensorLayer,
        SensorLayerConfig,
    )
    from roboyard.navigation.costmap.voxel_layer import (
        VoxelConfig,
        VoxelLayer,
        VoxelLayerConfig,
    )

__all__ = [
    "COSTMAP_LAYERS",
    "FREE",
    "INSCRIBED",
    "LETHAL",
    "UNKNOWN",
    "CellBounds",
    "CellCostOrigin",
    "Costmap",
    "CostmapConfig",
    "DenoiseLayer",
    "DenoiseLayerConfig",
    "GridLayer",
    "GridLayerConfig",
    "InflationLayer",
    "InflationLayerConfig",
    "KeepoutLayer",
    "KeepoutLayerConfig",
    "Layer",
    "LayerConfig",
    "LayerContext",
    "LayerEntry",
    "LayeredCostmap",
    "Observation",
    "ObservationFilterConfig",
    "ObstacleLayer",
    "ObstacleLayerConfig",
    "PointSourceConfig",
    "RangeLayer",
    "RangeLayerConfig",
    "RangeModelConfig",
    "RangeReading",
    "RangeSourceConfig",
    "SensorLayer",
    "SensorLayerConfig",
    "SpeedFilter",
    "SpeedFilterConfig",
    "StaticLayer",
    "StaticLayerConfig",
    "VoxelConfig",
    "VoxelLayer",
    "VoxelLayerConfig",
]

__getattr__, __dir__ = lazy_exports(
    __name__,
    {
        "config": ("CostmapConfig",),
        "inflation_layer": (
            "DenoiseLayer",
            "DenoiseLayerConfig",
            "InflationLayer",
            "InflationLayerConfig",
        ),
        "layer_types": (
            "COSTMAP_LAYERS",
            "LayerConfig",
            "LayerContext",
            "LayerEntry",
        ),
        "layered_costmap": (
            "FREE",
            "INSCRIBED",
            "LETHAL",
            "UNKNOWN",
            "CellBounds",
            "CellCostOrigin",
            "Costmap",
            "Layer",
            "LayeredCostmap",
        ),
        "map_layers": (
            "GridLayer",
            "GridLayerConfig",
            "KeepoutLayer",
            "KeepoutLayerConfig",
            "SpeedFilter",
            "SpeedFilterConfig",
            "StaticLayer",
            "StaticLayerConfig",
        ),
        "obstacle_layer": (
            "Observation",
            "ObservationFilterConfig",
            "ObstacleLayer",
            "ObstacleLayerConfig",
        ),
        "range_layer": (
            "RangeLayer",
            "RangeLayerConfig",
            "RangeModelConfig",
            "RangeReading",
        ),
        "sensor_layer": (
            "PointSourceConfig",
            "RangeSourceConfig",
            "SensorLayer",
            "SensorLayerConfig",
        ),
        "voxel_layer": (
            "VoxelConfig",
            "VoxelLayer",
            "VoxelLayerConfig",
        ),
    },
)
