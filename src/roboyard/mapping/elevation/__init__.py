"""Maps of the ground's height round a robot, from clouds of points: how high, and how sure that is."""

from typing import TYPE_CHECKING

from roboyard.config.lazy import lazy_exports

if TYPE_CHECKING:
    from roboyard.mapping.elevation.config import ElevationConfig, SensorProcessor
    from roboyard.mapping.elevation.elevation_map import ElevationMap, Taken

__all__ = ["ElevationConfig", "ElevationMap", "SensorProcessor", "Taken"]

__getattr__, __dir__ = lazy_exports(__name__, {
    "config": ("ElevationConfig", "SensorProcessor"),
    "elevation_map": ("ElevationMap", "Taken"),
})  # fmt: skip
