"""Collaborative operation of arms beside people: speed and separation monitoring, power and force limiting, hand
guiding.

Distances are those between capsules around the robot's links and capsules around parts of bodies.
"""

from typing import TYPE_CHECKING

from roboyard.config.lazy import lazy_exports

if TYPE_CHECKING:
    from roboyard.safety.collaborative.capsule_distance import CapsuleDistances, compute_capsule_distances
    from roboyard.safety.collaborative.capsules import LinkCapsules, OccupiedCells, PersonCapsules, UprightCapsules
    from roboyard.safety.collaborative.contact_limits import ContactLimits, max_contact_speeds, region_limits
    from roboyard.safety.collaborative.depth_detector import DepthDetectionConfig, DepthPeopleDetector
    from roboyard.safety.collaborative.hand_guiding import AdmittanceConfig, AdmittanceController
    from roboyard.safety.collaborative.monitor import (
        CollaborativeMode,
        CollaborativeSafetyConfig,
        CollaborativeSafetyMonitor,
        PlannedMotion,
        SpeedScalingDecision,
        SpeedScalingWatchdog,
    )
    from roboyard.safety.collaborative.people_tracker import (
        BackgroundModel,
        PeopleTracker,
        PersonTrack,
        PersonTrackingConfig,
    )
    from roboyard.safety.collaborative.separation import (
        SeparationParameters,
        SeparationStatus,
        max_speed_scaling,
        protective_distance,
    )

__all__ = [
    "AdmittanceConfig",
    "AdmittanceController",
    "BackgroundModel",
    "CapsuleDistances",
    "CollaborativeMode",
    "CollaborativeSafetyConfig",
    "CollaborativeSafetyMonitor",
    "ContactLimits",
    "DepthDetectionConfig",
    "DepthPeopleDetector",
    "LinkCapsules",
    "OccupiedCells",
    "PeopleTracker",
    "PersonCapsules",
    "PersonTrack",
    "PersonTrackingConfig",
    "PlannedMotion",
    "SeparationParameters",
    "SeparationStatus",
    "SpeedScalingDecision",
    "SpeedScalingWatchdog",
    "UprightCapsules",
    "compute_capsule_distances",
    "max_contact_speeds",
    "max_speed_scaling",
    "protective_distance",
    "region_limits",
]

__getattr__, __dir__ = lazy_exports(
    __name__,
    {
        "capsule_distance": ("CapsuleDistances", "compute_capsule_distances"),
        "capsules": ("LinkCapsules", "OccupiedCells", "PersonCapsules", "UprightCapsules"),
        "contact_limits": ("ContactLimits", "max_contact_speeds", "region_limits"),
        "depth_detector": ("DepthDetectionConfig", "DepthPeopleDetector"),
        "hand_guiding": ("AdmittanceConfig", "AdmittanceController"),
        "monitor": (
            "CollaborativeMode",
            "CollaborativeSafetyConfig",
            "CollaborativeSafetyMonitor",
            "PlannedMotion",
            "SpeedScalingDecision",
            "SpeedScalingWatchdog",
        ),
        "people_tracker": ("BackgroundModel", "PeopleTracker", "PersonTrack", "PersonTrackingConfig"),
        "separation": ("SeparationParameters", "SeparationStatus", "max_speed_scaling", "protective_distance"),
    },
)
