"""Where the robot is: odometry and its calibration; later filters and localisation in maps.

The nodes that connect these to topics are in ``roboyard.localization.nodes``.
"""

from roboyard.localization.calibration import SlipFit, fit_slip_factor, rolled_turn
from roboyard.localization.odometry import OdometryEstimate, OdometryNoise, WheelOdometry, arc, arc_jacobian

__all__ = [
    "OdometryEstimate",
    "OdometryNoise",
    "SlipFit",
    "WheelOdometry",
    "arc",
    "arc_jacobian",
    "fit_slip_factor",
    "rolled_turn",
]
