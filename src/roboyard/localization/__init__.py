"""Where the robot is: odometry; later filters and localisation in maps.

The nodes that connect these to topics are in ``roboyard.localization.nodes``.
"""

from roboyard.localization.odometry import OdometryEstimate, OdometryNoise, WheelOdometry, arc, arc_jacobian

__all__ = ["OdometryEstimate", "OdometryNoise", "WheelOdometry", "arc", "arc_jacobian"]
