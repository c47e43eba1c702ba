"""Where the robot is: odometry and its calibration, filters that fuse it, localisation in maps.

Monte-Carlo localisation is in ``roboyard.localization.amcl``, Kalman filters are in ``roboyard.localization.kalman``.

The nodes that connect these to topics are in ``roboyard.localization.nodes``.
"""

from typing import TYPE_CHECKING

from roboyard.config.lazy import lazy_exports

if TYPE_CHECKING:
    from roboyard.localization.calibration import SlipFit, fit_slip_factor, rolled_turn
    from roboyard.localization.drive_fit import DriveFit, Estimate, fit_drive
    from roboyard.localization.odometry import OdometryEstimate, OdometryNoise, WheelOdometry, arc, arc_jacobian
    from roboyard.localization.odometry_errors import FaultyWheels, OdometryErrors, faulty_readings
    from roboyard.localization.planar import PlanarOdometry, screw

__all__ = [
    "DriveFit",
    "Estimate",
    "FaultyWheels",
    "OdometryErrors",
    "OdometryEstimate",
    "OdometryNoise",
    "PlanarOdometry",
    "SlipFit",
    "WheelOdometry",
    "arc",
    "arc_jacobian",
    "faulty_readings",
    "fit_drive",
    "fit_slip_factor",
    "rolled_turn",
    "screw",
]

__getattr__, __dir__ = lazy_exports(__name__, {
    "calibration": ("SlipFit", "fit_slip_factor", "rolled_turn"),
    "drive_fit": ("DriveFit", "Estimate", "fit_drive"),
    "odometry": ("OdometryEstimate", "OdometryNoise", "WheelOdometry", "arc", "arc_jacobian"),
    "odometry_errors": ("FaultyWheels", "OdometryErrors", "faulty_readings"),
    "planar": ("PlanarOdometry", "screw"),
})  # fmt: skip
