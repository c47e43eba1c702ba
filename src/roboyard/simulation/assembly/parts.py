"""One named part of a mesh file, as SDF's ``<submesh>`` asks for it."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from roboyard.errors import DescriptionError


def pick(scene: Any, name: str, file: Path) -> Any:
    """The geometry called ``name`` of a loaded trimesh scene, where it stands there.

    Raises:
        DescriptionError: there is none; the message names those that are there.
    """
    nodes: Mapping[str, str] = {}
    if hasattr(scene, "graph"):
        nodes = {str(node): str(scene.graph[node][1]) for node in scene.graph.nodes_geometry}
    for node, geometry in nodes.items():
        if name in (node, geometry):
            part = scene.geometry[geometry].copy()
            part.apply_transform(scene.graph[node][0])
            return part
    raise missing(name, list(dict.fromkeys([*nodes, *nodes.values()])), file)


def missing(name: str, there: list[str], file: Path) -> DescriptionError:
    """The error for a part that a file does not have."""
    return DescriptionError(
        f"mesh has no part '{name[:100]}'", location=str(file), valid=", ".join(there[:12]) or "it has no named parts"
    )


def centred(vertices: NDArray[np.float64]) -> NDArray[np.float64]:
    """The points moved so that the middle of their box is the origin, as ``<center>`` asks."""
    return np.asarray(vertices - 0.5 * (vertices.min(axis=0) + vertices.max(axis=0)))
