"""Whether a stated inertia can be that of the link's shapes at its mass: else it is said, and mended on request."""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from roboyard.description.model import Collision, Geometry, Inertial, Link, Mesh, Visual
from roboyard.description.reading import ReaderContext
from roboyard.description.remedies import DEFAULT_DENSITY, InertiaMoments, estimate_inertia, inertia_matrix
from roboyard.description.shapes import bounding_half_extents
from roboyard.description.xml import XmlNode
from roboyard.errors import DescriptionError, InputError

_MAX_RADIUS_RATIO = 3.0
"""So many times as far out as the shapes reach: mass may lie somewhat beside what is drawn."""
_MAX_DENSITY = 22_590.0  # osmium [kg/m³]
_FOAM_DENSITY = 20.0
"""Lighter than any robot's part on the whole [kg/m³]: it shows before any mesh is read."""
_AIR_DENSITY = 1.2  # [kg/m³]
_MAX_MESH_BYTES = 8 << 20
_MIN_MOMENT_RATIO = 1e-6  # smallest over largest moment: a wire thinner than a thousandth of its length


def check_inertia_plausibility(context: ReaderContext, node: XmlNode, link: Link) -> Link:
    """``link``, whose stated inertia is noted where it is absurd for its mass and shapes, or mended on request.

    No body within shapes has its mass further from its centre, in the quadratic mean, than half their bounding box's
    diagonal (Popoviciu's bound on variances); none is more compact than a ball of the densest matter.

    Args:
        context: Takes the finding or the mending.
        node: The ``<inertial>``.
        link: Its shapes in place.
    """
    if link.inertial is None:
        return link
    mass, T_link_com = link.inertial.mass, link.inertial.T_link_com
    moments, moments_source = estimate_inertia(mass, T_link_com, link.collisions)
    reason = _find_implausibility(link.inertial, link, _gyration_radius(moments, mass))
    if not reason:
        return link
    problem = f"link '{link.name}' has an inertia that is absurd for its {mass:.3g} kg: {reason}"
    if context.repair_or_warn(
        node, problem, "", f"the inertia taken {moments_source}", "kept; repair takes that of its shapes"
    ):
        return replace(link, inertial=Inertial(mass, T_link_com, moments))
    return link


def _gyration_radius(moments: InertiaMoments, mass: float) -> float:
    """Distance of the mass from its centre, in the quadratic mean [m]."""
    return math.sqrt(0.5 * sum(moments[:3]) / mass)


def _find_implausibility(inertial: Inertial, link: Link, shapes_gyration_radius: float) -> str:
    """Describe what is implausible about the inertial; empty if nothing is.

    ``shapes_gyration_radius`` [m] is that of the link's shapes at uniform density.
    """
    values = np.linalg.eigvalsh(inertia_matrix(inertial.inertia))
    min_moment, max_moment = float(values[0]), float(values[2])
    gyration_radius = _gyration_radius(inertial.inertia, inertial.mass)
    shapes_radius = _shapes_radius(link, gyration_radius, inertial.mass)
    if shapes_radius and gyration_radius > _MAX_RADIUS_RATIO * max(
        shapes_radius, _ball_gyration_radius(inertial.mass, DEFAULT_DENSITY)
    ):
        return f"it lies {gyration_radius:.3g} m from its centre in the mean, its shapes reach {shapes_radius:.3g} m"
    if gyration_radius < min(
        _ball_gyration_radius(inertial.mass, _MAX_DENSITY), 0.99 * shapes_gyration_radius
    ):  # else the mass is odd, not its inertia
        return f"it would be denser than any matter, within {gyration_radius:.3g} m of its centre in the mean"
    if min_moment < _MIN_MOMENT_RATIO * max_moment:
        return f"principal moments from {min_moment:.3g} to {max_moment:.3g} kg m², those of a wire"
    return ""


def _ball_gyration_radius(mass: float, density: float) -> float:
    """How far the mass of a ball lies from its centre, in the quadratic mean [m]."""
    return math.sqrt(0.6) * math.cbrt(3.0 * mass / (4.0 * math.pi * density))


def _shapes_radius(link: Link, gyration_radius: float, mass: float) -> float | None:
    """Half the diagonal of the link's shapes [m]; None where nothing can be told.

    Meshes are read only where a ball with this ``gyration_radius`` is suspiciously light; where they cannot be read and
    the ball is lighter than air, only the other shapes count.
    """
    shapes: list[Collision | Visual] = [*link.collisions, *link.visuals]
    primitives = [one for one in shapes if not isinstance(one.geometry, Mesh)]
    primitives_radius = half_diagonal(primitives)
    if len(primitives) == len(shapes) or (
        primitives_radius and gyration_radius <= _MAX_RADIUS_RATIO * primitives_radius
    ):
        return primitives_radius
    if gyration_radius < _ball_gyration_radius(mass, _FOAM_DENSITY):
        return None
    return half_diagonal(shapes) or (
        primitives_radius if gyration_radius > _ball_gyration_radius(mass, _AIR_DENSITY) else None
    )


@np.errstate(over="ignore")  # shapes may be as large as numbers get
def half_diagonal(shapes: Sequence[Collision | Visual]) -> float | None:
    """Half the diagonal of the box around ``shapes`` along the link's axes [m].

    None without shapes, or where one's extent is not known: meshes that cannot be read, planes, terrain, prisms.
    """
    corners = []
    for shape in shapes:
        box = _bounding_box(shape.geometry)
        if box is None:
            return None
        corners += [shape.T_link_geom @ np.array(corner) for corner in itertools.product(*zip(*box, strict=True))]
    return 0.5 * float(np.linalg.norm(np.ptp(corners, axis=0))) if corners else None


def _bounding_box(shape: Geometry) -> tuple[Sequence[float], Sequence[float]] | None:
    """Lowest and highest corner of a shape in its own frame."""
    if isinstance(shape, Mesh):
        return _mesh_bounding_box(shape)
    half = bounding_half_extents(shape)
    return None if half is None else ([-value for value in half], half)


def _mesh_bounding_box(mesh: Mesh) -> tuple[Sequence[float], Sequence[float]] | None:
    from roboyard.description.mesh_tools.files import read_mesh

    if mesh.file is None or mesh.file.stat().st_size > _MAX_MESH_BYTES:
        return None
    try:
        low, high = read_mesh(mesh.file).bounds
    except (InputError, DescriptionError):  # a kind that is not read here
        return None
    scale = np.array(mesh.scale)
    return list(low * scale), list(high * scale)
