"""Another origin and other axes for a surface."""

from __future__ import annotations

import numpy as np

from roboyard.description.mesh_tools.inertia import compute_mass_properties
from roboyard.description.mesh_tools.surface import Points, TriangleMesh
from roboyard.errors import InputError
from roboyard.geometry import SE3


def compute_origin_transform(
    mesh: TriangleMesh, origin: str | Points, rpy: tuple[float, float, float] = (0.0, 0.0, 0.0)
) -> SE3:
    """The pose that moves a surface so that ``origin`` becomes its origin, and then turns it.

    Args:
        mesh: In its old frame.
        origin: "com" (centre of mass of the closed body at uniform density), "base" (centre of the bottom of the
            bounding box), "centre" (of the bounding box), or a point (3,) in the old frame [m].
        rpy: Roll, pitch, yaw of the turn [rad].

    Raises:
        InputError: ``origin`` is none of these.
    """
    low, high = mesh.bounds
    if not isinstance(origin, str):
        point = np.asarray(origin, float)
        if point.shape != (3,) or not np.isfinite(point).all():
            raise InputError(f"an origin at {origin}", valid="three coordinates")
    elif origin == "com":
        point = compute_mass_properties(mesh, density=1.0).com
    elif origin == "centre":
        point = (low + high) / 2.0
    elif origin == "base":
        point = np.array([(low[0] + high[0]) / 2.0, (low[1] + high[1]) / 2.0, low[2]])
    else:
        raise InputError(f"an origin at {origin!r}", valid="com, base, centre, or x,y,z")
    return SE3.from_xyz_rpy((0.0, 0.0, 0.0), rpy) @ SE3(translation=-point)
