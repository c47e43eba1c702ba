"""Where things are put."""

from __future__ import annotations

from collections.abc import Sequence

from roboyard.description import Model
from roboyard.description.extent import min_height
from roboyard.errors import InputError
from roboyard.geometry import SE2, SE3

Place = Sequence[float] | SE2 | SE3
"""(x, y, yaw) or ``SE2``: standing on the ground; (x, y, z, roll, pitch, yaw) or ``SE3``: as it is [m, rad]."""


def place(at: Place, model: Model) -> SE3:
    """T_world_model; a pose in the plane stands the model on the ground at height 0.

    Raises:
        InputError: neither three nor six numbers.
    """
    if isinstance(at, SE3):
        return at
    if isinstance(at, SE2):
        return at.to_se3(-min_height(model))
    if len(at) == 3:
        x, y, yaw = at
        return SE3.from_xyz_rpy((x, y, -min_height(model)), (0.0, 0.0, yaw))
    if len(at) == 6:
        x, y, z, *angles = at
        return SE3.from_xyz_rpy((x, y, z), (angles[0], angles[1], angles[2]))
    raise InputError(f"a pose of {len(at)} numbers", valid="(x, y, yaw) or (x, y, z, roll, pitch, yaw)")
