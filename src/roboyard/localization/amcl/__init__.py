"""Adaptive Monte-Carlo localisation in an occupancy map, over arrays."""

from typing import TYPE_CHECKING

from roboyard.config.lazy import lazy_exports

if TYPE_CHECKING:
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

__getattr__, __dir__ = lazy_exports(__name__, {
    "clusters": ("Cluster", "clusters"),
    "config": ("AmclConfig",),
    "estimate": ("AmclEstimate",),
    "filter": ("Amcl",),
    "search": ("FreeSpace", "Hypotheses", "search"),
    "sensing": ("SensorModel", "sense"),
})  # fmt: skip
