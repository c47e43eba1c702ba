"""Kalman filters that fuse odometry, inertial units and poses: robot_localization's model, over arrays."""

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
