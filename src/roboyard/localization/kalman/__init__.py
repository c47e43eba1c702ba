"""Kalman filters that fuse odometry, IMUs, poses and twists, with the model of robot_localization."""

from typing import TYPE_CHECKING

from roboyard.config.lazy import lazy_exports

if TYPE_CHECKING:
    from roboyard.localization.kalman.config import ControlConfig, FusionConfig
    from roboyard.localization.kalman.filters import Ekf, KalmanFilter, Ukf
    from roboyard.localization.kalman.fusion import FusedEstimate, Measurement, SensorFusion
    from roboyard.localization.kalman.measurement_sources import (
        MeasurementSource,
        SourceConfig,
        StationaryGyroBias,
        twist_at_base,
    )
    from roboyard.localization.kalman.process_model import STATE_NAMES, process_jacobian, propagate_state

__all__ = [
    "STATE_NAMES",
    "ControlConfig",
    "Ekf",
    "FusedEstimate",
    "FusionConfig",
    "KalmanFilter",
    "Measurement",
    "MeasurementSource",
    "SensorFusion",
    "SourceConfig",
    "StationaryGyroBias",
    "Ukf",
    "process_jacobian",
    "propagate_state",
    "twist_at_base",
]

__getattr__, __dir__ = lazy_exports(__name__, {
    "config": ("ControlConfig", "FusionConfig"),
    "filters": ("Ekf", "KalmanFilter", "Ukf"),
    "fusion": ("FusedEstimate", "Measurement", "SensorFusion"),
    "measurement_sources": ("MeasurementSource", "SourceConfig", "StationaryGyroBias", "twist_at_base"),
    "process_model": ("STATE_NAMES", "process_jacobian", "propagate_state"),
})  # fmt: skip
