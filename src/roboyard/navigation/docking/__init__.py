"""Docking at a pose, nose or tail first, and leaving it again."""

from typing import TYPE_CHECKING

from roboyard.config.lazy import lazy_exports

if TYPE_CHECKING:
    from roboyard.navigation.docking.docking import Docking, DockingConfig, staging_pose
    from roboyard.navigation.docking.graceful import curvature, lines_of_sight

__all__ = ["Docking", "DockingConfig", "curvature", "lines_of_sight", "staging_pose"]

__getattr__, __dir__ = lazy_exports(__name__, {
    "docking": ("Docking", "DockingConfig", "staging_pose"),
    "graceful": ("curvature", "lines_of_sight"),
})  # fmt: skip
