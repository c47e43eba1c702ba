"""Paths in time: as fast as limits of velocity and acceleration allow, or of jerk from point to point."""

from roboyard.manipulation.timing.jerk import JerkLimited, jerk_limited
from roboyard.manipulation.timing.limits import JointLimits
from roboyard.manipulation.timing.trajectory import Path, Trajectory

__all__ = ["JerkLimited", "JointLimits", "Path", "Trajectory", "jerk_limited"]
