"""Collision checking: kernels that never call a touching state free, and coal for a second, exact look.

A `PlanningScene` asks them; what stands in it are the shapes of ``obstacles``.
"""

from typing import TYPE_CHECKING

from roboyard.config.lazy import lazy_exports

if TYPE_CHECKING:
    from roboyard.manipulation.collision.exact import ExactChecker
    from roboyard.manipulation.collision.obstacles import (
        Attached,
        Obstacle,
        Voxels,
        box_obstacle,
        obstacles_of,
        voxels_of_cloud,
    )

__all__ = ["Attached", "ExactChecker", "Obstacle", "Voxels", "box_obstacle", "obstacles_of", "voxels_of_cloud"]

__getattr__, __dir__ = lazy_exports(__name__, {
    "exact": ("ExactChecker",),
    "obstacles": ("Attached", "Obstacle", "Voxels", "box_obstacle", "obstacles_of", "voxels_of_cloud"),
})  # fmt: skip
