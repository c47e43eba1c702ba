"""Maps of the ground's height round a robot, from clouds of points: how high, and how sure that is."""

from roboyard.mapping.elevation.config import ElevationConfig, SensorProcessor
from roboyard.mapping.elevation.elevation_map import ElevationMap, Taken

__all__ = ["ElevationConfig", "ElevationMap", "SensorProcessor", "Taken"]
