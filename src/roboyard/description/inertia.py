"""Inertia of links: computation from collision shapes, validation, repair, and plausibility check."""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from roboyard.description.meshes.files import read_mesh
from roboyard.description.model import (
    Box,
    Capsule,
    Collision,
    Cone,
    Cylinder,
    Ellipsoid,
    Geometry,
    Inertial,
    Link,
    Mesh,
    Sphere,
    Visual,
)
from roboyard.description.reader_context import ReaderContext
from roboyard.description.shapes import bounding_half_extents
from roboyard.description.xml import XmlNode
from roboyard.description.xml_values import error_at
from roboyard.errors import DescriptionError, InputError
from roboyard.geometry import SE3
from roboyard.geometry.arrays import Array

POSITIVE_MASS_HINT = "a mass above 0; omit <inertial> for a frame without mass"
_MAX_MASS = 1e15  # beyond, every sum loses digits
_EIGENVALUE_TOLERANCE = 1e-9  # relative amount below zero that rounding of doubles explains
_TRIANGLE_TOLERANCE = 1e-4  # relative violation of the triangle inequality that rounded printed digits explain


def shape_inertia(shape: Geometry, density: float) -> tuple[float, float, tuple[float, float, float]] | None:
    """Compute mass [kg], height of the center of mass above the shape's frame [m], and principal moments [kg m²].

    Textbook formulas of homogeneous bodies; None for meshes, planes, terrain and prisms.  Results that are too large
    for floating-point numbers are infinite or NaN.
    """
    match shape:
        case Box((x, y, z)):
            m = density * x * y * z
            return m, 0.0, (m * (y * y + z * z) / 12, m * (x * x + z * z) / 12, m * (x * x + y * y) / 12)
        case Sphere(r):
            m = density * 4 / 3 * math.pi * _cube(r)
            return m, 0.0, (0.4 * m * r * r,) * 3
        case Ellipsoid((a, b, c)):
            m = density * 4 / 3 * math.pi * a * b * c
            return m, 0.0, (m * (b * b + c * c) / 5, m * (a * a + c * c) / 5, m * (a * a + b * b) / 5)
        case Cylinder(r, h):
            m = density * math.pi * r * r * h
            side = m * (3 * r * r + h * h) / 12
            return m, 0.0, (side, side, m * r * r / 2)
        case Capsule(r, h):
            tube, ball = density * math.pi * r * r * h, density * 4 / 3 * math.pi * _cube(r)
            side = tube * (r * r / 4 + h * h / 12) + ball * (0.4 * r * r + h * h / 4 + 3 * h * r / 8)
            return tube + ball, 0.0, (side, side, tube * r * r / 2 + 0.4 * ball * r * r)
        case Cone(r, h):
            m = density * math.pi * r * r * h / 3
            side = 3 * m / 80 * (4 * r * r + h * h)
            return m, -h / 4, (side, side, 0.3 * m * r * r)
    return None


def _cube(length: float) -> float:
    """Return ``length**3``, infinite where Python raises OverflowError."""
    try:
        return length**3
    except OverflowError:
        return math.inf


@np.errstate(over="ignore", invalid="ignore")
def collisions_inertia(
    parts: Sequence[tuple[Collision, float]],
) -> tuple[float, Array, Array] | None:
    """Compute mass [kg], center of mass (3,) [m] and inertia (3, 3) about it [kg m²], in link axes.

    Values that are too large for floating-point numbers are infinite or NaN (``is_finite``); None if a shape has no
    formula, or the shapes have no volume.

    Args:
        parts: Collisions with their densities [kg/m³].
    """
    bodies = []
    for collision, density in parts:
        properties = shape_inertia(collision.geometry, density)
        if properties is None:
            return None
        mass, height, moments = properties
        R = collision.T_link_geom.rotation_matrix()
        center = collision.T_link_geom @ np.array([0.0, 0.0, height])
        bodies.append((mass, center, R @ np.diag(moments) @ R.T))
    total = sum(mass for mass, _, _ in bodies)
    if total == 0.0:
        return None
    com = sum((mass * center for mass, center, _ in bodies), np.zeros(3)) / total
    inertia = np.zeros((3, 3))
    for mass, center, body_inertia in bodies:
        arm = center - com
        inertia += body_inertia + mass * (arm @ arm * np.eye(3) - np.outer(arm, arm))
    return total, com, inertia


def is_finite(properties: tuple[float, Array, Array]) -> bool:
    """Return whether mass, center of mass and inertia are finite and usable."""
    mass, com, inertia = properties
    return math.isfinite(mass) and bool(np.isfinite(com).all() and np.isfinite(inertia).all())


