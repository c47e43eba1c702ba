"""Simulator plugins of descriptions, mapped onto our nodes."""

from roboyard.scenarios.plugins.mapping import map_plugins
from roboyard.scenarios.plugins.names import canonical
from roboyard.scenarios.plugins.part import Part

__all__ = ["Part", "canonical", "map_plugins"]
