"""Open and crooked surfaces made closed: what is done is listed, what cannot be done is refused."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from roboyard.description.mesh_tools.surface import Faces, Surface, welded
from roboyard.errors import DescriptionError

WELD = 1e-5
"""Gaps narrower than this share of the size are rounding of the exporter."""
MAX_HOLES = 2000
"""More are no holes but triangles that do not hang together."""
MAX_CAPS = 0.2
"""More than this share of the area is not invented: what lies behind so large a hole is a guess."""


def closed_surface(surface: Surface, repair: bool, where: str) -> tuple[Surface, tuple[str, ...]]:
    """A closed surface with its normals outwards, and what was mended for it.

    Vertices nearer than rounding are merged, degenerate and doubled triangles left out and, with ``repair``, triangles
    turned to agree with their neighbours and holes capped by fans of triangles.

    Raises:
        DescriptionError: the surface is open and not to be repaired, or cannot be.
    """
    mended: list[str] = []
    if not surface.closed:
        surface = _cleaned(surface, mended)
    if not surface.closed:
        holes, open_ = _holes(len(_loops(surface.open_edges))), len(surface.open_edges)
        if not repair:
            what = (
                f"open: {open_} edges have no neighbour ({holes})" if open_ else "folded: triangles share edges by many"
            )
            raise DescriptionError(
                f"the surface is {what}, so that it has no volume",
                where=where,
                valid="a closed surface, or --repair to close it",
            )
        surface = _turned(surface, mended)
        surface = _capped(surface, mended, where)
    if surface.volume < 0.0:
        surface = Surface(surface.vertices, surface.faces[:, ::-1])
        mended.append("turned inside out: its normals pointed inwards")
    if not surface.volume > 1e-9 * surface.area * surface.size:
        raise DescriptionError("the surface encloses no volume", where=where, valid="a body with some thickness")
    return surface, tuple(mended)


def without_gaps(surface: Surface) -> Surface:
    """The surface without gaps as narrow as an exporter's rounding, if that makes it more closed."""
    return surface if surface.closed else _cleaned(surface, [])


def _cleaned(surface: Surface, mended: list[str]) -> Surface:
    merged = welded(surface, WELD * surface.size)
    _, first, counts = np.unique(np.sort(merged.faces, axis=1), axis=0, return_index=True, return_counts=True)
    single = Surface(merged.vertices, merged.faces[np.sort(first[counts == 1])])
    # Twice the same triangle: once is enough.  Twice with opposite sides: a fin without thickness, which cancels.
    if (counts > 1).any() and len(single.faces) and len(single.open_edges) <= len(merged.open_edges):
        mended.append(f"left out {int(counts[counts > 1].sum())} triangles that lie on each other")
        merged = single
    if merged.closed or len(merged.open_edges) < len(surface.open_edges):
        mended.append(f"merged vertices nearer than {WELD * surface.size:.2g} m")
        return merged
    return surface


