"""Scan matching: a search of a whole window that misses nothing, and a continuous refinement."""

from typing import TYPE_CHECKING

from roboyard.config.lazy import lazy_exports

if TYPE_CHECKING:
    from roboyard.mapping.matching.cells import CellMap
    from roboyard.mapping.matching.correlative import Found, Tables, Window, search
    from roboyard.mapping.matching.refine import Match, RefineConfig, covariance, refine

__all__ = ["CellMap", "Found", "Match", "RefineConfig", "Tables", "Window", "covariance", "refine", "search"]

__getattr__, __dir__ = lazy_exports(__name__, {
    "cells": ("CellMap",),
    "correlative": ("Found", "Tables", "Window", "search"),
    "refine": ("Match", "RefineConfig", "covariance", "refine"),
})  # fmt: skip
