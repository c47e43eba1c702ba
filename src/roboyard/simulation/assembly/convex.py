"""Convex pieces of a mesh: the engine touches convex shapes only, and a room's wall must not become a solid block."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from roboyard.errors import DescriptionError

Points = NDArray[np.float64]

PLATE = 0.02
"""Thickness given to a facet of a concave surface, inwards [m]."""
OVERLAP = 1e-4
"""How far plates reach beyond their facets [m]."""
FLAT = 1e-3
"""Neighbouring triangles that meet at a smaller angle belong to one facet [rad]."""
TINY = 1e-8
"""Triangles smaller than this are left out [m²]."""
SLIVER = 1e-5
"""A plate narrower than this share of its length is left out."""
MAX_PIECES = 5000


def convex_pieces(vertices: Points, faces: NDArray[np.int64]) -> list[Points] | None:
    """Point sets whose convex hulls together stand for the surface.

    A connected part that is convex already gives its own hull; of a concave part every flat facet becomes a thin
    plate.

    Args:
        vertices: (n, 3) [m].
        faces: (m, 3) indices, counter-clockwise seen from outside.

    Returns:
        Pieces, each (k, 3); None when there would be more than `MAX_PIECES`.
    """
    import trimesh

    mesh = trimesh.Trimesh(vertices, faces, process=True)
    # The pieces that hang together, in the order of their first face.
    groups = _groups(len(mesh.faces), mesh.face_adjacency)
    if len(groups) > MAX_PIECES:
        return None
    pieces: list[Points] = []
    for group in groups:
        part = mesh.submesh([group], append=True, repair=False) if len(groups) > 1 else mesh
        if _is_convex(part):
            pieces.append(np.asarray(part.vertices))
        else:
            pieces.extend(_plates(part, MAX_PIECES + 1 - len(pieces)))
        if len(pieces) > MAX_PIECES:
            return None
    return pieces


def _groups(count: int, links: NDArray[np.int64]) -> list[NDArray[np.int64]]:
    """Numbers 0…count-1 grouped by ``links`` (n, 2) between them."""
    from scipy.sparse import coo_array
    from scipy.sparse.csgraph import connected_components

    graph = coo_array((np.ones(len(links), np.int8), (links[:, 0], links[:, 1])), shape=(count, count))
    number, labels = connected_components(graph, directed=False)
    order = np.argsort(labels, kind="stable")
    return np.split(order, np.searchsorted(labels[order], np.arange(1, number)))


def _is_convex(part: Any) -> bool:
    from scipy.spatial import QhullError

    if np.linalg.matrix_rank(part.vertices - part.vertices[0], tol=1e-6) < 3:
        return False
    if not part.is_watertight:
        return False
    try:
        return bool(part.volume >= 0.98 * part.convex_hull.volume)
    except QhullError:  # next to no thickness
        return False


def _plates(part: Any, most: int) -> list[Points]:
    """Thin plates on the facets of a surface; about ``most`` where there would be more."""
    plates: list[Points] = []
    flat = part.face_adjacency[part.face_adjacency_angles < FLAT]
    # Plain arrays: the mesh's own attributes are hashed anew at every look (18 s for 80,000 triangles).
    vertices, faces, normals, areas = (
        np.array(values) for values in (part.vertices, part.faces, part.face_normals, part.area_faces)
    )
    for facet in _groups(len(faces), flat):
        facet = facet[areas[facet] > TINY]
        if not len(facet):
            continue
        if len(plates) >= most:
            break
        normal = normals[facet[0]]
        points = vertices[np.unique(faces[facet])]
        if len(facet) == 1 or _hull_area(points, normal) <= 1.02 * areas[facet].sum():
            plates.append(thicken(points, normal))
        else:
            plates.extend(thicken(vertices[faces[face]], normals[face]) for face in facet)
    # Of a sliver along a line the engine, which reckons in single precision, makes no body.
    return [plate for plate in plates if not is_flat(plate, SLIVER)]


def thicken(points: Points, normal: Points) -> Points:
    """The corners of a plate that has depth against ``normal`` (3,)."""
    # A little wider than it is, so that no ray slips through the seam of two plates.
    outwards = points - points.mean(axis=0)
    wider = points + OVERLAP * outwards / np.maximum(np.linalg.norm(outwards, axis=1, keepdims=True), 1e-12)
    return np.concatenate([wider, wider - PLATE * np.asarray(normal)])


def _hull_area(points: Points, normal: Points) -> float:
    from scipy.spatial import ConvexHull, QhullError

    axis = np.eye(3)[int(np.argmin(np.abs(normal)))]
    u = np.cross(normal, axis)
    u /= np.linalg.norm(u)
    flat = np.stack([points @ u, points @ np.cross(normal, u)], axis=1)
    try:
        return float(ConvexHull(flat).volume)
    except QhullError:
        return np.inf


def hull_of(points: Points) -> tuple[Points, NDArray[np.int64]]:
    """The points and the triangles (k, 3) of their convex hull, counter-clockwise seen from outside.

    Raises:
        DescriptionError: they lie on a line, or in one point.
    """
    from scipy.spatial import ConvexHull, QhullError

    try:
        try:
            faces = ConvexHull(points)
        except QhullError:
            faces = ConvexHull(points, qhull_options="QJ")  # nearly flat: may move corners by rounding's width
    except (QhullError, ValueError):
        raise DescriptionError("its points span no body", valid="corners that do not lie on a line") from None
    centre = points[faces.vertices].mean(axis=0)
    triangles = faces.simplices.astype(np.int64)
    normals = np.cross(
        points[triangles[:, 1]] - points[triangles[:, 0]], points[triangles[:, 2]] - points[triangles[:, 0]]
    )
    inward = np.einsum("ij,ij->i", normals, points[triangles[:, 0]] - centre) < 0.0
    triangles[inward] = triangles[inward][:, ::-1]
    return points, triangles


def is_flat(vertices: Points, share: float = 1e-6) -> bool:
    """Whether the points lie in one plane, to within a ``share`` of their spread (no hull can be built)."""
    if len(vertices) < 4:
        return True
    spread = np.linalg.svd(vertices - vertices.mean(axis=0), compute_uv=False)
    return bool(spread[2] <= share * max(spread[0], 1e-9))
