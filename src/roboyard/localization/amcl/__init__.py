"""Adaptive Monte-Carlo localisation in an occupancy map, over arrays."""

from roboyard.localization.amcl.clusters import Cluster, clusters
from roboyard.localization.amcl.config import AmclConfig
from roboyard.localization.amcl.estimate import AmclEstimate
from roboyard.localization.amcl.filter import Amcl
from roboyard.localization.amcl.search import FreeSpace, Hypotheses, search
from roboyard.localization.amcl.sensing import SensorModel, sense

__all__ = [
    "Amcl",
    "AmclConfig",
    "AmclEstimate",
    "Cluster",
    "FreeSpace",
    "Hypotheses",
    "SensorModel",
    "clusters",
    "search",
    "sense",
]
