"""Localization: localization in a map, sensor fusion with Kalman filters, wheel odometry and its calibration.

The names that most users need: `localize`, `Amcl`, `AmclConfig`, `SensorFusion`, `FusionConfig`, `Measurement`,
`WheelOdometry`, `fit_drive`, `fit_slip_factor`, `LocalizationResult`.

    result = ry.localization.localize("robot.bag", "map.yaml")

Adaptive Monte Carlo localization is in ``roboyard.localization.amcl``, the Kalman filters are in
``roboyard.localization.kalman``, and the nodes that connect both to topics are in ``roboyard.localization.nodes``.
"""

from typing import TYPE_CHECKING

from roboyard.config.lazy import lazy_exports

if TYPE_CHECKING:
    from roboyard.localization.amcl import Amcl, AmclConfig
    from roboyard.localization.drive_calibration import (
        DriveFit,
        ParameterEstimate,
        SlipFactorFit,
        compute_no_slip_rotations,
        fit_drive,
        fit_slip_factor,
    )
    from roboyard.localization.kalman import FusionConfig, Measurement, SensorFusion
    from roboyard.localization.nodes.log_localization import LocalizationResult, localize
    from roboyard.localization.odometry_faults import FaultyEncoders, OdometryErrorModel, simulate_faulty_readings
    from roboyard.localization.wheel_odometry import (
        AckermannJointCounts,
        AckermannOdometry,
        DifferentialOdometry,
        DisplacementOdometry,
        DriveOdometry,
        MecanumOdometry,
        OdometryEstimate,
        OdometryNoise,
        PlanarOdometry,
        WheelOdometry,
        compute_arc_displacement,
        compute_arc_jacobian,
    )

# The names that most users need come first.
__all__ = [  # noqa: RUF022
    "localize",
    "Amcl",
    "AmclConfig",
    "SensorFusion",
    "FusionConfig",
    "Measurement",
    "WheelOdometry",
    "fit_drive",
    "fit_slip_factor",
    "LocalizationResult",
    "AckermannJointCounts",
    "AckermannOdometry",
    "DifferentialOdometry",
    "DisplacementOdometry",
    "DriveFit",
    "DriveOdometry",
    "FaultyEncoders",
    "MecanumOdometry",
    "OdometryErrorModel",
    "OdometryEstimate",
    "OdometryNoise",
    "ParameterEstimate",
    "PlanarOdometry",
    "SlipFactorFit",
    "compute_arc_displacement",
    "compute_arc_jacobian",
    "compute_no_slip_rotations",
    "simulate_faulty_readings",
]

__getattr__, __dir__ = lazy_exports(__name__, {
    "amcl": ("Amcl", "AmclConfig"),
    "drive_calibration": ("DriveFit", "ParameterEstimate", "SlipFactorFit", "compute_no_slip_rotations", "fit_drive",
        "fit_slip_factor"),
    "kalman": ("FusionConfig", "Measurement", "SensorFusion"),
    "nodes.log_localization": ("LocalizationResult", "localize"),
    "odometry_faults": ("FaultyEncoders", "OdometryErrorModel", "simulate_faulty_readings"),
    "wheel_odometry": ("AckermannJointCounts", "AckermannOdometry", "DifferentialOdometry", "DisplacementOdometry",
        "DriveOdometry", "MecanumOdometry", "OdometryEstimate", "OdometryNoise", "PlanarOdometry", "WheelOdometry",
        "compute_arc_displacement", "compute_arc_jacobian"),
})  # fmt: skip
