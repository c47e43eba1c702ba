"""Voxels of octree maps in messages."""

from __future__ import annotations

from typing import Any, Final

import numpy as np

from roboyard.errors import InputError
from roboyard.geometry import SE3
from roboyard.manipulation.collision import Voxels
from roboyard.mapping.octree.octomap_files import octree_from_msg

_MOST: Final = 200_000
"""Voxels that are planned around."""


def voxels_of(message: Any, name: str, T_world_map: SE3) -> Voxels:
    """The occupied voxels of an octomap_msgs/Octomap, large leaves cut into the smallest ones.

    Cubes of a map that is turned are replaced by upright ones of the same size about the same middles.

    Raises:
        InputError: it holds no tree, or more than 200,000 occupied voxels.
    """
    leaves = octree_from_msg(message)
    taken = leaves.occupied
    voxels, sizes, centers = leaves.edge_voxels[taken], leaves.sizes[taken], leaves.centers[taken]
    count = int((voxels**3).sum())
    if count > _MOST:
        raise InputError(f"{count} occupied voxels", valid=f"at most {_MOST}: a coarser map, or a smaller one")
    found = [np.zeros((0, 3))]
    for width in np.unique(voxels).tolist():
        chosen = voxels == width
        steps = (np.arange(width) + 0.5) * leaves.resolution
        cells = np.stack(np.meshgrid(steps, steps, steps, indexing="ij"), axis=-1).reshape(-1, 3)
        corners = centers[chosen] - sizes[chosen, None] / 2.0
        found.append((corners[:, None, :] + cells[None]).reshape(-1, 3))
    return Voxels(name, T_world_map @ np.concatenate(found), leaves.resolution)
