"""From wanted motions to joint set-points: wheel kinematics, ramps, forward kinematics.

The nodes that connect these to topics and hardware are in ``roboyard.control.nodes``.
"""

from roboyard.control.forward import ForwardKinematics, JointMotion, fixed_transforms
from roboyard.control.kinematics import (
    STANDSTILL,
    DifferentialDrive,
    PlanarTwist,
    WheelKinematics,
    slow_to_wheel_limit,
)
from roboyard.control.ramps import Ramp, RampLimits, RampState, next_velocity
from roboyard.control.throttle import Throttle

__all__ = [
    "STANDSTILL",
    "DifferentialDrive",
    "ForwardKinematics",
    "JointMotion",
    "PlanarTwist",
    "Ramp",
    "RampLimits",
    "RampState",
    "Throttle",
    "WheelKinematics",
    "fixed_transforms",
    "next_velocity",
    "slow_to_wheel_limit",
]
