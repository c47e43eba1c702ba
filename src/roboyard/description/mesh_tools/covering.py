"""A surface covered by what engines collide quickly: simple shapes, its hull, or convex pieces."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from roboyard.description.mesh_tools.fitting import KINDS, Fitted, Simple, fit
from roboyard.description.mesh_tools.nearness import Nearness, scattered
from roboyard.description.mesh_tools.pieces import Decomposed, as_hull, decomposed, hull_of
from roboyard.description.mesh_tools.splitting import by_components
from roboyard.description.mesh_tools.surface import Surface
from roboyard.errors import InputError, UnknownNameError
from roboyard.geometry import SE3

ALL = (*KINDS, "hull", "decompose")


@dataclass(frozen=True)
class Cover:
    """Shapes that stand for a surface.

    Attributes:
        shapes: Simple ones, with their poses in the mesh's frame; empty if pieces stand for it.
        pieces: Convex surfaces; empty if shapes do.
        excess: Volume of all over that of the body, less one.
        gap: How far the cover's surface is from the mesh at most [m].
        outside: How far the mesh sticks out at most [m].
    """

    shapes: tuple[tuple[Simple, SE3], ...]
    pieces: tuple[Surface, ...]
    excess: float
    gap: float
    outside: float


def cover(surface: Surface, kinds: Sequence[str] = ("box", "cylinder", "sphere"), most: int = 1) -> Cover:
    """Cover a surface.

    Args:
        surface: Of a body.
        kinds: Simple shapes to choose from (the tightest is taken); or "hull", or "decompose" alone.
        most: Number of shapes or pieces allowed.  Simple shapes are fitted to the parts that hang together, or to the
            pieces of a convex decomposition where there is one part only, or too many.

    Raises:
        InputError: ``most`` is not positive, or "hull" and "decompose" are mixed with others.
        UnknownNameError: a kind is unknown.
        DescriptionError: the surface is flat, or falls into too many parts.
    """
    for kind in kinds:
        if kind not in ALL:
            raise UnknownNameError(f"no shape {kind!r}", valid=", ".join(ALL))
    if most < 1:
        raise InputError(f"at most {most} shapes", valid="1 or more")
    if "hull" in kinds or "decompose" in kinds:
        if len(kinds) != 1:
            raise InputError(f"{kinds[0]} together with others", valid="hull or decompose alone")
        return _pieces(as_hull(surface) if kinds[0] == "hull" else decomposed(surface, most))
    if not kinds:
        raise InputError("no shapes to choose from", valid=", ".join(ALL))
    if most == 1:
        one = fit(surface, kinds)
        return Cover(((one.shape, one.T_mesh_shape),), (), one.excess, one.gap, one.outside)
    parts = by_components(surface)
    if not 1 < len(parts) <= most:
        parts = list(decomposed(surface, most).pieces)
    found = [fit(part, kinds) for part in parts]
    return _together(surface, found)


def _pieces(made: Decomposed) -> Cover:
    return Cover((), made.pieces, made.excess, made.gap, made.outside)


def _together(surface: Surface, found: Sequence[Fitted]) -> Cover:
    from roboyard.description.mesh_tools.fitting import SAMPLES, depth, sampled

    near = Nearness(surface)
    gap = max(float(near.distances(one.T_mesh_shape @ sampled(one.shape, SAMPLES)).max()) for one in found)
    points = scattered(surface, SAMPLES)
    outside = min_over = None
    for one in found:
        over = depth(one.shape, one.T_mesh_shape.inverse() @ points)
        min_over = over if min_over is None else over.clip(max=min_over)
    outside = max(0.0, float(min_over.max())) if min_over is not None else 0.0
    body = surface.volume if surface.closed and surface.volume > 0.0 else hull_of(surface).volume
    excess = sum(one.volume for one in found) / body - 1.0
    return Cover(tuple((one.shape, one.T_mesh_shape) for one in found), (), excess, gap, outside)
