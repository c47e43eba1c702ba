"""Octree maps as octomap_msgs have them, and the clouds they are made of."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from roboyard.errors import MessageError
from roboyard.mapping.octree import Leaves, OctreeConfig
from roboyard.mapping.octree.files import decode_octree
from roboyard.messages import msg
from roboyard.messages.convert import cloud_to_arrays, cloud_to_msg, pack_rgb
from roboyard.messages.convert.poses import make_header


@dataclass(frozen=True, slots=True)
class Cloud:
    """What a cloud's message holds.

    Attributes:
        columns: (n,) x, y and z in the sensor's frame [m], maybe not finite.
        packed: (n,) colours as PCL packs them; None if there are none.
    """

    columns: tuple[NDArray[np.float32], NDArray[np.float32], NDArray[np.float32]]
    packed: NDArray[Any] | None


def cloud_from_msg(message: Any, *, color: bool) -> Cloud:
    """What a sensor_msgs/PointCloud2 shows, organised or not.

    Args:
        message: The cloud; colours are in a field ``rgb`` or ``rgba``.
        color: Whether they are wanted.

    Raises:
        MessageError: no x, y, z, or fields that contradict the data.
    """
    fields = cloud_to_arrays(message)
    if any(axis not in fields or fields[axis].ndim != 1 for axis in "xyz"):
        raise MessageError(f"cloud has no x, y, z but {', '.join(fields) or 'nothing'}")
    x, y, z = (fields[axis].astype(np.float32, copy=False) for axis in "xyz")
    packed = next((fields[name] for name in ("rgb", "rgba") if name in fields), None) if color else None
    return Cloud((x, y, z), packed)


def octree_to_msg(data: bytes, kind: str, resolution: float, frame: str, time_ns: int, *, binary: bool) -> Any:
    """octomap_msgs/Octomap of a tree's bytes.

    Args:
        data: As `OctreeMap.full` or `OctreeMap.binary` gives them.
        kind: ``OcTree`` or ``ColorOcTree``.
        resolution: Edge of the smallest voxel [m].
        frame: Of the map.
        time_ns: Moment.
        binary: Which of the two it is.
    """
    return msg.octomap_msgs.Octomap(
        header=make_header(frame, time_ns), binary=binary, id=kind, resolution=resolution,
        data=np.frombuffer(data, dtype=np.int8),
    )  # fmt: skip


def octree_from_msg(message: Any, config: OctreeConfig | None = None) -> Leaves:
    """Leaves of the tree in an octomap_msgs/Octomap.

    Raises:
        InputError: it holds no whole tree of a known kind.
    """
    data = np.asarray(message.data, dtype=np.int8).tobytes()
    return decode_octree(
        data, kind=str(message.id), binary=bool(message.binary), resolution=float(message.resolution), config=config
    )


def centers_to_msg(leaves: Leaves, low: float, high: float, frame: str, time_ns: int) -> Any:
    """sensor_msgs/PointCloud2 of the middles of occupied leaves in a band of heights [m]."""
    centers = leaves.centers
    chosen = leaves.occupied & (centers[:, 2] >= low) & (centers[:, 2] <= high)
    fields = {} if leaves.colors is None else {"rgb": pack_rgb(leaves.colors[chosen])}
    return cloud_to_msg(centers[chosen], frame, time_ns, fields=fields)