def _turned(surface: Surface, mended: list[str]) -> Surface:
    """Triangles turned until neighbours agree, each part by the majority of its area."""
    from scipy.sparse import coo_array
    from scipy.sparse.csgraph import breadth_first_order, connected_components

    faces = surface.faces
    edges = faces[:, [0, 1, 1, 2, 2, 0]].reshape(-1, 2)
    low, high = edges.min(axis=1), edges.max(axis=1)
    owners = np.repeat(np.arange(len(faces)), 3)
    order = np.lexsort((owners, high, low))
    same = (low[order][1:] == low[order][:-1]) & (high[order][1:] == high[order][:-1])
    # Only edges with exactly two triangles say who is whose neighbour.
    alone = same & ~np.append(same[1:], False) & ~np.insert(same[:-1], 0, False)
    first, second = order[:-1][alone], order[1:][alone]
    against = (edges[first, 0] == edges[second, 0]).astype(np.int64)  # the same direction: one of the two is crooked
    a, b = owners[first], owners[second]
    count = len(faces)
    number, labels = connected_components(coo_array((np.ones(len(a), np.int8), (a, b)), shape=(count, count)), False)
    # One node more, a neighbour of every part's first triangle: one walk from there reaches everything.
    roots = np.unique(labels, return_index=True)[1]
    ends = np.concatenate([a, np.full(len(roots), count)]), np.concatenate([b, roots])
    links = coo_array((np.ones(len(ends[0]), np.int8), ends), shape=(count + 1, count + 1)).tocsr()
    reached, before = breadth_first_order(links, count, directed=False)
    keys = np.minimum(a, b) * (count + 1) + np.maximum(a, b)
    order = np.argsort(keys, kind="stable")
    wanted = np.minimum(before[:count], np.arange(count)) * (count + 1) + np.maximum(before[:count], np.arange(count))
    place = order[np.minimum(np.searchsorted(keys, wanted, sorter=order), len(keys) - 1)] if len(keys) else None
    differs = np.where(keys[place] == wanted, against[place], 0).tolist() if place is not None else [0] * count
    parents, turned = before.tolist(), [0] * (count + 1)
    for face in reached[1:].tolist():
        turned[face] = turned[parents[face]] ^ differs[face]
    flips: NDArray[np.int64] = np.array(turned[:count], np.int64)
    areas = np.linalg.norm(surface.normals, axis=1)
    wrong = np.bincount(labels, areas * flips, minlength=number) > np.bincount(labels, areas, minlength=number) / 2.0
    flips ^= wrong[labels]
    if flips.any():
        mended.append(f"turned {int(flips.sum())} triangles that faced the wrong way")
    return Surface(surface.vertices, np.where(flips[:, None] == 1, faces[:, ::-1], faces))


def _loops(edges: Faces) -> list[list[int]]:
    """Open edges as closed loops of vertices; what does not close is left out."""
    onward: dict[int, list[int]] = {}
    for start, end in edges.tolist():
        onward.setdefault(start, []).append(end)
    loops = []
    for start in list(onward):
        while onward.get(start):
            loop, at = [start], onward[start].pop()
            while at != start and onward.get(at):
                loop.append(at)
                at = onward[at].pop()
            if at == start and len(loop) > 2:
                loops.append(loop)
    return loops


def _capped(surface: Surface, mended: list[str], where: str) -> Surface:
    if surface.closed:
        return surface
    caps, vertices = [], [surface.vertices]
    total = len(surface.vertices)
    loops = _loops(surface.open_edges)
    if len(loops) > MAX_HOLES:
        raise DescriptionError(
            f"the surface has {len(loops)} holes: its triangles do not hang together", where=where,
            valid=f"at most {MAX_HOLES} holes",
        )  # fmt: skip
    for loop in loops:
        corners = surface.vertices[loop]
        vertices.append(corners.mean(axis=0, keepdims=True))
        after = loop[1:] + loop[:1]
        caps.append(np.array([(b, a, total) for a, b in zip(loop, after, strict=True)], np.int64))
        total += 1
    everything = np.concatenate([surface.faces, *caps]) if caps else surface.faces
    closed = Surface(np.concatenate(vertices), everything)
    if not closed.closed:
        raise DescriptionError(
            f"the surface cannot be closed: {len(closed.open_edges)} edges belong to no hole's rim",
            where=where,
            valid="a surface whose triangles meet edge to edge",
        )
    added = closed.part(np.arange(len(surface.faces), len(everything))).area
    if added > MAX_CAPS * closed.area:
        raise DescriptionError(
            f"{_holes(len(loops))} of {added / closed.area:.0%} of the surface cannot be closed", where=where,
            valid=f"at most {MAX_CAPS:.0%}: what is behind larger ones would be a guess",
        )  # fmt: skip
    mended.append(f"capped {_holes(len(loops))}, {added / closed.area:.2%} of the surface")
    return closed


def _holes(number: int) -> str:
    return "1 hole" if number == 1 else f"{number} holes"
