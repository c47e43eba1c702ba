"""Collision checking: planning scenes, conservative collision kernels, and exact checks with coal.

A `roboyard.manipulation.PlanningScene` holds the robot and its obstacles. The kernels never call a colliding state
collision-free.
"""

from typing import TYPE_CHECKING

from roboyard.config.lazy import lazy_exports

if TYPE_CHECKING:
    from roboyard.manipulation.collision.coal_checker import CoalChecker, RecheckResult, recheck_motion
    from roboyard.manipulation.collision.obstacles import (
        AttachedBody,
        Obstacle,
        VoxelObstacles,
        obstacles_from_world,
        voxels_from_cloud,
    )

__all__ = [
    "AttachedBody",
    "CoalChecker",
    "Obstacle",
    "RecheckResult",
    "VoxelObstacles",
    "obstacles_from_world",
    "recheck_motion",
    "voxels_from_cloud",
]

__getattr__, __dir__ = lazy_exports(__name__, {
    "coal_checker": ("CoalChecker", "RecheckResult", "recheck_motion"),
    "obstacles": ("AttachedBody", "Obstacle", "VoxelObstacles", "obstacles_from_world",
        "voxels_from_cloud"),
})  # fmt: skip
