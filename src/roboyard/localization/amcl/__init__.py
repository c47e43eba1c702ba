"""Adaptive Monte Carlo localization (AMCL) in an occupancy map, with the parameters of Nav2's amcl."""

from typing import TYPE_CHECKING

from roboyard.config.lazy import lazy_exports

if TYPE_CHECKING:
    from roboyard.localization.amcl.config import AmclConfig
    from roboyard.localization.amcl.laser_model import LaserModel, ScanMeasurement, make_laser_model, prepare_scan
    from roboyard.localization.amcl.motion_models import OdometryMotionModel, make_motion_model
    from roboyard.localization.amcl.particle_filter import Amcl
    from roboyard.localization.amcl.particles import ParticleCluster, cluster_particles
    from roboyard.localization.amcl.pose_refinement import AmclEstimate, FreeSpace, PoseHypotheses, search_poses

__all__ = [
    "Amcl",
    "AmclConfig",
    "AmclEstimate",
    "FreeSpace",
    "LaserModel",
    "OdometryMotionModel",
    "ParticleCluster",
    "PoseHypotheses",
    "ScanMeasurement",
    "cluster_particles",
    "make_laser_model",
    "make_motion_model",
    "prepare_scan",
    "search_poses",
]

__getattr__, __dir__ = lazy_exports(__name__, {
    "config": ("AmclConfig",),
    "laser_model": ("LaserModel", "ScanMeasurement", "make_laser_model", "prepare_scan"),
    "motion_models": ("OdometryMotionModel", "make_motion_model"),
    "particle_filter": ("Amcl",),
    "particles": ("ParticleCluster", "cluster_particles"),
    "pose_refinement": ("AmclEstimate", "FreeSpace", "PoseHypotheses", "search_poses"),
})  # fmt: skip
