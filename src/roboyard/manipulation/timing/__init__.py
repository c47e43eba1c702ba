"""Paths in time: as fast as limits of velocity, acceleration and effort allow, or of jerk from point to point."""

from roboyard.manipulation.timing.efforts import EffortError, EffortLimits
from roboyard.manipulation.timing.jerk import JerkLimited, jerk_limited
from roboyard.manipulation.timing.limits import JointLimits
from roboyard.manipulation.timing.trajectory import Path, Trajectory

__all__ = ["EffortError", "EffortLimits", "JerkLimited", "JointLimits", "Path", "Trajectory", "jerk_limited"]