InertiaMoments = tuple[float, float, float, float, float, float]
DEFAULT_DENSITY = 1000.0
"""Density used if the description has none [kg/m³]."""
_MAX_BOX_EDGE = 5.0  # maximum edge of the box equivalent to an inertia [m]


def inertia_matrix(moments: InertiaMoments) -> NDArray[np.float64]:
    """Return the matrix (3, 3) of ixx, iyy, izz, ixy, ixz, iyz."""
    ixx, iyy, izz, ixy, ixz, iyz = moments
    return np.array([[ixx, ixy, ixz], [ixy, iyy, iyz], [ixz, iyz, izz]])


def inertia_moments(matrix: NDArray[np.float64]) -> InertiaMoments:
    """Return ixx, iyy, izz, ixy, ixz, iyz of a matrix (3, 3)."""
    xx, yy, zz, xy, xz, yz = (float(matrix[i, j]) for i, j in ((0, 0), (1, 1), (2, 2), (0, 1), (0, 2), (1, 2)))
    return xx, yy, zz, xy, xz, yz


def nearest_physical_inertia(moments: InertiaMoments) -> InertiaMoments:
    """Return the nearest physically possible inertia: the largest moment and the axes are kept, smaller moments are
    raised.

    A body's second moments of mass ``(tr(I) / 2) 1 - I`` are never negative; negative ones become zero.
    """
    values, axes = np.linalg.eigh(inertia_matrix(moments))
    second_moments = np.maximum(0.5 * values.sum() - values, 0.0)
    return inertia_moments(axes @ np.diag(second_moments.sum() - second_moments) @ axes.T)


def raise_smallest_moment(moments: InertiaMoments, min_moment: float) -> InertiaMoments:
    """Raise the smallest principal moment to `min_moment` about the same axes, and the others where necessary."""
    values, axes = np.linalg.eigh(inertia_matrix(moments))
    values[0] = min_moment
    values[1] = max(values[1], values[2] - min_moment)
    return inertia_moments(axes @ np.diag(values) @ axes.T)


def clamp_triangle_inequality(moments: InertiaMoments) -> InertiaMoments:
    """Return the inertia with its largest moment lowered to the sum of the others, to correct rounding errors."""
    values, axes = np.linalg.eigh(inertia_matrix(moments))
    values[2] = min(values[2], values[0] + values[1])
    return inertia_moments(axes @ np.diag(values) @ axes.T)


def estimate_inertia(mass: float, T_link_com: SE3, collisions: Sequence[Collision]) -> tuple[InertiaMoments, str]:
    """Estimate the moments of a link of `mass` about its center of mass, and describe the assumption in words.

    The collision shapes are filled homogeneously; without shapes, or if these are too large for numbers, a ball of
    `DEFAULT_DENSITY` is used.
    """
    properties = collisions_inertia([(one, 1.0) for one in collisions]) if collisions else None
    if properties is not None and is_finite(properties) and math.isfinite(mass / properties[0]):  # shapes with a volume
        total, _, inertia = properties
        R = T_link_com.rotation_matrix()
        return inertia_moments(R.T @ (inertia * (mass / total)) @ R), "of its collision shapes, homogeneously filled"
    radius = (3.0 * mass / (4.0 * math.pi * DEFAULT_DENSITY)) ** (1.0 / 3.0)
    value = 0.4 * mass * radius * radius
    return (value, value, value, 0.0, 0.0, 0.0), f"of a ball of {2.0 * radius:.3g} m"


def fill_with_default_density(collisions: Sequence[Collision]) -> Inertial | None:
    """Compute mass and inertia of shapes of `DEFAULT_DENSITY`; None without shapes, with meshes, or if too large."""
    properties = collisions_inertia([(one, DEFAULT_DENSITY) for one in collisions]) if collisions else None
    if properties is None or not is_finite(properties):
        return None
    mass, com, inertia = properties
    return Inertial(mass, SE3((1.0, 0.0, 0.0, 0.0), com), inertia_moments(inertia))


def equivalent_inertia_box(inertial: Inertial) -> tuple[Box, SE3] | None:
    """Return the homogeneous box of a mass and inertia, and its pose in the link; None if it is flat or huge."""
    values, axes = np.linalg.eigh(inertia_matrix(inertial.inertia))
    squares = 6.0 * (values.sum() - 2.0 * values) / inertial.mass
    if squares.min() <= 0.0 or squares.max() > _MAX_BOX_EDGE**2:
        return None
    if np.linalg.det(axes) < 0.0:
        axes = axes * np.array([1.0, 1.0, -1.0])
    x, y, z = (float(value) for value in np.sqrt(squares))
    return Box((x, y, z)), inertial.T_link_com @ SE3.from_rotation_matrix(axes, np.zeros(3))


