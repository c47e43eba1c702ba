"""Poses, rotations and polygons: pure numpy, the ground every other room stands on."""

from roboyard.geometry import quaternions
from roboyard.geometry.se2 import SE2, wrap_angle
from roboyard.geometry.se3 import SE3

__all__ = ["SE2", "SE3", "quaternions", "wrap_angle"]
