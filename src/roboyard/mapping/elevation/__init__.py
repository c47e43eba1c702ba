"""Elevation maps: the height of the ground around a robot, with its variance, from point clouds."""

from typing import TYPE_CHECKING

from roboyard.config.lazy import lazy_exports

if TYPE_CHECKING:
    from roboyard.mapping.elevation.elevation_map import (
        CloudInsertion,
        ElevationMap,
        ElevationMapConfig,
        StructuredLightNoise,
    )

__all__ = [
    "CloudInsertion",
    "ElevationMap",
    "ElevationMapConfig",
    "StructuredLightNoise",
]

__getattr__, __dir__ = lazy_exports(__name__, {
    "elevation_map": ("CloudInsertion", "ElevationMap", "ElevationMapConfig", "StructuredLightNoise"),
})  # fmt: skip
