"""How an octree map learns from clouds: OctoMap's sensor model."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from roboyard.config import check, parameter
from roboyard.errors import ConfigError


@dataclass(frozen=True)
class SensorModel:
    """What a beam says about voxels; names as octomap_server has them, defaults OctoMap's but for the range.

    Raises:
        ConfigError: a number out of range, or ranges that are not ascending.
    """

    min_range: float = parameter(0.0, unit="m", low=0.0, high=1000.0, doc="nearer points are left out")
    max_range: float = parameter(5.0, unit="m", low=0.001, high=1000.0, doc="farther points only free what lies before")
    hit: float = parameter(0.7, low=0.501, high=0.999, doc="probability that an end of a beam is occupied")
    miss: float = parameter(0.4, low=0.001, high=0.499, doc="probability that what a beam passes is occupied")
    min: float = parameter(0.12, low=0.001, high=0.499, doc="the surest that a voxel can be free")
    max: float = parameter(0.97, low=0.501, high=0.999, doc="the surest that a voxel can be occupied")

    def __post_init__(self) -> None:
        check(self, "sensor_model")
        if not self.min_range < self.max_range:
            raise ConfigError(
                f"ranges {self.min_range} to {self.max_range} m", location="sensor_model", valid="ascending"
            )


@dataclass(frozen=True)
class OctreeConfig:
    """Of an `OctreeMap`.

    Raises:
        ConfigError: a number out of range, or a threshold that nothing can reach.
    """

    resolution: float = parameter(0.05, unit="m", low=0.001, high=100.0, doc="edge of the smallest voxel")
    occupied: float = parameter(0.5, low=0.01, high=0.99, doc="from which probability on a voxel counts as occupied")
    sensor_model: SensorModel = parameter(SensorModel(), doc="what a beam says about voxels")

    def __post_init__(self) -> None:
        check(self, "octree")
        model = self.sensor_model
        if not model.min < self.occupied <= model.max:
            raise ConfigError(
                f"occupied = {self.occupied}",
                location="octree",
                valid=f"above min, {model.min}, up to max, {model.max}",
            )


def log_odds(probability: float) -> np.float32:
    """Log-odds of a probability, with 32 bits as OctoMap keeps them."""
    return np.float32(math.log(probability / (1.0 - probability)))
