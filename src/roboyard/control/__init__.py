"""From wanted motions to joint set-points: wheel kinematics, ramps, forward kinematics.

The nodes that connect these to topics and hardware are in ``roboyard.control.nodes``.
"""

from roboyard.control.kinematics import (
    STANDSTILL,
    DifferentialDrive,
    PlanarTwist,
    WheelKinematics,
    slow_to_wheel_limit,
)
from roboyard.control.ramps import Ramp, RampLimits, RampState, next_velocity

__all__ = [
    "STANDSTILL",
    "DifferentialDrive",
    "PlanarTwist",
    "Ramp",
    "RampLimits",
    "RampState",
    "WheelKinematics",
    "next_velocity",
    "slow_to_wheel_limit",
]
