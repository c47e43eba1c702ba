"""How an octree map learns from clouds: OctoMap's sensor model."""

from __future__ import annotations

import math

import numpy as np

from roboyard.config import Config, parameter
from roboyard.errors import ConfigError


class SensorModel(Config):
    """What a beam says about voxels; names as octomap_server has them, defaults OctoMap's but for the range."""

    min_range: float = parameter(0.0, unit="m", low=0.0, high=1000.0, doc="Range below which points are ignored.")
    max_range: float = parameter(
        5.0, unit="m", low=0.001, high=1000.0, doc="Range beyond which points only free the space before them."
    )
    hit: float = parameter(0.7, low=0.501, high=0.999, doc="Probability that the end of a beam is occupied.")
    miss: float = parameter(0.4, low=0.001, high=0.499, doc="Probability that a voxel that a beam passes is occupied.")
    min: float = parameter(0.12, low=0.001, high=0.499, doc="Smallest probability of a voxel.")
    max: float = parameter(0.97, low=0.501, high=0.999, doc="Largest probability of a voxel.")

    def validate(self) -> None:
        """Check the order of the ranges."""
        if not self.min_range < self.max_range:
            raise ConfigError(
                f"ranges {self.min_range} to {self.max_range} m", location="sensor_model", valid="ascending"
            )


class OctreeConfig(Config):
    """Of an `OctreeMap`."""

    resolution: float = parameter(0.05, unit="m", low=0.001, high=100.0, doc="Edge of the smallest voxel.")
    occupied: float = parameter(0.5, low=0.01, high=0.99, doc="Probability from which a voxel is occupied.")
    sensor_model: SensorModel = parameter(factory=SensorModel, doc="Evidence of a beam on voxels.")

    def validate(self) -> None:
        """Check that the threshold can be reached."""
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
