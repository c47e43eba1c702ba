"""Another origin and other axes for a surface."""

from __future__ import annotations

import numpy as np

from roboyard.description.mesh_tools.inertia import mass_properties
from roboyard.description.mesh_tools.surface import Points, Surface
from roboyard.errors import InputError
from roboyard.geometry import SE3


def T_new_old(surface: Surface, at: str | Points, rpy: tuple[float, float, float] = (0.0, 0.0, 0.0)) -> SE3:
    """The pose that moves a surface so that ``at`` becomes its origin, and then turns it.

    Args:
        surface: In its old frame.
        at: "com" (centre of mass of the closed body, filled evenly), "base" (below the middle, where it would stand),
            "centre" (of the bounding box), or a point (3,) in the old frame [m].
        rpy: Roll, pitch, yaw of the turn [rad].

    Raises:
        InputError: ``at`` is none of these.
    """
    low, high = surface.bounds
    if not isinstance(at, str):
        point = np.asarray(at, float)
        if point.shape != (3,) or not np.isfinite(point).all():
            raise InputError(f"an origin at {at}", valid="three coordinates")
    elif at == "com":
        point = mass_properties(surface, density=1.0).centre
    elif at == "centre":
        point = (low + high) / 2.0
    elif at == "base":
        point = np.array([(low[0] + high[0]) / 2.0, (low[1] + high[1]) / 2.0, low[2]])
    else:
        raise InputError(f"an origin at {at!r}", valid="com, base, centre, or x,y,z")
    return SE3.from_xyz_rpy((0.0, 0.0, 0.0), rpy) @ SE3(translation=-point)
