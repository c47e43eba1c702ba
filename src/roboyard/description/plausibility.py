"""Whether a stated inertia can be that of the link's shapes at its mass: else it is said, and mended on request."""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from roboyard.description.model import Collision, Geometry, Inertial, Link, Mesh, Visual
from roboyard.description.reading import Reading
from roboyard.description.remedies import DENSITY, Moments, matrix_of, plausible
from roboyard.description.shapes import half_edges
from roboyard.description.xml import Node
from roboyard.errors import DescriptionError, InputError

_OUTSIDE = 3.0
"""So many times as far out as the shapes reach: mass may lie somewhat beside what is drawn."""
_DENSEST = 22_590.0  # osmium [kg/m³]
_FOAM = 20.0
"""Lighter than any robot's part on the whole [kg/m³]: it shows before any mesh is read."""
_AIR = 1.2  # [kg/m³]
_MESH_BYTES = 8 << 20
_THIN = 1e-6  # smallest over largest moment: a wire thinner than a thousandth of its length


def sensible(reading: Reading, node: Node, link: Link) -> Link:
    """``link``, whose stated inertia is noted where it is absurd for its mass and shapes, or mended on request.

    No body within shapes has its mass further from its centre, in the quadratic mean, than half their bounding box's
    diagonal (Popoviciu's bound on variances); none is more compact than a ball of the densest matter.

    Args:
        reading: Takes the finding or the mending.
        node: The ``<inertial>``.
        link: Its shapes in place.
    """
    if link.inertial is None:
        return link
    mass, T_link_com = link.inertial.mass, link.inertial.T_link_com
    moments, whose = plausible(mass, T_link_com, link.collisions)
    what = _absurdity(link.inertial, link, _spread(moments, mass))
    if not what:
        return link
    fault = f"link '{link.name}' has an inertia that is absurd for its {mass:.3g} kg: {what}"
    if reading.mend_or_note(node, fault, "", f"the inertia taken {whose}", "kept; repair takes that of its shapes"):
        return replace(link, inertial=Inertial(mass, T_link_com, moments))
    return link


def _spread(moments: Moments, mass: float) -> float:
    """Distance of the mass from its centre, in the quadratic mean [m]."""
    return math.sqrt(0.5 * sum(moments[:3]) / mass)


def _absurdity(inertial: Inertial, link: Link, even: float) -> str:
    """What is absurd about it; empty if nothing. ``even``: the spread of the link's shapes, evenly filled [m]."""
    values = np.linalg.eigvalsh(matrix_of(inertial.inertia))
    least, most = float(values[0]), float(values[2])
    spread = _spread(inertial.inertia, inertial.mass)
    shapes = _reach(link, spread, inertial.mass)
    if shapes and spread > _OUTSIDE * max(shapes, _ball(inertial.mass, DENSITY)):
        return f"it lies {spread:.3g} m from its centre in the mean, its shapes reach {shapes:.3g} m"
    if spread < min(_ball(inertial.mass, _DENSEST), 0.99 * even):  # else the mass is odd, not its inertia
        return f"it would be denser than any matter, within {spread:.3g} m of its centre in the mean"
    if least < _THIN * most:
        return f"principal moments from {least:.3g} to {most:.3g} kg m², those of a wire"
    return ""


def _ball(mass: float, density: float) -> float:
    """How far the mass of a ball lies from its centre, in the quadratic mean [m]."""
    return math.sqrt(0.6) * math.cbrt(3.0 * mass / (4.0 * math.pi * density))


def _reach(link: Link, spread: float, mass: float) -> float | None:
    """Half the diagonal of the link's shapes [m]; None where nothing can be told.

    Meshes are read only where a ball with this ``spread`` is so light as to be suspicious; where they cannot be read
    and the ball is lighter than air, the other shapes alone count.
    """
    shapes: list[Collision | Visual] = [*link.collisions, *link.visuals]
    plain = [one for one in shapes if not isinstance(one.geometry, Mesh)]
    known = half_diagonal(plain)
    if len(plain) == len(shapes) or (known and spread <= _OUTSIDE * known):
        return known
    if spread < _ball(mass, _FOAM):
        return None
    return half_diagonal(shapes) or (known if spread > _ball(mass, _AIR) else None)


@np.errstate(over="ignore")  # shapes may be as large as numbers get
def half_diagonal(shapes: Sequence[Collision | Visual]) -> float | None:
    """Half the diagonal of the box around ``shapes`` along the link's axes [m].

    None without shapes, or where one's extent is not known: meshes that cannot be read, planes, terrain, prisms.
    """
    corners = []
    for shape in shapes:
        box = _box(shape.geometry)
        if box is None:
            return None
        corners += [shape.T_link_geom @ np.array(corner) for corner in itertools.product(*zip(*box, strict=True))]
    return 0.5 * float(np.linalg.norm(np.ptp(corners, axis=0))) if corners else None


def _box(shape: Geometry) -> tuple[Sequence[float], Sequence[float]] | None:
    """Lowest and highest corner of a shape in its own frame."""
    if isinstance(shape, Mesh):
        return _mesh_box(shape)
    half = half_edges(shape)
    return None if half is None else ([-value for value in half], half)


def _mesh_box(mesh: Mesh) -> tuple[Sequence[float], Sequence[float]] | None:
    from roboyard.description.mesh_tools.files import read_surface

    if mesh.file is None or mesh.file.stat().st_size > _MESH_BYTES:
        return None
    try:
        low, high = read_surface(mesh.file).bounds
    except (InputError, DescriptionError):  # a kind that is not read here
        return None
    scale = np.array(mesh.scale)
    return list(low * scale), list(high * scale)
