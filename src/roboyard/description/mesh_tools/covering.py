"""A surface covered by what engines collide quickly: simple shapes, its hull, or convex pieces."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from roboyard.description.mesh_tools.fitting import PRIMITIVE_TYPES, FittedPrimitive, Primitive, fit_primitive
from roboyard.description.mesh_tools.nearness import MeshDistance, sample_surface
from roboyard.description.mesh_tools.pieces import (
    ConvexDecomposition,
    convex_hull,
    decompose_convex,
    hull_decomposition,
)
from roboyard.description.mesh_tools.splitting import split_components
from roboyard.description.mesh_tools.surface import TriangleMesh
from roboyard.errors import InputError, UnknownNameError
from roboyard.geometry import SE3

SHAPE_TYPES = (*PRIMITIVE_TYPES, "hull", "decompose")


@dataclass(frozen=True)
class CollisionApproximation:
    """Shapes that stand for a surface.

    Attributes:
        shapes: Simple ones, with their poses in the mesh's frame; empty if pieces stand for it.
        pieces: Convex surfaces; empty if shapes do.
        volume_excess: Volume of all over that of the body, less one.
        max_gap: How far the cover's surface is from the mesh at most [m].
        max_protrusion: How far the mesh sticks out at most [m].
    """

    shapes: tuple[tuple[Primitive, SE3], ...]
    pieces: tuple[TriangleMesh, ...]
    volume_excess: float
    max_gap: float
    max_protrusion: float


def approximate_collision(
    mesh: TriangleMesh, shape_types: Sequence[str] = ("box", "cylinder", "sphere"), max_shapes: int = 1
) -> CollisionApproximation:
    """Cover a surface.

    Args:
        mesh: Of a body.
        shape_types: Simple shapes to choose from (the tightest is taken); or "hull", or "decompose" alone.
        max_shapes: Number of shapes or pieces allowed.  Simple shapes are fitted to the connected components, or to the
            pieces of a convex decomposition where there is only one component, or too many.

    Raises:
        InputError: ``max_shapes`` is not positive, or "hull" and "decompose" are mixed with others.
        UnknownNameError: a kind is unknown.
        DescriptionError: the surface is flat, or falls into too many parts.
    """
    for shape_type in shape_types:
        if shape_type not in SHAPE_TYPES:
            raise UnknownNameError(f"no shape {shape_type!r}", valid=", ".join(SHAPE_TYPES))
    if max_shapes < 1:
        raise InputError(f"at most {max_shapes} shapes", valid="1 or more")
    if "hull" in shape_types or "decompose" in shape_types:
        if len(shape_types) != 1:
            raise InputError(f"{shape_types[0]} together with others", valid="hull or decompose alone")
        return _from_decomposition(
            hull_decomposition(mesh) if shape_types[0] == "hull" else decompose_convex(mesh, max_shapes)
        )
    if not shape_types:
        raise InputError("no shapes to choose from", valid=", ".join(SHAPE_TYPES))
    if max_shapes == 1:
        primitive = fit_primitive(mesh, shape_types)
        return CollisionApproximation(
            ((primitive.shape, primitive.T_mesh_shape),),
            (),
            primitive.volume_excess,
            primitive.max_gap,
            primitive.max_protrusion,
        )
    parts = split_components(mesh)
    if not 1 < len(parts) <= max_shapes:
        parts = list(decompose_convex(mesh, max_shapes).pieces)
    primitives = [fit_primitive(part, shape_types) for part in parts]
    return _from_primitives(mesh, primitives)


def _from_decomposition(decomposition: ConvexDecomposition) -> CollisionApproximation:
    return CollisionApproximation(
        (), decomposition.pieces, decomposition.volume_excess, decomposition.max_gap, decomposition.max_protrusion
    )


def _from_primitives(mesh: TriangleMesh, primitives: Sequence[FittedPrimitive]) -> CollisionApproximation:
    from roboyard.description.mesh_tools.fitting import SAMPLES, sample_primitive, signed_distance

    distance = MeshDistance(mesh)
    max_gap = max(
        float(distance.distances(one.T_mesh_shape @ sample_primitive(one.shape, SAMPLES)).max()) for one in primitives
    )
    points = sample_surface(mesh, SAMPLES)
    max_protrusion = protrusions = None
    for one in primitives:
        distances = signed_distance(one.shape, one.T_mesh_shape.inverse() @ points)
        protrusions = distances if protrusions is None else distances.clip(max=protrusions)
    max_protrusion = max(0.0, float(protrusions.max())) if protrusions is not None else 0.0
    body_volume = mesh.volume if mesh.is_closed and mesh.volume > 0.0 else convex_hull(mesh).volume
    volume_excess = sum(one.volume for one in primitives) / body_volume - 1.0
    return CollisionApproximation(
        tuple((one.shape, one.T_mesh_shape) for one in primitives), (), volume_excess, max_gap, max_protrusion
    )
