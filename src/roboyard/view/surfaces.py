"""Maps, heights, voxels and pictures as a page can draw them; see `drawings`."""

from __future__ import annotations

import io
from collections.abc import Callable
from typing import Any

import numpy as np

from roboyard.errors import MessageError
from roboyard.mapping.octree.octomap_files import octree_from_msg
from roboyard.messages.convert import image_to_array
from roboyard.messages.convert.grid_maps import heights_from_msg
from roboyard.view.drawings import Drawing, pose_row

LARGEST_GRID = 1024
"""Cells along an edge of a map that are sent; of larger ones every second, third … is."""
MOST_VOXELS = 120_000
LARGEST_PICTURE = 640
"""Width of pictures that are sent [px]."""


def _grid(message: Any) -> Drawing:
    info = message.info
    cells = np.asarray(message.data, dtype=np.int8).reshape(int(info.height), int(info.width))
    every = max(1, -(-max(cells.shape) // LARGEST_GRID))
    if every > 1:  # the worst of those that are drawn as one
        rows, columns = (-(-size // every) * every for size in cells.shape)
        padded = np.full((rows, columns), -1, np.int8)
        padded[: cells.shape[0], : cells.shape[1]] = cells
        cells = padded.reshape(rows // every, every, columns // every, every).max(axis=(1, 3))
    head = {
        "shape": "grid", "width": cells.shape[1], "height": cells.shape[0], "cell": float(info.resolution) * every,
        "origin": pose_row(info.origin),
    }  # fmt: skip
    return Drawing(head, (np.ascontiguousarray(cells),))


def _heights(message: Any) -> Drawing:
    ground = heights_from_msg(message)
    rows, columns = ground.heights.shape
    head = {
        "shape": "heights",
        "width": columns,
        "height": rows,
        "cell": ground.resolution,
        "corner": list(ground.corner),
    }
    return Drawing(head, (ground.heights.astype(np.float32),))


def _octree(message: Any) -> Drawing:
    leaves = octree_from_msg(message)
    taken = np.flatnonzero(leaves.occupied)
    taken = taken[:: max(1, -(-len(taken) // MOST_VOXELS))]
    boxes = np.column_stack([leaves.centers[taken], leaves.sizes[taken]]).astype(np.float32)
    arrays = (boxes,) if leaves.colors is None else (boxes, np.ascontiguousarray(leaves.colors[taken], dtype=np.uint8))
    return Drawing({"shape": "voxels"}, arrays)


def _picture(message: Any) -> Drawing:
    from PIL import Image

    pixels = image_to_array(message)
    if pixels.dtype != np.uint8:  # depth: near is bright
        values = np.nan_to_num(pixels.astype(np.float32), posinf=0.0, neginf=0.0)
        known = values > 0.0
        far = float(values.max()) if known.any() else 1.0
        pixels = np.where(known, 255.0 - 230.0 * values / far, 0.0).astype(np.uint8)
    elif message.encoding.startswith("bgr"):
        pixels = pixels[:, :, 2::-1]
    picture = Image.fromarray(np.ascontiguousarray(pixels[..., :3] if pixels.ndim == 3 else pixels))
    picture.thumbnail((LARGEST_PICTURE, LARGEST_PICTURE))
    out = io.BytesIO()
    picture.save(out, "JPEG", quality=80)
    return Drawing({"shape": "picture", "type": "image/jpeg"}, (out.getvalue(),))


def _compressed(message: Any) -> Drawing:
    data = np.asarray(message.data, dtype=np.uint8).tobytes()
    kinds = {b"\xff\xd8\xff": "image/jpeg", b"\x89PN": "image/png"}
    kind = kinds.get(data[:3])
    if kind is None:
        raise MessageError(f"a picture in the format {message.format!r:.60}", valid="JPEG or PNG")
    return Drawing({"shape": "picture", "type": kind}, (data,))


SURFACES: dict[str, Callable[[Any], Drawing]] = {
    "nav_msgs/msg/OccupancyGrid": _grid,
    "grid_map_msgs/msg/GridMap": _heights,
    "octomap_msgs/msg/Octomap": _octree,
    "sensor_msgs/msg/Image": _picture,
    "sensor_msgs/msg/CompressedImage": _compressed,
}
"""What makes a drawing of a message, by its type."""
