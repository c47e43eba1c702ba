"""Image of an octree map: the visible faces of occupied voxels."""

from __future__ import annotations

import math
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from roboyard.config import atomic_path

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from roboyard.mapping.octree import OctreeLeaves

_AZIMUTH, _ELEVATION = math.radians(-60.0), math.radians(40.0)
_VISIBLE_FACES: Final = ((0, 1, 0.72), (1, -1, 0.86), (2, 1, 1.0))
"""Axis, direction and brightness of the sides that can be seen from there."""
_MAX_FACES: Final = 400_000


def draw_octree(file: Path, leaves: OctreeLeaves, title: str) -> None:
    """Draw it, from above and aside; in its colours, else by height.

    Only sides between occupied and free voxels are there: a room's ceiling and near walls, which were seen from
    within, do not hide it.

    Raises:
        InputError: the file cannot be written, or there is too much to draw.
    """
    import numpy as np
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.collections import PolyCollection
    from matplotlib.figure import Figure

    from roboyard.errors import InputError

    right = np.array([-math.sin(_AZIMUTH), math.cos(_AZIMUTH), 0.0])
    towards = np.array([math.cos(_AZIMUTH), math.sin(_AZIMUTH), math.tan(_ELEVATION)]) * math.cos(_ELEVATION)
    up = np.cross(towards, right)
    corners, colors = _visible_faces(leaves)
    if len(corners) > _MAX_FACES:
        raise InputError(f"{len(corners)} sides to draw", location=str(file), valid=f"at most {_MAX_FACES}")
    order = np.argsort(corners.mean(axis=1) @ towards, kind="stable")  # the nearest last
    polygons = np.stack([corners @ right, corners @ up], axis=-1)[order]
    figure = Figure(figsize=(10.0, 7.0), layout="constrained")
    FigureCanvasAgg(figure)
    axes = figure.add_subplot()
    # edges in the same colour close the hairlines between neighbours
    axes.add_collection(
        PolyCollection(list(polygons), facecolors=colors[order], edgecolors=colors[order], linewidths=0.3)
    )
    axes.autoscale_view()
    axes.set_aspect("equal")
    axes.set_axis_off()
    axes.set_title(title)
    try:
        with atomic_path(file, has_target_suffix=True) as temporary:
            figure.savefig(temporary, dpi=120)
    except OSError as error:
        raise InputError(f"cannot be written: {error.strerror or error}", location=str(file)) from error


def _visible_faces(leaves: OctreeLeaves) -> tuple[NDArray[np.float64], NDArray[Any]]:
    """Return the corners (n, 4, 3) of the visible faces [m], and their colors (n, 3) from 0 to 1."""
    import numpy as np
    from matplotlib import colormaps

    from roboyard.mapping.octree.octree import VOXEL_FREE, VOXEL_OCCUPIED, to_dense
    from roboyard.mapping.octree.voxel_blocks import ORIGIN_KEY

    state, low = to_dense(leaves)
    state = np.pad(state, 1)
    color = _voxel_colors(leaves, state.shape, low - 1)
    corners, shades = [], []
    for axis, direction, brightness in _VISIBLE_FACES:
        neighbor_state = np.roll(state, -direction, axis=axis)
        cells = np.argwhere((state == VOXEL_OCCUPIED) & (neighbor_state == VOXEL_FREE))
        u, v = (axis + 1) % 3, (axis + 2) % 3
        square = np.zeros((4, 3))
        square[:, axis] = direction > 0
        square[:, u], square[:, v] = (0, 1, 1, 0), (0, 0, 1, 1)
        corners.append((cells[:, None] + square + low - 1 - ORIGIN_KEY) * leaves.resolution)
        shades.append(color[tuple(cells.T)] * brightness)
    faces, shade = np.concatenate(corners), np.concatenate(shades)
    if leaves.colors is None and len(faces):
        heights = faces[:, :, 2].mean(axis=1)
        spread = max(float(np.ptp(heights)), 1e-9)
        shade = shade * colormaps["viridis"]((heights - heights.min()) / spread)[:, :3]
    return faces, shade


def _voxel_colors(leaves: OctreeLeaves, shape: tuple[int, ...], low: NDArray[np.int64]) -> NDArray[np.float32]:
    """Return the colors (nx, ny, nz, 3) of occupied voxels; one color where there is none."""
    import numpy as np

    color = np.ones((*shape, 3), np.float32)
    if leaves.colors is None:
        return color
    is_occupied = leaves.occupied
    for edge in np.unique(leaves.edge_voxels[is_occupied]):
        has_edge = is_occupied & (leaves.edge_voxels == edge)
        offsets = np.indices((int(edge),) * 3).reshape(3, -1).T
        voxel_indices = leaves.keys[has_edge][:, None] - low + offsets[None]
        color[tuple(np.moveaxis(voxel_indices, -1, 0))] = leaves.colors[has_edge][:, None] / 255.0
    return color