def replace_missing_collision_meshes(context: ReaderContext, node: XmlNode, link: Link) -> Link:
    """Return the link with replacements for missing collision meshes, if repair is requested.

    Meshes on servers and in model databases remain placeholders: they exist, but not on this machine.
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
        context.repair_or_raise(collision_node, problem, "an existing mesh file", action, is_required=False)
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
        return shape, f"its visual '{visuals[0].name}' is used instead"
    inertia_box = equivalent_inertia_box(link.inertial) if link.inertial is not None else None
    if inertia_box is not None:
        box, T_link_box = inertia_box
        x, y, z = box.size
        return (
            replace(collision, geometry=box, T_link_geom=T_link_box),
            f"a box of {x:.3g} × {y:.3g} × {z:.3g} m, equivalent to its mass and inertia, is used instead",
        )
    return None, "the collision is removed"


_MAX_RADIUS_RATIO = 3.0
"""Maximum ratio of the radius of gyration to the shapes' radius: mass may lie somewhat outside the shapes.
"""
_MAX_DENSITY = 22_590.0  # osmium [kg/m³]
_FOAM_DENSITY = 20.0
"""Minimum mean density of a robot's part [kg/m³]; meshes are read only below it."""
_AIR_DENSITY = 1.2  # [kg/m³]
_MAX_CHECKED_MESH_BYTES = 8 << 20
"""Maximum size of a mesh file that is read only for this check [bytes]."""
_MIN_MOMENT_RATIO = 1e-6  # smallest over largest moment: a wire thinner than a thousandth of its length


def check_inertia_plausibility(context: ReaderContext, node: XmlNode, link: Link) -> Link:
    """Return the link; warn about an inertia that is implausible for mass and shapes, or repair it on request.

    No body within its shapes has a radius of gyration larger than half the diagonal of their bounding box (Popoviciu's
    bound on variances); none is more compact than a ball of the densest matter.

    Args:
        context: Receives the warning or the repair.
        node: The ``<inertial>``.
        link: The link with its shapes.
    """
    if link.inertial is None:
        return link
    mass, T_link_com = link.inertial.mass, link.inertial.T_link_com
    moments, moments_source = estimate_inertia(mass, T_link_com, link.collisions)
    reason = _find_implausibility(link.inertial, link, _gyration_radius(moments, mass))
    if not reason:
        return link
    problem = f"link '{link.name}' has an implausible inertia for its {mass:.3g} kg: {reason}"
    if context.repair_or_warn(
        node, problem, "", f"the inertia {moments_source} is used", "kept; repair uses the inertia of its shapes"
    ):
        return replace(link, inertial=Inertial(mass, T_link_com, moments))
    return link


def _gyration_radius(moments: InertiaMoments, mass: float) -> float:
    """Compute the radius of gyration about the center of mass [m]."""
    return math.sqrt(0.5 * sum(moments[:3]) / mass)


def _find_implausibility(inertial: Inertial, link: Link, shapes_gyration_radius: float) -> str:
    """Describe what is implausible about the inertial; empty if it is plausible.

    ``shapes_gyration_radius`` [m] is that of the link's shapes at uniform density.
    """
    values = np.linalg.eigvalsh(inertia_matrix(inertial.inertia))
    min_moment, max_moment = float(values[0]), float(values[2])
    gyration_radius = _gyration_radius(inertial.inertia, inertial.mass)
    shapes_radius = _shapes_radius(link, gyration_radius, inertial.mass)
    if shapes_radius and gyration_radius > _MAX_RADIUS_RATIO * max(
        shapes_radius, _ball_gyration_radius(inertial.mass, DEFAULT_DENSITY)
    ):
        return f"its radius of gyration is {gyration_radius:.3g} m, its shapes extend to {shapes_radius:.3g} m"
    if gyration_radius < min(
        _ball_gyration_radius(inertial.mass, _MAX_DENSITY), 0.99 * shapes_gyration_radius
    ):  # otherwise the mass is implausible, not the inertia
        return f"it would be denser than any matter, with a radius of gyration of {gyration_radius:.3g} m"
    if min_moment < _MIN_MOMENT_RATIO * max_moment:
        return f"principal moments from {min_moment:.3g} to {max_moment:.3g} kg m², like those of a wire"
    return ""


def _ball_gyration_radius(mass: float, density: float) -> float:
    """Compute the radius of gyration of a ball [m]."""
    return math.sqrt(0.6) * math.cbrt(3.0 * mass / (4.0 * math.pi * density))


