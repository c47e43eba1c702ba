"""Scan matching: a search of a whole window that misses nothing, and a continuous refinement."""

from roboyard.mapping.matching.cells import CellMap
from roboyard.mapping.matching.correlative import Found, Tables, Window, search
from roboyard.mapping.matching.refine import Match, RefineConfig, covariance, refine

__all__ = ["CellMap", "Found", "Match", "RefineConfig", "Tables", "Window", "covariance", "refine", "search"]
