"""What can be put in the place of an inertia or a shape that cannot be: from the link's other shapes, or its mass."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from roboyard.description.inertia import is_finite, of_collisions
from roboyard.description.model import Box, Collision, Inertial, Link, Mesh
from roboyard.description.reading import Reading
from roboyard.description.xml import Node
from roboyard.geometry import SE3

Moments = tuple[float, float, float, float, float, float]
DENSITY = 1000.0
"""Of a body of which nothing is said [kg/m³]."""
_LARGEST = 5.0  # edge of a box that an inertia may imply [m]


def matrix_of(moments: Moments) -> NDArray[np.float64]:
    """(3, 3) of ixx, iyy, izz, ixy, ixz, iyz."""
    ixx, iyy, izz, ixy, ixz, iyz = moments
    return np.array([[ixx, ixy, ixz], [ixy, iyy, iyz], [ixz, iyz, izz]])


def moments_of(matrix: NDArray[np.float64]) -> Moments:
    """Ixx, iyy, izz, ixy, ixz, iyz of a (3, 3)."""
    xx, yy, zz, xy, xz, yz = (float(matrix[i, j]) for i, j in ((0, 0), (1, 1), (2, 2), (0, 1), (0, 2), (1, 2)))
    return xx, yy, zz, xy, xz, yz


def straightened(moments: Moments) -> Moments:
    """The nearest inertia that a body can have: the largest moment and the axes stay, the smaller ones grow.

    A body's second moments of mass ``(tr(I) / 2) 1 - I`` are never negative; negative ones become zero.
    """
    values, axes = np.linalg.eigh(matrix_of(moments))
    spread = np.maximum(0.5 * values.sum() - values, 0.0)
    return moments_of(axes @ np.diag(spread.sum() - spread) @ axes.T)


def lifted(moments: Moments, least: float) -> Moments:
    """The inertia with its smallest moment raised to ``least`` about the same axes, the others where they must be."""
    values, axes = np.linalg.eigh(matrix_of(moments))
    values[0] = least
    values[1] = max(values[1], values[2] - least)
    return moments_of(axes @ np.diag(values) @ axes.T)


def rounded(moments: Moments) -> Moments:
    """The inertia with its largest moment lowered to the sum of the others, where only digits were lost."""
    values, axes = np.linalg.eigh(matrix_of(moments))
    values[2] = min(values[2], values[0] + values[1])
    return moments_of(axes @ np.diag(values) @ axes.T)


def plausible(mass: float, T_link_com: SE3, collisions: Sequence[Collision]) -> tuple[Moments, str]:
    """Moments in the centre-of-mass frame that a body of ``mass`` may have, and what they are those of.

    Of the link's collision shapes, evenly filled; without such, or where those are too large for numbers, of a ball of
    `DENSITY`.
    """
    found = of_collisions([(one, 1.0) for one in collisions]) if collisions else None
    if (
        found is not None and is_finite(found) and math.isfinite(mass / found[0])
    ):  # of shapes that fill some space at all
        total, _, inertia = found
        R = T_link_com.rotation_matrix()
        return moments_of(R.T @ (inertia * (mass / total)) @ R), "of its collision shapes, evenly filled"
    radius = (3.0 * mass / (4.0 * math.pi * DENSITY)) ** (1.0 / 3.0)
    value = 0.4 * mass * radius * radius
    return (value, value, value, 0.0, 0.0, 0.0), f"of a ball of {2.0 * radius:.3g} m"


def filled(collisions: Sequence[Collision]) -> Inertial | None:
    """Mass and inertia of shapes filled with `DENSITY`; None where there are none, one is a mesh, or too large."""
    found = of_collisions([(one, DENSITY) for one in collisions]) if collisions else None
    if found is None or not is_finite(found):
        return None
    mass, com, inertia = found
    return Inertial(mass, SE3((1.0, 0.0, 0.0, 0.0), com), moments_of(inertia))


def equal_box(inertial: Inertial) -> tuple[Box, SE3] | None:
    """The even box of this mass and inertia, and its place in the link; None where it would be flat or huge."""
    values, axes = np.linalg.eigh(matrix_of(inertial.inertia))
    squares = 6.0 * (values.sum() - 2.0 * values) / inertial.mass
    if squares.min() <= 0.0 or squares.max() > _LARGEST**2:
        return None
    if np.linalg.det(axes) < 0.0:
        axes = axes * np.array([1.0, 1.0, -1.0])
    x, y, z = (float(value) for value in np.sqrt(squares))
    return Box((x, y, z)), inertial.T_link_com @ SE3.from_rotation_matrix(axes, np.zeros(3))


def with_shapes(reading: Reading, node: Node, link: Link) -> Link:
    """``link`` with something that touches in the place of every collision mesh that is not there, if to be mended.

    Meshes on servers and in model databases stay placeholders: they are there, only not here.
    """
    if not reading.repair:
        return link
    found = []
    for index, collision in enumerate(link.collisions):
        mesh = collision.geometry
        if (
            not isinstance(mesh, Mesh)
            or mesh.file is not None
            or mesh.inline is not None
            or mesh.uri.startswith(("http", "model:"))
        ):
            found.append(collision)
            continue
        where = next((one for one in node.all("collision")[index : index + 1]), node)
        fault = f"the collision mesh '{mesh.uri[:200]}' of link '{link.name}' is missing"
        other, done = _other_shape(link, collision, index)
        reading.mend(where, fault, "a mesh file that is there", done, needed=False)
        found += [other] if other is not None else []
    return replace(link, collisions=tuple(found))


def _other_shape(link: Link, collision: Collision, index: int) -> tuple[Collision | None, str]:
    seen = [
        one
        for one in link.visuals[index : index + 1]
        if not (isinstance(one.geometry, Mesh) and not one.geometry.file and not one.geometry.inline)
    ]
    if seen:
        shape = replace(collision, geometry=seen[0].geometry, T_link_geom=seen[0].T_link_geom)
        return shape, f"the visual '{seen[0].name}' touches instead"
    implied = equal_box(link.inertial) if link.inertial is not None else None
    if implied is not None:
        box, T_link_box = implied
        x, y, z = box.size
        return (
            replace(collision, geometry=box, T_link_geom=T_link_box),
            f"a box of {x:.3g} × {y:.3g} × {z:.3g} m touches instead, that of its mass and inertia",
        )
    return None, "nothing touches there"
