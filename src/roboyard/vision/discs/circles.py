"""Circles in space seen as ellipses: the two ways in which a circle can lie, and the ellipse that it is seen as.

Source: Q. Chen, H. Wu, T. Wada, "Camera calibration with two arbitrary coplanar circles", ECCV 2004.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from roboyard.errors import InputError
from roboyard.geometry.arrays import Array
from roboyard.vision.discs.conics import conic_axes, ellipse_conic


@dataclass(frozen=True, eq=False)
class Lie:
    """How a circle may lie in front of a camera.

    Attributes:
        centre: Of a circle of radius 1 (3,), in the optical frame.
        normal: Unit vector (3,) towards the camera's side.
    """

    centre: Array
    normal: Array


def circle_lies(cone: Array) -> tuple[Lie, Lie]:
    """The two circles of radius 1 that a cone of rays may come from.

    Args:
        cone: Symmetric (3, 3): rays d with d' cone d = 0 touch the circle; of either sign.

    Raises:
        InputError: it is no cone about the optical axis' side.
    """
    values, vectors = np.linalg.eigh(0.5 * (cone + cone.T))
    if values[1] < 0.0:
        values, vectors = -values[::-1], vectors[:, ::-1]
    small, middle, large = values
    if not (small < 0.0 < middle):
        raise InputError("these rays are no cone", valid="the cone through an ellipse")
    across = math.sqrt(max(large - middle, 0.0) / (large - small))
    along = math.sqrt((middle - small) / (large - small))
    size = middle / math.sqrt(-large * small)
    axis = vectors[:, 0] if vectors[2, 0] > 0.0 else -vectors[:, 0]
    side = vectors[:, 2]
    lies = []
    for sign in (1.0, -1.0):
        centre = size * (sign * (small / middle) * across * side + (large / middle) * along * axis)
        normal = sign * across * side + along * axis
        if centre @ normal > 0.0:
            normal = -normal
        lies.append(Lie(centre, normal))
    return lies[0], lies[1]


def cone_of(ellipse: Array) -> Array:
    """Cone (3, 3) of the rays through an ellipse (5,) in the plane at distance 1 before the camera."""
    return ellipse_conic(ellipse)


def circle_ellipse(centre: Array, normal: Array, radius: float) -> Array:
    """Ellipse (5,) in the plane at distance 1 as which a circle is seen.

    Args:
        centre: (3,) in the optical frame.
        normal: Unit vector (3,).
        radius: As ``centre``.

    Raises:
        InputError: it is not seen as an ellipse: the camera looks along it, or stands in it.
    """
    # A ray d meets the plane at d (n c) / (n d); its distance from the centre is the radius on the cone.
    reach = float(normal @ centre)
    outer = np.outer(normal, centre)
    Q = (
        reach**2 * np.eye(3)
        - reach * (outer + outer.T)
        + (float(centre @ centre) - radius**2) * np.outer(normal, normal)
    )
    out = np.zeros(5)
    if not conic_axes(Q[0, 0], 2.0 * Q[0, 1], Q[1, 1], 2.0 * Q[0, 2], 2.0 * Q[1, 2], Q[2, 2], out):
        raise InputError("the circle is not seen as an ellipse", valid="one that lies before the camera")
    return out
