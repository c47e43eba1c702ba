"""What can be put in the place of an inertia or a shape that cannot be: from the link's other shapes, or its mass."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from roboyard.description.inertia import collisions_inertia, is_finite
from roboyard.description.model import Box, Collision, Inertial, Link, Mesh
from roboyard.description.reading import ReaderContext
from roboyard.description.xml import XmlNode
from roboyard.geometry import SE3

InertiaMoments = tuple[float, float, float, float, float, float]
DEFAULT_DENSITY = 1000.0
"""Of a body of which nothing is said [kg/m³]."""
_MAX_BOX_EDGE = 5.0  # edge of a box that an inertia may imply [m]


def inertia_matrix(moments: InertiaMoments) -> NDArray[np.float64]:
    """(3, 3) of ixx, iyy, izz, ixy, ixz, iyz."""
    ixx, iyy, izz, ixy, ixz, iyz = moments
    return np.array([[ixx, ixy, ixz], [ixy, iyy, iyz], [ixz, iyz, izz]])


def inertia_moments(matrix: NDArray[np.float64]) -> InertiaMoments:
    """Ixx, iyy, izz, ixy, ixz, iyz of a (3, 3)."""
    xx, yy, zz, xy, xz, yz = (float(matrix[i, j]) for i, j in ((0, 0), (1, 1), (2, 2), (0, 1), (0, 2), (1, 2)))
    return xx, yy, zz, xy, xz, yz


def nearest_physical_inertia(moments: InertiaMoments) -> InertiaMoments:
    """The nearest inertia that a body can have: the largest moment and the axes stay, the smaller ones grow.

    A body's second moments of mass ``(tr(I) / 2) 1 - I`` are never negative; negative ones become zero.
    """
    values, axes = np.linalg.eigh(inertia_matrix(moments))
    second_moments = np.maximum(0.5 * values.sum() - values, 0.0)
    return inertia_moments(axes @ np.diag(second_moments.sum() - second_moments) @ axes.T)


def raise_smallest_moment(moments: InertiaMoments, min_moment: float) -> InertiaMoments:
    """Raise the smallest principal moment to ``min_moment`` about the same axes, and the others where necessary."""
    values, axes = np.linalg.eigh(inertia_matrix(moments))
    values[0] = min_moment
    values[1] = max(values[1], values[2] - min_moment)
    return inertia_moments(axes @ np.diag(values) @ axes.T)


def clamp_triangle_inequality(moments: InertiaMoments) -> InertiaMoments:
    """The inertia with its largest moment lowered to the sum of the others, where only digits were lost."""
    values, axes = np.linalg.eigh(inertia_matrix(moments))
    values[2] = min(values[2], values[0] + values[1])
    return inertia_moments(axes @ np.diag(values) @ axes.T)


def estimate_inertia(mass: float, T_link_com: SE3, collisions: Sequence[Collision]) -> tuple[InertiaMoments, str]:
    """Moments in the centre-of-mass frame that a body of ``mass`` may have, and what they are those of.

    Of the link's collision shapes, evenly filled; without such, or where those are too large for numbers, of a ball of
    `DEFAULT_DENSITY`.
    """
    properties = collisions_inertia([(one, 1.0) for one in collisions]) if collisions else None
    if (
        properties is not None and is_finite(properties) and math.isfinite(mass / properties[0])
    ):  # of shapes that fill some space at all
        total, _, inertia = properties
        R = T_link_com.rotation_matrix()
        return inertia_moments(R.T @ (inertia * (mass / total)) @ R), "of its collision shapes, evenly filled"
    radius = (3.0 * mass / (4.0 * math.pi * DEFAULT_DENSITY)) ** (1.0 / 3.0)
    value = 0.4 * mass * radius * radius
    return (value, value, value, 0.0, 0.0, 0.0), f"of a ball of {2.0 * radius:.3g} m"


def fill_with_default_density(collisions: Sequence[Collision]) -> Inertial | None:
    """Compute mass and inertia of shapes of `DEFAULT_DENSITY`; None if there are none, one is a mesh, or too large."""
    properties = collisions_inertia([(one, DEFAULT_DENSITY) for one in collisions]) if collisions else None
    if properties is None or not is_finite(properties):
        return None
    mass, com, inertia = properties
    return Inertial(mass, SE3((1.0, 0.0, 0.0, 0.0), com), inertia_moments(inertia))


def equivalent_inertia_box(inertial: Inertial) -> tuple[Box, SE3] | None:
    """The even box of this mass and inertia, and its place in the link; None where it would be flat or huge."""
    values, axes = np.linalg.eigh(inertia_matrix(inertial.inertia))
    squares = 6.0 * (values.sum() - 2.0 * values) / inertial.mass
    if squares.min() <= 0.0 or squares.max() > _MAX_BOX_EDGE**2:
        return None
    if np.linalg.det(axes) < 0.0:
        axes = axes * np.array([1.0, 1.0, -1.0])
    x, y, z = (float(value) for value in np.sqrt(squares))
    return Box((x, y, z)), inertial.T_link_com @ SE3.from_rotation_matrix(axes, np.zeros(3))


def replace_missing_collision_meshes(context: ReaderContext, node: XmlNode, link: Link) -> Link:
    """``link`` with something that touches in the place of every collision mesh that is not there, if to be mended.

    Meshes on servers and in model databases stay placeholders: they are there, only not here.
    """
    if not context.repair:
        return link
    collisions = []
    for index, collision in enumerate(link.collisions):
        mesh = collision.geometry
        if (
            not isinstance(mesh, Mesh)
            or mesh.file is not None
            or mesh.inline is not None
            or mesh.uri.startswith(("http", "model:"))
        ):
            collisions.append(collision)
            continue
        collision_node = next((one for one in node.children_with_tag("collision")[index : index + 1]), node)
        problem = f"the collision mesh '{mesh.uri[:200]}' of link '{link.name}' is missing"
        replacement, action = _find_replacement(link, collision, index)
        context.repair_or_raise(collision_node, problem, "a mesh file that is there", action, is_required=False)
        collisions += [replacement] if replacement is not None else []
    return replace(link, collisions=tuple(collisions))


def _find_replacement(link: Link, collision: Collision, index: int) -> tuple[Collision | None, str]:
    visuals = [
        one
        for one in link.visuals[index : index + 1]
        if not (isinstance(one.geometry, Mesh) and not one.geometry.file and not one.geometry.inline)
    ]
    if visuals:
        shape = replace(collision, geometry=visuals[0].geometry, T_link_geom=visuals[0].T_link_geom)
        return shape, f"the visual '{visuals[0].name}' touches instead"
    inertia_box = equivalent_inertia_box(link.inertial) if link.inertial is not None else None
    if inertia_box is not None:
        box, T_link_box = inertia_box
        x, y, z = box.size
        return (
            replace(collision, geometry=box, T_link_geom=T_link_box),
            f"a box of {x:.3g} × {y:.3g} × {z:.3g} m touches instead, that of its mass and inertia",
        )
    return None, "nothing touches there"
