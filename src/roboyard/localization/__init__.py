"""Localization: wheel odometry and its calibration, sensor fusion, and localization in a map.

Adaptive Monte Carlo localization is in ``roboyard.localization.amcl``, the Kalman filters are in
``roboyard.localization.kalman``, and the nodes that connect both to topics are in ``roboyard.localization.nodes``.
"""

from typing import TYPE_CHECKING

from roboyard.config.lazy import lazy_exports

if TYPE_CHECKING:
    from roboyard.localization.drive_calibration import (
        DriveFit,
        ParameterEstimate,
        SlipFactorFit,
        compute_no_slip_rotations,
        fit_drive,
        fit_slip_factor,
    )
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

__all__ = [
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
    "WheelOdometry",
    "compute_arc_displacement",
    "compute_arc_jacobian",
    "compute_no_slip_rotations",
    "fit_drive",
    "fit_slip_factor",
    "simulate_faulty_readings",
]

__getattr__, __dir__ = lazy_exports(__name__, {
    "drive_calibration": ("DriveFit", "ParameterEstimate", "SlipFactorFit", "compute_no_slip_rotations", "fit_drive",
        "fit_slip_factor"),
    "odometry_faults": ("FaultyEncoders", "OdometryErrorModel", "simulate_faulty_readings"),
    "wheel_odometry": ("AckermannJointCounts", "AckermannOdometry", "DifferentialOdometry", "DisplacementOdometry",
        "DriveOdometry", "MecanumOdometry", "OdometryEstimate", "OdometryNoise", "PlanarOdometry", "WheelOdometry",
        "compute_arc_displacement", "compute_arc_jacobian"),
})  # fmt: skip
