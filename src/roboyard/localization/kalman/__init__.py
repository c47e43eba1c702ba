"""Kalman filters that fuse odometry, IMUs, poses and twists, with the model of robot_localization."""

from typing import TYPE_CHECKING

from roboyard.config.lazy import lazy_exports

if TYPE_CHECKING:
    from roboyard.localization.kalman.config import (
        ControlConfig,
        FusionConfig,
        ImuSourceConfig,
        OdometrySourceConfig,
        PoseSourceConfig,
        SourceConfig,
        TwistSourceConfig,
    )
    from roboyard.localization.kalman.filters import STATE_ESTIMATORS, Ekf, KalmanFilter, StateEstimator, Ukf
    from roboyard.localization.kalman.fusion import FusedEstimate, Measurement, SensorFusion
    from roboyard.localization.kalman.measurement_sources import (
        MeasurementSource,
        StationaryGyroBias,
        twist_at_base,
    )
    from roboyard.localization.kalman.process_model import STATE_NAMES, process_jacobian, propagate_state

__all__ = [
    "STATE_ESTIMATORS",
    "STATE_NAMES",
    "ControlConfig",
    "Ekf",
    "FusedEstimate",
    "FusionConfig",
    "ImuSourceConfig",
    "KalmanFilter",
    "Measurement",
    "MeasurementSource",
    "OdometrySourceConfig",
    "PoseSourceConfig",
    "SensorFusion",
    "SourceConfig",
    "StateEstimator",
    "StationaryGyroBias",
    "TwistSourceConfig",
    "Ukf",
    "process_jacobian",
    "propagate_state",
    "twist_at_base",
]

__getattr__, __dir__ = lazy_exports(__name__, {
    "config": ("ControlConfig", "FusionConfig", "ImuSourceConfig", "OdometrySourceConfig", "PoseSourceConfig",
        "SourceConfig", "TwistSourceConfig"),
    "filters": ("STATE_ESTIMATORS", "Ekf", "KalmanFilter", "StateEstimator", "Ukf"),
    "fusion": ("FusedEstimate", "Measurement", "SensorFusion"),
    "measurement_sources": ("MeasurementSource", "StationaryGyroBias", "twist_at_base"),
    "process_model": ("STATE_NAMES", "process_jacobian", "propagate_state"),
})  # fmt: skip
