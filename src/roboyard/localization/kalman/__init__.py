"""Kalman filters that fuse odometry, inertial units and poses: robot_localization's model, over arrays."""

from typing import TYPE_CHECKING

from roboyard.config.lazy import lazy_exports

if TYPE_CHECKING:
    from roboyard.localization.kalman.config import ControlConfig, FusionConfig
    from roboyard.localization.kalman.filters import Ekf, KalmanFilter, Ukf
    from roboyard.localization.kalman.fusion import Fused, Fusion, Measurement
    from roboyard.localization.kalman.rest import RestBias
    from roboyard.localization.kalman.sources import Source, SourceConfig, twist_at_base
    from roboyard.localization.kalman.state import NAMES, jacobian, moved

__all__ = [
    "NAMES",
    "ControlConfig",
    "Ekf",
    "Fused",
    "Fusion",
    "FusionConfig",
    "KalmanFilter",
    "Measurement",
    "RestBias",
    "Source",
    "SourceConfig",
    "Ukf",
    "jacobian",
    "moved",
    "twist_at_base",
]

__getattr__, __dir__ = lazy_exports(__name__, {
    "config": ("ControlConfig", "FusionConfig"),
    "filters": ("Ekf", "KalmanFilter", "Ukf"),
    "fusion": ("Fused", "Fusion", "Measurement"),
    "rest": ("RestBias",),
    "sources": ("Source", "SourceConfig", "twist_at_base"),
    "state": ("NAMES", "jacobian", "moved"),
})  # fmt: skip
