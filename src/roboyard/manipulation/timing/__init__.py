"""Paths in time: as fast as limits of velocity, acceleration and effort allow, of jerk, or as somebody else says."""

from typing import TYPE_CHECKING

from roboyard.config.lazy import lazy_exports

if TYPE_CHECKING:
    from roboyard.manipulation.timing.efforts import EffortError, EffortLimits
    from roboyard.manipulation.timing.given import GivenTimes, TooFastError
    from roboyard.manipulation.timing.jerk import JerkLimited, jerk_limited
    from roboyard.manipulation.timing.limits import JointLimits
    from roboyard.manipulation.timing.trajectory import Path, Trajectory

__all__ = [
    "EffortError", "EffortLimits", "GivenTimes", "JerkLimited", "JointLimits", "Path", "TooFastError", "Trajectory",
    "jerk_limited",
]  # fmt: skip

__getattr__, __dir__ = lazy_exports(__name__, {
    "efforts": ("EffortError", "EffortLimits"),
    "given": ("GivenTimes", "TooFastError"),
    "jerk": ("JerkLimited", "jerk_limited"),
    "limits": ("JointLimits",),
    "trajectory": ("Path", "Trajectory"),
})  # fmt: skip
