"""Rigid motions, rotations, polygons and lenses: pure numpy, immutable, SI units.

``T_a_b`` maps coordinates of frame b to frame a; quaternions are w, x, y, z; x forward, y left, z up.
"""

from typing import TYPE_CHECKING

from roboyard.config.lazy import lazy_exports

if TYPE_CHECKING:
    from roboyard.geometry import clipping, polygons, quaternions, segments
    from roboyard.geometry.angles import angle_between, wrap_angle
    from roboyard.geometry.lens import CameraModel
    from roboyard.geometry.se2 import SE2
    from roboyard.geometry.se3 import SE3

__all__ = [
    "SE2",
    "SE3",
    "CameraModel",
    "angle_between",
    "clipping",
    "polygons",
    "quaternions",
    "segments",
    "wrap_angle",
]

__getattr__, __dir__ = lazy_exports(__name__, {
    "angles": ("angle_between", "wrap_angle"),
    "lens": ("CameraModel",),
    "se2": ("SE2",),
    "se3": ("SE3",),
}, submodules=("clipping", "polygons", "quaternions", "segments"))  # fmt: skip
