"""Fewer triangles, and how far the surface has moved."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from roboyard.description.mesh_tools.nearness import hausdorff
from roboyard.description.mesh_tools.surface import Surface, welded
from roboyard.errors import InputError

COARSENESS = (1, 3, 5, 7, 9)
"""Of the rounds in which edges are collapsed."""
ROUNDS = 14
"""Numbers of triangles that are tried to come near an error."""


@dataclass(frozen=True)
class Reduced:
    """A lighter surface and its distance from the original [m]."""

    surface: Surface
    error: float


def to_triangles(surface: Surface, triangles: int) -> Reduced:
    """At most about ``triangles`` triangles, by quadric edge collapse (M. Garland, P. Heckbert, SIGGRAPH 1997).

    Raises:
        InputError: fewer than four.
    """
    if triangles < 4:
        raise InputError(f"{triangles} triangles", valid="at least 4: a tetrahedron")
    if triangles >= len(surface.faces):
        return Reduced(surface, 0.0)
    light = _collapsed(surface, triangles)
    return Reduced(light, hausdorff(surface, light))


def to_error(surface: Surface, error: float) -> Reduced:
    """The lightest surface found that stays within ``error`` [m] of the original. Raises InputError."""
    if not 0.0 < error < np.inf:
        raise InputError(f"error {error:g} m", valid="above zero")
    best, low, high = Reduced(surface, 0.0), 4, len(surface.faces)
    for _ in range(ROUNDS):
        if high - low < max(2, low // 50):
            break
        middle = round((low * high) ** 0.5)
        tried = to_triangles(surface, middle)
        if tried.error <= error:
            best, high = tried, middle
        else:
            low = middle + 1
    return best


def _collapsed(surface: Surface, triangles: int) -> Surface:
    import fast_simplification

    light, faces = surface, np.ascontiguousarray(surface.faces, np.int32)
    # Edges are taken in rounds of rising thresholds.  The finer the rounds the nearer the surface stays, but the fewest
    # triangles are out of their reach.
    for coarseness in COARSENESS:
        corners, left = fast_simplification.simplify(surface.vertices, faces, target_count=triangles, agg=coarseness)
        if not len(left):  # triangles that lie on each other leave nothing
            break
        made = welded(Surface(np.asarray(corners, float), np.asarray(left, np.int64)))
        if len(made.faces) >= 4:
            light = made
        if len(made.faces) <= 1.02 * triangles:
            break
    return light
