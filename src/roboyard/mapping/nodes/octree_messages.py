"""Octrees as octomap_msgs, and centers of occupied voxels as a cloud."""

from __future__ import annotations

from typing import Any

import numpy as np

from roboyard.mapping.octree import OctreeLeaves
from roboyard.messages import msg
from roboyard.messages.convert import cloud_to_msg, pack_rgb
from roboyard.messages.convert.poses import make_header


def octree_to_msg(data: bytes, tree_type: str, resolution: float, frame: str, time_ns: int, *, binary: bool) -> Any:
    """Convert the bytes of a tree to octomap_msgs/Octomap.

    Args:
        data: Bytes that `OctreeMap.encode_full` or `OctreeMap.encode_binary` returned.
        tree_type: ``OcTree`` or ``ColorOcTree``.
        resolution: Edge of the smallest voxel [m].
        frame: Frame of the map.
        time_ns: Time stamp [ns].
        binary: Whether the bytes are those of `OctreeMap.encode_binary`.
    """
    return msg.octomap_msgs.Octomap(
        header=make_header(frame, time_ns), binary=binary, id=tree_type, resolution=resolution,
        data=np.frombuffer(data, dtype=np.int8),
    )  # fmt: skip


def centers_to_msg(leaves: OctreeLeaves, min_z: float, max_z: float, frame: str, time_ns: int) -> Any:
    """Convert the centers of occupied leaves in a band of heights [m] to sensor_msgs/PointCloud2."""
    centers = leaves.centers
    is_selected = leaves.occupied & (centers[:, 2] >= min_z) & (centers[:, 2] <= max_z)
    fields = {} if leaves.colors is None else {"rgb": pack_rgb(leaves.colors[is_selected])}
    return cloud_to_msg(centers[is_selected], frame, time_ns, fields=fields)
