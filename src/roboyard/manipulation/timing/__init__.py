"""Paths in time: as fast as limits of velocity, acceleration and effort allow, of jerk, or as somebody else says."""

from roboyard.manipulation.timing.efforts import EffortError, EffortLimits
from roboyard.manipulation.timing.given import GivenTimes, TooFastError
from roboyard.manipulation.timing.jerk import JerkLimited, jerk_limited
from roboyard.manipulation.timing.limits import JointLimits
from roboyard.manipulation.timing.trajectory import Path, Trajectory

__all__ = [
    "EffortError", "EffortLimits", "GivenTimes", "JerkLimited", "JointLimits", "Path", "TooFastError", "Trajectory",
    "jerk_limited",
]  # fmt: skip
