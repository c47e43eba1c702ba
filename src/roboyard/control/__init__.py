"""From desired motions to joint set-points: wheel kinematics, velocity ramps, joint motion, trajectories, grippers.

The nodes that connect these to topics and hardware are in `roboyard.control.nodes`.
"""

from typing import TYPE_CHECKING

from roboyard.config.lazy import lazy_exports

if TYPE_CHECKING:
    from roboyard.control.joint_limits import JointAccelerationLimits, JointGroupLimits
    from roboyard.control.joint_motion import JointMotionGenerator, JointMotionState, PointToPointLimits
    from roboyard.control.trajectory import JointSample, SampledMotion, Trajectory, TrajectoryPoint
    from roboyard.control.velocity_ramps import PlanarRampLimits, Ramp, RampLimits, RampState, step_velocity
    from roboyard.control.wheel_kinematics import (
        ZERO_TWIST,
        AckermannDrive,
        DifferentialDrive,
        MecanumDrive,
        PlanarTwist,
        WheelKinematics,
        scale_to_wheel_limit,
    )

__all__ = [
    "ZERO_TWIST",
    "AckermannDrive",
    "DifferentialDrive",
    "JointAccelerationLimits",
    "JointGroupLimits",
    "JointMotionGenerator",
    "JointMotionState",
    "JointSample",
    "MecanumDrive",
    "PlanarRampLimits",
    "PlanarTwist",
    "PointToPointLimits",
    "Ramp",
    "RampLimits",
    "RampState",
    "SampledMotion",
    "Trajectory",
    "TrajectoryPoint",
    "WheelKinematics",
    "scale_to_wheel_limit",
    "step_velocity",
]

__getattr__, __dir__ = lazy_exports(
    __name__,
    {
        "joint_limits": ("JointAccelerationLimits", "JointGroupLimits"),
        "joint_motion": ("JointMotionGenerator", "JointMotionState", "PointToPointLimits"),
        "trajectory": ("JointSample", "SampledMotion", "Trajectory", "TrajectoryPoint"),
        "velocity_ramps": ("PlanarRampLimits", "Ramp", "RampLimits", "RampState", "step_velocity"),
        "wheel_kinematics": (
            "ZERO_TWIST",
            "AckermannDrive",
            "DifferentialDrive",
            "MecanumDrive",
            "PlanarTwist",
            "WheelKinematics",
            "scale_to_wheel_limit",
        ),
    },
)
