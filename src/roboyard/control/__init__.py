"""From desired motions to joint set-points: wheel kinematics, ramps, trajectories.

The nodes that connect these to topics and hardware are in ``roboyard.control.nodes``.
"""

from typing import TYPE_CHECKING

from roboyard.config.lazy import lazy_exports

if TYPE_CHECKING:
    from roboyard.control.ackermann import AckermannDrive
    from roboyard.control.kinematics import (
        STANDSTILL,
        DifferentialDrive,
        PlanarTwist,
        WheelKinematics,
        slow_to_wheel_limit,
    )
    from roboyard.control.limits import JointBounds, JointRates
    from roboyard.control.mecanum import MecanumDrive
    from roboyard.control.moves import JointMoves
    from roboyard.control.planar_ramps import PlanarLimits
    from roboyard.control.ramps import Ramp, RampLimits, RampState, next_velocity
    from roboyard.control.reaching import Reach, ReachLimits
    from roboyard.control.throttle import Throttle
    from roboyard.control.trajectories import JointSample, Trajectory, WayPoint

__all__ = [
    "STANDSTILL",
    "AckermannDrive",
    "DifferentialDrive",
    "JointBounds",
    "JointMoves",
    "JointRates",
    "JointSample",
    "MecanumDrive",
    "PlanarLimits",
    "PlanarTwist",
    "Ramp",
    "RampLimits",
    "RampState",
    "Reach",
    "ReachLimits",
    "Throttle",
    "Trajectory",
    "WayPoint",
    "WheelKinematics",
    "next_velocity",
    "slow_to_wheel_limit",
]

__getattr__, __dir__ = lazy_exports(__name__, {
    "ackermann": ("AckermannDrive",),
    "kinematics": ("STANDSTILL", "DifferentialDrive", "PlanarTwist", "WheelKinematics", "slow_to_wheel_limit"),
    "limits": ("JointBounds", "JointRates"),
    "mecanum": ("MecanumDrive",),
    "moves": ("JointMoves",),
    "planar_ramps": ("PlanarLimits",),
    "ramps": ("Ramp", "RampLimits", "RampState", "next_velocity"),
    "reaching": ("Reach", "ReachLimits"),
    "throttle": ("Throttle",),
    "trajectories": ("JointSample", "Trajectory", "WayPoint"),
})  # fmt: skip
