"""Where the robot is: odometry and its calibration; later filters and localisation in maps.

The nodes that connect these to topics are in ``roboyard.localization.nodes``.
"""

from roboyard.localization.calibration import SlipFit, fit_slip_factor, rolled_turn
from roboyard.localization.drive_fit import DriveFit, Estimate, fit_drive
from roboyard.localization.odometry import OdometryEstimate, OdometryNoise, WheelOdometry, arc, arc_jacobian
from roboyard.localization.planar import PlanarOdometry, screw

__all__ = [
    "DriveFit",
    "Estimate",
    "OdometryEstimate",
    "OdometryNoise",
    "PlanarOdometry",
    "SlipFit",
    "WheelOdometry",
    "arc",
    "arc_jacobian",
    "fit_drive",
    "fit_slip_factor",
    "rolled_turn",
    "screw",
]
