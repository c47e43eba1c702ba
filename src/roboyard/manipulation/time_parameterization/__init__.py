"""Time parameterization of joint paths: time-optimal within velocity, acceleration and effort limits, jerk-limited, or
with given times.
"""

from typing import TYPE_CHECKING

from roboyard.config.lazy import lazy_exports

if TYPE_CHECKING:
    from roboyard.manipulation.time_parameterization.jerk_limited import JerkLimitedTrajectory, make_jerk_limited
    from roboyard.manipulation.time_parameterization.parameterization import TimeParameterization
    from roboyard.manipulation.time_parameterization.time_optimal import (
        EffortLimits,
        JointLimits,
        JointPath,
        TimeOptimalTrajectory,
    )
    from roboyard.manipulation.time_parameterization.timed_waypoints import TimedWaypointTrajectory

__all__ = [
    "EffortLimits",
    "JerkLimitedTrajectory",
    "JointLimits",
    "JointPath",
    "TimeOptimalTrajectory",
    "TimeParameterization",
    "TimedWaypointTrajectory",
    "make_jerk_limited",
]

__getattr__, __dir__ = lazy_exports(__name__, {
    "jerk_limited": ("JerkLimitedTrajectory", "make_jerk_limited"),
    "parameterization": ("TimeParameterization",),
    "time_optimal": ("EffortLimits", "JointLimits", "JointPath", "TimeOptimalTrajectory"),
    "timed_waypoints": ("TimedWaypointTrajectory",),
})  # fmt: skip
