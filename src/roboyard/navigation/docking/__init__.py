"""Docking at a pose, nose or tail first, and leaving it again."""

from roboyard.navigation.docking.docking import Docking, DockingConfig, staging_pose
from roboyard.navigation.docking.graceful import curvature, lines_of_sight

__all__ = ["Docking", "DockingConfig", "curvature", "lines_of_sight", "staging_pose"]
