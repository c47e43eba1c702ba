"""Octrees as octomap_msgs, and centers of occupied voxels as a cloud."""

from __future__ import annotations

from typing import Any

import numpy as np

from roboyard.mapping.octree import OctreeLeaves, OctreeMapConfig
from roboyard.mapping.octree.octomap_files import decode_octree
from roboyard.messages import msg
from roboyard.messages.convert import cloud_to_msg, pack_rgb
from roboyard.messages.convert.poses import make_header


def octree_to_msg(data: bytes, tree_type: str, resolution: float, frame: str, time_ns: int, *, binary: bool) -> Any:
    """octomap_msgs/Octomap of a tree's bytes.

    Args:
        data: As `OctreeMap.full` or `OctreeMap.binary` gives them.
        tree_type: ``OcTree`` or ``ColorOcTree``.
        resolution: Edge of the smallest voxel [m].
        frame: Of the map.
        time_ns: Moment.
        binary: Which of the two it is.
    """
    return msg.octomap_msgs.Octomap(
        header=make_header(frame, time_ns), binary=binary, id=tree_type, resolution=resolution,
        data=np.frombuffer(data, dtype=np.int8),
    )  # fmt: skip


def octree_from_msg(message: Any, config: OctreeMapConfig | None = None) -> OctreeLeaves:
    """Leaves of the tree in an octomap_msgs/Octomap.

    Raises:
        InputError: it holds no whole tree of a known kind.
    """
    data = np.asarray(message.data, dtype=np.int8).tobytes()
    return decode_octree(
        data,
        tree_type=str(message.id),
        binary=bool(message.binary),
        resolution=float(message.resolution),
        config=config,
    )


def centers_to_msg(leaves: OctreeLeaves, min_z: float, max_z: float, frame: str, time_ns: int) -> Any:
    """sensor_msgs/PointCloud2 of the middles of occupied leaves in a band of heights [m]."""
    centers = leaves.centers
    is_selected = leaves.occupied & (centers[:, 2] >= min_z) & (centers[:, 2] <= max_z)
    fields = {} if leaves.colors is None else {"rgb": pack_rgb(leaves.colors[is_selected])}
    return cloud_to_msg(centers[is_selected], frame, time_ns, fields=fields)
