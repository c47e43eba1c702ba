"""Exploration of an unknown environment: frontiers, viewpoints, and the selection of the next one."""

from typing import TYPE_CHECKING

from roboyard.config.lazy import lazy_exports

if TYPE_CHECKING:
    from roboyard.navigation.exploration.explorer import (
        ExplorationPhase,
        ExplorationProgress,
        Explorer,
        FailedViewpoint,
        ViewpointSelectionConfig,
        ViewpointSelector,
        select_viewpoint,
    )
    from roboyard.navigation.exploration.frontiers import FrontierConfig, FrontierMap, Viewpoint, find_frontiers

__all__ = [
    "ExplorationPhase",
    "ExplorationProgress",
    "Explorer",
    "FailedViewpoint",
    "FrontierConfig",
    "FrontierMap",
    "Viewpoint",
    "ViewpointSelectionConfig",
    "ViewpointSelector",
    "find_frontiers",
    "select_viewpoint",
]

__getattr__, __dir__ = lazy_exports(__name__, {
        "explorer": ("ExplorationPhase", "ExplorationProgress", "Explorer", "FailedViewpoint",
        "ViewpointSelectionConfig", "ViewpointSelector", "select_viewpoint"),
        "frontiers": ("FrontierConfig", "FrontierMap", "Viewpoint", "find_frontiers"),
})  # fmt: skip
