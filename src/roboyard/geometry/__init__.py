"""Rigid motions, rotations, polygons and camera models: immutable values in SI units.

``T_a_b`` maps coordinates of frame b to frame a; quaternions are w, x, y, z; x forward, y left, z up.
"""

from typing import TYPE_CHECKING

from roboyard.config.lazy import lazy_exports

if TYPE_CHECKING:
    from roboyard.geometry import polygons, quaternions
    from roboyard.geometry.camera_model import CameraModel
    from roboyard.geometry.se2 import SE2, angle_between, wrap_angle
    from roboyard.geometry.se3 import SE3

__all__ = [
    "SE2",
    "SE3",
    "CameraModel",
    "angle_between",
    "polygons",
    "quaternions",
    "wrap_angle",
]

__getattr__, __dir__ = lazy_exports(__name__, {
    "camera_model": ("CameraModel",),
    "se2": ("SE2", "angle_between", "wrap_angle"),
    "se3": ("SE3",),
}, submodules=("polygons", "quaternions"))  # fmt: skip
