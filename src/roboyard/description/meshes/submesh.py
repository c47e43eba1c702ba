"""Sub-meshes of a mesh file, as SDF's `<submesh>` selects them."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from roboyard.errors import DescriptionError


def extract_submesh(scene: Any, name: str, file: Path) -> Any:
    """Return the geometry `name` of a loaded trimesh scene, in scene coordinates.

    Raises:
        DescriptionError: The scene has no such geometry; the message lists the existing ones.
    """
    nodes: Mapping[str, str] = {}
    if hasattr(scene, "graph"):
        nodes = {str(node): str(scene.graph[node][1]) for node in scene.graph.nodes_geometry}
    for node, geometry in nodes.items():
        if name in (node, geometry):
            submesh = scene.geometry[geometry].copy()
            submesh.apply_transform(scene.graph[node][0])
            return submesh
    raise submesh_not_found_error(name, list(dict.fromkeys([*nodes, *nodes.values()])), file)


def submesh_not_found_error(name: str, submesh_names: list[str], file: Path) -> DescriptionError:
    """Make the error for a submesh that a file does not have."""
    return DescriptionError(
        f"mesh has no submesh '{name[:100]}'",
        location=str(file),
        valid=", ".join(submesh_names[:12]) or "it has no named submeshes",
    )


def center_on_bounding_box(vertices: NDArray[np.float64]) -> NDArray[np.float64]:
    """Translate points so that the center of their bounding box is the origin, as ``<center>`` requests."""
    return np.asarray(vertices - 0.5 * (vertices.min(axis=0) + vertices.max(axis=0)))