def _shapes_radius(link: Link, gyration_radius: float, mass: float) -> float | None:
    """Return half the diagonal of the link's shapes [m]; None if unknown.

    Meshes are read only if a ball with this radius of gyration has a suspiciously low density.  If they cannot be read
    and the ball is lighter than air, only the other shapes count.
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


@np.errstate(over="ignore")  # shapes may be as large as numbers allow
def half_diagonal(shapes: Sequence[Collision | Visual]) -> float | None:
    """Compute half the diagonal of the box around `shapes` along the link's axes [m].

    None without shapes, or if an extent is unknown: meshes that cannot be read, planes, terrain, prisms.
    """
    corners = []
    for shape in shapes:
        box = _bounding_box(shape.geometry)
        if box is None:
            return None
        corners += [shape.T_link_geom @ np.array(corner) for corner in itertools.product(*zip(*box, strict=True))]
    return 0.5 * float(np.linalg.norm(np.ptp(corners, axis=0))) if corners else None


def _bounding_box(shape: Geometry) -> tuple[Sequence[float], Sequence[float]] | None:
    """Return the minimum and maximum corner of a shape in its own frame."""
    if isinstance(shape, Mesh):
        return _mesh_bounding_box(shape)
    half = bounding_half_extents(shape)
    return None if half is None else ([-value for value in half], half)


def _mesh_bounding_box(mesh: Mesh) -> tuple[Sequence[float], Sequence[float]] | None:
    if mesh.file is None or mesh.file.stat().st_size > _MAX_CHECKED_MESH_BYTES:
        return None
    try:
        low, high = read_mesh(mesh.file).bounds
    except (InputError, DescriptionError):  # an unsupported mesh format
        return None
    scale = np.array(mesh.scale)
    return list(low * scale), list(high * scale)


def check_inertial(
    context: ReaderContext,
    node: XmlNode,
    link: str,
    mass: float,
    T_link_com: SE3,
    moments: InertiaMoments,
    collisions: Sequence[Collision] = (),
) -> Inertial | None:
    """Return the validated inertial, or None if a repair turned the link into a massless frame.

    Args:
        context: Receives warnings about corrected rounding errors, and repairs.
        node: The element, for messages.
        link: Name of the link.
        mass: Mass [kg].
        T_link_com: Center-of-mass frame in the link.
        moments: ixx, iyy, izz, ixy, ixz, iyz about it [kg m²].
        collisions: Shapes of the link, from which an invalid inertia is repaired.

    Raises:
        DescriptionError: The mass is not positive, the inertia is not positive definite, or its principal moments
            violate the triangle inequality; unless repaired.
    """
    if mass <= 0.0:
        action = f"{-mass:g} kg is used" if mass < 0.0 else "treated as a massless frame"
        context.repair_or_raise(node, f"link '{link}' has mass {mass:g} kg", POSITIVE_MASS_HINT, action)
        if mass == 0.0:
            return None
        mass = -mass
    max_moment = max(map(abs, moments), key=lambda moment: math.inf if math.isnan(moment) else moment)
    if not (mass <= _MAX_MASS and max_moment <= _MAX_MASS):  # NaN exceeds the bound too
        raise error_at(
            f"link '{link}' has a mass of {mass:g} kg and moments up to {max_moment:g} kg m²",
            node,
            f"at most {_MAX_MASS:g}",
        )
    values = np.linalg.eigvalsh(inertia_matrix(moments))
    a, b, c = (float(value) for value in values)
    moments_text = f"principal moments {a:.6g}, {b:.6g}, {c:.6g} kg m²"
    if a < 0.0 < b and -a < _EIGENVALUE_TOLERANCE * c:
        context.warn(
            node,
            f"link '{link}': {moments_text}: the first is below 0 by rounding; {_EIGENVALUE_TOLERANCE * c:.3g} is used",
        )
        moments, a = raise_smallest_moment(moments, _EIGENVALUE_TOLERANCE * c), _EIGENVALUE_TOLERANCE * c
        b = max(b, c - a)
    if not a > 0.0:
        problem = f"link '{link}' has an inertia that is not positive definite: {moments_text}"
        moments, moments_source = estimate_inertia(mass, T_link_com, collisions)
        context.repair_or_raise(node, problem, "moments above 0", f"the inertia {moments_source} is used")
    elif a + b < c:
        if c - (a + b) > _TRIANGLE_TOLERANCE * c:
            context.repair_or_raise(
                node,
                f"link '{link}' has a physically impossible inertia: {moments_text}",
                "the largest moment must not exceed the sum of the others",
                f"the smaller moments raised to {0.5 * (a + c - b):.6g} and {0.5 * (b + c - a):.6g} kg m²",
            )
            moments = nearest_physical_inertia(moments)
        else:
            context.warn(node, f"link '{link}': {moments_text} violate the triangle inequality by rounding; corrected")
            moments = clamp_triangle_inequality(moments)
    return Inertial(mass, T_link_com, moments)
